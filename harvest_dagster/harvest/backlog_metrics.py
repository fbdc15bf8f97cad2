"""What Prometheus is told of a harvest beside the figures of its tours: what waits in the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.work.metrics import WorkCollector


class HarvestCollector(Collector):
    """The figures of one harvest; register it wherever a program's own are."""

    def __init__(self, harvest: Harvest) -> None:
        self._harvest, self._works = harvest, WorkCollector(harvest.runner)

    def collect(self) -> Iterable[Metric]:
        """Read the figures as they are now."""
        yield from self._works.collect()
        yield from self._backlog()

    def _backlog(self) -> Iterator[Metric]:
        """Give what waits in the table, which is one for all shards, and known to leaders alone."""
        name = self._harvest.config.name
        records = GaugeMetricFamily(
            "harvest_backlog_records", "Records that wait in the outbox", labels=("name",)
        )
        oldest = GaugeMetricFamily(
            "harvest_oldest_seconds", "How long the first of them has waited", labels=("name",)
        )
        found = self._harvest.backlog
        if found is not None and self._harvest.shards:
            records.add_metric((name,), found.records)
            oldest.add_metric((name,), found.oldest_seconds)
        return iter((records, oldest))
