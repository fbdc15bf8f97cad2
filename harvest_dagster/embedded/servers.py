"""What to do with the servers of a home: up, drop, down, status, reset."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from harvest_dagster.config import SERVERS_FILE
from harvest_dagster.embedded import added, home_state, kafka_node, postgres_access, process
from harvest_dagster.embedded.home_folder import exclusive, explained, write_private
from harvest_dagster.embedded.home_parts import BROKERS, all_parts, parts_of
from harvest_dagster.embedded.home_state import STATE_FILE, HomeState
from harvest_dagster.embedded.launch import Launch
from harvest_dagster.embedded.part import Site
from harvest_dagster.embedded.server_info import HomeStatus, Mtls, Server, Servers
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from harvest_dagster.embedded.part import Part

    Say = Callable[[str], None]

_LOCK = "lock"
_SETS_OF_DATA = ("postgres", "kafka", *added.OFFERED)
_ALL = (*_SETS_OF_DATA, "postgres.new", "tls", "tls.new", "logs", STATE_FILE)


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def up(
    home: Path,
    *,
    brokers: int | None = None,
    secure: bool | None = None,
    new_ports: bool = False,
    parts: Collection[str] = (),
    say: Say = _to_stderr,
) -> Servers:
    """Start all servers that do not run, wait until all answer, and return them.

    `parts` are added to the home, which has them from then on.
    """
    home = home.resolve()
    for name in parts:
        added.load(name)
    with _alone(home, say) as tell:
        known = _known(home, brokers, secure=secure, say=tell)
        wanted = home_state.with_parts(known, parts)
        if new_ports:
            process.stop(_all(home), tell)
            _clean_up(known, known.parts)
            wanted = home_state.with_new_ports(wanted)
        try:
            Launch(Site(home, wanted), tell).run()
        except BaseException:
            (home / SERVERS_FILE).unlink(missing_ok=True)
            # What has never run must not keep the others from it the next time.
            _forget(home, wanted.parts.keys() - known.parts.keys())
            raise
        _publish(home, wanted)
        return _servers(home, wanted)


def drop(home: Path, parts: Collection[str], *, say: Say = _to_stderr) -> None:
    """Stop parts that were added, and have the home without them; their data stays."""
    home = home.resolve()
    dropped = [added.load(name) for name in parts]
    with _alone(home, say) as tell:
        process.stop([part.daemon(home) for part in dropped], tell)
        _forget(home, parts)


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
        for path in (home / name for name in _ALL):
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
    return [part.daemon(home) for part in all_parts()]


def _down(home: Path, say: Say) -> None:
    (home / SERVERS_FILE).unlink(missing_ok=True)
    process.stop(_all(home), say)
    with suppress(EmbeddedError):  # if the state is damaged, nobody knows of them
        if known := home_state.load(home):
            _clean_up(known, known.parts)


def _forget(home: Path, names: Iterable[str]) -> None:
    if known := home_state.load(home):
        _clean_up(known, known.parts.keys() & names)
        home_state.save(home, home_state.without_parts(known, names))


def _clean_up(known: HomeState, names: Iterable[str]) -> None:
    for name in names:
        for path in added.load(name).leftovers(known):
            with suppress(OSError):  # it is gone already, or another user's
                path.unlink()


def _known(home: Path, brokers: int | None, *, secure: bool | None, say: Say) -> HomeState:
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
    if any((home / name).exists() for name in _SETS_OF_DATA):
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
    wanted = parts_of(known)
    running = process.find(part.daemon(home) for part in wanted)
    return Servers(
        home=home,
        postgres=postgres_access.url(home, known),
        kafka_config=kafka_node.client_config(home, known),
        each=tuple(_server(home, part, known, running) for part in wanted),
        ready=(home / SERVERS_FILE).exists(),
        mtls=_mtls(home, known) if known.secure else None,
        parts={name: added.load(name).address(known) for name in known.parts},
    )


def _mtls(home: Path, known: HomeState) -> Mtls:
    return Mtls(postgres_access.mtls_url(home, known), kafka_node.mtls_config(home, known))


def _server(home: Path, part: Part, known: HomeState, running: process.Found) -> Server:
    process_of = running.get(part.name)
    pid = process_of.pid if process_of else None
    return Server(part.name, part.ports(known)[part.name], pid, part.daemon(home).log)
