from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.postgres.twin import done, entered, result_of, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class Call:
    """A library's call, and its twin that is awaited; both leave word that they are done."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def call(self, word: str) -> str:
        """Do it at once."""
        self.words.append(word)
        return word

    async def acall(self, word: str) -> str:
        """Do it when it is awaited."""
        await asyncio.sleep(0)
        return self.call(word)

    @contextmanager
    def context(self) -> Iterator[str]:
        """Leave word of the end."""
        try:
            yield "entered"
        finally:
            self.call("left")

    @asynccontextmanager
    async def acontext(self) -> AsyncIterator[str]:
        """Leave word of the end, and wait for that."""
        try:
            yield "entered"
        finally:
            await self.acall("left")


async def both(call: Call, *, awaited: bool) -> str:
    """Written once, for callers who block and for callers who await."""
    async with entered(call.acontext() if awaited else call.context()) as word:
        await done(call.acall(word) if awaited else call.call(word))
        return await result_of(call.acall("result") if awaited else call.call("result"))


def test_blocking() -> None:
    """Where all calls block, the coroutine is done when `run` returns, without an event loop."""
    call = Call()
    assert run(both(call, awaited=False)) == "result"
    assert call.words == ["entered", "result", "left"]


async def test_blocking_within_a_loop() -> None:
    """It may be run where an event loop runs, which is held up by it as by any call."""
    assert run(both(Call(), awaited=False)) == "result"


async def test_awaiting() -> None:
    """Where calls are awaited, the same coroutine does the same."""
    call = Call()
    assert await both(call, awaited=True) == "result"
    assert call.words == ["entered", "result", "left"]


def test_error() -> None:
    """An error comes through as it is."""
    with pytest.raises(ZeroDivisionError):
        run(_failing())


def test_what_waits_cannot_be_run() -> None:
    """A coroutine that waits is refused, and ended in good order."""
    call = Call()
    with pytest.raises(RuntimeError, match="has waited"):
        run(_waiting(call))
    assert call.words == ["left"]


async def _failing() -> float:
    return 1 / 0


async def _waiting(call: Call) -> None:
    async with entered(call.context()):
        await asyncio.sleep(0)
