"""A proxy before Kafka that holds back a request to end a transaction, and delivers it late.

A producer commits by the request EndTxn. Of the next one that comes this way, a `Late` is made:

    caught    it is held back; its producer's connection is cut, or answers no more
    paused    that producer has begun another transaction, under the same transactional id: Kafka
              has the first of its records, and the next ones wait here
    deliver   Kafka gets what was held back, on the connection that it came on, or on a new one
    go_on     the other records are passed on

If it is told to, it is also slow to pass on any request that brings records.

Brokers tell clients where they are. In what Kafka answers, the proxy's port stands in place of the
broker's, so that all connections of a client come this way.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.proxies import SECONDS, Proxy, Way, served
from tests.torture.proxy import HOST

_PRODUCE, _END_TXN = 0, 26
_PLAIN_VERSIONS = (0, 1)


class End(NamedTuple):
    """What a request to end a transaction says of its producer."""

    transactional_id: str
    epoch: int

    @classmethod
    def of(cls, request: bytes) -> End:
        """Read a request: key, version, number, client; then id, number and epoch of a producer."""
        assert _number(request, 2, 2) in _PLAIN_VERSIONS
        body = 10 + _number(request, 8, 2)
        end = body + 2 + _number(request, body, 2)
        return cls(request[body + 2 : end].decode(), _number(request, end + 8, 2))


@dataclass
class _Connection:
    """A client's connection, and what Kafka has yet to answer there."""

    client: Way
    broker: Way
    unanswered: int = 0
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    def ask(self, request: bytes) -> None:
        """Pass a request on."""
        self.unanswered += 1
        self.answered.clear()
        _send(self.broker[1], request)

    def answer(self, answer: bytes) -> None:
        """Pass an answer on."""
        self.unanswered -= 1
        if not self.unanswered:
            self.answered.set()
        _send(self.client[1], answer)


@dataclass
class Late:
    """A request that is held back; `end` says whose it is, once it is there."""

    cut: bool
    end: End | None = None
    request: bytes = b""
    broker: Way | None = None
    records: int = 0
    paused: threading.Event = field(default_factory=threading.Event)
    free: asyncio.Event = field(default_factory=asyncio.Event)

    def is_next(self, request: bytes) -> bool:
        """Return whether these are records of the transaction after the one that is ended late."""
        if self.end is None or self.free.is_set() or _number(request, 0, 2) != _PRODUCE:
            return False
        return self.end.transactional_id.encode() in request

    async def pause(self, here: _Connection) -> None:
        """Let the first records pass; when Kafka has them, keep the next ones until set free."""
        self.records += 1
        if self.records > 1:
            await here.answered.wait()
            self.paused.set()
            await self.free.wait()


class LateEnds(Proxy):
    """The way to a broker."""

    def __init__(self, port: int, slow: float) -> None:
        super().__init__(port)
        self.ends: list[End] = []
        self._broker_port = port
        self._slow = slow
        self._late: Late | None = None

    def catch(self, *, cut: bool) -> Late:
        """Hold back the next EndTxn; cut its producer's connection, or let it wait in vain."""
        self._late = Late(cut)
        return self._late

    def deliver(self, late: Late, *, kept: bool) -> int:
        """Deliver what was held back; return the error that Kafka answers with, 0 for none."""
        asked = asyncio.run_coroutine_threadsafe(self._deliver(late, kept=kept), self._loop)
        return asked.result(SECONDS)

    def go_on(self, late: Late) -> None:
        """Pass on the records that wait."""
        self._loop.call_soon_threadsafe(late.free.set)

    def end(self) -> None:
        """Serve no more, and let nothing wait."""
        if self._late:
            self.go_on(self._late)
        super().end()

    async def _join(self, *ways: Way) -> None:
        (requests, to_broker), (answers, to_client) = ways
        here = _Connection((requests, to_client), (answers, to_broker))
        self._ends |= {to_broker.transport, to_client.transport}
        passed = asyncio.create_task(self._pass_requests(here))
        answered = asyncio.create_task(self._pass_answers(here))
        await asyncio.wait((passed, answered), return_when=asyncio.FIRST_COMPLETED)
        passed.cancel()
        answered.cancel()
        if self._late is None or self._late.broker is not here.broker:
            to_broker.close()

    async def _pass_requests(self, here: _Connection) -> None:
        requests = here.client[0]
        with suppress(OSError, IncompleteReadError):
            while request := await _next(requests):
                late = self._late
                if _number(request, 0, 2) == _PRODUCE:
                    await asyncio.sleep(self._slow)
                if _number(request, 0, 2) == _END_TXN and self._is_caught(request, here):
                    if late and not late.cut:
                        await requests.read()  # until its client gives up
                    return
                if late and late.is_next(request):
                    await late.pause(here)
                here.ask(request)

    async def _pass_answers(self, here: _Connection) -> None:
        theirs, ours = (_address(port) for port in (self._broker_port, self.port))
        with suppress(OSError, IncompleteReadError):
            while answer := await _next(here.broker[0]):
                here.answer(answer.replace(theirs, ours))

    def _is_caught(self, request: bytes, here: _Connection) -> bool:
        end, late = End.of(request), self._late
        if late is None or late.end is not None:
            self.ends.append(end)
            return False
        late.request, late.broker, late.end = request, here.broker, end
        return True

    async def _deliver(self, late: Late, *, kept: bool) -> int:
        assert late.broker
        answers, to_broker = late.broker
        if not kept:
            to_broker.close()
            answers, to_broker = await asyncio.open_connection(HOST, self._broker_port)
        _send(to_broker, late.request)
        answer = await _next(answers)
        to_broker.close()
        return _number(answer, 8, 2)


def late_ends(port: int, slow: float = 0.0) -> AbstractContextManager[LateEnds]:
    """Have such a proxy before a broker; `slow` is how many seconds it keeps records."""
    return served(LateEnds(port, slow))


async def _next(reader: StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4)))


def _send(writer: StreamWriter, content: bytes) -> None:
    writer.write(len(content).to_bytes(4) + content)


def _number(content: bytes, start: int, size: int) -> int:
    return int.from_bytes(content[start : start + size])


def _address(port: int) -> bytes:
    return HOST.encode() + port.to_bytes(4)
