"""What an operator's job about an outbox is made of, and how Dagster shows what any has done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import dagster as dg
import psycopg

from harvest_dagster.orchestration.resources import HarvestResource
from harvest_dagster.postgres.connect import Patience
from harvest_dagster.postgres.names import TableName
from harvest_dagster.work.room import Did, Facts, Row

Config = TypeVar("Config", bound=dg.Config)

_ROWS = 50
_UNHURRIED = Patience(connect=3, lock=10, statement=0)


@dataclass(frozen=True, slots=True)
class HarvestCall:
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
class Action(Generic[Config]):
    """An operator's job: its config, and what it does."""

    verb: str
    description: str
    config: type[Config]
    act: Callable[[HarvestCall, Config], Did]


def as_metadata(facts: Facts) -> dict[str, dg.MetadataValue | int | float | str]:
    """Return facts as Dagster has them: rows as a table, and no table of none."""
    return {
        name: fact if isinstance(fact, str | int | float) else _table(fact)
        for name, fact in facts.items()
        if isinstance(fact, str | int | float) or fact
    }


def schema(row: Row) -> dg.TableSchema:
    """Return the columns of a table by one of its rows."""
    return dg.TableSchema([dg.TableColumn(name, _TYPES[type(fact)]) for name, fact in row.items()])


def _table(rows: Sequence[Row]) -> dg.MetadataValue:
    """Show the first fifty rows, each with the same columns."""
    records = [dg.TableRecord(dict(row)) for row in rows[:_ROWS]]
    return dg.MetadataValue.table(records, schema=schema(rows[0]))


_TYPES = {str: "string", int: "int", float: "float", bool: "bool"}
