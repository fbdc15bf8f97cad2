"""Write those pages of the docs that are made from the code; `make docs` runs it.

Each page is a function that yields its lines. A test compares the pages with the files, so that
code and pages are changed together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
from prometheus_client.core import Metric

from harvest_dagster.cli import main
from harvest_dagster.harvest import leader_events as events
from harvest_dagster.harvest.backlog_metrics import HarvestCollector
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.harvesting import FIGURES
from harvest_dagster.postgres.migrations import migrations
from harvest_dagster.postgres.statements import statements
from harvest_dagster.work.room import kinds
from scripts.markdown import grid, sql
from scripts.matrix import cell_results
from scripts.reference_config import config

DOCS = Path(__file__).resolve().parent.parent / "docs"
WIDTH = 96
_HEARD = (
    events.LeaderAcquired,
    events.LeaderRefreshed,
    events.LeaderRevoked,
    events.LeaderFenced,
    events.MeterRead,
    events.Stats,
)
_TABLE = re.compile(
    r"((?:^-- .*\n)+)(?:^CREATE SCHEMA .*\n)?(^CREATE TABLE (\S+) \((?:.|\n)*?;\n)", re.MULTILINE
)
_CHANGE = re.compile(r"((?:^-- .*\n)+)(^ALTER TABLE (\S+) ADD COLUMN (?:.|\n)*?;\n)", re.MULTILINE)
_STAGES = (
    "election.candidate",
    "harvest.tour",
    "harvest.stage",
    "harvest.mark",
    "harvest.gaps",
    "harvest.publish_exactly_once",
    "harvest.late_end",
    "harvest.publish_at_least_once",
    "harvest.purge",
    "harvest.recover",
    "work.led",
    "work.runner",
    "work.delegate",
    "orchestration.candidacy",
    "reader.reading",
    "reader.read_round",
    "reader.gathering",
    "reader.intake",
    "reader.postgres_store",
)


def pages() -> dict[Path, str]:
    """Return the text of every page, by its file."""
    made = {
        "reference/config.md": config(),
        "reference/cli.md": commands(),
        "reference/events.md": history(),
        "reference/tables.md": tables(),
        "reference/metrics.md": figures(),
        "reference/runs-on.md": cell_results.page(cell_results.read()),
        "explanation/inside.md": inside(),
    }
    return {DOCS / file: "\n".join(lines).rstrip() + "\n" for file, lines in made.items()}


def commands() -> Iterator[str]:
    """Yield the page with the help of each command."""
    yield "# Commands\n"
    yield "What `--help` says of each."
    for context in _contexts(main, "harvest", None):
        said = context.command.get_help(context)
        yield f"\n## {context.command_path}\n\n```text\n{said}\n```"


def history() -> Iterator[str]:
    """Yield the page of the events, in the table and for a program that embeds a harvest."""
    yield "# Events\n"
    yield "## In the table `harvest.event`\n"
    yield "Each has time, harvest, shard, epoch and leader id as far as it has them, and in"
    yield "`detail` what is said here. [Operate](../how-to/operate.md) says what to do about it.\n"
    yield from grid(
        ("kind", "means"),
        ((f"`{kind}`", said) for kind, said in kinds().items()),
    )
    yield "\n## For a program that embeds a harvest\n"
    yield "Of `harvest_dagster.harvest`; [embed](../how-to/embed.md) shows how to hear them.\n"
    yield from grid(("event", "has", "means"), map(_class, _HEARD))


def tables() -> Iterator[str]:
    """Yield the page of the tables of the schema `harvest`, and of the outbox."""
    own = statements("harvest_dagster.outbox", "table.sql")
    yield "# Tables\n"
    yield "To be read at any time, and written by harvest_dagster alone, but for the outbox."
    yield "[Operate](../how-to/operate.md#by-hand) has queries.\n"
    yield "## The outbox\n"
    yield "[The outbox's table](../how-to/outbox.md) compares the two kinds.\n"
    for name in ("create_native", "create_goharvest"):
        text = own[name].text.format(table="outbox").replace("{{}}", "{}")
        yield f"{own[name].purpose.capitalize()}:\n\n{sql(text + ';')}\n"
    yield "## The schema harvest\n"
    yield "`harvest outbox create` and `migrate` make it, by migrations that run once each.\n"
    first = statements("harvest_dagster.postgres", "migrations.sql")["table"]
    yield f"### harvest.migration\n\n{first.purpose.capitalize()}.\n\n{sql(first.text + ';')}"
    for migration in migrations():
        for comment, statement, name in _TABLE.findall(migration.text):
            made = f"Made by {migration.number} {migration.name}."
            yield f"\n### {name}\n\n{_said(comment)}\n{made}"
            yield f"\n{sql(statement)}"
            yield from _changes(name)


def _changes(table: str) -> Iterator[str]:
    """Yield the columns that later migrations have added to a table."""
    for migration in migrations():
        for comment, statement, name in _CHANGE.findall(migration.text):
            if name == table:
                yield f"\nAdded by {migration.number} {migration.name}:\n{_said(comment)}"
                yield sql(statement)


def _said(comment: str) -> str:
    return re.sub(r"^-- ", "", comment, flags=re.MULTILINE)


def figures() -> Iterator[str]:
    """Yield the page of the figures for Prometheus."""
    yield "# Metrics\n"
    yield "`harvest reap --metrics` serves them at `/metrics`; a program that embeds a harvest"
    yield "registers `harvest_dagster.harvest.HarvestCollector`."
    yield "[Monitor](../how-to/monitor.md) has a dashboard, and alerts.\n"
    yield from grid(("figure", "type", "labels", "is"), map(_figure, families()))


def families() -> list[Metric]:
    """Return the figures, as a leader exports them."""
    one = dict.fromkeys([figure.name for figure in FIGURES], 1)
    runner = SimpleNamespace(
        led=SimpleNamespace(name="outbox", figures=FIGURES, candidate=SimpleNamespace(shards=1)),
        figures=lambda _shard: one,
        leads=lambda _shard: True,
        lease=lambda _shard: SimpleNamespace(epoch=1),
    )
    leader = SimpleNamespace(
        config=SimpleNamespace(name="outbox"),
        runner=runner,
        shards=(0,),
        backlog=SimpleNamespace(records=1, oldest_seconds=1.0),
    )
    return list(HarvestCollector(cast("Harvest", leader)).collect())


def inside() -> Iterator[str]:
    """Yield the page of the stages, which is made of their modules' docstrings."""
    yield "# Inside, stage by stage\n"
    yield "What each part may block on, who calls it, and on which thread: this is what the modules"
    yield "say of themselves. [How it works](concurrency.md) is the way in."
    for name in _STAGES:
        title, _, text = (getdoc(import_module(f"harvest_dagster.{name}")) or "").partition("\n")
        yield f"\n## {name}\n\n{title}\n{text}"


def _contexts(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[click.Context]:
    context = click.Context(command, parent, name, terminal_width=WIDTH, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for inner in sorted(command.commands):
            yield from _contexts(command.commands[inner], inner, context)


def _class(kind: Any) -> tuple[str, str, str]:  # noqa: ANN401 - any dataclass
    names = ", ".join(f"`{field.name}`" for field in fields(kind))
    return f"`{kind.__name__}`", names, getdoc(kind) or ""


def _figure(family: Metric) -> tuple[str, str, str, str]:
    (sample,) = family.samples
    labels = ", ".join(f"`{label}`" for label in sample.labels)
    return f"`{sample.name}`", family.type, labels, family.documentation


if __name__ == "__main__":
    for page, content in pages().items():
        page.write_text(content)
