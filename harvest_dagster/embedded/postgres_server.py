"""PostgreSQL 18: set up its data once, tell how to run it, wait until it answers."""

from __future__ import annotations

import shutil
import signal
import subprocess
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg

from harvest_dagster.embedded import postgres_tls, tls
from harvest_dagster.embedded.home_folder import write_private
from harvest_dagster.embedded.owner import as_owner, give
from harvest_dagster.embedded.ports import HOST
from harvest_dagster.embedded.postgres_binaries import binaries
from harvest_dagster.embedded.process import Daemon, environment
from harvest_dagster.embedded.server_logs import last_word, log_of
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from pathlib import Path

    from harvest_dagster.embedded.home_state import HomeState

NAME = "postgres"
USER = "postgres"
DATABASE = "harvest"

# It says this while the processes of a killed server have yet to notice its death.
LINGERING = "shared memory block"

# No process can have this pid.
NO_PID = 2**31 - 1

_SETTINGS = {
    "max_connections": "300",
    "max_prepared_transactions": "20",
    "shared_buffers": "256MB",
}


def daemon(home: Path) -> Daemon:
    """Tell how the server is known, and how it is asked to stop: fast, then at once."""
    return Daemon(
        name=NAME,
        program="postgres",
        marks=frozenset({"-D", str(_data(home))}),
        log=log_of(home, NAME),
        ladder=((signal.SIGINT, 20), (signal.SIGQUIT, 5)),
    )


def is_set_up(home: Path) -> bool:
    """Tell whether the data directory is there, and whole."""
    return _data(home).is_dir()


def set_up(home: Path, state: HomeState) -> None:
    """Make the data directory, under another name until it is whole."""
    new = home / "postgres.new"
    shutil.rmtree(new, ignore_errors=True)
    _initdb(new, state.password)
    access = new / "pg_hba.conf"
    way = "local all all" if state.secure else f"host all all {HOST}/32"
    write_private(access, f"{way} scram-sha-256\n")
    give(access)
    new.rename(_data(home))


def command(home: Path, state: HomeState) -> list[str]:
    """Tell the command line of the server."""
    settings = {
        **_SETTINGS,
        "port": str(state.ports[NAME]),
        "listen_addresses": "" if state.secure else HOST,
        # Relative to the data directory, because a socket's own path must be short.
        "unix_socket_directories": "." if state.secure else "",
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    return as_owner([str(binaries() / "postgres"), "-D", str(_data(home)), *options])


def socket(home: Path, state: HomeState) -> Path:
    """Tell the unix socket that a secure server listens on, and nowhere else."""
    return _data(home) / f".s.PGSQL.{state.ports[NAME]}"


def disown(home: Path) -> None:
    """Take the pid of a server that was killed out of its lock file.

    After a reboot another process may have that pid, and a killed process keeps it until its
    parent looks; PostgreSQL takes either for itself. It goes on to look whether its shared memory
    is in use, which is what tells for sure.
    """
    lock = _data(home) / "postmaster.pid"
    if lock.exists():
        _, _, rest = lock.read_text(encoding="utf-8").partition("\n")
        lock.write_text(f"{NO_PID}\n{rest}", encoding="utf-8")


def url(home: Path, state: HomeState, database: str = DATABASE) -> str:
    """Tell the URL of a database, with the password."""
    if not state.secure:
        return _url(state, NAME, database)
    return f"{_url(state, postgres_tls.NAME, database)}?{_checks(home)}"


def mtls_url(home: Path, state: HomeState) -> str:
    """Tell the URL by which a client of a secure server shows a certificate too."""
    own = quote(str(tls.client(home)))
    shown = f"sslcert={own}&sslkey={own}"
    return f"{_url(state, postgres_tls.MTLS, DATABASE)}?{_checks(home)}&{shown}"


def answers(home: Path, state: HomeState) -> bool:
    """Tell whether the server answers, and see to it that our database exists."""
    try:
        with psycopg.connect(url(home, state, "postgres"), autocommit=True) as connection:
            _create_database(connection)
    except psycopg.OperationalError:
        return False
    return True


def _url(state: HomeState, door: str, database: str) -> str:
    return f"postgresql://{USER}:{state.password}@{HOST}:{state.ports[door]}/{database}"


def _checks(home: Path) -> str:
    return f"sslmode=verify-full&sslrootcert={quote(str(tls.ca(home)))}"


def _create_database(connection: psycopg.Connection) -> None:
    query = "SELECT FROM pg_database WHERE datname = %s"
    if connection.execute(query, [DATABASE]).fetchone() is None:
        connection.execute(f"CREATE DATABASE {DATABASE}")


def _initdb(data: Path, password: str) -> None:
    options = [f"--username={USER}", "--auth=scram-sha-256", "--pwfile=/dev/stdin"]
    options += ["--encoding=UTF8", "--locale=C"]
    options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    made = subprocess.run(
        as_owner([str(binaries() / "initdb"), "-D", str(data), *options]),
        input=password,
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    if made.returncode:
        raise EmbeddedError(f"initdb could not set up PostgreSQL: {last_word(made.stderr)}")


def _data(home: Path) -> Path:
    return home / "postgres"
