"""What a stream stashes while a program looks on, as PostgreSQL has recorded it.

    with progress("payment_feed") as write:
        query.awaitTermination()
    print(write.written)

Spark's own figures count what a query has read. That includes batches that were replayed, which
were not stashed again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from harvest_dagster.errors import ConfigError
from harvest_dagster.ledger.once import Request, Written, last_written, nothing
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.spark.staging import connect


class Progress:
    """What all batches of one run have stashed; `progress` makes it."""

    def __init__(self) -> None:
        self._began = self._ended = time.monotonic()
        self._written: Written | None = None

    @property
    def seconds(self) -> float:
        """The seconds from the beginning of the block to its end."""
        return self._ended - self._began

    @property
    def written(self) -> Written:
        """What was stashed; raise before the end of the block."""
        if self._written is None:
            raise ConfigError("written: the stream is not at its end; ask after the block")
        return self._written

    def finish(self, written: Written) -> None:
        """Note what was stashed, and when it was over."""
        self._written, self._ended = written, time.monotonic()


@contextmanager
def progress(key: str, *, url: str | None = None, outbox: str | None = None) -> Iterator[Progress]:
    """Watch what the stream of a key stashes during the block."""
    given = {name: value for name, value in (("url", url), ("outbox", outbox)) if value}
    options = SourceOptions.read({**given, "key": key})
    request = options.request()
    before = _now(options, request)
    seen = Progress()
    yield seen
    seen.finish(_since(before, _now(options, request), request))


def _now(options: SourceOptions, request: Request) -> Written | None:
    with connect(options.postgres()) as connection:
        return last_written(connection, request)


def _since(before: Written | None, now: Written | None, request: Request) -> Written:
    if now is None or (before is not None and now.write == before.write):
        return nothing(request)
    first_batch = 0 if before is None else before.batch + 1
    first_id = now.first_id
    if now.batch > first_batch:  # later batches have higher ids than those before
        first_id = 1 if before is None or before.last_id is None else before.last_id + 1
    # Under a scope the ledger counts from nothing, also after batches that a bare key was for.
    counted = before.total if before is not None and before.known_by == now.known_by else 0
    total = now.total - counted
    return replace(now, messages=total, first_id=first_id if total else None)
