"""Tables and messages of Spark in one transaction.

    with transaction(spark, key="sales/2026-11-18") as write:
        write.replace(sales, "daily_sales", day="2026-11-18")
        write.stash(events, topic="sales", order_by=["at"])

Each call has Spark copy a DataFrame into a staging table. The end of the block moves all of it in
one transaction of PostgreSQL. If the block raises, or the program dies, nothing is written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from harvest_dagster.errors import ConfigError
from harvest_dagster.ledger.once import OnRepeat, Request, Written, already_written, nothing
from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark.clean import discard_all
from harvest_dagster.spark.commit import Move, commit
from harvest_dagster.spark.messages import MessageEncoder
from harvest_dagster.spark.moves import TableMoves, messages_move
from harvest_dagster.spark.session import register
from harvest_dagster.spark.source_options import SourceOptions
from harvest_dagster.spark.staging import Staging, connect, new_name
from harvest_dagster.spark.write_plan import Encoder, arrow_schema, encoder_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Transaction:
    """What is written together; `transaction` makes it."""

    def __init__(self, options: SourceOptions, request: Request, known: Written | None) -> None:
        self._url, self._request = options.postgres(), request
        # Spark shows options in its UI and event log. A URL that the settings have is no option:
        # Spark's server reads it from its own settings, and no password is shown.
        self._given = {"url": options.url} if options.url else {}
        self._moves: list[Move] = []
        self._staged: list[str] = []
        self._written = known
        self._began = self._ended = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds from the beginning of the block to its end."""
        return self._ended - self._began

    @property
    def repeated(self) -> bool:
        """Whether its key was written before, so that nothing is written now."""
        return self._written is not None

    @property
    def written(self) -> Written:
        """What was written; raise before the end of the block."""
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
        """Put rows in the place of those whose columns have these values, such as a day."""
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
        """Stash messages; `order_by` names the columns by which they are sorted before."""
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
        """Have Spark copy a DataFrame into a staging table; return the table and its encoder."""
        given = {
            **self._given,
            "outbox": str(self._request.outbox),
            "write": str(self._request.write),
            "into": new_name(self._request.write),
            **{name: value for name, value in more.items() if value},
        }
        options = SourceOptions.read(given)
        # Here too, so that what is wrong raises our error, and not one of Spark's around it.
        with connect(self._url) as connection:
            encoder = encoder_of(connection, options, frame.schema)
        staging = encoder.staging(given["into"], arrow_schema(frame.schema))
        self._staged.append(staging.name)
        frame.write.format("outbox").mode("append").options(**given).save()
        return staging, encoder

    def finish(self) -> None:
        """Write what was staged."""
        if self._written is None and not self._moves:
            self._written = nothing(self._request)  # an empty block does not use up its key
        elif self._written is None:
            with connect(self._url) as connection:
                self._written = commit(connection, self._request, self._moves)
        self._ended = time.monotonic()

    def close(self) -> None:
        """Drop what was staged."""
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

    With a `key` it is written once, whoever tries again: `on_repeat` says whether to skip what was
    written before (without running Spark), to write it again, or to raise. Give several keys for a
    range of partitions: unless `on_repeat` is `again`, all of them must be new, or all written
    before. `launch` names who asks to write again: if the same launch is tried again, nothing is
    written once more.

    Without `url` and `outbox` the settings are used. If Spark's server is another machine, it uses
    its own settings.
    """
    if key is not None and not key:
        raise ConfigError("key: it is empty; give a text, or nothing for a write without a key")
    register(spark)
    options = SourceOptions.read(
        {name: given for name, given in (("url", url), ("outbox", outbox)) if given}
    )
    request = Request(uuid4(), key, options.outbox_table().table, on_repeat)
    if launch is not None and key is not None:
        request = replace(request, write=_write_of(launch, request))
    with connect(options.postgres()) as connection:
        write = Transaction(options, request, already_written(connection, request))
    try:
        yield write
        write.finish()
    finally:
        write.close()


def _write_of(launch: str, request: Request) -> UUID:
    """Return the id of a launch's write, which is the same however often the launch is tried.

    It is made of the bare keys, so that it is also the same if an older version tried first.
    """
    return uuid5(NAMESPACE_OID, "\n".join([launch, request.on_repeat, *request.bare_keys]))
