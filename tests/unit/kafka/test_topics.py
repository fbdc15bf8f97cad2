from __future__ import annotations

import pytest

from harvest_dagster.kafka.refusals import UnreachableError
from harvest_dagster.kafka.topics import ensure_topic


def test_an_address_that_is_wrong_is_named_with_its_cause() -> None:
    """Kafka that can't be reached in time is one line: the setting, its value, and why."""
    with pytest.raises(UnreachableError) as refused:
        ensure_topic({"bootstrap.servers": "no.host.invalid:9092"}, "t", 1, within_seconds=1)
    line = str(refused.value)
    assert line.startswith("Kafka can't be reached at bootstrap.servers=no.host.invalid:9092: ")
    assert "resolve" in line
