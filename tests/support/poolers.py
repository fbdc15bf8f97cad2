"""PgBouncer in front of the tests' PostgreSQL, by transaction or by session."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from harvest_dagster.embedded import ports
from scripts import pgbouncer
from tests.support.waiting import until

PROGRAM = shutil.which("pgbouncer") or (pgbouncer.PROGRAM.exists() and str(pgbouncer.PROGRAM))
BY_TRANSACTION, BY_SESSION = "transaction", "session"

needs_pgbouncer = pytest.mark.skipif(
    not PROGRAM, reason="no pgbouncer here: install it, or run `python -m scripts.pgbouncer`"
)
_AS_NOBODY = () if os.getuid() else ("-u", "nobody")
"""PgBouncer does not run as root."""
_SETTINGS = """
[databases]
* = host={host} port={place.port} user={place.username} password={place.password}
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
"""
Pooled = Callable[[str], str]


@pytest.fixture
def pooled(database: str, tmp_path: Path) -> Iterator[Pooled]:
    """Give the URL of this test's database through a pooler of the mode that is asked for."""
    with ExitStack() as stack:
        yield lambda mode: stack.enter_context(_running(database, mode, tmp_path / mode))


@contextmanager
def _running(database: str, mode: str, folder: Path) -> Iterator[str]:
    folder.mkdir()
    place, port = sa.make_url(database), ports.choose(["pooler"])["pooler"]
    settings = folder / "pgbouncer.ini"
    settings.write_text(_SETTINGS.format(host=ports.HOST, place=place, port=port, mode=mode))
    url = place.set(port=port).render_as_string(hide_password=False)
    command = [str(PROGRAM), *_AS_NOBODY, str(settings)]
    environment = {**os.environ, "LD_LIBRARY_PATH": pgbouncer.libraries()}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            until(lambda: process.poll() is not None or _answers(url))
            assert process.poll() is None, (folder / "log").read_text()
            yield url
        finally:
            process.terminate()
            process.wait(10)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
