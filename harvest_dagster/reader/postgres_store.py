"""A store in PostgreSQL: positions and producers of readers, beside the rows that a user writes.

    take   puts the fences of all partitions that will be read one up, which waits for whoever just
           commits there, and reads what he has left
    move   goes on to new offsets in the user's own transaction, where every fence still holds

Whoever was fenced moves nothing, and so commits nothing. The database may be any; that of the
lease is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.rows import class_row

from harvest_dagster.errors import FencedError
from harvest_dagster.postgres.connect import connect
from harvest_dagster.postgres.dsn import connection_string
from harvest_dagster.postgres.migrations import is_installed, migrate, pending
from harvest_dagster.postgres.statements import statements
from harvest_dagster.reader.positions import Partition, Position, Taken
from harvest_dagster.reader.received import log_of, partition_of
from harvest_dagster.sequence.states import Checkpoint, Producer

_SQL = statements("harvest_dagster.reader", "store.sql")
_ROOM = "reader"


class PostgresStore:
    """Where readers keep their positions, and their users what they make of messages."""

    def __init__(self, url: str) -> None:
        """Take the URL of the database; nothing is connected to yet."""
        self._url = connection_string(url)

    def connect(self, purpose: str) -> psycopg.Connection[Any]:
        """Connect; each statement outside of `transaction()` is committed by itself."""
        connection = connect(self._url, purpose)
        connection.execute(_SQL["watched"].text)
        return connection

    def prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Make the tables of readers where they are missing."""
        if not any(each.room == _ROOM for each in pending(connection)):
            return
        with connection.transaction():
            # Where nothing of ours is yet, all of it is made, as `harvest outbox migrate` would.
            migrate(connection, _ROOM if is_installed(connection) else None)

    def positions(self, connection: psycopg.Connection[Any], reader: str) -> list[Position]:
        """Read how far a reader has come."""
        with connection.cursor(row_factory=class_row(Position)) as cursor:
            return cursor.execute(_SQL["known"].text, {"reader": reader}).fetchall()

    def take(
        self,
        connection: psycopg.Connection[Any],
        reader: str,
        new: Iterable[Position],
        mine: Sequence[Partition],
    ) -> Taken:
        """Fence whoever reads these partitions, and return where to go on; add what is new."""
        values = {"reader": reader, **_places(mine)}
        with connection.transaction(), connection.cursor(row_factory=class_row(Position)) as cursor:
            connection.execute(_SQL["lock"].text, values)
            self._put(connection, "add", reader, new)
            rows = cursor.execute(_SQL["take"].text, values).fetchall()
            producers = connection.execute(_SQL["producers"].text, values).fetchall()
        return Taken({row.place: row for row in rows}, _checkpoints(rows, producers))

    def move(
        self,
        connection: psycopg.Connection[Any],
        reader: str,
        taken: Taken,
        changes: Mapping[str, Checkpoint],
        epochs: Mapping[Partition, int],
    ) -> None:
        """Go on in the caller's transaction; raise a FencedError where another has taken over."""
        moved = {partition_of(log): changed for log, changed in changes.items()}
        places = sorted(taken.positions)
        values = {
            "reader": reader,
            **_places(places),
            "fences": [taken.positions[place].fence for place in places],
            "offsets": [moved[place].offset if place in moved else None for place in places],
            "epochs": [epochs.get(place) for place in places],
        }
        (held,) = connection.execute(_SQL["move"].text, values).fetchone() or (0,)
        if held != len(places):
            raise FencedError(
                f"another reader {reader} has taken over: nothing more may be written here"
            )
        self._keep(connection, reader, moved)

    def forget(
        self, connection: psycopg.Connection[Any], reader: str, gone: Mapping[str, list[bytes]]
    ) -> None:
        """Forget producers, in the caller's transaction."""
        rows = [(partition_of(log), producer) for log, all_ in gone.items() for producer in all_]
        if rows:
            values = {**_places([place for place, _ in rows]), "producers": [p for _, p in rows]}
            connection.execute(_SQL["forget"].text, {"reader": reader, **values})

    def reset(
        self, connection: psycopg.Connection[Any], reader: str, to: Sequence[Position]
    ) -> None:
        """Go on elsewhere, whoever reads now; spans that are open are given up."""
        with connection.transaction():
            connection.execute(_SQL["lock"].text, {"reader": reader})
            self._put(connection, "reset", reader, to)
            values = {"reader": reader, **_places([position.place for position in to])}
            connection.execute(_SQL["abandon"].text, values)

    def _put(
        self,
        connection: psycopg.Connection[Any],
        statement: str,
        reader: str,
        positions: Iterable[Position],
    ) -> None:
        rows = [*positions]
        values = {
            "reader": reader,
            **_places([row.place for row in rows]),
            "ids": [row.topic_id for row in rows],
            "offsets": [row.offset for row in rows],
        }
        if rows:
            connection.execute(_SQL[statement].text, values)

    def _keep(
        self,
        connection: psycopg.Connection[Any],
        reader: str,
        moved: Mapping[Partition, Checkpoint],
    ) -> None:
        rows = [
            (place, producer, state)
            for place, changed in moved.items()
            for producer, state in sorted(changed.producers.items())
        ]
        if rows:
            values = {
                "reader": reader,
                **_places([place for place, _, _ in rows]),
                "producers": [producer for _, producer, _ in rows],
                "acks": [state.last_ack for _, _, state in rows],
                "begins": [state.begin for _, _, state in rows],
            }
            connection.execute(_SQL["keep"].text, values)


def _places(places: Sequence[Partition]) -> dict[str, Any]:
    return {
        "topics": [topic for topic, _ in places],
        "partitions": [number for _, number in places],
    }


def _checkpoints(rows: Iterable[Position], producers: Iterable[Any]) -> dict[str, Checkpoint]:
    known: dict[Partition, dict[bytes, Producer]] = {row.place: {} for row in rows}
    for topic, partition, producer, last_ack, begin in producers:
        known[topic, partition][bytes(producer)] = Producer(int(last_ack), begin)
    return {log_of(*row.place): Checkpoint(row.offset, known[row.place]) for row in rows}
