"""The operator's jobs of parked records and of leaders, on real servers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.ledger import lease as leases
from harvest_dagster.work.delegate import Delegate
from tests.support.place import Place
from tests.support.pressing import Press, facts, records, why
from tests.support.running import StartHarvest
from tests.support.waiting import until

pytestmark = pytest.mark.filterwarnings(  # Dagster's own, whenever a resource is inside another
    "ignore:InitResourceContext.dagster_run is deprecated:DeprecationWarning"
)
PARKED = """
INSERT INTO harvest.parked (name, shard, id, kafka_topic, kafka_key, kafka_value,
                            kafka_header_keys, kafka_header_values, reason, holds_key)
VALUES (%(name)s, 0, 11, 'orders', 'a', 'hush', '{}', '{}', 'too large', true),
       (%(name)s, 0, 12, 'orders', 'b', 'hush', '{}', '{}', 'too large', true),
       (%(name)s, 0, 13, 'images', 'b', 'hush', '{}', '{}', 'no partition 9', true)
"""


@pytest.fixture
def three(place: Place) -> None:
    """Three records that are set aside."""
    place.rows(PARKED, {"name": place.name})


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


def test_a_missing_schema_is_told(place: Place, press: Press) -> None:
    """Without the schema harvest the job to press is named."""
    place.rows("DROP SCHEMA harvest CASCADE")
    said = why(press("requeue", all=True))
    assert said.startswith('PostgreSQL: relation "harvest.lease" does not exist')
    assert said.endswith("; run shop_migrate, or shop_create_outbox first")
