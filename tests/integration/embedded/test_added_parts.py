"""S3 and MariaDB, as `up` adds them to a home."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pymysql
import pytest
from obstore.exceptions import (
    AlreadyExistsError,
    PermissionDeniedError,
    PreconditionError,
)
from obstore.store import S3Store

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers
from harvest_dagster.errors import EmbeddedError
from tests.support.added_parts import (
    HAS_MARIADB,
    RUNNABLE,
    bucket_of,
    mariadb_of,
    needs_mariadb,
)
from tests.support.killed import kill

Processes = Callable[[Path], list[str]]


def content(bucket: S3Store, path: str) -> bytes:
    """Return an object's bytes."""
    return bytes(obstore.get(bucket, path).bytes())


def test_s3_creates_an_object_once(bucket: S3Store) -> None:
    """Whoever comes second with If-None-Match is refused, and the first one's bytes stay."""
    obstore.put(bucket, "an/object", b"first", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(bucket, "an/object", b"second", mode="create")
    assert content(bucket, "an/object") == b"first"


def test_s3_replaces_what_the_writer_has_seen(bucket: S3Store) -> None:
    """With If-Match, an update that is based on an older object is refused."""
    seen = obstore.put(bucket, "object", b"1")["e_tag"]
    obstore.put(bucket, "object", b"2", mode={"e_tag": seen})
    with pytest.raises(PreconditionError):
        obstore.put(bucket, "object", b"lost", mode={"e_tag": seen})
    assert content(bucket, "object") == b"2"


def test_s3_has_room_for_many_buckets(with_parts: Servers) -> None:
    """Each of them takes volumes of its own, of which there are few by default."""
    for number in range(8):
        obstore.put(bucket_of(with_parts, f"room-{number}"), "object", b"here")


def test_s3_asks_for_the_key(with_parts: Servers, bucket: S3Store) -> None:
    """A wrong key, or none, gets nothing."""
    obstore.put(bucket, "object", b"secret")
    stranger = bucket_of(with_parts, "any-bucket", secret_access_key="wrong")
    with pytest.raises(PermissionDeniedError):
        obstore.get(stranger, "object")
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(str(with_parts.parts["s3"]["endpoint"]), timeout=10)  # noqa: S310 - http


@needs_mariadb
def test_mariadb_logs_whole_rows_with_their_columns(mariadb: pymysql.Connection[Any]) -> None:
    """Who follows the binlog finds the rows, and the names that a table's columns had."""
    with mariadb.cursor() as cursor:
        cursor.execute("SELECT @@binlog_format, @@binlog_row_metadata, @@binlog_row_image")
        assert cursor.fetchone() == ("ROW", "FULL", "FULL")
        cursor.execute("SHOW BINLOG STATUS")
        status = cursor.fetchone()
        assert status
        file, start = status[:2]
        cursor.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text)")
        cursor.execute("INSERT INTO orders VALUES (1, 'Jürgen')")
        cursor.execute("SELECT customer FROM orders")
        assert cursor.fetchall() == (("Jürgen",),)
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {start}")
        assert "Write_rows_v1" in {event[2] for event in cursor.fetchall()}


@needs_mariadb
@pytest.mark.parametrize(
    "who", [{"password": ""}, {"user": "nobody"}, {"user": "", "password": ""}]
)
def test_mariadb_asks_for_the_password(with_parts: Servers, who: dict[str, str]) -> None:
    """There is one user, and no way in without the password."""
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        mariadb_of(with_parts, **who)


def test_added_parts_live_as_long_as_the_home(home: Path, processes: Processes) -> None:
    """What was killed is seen, and comes back with its data; `reset` leaves nothing."""
    servers = embedded.up(home, parts=RUNNABLE)
    assert sockets(servers)
    keep(servers)
    kill(servers, *RUNNABLE)
    seen = embedded.status(home)
    assert not seen.running
    assert seen.servers
    assert {each.name for each in seen.servers.each if not each.running} == set(RUNNABLE)
    assert kept(embedded.up(home))
    moved = embedded.up(home, new_ports=True)
    assert moved.parts["s3"] != servers.parts["s3"]
    assert kept(moved)
    embedded.reset(home)
    assert processes(home) == []
    assert {path.name for path in home.iterdir()} <= {"lock"}
    assert not sockets(servers, moved)


def test_a_part_that_fails_or_is_dropped_leaves_the_others_alone(
    home: Path, processes: Processes
) -> None:
    """The next `up` does not try again what never ran, nor start what is no longer wanted."""
    servers = embedded.up(home)
    (home / "s3").touch()
    with pytest.raises(EmbeddedError, match="s3"):
        embedded.up(home, parts=["s3"])
    assert embedded.up(home).each == servers.each
    (home / "s3").unlink()
    assert embedded.up(home, parts=["s3"]).parts
    embedded.drop(home, ["s3"])
    assert embedded.up(home).each == servers.each
    assert not [line for line in processes(home) if "weed" in line]


def keep(servers: Servers) -> None:
    """Put something into each part."""
    obstore.put(bucket_of(servers, "kept"), "object", b"still here")
    if HAS_MARIADB:
        with mariadb_of(servers) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE kept AS SELECT 'still here' AS text")


def kept(servers: Servers) -> bool:
    """Return whether it is there, and more can be put beside it."""
    bucket = bucket_of(servers, "kept")
    obstore.put(bucket, "another", b"", mode="overwrite")
    if HAS_MARIADB:
        with mariadb_of(servers) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT text FROM kept")
            assert cursor.fetchall() == (("still here",),)
    return content(bucket, "object") == b"still here"


def sockets(*of: Servers) -> list[Path]:
    """Return those that SeaweedFS has outside of a home, for S3."""
    ports = [each.port for servers in of for each in servers.each if each.name == "s3"]
    return [path for port in ports for path in Path("/tmp").glob(f"*-{port}.sock")]  # noqa: S108
