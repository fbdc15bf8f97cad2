from __future__ import annotations

import logging

import pytest
from confluent_kafka import Consumer

from harvest_dagster.errors import ConfigError
from harvest_dagster.kafka.settings import client_settings, make, masked


def test_ours_stand_on_top() -> None:
    """What a client needs wins over its user's settings, and logs go to Python's logging."""
    made = client_settings({"a": 1, "b": True}, {"b": False}, {})
    assert made == {"a": 1, "b": False, "logger": logging.getLogger("harvest_dagster.kafka")}


def test_what_is_owned_is_refused() -> None:
    """A setting that the engine must own is refused with its name and the reason."""
    with pytest.raises(ConfigError, match=r"group\.id can't be set here: it is leader_group"):
        client_settings({"group.id": "mine"}, {}, {"group.id": "it is leader_group"})


def test_only_plain_values_are_taken() -> None:
    """A value that librdkafka could not read is refused by its key, and not shown."""
    with pytest.raises(ConfigError, match=r"kafka: sasl\.password is list; give a string"):
        client_settings({"sasl.password": ["hidden"]}, {}, {})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group.id": "g", "no.such": "x"}, r'No such configuration property: "no\.such"'),
        ({"group.id": "g", "session.timeout.ms": "soon"}, r"session\.timeout\.ms"),
    ],
)
def test_what_librdkafka_refuses_is_a_config_error(
    settings: dict[str, object], message: str
) -> None:
    """A setting that librdkafka does not know, or can't read, is named in one line."""
    with pytest.raises(ConfigError, match=message):
        make(Consumer, client_settings(settings, {}, {}))


def test_librdkafka_logs_to_logging(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """What librdkafka has to say stands in Python's logs, and not on stderr."""
    base = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}
    consumer = make(Consumer, client_settings(base, {}, {}))
    while not caplog.records:
        consumer.poll(0.1)
    consumer.close()
    assert caplog.records[0].name == "harvest_dagster.kafka"
    assert capfd.readouterr().err == ""


SECRETS = (
    "sasl.password",
    "ssl.key.password",
    "ssl.keystore.password",
    "ssl.key.pem",
    "ssl_key",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.jaas.config",
)
PUBLIC = (
    "bootstrap.servers",
    "sasl.username",
    "ssl.key.location",
    "sasl.oauthbearer.token.endpoint.url",
)


@pytest.mark.parametrize("key", SECRETS)
def test_secrets_are_hidden(key: str) -> None:
    """Passwords, keys and tokens are not shown."""
    assert masked({key: "s3cret"}) == {key: "***"}


@pytest.mark.parametrize("key", PUBLIC)
def test_the_rest_is_shown(key: str) -> None:
    """What helps to find a fault, and is no secret, is shown."""
    assert masked({key: "plain"}) == {key: "plain"}
