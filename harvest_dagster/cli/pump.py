"""`harvest pump`: make load for an outbox."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from harvest_dagster.cli.shared_options import chosen, connected, outbox_options
from harvest_dagster.cli.show import CountLine
from harvest_dagster.outbox import Message
from harvest_dagster.outbox import stash as stash_messages

_FASTEST_BATCH = 10_000
_BATCHES_A_SECOND = 20
_LARGEST = 1 << 30
"""PostgreSQL's limit of a value; topics take less, which is said of the first message."""


@click.command()
@click.option(
    "--records",
    default=100_000,
    show_default=True,
    type=click.IntRange(0),
    help="How many messages.",
)
@click.option(
    "--keys",
    default=1000,
    show_default=True,
    type=click.IntRange(1),
    help="How many different keys they have.",
)
@click.option("--topic", default="pump", show_default=True, help="The topic that they are for.")
@click.option(
    "--size",
    default=100,
    show_default=True,
    type=click.IntRange(0, _LARGEST),
    help="Bytes a value.",
)
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Messages a second, at most.")
@click.option("--batch", type=click.IntRange(1), help="Messages a transaction.")
@outbox_options
def pump(
    *,
    records: int,
    keys: int,
    topic: str,
    size: int,
    rate: float | None,
    batch: int | None,
    outbox: str | None,
    postgres: str | None,
) -> None:
    """Stash made-up messages, to try out and to measure.

    Each value begins with the message's number, so that a reader can tell order, loss and doubles;
    a message's key is its number modulo --keys.
    """
    settings, place = chosen(postgres, outbox)
    step = batch or _batch(rate)
    line = CountLine("messages stashed", records)
    start = time.monotonic()
    with connected(settings) as connection, _said_if_interrupted(line):
        for first in range(0, records, step):
            messages = _messages(range(first, min(first + step, records)), keys, topic, size)
            with _finished_first():
                stashed = stash_messages(connection, messages, outbox=place)
                connection.commit()
                line.add(stashed)
            if rate:
                time.sleep(max(0.0, start + line.count / rate - time.monotonic()))
    click.echo(f"{line.line()} into {place.table}")


@contextmanager
def _said_if_interrupted(line: CountLine) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"{line.line()}: these stay", err=True)
        raise


@contextmanager
def _finished_first() -> Iterator[None]:
    """Finish what is begun before Ctrl-C takes effect, or it isn't known what stays; twice: end."""
    came: list[int] = []

    def hear(number: int, _frame: object) -> None:
        signal.signal(number, signal.default_int_handler)
        came.append(number)

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def _batch(rate: float | None) -> int:
    if rate is None:
        return _FASTEST_BATCH
    return max(1, min(_FASTEST_BATCH, int(rate / _BATCHES_A_SECOND)))


def _messages(numbers: range, keys: int, topic: str, size: int) -> Iterator[Message]:
    for number in numbers:
        value = str(number).encode().ljust(size, b" ")
        yield Message(topic, str(number % keys), value)
