from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harvest_dagster import ConfigError, load_settings

SECRET = "hunter2"  # noqa: S105 - what must not be shown
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
KEYS = st.sampled_from(["postgres", "kafka", "outbox", "max_message_bytes", "home", "other"])
per_test = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def load(**given_: Any) -> None:
    """Read the settings, or have them refused in one line; ask for all that they have."""
    try:
        made = load_settings(**given_)
        made.kafka_config()
        made.sqlalchemy_url()
    except ConfigError as error:
        assert str(error).isprintable()  # noqa: PT017 - they may be good ones
        assert SECRET not in str(error)  # noqa: PT017


@given(st.binary() | TEXT.map(str.encode) | KEYS.map(lambda key: f"{key} = '{SECRET}'".encode()))
def test_fuzz_of_the_project_file(data: bytes) -> None:
    """Any harvest.toml is read, or refused in one line."""
    Path("harvest.toml").write_bytes(data)
    try:
        load()
    finally:
        Path("harvest.toml").unlink()


@given(KEYS, JSON)
def test_fuzz_of_values(key: str, value: object) -> None:
    """Any value of any setting is taken, or refused in one line."""
    load(**{key: value})


@per_test
@given(
    st.sampled_from(["POSTGRES", "KAFKA", "OUTBOX", "MAX_MESSAGE_BYTES", "HOME"]),
    TEXT | JSON.map(json.dumps) | TEXT.map(f"postgresql://me:{SECRET}@".__add__),
)
@example("HOME", "~nobody-is-called-so")
def test_fuzz_of_the_environment(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Any variable is taken, or refused in one line that does not have its value."""
    with monkeypatch.context() as patch:
        patch.setenv(f"HARVEST_{name}", value)
        load()
