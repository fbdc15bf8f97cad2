"""A TCP proxy before PostgreSQL, with a port for each who goes through it; each can be disturbed.

    cut     all connections are reset, in whatever they are; with `refuse` new ones are too
    stall   bytes are taken and not passed on, either way
    delay   each piece waits before it is passed on

A statement that was on its way when its connection was cut may have been committed: only its answer
is lost.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

from tests.torture.child import Line, job, listen, say

HOST = "127.0.0.1"
CHUNK = 64 * 1024


class Link:
    """The connections of one who goes through the proxy."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._flows = asyncio.Event()
        self._ends: set[asyncio.WriteTransport] = set()
        self.heal()

    def heal(self) -> None:
        """Pass everything on, at once."""
        self._flows.set()
        self._refuses, self._delay = False, 0.0

    def disturb(self, how: str, seconds: float) -> None:
        """Begin a disturbance, which lasts until it is healed."""
        if how == "stall":
            self._flows.clear()
        elif how == "delay":
            self._delay = seconds
        else:
            self._refuses = how == "refuse"
            for end in list(self._ends):
                end.abort()

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve a client, until either side closes."""
        with suppress(OSError):
            if not self._refuses:
                theirs, to_them = await asyncio.open_connection(HOST, self._port)
                await self._join((reader, to_them), (theirs, writer))
        writer.transport.abort()

    async def _join(self, *ways: tuple[StreamReader, StreamWriter]) -> None:
        ends = {writer.transport for _, writer in ways}
        self._ends |= ends
        pumps = [asyncio.create_task(self._pump(*way)) for way in ways]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        for _, writer in ways:
            writer.close()
        self._ends -= ends

    async def _pump(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK):
                if self._delay:
                    await asyncio.sleep(self._delay)
                await self._flows.wait()
                writer.write(chunk)
                await writer.drain()


async def _main(given: Line) -> None:
    links = {name: Link(given["port"]) for name in given["links"]}
    servers = [await asyncio.start_server(link.serve, HOST, 0) for link in links.values()]
    loop = asyncio.get_running_loop()

    def hear(line: Line) -> None:
        link = links[line["link"]]
        if line["how"] == "heal":
            loop.call_soon_threadsafe(link.heal)
        else:
            loop.call_soon_threadsafe(link.disturb, line["how"], line["seconds"])

    end = asyncio.Event()

    def gone() -> None:
        loop.call_soon_threadsafe(end.set)

    listen(hear, gone)
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    say("ports", **dict(zip(links, ports, strict=True)))
    await end.wait()


if __name__ == "__main__":
    asyncio.run(_main(job()))
    sys.stdout.close()
