"""What an asset that stashes tells."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest

from harvest_dagster.errors import ConfigError
from harvest_dagster.ledger.once import Written
from harvest_dagster.orchestration import Repeat, stash_key, stash_report
from tests.support.locations import PARTITION, RANGE, metadata, run_in, warnings

WRITTEN = Written(uuid4(), 0, "outbox", 3, 11, 1300)


@dataclass
class Write:
    """A transaction at its end."""

    written: Written
    seconds: float = 1.23456


@dataclass
class Frame:
    """Rows as Spark gives them."""

    columns: list[str]
    rows: list[dict[str, Any]]

    def take(self, num: int) -> list[dict[str, Any]]:
        """Give the first."""
        return self.rows[:num]


def test_what_was_stashed() -> None:
    """Counts, ids, duration, rows of tables, a sample, and where it went."""
    frame = Frame(["key"], [{"key": f"k{n}"} for n in range(9)])
    told = stash_report(Write(replace(WRITTEN, tables={"sales": 7})), sample=frame)
    assert (told["stashed"], told["ids"], told["seconds"]) == (3, "11 to 1,300", 1.235)
    assert told["rows in sales"] == 7
    assert told["outbox"].value == dg.AssetKey(["harvest", "outbox"])
    assert [record.data["key"] for record in told["sample"].records] == [f"k{n}" for n in range(5)]


def test_what_was_stashed_before() -> None:
    """A repetition counts nothing, and is a warning in the metadata and in the run's log."""
    repeated = replace(WRITTEN, repeated=True, known_by="a\nday")

    @dg.asset
    def sales() -> dg.MaterializeResult[None]:
        told = stash_report(Write(repeated), sample=Frame(["key"], []))
        return dg.MaterializeResult(metadata=told)

    with dg.DagsterInstance.ephemeral() as instance:
        run = dg.materialize([sales], instance=instance).run_id
        (told,), (warning,) = metadata(instance, run), warnings(instance, run)
    assert told["stashed"] == 0
    assert "sample" not in told
    assert told["repeated"] == f"warning: {warning}"
    assert r"nothing was written, for it was stashed before, last under the key a\nday" in warning


def test_what_was_written_is_no_warning() -> None:
    """A materialization that writes warns of nothing."""

    @dg.asset
    def sales() -> dg.MaterializeResult[None]:
        return dg.MaterializeResult(metadata=stash_report(Write(WRITTEN)))

    with dg.DagsterInstance.ephemeral() as instance:
        run = dg.materialize([sales], instance=instance).run_id
        (told,) = metadata(instance, run)
        assert (warnings(instance, run), "repeated" in told) == ([], False)


def keys(*, partition: str | None) -> list[Any]:
    """The keys of an asset in two runs."""
    found: list[Any] = []
    days = dg.DailyPartitionsDefinition("2026-01-01") if partition else None

    @dg.asset(partitions_def=days)
    def sales(context: dg.AssetExecutionContext) -> None:
        found.append(stash_key(context))

    for _ in range(2):
        dg.materialize([sales], partition_key=partition)
    return found


def test_a_partition_has_one_key() -> None:
    """Whichever run writes it, a partition has one key."""
    assert keys(partition="2026-01-02") == ["sales/2026-01-02", "sales/2026-01-02"]


def test_without_partitions_each_run_has_a_key() -> None:
    """Without partitions each run has a key of its own."""
    first, second = keys(partition=None)
    assert first.startswith("sales/")
    assert first != second


@pytest.mark.parametrize("end", ["2026-01-02", "2026-01-04"])
def test_a_range_of_partitions(end: str) -> None:
    """A back-fill of several partitions in one run has the key of each, as if it came alone."""
    found: list[Any] = []

    @dg.asset(partitions_def=dg.DailyPartitionsDefinition("2026-01-01"))
    def sales(context: dg.AssetExecutionContext) -> None:
        found.append(stash_key(context))

    tags = {
        "dagster/asset_partition_range_start": "2026-01-02",
        "dagster/asset_partition_range_end": end,
    }
    dg.materialize([sales], tags=tags)
    days = [f"sales/2026-01-0{day}" for day in (2, 3, 4)]
    assert found == [days[0] if end == "2026-01-02" else days]


def keys_in(location: str, tags: dict[str, str], scope: str | None = None) -> Any:
    """The keys of an asset in a run that a code location has launched."""
    found: list[Any] = []

    @dg.asset(partitions_def=dg.DailyPartitionsDefinition("2026-01-01"))
    def sales(context: dg.AssetExecutionContext) -> None:
        found.append(stash_key(context, scope=scope))
        assert Repeat().options(context, scope=scope)["key"] == found[0]

    with dg.DagsterInstance.ephemeral() as instance:
        run_in(location, sales, instance, tags)
    return found[0]


def test_each_code_location_has_keys_of_its_own() -> None:
    """A key names the code location that has launched the run, of a range each of its keys."""
    day = {PARTITION: "2026-01-02"}
    assert keys_in("north", day) == "scope=north key=sales/2026-01-02"
    assert keys_in("south", day) == "scope=south key=sales/2026-01-02"
    days = dict(zip(RANGE, ("2026-01-02", "2026-01-03"), strict=True))
    assert keys_in("north", days) == [
        "scope=north key=sales/2026-01-02",
        "scope=north key=sales/2026-01-03",
    ]


def test_a_scope_is_kept_through_a_renaming() -> None:
    """A scope that is given takes the place of the code location's name."""
    day = {PARTITION: "2026-01-02"}
    assert keys_in("south", day, scope="north") == keys_in("north", day)


def test_a_scope_without_a_code_location() -> None:
    """In a run that no code location has launched, a given scope is that of the key."""

    @dg.asset
    def sales(context: dg.AssetExecutionContext) -> None:
        key = stash_key(context, scope="shop")
        assert key == f"scope=shop key=sales/{context.run.run_id}"

    assert dg.materialize([sales]).success


@pytest.mark.parametrize("scope", ["", "a key=b"])
def test_a_scope_that_could_be_mistaken(scope: str) -> None:
    """A scope that can't be told from its key is refused."""
    with pytest.raises(ConfigError, match=r"scope: it is '.*'; give a text that is not empty"):
        keys_in("north", {PARTITION: "2026-01-02"}, scope=scope)


@dg.asset
def told(context: dg.AssetExecutionContext, config: Repeat) -> dg.MaterializeResult[None]:
    """Tells what it gives a transaction."""
    return dg.MaterializeResult(metadata=config.options(context))


def told_job() -> dg.JobDefinition:
    """Where Dagster finds it when a run is executed again."""
    job = dg.define_asset_job("told_job", [told], executor_def=dg.in_process_executor)
    return dg.Definitions([told], jobs=[job]).resolve_job_def("told_job")


def test_a_run_that_is_executed_again() -> None:
    """It is of the launch that the first run was, though `again` is in its configuration too."""
    config = {"ops": {"told": {"config": {"on_repeat": "again"}}}}
    job = dg.reconstructable(told_job)
    with dg.DagsterInstance.local_temp() as instance:
        first = dg.execute_job(job, instance, run_config=config)
        options = dg.ReexecutionOptions(first.run_id)
        second = dg.execute_job(job, instance, run_config=config, reexecution_options=options)
    found = [
        {name: value.value for name, value in told.metadata.items()}
        for run in (first, second)
        for told in run.asset_materializations_for_node("told")
    ]
    key = f"told/{first.run_id}"
    assert found == [{"key": key, "on_repeat": "again", "launch": first.run_id}] * 2
