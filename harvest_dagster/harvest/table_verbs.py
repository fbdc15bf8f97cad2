"""What an operator can do about the outbox's table: create it, and bring it up to date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from harvest_dagster.errors import OutboxError
from harvest_dagster.harvest.harvesting import table_of
from harvest_dagster.outbox.schema import Kind, create, mend, plan_create, plan_mend
from harvest_dagster.postgres.finding import Finding
from harvest_dagster.work.room import Call, Did, Facts, Verb


class CreateOutbox(BaseModel):
    """What table is to be made."""

    kind: Literal["native", "goharvest"] = Field(
        default="native",
        description="native: bytes, Kafka's limits alone; goharvest: its table, column for column",
    )
    dry_run: bool = Field(default=False, description="true: log the SQL, and change nothing")


class Migrate(BaseModel):
    """How far the table is to be mended."""

    to_native: bool = Field(
        default=False,
        description="turn goharvest's columns into bytes; it rewrites the table, nobody can stash"
        " meanwhile, and goharvest can't read it afterwards: stop goharvest first",
    )
    dry_run: bool = Field(default=True, description="true: log the SQL, and change nothing")


def _create(call: Call, options: CreateOutbox) -> Did:
    table, kind = table_of(call.led), Kind(options.kind)
    if options.dry_run:
        planned = plan_create(call.connection, table, kind)
        _say(call, planned.sql)
        return Did([planned.line(planned=True)], _facts(planned.sql))
    with call.connection.transaction():
        created = create(call.connection, table, kind)
    return Did([created.line()], {"created": created.is_new})


def _migrate(call: Call, options: Migrate) -> Did:
    table = table_of(call.led)
    if options.dry_run:
        mended = plan_mend(call.connection, table, native=options.to_native)
        _say(call, mended.sql)
    else:
        with call.connection.transaction():
            mended = mend(call.connection, table, native=options.to_native)
    lines = mended.lines(planned=options.dry_run)
    if mended.left:
        _refuse(call, mended.left, lines)
    return Did(lines, _facts(mended.sql))


def _refuse(call: Call, left: Sequence[Finding], done: Sequence[str]) -> None:
    """Fail because of what is left; what could be mended has been, and is said."""
    _say(call, done)
    _say(call, ["\n".join([finding.what, *finding.mend]) for finding in left])
    faults = "; ".join(finding.what for finding in left)
    raise OutboxError(f"{faults}: this takes a choice of yours; the log has SQL that may mend it")


def _say(call: Call, texts: Sequence[str]) -> None:
    for text in texts:
        call.say(text)


def _facts(sql: Sequence[str]) -> Facts:
    rows = [{"SQL": " ".join(statement.split())} for statement in sql]
    return {"statements": len(sql), **({"SQL": rows} if rows else {})}


CREATE_OUTBOX = Verb(
    "create_outbox",
    "Creates the outbox's table, and brings the schema `harvest` up to date; leaves an existing"
    " outbox table as it is.",
    CreateOutbox,
    _create,
    on_name=False,
)
MIGRATE = Verb(
    "migrate",
    "Brings the schema `harvest` up to date, and mends of the table what can be mended safely. As"
    " it stands it only tells what it would do: set `dry_run: false` to have it done.",
    Migrate,
    _migrate,
    on_name=False,
)
