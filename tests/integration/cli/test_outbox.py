from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster import Message, stash

if TYPE_CHECKING:
    from tests.support.command import Harvest
    from tests.support.databases import Stashed


def make_old(connection: psycopg.Connection[Any]) -> None:
    """Take back what migration 0007 has done to the schema."""
    connection.execute("ALTER TABLE harvest.lease DROP COLUMN outbox")
    connection.execute("DELETE FROM harvest.migration WHERE version = 7")
    connection.commit()


def test_create(harvest: Harvest) -> None:
    """Create tells that the table is new, and the second time that it is there."""
    first, second = (harvest("outbox", "create", "--outbox", "new") for _ in range(2))
    assert (first.stdout, first.returncode) == ("created new (native)\n", 0)
    assert (second.stdout, second.returncode) == ("new is there already, unchanged\n", 0)


def test_create_migrates(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Of a schema that an older version made, create tells what it brought up to date."""
    make_old(connection)
    first, second = (harvest("outbox", "create").stdout for _ in range(2))
    assert first == "outbox is there already; migrated the schema harvest: 0007\n"
    assert second == "outbox is there already, unchanged\n"


def test_create_goharvest(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Create makes goharvest's table when told to."""
    made = harvest("outbox", "create", "--kind", "goharvest", HARVEST_OUTBOX="new")
    assert made.stdout == "created new (goharvest)\n"
    assert connection.execute("SELECT leader_id FROM new").fetchall() == []


def test_created_is_fit(harvest: Harvest) -> None:
    """Check finds nothing in what create made, and prints the least grants."""
    checked = harvest("outbox", "check")
    assert checked.returncode == 0
    assert checked.stdout.startswith("outbox is fit to stash into and to harvest from\n")
    assert '    GRANT INSERT ON "outbox" TO "stasher";\n' in checked.stdout
    assert '    GRANT DELETE ON "outbox" TO "harvester";\n' in checked.stdout


def test_check_as_json(harvest: Harvest) -> None:
    """Check tells findings and grants as JSON, for the roles that are named."""
    checked = harvest("outbox", "check", "--json", "--harvester", "pg_database_owner")
    told = json.loads(checked.stdout)
    assert {finding["level"] for finding in told["findings"]} == {"error"}
    assert any("DELETE" in finding["what"] for finding in told["findings"])
    assert 'GRANT SELECT ON "outbox" TO "pg_database_owner"' in told["grants"]["harvester"]


def test_check_of_a_warning(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """A warning is printed with the SQL that mends it, and is no failure."""
    connection.execute("ALTER TABLE outbox ENABLE ROW LEVEL SECURITY")
    connection.commit()
    checked = harvest("outbox", "check")
    assert checked.returncode == 0
    assert checked.stdout.startswith("warning: row level security is on")
    assert '    ALTER TABLE "outbox" DISABLE ROW LEVEL SECURITY;\n' in checked.stdout


def test_check_of_an_error(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """An error is a failure, in words and in JSON."""
    connection.execute("ALTER TABLE outbox SET UNLOGGED")
    connection.commit()
    as_text, as_json = harvest("outbox", "check"), harvest("outbox", "check", "--json")
    assert (as_text.returncode, as_json.returncode) == (1, 1)
    assert "error: the table is UNLOGGED" in as_text.stdout
    [finding] = json.loads(as_json.stdout)["findings"]
    assert finding == {
        "level": "error",
        "what": "the table is UNLOGGED: a crash empties it",
        "mend": ['ALTER TABLE "outbox" SET LOGGED'],
        "safe": False,
    }


@pytest.mark.parametrize("option", ["--stasher", "--harvester"])
def test_check_of_a_role(harvest: Harvest, option: str) -> None:
    """A role that lacks grants is a failure that names them, and a role unknown is one too."""
    lacking = harvest("outbox", "check", option, "pg_monitor")
    unknown = harvest("outbox", "check", option, "nobody")
    assert (lacking.returncode, unknown.returncode) == (1, 1)
    assert "error: pg_monitor lacks USAGE on SCHEMA harvest" in lacking.stdout
    assert "error: there is no role nobody" in unknown.stdout


def test_check_of_no_table(harvest: Harvest) -> None:
    """A table that is not there is a failure that says how to make it."""
    checked = harvest("outbox", "check", "--outbox", "nowhere")
    assert checked.returncode == 1
    assert "there is no table nowhere: run `harvest outbox create" in checked.stdout


def test_migrate(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Migrate tells what it mended, and that there is nothing more the second time."""
    connection.execute("ALTER SEQUENCE outbox_id_seq CACHE 20")
    connection.commit()
    first, second = (harvest("outbox", "migrate") for _ in range(2))
    assert first.stdout.startswith("mended: the sequence caches 20 ids")
    assert (second.stdout, second.returncode) == ("outbox is up to date\n", 0)


def test_migrate_dry_run(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """A dry run tells what would be done, with its SQL, and does nothing."""
    connection.execute("ALTER TABLE goharvest_outbox RESET (autovacuum_vacuum_scale_factor)")
    connection.commit()
    words = ("outbox", "migrate", "--to-native", "--outbox", "goharvest_outbox")
    dry = [harvest(*words, "--dry-run").stdout for _ in range(2)]
    assert dry[0] == dry[1]
    assert dry[0].startswith("would mend: autovacuum waits")
    assert "would turn goharvest_outbox into a table of bytes\n    ALTER TABLE" in dry[0]


def test_migrate_dry_run_of_the_schema(
    harvest: Harvest, connection: psycopg.Connection[Any]
) -> None:
    """Migrations of the schema are printed as they stand, and not run."""
    make_old(connection)
    dry = [harvest("outbox", "migrate", "--dry-run").stdout for _ in range(2)]
    assert dry[0] == dry[1]
    assert dry[0].startswith("would mend: the schema harvest lacks 0007")
    assert dry[0].endswith("\n    ALTER TABLE harvest.lease ADD COLUMN outbox oid;\n")


def test_migrate_to_native(
    harvest: Harvest, connection: psycopg.Connection[Any], stashed: Stashed
) -> None:
    """Goharvest's table is turned into one of bytes with its messages in it."""
    message = Message("t", "é", "v", {"h": "ü"})
    stash(connection, message, outbox="goharvest_outbox")
    connection.commit()
    turned = harvest("outbox", "migrate", "--to-native", "--outbox", "goharvest_outbox")
    assert turned.stdout == "turned goharvest_outbox into a table of bytes\n"
    assert stashed("goharvest_outbox") == [message]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("ALTER TABLE outbox SET UNLOGGED", "error: the table is UNLOGGED"),
        ("DROP TABLE outbox", "error: there is no table outbox"),
    ],
)
def test_migrate_leaves_errors(
    harvest: Harvest, connection: psycopg.Connection[Any], broken: Any, said: str
) -> None:
    """An error that can't be mended safely is told, and is a failure."""
    connection.execute(broken)
    connection.commit()
    migrated = harvest("outbox", "migrate")
    assert migrated.returncode == 1
    assert said in migrated.stdout
    assert "up to date" not in migrated.stdout


def test_stats(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Stats are a table for people."""
    stash(connection, [Message("orders", "7", "x" * 2048)] * 1500)
    connection.commit()
    lines = harvest("outbox", "stats").stdout.splitlines()
    assert lines[0].split() == ["outbox", "outbox"]
    assert {"records       1,500", "values        2.9 MiB", "topic orders  1,500"} <= set(lines)


def test_stats_as_json(harvest: Harvest, connection: psycopg.Connection[Any]) -> None:
    """Stats are JSON for scripts."""
    stash(connection, [Message("orders", "7", "x")] * 3)
    connection.commit()
    told = json.loads(harvest("outbox", "stats", "--json").stdout)
    assert (told["records"], told["topics"], told["value_bytes"]) == (3, {"orders": 3}, 3)


def test_stats_of_nothing(harvest: Harvest) -> None:
    """An empty outbox has dashes where it has no figures."""
    lines = harvest("outbox", "stats").stdout.splitlines()
    assert {"records      0", "oldest       -", "ids          -"} <= set(lines)
