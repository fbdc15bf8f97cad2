"""The lease's row: epochs, locks, and what is written down."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from harvest_dagster.errors import FencedError, RivalError
from harvest_dagster.ledger import events, lease
from harvest_dagster.outbox.veto import OutboxVeto

KEY_SHARE = "SELECT FROM harvest.lease WHERE name = 'a' AND epoch = %s FOR KEY SHARE"
WAITING = (
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
Free = psycopg.Connection[Any]


def test_the_epoch_grows_by_one_each_time(free: Free) -> None:
    """Acquire and refresh draw the next epoch and a new leader id; renew draws neither."""
    first = lease.acquire(free, "a", 0, "x", 6)
    second = lease.acquire(free, "a", 0, "y", 6)
    third = lease.refresh(free, second, "tour")
    renewal = lease.renew(free, "a", 0, "y", 6)
    assert [first.epoch, second.epoch, third.epoch, renewal.epoch] == [1, 2, 3, 3]
    assert len({first.leader_id, second.leader_id, third.leader_id}) == 3
    assert renewal.leader_id == third.leader_id


def test_many_at_once_draw_different_epochs(database: str, free: Free) -> None:
    """Of candidates that acquire a new lease at once, no two have the same epoch."""
    epochs: list[int] = []

    def acquire(number: int) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            epochs.extend(
                lease.acquire(connection, "a", 0, f"h{number}", 6).epoch for _ in range(20)
            )

    threads = [threading.Thread(target=acquire, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(epochs) == list(range(1, 81))
    assert len(events.read(free, "a", ["acquired"])) == 80


@pytest.mark.usefixtures("free")
def test_the_first_of_all_are_many(database: str) -> None:
    """Whoever acquires a lease that nobody ever had, at the same time as others, gets an epoch."""
    barrier = threading.Barrier(4)
    epochs: list[int] = []

    def acquire() -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            for number in range(100):
                barrier.wait(30)
                epochs.append(lease.acquire(connection, f"n{number}", 0, "x", 6).epoch)

    threads = [threading.Thread(target=acquire) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(epochs) == sorted([1, 2, 3, 4] * 100)


def test_what_is_over_is_refused(free: Free) -> None:
    """Refresh by an old epoch and renew by another holder raise FencedError."""
    old = lease.acquire(free, "a", 0, "x", 6)
    lease.acquire(free, "a", 0, "y", 6)
    with pytest.raises(FencedError, match="epoch 1 of a/0"):
        lease.refresh(free, old, "tour")
    with pytest.raises(FencedError, match="no longer x's"):
        lease.renew(free, "a", 0, "x", 6)


def test_taking_over_waits_for_a_write(database: str, free: Free) -> None:
    """Acquire waits for a write that holds KEY SHARE; a renewal does not."""
    first = lease.acquire(free, "a", 0, "x", 6)
    taken: list[int] = []
    with psycopg.connect(database) as writer, psycopg.connect(database, autocommit=True) as other:
        assert writer.execute(KEY_SHARE, (first.epoch,)).rowcount == 1
        lease.renew(free, "a", 0, "x", 6)
        taker = threading.Thread(
            target=lambda: taken.append(lease.acquire(other, "a", 0, "y", 6).epoch)
        )
        taker.start()
        while free.execute(WAITING).fetchone() is None:
            assert taker.is_alive()
        assert not taken
        writer.commit()
        taker.join(5)
        assert taken == [2]
        assert writer.execute(KEY_SHARE, (first.epoch,)).rowcount == 0


def test_release_ends_only_ones_own(free: Free) -> None:
    """Release expires the lease and says so; it does nothing when another has it."""
    lease.acquire(free, "a", 0, "x", 6)
    assert not lease.release(free, "a", 0, "z", "revoked", {})
    assert lease.release(free, "a", 0, "x", "revoked", {"reason": "stop"})
    (row,) = lease.read(free, "a")
    assert row.expired
    (event,) = events.read(free, "a", ["revoked"])
    assert (event.epoch, event.detail) == (1, {"holder": "x", "reason": "stop"})


def test_a_table_is_led_under_one_name(free: Free) -> None:
    """While a lease of the table lasts no other name gets one; its own next leader does."""
    free.execute("CREATE TABLE shop (); CREATE TABLE bank ()")
    lease.acquire(free, "a", 0, "x", 6, veto=OutboxVeto("a", "shop", 1))
    with pytest.raises(RivalError, match="x leads the same table as a"):
        lease.acquire(free, "b", 0, "y", 6, veto=OutboxVeto("b", '"public"."shop"', 1))
    assert [row.name for row in lease.read(free)] == ["a"]
    lease.acquire(free, "a", 1, "y", 6, veto=OutboxVeto("a", "shop", 1))
    lease.acquire(free, "c", 0, "z", 6, veto=OutboxVeto("c", "bank", 1))
    assert lease.acquire(free, "a", 0, "y", 6, veto=OutboxVeto("a", "shop", 1)).epoch == 2
    for shard in (0, 1):
        lease.release(free, "a", shard, "y", "revoked", {})
    lease.acquire(free, "b", 0, "y", 6, veto=OutboxVeto("b", "shop", 1))


def test_keys_are_divided_by_one_number_of_shards(free: Free) -> None:
    """While a shard is led, or has claims, nobody leads by another number; afterwards anyone."""
    lease.acquire(free, "a", 2, "x", 6, veto=OutboxVeto("a", "shop", 3))
    lease.acquire(free, "a", 0, "y", 6, veto=OutboxVeto("a", "shop", 3))
    with pytest.raises(RivalError, match=r"shard \d of 3 is still led"):
        lease.acquire(free, "a", 0, "y", 6, veto=OutboxVeto("a", "shop", 2))
    free.execute("INSERT INTO harvest.claim VALUES ('a', 2, 1, 1, '{}', 0)")
    for shard, holder in ((0, "y"), (2, "x")):
        lease.release(free, "a", shard, holder, "revoked", {})
    with pytest.raises(RivalError, match="run with `shards: 3` until `harvest status` shows noth"):
        lease.acquire(free, "a", 0, "y", 6, veto=OutboxVeto("a", "shop", 2))
    free.execute("DELETE FROM harvest.claim")
    assert lease.acquire(free, "a", 0, "y", 6, veto=OutboxVeto("a", "shop", 2)).epoch == 2
    lease.acquire(free, "b", 0, "z", 6, veto=OutboxVeto("b", "bank", 1))


def test_two_names_at_once_do_not_both_lead(free: Free, database: str) -> None:
    """Of two that acquire the same table's lease in the same moment one leads at most."""
    free.execute("CREATE TABLE shop ()")
    barrier, led = threading.Barrier(2), {"a": 0, "b": 0}
    at_once: list[int] = []

    def acquire(name: str) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            for _ in range(40):
                barrier.wait(30)
                with suppress(RivalError):
                    lease.acquire(connection, name, 0, name, 6, veto=OutboxVeto(name, "shop", 1))
                    led[name] += 1
                barrier.wait(30)
                at_once.append(sum(not row.expired for row in lease.read(connection)))
                barrier.wait(30)
                lease.release(connection, name, 0, name, "revoked", {})

    threads = [threading.Thread(target=acquire, args=(name,)) for name in led]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(at_once) == 80
    assert max(at_once) == 1


def test_resigning_is_seen_at_the_next_renewal(free: Free) -> None:
    """A holder that is asked to resign learns it; whoever acquires next is not asked."""
    assert not lease.ask_to_resign(free, "a", 0)
    lease.acquire(free, "a", 0, "x", 6)
    assert lease.ask_to_resign(free, "a", 0)
    assert lease.renew(free, "a", 0, "x", 6).resign
    lease.acquire(free, "a", 0, "y", 6)
    assert not lease.renew(free, "a", 0, "y", 6).resign


def test_the_history_tells_who_led_before(free: Free) -> None:
    """An acquisition is written down with the holder and epoch before it; newest comes first."""
    lease.acquire(free, "a", 0, "x", 6)
    lease.acquire(free, "b", 0, "other", 6)
    lease.acquire(free, "a", 0, "y", 6)
    newest, oldest = events.read(free, "a")
    assert oldest.detail == {"holder": "x", "reason": "nobody has led before"}
    assert newest.detail.pop("previous_age_seconds") >= 0
    assert newest.detail.pop("reason") == "x was not heard of for 0.0 s"
    assert newest.detail == {"holder": "y", "previous_epoch": 1, "previous_holder": "x"}


def test_the_history_tells_a_crash_from_a_hand_over(free: Free) -> None:
    """Who reads that somebody leads now reads why it is not the one before."""
    lease.acquire(free, "a", 0, "x", 6)
    lease.release(free, "a", 0, "x", "revoked", {"reason": "the candidate stops"})
    lease.acquire(free, "a", 0, "y", 6)
    free.execute("UPDATE harvest.lease SET renewed_at = renewed_at - interval '7.5 s'")
    lease.acquire(free, "a", 0, "z", 6)
    crash, hand_over = events.read(free, "a", kinds=["acquired"], limit=2)
    assert hand_over.detail["reason"] == "x handed over"
    assert crash.detail["reason"] == "y was not heard of for 7.5 s"


def test_the_history_is_read_in_part(free: Free) -> None:
    """Kinds, age and number limit what is read."""
    for kind in ("parked", "held", "parked"):
        events.record(free, "a", 0, kind, {"id": 1})
    free.execute("UPDATE harvest.event SET at = now() - interval '40 days' WHERE kind = 'held'")
    assert [event.kind for event in events.read(free, "a", limit=1)] == ["parked"]
    assert len(events.read(free, kinds=["held", "parked"])) == 3
    assert len(events.read(free, "a", since_seconds=60)) == 2
