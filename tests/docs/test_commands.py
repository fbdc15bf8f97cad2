"""Every command and example of the README and the docs does what it is said to do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from harvest_dagster.embedded import Servers
from tests.support.pages import FENCE, PAGES, TUTORIAL
from tests.support.paths import ROOT

SAVED = re.compile(r"Save this as `(\w+\.py)`[^`]*^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
README = (ROOT / "README.md").read_text()
SPEND = dict(SAVED.findall(README))
"""What the README has a reader save: an asset with Spark."""
CI_COMMANDS = {"make demo", "make test", "make down"}
LEADER = """
export HARVEST_OUTBOX=led
harvest outbox create
harvest reap & trap 'kill %1; wait' EXIT
until harvest lease show | grep 'good for'; do sleep 0.2; done
"""
PREPARED = {
    "legacy_outbox": "harvest outbox create --kind goharvest --outbox legacy_outbox\n",
    "harvest lease resign": LEADER,
}
"""What a reader has already, by the words of the block that need it."""


def blocks(language: str) -> list[Any]:
    """All examples in a language, each named by its page."""
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT).with_suffix('')}-{number}")
        for page in PAGES
        for number, (found, text) in enumerate(FENCE.findall(page.read_text()))
        if found == language and not any(name in text for name in SPEND)
    ]


@pytest.fixture
def environment(database: str, servers: Servers, tmp_path: Path) -> dict[str, str]:
    """A shell in which `harvest` is on the path, and finds this test's servers."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": path,
        "HARVEST_HOME": str(tmp_path / "home"),
        "HARVEST_POSTGRES": database,
        "HARVEST_KAFKA": servers.kafka,
    }


def shell(text: str, environment: dict[str, str], folder: Path) -> str:
    """Run commands, but for those that only CI can run; tell what they said."""
    lines = [line for line in text.splitlines() if line.split("  ")[0] not in CI_COMMANDS]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("text", blocks("sh"))
def test_shell(text: str, environment: dict[str, str], tmp_path: Path) -> None:
    """A block of commands ends well, where the reader has what it is about."""
    prepared = "".join(made for words, made in PREPARED.items() if words in text)
    shell(prepared + text, environment, tmp_path)


def test_spark(environment: dict[str, str], database: str, tmp_path: Path) -> None:
    """The README's asset, saved as it stands, writes a day's row and message, and no day twice."""
    (name,) = SPEND
    (tmp_path / name).write_text(SPEND[name])
    (commands,) = (text for lang, text in FENCE.findall(README) if lang == "sh" and name in text)
    shell(commands * 2, environment, tmp_path)
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT day::text, customer, cents FROM daily_spend").fetchall()
        stashed = connection.execute("SELECT kafka_topic, kafka_key FROM outbox").fetchall()
    assert rows == [("2026-11-01", "ada", 1250)]
    assert stashed == [("daily-spend", b"ada")]


def test_tutorial(environment: dict[str, str], servers: Servers, tmp_path: Path) -> None:
    """From end to end, it shows what it says: each message once, though a leader was killed."""
    page = TUTORIAL.read_text()
    for name, text in SAVED.findall(page):
        (tmp_path / name).write_text(text)
    admin = AdminClient({"bootstrap.servers": servers.kafka})
    try:
        said = shell(
            "".join(t for lang, t in FENCE.findall(page) if lang == "sh"), environment, tmp_path
        )
    finally:
        for gone in admin.delete_topics(["letters", "letters.neli"]).values():
            gone.result()
    assert " remarked " in said
    for lang, text in FENCE.findall(page):
        assert lang != "text" or text in said


@pytest.mark.parametrize("text", blocks("python"))
def test_python(text: str, environment: dict[str, str], tmp_path: Path) -> None:
    """An example runs as it stands, and the definitions that it makes Dagster can load."""
    loads = "\ndg.Definitions.validate_loadable(defs)\n" if "\ndefs = " in text else ""
    done = subprocess.run(
        [sys.executable, "-c", text + loads],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", blocks("sql"))
def test_sql(text: str, connection: psycopg.Connection[Any]) -> None:
    """A block of SQL is taken by a database that has an outbox."""
    connection.execute(text)
    connection.rollback()


def test_make_commands_are_run_by_ci() -> None:
    """What a test can't run, because it runs the tests, `.ci/run` runs."""
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    assert set(script) >= CI_COMMANDS
