from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import sqlalchemy as sa

if TYPE_CHECKING:
    from tests.support.command import Harvest

COMMANDS = [
    ("outbox", "create"),
    ("outbox", "migrate"),
    ("outbox", "check"),
    ("outbox", "stats"),
    ("stash",),
    ("pump", "--records", "1"),
]
SECRET = "hunter2"  # noqa: S105 - what must not be shown


@pytest.fixture(params=COMMANDS, ids=" ".join)
def command(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Each command that needs PostgreSQL."""
    words: tuple[str, ...] = request.param
    return words


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"postgresql://harvest:{SECRET}@127.0.0.1:1/db", "Connection refused"),
        (f"postgresql://harvest:{SECRET}%zz@127.0.0.1/db", "postgres: this is no URL"),
        ("", "no PostgreSQL is configured: set HARVEST_POSTGRES"),
    ],
)
def test_no_postgres(harvest: Harvest, command: tuple[str, ...], url: str, said: str) -> None:
    """Where there is no PostgreSQL each command says so in one line, without the password."""
    failed = harvest(*command, HARVEST_POSTGRES=url)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("harvest: ")
    assert (failed.stderr.count("\n"), said in failed.stderr) == (1, True)
    assert SECRET not in failed.stderr


def test_wrong_password(harvest: Harvest, database: str) -> None:
    """A password that is wrong is told in one line, which does not show it."""
    url = sa.make_url(database).set(password=SECRET).render_as_string(hide_password=False)
    failed = harvest("outbox", "stats", HARVEST_POSTGRES=url)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert "password authentication failed" in failed.stderr
    assert SECRET not in failed.stderr


@pytest.mark.parametrize("query", ["", "?sslpassword=x"])
def test_password_as_an_option(harvest: Harvest, database: str, query: str) -> None:
    """Of a password that all can see among the processes is warned, and the command goes on."""
    shown = harvest("outbox", "stats", "--postgres", database + query)
    assert (shown.returncode, shown.stderr.count("\n")) == (0, 1)
    assert shown.stderr.startswith("warning: --postgres has a password")
    assert str(sa.make_url(database).password) not in shown.stderr


def test_password_beside_the_option(
    harvest: Harvest, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given as the help says, the password is taken, and there is nothing to warn of."""
    password = str(sa.make_url(database).password)
    monkeypatch.setenv("PGPASSWORD", password)
    without = database.replace(f":{password}@", "@")
    shown = harvest("outbox", "stats", "--postgres", without)
    assert (shown.returncode, shown.stderr) == (0, "")


@pytest.mark.parametrize("table", ["a b", "50%", "a" * 64, '"\udcff"', "out;box"])
def test_bad_table_name(harvest: Harvest, command: tuple[str, ...], table: str) -> None:
    """A name that is no table's is refused in one line."""
    failed = harvest(*command, "--outbox", table)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert failed.stderr.startswith("harvest: ")


@pytest.mark.parametrize("words", [("outbox", "stats"), ("pump",), ("stash",)])
def test_missing_table(harvest: Harvest, words: tuple[str, ...]) -> None:
    """A table that is not there is told in one line, with how to make it."""
    line = '{"topic": "t", "key": "k", "value": 1}'
    failed = harvest(*words, "--outbox", "nowhere", stdin=line)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert "harvest outbox create --outbox nowhere" in failed.stderr


def test_schema_that_is_not_there(harvest: Harvest) -> None:
    """What PostgreSQL itself refuses is told in one line."""
    failed = harvest("outbox", "create", "--outbox", "nowhere.outbox")
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert 'PostgreSQL: schema "nowhere" does not exist' in failed.stderr


def test_broken_project_file(harvest: Harvest) -> None:
    """A harvest.toml that is none is told in one line."""
    Path("harvest.toml").write_text("outbox = ")
    failed = harvest("outbox", "stats")
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert "harvest.toml can't be read" in failed.stderr


@pytest.mark.parametrize("words", [("outbox", "creat"), ("nothing",), ("stash", "nowhere.jsonl")])
def test_usage(harvest: Harvest, words: tuple[str, ...]) -> None:
    """What is no command, or no file, is a fault of usage."""
    failed = harvest(*words)
    assert (failed.returncode, "Traceback" in failed.stderr) == (2, False)


@pytest.mark.parametrize(
    "words",
    [
        ("parked", "list"),
        ("parked", "discard", "--all", "--yes"),
        ("parked", "requeue", "--all"),
        ("lease", "show"),
        ("status",),
    ],
    ids=" ".join,
)
def test_a_name_that_is_mistyped(harvest: Harvest, words: tuple[str, ...]) -> None:
    """An outbox that is not there is no outbox in which all is well."""
    failed = harvest(*words, "--outbox", "ordres")
    assert (failed.returncode, failed.stdout, failed.stderr.count("\n")) == (1, "", 1)
    assert "there is no table ordres" in failed.stderr


def test_a_value_that_no_message_can_have(harvest: Harvest) -> None:
    """A size that is too large is refused before so much memory is asked for."""
    failed = harvest("pump", "--size", "99999999999")
    assert failed.returncode == 2
    assert "Invalid value for '--size': 99999999999 is not in the range" in failed.stderr


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [
        ("<&-", 0, ""),
        (">/dev/full", 1, "harvest: the output: No space left on device\n"),
    ],
)
def test_streams_that_are_closed_or_full(database: str, streams: str, code: int, said: str) -> None:
    """Neither is worth a traceback: what is closed is empty, what is full is said."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m harvest_dagster stash {streams}', sys.executable],
        env={**os.environ, "HARVEST_POSTGRES": database},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, said)


def test_pump_that_is_interrupted(database: str) -> None:
    """It says how many messages stay."""
    words = [sys.executable, "-m", "harvest_dagster", "pump", "--records", "100000000"]
    known = {**os.environ, "HARVEST_POSTGRES": database}
    with subprocess.Popen(words, env=known, stderr=subprocess.PIPE, text=True) as pump:
        assert pump.stderr is not None
        assert "messages stashed" in pump.stderr.readline()
        pump.send_signal(signal.SIGINT)
        said = pump.stderr.read()
    assert pump.returncode == 130
    stay, interrupted = said.splitlines()[-2:]
    assert (stay.endswith("these stay"), interrupted) == (True, "interrupted")
    number = int(stay.partition(" of ")[0].replace(",", ""))
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM outbox").fetchone() == (number,)
