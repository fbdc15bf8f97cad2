"""Make what a home's servers need before they can start, where it is missing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from harvest_dagster.embedded import (
    certificates,
    home_state,
    kafka_node,
    ports,
    postgres_server,
)
from harvest_dagster.embedded.home_folder import check_space, make_private
from harvest_dagster.embedded.jars import have_jars
from harvest_dagster.embedded.java import find_java
from harvest_dagster.embedded.postgres_programs import have_programs
from harvest_dagster.embedded.server_logs import log_of
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from harvest_dagster.embedded.home_state import HomeState

    Task = Callable[[], None]


def set_up(
    home: Path, wanted: HomeState, names: Sequence[str], say: Callable[[str], None]
) -> dict[str, list[str]]:
    """Make the servers of these names ready to start, and return their command lines."""
    _check_ports(wanted, names)
    make_private(log_of(home, "").parent)
    java = find_java()
    jars = have_jars(kafka_node.JARS, java, log_of(home, "download"), say)
    have_programs(java, log_of(home, "download-postgres"), say, secure=wanted.secure)
    commands = _commands(home, wanted, java, jars)
    # Before any data is made, for the passwords of that data are in the state.
    home_state.save(home, wanted)
    _make(home, wanted, java, jars, say)
    if postgres_server.NAME in names:
        postgres_server.disown(home)
    return {name: commands[name] for name in names}


def _commands(home: Path, wanted: HomeState, java: str, jars: Path) -> dict[str, list[str]]:
    commands = {postgres_server.NAME: postgres_server.command(home, wanted)}
    for node in wanted.nodes:
        commands[f"kafka-{node}"] = kafka_node.command(home, node, java, jars)
    return commands


def _check_ports(wanted: HomeState, names: Iterable[str]) -> None:
    for name in names:
        for role in _doors(name, secure=wanted.secure):
            port = wanted.ports[role]
            if not ports.becomes_free(port):
                raise EmbeddedError(
                    f"port {port} of {role} is taken by another program: stop that program,"
                    " or choose new ports with `harvest dev up --new-ports`"
                )


def _doors(name: str, *, secure: bool) -> set[str]:
    """Return the names of all ports that the server of this name listens on."""
    roles = ("kafka", "mtls", "controller") if secure else ("kafka", "controller")
    return {name.replace("kafka", role) for role in roles}


def _make(home: Path, wanted: HomeState, java: str, jars: Path, say: Callable[[str], None]) -> None:
    tasks = list(_tasks(home, wanted, java, jars))
    if tasks:
        check_space(home)
        say(f"setting up {home}")
    if wanted.secure and not certificates.folder(home).is_dir():
        certificates.issue(home)
    for node in wanted.nodes:
        kafka_node.configure(home, wanted, node)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda task: task(), tasks))


def _tasks(home: Path, wanted: HomeState, java: str, jars: Path) -> Iterable[Task]:
    if not postgres_server.is_set_up(home):
        yield partial(postgres_server.set_up, home, wanted)
    for node in wanted.nodes:
        if not kafka_node.is_set_up(home, node):
            yield partial(kafka_node.set_up, home, wanted, node, java, jars)
