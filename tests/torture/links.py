"""The ways to PostgreSQL through the bench's proxy, one for each candidate and one for writers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.waiting import until
from tests.torture.child import Child
from tests.torture.proxy import HOST


class Links:
    """The proxy, and what it can do to a way."""

    def __init__(self, postgres: str, names: Sequence[str], logs: Path) -> None:
        self._parts = urlsplit(postgres)
        given = {"port": self._parts.port, "links": [*names]}
        self._proxy = Child("proxy", given, logs / "proxy.log")
        until(lambda: "ports" in self._proxy.said, what="the proxy listens")

    def url(self, name: str) -> str:
        """Tell PostgreSQL's address as it is on this way."""
        user, _, _ = self._parts.netloc.rpartition("@")
        port = self._proxy.said["ports"][name]
        return self._parts._replace(netloc=f"{user}@{HOST}:{port}").geturl()

    def disturb(self, name: str, how: str, seconds: float) -> None:
        """Begin a disturbance."""
        self._proxy.tell(link=name, how=how, seconds=seconds)

    def heal(self, name: str) -> None:
        """End it."""
        self._proxy.tell(link=name, how="heal")

    def close(self) -> None:
        """End the proxy."""
        self._proxy.kill()
