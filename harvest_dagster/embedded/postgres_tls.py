"""How the proxy runs that gives PostgreSQL its TLS in a secure home."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from harvest_dagster.embedded import tls, tls_proxy
from harvest_dagster.embedded.owner import as_owner
from harvest_dagster.embedded.process import Daemon
from harvest_dagster.embedded.server_logs import log_of

if TYPE_CHECKING:
    from pathlib import Path

    from harvest_dagster.embedded.home_state import HomeState


NAME = "postgres-tls"
MTLS = "postgres-mtls"


def daemon(home: Path) -> Daemon:
    """Tell how the proxy is known, and how it is asked to stop."""
    return Daemon(
        name=NAME,
        program="python",
        marks=frozenset({str(tls.postgres_key(home))}),
        log=log_of(home, NAME),
        ladder=((signal.SIGTERM, 5),),
    )


def command(home: Path, state: HomeState, socket: Path) -> list[str]:
    """Tell the command line of the proxy."""
    tls_files = (tls.postgres_certificate(home), tls.postgres_key(home), tls.ca(home))
    words = [state.ports[NAME], state.ports[MTLS], socket, *tls_files]
    return as_owner([sys.executable, "-I", str(tls_proxy.__file__), *map(str, words)])
