"""The operator's jobs about who leads: resign, and remark."""

from __future__ import annotations

import dagster as dg
from pydantic import Field

from harvest_dagster.election import resign
from harvest_dagster.election.resign import HandOver
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest import remark
from harvest_dagster.harvest.remark import Remarked
from harvest_dagster.ledger.lease import LeaseRow
from harvest_dagster.orchestration.action import Action, Call, Did, table

_NEXT_TOUR_SECONDS = 60.0
"""A tick of the sensor, a run's start, and the hand-over of a leader that is asked to resign."""


class Resign(dg.Config):
    """Whose leadership is to change hands."""

    shard: int | None = Field(
        default=None, description="one shard, from 0 on; null asks the leaders of all"
    )
    seconds: float = Field(
        default=resign.RESIGN_SECONDS, description="how long to wait for who leads then"
    )


class Remark(dg.Config):
    """What is to be marked again."""

    shard: int | None = Field(default=None, description="one shard, from 0 on; null: all of them")
    seconds: float | None = Field(
        default=None,
        description="how long to wait for the next tours; null: the drain timeout and a minute",
    )


def _resign(call: Call, config: Resign) -> Did:
    with call.looking() as connection:
        changes = resign.resign(connection, call.name, config.shard, config.seconds)
    lines = [str(change) for change in changes]
    if any(change.after is None for change in changes):
        raise HarvestStateError(
            f"{'; '.join(lines)}: after {config.seconds:.0f} s; is another candidate, or the"
            " sensor, there to take over?"
        )
    return Did(lines, {"shards": len(changes), "leaders": table([_leaders(c) for c in changes])})


def _leaders(change: HandOver) -> dict[str, str | int]:
    before, after = change.before, change.after or change.before
    return {
        "shard": before.shard,
        "led": before.holder,
        "epoch before": before.epoch,
        "leads": after.holder,
        "epoch now": after.epoch,
    }


def _remark(call: Call, config: Remark) -> Did:
    seconds = config.seconds
    if seconds is None:
        seconds = call.harvest.limits().drain_timeout + _NEXT_TOUR_SECONDS
    with call.looking() as connection:
        found = remark.remark(connection, call.name, config.shard, seconds)
    lines = [str(one) for one in found]
    if not all(one.done for one in found):
        raise HarvestStateError(
            f"{'; '.join(lines)}: after {seconds:.0f} s; is the sensor, or `harvest reap`, at work?"
        )
    again = sum(one.remarked for one in found)
    return Did(lines, {"records": again, "shards": table([_shard(one) for one in found])})


def _shard(one: Remarked) -> dict[str, str | int]:
    before: LeaseRow = one.before
    return {
        "shard": before.shard,
        "epoch before": before.epoch,
        "epoch now": one.epoch or before.epoch,
        "in flight": one.in_flight,
        "marked again": one.remarked,
        "how": one.how,
    }


RESIGN = Action(
    "resign",
    "Asks the leader to let what is in flight settle and to hand over, waits for who leads then,"
    " and tells who led and who leads now.",
    Resign,
    _resign,
)
REMARK = Action(
    "remark",
    "For when `in flight` does not move: ends the tour that harvests, which lets go out what still"
    " can; the next tour gives up what did not, marks it again and writes that down. Where"
    " `harvest reap` leads, its leader is asked to resign, which does the same.",
    Remark,
    _remark,
)
