"""The text of a write's key, with and without the scope in which it is written once.

    sales/2026-11-18                                           bare, as a program gives it
    scope=shop key=sales/2026-11-18                            of a scope, as `stash_key` makes it
    outbox=public.outbox scope=shop key=sales/2026-11-18       the latter, as the ledger records it

A bare key is recorded as it is given, and belongs to one outbox: for another one it is refused. A
key of a scope is one for each outbox.

Versions before 0.2 knew bare keys alone. Nobody can tell whose such a key was, so it counts in
every scope, for the outbox that it was written with.
"""

from __future__ import annotations

import re

from harvest_dagster.errors import ConfigError
from harvest_dagster.text import printable

_SCOPED = re.compile(r"scope=.+? key=(?P<bare>.*)", re.DOTALL)


def scoped(key: str, scope: str) -> str:
    """Return a bare key as one of a scope."""
    if not scope or " key=" in scope:
        raise ConfigError(
            f"scope: it is {printable(repr(scope))}; give a text that is not empty, without ' key='"
        )
    return f"scope={scope} key={key}"


def is_scoped(key: str) -> bool:
    """Return whether a key is one of a scope."""
    return _SCOPED.fullmatch(key) is not None


def bare(key: str) -> str:
    """Return a key without its scope."""
    match = _SCOPED.fullmatch(key)
    return match["bare"] if match else key


def recorded(key: str, outbox: str) -> str:
    """Return a key as the ledger records it for an outbox, which is given with its schema."""
    return f"outbox={outbox} {key}" if is_scoped(key) else key
