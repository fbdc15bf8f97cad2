"""PostgreSQL has no room left on its disk, for a while."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from harvest_dagster.embedded import Servers
from harvest_dagster.embedded.owner import give
from tests.support.deliveries import DELIVERIES
from tests.support.faults import BUSY, refused, settle
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.running import StartHarvest

SIZE = "8m"
FULL = """
    CREATE FUNCTION public.is_full() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
    END $$
"""
CLAIMS = ("INSERT", "harvest.claim")
WRITES = [
    pytest.param([CLAIMS], False, id="claims"),
    pytest.param([("DELETE", "outbox")], False, id="purges"),
    pytest.param([("UPDATE", "harvest.lease"), CLAIMS], True, id="leases", marks=pytest.mark.long),
    pytest.param([("INSERT", "harvest.event"), CLAIMS], False, id="events", marks=pytest.mark.long),
]


@contextmanager
def full(place: Place, writes: list[tuple[str, str]]) -> Iterator[None]:
    """Have PostgreSQL refuse some writes as it does when a disk is full."""
    for kind, table in writes:
        place.rows(
            f"CREATE TRIGGER is_full BEFORE {kind} ON {table} EXECUTE FUNCTION public.is_full()"
        )
    yield
    for _, table in writes:
        place.rows(f"DROP TRIGGER is_full ON {table}")


def notices(place: Place) -> bool:
    """Tell whether a leader had to begin anew since a disk was full."""
    return any("No space" in str(event.detail) for event in place.events("refreshed"))


@DELIVERIES
@pytest.mark.parametrize(("writes", "is_fenced"), WRITES)
def test_writes_that_a_full_disk_refuses(
    place: Place,
    start_harvest: StartHarvest,
    delivery: str,
    writes: list[tuple[str, str]],
    *,
    is_fenced: bool,
) -> None:
    """While there is no room for one kind of write or another the harvest waits; then it goes on.

    Triggers raise what PostgreSQL does of a full disk. For leases that lasts for longer than trust
    in the lease, so that the leader is fenced, and must be elected anew.
    """
    place.rows(FULL)
    place.put(2000)
    running = start_harvest(place.config(delivery=delivery, limits=BUSY))
    until(lambda: place.waiting() < 1800)
    with full(place, writes):
        refused(place, statements=5)
        until(lambda: not is_fenced or "LeaderFenced" in running.kinds())
    settle(place, delivery)
    until(lambda: notices(place) or len(place.events("acquired")) > 1)


@pytest.fixture
def small_disk(servers: Servers, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Mount a disk that is soon full, and tell it along with the tablespace that is on it."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk takes the right to mount one: {mounted.stderr.strip()}")
    data, name = tmp_path / "data", f"t{uuid.uuid4().hex}"
    data.mkdir()
    give(data)
    with psycopg.connect(servers.postgres, autocommit=True) as admin:
        admin.execute(f"CREATE TABLESPACE {name} LOCATION '{data}'")
        yield tmp_path, name
        admin.execute(f"DROP TABLESPACE {name}")
    subprocess.run(["umount", tmp_path], check=True)


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Fill a disk to the last byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"0" * 4096):
            pass
    yield
    filler.unlink()


@DELIVERIES
def test_a_disk_that_is_full(
    small_disk: tuple[Path, str], place: Place, start_harvest: StartHarvest, delivery: str
) -> None:
    """While the disk of outbox and claims is really full nothing is lost, and then it goes on.

    Claims take much room here, and an old snapshot keeps what is dead, so that it soon runs out.
    """
    disk, tablespace = small_disk
    for table in ("outbox", "harvest.claim"):
        place.rows(f"ALTER TABLE {table} SET TABLESPACE {tablespace}")
    place.rows("ALTER TABLE harvest.claim SET (fillfactor = 10)")
    place.put(6000)
    start_harvest(place.config(delivery=delivery, limits=BUSY))
    until(lambda: place.waiting() < 5800)
    with psycopg.connect(place.postgres) as reader, filled(disk):
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT count(*) FROM outbox")
        until(lambda: notices(place))
    settle(place, delivery)
