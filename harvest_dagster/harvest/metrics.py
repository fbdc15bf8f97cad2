"""Figures of a harvest for Prometheus, and whether it is sound, over HTTP where asked for.

    /metrics   what was done, what waits, who leads
    /health    200 while the harvest runs, 503 when it has failed, or has ended

Each request is answered on a thread of its own, from what the harvest has in memory: nobody is
asked, so that an answer comes at once whatever has become of PostgreSQL and Kafka.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from harvest_dagster.election.candidate import State
from harvest_dagster.errors import ConfigError
from harvest_dagster.harvest.harvest import Harvest

_COUNTERS = {
    "published": "Records that Kafka has acknowledged",
    "purged": "Records that were removed from the outbox",
    "remarked": "Records that were given up, and marked again",
    "parked": "Records that were set aside, because Kafka will never take them",
}


class HarvestCollector(Collector):
    """The figures of one harvest; register it wherever a program's own are."""

    def __init__(self, harvest: Harvest) -> None:
        self._harvest = harvest

    def collect(self) -> Iterable[Metric]:
        """Read the figures as they are now."""
        yield from self._totals()
        yield from self._terms()
        yield from self._backlog()

    def _totals(self) -> Iterator[Metric]:
        totals = {shard: self._harvest.totals(shard) for shard in self._shards()}
        for name, said in _COUNTERS.items():
            family = CounterMetricFamily(f"harvest_{name}_records", said, labels=("name", "shard"))
            for shard, total in totals.items():
                family.add_metric(self._labels(shard), getattr(total, name))
            yield family

    def _terms(self) -> Iterator[Metric]:
        leader = _gauge("leader", "1 if this process leads, else 0", "shard")
        epoch = _gauge("epoch", "The epoch under which this process leads", "shard")
        in_flight = _gauge("in_flight_records", "Records marked, and not purged yet", "shard")
        for shard in self._shards():
            leader.add_metric(self._labels(shard), self._harvest.is_leader(shard))
            in_flight.add_metric(self._labels(shard), self._harvest.in_flight(shard))
            held = self._harvest.epoch(shard)
            if held is not None:
                epoch.add_metric(self._labels(shard), held)
        return iter((leader, epoch, in_flight))

    def _backlog(self) -> Iterator[Metric]:
        """Tell what waits in the table, which is one for all shards, and known to leaders alone."""
        records = _gauge("backlog_records", "Records that wait in the outbox")
        oldest = _gauge("oldest_seconds", "How long the first of them has waited")
        found = self._harvest.backlog
        if found is not None and self._harvest.shards:
            records.add_metric((self._harvest.config.name,), found.records)
            oldest.add_metric((self._harvest.config.name,), found.oldest_seconds)
        return iter((records, oldest))

    def _shards(self) -> range:
        return range(self._harvest.config.shards)

    def _labels(self, shard: int) -> tuple[str, str]:
        return (self._harvest.config.name, str(shard))


@contextmanager
def metrics_served(harvest: Harvest, address: str) -> Iterator[str]:
    """Serve both pages at `host:port`; tell the address, where port 0 has become a free one."""
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(HarvestCollector(harvest))
    server = _server(host.strip("[]"), int(port), partial(_Handler, harvest, registry))
    thread = threading.Thread(target=server.serve_forever, name="harvest-metrics", daemon=True)
    thread.start()
    try:
        yield f"{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _server(host: str, port: int, handler: partial[_Handler]) -> ThreadingHTTPServer:
    class Server(ThreadingHTTPServer):
        address_family = AF_INET6 if ":" in host else AF_INET

    try:
        return Server((host, port), handler)
    except OSError as error:
        raise ConfigError(
            f"metrics: {host}:{port} can't be listened on: {error.strerror}; give another address"
        ) from None


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    def __init__(self, harvest: Harvest, registry: CollectorRegistry, *request: object) -> None:
        self._harvest, self._registry = harvest, registry
        super().__init__(*request)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """Answer."""
        page = self.path.partition("?")[0]
        if page == "/metrics":
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, kind, encode(self._registry))
        elif page == "/health":
            status = HTTPStatus.OK if _is_sound(self._harvest) else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "application/json", json.dumps(_health(self._harvest)).encode())
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"there are /metrics and /health\n")

    def log_message(self, *_: object) -> None:
        """Say nothing: a scrape is no event."""

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _is_sound(harvest: Harvest) -> bool:
    try:
        harvest.wait(0)
    except BaseException:  # noqa: BLE001 - whatever has ended it
        return False
    return harvest.state is State.RUNNING


def _health(harvest: Harvest) -> dict[str, object]:
    shards = [shard for shard in range(harvest.config.shards) if harvest.is_leader(shard)]
    return {"state": harvest.state.value, "leader": bool(shards), "shards": shards}


def _gauge(name: str, said: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"harvest_{name}", said, labels=("name", *labels))
