"""What a home remembers between one `up` and the next: `state.json`."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from harvest_dagster.embedded import added, ports
from harvest_dagster.embedded.home_folder import write_private
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STATE_FILE = "state.json"


def new_cluster_id() -> str:
    """Make a random id for a cluster of Kafka: 16 bytes, in its kind of base64."""
    cluster_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    # Kafka's storage tool would take a dash at the beginning for an option.
    return cluster_id.replace("-", "_")


@dataclass(frozen=True)
class HomeState:
    """The options that a home was made with, its ports by name, and its passwords.

    `parts` are those that were added to PostgreSQL and Kafka, each with its ports. All of a home's
    servers have the same password.
    """

    brokers: int
    secure: bool
    ports: dict[str, int]
    cluster_id: str = field(default_factory=new_cluster_id)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    admin_password: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    parts: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def nodes(self) -> range:
        """Return the numbers of Kafka's nodes."""
        return range(1, self.brokers + 1)


def choose_ports(brokers: int) -> dict[str, int]:
    """Choose ports for PostgreSQL, and for all listeners of each node of Kafka."""
    return ports.choose(_doors(brokers))


def with_parts(state: HomeState, names: Iterable[str]) -> HomeState:
    """Return the state with these parts too, each of which gets ports of its own."""
    for name in names:
        if name not in state.parts:
            taken = [
                *state.ports.values(),
                *(p for own in state.parts.values() for p in own.values()),
            ]
            chosen = ports.choose(added.load(name).doors, taken)
            state = replace(state, parts={**state.parts, name: chosen})
    return state


def without_parts(state: HomeState, names: Iterable[str]) -> HomeState:
    """Return the state without these parts."""
    left = {name: own for name, own in state.parts.items() if name not in set(names)}
    return replace(state, parts=left)


def with_new_ports(state: HomeState) -> HomeState:
    """Return the state with other ports for all."""
    moved = replace(state, ports=choose_ports(state.brokers), parts={})
    return with_parts(moved, state.parts)


def _doors(brokers: int) -> list[str]:
    nodes = range(1, brokers + 1)
    roles = [f"{role}-{node}" for node in nodes for role in ("kafka", "mtls", "controller")]
    return ["postgres", *roles]


def load(home: Path) -> HomeState | None:
    """Read the state of a home; return None if it was never set up."""
    try:
        known = HomeState(**json.loads((home / STATE_FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise EmbeddedError(
            f"{home / STATE_FILE} is damaged: delete the data with `harvest dev reset`"
        ) from None
    # Its certificates differ too, and no more can be issued: their authority's key was not kept.
    if known.secure and known.ports.keys() != set(_doors(known.brokers)):
        raise EmbeddedError(
            f"{home} was made by another version: delete its data with `harvest dev reset`"
        )
    return known


def save(home: Path, state: HomeState) -> None:
    """Write the state of a home."""
    write_private(home / STATE_FILE, json.dumps(asdict(state), indent=2) + "\n")
