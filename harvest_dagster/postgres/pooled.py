"""Whether a pooler in between gives a session to others between two transactions.

A client of such a pooler may set nothing for its session: whoever gets the session next would have
it, and the client itself something else. PostgreSQL would never say so. So ask before we set what
others must not get, a commit that does not wait for the disk among it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from harvest_dagster.errors import ConfigError

_REFUSAL = (
    "a pooler in front of PostgreSQL gives sessions to others between transactions, and what is"
    " set for this one would be theirs: name PostgreSQL itself, or a pool of whole sessions"
    " (docs/how-to/poolers.md)"
)
_TRIES = 20
"""In a busy pool the same session may come back by chance a few times."""
_OWN: set[tuple[str, int, str, str]] = set()
"""Where sessions were found to be their clients' own, so that it is asked once in a process."""


def refuse_shared(
    connection: psycopg.Connection[Any], another: Callable[[], psycopg.Connection[Any]]
) -> None:
    """Raise a ConfigError if others get this connection's session between its transactions.

    PostgreSQL tells each client its session's number when they connect, and a pooler makes one up.
    If it did, connect once more, and begin transactions there. One may get the very session that
    this connection had; or else, this connection may get another one while one is taken.
    """
    info = connection.info
    place = (info.host, info.port, info.dbname, info.user)
    session = _session(connection)
    if session == info.backend_pid or place in _OWN:
        return
    with another() as other:
        if any(_is_shared(connection, other, session) for _ in range(_TRIES)):
            raise ConfigError(_REFUSAL)
    _OWN.add(place)


def _is_shared(
    connection: psycopg.Connection[Any], other: psycopg.Connection[Any], session: int
) -> bool:
    with other.transaction():
        return _session(other) == session or _session(connection) != session


def _session(connection: psycopg.Connection[Any]) -> int:
    return int(connection.execute("SELECT pg_backend_pid()").fetchall()[0][0])
