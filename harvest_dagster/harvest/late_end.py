"""When a producer must not begin another transaction: the end of its last one may come again, late.

librdkafka ends a transaction by a request, EndTxn, to the transaction's coordinator. When no answer
comes, because the connection broke or the time was up, librdkafka sends the request again, and the
commit succeeds as soon as one of them is answered. Another may still be on its way. It carries the
producer's epoch, which is the same in all transactions of a producer: librdkafka does not bump it
with each of them, as KIP-890 has it. If the request arrives while the next transaction is open,
Kafka ends that one, with a part of its records in it.

So a commit is plainly confirmed only if it succeeded at the first call, and if its producer has
never lost a connection to the coordinator. After any other commit the round ends: the next one
begins with `init_transactions`, which gives the producer a new epoch, and Kafka refuses whatever
comes late with the old one.

librdkafka says in its log alone that it lost a connection, or that a request took too long. It says
so before it sends the request again, and the log is handed over when the producer is polled: who
polls after a commit has heard all there is. What does not count:

    other connections   an EndTxn goes to the coordinator, on a connection that is for it alone
    not connected yet   a connection that is refused, or fails while it is set up, carried nothing
    closed when idle    librdkafka logs nothing of a connection that nobody used for a minute
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harvest_dagster.kafka.client_logs import LOGGER

_LOST = frozenset({"FAIL", "REQTMOUT"})
"""What librdkafka calls the lines about a connection that is gone, and a request that timed out."""
_COORDINATOR = "[thrd:TxnCoordinator]"
_SETTING_UP = re.compile(r" in state (TRY_CONNECT|CONNECT|SSL_\w+|AUTH_\w+|APIVERSION_QUERY)\b")
_AUDIBLE = {"log.connection.close": True, "log_level": 6}
"""Whoever has set less in librdkafka's log can leave it out of Python's."""
_IDLE, _IDLE_MS = "connections.max.idle.ms", 240_000
"""librdkafka leaves out a line that is like the last two for 30 s, also if it logged neither, since
Kafka had closed an idle connection, as it does after 10 minutes. If it closes idle connections
itself before, it says so in other words, and leaves out nothing."""


class Ear:
    """The logger of producers: it passes all on, and keeps what forbids another transaction."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def log(self, level: int, form: str, facility: str, client: str, line: str) -> None:
        """Take a line, as confluent-kafka hands it over."""
        LOGGER.log(level, form, facility, client, line)
        if may_come_late(facility, line):
            self.heard.append(line.removeprefix(_COORDINATOR).lstrip(": "))

    def settings(self, user: Mapping[str, object]) -> dict[str, Any]:
        """Return settings by which producers of that user log here all that must be heard."""
        idle = {} if _IDLE in user else {_IDLE: _IDLE_MS}
        return {**_AUDIBLE, **idle, "logger": self}


def may_come_late(facility: str, line: str) -> bool:
    """Return whether a request to the coordinator may have been on its way when this was logged."""
    return facility in _LOST and line.startswith(_COORDINATOR) and not _SETTING_UP.search(line)
