"""How often a sensor ticks, and after how long without a tick it is taken to be gone.

A sensor that is switched off is not told so, and neither is a code location that is loaded anew:
their ticks stop, no more. So what counts as silence must be longer than the time from tick to tick,
and short enough that leadership is handed over within 30 s.

    ticks come every     silence is
    5 s, as they should  15 s
    6 to 10 s            two and a half times that
    10 to 25 s           25 s, and the ticks say that they come late
    more                 25 s: this Dagster leads for a part of the time only, and its ticks say so
"""

from __future__ import annotations

from collections.abc import Callable

from harvest_dagster.clock import now
from harvest_dagster.text import ages

_SHORTEST_SILENCE, LONGEST_SILENCE = 15.0, 25.0
_TICKS = 2.5
_LATE_SECONDS, _AWAY_SECONDS = LONGEST_SILENCE / _TICKS, 120.0
"""Ticks that are further apart come late; after so long a time the sensor was off, and not late."""


class Pulse:
    """The ticks of one harvest's sensor in this process, whatever candidacy they found."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        self._now, self._ticked_at = clock, clock()
        self._apart = 0.0

    def tick(self) -> None:
        """Note a tick."""
        ticked_at = self._now()
        self._apart, self._ticked_at = ticked_at - self._ticked_at, ticked_at

    @property
    def silence(self) -> float:
        """After how many seconds without a tick the sensor is taken to be gone."""
        return min(max(_TICKS * self._apart, _SHORTEST_SILENCE), LONGEST_SILENCE)

    @property
    def is_silent(self) -> bool:
        """Whether it is taken to be gone now."""
        return self._now() - self._ticked_at > self.silence

    @property
    def trouble(self) -> str:
        """What is wrong with the ticks; nothing if they come in time."""
        if not _LATE_SECONDS < self._apart < _AWAY_SECONDS:
            return ""
        return (
            f"the last tick was {ages(self._apart)} ago, and they should come every 5 s: set"
            " `sensors: use_threads: true` in dagster.yaml, so that no other sensor holds this one"
            " up"
        )
