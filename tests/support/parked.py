"""Records that are set aside, and how the command line lists them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from tests.support.command import Harvest

PARKED = """
INSERT INTO harvest.parked (name, shard, id, create_time, kafka_topic, kafka_key, kafka_value,
                            kafka_header_keys, kafka_header_values, kafka_partition, reason,
                            holds_key)
VALUES (%(table)s, 0, 11, '2026-01-02 03:04:05+00', 'orders', 'a', 'eleven', '{h,i}',
        ARRAY['1', NULL]::bytea[], 3, 'too large', true),
       (%(table)s, 0, 12, NULL, 'orders', convert_to('é', 'UTF8'), NULL, '{}', '{}', NULL,
        'too large', true),
       (%(table)s, 0, 13, now(), 'images', 'b', '\\x00ff0a', '{}', '{}', NULL, 'no partition 9',
        false)
"""


@pytest.fixture
def three(connection: psycopg.Connection[Any]) -> None:
    """Three records that are set aside, of the outbox and of goharvest's."""
    for table in ("outbox", "goharvest_outbox"):
        connection.execute(PARKED, {"table": table})
    connection.commit()


def listed(harvest: Harvest, *words: str) -> list[dict[str, Any]]:
    """What is set aside."""
    found: list[dict[str, Any]] = json.loads(harvest("parked", "list", "--json", *words).stdout)
    return found


def ids(harvest: Harvest, *words: str) -> list[int]:
    """The ids of what is set aside."""
    return [record["id"] for record in listed(harvest, *words)]
