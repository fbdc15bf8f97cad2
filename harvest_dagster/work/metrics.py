"""Figures of works for Prometheus, and whether their runner is sound, over HTTP where asked for.

    /metrics   what was done, what is so now, who leads
    /health    200 while the runner runs, 503 when it has failed, or has ended

Each request is answered on a thread of its own, from what the runner has in memory: nobody is
asked, so that an answer comes at once whatever has become of PostgreSQL and Kafka.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from socket import AF_INET, AF_INET6
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from harvest_dagster.election.candidate import State
from harvest_dagster.errors import ConfigError
from harvest_dagster.work.led import Figure
from harvest_dagster.work.runner import Runner

_LABELS = ("name", "shard")


class WorkCollector(Collector):
    """The figures of one runner; register it wherever a program's own are."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def collect(self) -> Iterable[Metric]:
        """Read the figures as they are now."""
        figures = {shard: self._runner.figures(shard) for shard in self._shards()}
        for figure in self._runner.led.figures:
            yield self._family(figure, figures)
        yield from self._terms()

    def _family(self, figure: Figure, figures: dict[int, dict[str, int]]) -> Metric:
        kind = CounterMetricFamily if figure.counts else GaugeMetricFamily
        family: Any = kind(figure.metric, figure.says, labels=_LABELS)
        for shard, known in figures.items():
            family.add_metric(self._of(shard), known[figure.name])
        return family  # type: ignore[no-any-return] # either is a Metric

    def _terms(self) -> Iterator[Metric]:
        leader = GaugeMetricFamily(
            "harvest_leader", "1 if this process leads, else 0", labels=_LABELS
        )
        epoch = GaugeMetricFamily(
            "harvest_epoch", "The epoch under which this process leads", labels=_LABELS
        )
        for shard in self._shards():
            leader.add_metric(self._of(shard), self._runner.leads(shard))
            held = self._runner.lease(shard)
            if held is not None:
                epoch.add_metric(self._of(shard), held.epoch)
        return iter((leader, epoch))

    def _shards(self) -> range:
        return range(self._runner.led.candidate.shards)

    def _of(self, shard: int) -> tuple[str, str]:
        return (self._runner.led.name, str(shard))


@contextmanager
def served(runner: Runner, address: str, collector: Collector | None = None) -> Iterator[str]:
    """Serve both pages at `host:port`; give the address, where port 0 has become a free one.

    The metrics are those of the collector, or else of the runner.
    """
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(collector or WorkCollector(runner))
    server = _server(host, int(port), _pages(runner, make_wsgi_app(registry)))
    thread = threading.Thread(target=server.serve_forever, name="harvest-metrics", daemon=True)
    thread.start()
    try:
        yield f"{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _server(host: str, port: int, pages: Callable[..., Any]) -> ThreadingWSGIServer:
    class Server(ThreadingWSGIServer):
        address_family = AF_INET6 if ":" in host else AF_INET
        daemon_threads = True

    class Silent(WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing: a scrape is no event."""

    try:
        return make_server(host.strip("[]"), port, pages, Server, handler_class=Silent)
    except OSError as error:
        raise ConfigError(
            f"metrics: {host}:{port} can't be listened on: {error.strerror}; give another address"
        ) from None


def _pages(runner: Runner, metrics: Callable[..., Any]) -> Callable[..., Any]:
    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Any:  # noqa: ANN401 - WSGI's
        page = environ["PATH_INFO"]
        if page == "/metrics":
            return metrics(environ, start)
        status, kind, body = HTTPStatus.NOT_FOUND, "text/plain", "there are /metrics and /health\n"
        if page == "/health":
            status = HTTPStatus.OK if _is_sound(runner) else HTTPStatus.SERVICE_UNAVAILABLE
            kind, body = "application/json", json.dumps(_health(runner))
        start(f"{status.value} {status.phrase}", [("Content-Type", kind)])
        return [body.encode()]

    return answer


def _is_sound(runner: Runner) -> bool:
    try:
        runner.wait(0)
    except BaseException:  # noqa: BLE001 - whatever has ended it
        return False
    return runner.state is State.RUNNING


def _health(runner: Runner) -> dict[str, object]:
    shards = [shard for shard in range(runner.led.candidate.shards) if runner.leads(shard)]
    return {"state": runner.state.value, "leader": bool(shards), "shards": shards}
