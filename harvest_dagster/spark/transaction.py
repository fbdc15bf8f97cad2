"""Tables and messages of Spark in one transaction.

    with transaction(spark, key="sales/2026-11-18") as write:
        write.replace(sales, "daily_sales", day="2026-11-18")
        write.stash(events, topic="sales", order_by=["at"])

Each call stages a DataFrame, which is when Spark works; the end of the block moves all of it in one
transaction of PostgreSQL. If the block raises, or the program dies, nothing was written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from harvest_dagster.errors import ConfigError
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark.clean import discard_all
from harvest_dagster.spark.commit import (
    Move,
    Request,
    Written,
    commit,
    is_repeated,
    last_written,
    nothing,
)
from harvest_dagster.spark.messages import MessageEncoder
from harvest_dagster.spark.moves import TableMoves, messages_move
from harvest_dagster.spark.options import OnRepeat, Options
from harvest_dagster.spark.plan import Encoder, arrow_schema, encoder_of
from harvest_dagster.spark.session import register
from harvest_dagster.spark.staging import Staging, connect, new_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Transaction:
    """What is written together; made by `transaction`."""

    def __init__(self, options: Options, request: Request, known: Written | None) -> None:
        self._url, self._request = options.postgres(), request
        # What the settings name they name for Spark's server too: its UI and event log then have no
        # password to show.
        self._given = {"url": options.url} if options.url else {}
        self._moves: list[Move] = []
        self._staged: list[str] = []
        self._written = known
        self._began = self._ended = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it took, from the beginning of the block to its end."""
        return self._ended - self._began

    @property
    def repeated(self) -> bool:
        """Whether its key was written before, so that nothing is written now."""
        return self._written is not None

    @property
    def written(self) -> Written:
        """What was written; only after the block."""
        if self._written is None:
            raise ConfigError("written: the transaction is not at its end; ask after the block")
        return self._written

    def append(self, rows: DataFrame, table: str) -> None:
        """Add rows to a table."""
        self._rows(rows, table, lambda moves, staging: moves.append(staging))

    def upsert(self, rows: DataFrame, table: str, *, key: Sequence[str]) -> None:
        """Add rows whose key is new, and update those that are there."""
        self._rows(rows, table, lambda moves, staging: moves.upsert(staging, key), key)

    def replace(self, rows: DataFrame, table: str, **where: Any) -> None:  # noqa: ANN401 - of any column
        """Put rows in the place of those whose columns have these values, such as a day's."""
        if not where:
            raise ConfigError(
                "replace: say which rows, as `day=...`; to replace all, TRUNCATE first"
            )
        if None in where.values():
            raise ConfigError(f"replace: {where} would replace no row, for nothing equals null")
        self._rows(rows, table, lambda moves, staging: moves.replace(staging, where), [*where])

    def stash(
        self, messages: DataFrame, *, topic: str | None = None, order_by: Sequence[str] = ()
    ) -> None:
        """Stash messages; `order_by` names columns that tell the order, at the cost of a sort."""
        if self.repeated:
            return
        staging, encoder = self._stage(
            messages, stage="messages", topic=topic, orderBy=",".join(order_by)
        )
        assert isinstance(encoder, MessageEncoder)  # noqa: S101 - as the option says
        self._moves.append(messages_move(staging, encoder))

    def _rows(
        self,
        rows: DataFrame,
        table: str,
        move: Callable[[TableMoves, Staging], Move],
        more: Sequence[str] = (),
    ) -> None:
        if self.repeated:
            return
        with connect(self._url) as connection:
            moves = TableMoves(connection, TableName.parse(table))
        moves.check([*rows.columns, *more])
        staging, _ = self._stage(rows, stage="rows", asJson=moves.as_json)
        self._moves.append(move(moves, staging))

    def _stage(self, frame: DataFrame, **more: str | None) -> tuple[Staging, Encoder]:
        """Have Spark copy a DataFrame into a staging table."""
        given = {
            **self._given,
            "outbox": str(self._request.outbox),
            "write": str(self._request.write),
            "into": new_name(self._request.write),
            **{name: value for name, value in more.items() if value},
        }
        options = Options.read(given)
        # Here, so that what is wrong is said by an error of ours, and not inside one of Spark's.
        with connect(self._url) as connection:
            encoder = encoder_of(connection, options, frame.schema)
        staging = encoder.staging(given["into"], arrow_schema(frame.schema))
        self._staged.append(staging.name)
        frame.write.format("outbox").mode("append").options(**given).save()
        return staging, encoder

    def finish(self) -> None:
        """Write what is staged."""
        if self._written is None and not self._moves:
            self._written = nothing(self._request)  # nothing that its key could stand for
        elif self._written is None:
            with connect(self._url) as connection:
                self._written = commit(connection, self._request, self._moves)
        self._ended = time.monotonic()

    def close(self) -> None:
        """Drop what is staged."""
        discard_all(self._url, self._staged)


@contextmanager
def transaction(
    spark: SparkSession,
    *,
    key: str | Sequence[str] | None = None,
    on_repeat: OnRepeat = "skip",
    launch: str | None = None,
    url: str | None = None,
    outbox: str | None = None,
) -> Iterator[Transaction]:
    """Write tables and messages together, or nothing.

    With a `key` it is written once, whoever tries again: `on_repeat` tells whether to skip what was
    written before (without running Spark), to write it again, or to raise. Of several keys, as of a
    range of partitions, all must be new, or all written before, unless it is `again`. `launch`
    names who asks for that: tried again under the same name, it is not written once more.

    Without `url` and `outbox` the settings' own are used, also by Spark's server where that is
    another machine.
    """
    if key is not None and not key:
        raise ConfigError("key: it is empty; give a text, or nothing for a write without a key")
    register(spark)
    options = Options.read(
        {name: given for name, given in (("url", url), ("outbox", outbox)) if given}
    )
    request = Request(uuid4(), key, options.outbox_table().table, on_repeat)
    if launch is not None and key is not None:
        request = replace(request, write=_write_of(launch, request))
    with connect(options.postgres()) as connection:
        known = last_written(connection, request)
    repeated = known is not None and is_repeated(known, request)
    write = Transaction(
        options, request, replace(known, repeated=True) if known and repeated else None
    )
    try:
        yield write
        write.finish()
    finally:
        write.close()


def _write_of(launch: str, request: Request) -> UUID:
    """Give whatever is tried again for one launch the same id, by which a commit knows it."""
    return uuid5(NAMESPACE_OID, "\n".join([launch, request.on_repeat, *request.keys]))
