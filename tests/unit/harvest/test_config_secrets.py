from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvest_dagster import ConfigError
from harvest_dagster.harvest.config import HarvestConfig, Limits

SECRET = "hunter2"  # noqa: S105 - what must not be shown
KAFKA = {"bootstrap.servers": "localhost:9092"}


def config(**given: Any) -> HarvestConfig:
    """A config that has what it must."""
    return HarvestConfig(**{"base_kafka": KAFKA, "postgres": "host=localhost", **given})


@pytest.mark.parametrize(
    "key",
    [
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.key.pem",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    ],
)
@pytest.mark.parametrize("place", ["base_kafka", "producer_kafka"])
def test_kafka_secrets_are_hidden(place: str, key: str) -> None:
    """No secret of Kafka's is shown, and a client gets it all the same."""
    made = config(**{place: {**KAFKA, key: SECRET}})
    for shown in (repr(made), str(made), made.model_dump_json(), str(made.model_dump())):
        assert SECRET not in shown
    assert getattr(made, place)[key] == SECRET
    assert made.model_dump()[place] == {**KAFKA, key: "***"}


@pytest.mark.parametrize("postgres", [f"password={SECRET}", f"postgresql://u:{SECRET}@h/d"])
def test_postgres_secret_is_hidden(postgres: str) -> None:
    """No password of PostgreSQL's is shown."""
    made = config(postgres=postgres)
    for shown in (repr(made), str(made), made.model_dump_json(), str(made.model_dump())):
        assert SECRET not in shown


@pytest.mark.parametrize("value", [SECRET, [SECRET], {"a": SECRET}, {"sasl.password": [SECRET]}])
@pytest.mark.parametrize("field", [*HarvestConfig.model_fields, *Limits.model_fields])
def test_errors_show_no_value(field: str, value: object) -> None:
    """Whatever a secret was mistaken for, the error does not show it, nor keep it."""
    given = {"limits": {field: value}} if field in Limits.model_fields else {field: value}
    try:
        config(**given)
    except ConfigError as error:
        assert SECRET not in str(error)  # noqa: PT017 - some fields take any text
        assert error.__context__ is None  # noqa: PT017


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@given(st.sampled_from([*HarvestConfig.model_fields, *Limits.model_fields]), JSON)
def test_fuzz(field: str, value: object) -> None:
    """Any value of any field is taken or refused with a ConfigError."""
    given = {"limits": {field: value}} if field in Limits.model_fields else {field: value}
    try:
        config(**given)
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017 - some fields take any value
