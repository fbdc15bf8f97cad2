"""`harvest reap`, or `harvest outbox run`: harvest an outbox for as long as this process leads."""

from __future__ import annotations

import logging
from contextlib import suppress

import click

from harvest_dagster.cli.console import Form, logged
from harvest_dagster.cli.live import Live
from harvest_dagster.cli.run import LOG, Program, run, run_options
from harvest_dagster.cli.shared_options import outbox_options
from harvest_dagster.config import load_settings
from harvest_dagster.harvest.backlog_metrics import HarvestCollector
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.harvesting import Harvesting
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.reaper_yaml import Reaper, load_reaper_yaml
from harvest_dagster.outbox.schema import begin
from harvest_dagster.postgres.connect import UNAVAILABLE, connected
from harvest_dagster.postgres.names import TableName


@click.command(short_help="Publish what is stashed, for as long as this process leads.")
@click.option(
    "-f", "--file", metavar="REAPER.YAML", help="goharvest's reaper.yaml, or one with our keys."
)
@click.option(
    "--create/--no-create",
    default=True,
    help="Make the schema `harvest` where there is none yet [default: create]",
)
@run_options
@outbox_options
def reap(
    *,
    file: str | None,
    create: bool,
    form: Form,
    metrics: str | None,
    stop_seconds: float,
    outbox: str | None,
    postgres: str | None,
) -> None:
    """Publish what is stashed, for as long as this process leads, until SIGTERM or Ctrl-C.

    Run as many as you like: one leads, the others stand by. Without a file it harvests the outbox
    of the settings exactly once; a file means what it means to goharvest, so at least once unless
    it says otherwise. The exit code is 0 if all that was in flight has settled.
    """
    if file and (outbox or postgres):
        raise click.UsageError("--outbox and --postgres go without -f: the file tells both")
    config, level = _configured(file, outbox, postgres)
    if metrics is not None:
        config = HarvestConfig.model_validate({**dict(config), "metrics": metrics})
    settle_heap()
    with logged(form, level) as console:
        _begin(config, may_create=create)
        harvest = Harvest(config)
        live = Live(harvest, logs_figures=not console.is_live)
        harvest.set_event_handler(live.hear)
        program = Program(harvest.runner, harvest.start, live, HarvestCollector(harvest))
        run(program, console, config.metrics, stop_seconds)


def _begin(config: HarvestConfig, *, may_create: bool) -> None:
    """Have the schema, and refuse an outbox that is not there; who can't be reached is awaited."""
    with (
        suppress(*UNAVAILABLE),
        connected(Harvesting(config).postgres_url, "command") as connection,
    ):
        if begin(connection, TableName.parse(config.outbox), may_create=may_create):
            LOG.info("made the schema harvest, which was missing")


def _configured(file: str | None, outbox: str | None, postgres: str | None) -> Reaper:
    if file is not None:
        return load_reaper_yaml(file)
    settings = load_settings(outbox=outbox, postgres=postgres)
    config = HarvestConfig.model_validate(
        {
            "outbox": settings.outbox,
            "postgres": settings.postgres_url(),
            "base_kafka": settings.kafka_config(),
        }
    )
    return Reaper(config, logging.INFO)
