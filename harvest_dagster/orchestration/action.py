"""What an operator's job is made of, and what its parts share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import dagster as dg
import psycopg

from harvest_dagster.orchestration.resources import HarvestResource
from harvest_dagster.postgres.connect import Patience
from harvest_dagster.postgres.names import TableName

Config = TypeVar("Config", bound=dg.Config)
Row: TypeAlias = Mapping[str, str | int | float | bool]

_ROWS = 50
_UNHURRIED = Patience(connect=3, lock=10, statement=0)


@dataclass(frozen=True, slots=True)
class Call:
    """One run of an operator's job: on which harvest, where it logs, and who it is."""

    harvest: HarvestResource
    log: dg.DagsterLogManager
    by: str

    @property
    def name(self) -> str:
        """What the harvest is called; it takes no Kafka to know."""
        return self.harvest.harvest_name

    @property
    def table(self) -> TableName:
        """The outbox's table."""
        return self.harvest.outbox.table_name()

    @contextmanager
    def looking(self) -> Iterator[psycopg.Connection[Any]]:
        """Connect without transactions."""
        with self.harvest.outbox.connection("operator") as connection:
            yield connection

    @contextmanager
    def unhurried(self) -> Iterator[psycopg.Connection[Any]]:
        """Connect likewise, for what may take its time: an operator can terminate the run.

        It does not wait for a lock for long, for everybody who stashes would wait behind it.
        """
        with self.harvest.outbox.connection("operator", _UNHURRIED) as connection:
            yield connection

    @contextmanager
    def changing(self) -> Iterator[psycopg.Connection[Any]]:
        """Connect likewise, for one transaction: all or nothing."""
        with self.unhurried() as connection, connection.transaction():
            yield connection


@dataclass(frozen=True, slots=True)
class Did:
    """What a job did: lines for its log, and metadata for its output."""

    lines: Sequence[str]
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Action(Generic[Config]):
    """An operator's job: its config, and what it does."""

    verb: str
    description: str
    config: type[Config]
    act: Callable[[Call, Config], Did]


def table(rows: Sequence[Row]) -> dg.MetadataValue:
    """Show rows, the first fifty of them, each with the same columns."""
    columns = [dg.TableColumn(name, _TYPES[type(value)]) for name, value in rows[0].items()]
    records = [dg.TableRecord(dict(row)) for row in rows[:_ROWS]]
    return dg.MetadataValue.table(records, schema=dg.TableSchema(columns=columns))


_TYPES = {str: "string", int: "int", float: "float", bool: "bool"}
