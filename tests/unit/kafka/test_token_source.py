from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from harvest_dagster.errors import ConfigError
from harvest_dagster.kafka.refusals import UnreachableError
from harvest_dagster.kafka.settings import client_settings, make

OAUTH = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user's own modules."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["no_such_module", "", ".relative", "os"])
def test_what_gives_no_tokens_is_refused(name: str) -> None:
    """A module that is not there, or was not written for this, is refused by its name."""
    with pytest.raises(ConfigError, match=f"oauth_cb names the module {name}, which"):
        client_settings({"oauth_cb": name}, {}, {})


def test_the_function_gets_the_config(sources: Path) -> None:
    """What stands in sasl.oauthbearer.config says which tokens are wanted."""
    (sources / "tokens_of_test.py").write_text("def oauth_cb(config): return config, 1.5\n")
    made = client_settings({"oauth_cb": "tokens_of_test"}, {}, {})
    assert made["oauth_cb"]("eu-central-1") == ("eu-central-1", 1.5)


def test_a_failure_is_logged(sources: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Why there is no token is in the log; it is told as trouble that may pass."""
    (sources / "broken_source.py").write_text("def oauth_cb(_): raise OSError('no role')\n")
    settings = client_settings({**OAUTH, "oauth_cb": "broken_source"}, {}, {})
    with pytest.raises(UnreachableError, match="Kafka's client got no token"):
        make(AdminClient, settings)
    assert "oauth_cb of broken_source gave no token: no role" in caplog.text
