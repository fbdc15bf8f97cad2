"""A secure home: both servers ask for TLS and for a password."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harvest_dagster import embedded

if TYPE_CHECKING:
    from pathlib import Path

    from harvest_dagster.config import KafkaConfig


def test_only_tls_and_the_right_password_let_a_client_in(home: Path) -> None:
    """The settings that `up` tells work; a wrong password and clear text do not."""
    servers = embedded.up(home, secure=True)
    check_postgres(servers.postgres)
    check_kafka(servers.kafka_config)
    check_keys(home)


def check_postgres(url: str) -> None:
    """Connect rightly and wrongly, and pass more than a buffer holds both ways."""
    text = "x" * 1_000_000
    with psycopg.connect(url) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT %s", [text]).fetchone() == (text,)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url.replace(str(urlsplit(url).password), "wrong"))
    with pytest.raises(psycopg.OperationalError, match="this server wants TLS"):
        psycopg.connect(url.replace("verify-full", "disable"))


def check_kafka(config: KafkaConfig) -> None:
    """Connect rightly and wrongly."""
    topic = NewTopic("mine", num_partitions=1)
    admin = AdminClient(config)
    admin.create_topics([topic])["mine"].result()
    for key, wrong in (("sasl.password", "wrong"), ("security.protocol", "SASL_PLAINTEXT")):
        stranger = AdminClient({**config, "log_level": 0, key: wrong})
        with pytest.raises(KafkaException):
            stranger.list_topics(timeout=2)


def check_keys(home: Path) -> None:
    """See that keys are of mode 0600, and PostgreSQL's that of whoever runs it."""
    for key in ("kafka.pem", "postgres.key"):
        assert (home / "tls" / key).stat().st_mode & 0o777 == 0o600
    runs_as = (home / "postgres").stat().st_uid
    assert (home / "tls" / "postgres.key").stat().st_uid == runs_as
    assert runs_as != 0
