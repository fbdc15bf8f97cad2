"""Days of one asset in several code locations, on one database."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession

from harvest_dagster.orchestration import stash_key, stash_report
from harvest_dagster.spark import transaction
from tests.support.databases import Stashed
from tests.support.locations import PARTITION, RANGE, metadata, run_in, warnings
from tests.support.spark import Rows, Write

DAY = "2026-01-02"
COUNT = 3
OLD = """INSERT INTO harvest.written (key, write, outbox, messages, total, passing)
         VALUES ('sales/{}', gen_random_uuid(), 'outbox', 3, 3, false)"""
"""As versions before 0.2 recorded a day."""

Materialize: TypeAlias = Callable[..., int]


def messages(spark: SparkSession) -> DataFrame:
    """Return the messages of a day."""
    return spark.range(COUNT).selectExpr("string(id) AS key", "string(id) AS value")


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """An instance of Dagster's of this test's own."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def materialize(spark: SparkSession, database: str, instance: dg.DagsterInstance) -> Materialize:
    """Materialize `sales` in a code location, and return how many messages were stashed.

    If nothing was, the run's log has one warning, and the metadata have it too.
    """

    def run(
        location: str,
        tags: dict[str, str] | None = None,
        scope: str | None = None,
        outbox: str = "outbox",
    ) -> int:
        @dg.asset(partitions_def=dg.DailyPartitionsDefinition("2026-01-01"))
        def sales(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
            key = stash_key(context, scope=scope)
            with transaction(spark, key=key, url=database, outbox=outbox) as write:
                write.stash(messages(spark), topic="sales")
            return dg.MaterializeResult(metadata=stash_report(write))

        done = run_in(location, sales, instance, tags or {PARTITION: DAY})
        told, *more = metadata(instance, done)  # one for each day
        warned = [f"warning: {warning}" for warning in warnings(instance, done)]
        assert warned == ([] if told["stashed"] else [told["repeated"]])
        assert all(each == told for each in more)
        return int(told["stashed"])

    return run


def test_each_location_writes_its_days(materialize: Materialize, stashed: Stashed) -> None:
    """Two code locations with an asset of one name both write a day, and each of them once."""
    for expected in (COUNT, 0):
        assert [materialize(name) for name in ("north", "south")] == [expected] * 2
    assert len(stashed()) == 2 * COUNT


def test_a_location_that_is_renamed(materialize: Materialize) -> None:
    """Under its old name as its scope, it skips what it wrote; without one it is another."""
    assert materialize("north") == COUNT
    assert materialize("south", scope="north") == 0
    assert materialize("south") == COUNT


def test_each_outbox_has_its_days(materialize: Materialize, stashed: Stashed) -> None:
    """A location writes a day into each of its outboxes once."""
    for expected in (COUNT, 0):
        for outbox in ("outbox", "goharvest_outbox"):
            assert materialize("north", outbox=outbox) == expected
    assert (len(stashed()), len(stashed("goharvest_outbox"))) == (COUNT, COUNT)


def test_what_an_older_version_wrote(materialize: Materialize, rows: Rows) -> None:
    """A day that was written before there were scopes is not written again, alone or in a range."""
    rows(OLD.format(DAY))
    for location in ("north", "south"):
        assert materialize(location) == 0
    assert materialize("north", {PARTITION: "2026-01-03"}) == COUNT
    days = dict(zip(RANGE, (DAY, "2026-01-03"), strict=True))
    assert materialize("north", days) == 0
    assert rows("SELECT count(*) FROM outbox") == [(COUNT,)]


def test_a_launch_across_an_upgrade(spark: SparkSession, database: str, stashed: Stashed) -> None:
    """What an older version wrote again for a launch is not written once more by a newer one."""
    for key, repeated in (("sales/1", False), ("scope=north key=sales/1", True)):
        options = {"key": key, "launch": "monday", "on_repeat": "again"}
        with transaction(spark, url=database, **options) as write:  # type: ignore[arg-type]
            write.stash(messages(spark), topic="sales")
        assert write.written.repeated == repeated
    assert len(stashed()) == COUNT


def test_an_option_of_a_write(spark: SparkSession, write: Write, stashed: Stashed) -> None:
    """The same keys are scoped as the option of a write of messages alone."""
    for key in ("north", "south", "north"):
        write(messages(spark), topic="t", key=f"scope={key} key=sales/1")
    assert len(stashed()) == 2 * COUNT
