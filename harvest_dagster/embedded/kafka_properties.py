"""Write the file server.properties of a node of Kafka."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harvest_dagster.embedded import certificates
from harvest_dagster.embedded.ports import HOST

if TYPE_CHECKING:
    from pathlib import Path

    from harvest_dagster.embedded.home_state import HomeState

ADMIN = "admin"
USER = certificates.CLIENT
MECHANISM = "SCRAM-SHA-512"


def render(home: Path, state: HomeState, node: int) -> str:
    """Return the properties of one node, as Java reads them."""
    properties = _node(home, state, node) | _cluster(state.brokers)
    properties |= _secured(home, state) if state.secure else _open()
    return "".join(f"{key}={_escape(value)}\n" for key, value in properties.items())


def _node(home: Path, state: HomeState, node: int) -> dict[str, str]:
    clients = f"CLIENT://{HOST}:{state.ports[f'kafka-{node}']}"
    if state.secure:
        clients += f",MTLS://{HOST}:{state.ports[f'mtls-{node}']}"
    controller = f"CONTROLLER://{HOST}:{state.ports[f'controller-{node}']}"
    voters = [f"{n}@{HOST}:{state.ports[f'controller-{n}']}" for n in state.nodes]
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        # Named here and not in Kafka's log of metadata, which would remember their old ports.
        "controller.quorum.voters": ",".join(voters),
        "listeners": f"{clients},{controller}",
        "advertised.listeners": clients,
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(home / "kafka" / str(node) / "data"),
    }


def _cluster(brokers: int) -> dict[str, str]:
    replicas, in_sync = ("3", "2") if brokers > 1 else ("1", "1")
    return {
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "4",
        # For so long a killed broker counts as alive, and its restart waits; 9 s by default.
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "1000",
        "group.initial.rebalance.delay.ms": "0",
        # The default would take a quarter of the heap as soon as the broker starts.
        "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    }


def _open() -> dict[str, str]:
    return {"listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT"}


def _secured(home: Path, state: HomeState) -> dict[str, str]:
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    admin = f'{login} username="{ADMIN}" password="{state.admin_password}";'
    return {
        "listener.security.protocol.map": "CLIENT:SASL_SSL,MTLS:SSL,CONTROLLER:SSL",
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "listener.name.client.scram-sha-512.sasl.jaas.config": admin,
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.kafka(home)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.ca(home)),
        "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:{ADMIN};User:{USER};User:{certificates.NODE}",
    }


def _escape(value: str) -> str:
    # Java reads the escapes that JSON writes, and what JSON writes is ASCII.
    return json.dumps(value)[1:-1]
