"""`harvest reap`: stand for election, and harvest what it is elected for, until told to stop.

The main thread waits for whatever happens first, and shows the live line meanwhile:

    running    a signal, or the harvest's own end
    stopping   the end, a second signal, or the time is over; the last two end it hard, which is
               safe, because whoever leads next fences what this process may have left behind
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import nullcontext, suppress
from queue import Empty, SimpleQueue

import click

from harvest_dagster.cli.console import Console, Form, logged
from harvest_dagster.cli.live import Live
from harvest_dagster.cli.options import outbox_option, postgres_option
from harvest_dagster.config import load_settings
from harvest_dagster.harvest.config import HarvestConfig
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.harvest.heap import settle_heap
from harvest_dagster.harvest.metrics import metrics_served
from harvest_dagster.harvest.reaper_yaml import Reaper, load_reaper_yaml

_LOG = logging.getLogger("harvest_dagster.reap")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SHOW_SECONDS = 1.0
_LAST_WORD_SECONDS = 1.0
_SAME_SECONDS = 0.5
_ENDED = "the harvest ended"
Happened = SimpleQueue[str]


@click.command(short_help="Publish what is stashed, for as long as this process leads.")
@click.option(
    "-f", "--file", metavar="REAPER.YAML", help="goharvest's reaper.yaml, or one with our keys."
)
@click.option(
    "--log",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to log on stderr: lines for people, or an object a line for machines.",
)
@click.option(
    "--metrics", metavar="ADDRESS", help="Serve /metrics and /health at [host:]port [default: no]"
)
@click.option(
    "--stop-seconds",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="How long what is in flight may take to settle, when told to stop.",
)
@outbox_option
@postgres_option
def reap(
    *,
    file: str | None,
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
        harvest = Harvest(config)
        with metrics_served(harvest, config.metrics) if config.metrics else nullcontext() as where:
            if where:
                _LOG.info("metrics: http://%s/metrics, http://%s/health", where, where)
            _run(harvest, console, stop_seconds)


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


def _run(harvest: Harvest, console: Console, stop_seconds: float) -> None:
    happened: Happened = SimpleQueue()
    _listen(happened)
    live = Live(harvest, logs_figures=not console.is_live)
    harvest.set_event_handler(live.told)
    harvest.start()
    threading.Thread(target=_watch, args=(harvest, happened), daemon=True).start()
    first = _wait(happened, console, live)
    if first != _ENDED:
        _LOG.info("%s: what is in flight settles first; once more ends it at once", first)
    threading.Thread(target=_stop, args=(harvest, happened), daemon=True).start()
    second = _wait(happened, console, live, stop_seconds)
    if second != _ENDED:
        _end_hard(second)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # while Python ends, one would still kill it
    _tell_end(harvest)


def _listen(happened: Happened) -> None:
    """Have signals told; one that follows at once, as `timeout` sends it, says nothing new."""
    heard = -_SAME_SECONDS

    def hear(number: int, _frame: object) -> None:
        nonlocal heard
        if time.monotonic() - heard >= _SAME_SECONDS:
            heard = time.monotonic()
            happened.put(signal.Signals(number).name)  # made to be called in the midst of anything

    for number in _SIGNALS:
        signal.signal(number, hear)


def _watch(harvest: Harvest, happened: Happened) -> None:
    with suppress(BaseException):  # told at the end
        harvest.wait()
    happened.put(_ENDED)


def _stop(harvest: Harvest, happened: Happened) -> None:
    with suppress(BaseException):  # likewise
        harvest.stop()
    happened.put(_ENDED)


def _wait(happened: Happened, console: Console, live: Live, seconds: float = float("inf")) -> str:
    """Wait until something happens, or for so long; tell what."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if console.is_live:
            console.show(live.line())
        with suppress(Empty):
            return happened.get(timeout=min(left, _SHOW_SECONDS))
    return f"not settled after {seconds:g} s"


def _end_hard(why: str) -> None:
    said = "%s: ends at once; the next leader marks again what was in flight"
    last_word = threading.Thread(target=_LOG.error, args=(said, why), daemon=True)
    last_word.start()
    last_word.join(_LAST_WORD_SECONDS)  # whoever reads our log may have stopped reading
    os._exit(1)


def _tell_end(harvest: Harvest) -> None:
    try:
        harvest.wait(0)
    except BaseException:  # noqa: BLE001 - the log has it already, as one line or as a traceback
        sys.exit(1)
    totals = [harvest.totals(shard) for shard in range(harvest.config.shards)]
    published, parked = sum(t.published for t in totals), sum(t.parked for t in totals)
    _LOG.info("ended: %s published, %s parked", f"{published:,}", f"{parked:,}")
