from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster import Message, stash
from harvest_dagster.ledger import lease as leases
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.reaping import Reap
    from tests.support.topics import MakeTopic

LEASE = """
INSERT INTO harvest.lease VALUES ('outbox', 0, 7, gen_random_uuid(), 'host:1:a', now(), now(),
                                  now() + interval '1 hour')
"""
CLAIMS = """
INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count)
VALUES ('outbox', 0, 7, 1, '{[1,3)}', 2), ('outbox', 0, 7, 2, '{[3,4)}', 1),
       ('other', 0, 7, 3, '{[5,6)}', 1)
"""
PARKED = """
INSERT INTO harvest.parked (name, shard, id, kafka_topic, kafka_key, kafka_header_keys,
                            kafka_header_values, reason, holds_key, requeued_at)
VALUES ('outbox', 0, 4, 't', 'a', '{}', '{}', 'too large', true, NULL),
       ('outbox', 0, 5, 't', NULL, '{}', '{}', 'too large', false, NULL),
       ('outbox', 0, 6, 't', 'b', '{}', '{}', 'no such partition', true, NULL),
       ('outbox', 0, 7, 't', 'c', '{}', '{}', 'too large', true, now())
"""
HELD: list[tuple[str, dict[str, Any]]] = [
    ("held", {"topic": "of a leader before", "reason": "no such topic"}),
    ("tour_started", {}),
    ("held", {"topic": "a", "reason": "unreachable"}),
    ("held", {"topic": "b", "reason": "no such topic"}),
    ("released", {"topics": ["a", "b"]}),
    ("held", {"topic": "a", "reason": "no such topic"}),
    ("held", {"topic": "c", "reason": "not authorised to write"}),
]


def filled(connection: psycopg.Connection[Any]) -> None:
    """A harvest in the middle of its work."""
    stash(connection, [Message("t", "a", "x")] * 3)
    for statement in (LEASE, CLAIMS, PARKED):
        connection.execute(statement)
    connection.execute("INSERT INTO harvest.event (name, shard, kind) VALUES ('outbox', 0, 'held')")
    connection.commit()


def test_nothing_yet(harvest: Harvest) -> None:
    """Of an outbox that nobody has harvested yet all is told that there is."""
    shown = harvest("status")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert {"leader     nobody has led yet", "backlog    0 records"} <= set(lines)
    assert lines[-1] == "nothing has happened yet"


def test_for_people(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Leases, backlog, what is in flight, what is set aside, and what happened, as a table."""
    filled(connection)
    lines = harvest("status").stdout.splitlines()
    assert lines[2].startswith("shard 0    epoch 7, good for 3,")
    assert lines[2].endswith(" s, host:1:a")
    assert lines[3].startswith("backlog    3 records, the oldest ")
    assert lines[4].startswith("in flight  3 records in 2 batches, the oldest ")
    assert lines[5] == "parked     3 records, 2 keys held"
    assert lines[6:8] == ["           2: too large", "           1: no such partition"]
    assert lines[-1].split()[2] == "held"


def test_as_json(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """The same as JSON, with every figure, and no secret."""
    filled(connection)
    shown = harvest("status", "--json")
    told = json.loads(shown.stdout)
    assert (told["name"], told["outbox"]) == ("outbox", "outbox")
    [lease] = told["leases"]
    assert (lease["holder"], lease["epoch"], lease["expired"]) == ("host:1:a", 7, False)
    assert 3500 < lease["expires_in_seconds"] <= 3600
    assert (told["backlog"]["records"], told["backlog"]["exact"]) == (3, True)
    assert (told["in_flight"]["batches"], told["in_flight"]["records"]) == (2, 3)
    assert told["in_flight"]["oldest_seconds"] > 0
    assert told["parked"] == {
        "records": 3,
        "held_keys": 2,
        "reasons": {"too large": 2, "no such partition": 1},
        "exact": True,
    }
    assert [event["kind"] for event in told["events"]] == ["held"]
    assert connection.info.password not in shown.stdout


def test_last_events(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """The last five events are shown, the newest first."""
    for number in range(7):
        event = "INSERT INTO harvest.event (name, shard, kind) VALUES ('outbox', 0, %s)"
        connection.execute(event, (f"kind-{number}",))
        connection.commit()
    told = json.loads(harvest("status", "--json").stdout)
    assert [event["kind"] for event in told["events"]] == [f"kind-{n}" for n in (6, 5, 4, 3, 2)]


def test_held_topics(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Topics that can't be published to are told, with the reason, until they are released."""
    for kind, detail in HELD:
        event = "INSERT INTO harvest.event (name, shard, kind, detail) VALUES ('outbox', 0, %s, %s)"
        connection.execute(event, (kind, json.dumps(detail)))
        connection.commit()
    told = json.loads(harvest("status", "--json").stdout)
    assert told["held"] == {"a": "no such topic", "c": "not authorised to write"}
    lines = harvest("status").stdout.splitlines()
    assert [line for line in lines if line.startswith("held")] == [
        "held       a: no such topic",
        "held       c: not authorised to write",
    ]


def test_of_another_name(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """A harvest that is not named as its outbox is asked for by its name."""
    filled(connection)
    failed = harvest("status", "--json", "--name", "other")
    assert failed.stderr == "harvest: no harvest named other has led yet; there are: outbox\n"
    leases.acquire(connection, "other", 0, "x", 60)
    connection.commit()
    told = json.loads(harvest("status", "--json", "--name", "other").stdout)
    assert (told["name"], told["outbox"], len(told["leases"])) == ("other", "outbox", 1)
    assert told["in_flight"]["records"] == 1


@pytest.mark.parametrize("words", [("status",), ("outbox", "status")])
def test_of_what_is_no_outbox(
    harvest: Harvest, connection: psycopg.Connection[Any], words: tuple[str, ...]
) -> None:
    """A name that is led as another word is refused, with the command that shows it."""
    leases.take(connection, "count", 0, "x", 60, word="counter")
    connection.commit()
    failed = harvest(*words, "--name", "count")
    said = "count is led as counter, and is no outbox: see `harvest counter status --name count`"
    assert (failed.returncode, failed.stderr) == (1, f"harvest: {said}\n")


def test_a_name_before_any_harvest(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Where other things alone are led, a name may be that of a harvest to come."""
    leases.take(connection, "count", 0, "x", 60, word="counter")
    connection.commit()
    assert "nobody has led yet" in harvest("status", "--name", "shop").stdout


def test_while_it_runs(harvest: Harvest, reap: Reap, outbox: str, made_topic: MakeTopic) -> None:
    """A leader is seen with its epoch, and what it has drained is seen to be gone."""
    harvest("pump", "--records", "100", "--topic", made_topic(), "--outbox", outbox)
    reaping = reap(HARVEST_OUTBOX=outbox)

    def status() -> dict[str, Any]:
        told: dict[str, Any] = json.loads(harvest("status", "--json", "--outbox", outbox).stdout)
        return told

    until(lambda: status()["leases"] and status()["backlog"]["records"] == 0)
    [lease] = status()["leases"]
    assert (lease["epoch"], lease["expired"]) == (1, False)
    assert str(reaping.process.pid) in lease["holder"]
    assert reaping.stopped() == 0
    assert status()["leases"][0]["expired"]


def test_missing_table(harvest: Harvest) -> None:
    """A table that is not there is told in one line."""
    failed = harvest("status", "--outbox", "nowhere")
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert "harvest outbox create --outbox nowhere" in failed.stderr


def test_missing_schema(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Tables of ours that are not there are told in one line."""
    connection.execute("DROP TABLE harvest.lease, harvest.parked")
    connection.commit()
    failed = harvest("status")
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert failed.stderr.endswith("; run `harvest outbox migrate`\n")


def test_old_schema(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Where the tables are those of a version before, that is told in one line too."""
    connection.execute("ALTER TABLE harvest.lease DROP COLUMN word")
    connection.commit()
    failed = harvest("status")
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert failed.stderr.endswith("; run `harvest outbox migrate`\n")
