"""Many messages as a caller gives them: checked, and never more of them in memory than needed."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import TypeAlias

from harvest_dagster.errors import MessageError
from harvest_dagster.outbox.record import Message, shown
from harvest_dagster.text import kind_of

Stream: TypeAlias = "Iterator[Message] | AsyncIterator[Message]"

BATCH = 1000
"""How many go into the database at a time where they don't go by COPY."""


def checked(messages: Iterable[Message]) -> Iterator[Message]:
    """Pass messages on, and refuse what is none."""
    for place, message in enumerate(messages, 1):
        yield _check(message, place)


async def achecked(
    messages: Iterable[Message] | AsyncIterable[Message],
) -> AsyncIterator[Message]:
    """Pass them on likewise, also from an asynchronous iterable."""
    if not isinstance(messages, AsyncIterable):
        for message in checked(messages):
            yield message
        return
    place = 0
    async for message in messages:
        place += 1
        yield _check(message, place)


async def taken(messages: Stream, count: int) -> list[Message]:
    """Take the next messages, at most so many; return none where there are no more."""
    if isinstance(messages, Iterator):
        return list(islice(messages, count))
    batch: list[Message] = []
    while len(batch) < count and (message := await anext(messages, None)) is not None:
        batch.append(message)
    return batch


def _check(message: Message, place: int) -> Message:
    if not isinstance(message, Message):
        raise MessageError(
            f"messages: number {place}, {shown(message)}, is {kind_of(message)};"
            " give Message(topic, key, value)"
        )
    return message
