"""Issue the certificates of a secure home.

The authority's own key is never written: nothing else can be issued in its name.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import trustme
from cryptography.hazmat.primitives import serialization

from harvest_dagster.embedded import tls
from harvest_dagster.embedded.home_folder import make_private, write_private
from harvest_dagster.embedded.owner import give
from harvest_dagster.embedded.ports import HOST

if TYPE_CHECKING:
    from pathlib import Path


def set_up(home: Path, authority: trustme.CA | None = None) -> None:
    """Issue the certificates, in a folder under another name until they are all there."""
    authority = authority or trustme.CA()
    folder = tls.folder(home)
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    make_private(new)
    write_private(new / tls.ca(home).name, authority.cert_pem.bytes().decode())
    named = authority.issue_cert(tls.CLIENT, common_name=tls.CLIENT)
    write_private(new / tls.client(home).name, with_key(named))
    _issue_kafka(authority, new / tls.kafka_keystore(home).name)
    _issue_postgres(
        authority, new / tls.postgres_certificate(home).name, new / tls.postgres_key(home).name
    )
    new.rename(folder)


def _issue_kafka(authority: trustme.CA, keystore: Path) -> None:
    node = authority.issue_cert(HOST, "localhost", common_name=tls.NODE)
    write_private(keystore, with_key(node))


def _issue_postgres(authority: trustme.CA, certificate: Path, key: Path) -> None:
    server = authority.issue_cert(HOST, "localhost", common_name="postgres")
    write_private(certificate, _chain(server))
    write_private(key, _pkcs8(server))
    give(certificate)
    give(key)


def with_key(issued: trustme.LeafCert) -> str:
    """Write key and certificate as one text, which Kafka, librdkafka and libpq all read."""
    return _pkcs8(issued) + _chain(issued)


def _chain(issued: trustme.LeafCert) -> str:
    return "".join(blob.bytes().decode() for blob in issued.cert_chain_pems)


def _pkcs8(issued: trustme.LeafCert) -> str:
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
