"""The server.properties of a node."""

from __future__ import annotations

from pathlib import Path

from harvest_dagster.embedded.home_state import HomeState
from harvest_dagster.embedded.kafka_properties import render

HOME = Path("/home/me/.harvest")
PORTS = {
    f"{role}-{n}": base + n
    for role, base in (("kafka", 100), ("controller", 200), ("mtls", 300))
    for n in (1, 2, 3)
}


def properties(home: Path = HOME, *, brokers: int = 1, secure: bool = False) -> dict[str, str]:
    """Render the properties of the first node, and read them back."""
    lines = render(home, HomeState(brokers, secure, PORTS), 1).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_one_broker_replicates_nothing() -> None:
    """A single node wants a replication factor of one everywhere, or it waits for ever."""
    single = properties()
    factors = [value for key, value in single.items() if key.endswith("replication.factor")]
    assert factors == ["1"] * len(factors)
    assert single["min.insync.replicas"] == "1"
    assert single["controller.quorum.voters"] == "1@127.0.0.1:201"


def test_three_brokers_stand_the_loss_of_one() -> None:
    """Three replicas, of which two must be in sync, and a quorum of three."""
    first = properties(brokers=3)
    assert first["default.replication.factor"] == "3"
    assert first["min.insync.replicas"] == "2"
    assert first["transaction.state.log.min.isr"] == "2"
    voters = "1@127.0.0.1:201,2@127.0.0.1:202,3@127.0.0.1:203"
    assert first["controller.quorum.voters"] == voters


def test_all_listeners_are_of_this_machine() -> None:
    """Nothing listens on an address that others reach."""
    listeners = properties()["listeners"].split(",")
    assert listeners == ["CLIENT://127.0.0.1:101", "CONTROLLER://127.0.0.1:201"]
    secure = properties(secure=True)["listeners"].split(",")
    assert secure == [listeners[0], "MTLS://127.0.0.1:301", listeners[1]]


def test_secure_listeners_ask_who_is_there() -> None:
    """Clients show a password or a certificate over TLS, nodes a certificate."""
    secure = properties(secure=True)
    protocols = "CLIENT:SASL_SSL,MTLS:SSL,CONTROLLER:SSL"
    assert secure["listener.security.protocol.map"] == protocols
    assert secure["listener.name.mtls.ssl.client.auth"] == "required"
    assert secure["listener.name.controller.ssl.client.auth"] == "required"
    assert secure["allow.everyone.if.no.acl.found"] == "false"


def test_a_home_of_any_name_is_written_as_java_reads_it() -> None:
    """Java reads the file as Latin-1, with escapes for all else."""
    assert properties(Path("/tmp/Jürgen"))["log.dirs"] == r"/tmp/J\u00fcrgen/kafka/1/data"  # noqa: S108
