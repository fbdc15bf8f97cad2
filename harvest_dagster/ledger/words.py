"""As what a name is led: each lease has the word of the room that leads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row, scalar_row

from harvest_dagster.errors import HarvestStateError
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.ledger", "words.sql")

OUTBOX = "outbox"
"""The word of a harvest; and of whoever says none, as before there were other rooms."""


@dataclass(frozen=True, slots=True)
class LedName:
    """A name that is led, or was; of each shard the leader, None where nobody leads, and epoch."""

    name: str
    shards: int
    leaders: list[str | None]
    epochs: list[int]
    renewed_seconds: float


def other_word(connection: psycopg.Connection[Any], name: str, word: str) -> str | None:
    """Return as what a name is led, if that is another word than this one."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        found: str | None = cursor.execute(
            _SQL["other_word"].text, {"name": name, "word": word}
        ).fetchone()
    return found


def refuse_another(connection: psycopg.Connection[Any], name: str, word: str) -> None:
    """Raise where a name is led as another word, and say which command shows it."""
    if other := other_word(connection, name, word):
        raise HarvestStateError(
            f"{name} is led as {other}, and is no {word}: see `harvest {other} status --name"
            f" {name}`"
        )


def names(connection: psycopg.Connection[Any], word: str) -> list[LedName]:
    """Read what is led as a word, or was."""
    with connection.cursor(row_factory=class_row(LedName)) as cursor:
        return cursor.execute(_SQL["names"].text, {"word": word}).fetchall()
