"""Servers that ask for TLS: who gets in, who does not, and where they listen."""

from __future__ import annotations

import ipaddress

import psutil
import psycopg
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harvest_dagster.embedded import Servers
from tests.support.secure import Secure


@pytest.mark.parametrize("way", ["postgres", "postgres_mtls"])
def test_postgres_lets_in(secure: Secure, way: str) -> None:
    """What `up` tells works, and PostgreSQL itself knows of TLS, and of the certificate."""
    query = "SELECT ssl, client_dn LIKE '%CN=harvest' FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
    with psycopg.connect(getattr(secure, way)) as connection:
        assert connection.pgconn.ssl_in_use
        shown = True if way == "postgres_mtls" else None
        assert connection.execute(query).fetchone() == (True, shown)


@pytest.mark.parametrize("way", ["kafka", "kafka_mtls"])
def test_kafka_lets_in(secure: Secure, way: str) -> None:
    """What `up` tells works."""
    assert len(AdminClient(getattr(secure, way)).list_topics(timeout=10).brokers) == 1


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "PLAINTEXT", "SSL"])
def test_kafka_asks_for_both(secure: Secure, protocol: str) -> None:
    """TLS without a password, or a password without TLS, does not do."""
    stranger = AdminClient({**secure.kafka, "log_level": 0, "security.protocol": protocol})
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=1)


def test_keys_are_the_owners_alone(secure: Secure) -> None:
    """Keys are of mode 0600, and PostgreSQL's that of whoever runs it."""
    home = secure.servers.home
    for key in ("kafka.pem", "postgres.pem", "client.pem"):
        assert (home / "tls" / key).stat().st_mode & 0o777 == 0o600
    runs_as = (home / "postgres").stat().st_uid
    assert (home / "tls" / "postgres.pem").stat().st_uid == runs_as
    assert runs_as != 0


@pytest.mark.parametrize("home", ["with_parts", "secure_servers"])
def test_all_listen_on_loopback(home: str, request: pytest.FixtureRequest) -> None:
    """No server of a home can be reached from another machine."""
    servers: Servers = request.getfixturevalue(home)
    for server in servers.each:
        addresses = listens(psutil.Process(server.pid))
        assert all(map(is_loopback, addresses)), (server.name, addresses)
        assert addresses, server.name


def is_loopback(address: str) -> bool:
    """Tell whether it is of this machine alone; Java writes IPv4's as IPv6's."""
    return ipaddress.ip_address(address.removeprefix("::ffff:")).is_loopback


def listens(process: psutil.Process) -> set[str]:
    """Tell the addresses that a process listens on."""
    found = process.net_connections(kind="inet")
    return {each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN}
