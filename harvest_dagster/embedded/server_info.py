"""What `up` and `status` tell: the servers of a home, and how to reach them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harvest_dagster.config import KafkaConfig


@dataclass(frozen=True)
class Server:
    """One process: PostgreSQL, or a node of Kafka; without a pid it does not run."""

    name: str
    port: int
    pid: int | None
    log: Path

    @property
    def running(self) -> bool:
        """Tell whether the process lives."""
        return self.pid is not None


@dataclass(frozen=True)
class Mtls:
    """How to reach the servers of a secure home by a certificate, beside the passwords' ways."""

    postgres: str = field(repr=False)
    kafka_config: KafkaConfig = field(repr=False)


@dataclass(frozen=True)
class Servers:
    """The servers of a home that was set up; `ready` once an `up` saw all of them answer."""

    home: Path
    postgres: str = field(repr=False)
    kafka_config: KafkaConfig = field(repr=False)
    each: tuple[Server, ...]
    ready: bool
    mtls: Mtls | None = None

    @property
    def kafka(self) -> str:
        """Tell the bootstrap addresses of Kafka."""
        return str(self.kafka_config["bootstrap.servers"])

    @property
    def running(self) -> bool:
        """Tell whether all servers are up, and have answered."""
        return self.ready and all(server.running for server in self.each)


@dataclass(frozen=True)
class HomeStatus:
    """What is in a home: its servers, or none when it was never set up."""

    home: Path
    servers: Servers | None

    @property
    def running(self) -> bool:
        """Tell whether all servers are up, and have answered."""
        return self.servers is not None and self.servers.running
