"""Logs of librdkafka: to Python's logging, and each thing once in a while."""

from __future__ import annotations

import logging
import re
import time

_EVERY_SECONDS = 30.0
_EXPECTED = "enable.gapless.guarantee is experimental"
"""What we set on purpose need not be said with each producer."""
_FIGURES = re.compile(r"\d+|, [^,]* suppressed")

LOGGER = logging.getLogger("harvest_dagster.kafka")


class OnceInAWhile(logging.Filter):
    """Lets a line pass that did not pass lately, figures aside.

    While no broker answers, librdkafka tells so twenty times a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passed: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is to be logged."""
        message = record.getMessage()
        if _EXPECTED in message:
            return False
        line, time_now = _FIGURES.sub("", message), time.monotonic()
        if time_now - self._passed.get(line, -_EVERY_SECONDS) < _EVERY_SECONDS:
            return False
        self._passed[line] = time_now
        return True


LOGGER.addFilter(OnceInAWhile())
