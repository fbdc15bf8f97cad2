"""Servers that ask for TLS, and people who should not get in."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
import trustme
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from filelock import FileLock

from harvest_dagster import embedded
from harvest_dagster.embedded import Servers, certificates
from harvest_dagster.embedded.home_folder import write_private
from harvest_dagster.outbox.schema import Kind, create
from harvest_dagster.postgres.names import TableName

EXPIRED, STRANGER, SOMEBODY = "expired.pem", "stranger.pem", "somebody.pem"
STRANGERS_CA = "strangers-ca.pem"
_ANYWHERE = "*"


@dataclass(frozen=True)
class Secure:
    """A secure home's servers, with both ways in to each."""

    servers: Servers
    postgres: str
    postgres_mtls: str
    kafka: dict[str, Any]
    kafka_mtls: dict[str, Any]

    def file(self, name: str) -> str:
        """Tell where a certificate is."""
        return str(certificates.folder(self.servers.home) / name)

    @property
    def password(self) -> str:
        """What nobody may see."""
        return str(sa.make_url(self.postgres).password)

    def user(self, name: str, *acls: tuple[ResourceType, str, AclOperation]) -> dict[str, Any]:
        """Make a user of Kafka's who may do so much; tell the settings of its clients."""
        admin, password = AdminClient(self.kafka), uuid.uuid4().hex
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        made = UserScramCredentialUpsertion(name, scram, password.encode())
        for done in admin.alter_user_scram_credentials([made]).values():
            done.result(20)
        bindings = [_allowed(name, *acl) for acl in acls]
        for done in admin.create_acls(bindings).values() if bindings else ():
            done.result(20)
        return {**self.kafka, "sasl.username": name, "sasl.password": password}


def _allowed(user: str, kind: ResourceType, on: str, operation: AclOperation) -> AclBinding:
    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    return AclBinding(kind, on, literal, f"User:{user}", _ANYWHERE, operation, allow)


def start(home: Path) -> Servers:
    """Start them, with certificates by an authority that has issued some bad ones too."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(home.with_name(f"{home.name}.lock")):
        if not (certificates.folder(home) / STRANGERS_CA).exists():
            _issue(home)
    return embedded.up(home, secure=True, say=lambda _line: None)


@contextmanager
def database_of(servers: Servers) -> Iterator[Secure]:
    """Give a database with an outbox, which goes when the block ends."""
    assert servers.mtls
    name = f"test_{uuid.uuid4().hex}"
    url, mtls_url = _at(servers.postgres, name), _at(servers.mtls.postgres, name)
    with psycopg.connect(servers.postgres, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    with psycopg.connect(url) as connection:
        create(connection, TableName("outbox"), Kind.NATIVE)
    try:
        yield Secure(
            servers,
            url,
            mtls_url,
            dict(servers.kafka_config),
            dict(servers.mtls.kafka_config),
        )
    finally:
        with psycopg.connect(servers.postgres, autocommit=True) as admin:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _at(url: str, database: str) -> str:
    return sa.make_url(url).set(database=database).render_as_string(hide_password=False)


def _issue(home: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    certificates.issue(home, authority)
    past = datetime.now(UTC) - timedelta(days=1)
    expired = authority.issue_cert(
        certificates.CLIENT,
        common_name=certificates.CLIENT,
        not_before=past - timedelta(days=1),
        not_after=past,
    )
    stranger = other.issue_cert(certificates.CLIENT, common_name=certificates.CLIENT)
    somebody = authority.issue_cert("somebody", common_name="somebody")
    write = {
        SOMEBODY: certificates.with_key(somebody),
        EXPIRED: certificates.with_key(expired),
        STRANGER: certificates.with_key(stranger),
        STRANGERS_CA: other.cert_pem.bytes().decode(),
    }
    for name, text in write.items():
        write_private(certificates.folder(home) / name, text)
