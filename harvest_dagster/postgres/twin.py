"""Code that is written once, for callers who block and for callers who await.

It is written as a coroutine. A library's blocking call has given its result already, its
asynchronous twin's is awaited: `result_of` and `done` take either. Where all calls block, nothing
is awaited, so `run` has the whole coroutine done on the spot, on any thread, without an event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine that was run for a caller who blocks has waited")


async def result_of(given: T | Awaitable[T]) -> T:
    """Return what is there already, or what it turns out to be."""
    return await given if isinstance(given, Awaitable) else given


async def done(given: object) -> None:
    """Wait for a call of which no result is needed."""
    if isinstance(given, Awaitable):
        await given


@asynccontextmanager
async def entered(
    context: AbstractContextManager[T] | AbstractAsyncContextManager[T],
) -> AsyncIterator[T]:
    """Enter a context of either kind."""
    if isinstance(context, AbstractAsyncContextManager):
        async with context as found:
            yield found
    else:
        with context as found:
            yield found
