"""The operator's jobs about the outbox's table: create it, and bring it up to date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import dagster as dg
from pydantic import Field

from harvest_dagster.errors import OutboxError
from harvest_dagster.orchestration.action import Action, HarvestCall
from harvest_dagster.outbox.check import Finding
from harvest_dagster.outbox.schema import Kind, create, mend, plan_create, plan_mend
from harvest_dagster.work.room import Did, Facts


class CreateOutbox(dg.Config):
    """What table is to be made."""

    kind: Literal["native", "goharvest"] = Field(
        default="native",
        description="native: bytes, Kafka's limits alone; goharvest: its table, column for column",
    )
    dry_run: bool = Field(default=False, description="true: log the SQL, and change nothing")


class Migrate(dg.Config):
    """How far the table is to be mended."""

    to_native: bool = Field(
        default=False,
        description="turn goharvest's columns into bytes; it rewrites the table, nobody can stash"
        " meanwhile, and goharvest can't read it afterwards: stop goharvest first",
    )
    dry_run: bool = Field(default=True, description="true: log the SQL, and change nothing")


def _create(call: HarvestCall, config: CreateOutbox) -> Did:
    kind = Kind(config.kind)
    if config.dry_run:
        with call.looking() as connection:
            planned = plan_create(connection, call.table, kind)
        _log(call, planned.sql)
        return Did([planned.line(planned=True)], _sql(planned.sql))
    with call.changing() as connection:
        created = create(connection, call.table, kind)
    return Did([created.line()], {"created": created.is_new})


def _migrate(call: HarvestCall, config: Migrate) -> Did:
    if config.dry_run:
        with call.looking() as connection:
            mended = plan_mend(connection, call.table, native=config.to_native)
        _log(call, mended.sql)
    else:
        with call.changing() as connection:
            mended = mend(connection, call.table, native=config.to_native)
    lines = mended.lines(planned=config.dry_run)
    if mended.left:
        _refuse(call, mended.left, lines)
    return Did(lines, _sql(mended.sql))


def _refuse(call: HarvestCall, left: Sequence[Finding], done: Sequence[str]) -> None:
    """Fail because of what is left; what could be mended has been, and is logged."""
    for line in done:
        call.log.info(line)
    for finding in left:
        call.log.info("\n".join([finding.what, *finding.mend]))
    faults = "; ".join(finding.what for finding in left)
    raise OutboxError(f"{faults}: this takes a choice of yours; the log has SQL that may mend it")


def _log(call: HarvestCall, todo: Sequence[str]) -> None:
    for statement in todo:
        call.log.info(statement)


def _sql(todo: Sequence[str]) -> Facts:
    rows = [{"SQL": " ".join(statement.split())} for statement in todo]
    return {"statements": len(todo), **({"SQL": rows} if rows else {})}


CREATE_OUTBOX = Action(
    "create_outbox",
    "Creates the outbox's table, and brings the schema `harvest` up to date; leaves an existing"
    " outbox table as it is.",
    CreateOutbox,
    _create,
)
MIGRATE = Action(
    "migrate",
    "Brings the schema `harvest` up to date, and mends of the table what can be mended safely. As"
    " it stands it only tells what it would do: set `dry_run: false` to have it done.",
    Migrate,
    _migrate,
)
