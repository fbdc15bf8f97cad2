"""The certificates of a secure home: where they are, and how they are issued.

The authority's own key is never written: nothing else can be issued in its name.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from harvest_dagster.embedded.home_folder import make_private, write_private
from harvest_dagster.embedded.owner import give
from harvest_dagster.embedded.ports import HOST

if TYPE_CHECKING:
    from pathlib import Path

    import trustme

# The name in the certificate of Kafka's nodes, by which they know each other.
NODE = "kafka-node"

# The name in a client's certificate: PostgreSQL's role of that name, and Kafka's user.
CLIENT = "harvest"


def folder(home: Path) -> Path:
    """Return the folder of all of them; it is there once they all are."""
    return home / "tls"


def ca(home: Path) -> Path:
    """Return the authority's certificate, by which servers and clients check each other's."""
    return folder(home) / "ca.pem"


def client(home: Path) -> Path:
    """Return the file with key and certificate of a client."""
    return folder(home) / "client.pem"


def kafka(home: Path) -> Path:
    """Return the file with key and certificate of Kafka's nodes."""
    return folder(home) / "kafka.pem"


def postgres(home: Path) -> Path:
    """Return the file with key and certificate of PostgreSQL."""
    return folder(home) / "postgres.pem"


def issue(home: Path, authority: trustme.CA | None = None) -> None:
    """Issue the certificates, in a folder under another name until they are all there."""
    # It takes long to import, and few homes need it.
    import trustme  # noqa: PLC0415

    authority = authority or trustme.CA()
    new = folder(home).with_name(f"{folder(home).name}.new")
    shutil.rmtree(new, ignore_errors=True)
    make_private(new)
    write_private(new / ca(home).name, authority.cert_pem.bytes().decode())
    named = {
        client(home): authority.issue_cert(CLIENT, common_name=CLIENT),
        kafka(home): authority.issue_cert(HOST, "localhost", common_name=NODE),
        postgres(home): authority.issue_cert(HOST, "localhost", common_name="postgres"),
    }
    for path, issued in named.items():
        write_private(new / path.name, with_key(issued))
    give(new / postgres(home).name)
    new.rename(folder(home))


def with_key(issued: trustme.LeafCert) -> str:
    """Return key and certificate as one text; servers and clients of both kinds read it."""
    chain = "".join(blob.bytes().decode() for blob in issued.cert_chain_pems)
    return _pkcs8(issued) + chain


def _pkcs8(issued: trustme.LeafCert) -> str:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - as above

    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), password=None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
