"""A candidate of the bench: a harvest in a process of its own, whose clock can be moved.

With a bug planted, if the bench is to show that it would find it.
"""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

from harvest_dagster.harvest.config import HarvestConfig
from tests.support.programs.harvest import harvest
from tests.torture.child import Line, job, listen
from tests.torture.plants import plant
from tests.torture.stamps import stamp
from tests.torture.trust import journal_trust


class Clock:
    """Python's clock of this process, put forward or back."""

    def __init__(self) -> None:
        self._wall, self._offset = time.time, 0.0
        time.time = lambda: self._wall() + self._offset

    def hear(self, line: Line) -> None:
        """Put it so far forward."""
        self._offset = line["offset"]


def main() -> None:
    """Harvest until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    given = job()
    if given["plant"]:
        plant(given["plant"])
    listen(Clock().hear, lambda: os._exit(1))
    stamp()
    with Path(given["trust"]).open("a", encoding="utf-8") as journal:
        journal_trust(journal)
        harvest(HarvestConfig(**given["config"]))


if __name__ == "__main__":
    main()
