"""A reader to embed in any program: candidate and readings in one process.

    reader = Reader("totals", topics=["orders"], store=PostgresStore(url), apply=apply)
    reader.start()
    reader.wait()

Threads: the runner's (see `work.runner`), whose works are readings (see `reading`); `apply` is
called on theirs, one for each shard that this process leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harvest_dagster.config import load_settings
from harvest_dagster.election.candidate import State
from harvest_dagster.reader.postgres_store import PostgresStore
from harvest_dagster.reader.read_batch import Apply
from harvest_dagster.reader.reader_config import ReaderConfig
from harvest_dagster.reader.readership import FIGURES, Readership
from harvest_dagster.reader.room import ROOM
from harvest_dagster.work.runner import Runner

_STOP_SECONDS = 10.0


class Reader:
    """Stands for election, and reads what it is elected for: each message once into its store."""

    def __init__(
        self,
        name: str,
        *,
        topics: Sequence[str],
        store: PostgresStore,
        apply: Apply,
        **settings: Any,  # noqa: ANN401 - each is validated by its field
    ) -> None:
        """Take the fields of a ReaderConfig; `kafka` and `postgres` are found where not given."""
        found = load_settings()
        settings.setdefault("kafka", found.kafka)
        if "postgres" not in settings:
            settings["postgres"] = found.postgres_url()
        self.config = ReaderConfig(name=name, topics=tuple(topics), **settings)
        self.runner = Runner(ROOM, Readership(self.config, store, apply))

    def start(self) -> None:
        """Begin to stand for election; whether the servers can be reached yet does not matter."""
        self.runner.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the reader has ended, and raise what ended it; return whether it has."""
        return self.runner.wait(timeout)

    def stop(self, timeout: float | None = _STOP_SECONDS) -> None:
        """Let the batch under way be committed, hand leadership over, and end."""
        self.runner.stop(timeout)

    @property
    def state(self) -> State:
        """Where in its life the reader is."""
        return self.runner.state

    @property
    def figures(self) -> dict[str, int]:
        """What this process has done, over all its shards."""
        each = [self.runner.figures(shard) for shard in range(self.config.shards)]
        return {figure.name: sum(one[figure.name] for one in each) for figure in FIGURES}
