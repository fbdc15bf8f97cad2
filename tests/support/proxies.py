"""Proxies of this process, each on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from tests.torture.proxy import HOST, Link

SECONDS = 10.0

Way = tuple[StreamReader, StreamWriter]


class Proxy(Link):
    """The way to a server, which listens at `port`."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.port = 0
        self._stop = asyncio.Event()

    def end(self) -> None:
        """Serve no more."""
        self._loop.call_soon_threadsafe(self._stop.set)

    async def listen(self, listening: Future[None]) -> None:
        """Serve clients until the end."""
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self.serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        listening.set_result(None)
        await self._stop.wait()
        server.close()
        await self._end_connections()

    async def _end_connections(self) -> None:
        for end in self._ends:
            end.abort()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        if serving:
            await asyncio.wait(serving, timeout=SECONDS)


AnyProxy = TypeVar("AnyProxy", bound=Proxy)


@contextmanager
def served(proxy: AnyProxy) -> Iterator[AnyProxy]:
    """Have a proxy listen for as long as the block lasts."""
    listening = Future[None]()
    thread = threading.Thread(target=lambda: asyncio.run(proxy.listen(listening)))
    thread.start()
    listening.result(SECONDS)
    try:
        yield proxy
    finally:
        proxy.end()
        thread.join(SECONDS)
