"""Somebody who stashes all the time."""

from __future__ import annotations

import threading

from tests.support.place import Place
from tests.support.waiting import until


class Load:
    """Stashes in one transaction after another, on a thread of its own, until stopped."""

    def __init__(self, place: Place, count: int = 20, pause: float = 0.01) -> None:
        self._place, self._count, self._pause = place, count, pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Stash no more."""
        self._stop.set()
        self._thread.join()

    def goes_on(self, messages: int) -> None:
        """Wait until so many more messages are stashed."""
        goal = len(self._place.stashed) + messages
        until(lambda: len(self._place.stashed) >= goal, what=f"{messages} more are stashed")

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            self._place.put(self._count)
