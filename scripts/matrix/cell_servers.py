"""The servers that a cell's tests find running: one of them of another version than the library's.

The tests take the servers of a home, and start them only if they do not run. So these are started
first, in the home that the tests are given; and they must be the same when the tests are done.
"""

from __future__ import annotations

import psycopg

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers, home_state
from harvest_dagster.embedded.home_folder import make_private
from harvest_dagster.embedded.ivy import Module
from harvest_dagster.embedded.kafka_node import JARS, KafkaNode
from harvest_dagster.embedded.launch import Launch
from harvest_dagster.embedded.part import Part, Site
from harvest_dagster.embedded.postgres_server import BUILTIN, PostgresServer
from scripts.matrix import FOLDER

HOME = FOLDER / "home"
_OWN_LOCALE = 17
"""The first PostgreSQL that has a locale of its own, and needs none of the machine's."""


def start(postgres: Module | None = None, kafka: Module = JARS) -> Servers:
    """Start a PostgreSQL and a Kafka, by these builds."""
    make_private(HOME)
    state = home_state.HomeState(1, secure=False, ports=home_state.choose_ports(1))
    parts: list[Part] = [PostgresServer(postgres, _locale(postgres)), KafkaNode(1, kafka)]
    Launch(Site(HOME, state), lambda _line: None, parts).run()
    return embedded.up(HOME, say=lambda _line: None)


def stop() -> None:
    """Stop what runs, and delete its data."""
    if HOME.exists():
        embedded.reset(HOME, say=lambda _line: None)


def check_same(servers: Servers) -> None:
    """Raise an error if a server was started anew, which would be one of the library's."""
    now = embedded.status(HOME).servers
    if now is None or [each.pid for each in now.each] != [each.pid for each in servers.each]:
        raise LookupError("a test has started the servers anew: leave it out of these cells")


def postgres_version(servers: Servers) -> str:
    """Return what PostgreSQL says it is."""
    with psycopg.connect(servers.postgres) as connection:
        return connection.info.parameter_status("server_version") or ""


def _locale(build: Module | None) -> tuple[str, ...]:
    major = int(build.name.split("-")[1].split(".")[0]) if build else _OWN_LOCALE
    return BUILTIN if major >= _OWN_LOCALE else ("--locale=C.UTF-8",)
