"""The operator's jobs: what `harvest lease`, `parked`, `outbox` and `stash` do, for the Launchpad.

Each is one op with a config whose defaults change nothing, or next to nothing. It says in one line
of its log, and in its output's metadata, what it did; and fails with the cause first, in one line.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import psycopg
from pydantic import BaseModel, ValidationError, create_model

from harvest_dagster.errors import HarvestError
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.orchestration.checks import LedResource
from harvest_dagster.orchestration.facts import as_metadata
from harvest_dagster.orchestration.part_names import NO_RETRY, OUTBOX_TAG, Names
from harvest_dagster.postgres.connect import Patience, connect
from harvest_dagster.postgres.refusals import explained
from harvest_dagster.text import one_line, printable
from harvest_dagster.work.room import Call, Did, Room, Verb
from harvest_dagster.work.verbs import done, verbs_of

_UNHURRIED = Patience(connect=3, lock=10, statement=0)
"""An operator can terminate what takes long; but who waits for a lock makes all wait behind him."""


def operator_jobs(names: Names, room: Room = ROOM) -> list[dg.JobDefinition]:
    """Make the operator's jobs of a harvest, or of whatever else a room leads."""
    return [_verb_job(names, room, verb) for verb in verbs_of(room)]


def op_name(names: Names, verb: str) -> str:
    """Return what the op of a job is called: no other op or job of a location may be called so."""
    return f"do_{names.job(verb)}"


def pasted(names: Names, room: Room, ids: str) -> dict[str, str]:
    """Return what to paste into the Launchpad of each job that takes records by their ids."""
    return {
        f"config of {names.job(verb.name)}": (
            f"ops: {{{op_name(names, verb.name)}: {{config: {{ids: {ids}}}}}}}"
        )
        for verb in room.verbs
        if "ids" in verb.options.model_fields
    }


def _verb_job(names: Names, room: Room, verb: Verb) -> dg.JobDefinition:
    @dg.op(
        name=op_name(names, verb.name),
        description=verb.says,
        required_resource_keys={names.key},
        config_schema=_schema(verb.options),
        out=dg.Out(dg.Nothing),
    )
    def op(context: dg.OpExecutionContext) -> None:
        with _explained(names):
            did = _act(context, getattr(context.resources, names.key), room, verb)
        for line in did.lines:
            context.log.info(printable(line))
        context.add_output_metadata({"did": " ".join(did.lines), **as_metadata(did.facts)})

    @dg.job(
        name=names.job(verb.name),
        description=verb.says,
        executor_def=dg.in_process_executor,
        tags={OUTBOX_TAG: names.key, **NO_RETRY},
        # What the Launchpad shows: all options, and none of the resources', which were set in code.
        config={"ops": {op_name(names, verb.name): {"config": verb.options().model_dump()}}},
    )
    def job() -> None:
        op()

    return job


def _act(context: dg.OpExecutionContext, resource: LedResource, room: Room, verb: Verb) -> Did:
    led, options = resource.led(), verb.options(**context.op_config)
    with connect(led.postgres_url, "operator", _UNHURRIED) as connection:
        call = Call(led, connection, f"Dagster run {context.run_id}", context.log.info)
        return done(room, verb, call, options)


def _schema(options: type[BaseModel]) -> Any:  # noqa: ANN401 - Dagster's own
    """Return the options of a verb as Dagster's Launchpad takes them."""
    fields: Any = {name: (field.annotation, field) for name, field in options.model_fields.items()}
    return create_model(options.__name__, __base__=dg.Config, **fields).to_config_schema()


@contextmanager
def _explained(names: Names) -> Iterator[None]:
    """Fail with the cause first, and without a stack of ours."""
    try:
        yield
    except HarvestError as error:
        cause = one_line(error)
    except ValidationError as error:
        cause = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors())
    except psycopg.Error as error:
        cause = f"PostgreSQL: {explained(error)}{_advice(names, error)}"
    else:
        return
    raise dg.Failure(cause, allow_retries=False) from None


def _advice(names: Names, error: psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
        return f"; run {names.job('migrate')}, or {names.job('create_outbox')} first"
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return "; somebody else holds the table for long: try again, or see pg_stat_activity"
    return ""
