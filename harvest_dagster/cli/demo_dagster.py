"""The demo's second half: Dagster's sensor leads, an asset stashes, and Kafka has the messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harvest_dagster.cli.show import print_table
from harvest_dagster.cli.topic import HEAD, cells
from harvest_dagster.clock import Deadline
from harvest_dagster.config import Settings
from harvest_dagster.errors import EmbeddedError
from harvest_dagster.kafka.newest import read_newest
from harvest_dagster.outbox import Outbox
from harvest_dagster.postgres.connect import connected
from harvest_dagster.postgres.statements import statements

if TYPE_CHECKING:
    from harvest_dagster.embedded.graphql import GraphQl, Location

_SQL = statements("harvest_dagster.cli", "demo.sql")
_ORDERS = {"ops": {"orders": {"config": {"count": 20, "customers": 5}}}}
_WAIT_SECONDS, _POLL = 600.0, 0.5  # a busy machine takes minutes to start Spark
_LAST = 2
_SALES = ("till_orders", "till_payments", "clean_orders", "daily_sales", "large_orders")
TOPIC, SALES_TOPIC = "orders", "daily-sales"


def can_show() -> bool:
    """Return whether Dagster is installed, and a code location is here."""
    return find_spec("dagster_webserver") is not None and Path("workspace.yaml").exists()


def show_in_dagster(
    settings: Settings, outbox: Outbox, say: Callable[[str], None], since: float
) -> str:
    """Start Dagster, materialise assets, wait until Kafka has all of it; return the UI's URL."""
    # What it needs comes with the `embedded` extra.
    from harvest_dagster.embedded import background_ui  # noqa: PLC0415

    click.echo("4/6  Dagster: its sensor leads, and the asset orders stashes twenty more")
    shown = _Shown(*background_ui.start(settings.home, say), say)
    # Before the first asset: on a small machine its run would delay the run of the tour.
    wait_for(lambda: not _waiting(settings, outbox), "the outbox to empty")
    took = time.monotonic() - since
    say(f"the sensor leads: the messages stashed above are in Kafka, {took:.0f} s after the start;")
    say(f"the tour that brought them: {shown.url}/runs")
    shown.materialize(["orders"], _ORDERS)
    click.echo("5/6  Spark: a day's orders cleaned and summed up; a row and a message of each sum")
    shown.materialize(_SALES, {}, str(datetime.now(UTC).date() - timedelta(days=1)))
    say("waiting for the leader to mark, publish and purge")
    wait_for(lambda: not _waiting(settings, outbox), "the outbox to empty")
    click.echo("6/6  the newest messages in Kafka, as a consumer reads what was committed")
    kafka = settings.kafka_config()
    newest = [one for topic in (TOPIC, SALES_TOPIC) for one in read_newest(kafka, topic, _LAST)]
    print_table(HEAD, [cells(message) for message in newest])
    return shown.url


@dataclass(frozen=True)
class _Shown:
    """A Dagster that runs, and its code location."""

    url: str
    ui: GraphQl
    location: Location
    say: Callable[[str], None]

    def materialize(
        self, assets: Sequence[str], config: dict[str, Any], partition: str | None = None
    ) -> None:
        """Materialise assets, and wait until they are."""
        run = self.ui.materialize(self.location, assets, config, partition)
        self.say(f"materialising {', '.join(assets)}: {self.url}/runs/{run}")
        wait_for(
            lambda: self.ui.run_status(run) in {"SUCCESS", "FAILURE", "CANCELED"},
            f"the run {self.url}/runs/{run} to end",
        )
        if self.ui.run_status(run) != "SUCCESS":
            raise EmbeddedError(f"the assets could not be materialised: see {self.url}/runs/{run}")


def stop_dagster(home: Path, say: Callable[[str], None]) -> None:
    """End the Dagster that was started, if there is one."""
    from harvest_dagster.embedded import background_ui  # noqa: PLC0415

    background_ui.stop(home, say)


def _waiting(settings: Settings, outbox: Outbox) -> int:
    with connected(settings.postgres_url(), "demo") as connection:
        row = connection.execute(_SQL["waiting"].sql(table=outbox.table)).fetchone()
    return int(row[0]) if row else 0


def wait_for(true: Callable[[], bool], what: str, seconds: float = _WAIT_SECONDS) -> None:
    """Wait until something holds; raise an EmbeddedError if it does not within the time."""
    deadline = Deadline(seconds)
    while not true():
        if deadline.over:
            raise EmbeddedError(
                f"gave up after {seconds:.0f} s waiting for {what}: is this machine busy? Dagster's"
                " log, which is named above, says more"
            )
        time.sleep(_POLL)
