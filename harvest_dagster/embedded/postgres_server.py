"""PostgreSQL: set up its data once, and say how it is run."""

from __future__ import annotations

import shutil
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harvest_dagster.embedded import postgres_access
from harvest_dagster.embedded.home_folder import write_private
from harvest_dagster.embedded.owner import as_owner, give
from harvest_dagster.embedded.postgres_programs import (
    have_build,
    have_tls_programs,
    programs,
    programs_of,
    wheels_programs,
)
from harvest_dagster.embedded.process import Daemon, environment
from harvest_dagster.embedded.server_logs import last_word, log_of
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from pathlib import Path

    from harvest_dagster.embedded.home_state import HomeState
    from harvest_dagster.embedded.ivy import Module
    from harvest_dagster.embedded.part import Say, Site

NAME = "postgres"

# It logs this while the processes of a killed server have yet to notice its death.
LINGERING = "shared memory block"

# Text is in the order of its code points on any machine. PostgreSQL has this from 17 on.
BUILTIN = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")

# No process can have this pid.
NO_PID = 2**31 - 1

_SETTINGS = {
    "max_connections": "300",
    "max_prepared_transactions": "20",
    "shared_buffers": "256MB",
}


@dataclass(frozen=True)
class PostgresServer:
    """PostgreSQL, by the programs that are a home's, or by those of a build that is named."""

    name: ClassVar[str] = NAME
    build: Module | None = None
    locale: tuple[str, ...] = BUILTIN

    def ports(self, state: HomeState) -> dict[str, int]:
        """Return its one port."""
        return {NAME: state.ports[postgres_access.PORT]}

    def daemon(self, home: Path) -> Daemon:
        """Return how the server is recognised, and how it is asked to stop: fast, then at once."""
        return Daemon(
            name=NAME,
            program="postgres",
            marks=frozenset({"-D", str(_data(home))}),
            log=log_of(home, NAME),
            ladder=((signal.SIGINT, 20), (signal.SIGQUIT, 5)),
        )

    def have_programs(self, site: Site, say: Say) -> None:
        """Find those of the wheel; download those that speak TLS, for a secure home."""
        if self.build:
            have_build(self.build, site.java, log_of(site.home, "download-postgres"), say)
        elif site.state.secure:
            have_tls_programs(site.java, log_of(site.home, "download-postgres"), say)
        else:
            wheels_programs()

    def configure(self, site: Site) -> None:
        """Take the pid of a server that was killed out of its lock file.

        PostgreSQL refuses to start while a process has that pid. After a reboot that may be any
        other process; and a killed one keeps its pid until its parent has asked how it ended.
        Without the pid PostgreSQL looks whether the old server's shared memory is still in use,
        which is sure.
        """
        lock = _data(site.home) / "postmaster.pid"
        if lock.exists():
            _, _, rest = lock.read_text(encoding="utf-8").partition("\n")
            lock.write_text(f"{NO_PID}\n{rest}", encoding="utf-8")

    def is_set_up(self, home: Path) -> bool:
        """Return whether the data directory is there; it has its name only once it is whole."""
        return _data(home).is_dir()

    def set_up(self, site: Site) -> None:
        """Make the data directory, under another name until it is whole."""
        new = site.home / "postgres.new"
        shutil.rmtree(new, ignore_errors=True)
        self._initdb(new, site.state)
        access = new / "pg_hba.conf"
        write_private(access, postgres_access.rules(site.state))
        give(access)
        new.rename(_data(site.home))

    def command(self, site: Site) -> list[str]:
        """Return the command line of the server."""
        settings = {**_SETTINGS, **postgres_access.listeners(site.home, site.state)}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return as_owner(
            [self._program("postgres", site.state), "-D", str(_data(site.home)), *options]
        )

    def answers(self, site: Site) -> bool:
        """Return whether the server answers; create our database and role if they are missing."""
        return postgres_access.answers(site.home, site.state)

    def _initdb(self, data: Path, state: HomeState) -> None:
        options = [f"--username={postgres_access.USER}", "--auth=scram-sha-256"]
        options += ["--pwfile=/dev/stdin", "--encoding=UTF8", *self.locale]
        made = subprocess.run(
            as_owner([self._program("initdb", state), "-D", str(data), *options]),
            input=state.password,
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        if made.returncode:
            raise EmbeddedError(f"initdb could not set up PostgreSQL: {last_word(made.stderr)}")

    def _program(self, name: str, state: HomeState) -> str:
        folder = programs_of(self.build) if self.build else programs(secure=state.secure)
        return str(folder / name)


def _data(home: Path) -> Path:
    return home / "postgres"
