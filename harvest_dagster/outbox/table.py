"""What the catalogue tells of an outbox: ours, goharvest's, or something between.

Nothing asks which of the two a table *is*; each column is taken as it is found. So one code path
serves both, and a table half-way between them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harvest_dagster.config import DEFAULT_OUTBOX, KAFKA_MESSAGE_BYTES
from harvest_dagster.errors import OutboxError
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

CATALOGUE = statements("harvest_dagster.outbox", "catalogue.sql")
_NEEDED = ("kafka_topic", "kafka_key", "kafka_value", "kafka_header_keys", "kafka_header_values")


@dataclass(frozen=True, slots=True)
class Outbox:
    """An outbox by its table's name, and the size of message that its topics take."""

    table: TableName
    max_message_bytes: int = KAFKA_MESSAGE_BYTES

    @classmethod
    @lru_cache(maxsize=64)
    def named(
        cls, name: str = DEFAULT_OUTBOX, *, max_message_bytes: int = KAFKA_MESSAGE_BYTES
    ) -> Outbox:
        """Make one from a name as SQL would write it."""
        return cls(TableName.parse(name), max_message_bytes)


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the catalogue has it."""

    name: str
    type: str
    characters: int | None
    required: bool
    filled: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of an outbox, as far as a message's way into it depends on them."""

    columns: dict[str, Column]

    @classmethod
    def read(cls, table: TableName, rows: Iterable[Sequence[Any]]) -> Shape:
        """Take the rows of the statement `columns`."""
        columns = {row[0]: Column(*row) for row in rows}
        if not columns:
            raise OutboxError(
                f"there is no table {table}: make it with `harvest outbox create --outbox {table}`,"
                " or mend the search path"
            )
        missing = [name for name in _NEEDED if name not in columns]
        if missing:
            raise OutboxError(
                f"{table} is no outbox, it lacks {', '.join(missing)}: see `harvest outbox check"
                f" --outbox {table}`"
            )
        return cls(columns)

    def is_text(self, name: str) -> bool:
        """Whether a column holds text (goharvest's way) and not bytes."""
        return not self.columns[name].type.startswith("bytea")

    @property
    def text_headers(self) -> bool:
        """Whether header values are text."""
        return self.is_text("kafka_header_values")

    @property
    def has_partition(self) -> bool:
        """Whether a message may name its partition."""
        return "kafka_partition" in self.columns

    @property
    def wants_time(self) -> bool:
        """Whether create_time must be given, because nothing fills it."""
        time = self.columns.get("create_time")
        return time is not None and not time.filled
