"""Where the certificates of a secure home are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# The name in the certificate of Kafka's nodes, by which they know each other.
NODE = "kafka-node"

# The name in a client's certificate, which is also that of Kafka's user with a password.
CLIENT = "harvest"


def folder(home: Path) -> Path:
    """Tell where all of them are; the folder is there once they all are."""
    return home / "tls"


def ca(home: Path) -> Path:
    """Tell where the authority's certificate is, with which all check each other."""
    return folder(home) / "ca.pem"


def client(home: Path) -> Path:
    """Tell where key and certificate of a client are, in one file."""
    return folder(home) / "client.pem"


def kafka_keystore(home: Path) -> Path:
    """Tell where key and certificate of Kafka's nodes are."""
    return folder(home) / "kafka.pem"


def postgres_certificate(home: Path) -> Path:
    """Tell where PostgreSQL's certificate is."""
    return folder(home) / "postgres.pem"


def postgres_key(home: Path) -> Path:
    """Tell where PostgreSQL's key is."""
    return folder(home) / "postgres.key"
