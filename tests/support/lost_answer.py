"""A proxy before PostgreSQL that loses an answer: the statement is done, and nobody hears of it."""

from __future__ import annotations

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from urllib.parse import urlsplit

from tests.support.proxies import Proxy, Way
from tests.torture.proxy import CHUNK, HOST


class LosesAnswer(Proxy):
    """The way to a database; the first who sends a text on it is cut off instead of answered."""

    def __init__(self, postgres: str, text: bytes) -> None:
        self._parts = urlsplit(postgres)
        super().__init__(self._parts.port or 5432)
        self.text = text
        self.lost = threading.Event()

    @property
    def url(self) -> str:
        """The database's address as it is on this way."""
        user, _, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{user}@{HOST}:{self.port}").geturl()

    async def _join(self, *ways: Way) -> None:
        (requests, to_server), (answers, to_client) = ways
        self._ends |= {to_server.transport, to_client.transport}
        heard = asyncio.Event()
        passed = [
            asyncio.create_task(self._ask(requests, to_server, heard)),
            asyncio.create_task(self._answer(answers, to_client, heard)),
        ]
        await asyncio.wait(passed, return_when=asyncio.FIRST_COMPLETED)
        for each in passed:
            each.cancel()
        to_server.close()

    async def _ask(
        self, requests: StreamReader, to_server: StreamWriter, heard: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while chunk := await requests.read(CHUNK):
                if self.text in chunk and not self.lost.is_set():
                    heard.set()
                to_server.write(chunk)

    async def _answer(
        self, answers: StreamReader, to_client: StreamWriter, heard: asyncio.Event
    ) -> None:
        with suppress(OSError):
            while chunk := await answers.read(CHUNK):
                if heard.is_set():
                    self.lost.set()
                    return
                to_client.write(chunk)
