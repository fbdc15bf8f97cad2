"""What holds of a home while its servers run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from harvest_dagster import embedded
from harvest_dagster.config import load_settings
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harvest_dagster.embedded import Servers


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Give servers that no test here changes."""
    home = tmp_path_factory.mktemp("embedded") / "home"
    yield embedded.up(home)
    embedded.reset(home)


def test_a_second_up_changes_nothing(servers: Servers) -> None:
    """`up` finds what runs, with little work and nothing to say."""
    said: list[str] = []
    begun = time.process_time()
    again = embedded.up(servers.home, say=said.append)
    assert time.process_time() - begun < 1
    assert said == []
    assert again == servers
    assert embedded.status(servers.home).running


def test_the_settings_find_the_servers(servers: Servers) -> None:
    """What `up` wrote is what the settings read."""
    settings = load_settings(home=servers.home)
    assert settings.postgres_url() == servers.postgres
    assert settings.kafka_config() == servers.kafka_config


def test_only_the_owner_reads_a_home(servers: Servers) -> None:
    """Secrets are in files of mode 0600, below directories of mode 0700."""
    home = servers.home
    for directory in (home, home / "postgres", home / "kafka", home / "logs"):
        assert directory.stat().st_mode & 0o777 == 0o700
    for name in ("state.json", "servers.json", "kafka/1/server.properties", "logs/postgres.log"):
        assert (home / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("other", [{"brokers": 3}, {"secure": True}])
def test_a_home_keeps_the_shape_it_was_made_with(servers: Servers, other: dict[str, int]) -> None:
    """Another number of brokers, or security, wants a reset first."""
    with pytest.raises(EmbeddedError, match=r"made with --brokers 1 .*harvest dev reset"):
        embedded.up(servers.home, brokers=other.get("brokers"), secure=bool(other.get("secure")))
