"""What an operator can stash: JSON lines, to try out, or to send what was lost elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, Field

from harvest_dagster.clock import Deadline
from harvest_dagster.config import load_settings
from harvest_dagster.errors import HarvestError, HarvestStateError, MessageError
from harvest_dagster.harvest.harvesting import table_of
from harvest_dagster.outbox.stash_lines import bad_lines, stash_in_batches
from harvest_dagster.outbox.table import Outbox
from harvest_dagster.text import counted
from harvest_dagster.work.room import Call, Did, Verb

_MOST_BAD = 20
_SAY_SECONDS = 10.0
_EXAMPLE = '{"topic": "orders", "key": "7", "value": {"total": 12.5}}'


class StashLines(BaseModel):
    """Which messages, and how many in a transaction."""

    lines: str | None = Field(
        default=None, description=f"the messages themselves, a JSON object a line: {_EXAMPLE}"
    )
    path: str | None = Field(
        default=None, description="or a file of such lines, where runs of this location can read it"
    )
    batch: int = Field(default=10_000, description="messages a transaction, 1 or more")


def _stash(call: Call, options: StashLines) -> Did:
    if (options.lines is None) == (options.path is None) or options.batch < 1:
        raise HarvestStateError(
            f"nothing was stashed: give `lines`, as {_EXAMPLE}, or the `path` of a file of such"
            " lines, one of the two; and a `batch` of 1 or more"
        )
    size = load_settings().max_message_bytes
    outbox = Outbox.named(str(table_of(call.led)), max_message_bytes=size)
    _refuse_bad(call, options, outbox)
    count = _in_batches(call, options, outbox)
    said = f"stashed {counted(count, 'message')} into {outbox.table}"
    return Did([said], {"messages": count, "messages a transaction": options.batch})


def _refuse_bad(call: Call, options: StashLines, outbox: Outbox) -> None:
    """Look at every line before any is stashed."""
    with _opened(options) as lines:
        found = [*islice(bad_lines(call.connection, lines, outbox), _MOST_BAD + 1)]
    if found:
        more = f"; and more after these {_MOST_BAD}" if len(found) > _MOST_BAD else ""
        raise MessageError(f"nothing was stashed: {'; '.join(found[:_MOST_BAD])}{more}")


def _in_batches(call: Call, options: StashLines, outbox: Outbox) -> int:
    count, silent = 0, Deadline(_SAY_SECONDS)
    with _opened(options) as lines:
        try:
            for count in stash_in_batches(call.connection, lines, outbox, options.batch):
                if silent.over:
                    call.say(f"{counted(count, 'message')} stashed so far")
                    silent = Deadline(_SAY_SECONDS)
        except BaseException:
            call.say(f"{counted(count, 'message')} stashed before it failed: what is stashed stays")
            raise
    return count


@contextmanager
def _opened(options: StashLines) -> Iterator[Iterable[str]]:
    if options.path is None:
        yield StringIO(options.lines)
        return
    try:
        file = Path(options.path).open(encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        raise HarvestError(
            f"{options.path} can't be read where this run runs: {error.strerror}; nothing was"
            " stashed"
        ) from None
    with file:
        yield file


STASH = Verb(
    "stash",
    "Stashes messages that are given as JSON lines, as `harvest stash` does. Bad lines are told by"
    " their numbers, and then nothing is stashed.",
    StashLines,
    _stash,
    on_name=False,
)
