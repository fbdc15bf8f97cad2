"""Leadership without Kafka: who comes first leads, for as long as it renews its lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from harvest_dagster.election.candidate import Candidate
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.errors import FencedError, RivalError
from harvest_dagster.ledger import events, lease
from harvest_dagster.ledger.fence import Fence
from harvest_dagster.outbox.veto import OutboxVeto
from tests.support.candidates import Remembers
from tests.support.waiting import until

Connection = psycopg.Connection[Any]
Stand = Callable[..., tuple[Candidate, Remembers]]


@pytest.fixture
def stand(database: str) -> Iterator[Stand]:
    """Have candidates stand without Kafka; they are stopped when the test ends."""
    standing: list[Candidate] = []

    def start(**changes: Any) -> tuple[Candidate, Remembers]:
        given: dict[str, Any] = {"name": "feed", "postgres_url": database, "heartbeat_seconds": 0.2}
        settings = CandidateSettings(**{**given, "session_timeout_ms": 2000, **changes})
        listener = Remembers()
        candidate = Candidate(settings, listener)
        candidate.start()
        standing.append(candidate)
        return candidate, listener

    yield start
    for candidate in standing:
        candidate.stop(10)


def test_who_comes_first_has_it(free: Connection) -> None:
    """The second gets nothing until the first has let go, or has not renewed in time."""
    first = lease.take(free, "feed", 0, "x", 60)
    assert first is not None
    assert lease.take(free, "feed", 0, "y", 60) is None
    lease.release(free, "feed", 0, "x", "revoked", {})
    second = lease.take(free, "feed", 0, "y", 0.0)
    third = lease.take(free, "feed", 0, "z", 60)
    assert [taken and taken.epoch for taken in (first, second, third)] == [1, 2, 3]
    assert [event.kind for event in events.read(free, "feed")] == [
        "acquired",
        "acquired",
        "revoked",
        "acquired",
    ]


def test_it_is_renewed_and_lost(free: Connection) -> None:
    """A holder renews as long as nobody has taken it, and is told when somebody has."""
    lease.take(free, "feed", 0, "x", 0.0)
    assert lease.renew(free, "feed", 0, "x", 0.0).epoch == 1
    lease.take(free, "feed", 0, "y", 60)
    with pytest.raises(FencedError, match="no longer x's"):
        lease.renew(free, "feed", 0, "x", 60)


def test_whoever_lost_it_is_fenced(free: Connection) -> None:
    """A statement behind the fence of the first term writes nothing under the second."""
    old = lease.take(free, "feed", 0, "x", 0.0)
    new = lease.take(free, "feed", 0, "y", 60)
    assert old is not None
    assert new is not None
    for taken in (old, new):
        Fence(taken).note(free, "counted", {"by": taken.holder})
    assert [event.detail for event in events.read(free, "feed", ["counted"])] == [{"by": "y"}]


def test_looking_for_it_holds_nobody_up(database: str, free: Connection) -> None:
    """While a leader writes, others ask for the lease without waiting, and without its lock."""
    held = lease.take(free, "feed", 0, "x", 60)
    assert held is not None
    with psycopg.connect(database) as writing:
        Fence(held).note(writing, "counted", {})
        free.execute("SET lock_timeout = '1s'")
        assert lease.take(free, "feed", 0, "y", 60) is None


def test_of_many_at_once_one_has_it(database: str) -> None:
    """Of those who ask in the same moment one gets the lease, whether it is new or has expired."""
    barrier, taken = threading.Barrier(4), [0] * 20

    def take(holder: str) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            for round_ in range(len(taken)):
                barrier.wait(30)
                if lease.take(connection, "feed", 0, holder, 60) is not None:
                    taken[round_] += 1
                barrier.wait(30)
                lease.release(connection, "feed", 0, holder, "revoked", {})

    threads = [threading.Thread(target=take, args=(f"h{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [1] * len(taken)


def test_a_veto_counts(free: Connection) -> None:
    """What a room has against it is heard here too."""
    free.execute("CREATE TABLE shop ()")
    lease.take(free, "a", 0, "x", 60, veto=OutboxVeto("a", "shop", 1))
    with pytest.raises(RivalError):
        lease.take(free, "b", 0, "y", 60, veto=OutboxVeto("b", "shop", 1))


def test_one_candidate_leads_and_the_next_follows(stand: Stand) -> None:
    """One leads both shards, the other waits without a word, and leads when the first stops."""
    first, _ = stand(shards=2)
    until(lambda: first.leads(0) and first.leads(1))
    second, heard = stand(shards=2)
    until(lambda: second.state == "running")
    first.stop(10)
    until(lambda: second.leads(0) and second.leads(1))
    until(lambda: heard.kinds() == ["acquired", "acquired"])
    assert not second.troubles


def test_one_that_is_asked_hands_over(stand: Stand, free: Connection) -> None:
    """Who is asked to resign lets its work end, and stays away long enough for the other."""
    first, heard = stand()
    until(lambda: first.leads(0))
    second, _ = stand()
    lease.ask_to_resign(free, "feed", 0)
    until(lambda: second.leads(0))
    assert not first.leads(0)
    assert heard.kinds() == ["acquired", "revoked"]


def test_a_name_of_another_word(stand: Stand, free: Connection) -> None:
    """Who stands for a name that is led as another word says so, and does not lead."""
    lease.take(free, "feed", 0, "x", 60, word="counter")
    refused, heard = stand()
    until(lambda: refused.troubles)
    said = "feed is led as counter here: give this outbox another name"
    assert (refused.troubles, refused.leads(0), heard.kinds()) == ([said], False, [])
    counts, _ = stand(name="count", word="counter")
    until(lambda: counts.leads(0))
    assert {row.name: row.word for row in lease.read(free)} == {
        "count": "counter",
        "feed": "counter",
    }


def test_one_that_can_not_renew_is_fenced_in_time(stand: Stand, database: str) -> None:
    """Whose renewals do not arrive ceases to trust its lease before another can have it."""
    first, heard = stand()
    until(lambda: first.leads(0))
    with psycopg.connect(database) as blocker:
        blocker.execute("LOCK TABLE harvest.lease IN ACCESS EXCLUSIVE MODE")
        locked_at = time.monotonic()
        until(lambda: not first.trusted(0))
        assert time.monotonic() - locked_at < 2.0
        until(lambda: "fenced" in heard.kinds())
    until(lambda: heard.kinds()[:3] == ["acquired", "fenced", "acquired"])
