"""The operator's jobs that make, migrate and fill an outbox, on real servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harvest_dagster import Message
from tests.support.databases import Stashed
from tests.support.place import Place
from tests.support.pressing import Press, facts, records, why

pytestmark = pytest.mark.filterwarnings(  # Dagster's own, whenever a resource is inside another
    "ignore:InitResourceContext.dagster_run is deprecated:DeprecationWarning"
)
LINES = """\
{"topic": "orders", "key": "a", "value": 1}

{"topic": "orders", "key": "b", "value": "a line\u2028of two"}
"""
MESSAGES = [Message("orders", "a", 1), Message("orders", "b", "a line\u2028of two")]


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
