from __future__ import annotations

from typing import Any

import pytest

from harvest_dagster.election.group import Group
from harvest_dagster.election.settings import CandidateSettings
from harvest_dagster.errors import ConfigError

GOOD: dict[str, Any] = {
    "name": "outbox",
    "leader_topic": "leaders",
    "leader_group": "leaders",
    "postgres_url": "postgresql://u:s3cret@h/d",
    "kafka": {"bootstrap.servers": "h:9092", "sasl.password": "s3cret"},
}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": ""}, "name is empty"),
        ({"word": ""}, "word is empty"),
        ({"shards": 0}, "shards is 0; give 1 or more"),
        ({"heartbeat_seconds": 3.0}, "heartbeat_seconds is 3.0; give more than 0"),
        ({"drain_seconds": -1.0}, "can't be below 0"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, Any], message: str) -> None:
    """A setting that can't work is refused by its name."""
    with pytest.raises(ConfigError, match=message):
        CandidateSettings(**{**GOOD, **wrong})


def test_secrets_are_not_shown() -> None:
    """Settings that are printed show no password."""
    assert "s3cret" not in repr(CandidateSettings(**GOOD))


@pytest.mark.parametrize("key", ["group.id", "group.instance.id", "session.timeout.ms"])
def test_what_the_election_counts_on_is_not_for_others_to_set(key: str) -> None:
    """Kafka settings that would change who leads, or when, are refused with the reason."""
    settings = CandidateSettings(**{**GOOD, "kafka": {**GOOD["kafka"], key: "x"}})

    def nothing(*_shards: object) -> None:
        """Nobody calls this."""

    with pytest.raises(ConfigError, match=f"{key} can't be set here: "):
        Group(settings, nothing, nothing, nothing)
