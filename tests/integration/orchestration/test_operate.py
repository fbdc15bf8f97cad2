"""The operator's jobs, run as the Launchpad runs them, on real servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster import ExecuteInProcessResult

from harvest_dagster import Message
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.ledger import lease as leases
from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
)
from harvest_dagster.orchestration.operate import op_name, operator_jobs
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.work.delegate import Delegate
from tests.support.databases import Stashed
from tests.support.place import Place
from tests.support.running import StartHarvest
from tests.support.waiting import until

pytestmark = pytest.mark.filterwarnings(  # Dagster's own, whenever a resource is inside another
    "ignore:InitResourceContext.dagster_run is deprecated:DeprecationWarning"
)
NAMES = Names("shop")
PARKED = """
INSERT INTO harvest.parked (name, shard, id, kafka_topic, kafka_key, kafka_value,
                            kafka_header_keys, kafka_header_values, reason, holds_key)
VALUES (%(name)s, 0, 11, 'orders', 'a', 'hush', '{}', '{}', 'too large', true),
       (%(name)s, 0, 12, 'orders', 'b', 'hush', '{}', '{}', 'too large', true),
       (%(name)s, 0, 13, 'images', 'b', 'hush', '{}', '{}', 'no partition 9', true)
"""
LINES = """\
{"topic": "orders", "key": "a", "value": 1}

{"topic": "orders", "key": "b", "value": "a line\u2028of two"}
"""
MESSAGES = [Message("orders", "a", 1), Message("orders", "b", "a line\u2028of two")]

Press = Callable[..., ExecuteInProcessResult]


@pytest.fixture
def press(place: Place) -> Press:
    """Launch one of the jobs with a config, as an operator does."""
    kafka = {key: str(value) for key, value in place.kafka.items()}

    def run(verb: str, *, table: str = "outbox", **config: Any) -> ExecuteInProcessResult:
        (job,) = [job for job in operator_jobs(NAMES) if job.name == NAMES.job(verb)]
        harvest = HarvestResource(
            outbox=OutboxResource(postgres=place.postgres, table=table),
            kafka=KafkaResource(settings=kafka),
            neli=NeliResource(name=place.name, leader_topic=f"{place.name}.neli"),
            drain_timeout="5s",
        )
        return job.execute_in_process(
            run_config={"ops": {op_name(NAMES, verb): {"config": config}}},
            resources={NAMES.key: harvest},
            instance=dg.DagsterInstance.ephemeral(),
            raise_on_error=False,
        )

    return run


@pytest.fixture
def three(place: Place) -> None:
    """Three records that are set aside."""
    place.rows(PARKED, {"name": place.name})


def facts(done: ExecuteInProcessResult) -> dict[str, Any]:
    """The metadata of a job's output, once it has gone well."""
    assert done.success, why(done)
    (output,) = [e for e in done.all_events if e.event_type_value == "STEP_OUTPUT"]
    return {key: value.value for key, value in output.step_output_data.metadata.items()}


def records(done: ExecuteInProcessResult, name: str) -> list[dict[str, Any]]:
    """A table among that metadata."""
    return [dict(record.data) for record in facts(done)[name].records]


def why(done: ExecuteInProcessResult) -> str:
    """Why a job has failed, as its run's page begins."""
    (failed,) = [e for e in done.all_events if e.event_type_value == "STEP_FAILURE"]
    said = failed.step_failure_data.user_failure_data
    return "" if said is None else str(said.description)


def ids(place: Place) -> list[int]:
    """What is set aside."""
    found = "SELECT id FROM harvest.parked WHERE requeued_at IS NULL ORDER BY id"
    return [row[0] for row in place.rows(found)]


@pytest.mark.usefixtures("three")
def test_requeue(place: Place, press: Press) -> None:
    """Records go back by their ids; the job tells which, and the history who did it."""
    done = press("requeue", ids=[11, 12])
    assert facts(done)["did"] == "requeued 2 records into outbox: 11, 12"
    assert [record["id"] for record in records(done, "which")] == [11, 12]
    assert (ids(place), place.waiting()) == ([13], 2)
    (event, _) = place.events("requeued")
    assert event.detail["by"] == f"Dagster run {done.run_id}"


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("config", "left"),
    [({"topic": "orders"}, [13]), ({"topic": "orders", "key": "b"}, [11, 13]), ({"all": True}, [])],
)
def test_discard(place: Place, press: Press, config: dict[str, Any], left: list[int]) -> None:
    """Records go for good, as chosen."""
    assert facts(press("discard", **config))["records"] == 3 - len(left)
    assert (ids(place), place.waiting()) == (left, 0)


@pytest.mark.usefixtures("three")
def test_discard_names_what_goes(press: Press, capfd: pytest.CaptureFixture[str]) -> None:
    """Each record is in the log before it goes, without its value."""
    facts(press("discard", ids=[13]))
    said = capfd.readouterr().err
    assert "13, topic images, key b: no partition 9" in said
    assert "hush" not in said


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("verb", ["requeue", "discard"])
@pytest.mark.parametrize("config", [{}, {"ids": []}, {"all": True, "ids": [11]}])
def test_an_empty_choice_is_refused(
    place: Place, press: Press, verb: str, config: dict[str, Any]
) -> None:
    """What chooses nothing, or is unclear, is never everything: it is told what to give."""
    assert why(press(verb, **config)).startswith("say which records, nothing was done: `ids: [")
    assert ids(place) == [11, 12, 13]


@pytest.mark.usefixtures("three")
def test_an_id_that_is_not_there(place: Place, press: Press) -> None:
    """One unknown id, and nothing is done."""
    assert why(press("discard", ids=[11, 99])).startswith(f"not set aside in {place.name}: 99")
    assert ids(place) == [11, 12, 13]


def test_none_fits(press: Press) -> None:
    """Where nothing fits that is said, and it is no failure."""
    assert facts(press("requeue", topic="none"))["did"].endswith("none that is set aside fits")


def test_resign(place: Place, press: Press, start_harvest: StartHarvest) -> None:
    """The leader hands over, and the job tells who led and who leads now."""
    harvest = start_harvest(place.config()).harvest
    until(harvest.is_leader)
    done = press("resign")
    assert "leads again, epoch " in facts(done)["did"]
    (row,) = records(done, "leaders")
    assert row["epoch now"] > row["epoch before"]


def test_resign_where_nobody_leads(place: Place, press: Press) -> None:
    """Where nobody leads, or nobody has ever led, there is nobody to ask."""
    assert why(press("resign")).startswith(f"nobody has led {place.name} yet")
    lease = place.lease()
    with place.connect() as connection:
        leases.release(connection, place.name, 0, lease.holder, "revoked", {})
    assert why(press("resign", shard=0)).startswith(f"nobody leads shard 0 of {place.name}: ")


def test_resign_that_nobody_takes_over(place: Place, press: Press) -> None:
    """A leader that does not hear is a failure."""
    lease = place.lease()
    said = why(press("resign", seconds=0.5))
    assert f"nobody has taken over from {lease.holder}" in said


def test_remark_where_a_harvest_leads(
    place: Place, press: Press, start_harvest: StartHarvest
) -> None:
    """The leader of a process of its own resigns, and harvests on under a later epoch."""
    harvest = start_harvest(place.config()).harvest
    until(harvest.is_leader)
    done = press("remark")
    assert "was asked to resign" in facts(done)["did"]
    place.put(10)
    place.drained()


def test_remark_where_a_tour_runs(place: Place, press: Press) -> None:
    """A tour of Dagster's ends, and the next gives up what was left, and marks it again."""
    place.lease()
    tours = [Delegate(Harvesting(place.config()), 0, f"run-{number}") for number in range(2)]
    tours[0].begin()
    claim = "INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count)"
    stuck = [place.name, tours[0].work.lease.epoch]
    place.rows(f"{claim} VALUES (%s, 0, %s, 1000000, '{{[7000000,7000005)}}', 5)", stuck)

    def sensor() -> None:
        tours[0].wait(30)
        tours[1].begin()

    with ThreadPoolExecutor(1) as thread:
        next_tour = thread.submit(sensor)
        done = press("remark")
        next_tour.result()
    for tour in tours:
        tour.close(5)
    (row,) = records(done, "shards")
    assert (row["in flight"], row["marked again"]) == (5, 5)
    assert row["how"] == "the tour of run run-0 was asked to end"
    assert facts(done)["did"].endswith(f"5 were marked again under epoch {row['epoch now']}")


def test_remark_that_nobody_follows(place: Place, press: Press) -> None:
    """A leader that does not hear, so that no tour follows, is a failure."""
    place.lease()
    assert "nobody has gone on from epoch 1 yet" in why(press("remark", seconds=0.5))


def test_create_outbox(place: Place, press: Press) -> None:
    """A table is made once; a dry run logs its SQL, and makes nothing."""
    dry = press("create_outbox", table="new", kind="goharvest", dry_run=True)
    assert facts(dry)["did"] == "would create new (goharvest)"
    assert 'CREATE TABLE IF NOT EXISTS "public"."new"' in records(dry, "SQL")[0]["SQL"]
    assert place.rows("SELECT to_regclass('new')") == [(None,)]
    said = [facts(press("create_outbox", table="new"))["did"] for _ in range(2)]
    assert said == ["created new (native)", "new is there already, unchanged"]


def test_create_outbox_of_an_old_schema(place: Place, press: Press) -> None:
    """Where the table is there and the schema is behind, migrations are told apart from it."""
    place.rows("ALTER TABLE harvest.lease DROP COLUMN outbox")
    place.rows("DELETE FROM harvest.migration WHERE version = 7")
    dry = press("create_outbox", dry_run=True)
    assert facts(dry)["did"] == "outbox is there already; would migrate the schema harvest: 0007"
    assert "ADD COLUMN outbox" in records(dry, "SQL")[0]["SQL"]
    done = press("create_outbox")
    assert facts(done)["did"] == "outbox is there already; migrated the schema harvest: 0007"


def test_migrate(place: Place, press: Press) -> None:
    """It tells only, as it stands; then it mends, and after that there is nothing to do."""
    place.rows("ALTER TABLE outbox RESET (autovacuum_vacuum_scale_factor)")
    dry = press("migrate")
    assert facts(dry)["did"].startswith("would mend: autovacuum waits")
    assert records(dry, "SQL")[0]["SQL"].startswith('ALTER TABLE "outbox" SET')
    said = [facts(press("migrate", dry_run=False))["did"] for _ in range(2)]
    assert said[0].startswith("mended: autovacuum waits")
    assert said[1] == "outbox is up to date"


def test_migrate_to_native(place: Place, press: Press) -> None:
    """The goharvest table is turned into one of bytes, if that is asked for."""
    done = press("migrate", table="goharvest_outbox", to_native=True, dry_run=False)
    assert "turned goharvest_outbox into a table of bytes" in facts(done)["did"]
    kind = "SELECT data_type FROM information_schema.columns WHERE column_name = 'kafka_value'"
    assert place.rows(f"{kind} AND table_name = 'goharvest_outbox'") == [("bytea",)]


def test_migrate_tells_what_is_left(press: Press) -> None:
    """What takes a choice is a failure, with the fault first."""
    assert why(press("migrate", table="missing")).startswith("there is no table missing")


def test_stash_lines(press: Press, stashed: Stashed) -> None:
    """Lines that are given in the Launchpad are stashed, and counted."""
    assert facts(press("stash", lines=LINES))["did"] == "stashed 2 messages into outbox"
    assert stashed() == MESSAGES


def test_stash_file(press: Press, stashed: Stashed, tmp_path: Path) -> None:
    """So are those of a file, in as many transactions as it takes."""
    file = tmp_path / "lines.jsonl"
    wanted = [Message("t", str(n), n) for n in range(25)]
    lines = (json.dumps({"topic": "t", "key": str(n), "value": n}) for n in range(25))
    file.write_text("\n".join(lines))
    assert facts(press("stash", path=str(file), batch=10))["messages"] == 25
    assert stashed() == wanted


def test_stash_bad_lines(press: Press, stashed: Stashed) -> None:
    """Every bad line is told by its number, also for what the table takes, and none is stashed."""
    bad = '{"topic": "t", "key": "' + "x" * 101 + '", "value": 1}'
    said = why(press("stash", table="goharvest_outbox", lines=f"{LINES}no\n{LINES}{bad}\n{{}}\n"))
    assert said.startswith("nothing was stashed: line 4: not JSON")
    assert "; line 8: key: " in said
    assert said.endswith("; line 9: topic: missing")
    assert stashed("goharvest_outbox") == []


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "nothing was stashed: give `lines`"),
        ({"lines": "", "path": "x"}, "nothing was stashed: give `lines`"),
        ({"lines": "", "batch": 0}, "nothing was stashed: give `lines`"),
        ({"path": "/no/such.jsonl"}, "/no/such.jsonl can't be read where this run runs: No such"),
    ],
)
def test_stash_refusals(press: Press, config: dict[str, Any], said: str) -> None:
    """What can't be read, or is unclear, is told."""
    assert why(press("stash", **config)).startswith(said)


def test_a_missing_schema_is_told(place: Place, press: Press) -> None:
    """Without the schema harvest the job to press is named."""
    place.rows("DROP SCHEMA harvest CASCADE")
    said = why(press("requeue", all=True))
    assert said.startswith('PostgreSQL: relation "harvest.parked" does not exist')
    assert said.endswith("; run shop_migrate, or shop_create_outbox first")
