"""The operator's jobs: what `harvest lease`, `parked`, `outbox` and `stash` do, for the Launchpad.

Each is one op with a config whose defaults change nothing, or next to nothing. It says in one line
of its log, and in its output's metadata, what it did; and fails with the cause first, in one line.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import psycopg
from pydantic import ValidationError

from harvest_dagster.errors import HarvestError
from harvest_dagster.orchestration.action import Action, Call, Did
from harvest_dagster.orchestration.names import NO_RETRY, OUTBOX_TAG, Names
from harvest_dagster.orchestration.operate_leader import REMARK, RESIGN
from harvest_dagster.orchestration.operate_outbox import CREATE_OUTBOX, MIGRATE
from harvest_dagster.orchestration.operate_parked import DISCARD, REQUEUE
from harvest_dagster.orchestration.operate_pump import PUMP
from harvest_dagster.postgres.refusals import told
from harvest_dagster.text import one_line, printable

_ACTIONS: tuple[Action[Any], ...] = (
    RESIGN,
    REMARK,
    REQUEUE,
    DISCARD,
    CREATE_OUTBOX,
    MIGRATE,
    PUMP,
)


def operator_jobs(names: Names) -> list[dg.JobDefinition]:
    """Make the operator's jobs of one harvest."""
    return [_job(names, action) for action in _ACTIONS]


def op_name(names: Names, verb: str) -> str:
    """Tell what the op of a job is called: no other op or job of a location may be called so."""
    return f"do_{names.job(verb)}"


def _job(names: Names, action: Action[Any]) -> dg.JobDefinition:
    @dg.op(
        name=op_name(names, action.verb),
        description=action.description,
        required_resource_keys={names.key},
        config_schema=action.config.to_config_schema(),
        out=dg.Out(dg.Nothing),
    )
    def act(context: dg.OpExecutionContext) -> None:
        call = Call(
            getattr(context.resources, names.key), context.log, f"Dagster run {context.run_id}"
        )
        with _explained(names):
            did = action.act(call, action.config(**context.op_config))
        _tell(context, did)

    @dg.job(
        name=names.job(action.verb),
        description=action.description,
        executor_def=dg.in_process_executor,
        tags={OUTBOX_TAG: names.key, **NO_RETRY},
    )
    def job() -> None:
        act()

    return job


def _tell(context: dg.OpExecutionContext, did: Did) -> None:
    for line in did.lines:
        context.log.info(printable(line))
    context.add_output_metadata({"did": " ".join(did.lines), **did.metadata})


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
        cause = f"PostgreSQL: {told(error)}{_advice(names, error)}"
    else:
        return
    raise dg.Failure(cause, allow_retries=False) from None


def _advice(names: Names, error: psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
        return f"; run {names.job('migrate')}, or {names.job('create_outbox')} first"
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return "; somebody else holds the table for long: try again, or see pg_stat_activity"
    return ""
