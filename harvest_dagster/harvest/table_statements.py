"""The statements of the harvest, made for one table from what the catalogue tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from harvest_dagster.errors import OutboxError
from harvest_dagster.ledger.events import NOTED
from harvest_dagster.ledger.fence import fenced
from harvest_dagster.outbox.table import CATALOGUE, Shape
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

_RECORDS = statements("harvest_dagster.harvest", "records.sql")
_CLAIMS = statements("harvest_dagster.harvest", "claims.sql")
_PARKED = statements("harvest_dagster.harvest", "parked.sql")
_FIELDS = ("kafka_topic", "kafka_key", "kafka_value", "kafka_header_keys", "kafka_header_values")


@dataclass(frozen=True, slots=True)
class Statements:
    """SQL with the table's name and columns in its places, as the client sends it."""

    head: bytes
    sweep: bytes
    gaps: bytes
    drawn: bytes
    changes: bytes
    claim: bytes
    purge: bytes
    purge_records: bytes
    park: bytes
    claimed: bytes


@dataclass(frozen=True, slots=True)
class Sharding:
    """Which of how many shards a tour harvests."""

    shard: int = 0
    shards: int = 1


def statements_for(
    connection: psycopg.Connection[Any],
    table: TableName,
    sharding: Sharding,
    *,
    mark_rows: bool,
    retain: bool,
) -> Statements:
    """Look at the table, and make its statements."""
    rows = connection.execute(CATALOGUE["columns"].text, (table.sql,)).fetchall()
    shape = Shape.read(table, rows)
    if mark_rows and "leader_id" not in shape.columns:
        raise OutboxError(
            f"{table} has no column leader_id, which `marks: rows` writes: use `marks: claims`"
        )
    columns = _columns(shape, sharding)
    kept: Composable = SQL("{}").format(SQL(_CLAIMS["keep"].text)) if retain else SQL("SELECT")
    returned = _as_bytes(shape) if retain else SQL("1")
    claim = fenced(_CLAIMS["claim_rows"], table=table) if mark_rows else fenced(_CLAIMS["claim"])
    head, sweep, gaps, claimed = (
        _RECORDS[name].sql(table=table, name=Literal(table.sql), columns=columns)
        for name in ("head", "sweep", "gaps", "claimed")
    )
    purges = {"table": table, "returned": returned, "kept": kept}
    made = {
        "head": head,
        "sweep": sweep,
        "gaps": gaps,
        "claimed": claimed,
        "drawn": SQL(_RECORDS["drawn"].text.replace("%(table)s", "{}")).format(Literal(table.sql)),
        "changes": _PARKED["changes"].sql(table=Literal(table.sql)),
        "claim": claim,
        "purge": fenced(_CLAIMS["purge"], **purges),
        "purge_records": fenced(_CLAIMS["purge_records"], **purges),
        "park": fenced(_PARKED["park"], table=table, returned=_as_bytes(shape), noted=NOTED),
    }
    return Statements(**{name: sql.as_bytes(connection) for name, sql in made.items()})


def _columns(shape: Shape, sharding: Sharding) -> Composable:
    names: list[Composable] = [Identifier(name) for name in _FIELDS]
    names.append(SQL("kafka_partition" if shape.has_partition else "NULL::integer"))
    if sharding.shards > 1:
        # Other shards' records are told by their ids alone, so that they are not taken for gaps.
        mine = _is_mine(shape, sharding)
        names = [SQL("CASE WHEN {} THEN {} END").format(mine, name) for name in names]
    return SQL(", ").join([SQL("id"), *names])


def _is_mine(shape: Shape, sharding: Sharding) -> Composed:
    key = "kafka_key" if shape.is_text("kafka_key") else "encode(kafka_key, 'hex')"
    return SQL("(abs(COALESCE(hashtext({})::bigint, id)) %% {} = {})").format(
        SQL(key), sharding.shards, sharding.shard
    )


def _as_bytes(shape: Shape) -> Composable:
    def as_bytes(name: str) -> str:
        return f"convert_to({name}, 'UTF8') AS {name}" if shape.is_text(name) else name

    # What others made may have NULL there, which our own tables don't take.
    names_of_headers = "COALESCE(kafka_header_keys, '{}') AS kafka_header_keys"
    headers = "COALESCE(kafka_header_values, '{}') AS kafka_header_values"
    if shape.text_headers:
        headers = "harvest.as_bytes(kafka_header_values) AS kafka_header_values"
    time = "create_time" if "create_time" in shape.columns else "NULL::timestamptz AS create_time"
    partition = "kafka_partition" if shape.has_partition else "NULL::integer AS kafka_partition"
    names = ["id", time, "kafka_topic", as_bytes("kafka_key"), as_bytes("kafka_value")]
    return SQL(", ").join([SQL(n) for n in [*names, names_of_headers, headers, partition]])
