"""What an operator can do to whatever is led."""

from __future__ import annotations

from typing import Any

import psycopg
from pydantic import BaseModel, Field

from harvest_dagster.election import resign
from harvest_dagster.election.resign import HandOver
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.ledger.words import refuse_another
from harvest_dagster.work.room import Call, Did, Room, Row, Verb


class Resign(BaseModel):
    """Whose leadership is to change hands."""

    shard: int | None = Field(
        default=None, description="one shard, from 0 on; null asks the leaders of all"
    )
    seconds: float = Field(
        default=resign.RESIGN_SECONDS, description="how long to wait for who leads then"
    )


def resigned(connection: psycopg.Connection[Any], name: str, options: Resign) -> Did:
    """Have leaders hand over; raise a HarvestStateError where nobody has taken over in time."""
    changes = resign.resign(connection, name, options.shard, options.seconds)
    lines = [str(change) for change in changes]
    if any(change.after is None for change in changes):
        raise HarvestStateError(
            f"{'; '.join(lines)}: after {options.seconds:.0f} s; is another candidate, or the"
            " sensor, there to take over?"
        )
    return Did(lines, {"shards": len(changes), "leaders": [_leaders(c) for c in changes]})


def _leaders(change: HandOver) -> Row:
    before, after = change.before, change.after or change.before
    return {
        "shard": before.shard,
        "led": before.holder,
        "epoch before": before.epoch,
        "leads": after.holder,
        "epoch now": after.epoch,
    }


RESIGN = Verb(
    "resign",
    "Asks the leader to let what is in flight settle and to hand over, waits for who leads then,"
    " and tells who led and who leads now.",
    Resign,
    lambda call, options: resigned(call.connection, call.led.name, options),
)


def done(room: Room, verb: Verb, call: Call, options: BaseModel) -> Did:
    """Do what an operator asks for; raise where the name is led as another word than the room's."""
    if verb.on_name:
        refuse_another(call.connection, call.led.name, room.word)
    return verb.act(call, options)


def verbs_of(room: Room) -> tuple[Verb, ...]:
    """Return the verbs of what a room leads: to resign, and the room's own."""
    return (RESIGN, *room.verbs)
