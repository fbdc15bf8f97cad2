"""What an operator can do to a harvest: have what is in flight marked again."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel, Field

from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest import remark
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.harvest.remark import Remarked
from harvest_dagster.work.room import Call, Did, Row, Verb

_NEXT_TOUR_SECONDS = 60.0
"""A tick of the sensor, a run's start, and the hand-over of a leader that is asked to resign."""


class Remark(BaseModel):
    """What is to be marked again."""

    shard: int | None = Field(default=None, description="one shard, from 0 on; null: all of them")
    seconds: float | None = Field(
        default=None,
        description="how long to wait for the next tours; null: the drain timeout and a minute",
    )


def _remark(call: Call, options: Remark) -> Did:
    seconds = options.seconds
    if seconds is None:
        seconds = cast("Harvesting", call.led).config.limits.drain_timeout + _NEXT_TOUR_SECONDS
    found = remark.remark(call.connection, call.led.name, options.shard, seconds)
    lines = [str(one) for one in found]
    if not all(one.done for one in found):
        raise HarvestStateError(
            f"{'; '.join(lines)}: after {seconds:.0f} s; is the sensor, or `harvest reap`, at work?"
        )
    again = sum(one.remarked for one in found)
    return Did(lines, {"records": again, "shards": [_shard(one) for one in found]})


def _shard(one: Remarked) -> Row:
    before = one.before
    return {
        "shard": before.shard,
        "epoch before": before.epoch,
        "epoch now": one.epoch or before.epoch,
        "in flight": one.in_flight,
        "marked again": one.remarked,
        "how": one.how,
    }


REMARK = Verb(
    "remark",
    "For when `in flight` does not move: ends the tour that harvests, which lets go out what still"
    " can; the next tour gives up what did not, marks it again and writes that down. Where"
    " `harvest reap` leads, its leader is asked to resign, which does the same.",
    Remark,
    _remark,
)
