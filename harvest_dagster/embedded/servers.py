"""The four things to do with the servers of a home: up, down, status, reset."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from harvest_dagster.config import SERVERS_FILE
from harvest_dagster.embedded import home_state, kafka_node, postgres_access, process
from harvest_dagster.embedded.home_folder import exclusive, explained, write_private
from harvest_dagster.embedded.home_state import STATE_FILE, HomeState
from harvest_dagster.embedded.launch import Launch, daemons
from harvest_dagster.embedded.server_info import HomeStatus, Mtls, Server, Servers
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Say = Callable[[str], None]

BROKERS = (1, 3)

_LOCK = "lock"
_DATA = ("postgres", "postgres.new", "kafka", "tls", "tls.new", "logs", STATE_FILE)


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def up(
    home: Path,
    *,
    brokers: int | None = None,
    secure: bool | None = None,
    new_ports: bool = False,
    say: Say = _to_stderr,
) -> Servers:
    """Start all servers that do not run, wait until all answer, and return them."""
    home = home.resolve()
    with _alone(home, say) as tell:
        wanted = _wanted(home, brokers, secure=secure, say=tell)
        if new_ports:
            process.stop(_all(home), tell)
            wanted = replace(wanted, ports=home_state.choose_ports(wanted.brokers))
        try:
            Launch(home, wanted, tell).run()
        except BaseException:
            (home / SERVERS_FILE).unlink(missing_ok=True)
            raise
        _publish(home, wanted)
        return _servers(home, wanted)


def down(home: Path, *, say: Say = _to_stderr) -> None:
    """Stop all servers; their data stays."""
    home = home.resolve()
    with _alone(home, say) as tell:
        _down(home, tell)


def status(home: Path) -> HomeStatus:
    """Return what runs."""
    home = home.resolve()
    known = home_state.load(home)
    return HomeStatus(home, _servers(home, known) if known else None)


def reset(home: Path, *, say: Say = _to_stderr) -> None:
    """Stop all servers; delete their data, and the state of the home."""
    home = home.resolve()
    with _alone(home, say) as tell:
        _down(home, tell)
        for path in (home / name for name in _DATA):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@contextmanager
def _alone(home: Path, say: Say) -> Iterator[Say]:
    """Keep other commands out of the home; yield a `say` that never fails."""

    def tell(line: str) -> None:
        # If the terminal is closed, we go on all the same, to stop what we started.
        with suppress(OSError):
            say(line)

    with explained(home), exclusive(home / _LOCK, tell):
        yield tell


def _all(home: Path) -> list[process.Daemon]:
    return daemons(home, range(1, max(BROKERS) + 1))


def _down(home: Path, say: Say) -> None:
    (home / SERVERS_FILE).unlink(missing_ok=True)
    process.stop(_all(home), say)


def _wanted(home: Path, brokers: int | None, *, secure: bool | None, say: Say) -> HomeState:
    known = home_state.load(home)
    if known is None:
        return _fresh(home, brokers or BROKERS[0], secure=bool(secure), say=say)
    if brokers not in (None, known.brokers) or secure not in (None, known.secure):
        raise EmbeddedError(
            f"{home} was made with --brokers {known.brokers}"
            f" {'--secure' if known.secure else 'and without --secure'}:"
            " to change that, delete its data with `harvest dev reset` first"
        )
    return known


def _fresh(home: Path, brokers: int, *, secure: bool, say: Say) -> HomeState:
    if brokers not in BROKERS:
        raise EmbeddedError(f"--brokers {brokers}: choose 1, or 3 for a cluster")
    # The home may have been deleted while its servers ran: they would still hold its files.
    process.stop(_all(home), say)
    if any((home / name).exists() for name in ("postgres", "kafka")):
        raise EmbeddedError(
            f"{home} has data but no {STATE_FILE}, which has the passwords: put that back,"
            " or delete the data with `harvest dev reset`"
        )
    return HomeState(brokers, secure, home_state.choose_ports(brokers))


def _publish(home: Path, known: HomeState) -> None:
    servers = {
        "postgres": postgres_access.url(home, known),
        "kafka": kafka_node.client_config(home, known),
    }
    write_private(home / SERVERS_FILE, json.dumps(servers, indent=2) + "\n")


def _servers(home: Path, known: HomeState) -> Servers:
    wanted = daemons(home, known.nodes)
    running = process.find(wanted)
    return Servers(
        home=home,
        postgres=postgres_access.url(home, known),
        kafka_config=kafka_node.client_config(home, known),
        each=tuple(_server(daemon, known, running) for daemon in wanted),
        ready=(home / SERVERS_FILE).exists(),
        mtls=_mtls(home, known) if known.secure else None,
    )


def _mtls(home: Path, known: HomeState) -> Mtls:
    return Mtls(postgres_access.mtls_url(home, known), kafka_node.mtls_config(home, known))


def _server(daemon: process.Daemon, known: HomeState, running: process.Found) -> Server:
    process_of = running.get(daemon.name)
    pid = process_of.pid if process_of else None
    return Server(daemon.name, known.ports[daemon.name], pid, daemon.log)
