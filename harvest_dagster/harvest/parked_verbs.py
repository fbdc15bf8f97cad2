"""What an operator can do about records that Kafka refused for good: requeue, and discard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from pydantic import BaseModel, Field

from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest.harvesting import table_of
from harvest_dagster.outbox import parked
from harvest_dagster.outbox.parked import Choice, Parked, as_text
from harvest_dagster.postgres.names import TableName
from harvest_dagster.text import counted, printable
from harvest_dagster.work.room import Call, Did, Row, Verb

_IDS = 20
_KEY_LENGTH = 60
_RECORDS_A_LINE = 100


class Chosen(BaseModel):
    """Which records: some of ids, topic and key, which all must fit; or all."""

    ids: list[int] = Field(
        default=[], description="as [4711, 4712]; `harvest parked list` has them"
    )
    topic: str | None = Field(default=None, description="only records for this topic")
    key: str | None = Field(default=None, description="only records with this key")
    all: bool = Field(
        default=False, description="all that is set aside; then give no ids, topic or key"
    )


def requeue(
    connection: psycopg.Connection[Any],
    table: TableName,
    name: str,
    records: Sequence[Parked],
    by: str,
) -> Did:
    """Put records back into the outbox, in the caller's transaction."""
    parked.requeue(connection, table, name, records, by)
    return _did(f"requeued {counted(len(records), 'record')} into {table}", records)


def discard(
    connection: psycopg.Connection[Any], name: str, records: Sequence[Parked], by: str
) -> Did:
    """Forget records for good, in the caller's transaction."""
    parked.discard(connection, name, records, by)
    return _did(f"discarded {counted(len(records), 'record')} of {name}", records)


def _requeue(call: Call, options: Chosen) -> Did:
    choice = _choice(call, options)
    with call.connection.transaction():
        found = parked.chosen(call.connection, choice)
        return requeue(call.connection, table_of(call.led), choice.name, found, call.by)


def _discard(call: Call, options: Chosen) -> Did:
    choice = _choice(call, options)
    with call.connection.transaction():
        found = parked.chosen(call.connection, choice)
        for line in _listed(found):
            call.say(line)
        return discard(call.connection, choice.name, found, call.by)


def _choice(call: Call, options: Chosen) -> Choice:
    choice = Choice(call.led.name, tuple(options.ids) or None, options.topic, options.key)
    if options.all == choice.narrow:
        raise HarvestStateError(
            "say which records, nothing was done: `ids: [4711]` as `harvest parked list` or the"
            " harvest's asset `parked` tells them, or `topic`, or `key`, or some of these; or"
            " `all: true`, and none of these"
        )
    return choice


def _listed(records: Sequence[Parked]) -> Iterator[str]:
    """Write each record down, many in one entry of the log, which would grow too long otherwise."""
    for first in range(0, len(records), _RECORDS_A_LINE):
        some = records[first : first + _RECORDS_A_LINE]
        told = (printable(f"{r.id}, topic {r.topic}, key {shown_key(r)}: {r.reason}") for r in some)
        yield "\n".join(["to be discarded:", *told])


def _did(what: str, records: Sequence[Parked]) -> Did:
    if not records:
        return Did([f"{what}: none that is set aside fits"], {"records": 0})
    more = ", ..." if len(records) > _IDS else ""
    ids = ", ".join(str(record.id) for record in records[:_IDS])
    rows: list[Row] = [
        {"id": r.id, "topic": r.topic, "key": shown_key(r), "tries": r.tries, "reason": r.reason}
        for r in records
    ]
    return Did([f"{what}: {ids}{more}"], {"records": len(records), "which": rows})


def shown_key(record: Parked) -> str:
    """Return the key of a record for people, and not all of a long one."""
    text = "-" if record.key is None else as_text(record.key)
    return text if len(text) <= _KEY_LENGTH else text[: _KEY_LENGTH - 1] + "…"


REQUEUE = Verb(
    "requeue",
    "Puts parked records back into the outbox, each before its key's later ones. Mend first what"
    " they were refused for, or they will be refused again.",
    Chosen,
    _requeue,
)
DISCARD = Verb(
    "discard",
    "Forgets parked records for good; their keys' later records go out without them. Each is named"
    " in the log before it goes.",
    Chosen,
    _discard,
)
