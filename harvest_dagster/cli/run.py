"""How a command runs whatever is led in this process, until it is told to stop.

The main thread waits for whatever happens first, and shows how far it has come meanwhile:

    running    a signal, or the runner's own end
    stopping   the end, a second signal, or the time is over; the last two end it hard, which is
               safe, because whoever leads next fences what this process may have left behind

All of these come through one queue: signals from their handlers, the end from the thread on which
the runner ends. One more thread is there while it stops, since the main thread goes on to listen.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

import click
from prometheus_client.registry import Collector

from harvest_dagster.cli.console import Console
from harvest_dagster.cli.shared_options import with_options
from harvest_dagster.clock import Deadline
from harvest_dagster.errors import ConfigError
from harvest_dagster.work.address import whole_address
from harvest_dagster.work.metrics import served
from harvest_dagster.work.runner import Runner

LOG = logging.getLogger("harvest_dagster.run")
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SHOW_SECONDS = 1.0
_LAST_WORD_SECONDS = 1.0
_SAME_SECONDS = 0.5
_ENDED = "it ended"
_Happened = SimpleQueue[str]


class Watch(Protocol):
    """Shows how far a runner has come; the main thread calls it."""

    def show(self, console: Console) -> None:
        """Show it as it is now; about once a second."""

    def total(self) -> str:
        """Return what was done in all."""


class Program(NamedTuple):
    """What is run: `start` begins it, the runner says when it has ended."""

    runner: Runner
    start: Callable[[], None]
    watch: Watch
    collector: Collector | None = None
    """Of the metrics, where there are more than the runner's."""


def _address(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    try:
        return None if given is None else whole_address(given)
    except ValueError as error:
        raise ConfigError(f"metrics: {error}") from None


run_options = with_options(
    click.option(
        "--log",
        "form",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How to log on stderr: lines for people, or an object a line for machines.",
    ),
    click.option(
        "--metrics",
        metavar="ADDRESS",
        callback=_address,
        help="Serve /metrics and /health at [host:]port [default: no]",
    ),
    click.option(
        "--stop-seconds",
        type=click.FloatRange(0),
        default=30.0,
        show_default=True,
        help="How long what is in flight may take to settle, when told to stop.",
    ),
)
"""The options of all that run."""


def run(program: Program, console: Console, metrics: str | None, stop_seconds: float) -> None:
    """Run it until it ends, or is told to; exit with 1 unless all that was begun has settled."""
    runner = program.runner
    with served(runner, metrics, program.collector) if metrics else nullcontext() as where:
        if where:
            LOG.info("metrics: http://%s/metrics, http://%s/health", where, where)
        _run(program, console, stop_seconds)


def _run(program: Program, console: Console, stop_seconds: float) -> None:
    happened: _Happened = SimpleQueue()
    _listen(happened)
    program.runner.at_end(lambda: happened.put(_ENDED))
    program.start()
    first = _wait(happened, console, program.watch)
    if first != _ENDED:
        LOG.info("%s: what is in flight settles first; once more ends it at once", first)
        threading.Thread(target=_stop, args=(program.runner,), daemon=True).start()
        second = _wait(happened, console, program.watch, stop_seconds)
        if second != _ENDED:
            _end_hard(second)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # while Python ends, one would still kill it
    _say_end(program)


def _listen(happened: _Happened) -> None:
    """Put signals into the queue; one that follows at once, as `timeout` sends it, is no second."""
    heard = -_SAME_SECONDS

    def hear(number: int, _frame: object) -> None:
        nonlocal heard
        if time.monotonic() - heard >= _SAME_SECONDS:
            heard = time.monotonic()
            happened.put(signal.Signals(number).name)  # made to be called in the midst of anything

    for number in _SIGNALS:
        signal.signal(number, hear)


def _stop(runner: Runner) -> None:
    with suppress(BaseException):  # said at the end
        runner.stop()


def _wait(
    happened: _Happened, console: Console, watch: Watch, seconds: float = float("inf")
) -> str:
    """Wait until something happens, or for so long; return what."""
    deadline = Deadline(seconds)
    while not deadline.over:
        watch.show(console)
        with suppress(Empty):
            return happened.get(timeout=min(deadline.left, _SHOW_SECONDS))
    return f"not settled after {seconds:g} s"


def _end_hard(why: str) -> None:
    said = "%s: ends at once; the next leader marks again what was in flight"
    last_word = threading.Thread(target=LOG.error, args=(said, why), daemon=True)
    last_word.start()
    last_word.join(_LAST_WORD_SECONDS)  # whoever reads our log may have stopped reading
    os._exit(1)


def _say_end(program: Program) -> None:
    try:
        program.runner.wait(0)
    except BaseException:  # noqa: BLE001 - the log has it already, as one line or as a traceback
        sys.exit(1)
    LOG.info("ended: %s", program.watch.total())
