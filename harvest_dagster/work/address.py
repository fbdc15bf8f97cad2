"""The address at which figures are served, as people write it."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?:(?P<host>[^\s:/@\[\]]+|\[[0-9a-fA-F:.]+\])?:)?(?P<port>[0-9]{1,5})")
_LAST_PORT = 65_535


def whole_address(given: str) -> str:
    """Return `host:port` of a port, or of both; raise a ValueError if it is neither."""
    address = _ADDRESS.fullmatch(given)
    if address is None or int(address["port"]) > _LAST_PORT:
        raise ValueError("this is no address: give a port, or host:port, or [host]:port")
    return f"{address['host'] or '127.0.0.1'}:{int(address['port'])}"
