"""The outbox's veto: a table is led under one name, and by one number of shards, at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from harvest_dagster.errors import RivalError
from harvest_dagster.ledger.lease import Lease
from harvest_dagster.postgres.statements import statements

_SQL = statements("harvest_dagster.outbox", "veto.sql")


@dataclass(frozen=True, slots=True)
class OutboxVeto:
    """What is to be led: a table, by its quoted name, as so many shards under a name."""

    name: str
    table: str
    shards: int

    def refuse(self, connection: psycopg.Connection[Any]) -> None:
        """Raise a RivalError where another name leads the table, or another number of shards."""
        values = {"name": self.name, "table": self.table, "shards": self.shards}
        if found := connection.execute(_SQL["rival"].text, values).fetchone():
            other, whose = found
            raise RivalError(
                f"{whose} leads the same table as {other}, so each message would be published"
                " twice: stop one of the two, or give both the same name"
            )
        if found := connection.execute(_SQL["other_number"].text, values).fetchone():
            shard, shards = found
            raise RivalError(
                f"shard {shard} of {shards} is still led, or has messages in flight, which"
                f" {self.shards} shards would publish again: run with `shards: {shards}` until"
                " `harvest status` shows nothing in flight, stop that, and then change the number"
            )

    def sign(self, connection: psycopg.Connection[Any], lease: Lease) -> None:
        """Write the table and the number of shards beside the lease."""
        values = {"table": self.table, "shards": self.shards, "name": lease.name}
        connection.execute(
            _SQL["sign"].text, {**values, "shard": lease.shard, "holder": lease.holder}
        )
