from __future__ import annotations

import traceback
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harvest_dagster import ConfigError
from harvest_dagster.harvest.reaper_yaml import load_reaper_yaml

LEAST = """\
harvest:
  baseKafkaConfig: {bootstrap.servers: "localhost:9092"}
  dataSource: host=localhost
"""
KEYS = [
    *("baseKafkaConfig", "producerKafkaConfig", "leaderTopic", "leaderGroupID", "dataSource"),
    *("outboxTable", "name", "limits", "delivery", "marks", "onRejected", "shards", "retention"),
    *("metrics", "eventDays"),
]
SECRET = "hunter2"  # noqa: S105 - what must not be shown
NODES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
HARVESTS = st.dictionaries(st.sampled_from(KEYS), NODES, max_size=4)


def try_to_load(text: bytes) -> None:
    """Read it, or have it refused in one line."""
    Path("reaper.yaml").write_bytes(text)
    try:
        load_reaper_yaml("reaper.yaml")
    except ConfigError as error:
        assert str(error).isprintable()  # noqa: PT017 - it may be a good one


@given(NODES | st.fixed_dictionaries({"harvest": HARVESTS}))
def test_fuzz_of_values(tree: object) -> None:
    """Any YAML is read or refused with a ConfigError of one line."""
    try_to_load(yaml.safe_dump(tree).encode())


@given(st.binary() | st.text().map(lambda text: f"{LEAST}  {text}".encode("utf-8", "ignore")))
def test_fuzz_of_text(data: bytes) -> None:
    """Any file is read or refused with a ConfigError of one line."""
    try_to_load(data)


@given(st.text("ab:- {}[]&*!|>'\"%@`#,?<\n\t$0", max_size=30))
def test_fuzz_of_syntax(text: str) -> None:
    """However YAML's own characters are heaped, only a ConfigError gets out."""
    try_to_load(text.encode())


@pytest.mark.parametrize(
    "value",
    [
        *(SECRET, f"*{SECRET}", f"!{SECRET}", f"!!int {SECRET}", f'"{SECRET}', f"a: {SECRET}"),
        *(
            f"[{SECRET}]",
            f"{{a: [{SECRET}]}}",
            f"{{a: !!bool {SECRET}}}",
            "${SECRET}",
            "a\n ${SECRET}",
        ),
        *(
            f"|{SECRET}",
            f">{SECRET}",
            f"@{SECRET}",
            f"%{SECRET}",
            f"{{<<: {SECRET}}}",
            f"'a\\{SECRET}",
        ),
    ],
)
@pytest.mark.parametrize("key", [*KEYS, "logging"])
def test_errors_show_no_value(monkeypatch: pytest.MonkeyPatch, key: str, value: str) -> None:
    """Whatever a secret was mistaken for, and however it is written, no error shows it."""
    monkeypatch.setenv("SECRET", f"{SECRET} {SECRET}=")
    Path("reaper.yaml").write_text(f"harvest:\n  {key}: {value}\n")
    try:
        load_reaper_yaml("reaper.yaml")
    except ConfigError as error:
        assert SECRET not in "".join(traceback.format_exception(error))  # noqa: PT017
