"""Connections to PostgreSQL: the one place where they are made.

Each has a purpose, which `pg_stat_activity` shows, and a patience: how long it may take to be made,
how long a server may be silent, and how long a statement may wait. Left to the system, a machine
that is gone without a word would hold its client up for a quarter of an hour or more. What the user
says of these in his URL goes before what we say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from psycopg import errors

from harvest_dagster.errors import ConfigError
from harvest_dagster.postgres.dsn import connection_string
from harvest_dagster.postgres.pooled import refuse_shared
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.postgres", "connect.sql")
_NAME_BYTES = 63

# A standby that was just promoted, or the primary that was, refuses writes for a while.
UNAVAILABLE = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)
"""What says that PostgreSQL can't answer now, and may later."""
OUTDATED = (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName)
"""What says, of a statement of ours, that the schema `harvest` is missing or too old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How many seconds are waited: to connect, for a silent server, for a lock, for a statement.

    A `lock` or `statement` of 0 waits for as long as it takes; of None, as the server is set up.
    """

    connect: int = 10
    silent: int = 10
    lock: float | None = None
    statement: float | None = None

    @property
    def limits(self) -> bool:
        """Whether it must be set for the session."""
        return self.lock is not None or self.statement is not None

    @property
    def _settings(self) -> dict[str, str]:
        return {
            "connect_timeout": str(self.connect),
            "tcp_user_timeout": str(1000 * self.silent),
            # For a server that took the question, and vanished before it answered.
            "keepalives_idle": str(min(self.silent, 10)),
            "keepalives_interval": str(min(max(self.silent // 2, 1), 5)),
            "keepalives_count": "3",
        }


PATIENT = Patience()
"""For whoever has nothing else to do meanwhile."""


def connect(
    url: str,
    purpose: str,
    patience: Patience = PATIENT,
    *,
    autocommit: bool = True,
    by_index: bool = False,
) -> psycopg.Connection[Any]:
    """Connect, each statement being a transaction of its own unless `autocommit` is off.

    So no lock outlives a statement, whatever becomes of this process in between. `by_index` is for
    statements that walk an outbox, past its dead rows.
    """
    another = partial(
        psycopg.connect,
        connection_string(url, patience._settings),  # noqa: SLF001 - of this module
        autocommit=True,
        application_name=f"harvest {purpose}".encode()[:_NAME_BYTES].decode(errors="ignore"),
        client_encoding="UTF8",  # in others not every text can be read
    )
    connection = another()
    try:
        if by_index or patience.limits:
            refuse_shared(connection, another)
            _set_up(connection, patience, by_index=by_index)
        connection.autocommit = autocommit
    except (psycopg.Error, ConfigError):
        connection.close()
        raise
    return connection


@contextmanager
def connected(url: str, purpose: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect for one transaction, which is committed if the block ends well."""
    with connect(url, purpose, autocommit=False) as connection:
        yield connection


def _set_up(connection: psycopg.Connection[Any], patience: Patience, *, by_index: bool) -> None:
    if patience.limits:
        limits = {"lock": _ms(patience.lock), "statement": _ms(patience.statement)}
        connection.execute(_SQL["patience"].text, limits)
    if by_index:
        connection.execute(_SQL["by_index"].text)


def _ms(seconds: float | None) -> str | None:
    return None if seconds is None else f"{1000 * seconds:.0f}ms"
