"""For the tests of whoever stashes: an outbox in a test's database, and what came of it.

    create_outbox(url)
    ...                                  # what is tested stashes
    assert stashed(url) == [Message("orders", "7", {"total": 12})]
    harvest_until_empty(HarvestConfig(base_kafka=..., postgres=url))

Each call connects by itself and may block on PostgreSQL, the last one on Kafka too.
"""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from harvest_dagster.config import DEFAULT_OUTBOX
from harvest_dagster.errors import HarvestStateError
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.tour import Totals
from harvest_dagster.outbox.record import Message
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.connect import connect, connected
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.statements import statements

__all__ = ["create_outbox", "harvest_until_empty", "stashed"]

_SQL = statements("harvest_dagster", "testing.sql")
_LOOK_SECONDS = 0.05
_STOP_SECONDS = 10.0


def create_outbox(url: str, outbox: str = DEFAULT_OUTBOX) -> None:
    """Create an outbox, and bring the schema `harvest` up to date; again is no harm."""
    with connected(url, "testing") as connection:
        create(connection, TableName.parse(outbox), Kind.NATIVE)


def stashed(url: str, outbox: str = DEFAULT_OUTBOX) -> list[Message]:
    """Return the messages that wait, in the order of their ids; what is not committed is not there.

    Keys, values and headers come as bytes, as a consumer has them.
    """
    with connected(url, "testing") as connection, connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_SQL["waiting"].sql(table=TableName.parse(outbox))).fetchall()
    return [_message(row) for row in rows]


def harvest_until_empty(config: HarvestConfig, *, seconds: float = 30.0) -> Totals:
    """Harvest until nothing waits, and return what was done; raise after so many seconds."""
    harvest = Harvest(config)
    harvest.start()
    try:
        _await_empty(config, harvest, seconds)
    finally:
        harvest.stop(_STOP_SECONDS)
    totals = [harvest.totals(shard) for shard in range(config.shards)]
    return sum(totals[1:], totals[0])


def _await_empty(config: HarvestConfig, harvest: Harvest, seconds: float) -> None:
    empty = _SQL["empty"].sql(table=TableName.parse(config.outbox))
    again = Retrying(
        retry=retry_if_result(lambda is_empty: not is_empty),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(_LOOK_SECONDS),
    )
    with connect(config.postgres.get_secret_value(), "testing") as connection:

        def is_empty() -> bool:
            harvest.wait(0)  # raises what ended it
            row = connection.execute(empty).fetchone()
            return bool(row and row[0])

        try:
            again(is_empty)
        except RetryError:
            troubles = "; ".join(harvest.runner.troubles) or "see `harvest status`"
            raise HarvestStateError(
                f"{config.outbox} is not empty after {seconds:g} s: {troubles}"
            ) from None


def _message(row: dict[str, Any]) -> Message:
    headers = zip(row["kafka_header_keys"], row["kafka_header_values"], strict=True)
    partition = row.get("kafka_partition")
    return Message(row["kafka_topic"], row["kafka_key"], row["kafka_value"], headers, partition)
