"""The operator's job that stashes JSON lines: to try out, or to send what was lost elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import islice
from pathlib import Path

import dagster as dg
from pydantic import Field

from harvest_dagster.config import load_settings
from harvest_dagster.errors import HarvestError, HarvestStateError, MessageError
from harvest_dagster.orchestration.action import Action, HarvestCall
from harvest_dagster.outbox.stash_lines import bad_lines, stash_in_batches
from harvest_dagster.outbox.table import Outbox
from harvest_dagster.work.room import Did

_MOST_BAD = 20
_EXAMPLE = '{"topic": "orders", "key": "7", "value": {"total": 12.5}}'


class StashLines(dg.Config):
    """Which messages, and how many in a transaction."""

    lines: str | None = Field(
        default=None, description=f"the messages themselves, a JSON object a line: {_EXAMPLE}"
    )
    path: str | None = Field(
        default=None, description="or a file of such lines, where runs of this location can read it"
    )
    batch: int = Field(default=10_000, description="messages a transaction, 1 or more")


def _stash(call: HarvestCall, config: StashLines) -> Did:
    if (config.lines is None) == (config.path is None) or config.batch < 1:
        raise HarvestStateError(
            f"nothing was stashed: give `lines`, as {_EXAMPLE}, or the `path` of a file of such"
            " lines, one of the two; and a `batch` of 1 or more"
        )
    size = load_settings().max_message_bytes
    outbox = Outbox.named(str(call.table), max_message_bytes=size)
    _refuse_bad(call, config, outbox)
    count = _in_batches(call, config, outbox)
    said = f"stashed {count:,} messages into {call.table}"
    return Did([said], {"messages": count, "messages a transaction": config.batch})


def _refuse_bad(call: HarvestCall, config: StashLines, outbox: Outbox) -> None:
    """Look at every line before any is stashed."""
    with _opened(config) as lines, call.looking() as connection:
        found = [*islice(bad_lines(connection, lines, outbox), _MOST_BAD + 1)]
    if found:
        more = f"; and more after these {_MOST_BAD}" if len(found) > _MOST_BAD else ""
        raise MessageError(f"nothing was stashed: {'; '.join(found[:_MOST_BAD])}{more}")


def _in_batches(call: HarvestCall, config: StashLines, outbox: Outbox) -> int:
    count = 0
    with _opened(config) as lines, call.unhurried() as connection:
        try:
            for count in stash_in_batches(connection, lines, outbox, config.batch):
                call.log.debug(f"{count:,} messages are stashed")
        except BaseException:
            call.log.warning(f"{count:,} messages were stashed before it failed: they stay")
            raise
    return count


@contextmanager
def _opened(config: StashLines) -> Iterator[Iterable[str]]:
    if config.path is None:
        yield StringIO(config.lines)
        return
    try:
        file = Path(config.path).open(encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        raise HarvestError(
            f"{config.path} can't be read where this run runs: {error.strerror}; nothing was"
            " stashed"
        ) from None
    with file:
        yield file


STASH = Action(
    "stash",
    "Stashes messages that are given as JSON lines, as `harvest stash` does. Bad lines are told by"
    " their numbers, and then nothing is stashed.",
    StashLines,
    _stash,
)
