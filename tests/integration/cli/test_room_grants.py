"""What a room's `grants.toml` says of its tables is what a role gets of them, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import psycopg
import pytest
from click.testing import CliRunner, Result

from harvest_dagster.cli.room_commands import group_of
from harvest_dagster.work.runner import Runner
from tests.support.counter.room import ROOM, Counter
from tests.support.roles import url_as
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.command import Harvest

Granted = Callable[[str], str]


@pytest.fixture
def granted(counter: Counter, harvest: Harvest, role: str) -> Granted:
    """Give a role, by the command, what it needs as one of the roles; return its URL."""

    def grant(who: str) -> str:
        given = harvest("outbox", "grant", role, "--as", who)
        assert given.returncode == 0, given.stderr
        assert harvest("outbox", "check", f"--{who}", role).returncode == 0
        return url_as(role, counter.postgres_url)

    return grant


def run(url: str, *words: str) -> Result:
    """Run one of the room's commands as a role."""
    return CliRunner().invoke(group_of(ROOM), words, env={"HARVEST_POSTGRES": url})


def test_who_leads(counter: Counter, granted: Granted, count: Callable[[], int]) -> None:
    """Whoever is granted to harvest can lead whatever there is, and write what that writes."""
    runner = Runner(ROOM, Counter(counter.name, granted("harvester")), Mock())
    runner.start()
    try:
        until(lambda: count() > 3)
    finally:
        runner.stop(10)


def test_who_operates(granted: Granted, count: Callable[[], int]) -> None:
    """An operator may do what the room's verbs do."""
    done = run(granted("operator"), "set", "--number", "7")
    assert (done.output, count()) == ("count counts on from 7\n", 7)


def test_who_looks(granted: Granted) -> None:
    """A reader sees the room's status and its table, and changes nothing."""
    url = granted("reader")
    assert run(url, "status").exit_code == 0
    with psycopg.connect(url) as reader:
        assert reader.execute("SELECT * FROM harvest.count").fetchall() == []
    assert isinstance(run(url, "set").exception, psycopg.errors.InsufficientPrivilege)


@pytest.mark.parametrize("who", ["stasher", "spark"])
def test_who_has_no_part_in_it(granted: Granted, who: str) -> None:
    """Whom the room grants nothing has nothing of it."""
    with (
        psycopg.connect(granted(who)) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("SELECT * FROM harvest.count")


def test_a_room_that_is_not_migrated(
    counter: Counter, harvest: Harvest, role: str, connection: psycopg.Connection[Any]
) -> None:
    """Where a room's table is not there yet, it is said how to make it, and nothing is granted."""
    connection.execute(
        f"DROP TABLE harvest.{counter.name}; DELETE FROM harvest.migration WHERE room = 'counter'"
    )
    connection.commit()
    refused = harvest("outbox", "grant", role, "--as", "reader")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "`harvest outbox migrate`" in refused.stderr
    allowed = connection.execute("SELECT has_table_privilege(%s, 'outbox', 'SELECT')", (role,))
    assert allowed.fetchone() == (False,)
