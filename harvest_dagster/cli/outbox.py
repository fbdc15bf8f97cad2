"""`harvest outbox`: make, mend, check and measure the outbox's table, and harvest it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

import click
import psycopg

from harvest_dagster.cli.led_names import list_of
from harvest_dagster.cli.reap import reap
from harvest_dagster.cli.shared_options import (
    chosen,
    connected,
    json_option,
    outbox_option,
    postgres_option,
)
from harvest_dagster.cli.show import print_json, print_table, say, size
from harvest_dagster.cli.status import outbox_status
from harvest_dagster.errors import OutboxError
from harvest_dagster.ledger.words import OUTBOX
from harvest_dagster.outbox.check import check as check_table
from harvest_dagster.outbox.privileges import GRANTS
from harvest_dagster.outbox.schema import Kind, mend, plan_mend
from harvest_dagster.outbox.schema import create as create_table
from harvest_dagster.outbox.stats import stats as read_stats
from harvest_dagster.postgres.finding import Finding, Level
from harvest_dagster.postgres.names import TableName
from harvest_dagster.postgres.privileges import Grant, give, lacking
from harvest_dagster.text import printable


@click.group()
def outbox() -> None:
    """Make, mend, check and measure the outbox's table, and harvest it."""


outbox.add_command(reap, "run")
outbox.add_command(outbox_status)
outbox.add_command(list_of(OUTBOX))


@outbox.command(short_help="Create the outbox, and bring the schema up to date.")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in Kind]),
    default=Kind.NATIVE.value,
    show_default=True,
    help="native: bytes, Kafka's limits alone; goharvest: its table, column for column.",
)
@outbox_option
@postgres_option
def create(kind: str, outbox: str | None, postgres: str | None) -> None:
    """Create the outbox, and bring the schema `harvest` up to date.

    It leaves an existing outbox table as it is.
    """
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        created = create_table(connection, place.table, Kind(kind))
    click.echo(created.line())


@outbox.command(short_help="Bring the schema up to date, and mend what is safe to mend.")
@click.option(
    "--dry-run", is_flag=True, help="Print what would be done, with its SQL, and do nothing."
)
@click.option(
    "--to-native",
    "native",
    is_flag=True,
    help="Turn goharvest's columns into bytes. It rewrites the table; stop goharvest first.",
)
@outbox_option
@postgres_option
def migrate(*, dry_run: bool, native: bool, outbox: str | None, postgres: str | None) -> None:
    """Bring the schema `harvest` up to date, and mend what `check` finds and can mend safely.

    Exit code 1 if an error is left that can't be mended without a choice of yours.
    """
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        mended = (plan_mend if dry_run else mend)(connection, place.table, native=native)
    for line in mended.lines(planned=dry_run):
        say(line)
    if dry_run:
        _print_sql(mended.sql)
    for finding in mended.left:
        say(f"{finding.level}: {finding.what}")
    if mended.left:
        raise OutboxError(
            f"this can't be mended safely: see `harvest outbox check` for {place.table}"
        )


@outbox.command(short_help="Say what is wrong, how to mend it, and the least grants.")
@click.option("--stasher", metavar="ROLE", help="Check that this role may stash.")
@click.option("--spark", metavar="ROLE", help="Check that this role may write with Spark.")
@click.option("--harvester", metavar="ROLE", help="Check that this role may harvest.")
@click.option("--operator", metavar="ROLE", help="Check that this role may operate.")
@click.option("--reader", metavar="ROLE", help="Check that this role may look.")
@json_option
@outbox_option
@postgres_option
def check(
    *,
    stasher: str | None,
    spark: str | None,
    harvester: str | None,
    operator: str | None,
    reader: str | None,
    as_json: bool,
    outbox: str | None,
    postgres: str | None,
) -> None:
    """Say what is wrong with the table, how to mend it, and the least grants it needs.

    Exit code 1 if there is an error, 0 if there are warnings or notes at most.
    """
    settings, place = chosen(postgres, outbox)
    given = {
        "stasher": stasher,
        "spark": spark,
        "harvester": harvester,
        "operator": operator,
        "reader": reader,
    }
    with connected(settings) as connection:
        findings = check_table(connection, place.table)
        grants = _grants(connection, place.table, findings)
        for who, wanted in grants.items():
            if role := given[who]:
                findings += lacking(connection, role, wanted)
    least = {who: [grant.sql(given[who] or who) for grant in all_] for who, all_ in grants.items()}
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings], "grants": least})
    else:
        _print_check(place.table, findings, least)
    if any(finding.level is Level.ERROR for finding in findings):
        sys.exit(1)


@outbox.command(short_help="Give a role the least that it needs for its work.")
@click.argument("role")
@click.option(
    "--as", "who", type=click.Choice([*GRANTS]), required=True, help="What the role is there for."
)
@click.option("--dry-run", is_flag=True, help="Print the SQL, and do nothing.")
@outbox_option
@postgres_option
def grant(*, role: str, who: str, dry_run: bool, outbox: str | None, postgres: str | None) -> None:
    """Give a role of PostgreSQL the least that it needs for its work, and print the SQL of it.

    Run it as the table's owner. Privileges that the role already has are kept.
    """
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        least = GRANTS[who](connection, place.table)
        if not dry_run:
            give(connection, role, least)
    for one in least:
        say(f"{one.sql(role)};")
    if not dry_run:
        click.echo(f"granted to {printable(role)}", err=True)


@outbox.command()
@json_option
@outbox_option
@postgres_option
def stats(*, as_json: bool, outbox: str | None, postgres: str | None) -> None:
    """Show how many records wait, and the table's size and vacuum state."""
    settings, place = chosen(postgres, outbox)
    with connected(settings) as connection:
        found = read_stats(connection, place.table)
    if as_json:
        print_json(asdict(found))
        return
    oldest = "-" if found.oldest_seconds is None else f"{found.oldest_seconds:,.1f} s"
    print_table(
        ("outbox", str(place.table)),
        [
            ("records", f"{found.records:,}"),
            ("oldest", oldest),
            ("ids", "-" if found.first_id is None else f"{found.first_id} to {found.last_id}"),
            ("values", size(found.value_bytes)),
            ("on disk", size(found.disk_bytes)),
            ("dead rows", f"{found.dead_rows:,}"),
            ("last vacuum", found.last_vacuum or "-"),
            *((f"topic {topic}", f"{count:,}") for topic, count in found.topics.items()),
        ],
    )


def _print_sql(statements: list[str]) -> None:
    """Print statements as they are, for a comment within ends with its line."""
    for statement in statements:
        for line in f"{statement.strip().removesuffix(';')};".splitlines():
            say(f"    {line}".rstrip())


def _grants(
    connection: psycopg.Connection[Any], table: TableName, findings: list[Finding]
) -> dict[str, list[Grant]]:
    if any(finding.level is Level.ERROR for finding in findings):
        return {}
    return {who: grants(connection, table) for who, grants in GRANTS.items()}


def _print_check(table: TableName, findings: list[Finding], grants: dict[str, list[str]]) -> None:
    for finding in findings:
        say(f"{finding.level}: {finding.what}")
        for statement in finding.mend:
            say(f"    {' '.join(statement.split())};")
    if not any(finding.level is Level.ERROR for finding in findings):
        click.echo(f"{table} is fit to stash into and to harvest from")
    for who, statements in grants.items():
        click.echo(f"\nThe least that a role needs as {who}:")
        for statement in statements:
            say(f"    {statement};")
