"""How PostgreSQL is reached: by password, and in a secure home by TLS, or by a certificate as well.

PostgreSQL asks for a certificate or not by the role, so in a secure home there are two superusers:
`postgres` shows its password, `harvest` shows the certificate with its name and its password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
from psycopg import sql

from harvest_dagster.embedded import certificates
from harvest_dagster.embedded.ports import HOST
from harvest_dagster.postgres.connect import connect

if TYPE_CHECKING:
    from pathlib import Path

    from harvest_dagster.embedded.home_state import HomeState

USER = "postgres"
MTLS_USER = certificates.CLIENT
DATABASE = "harvest"
PORT = "postgres"


def rules(state: HomeState) -> str:
    """Return the text of pg_hba.conf, whose first line that fits decides."""
    if not state.secure:
        return f"host all all {HOST}/32 scram-sha-256\n"
    return (
        "local all all scram-sha-256\n"
        f"hostssl all {MTLS_USER} {HOST}/32 scram-sha-256 clientcert=verify-full\n"
        f"hostssl all all {HOST}/32 scram-sha-256\n"
    )


def listeners(home: Path, state: HomeState) -> dict[str, str]:
    """Return the settings that say where and how the server listens."""
    plain = {
        "port": str(state.ports[PORT]),
        "listen_addresses": HOST,
        "unix_socket_directories": "",
    }
    return plain | _tls(home) if state.secure else plain


def url(home: Path, state: HomeState, database: str = DATABASE) -> str:
    """Return the URL of a database, with the password."""
    plain = _url(state, USER, database)
    return f"{plain}?{_checks(home)}" if state.secure else plain


def mtls_url(home: Path, state: HomeState) -> str:
    """Return the URL by which a client of a secure server shows a certificate too."""
    own = quote(str(certificates.client(home)))
    return f"{_url(state, MTLS_USER, DATABASE)}?{_checks(home)}&sslcert={own}&sslkey={own}"


def answers(home: Path, state: HomeState) -> bool:
    """Return whether the server answers; create our database and role where they are missing."""
    try:
        with connect(url(home, state, "postgres"), "embedded") as connection:
            _create_database(connection)
            if state.secure:
                _create_role(connection, state.password)
    except psycopg.OperationalError:
        return False
    return True


def _tls(home: Path) -> dict[str, str]:
    own = str(certificates.postgres(home))
    return {
        "ssl": "on",
        "ssl_cert_file": own,
        "ssl_key_file": own,
        "ssl_ca_file": str(certificates.ca(home)),
        # For psql, which comes without TLS. The folder is the data's: the whole path of a socket
        # must be short, and this one is relative.
        "unix_socket_directories": ".",
    }


def _url(state: HomeState, user: str, database: str) -> str:
    return f"postgresql://{user}:{state.password}@{HOST}:{state.ports[PORT]}/{database}"


def _checks(home: Path) -> str:
    return f"sslmode=verify-full&sslrootcert={quote(str(certificates.ca(home)))}"


def _create_database(connection: psycopg.Connection) -> None:
    query = "SELECT FROM pg_database WHERE datname = %s"
    if connection.execute(query, [DATABASE]).fetchone() is None:
        connection.execute(f"CREATE DATABASE {DATABASE}")


def _create_role(connection: psycopg.Connection, password: str) -> None:
    query = "SELECT FROM pg_roles WHERE rolname = %s"
    if connection.execute(query, [MTLS_USER]).fetchone() is None:
        # Hashed here, so that the server's log never has it.
        hashed = connection.pgconn.encrypt_password(password.encode(), MTLS_USER.encode())
        role = sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {}")
        connection.execute(role.format(sql.Identifier(MTLS_USER), hashed.decode()))
