"""From a DataFrame to a reader of Kafka that reads what is committed; and what Spark's UI shows."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession

from harvest_dagster.spark import transaction
from tests.support.account import read
from tests.support.paths import PROGRAMS
from tests.support.place import Place
from tests.support.running import StartTour


def test_to_kafka(spark: SparkSession, place: Place, start_tour: StartTour) -> None:
    """All arrive once, a key's in the DataFrame's order."""
    frame = spark.range(20_000, numPartitions=4).selectExpr(
        "concat('k', id % 50) AS key", "string(id) AS value", "id AS at"
    )
    with transaction(spark, url=place.postgres) as write:
        write.stash(frame.repartition(3), topic=place.topic, order_by=["at"])
    start_tour(place.config(delivery="exactly_once"), place.lease())
    place.drained(60)
    found = read(place.kafka, place.topic)
    assert sorted(int(message.value or b"") for message in found) == [*range(20_000)]
    by_key: dict[bytes | None, list[int]] = defaultdict(list)
    for message in found:
        by_key[message.key].append(int(message.value or b""))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


@pytest.mark.long
def test_no_password_in_sparks_ui(database: str, tmp_path: Path) -> None:
    """Neither Spark's UI and its API, nor what it logs, show the password."""
    script = PROGRAMS / "spark_ui.py"
    log = tmp_path / "log"
    with log.open("wb") as output:
        pages = subprocess.run(
            [sys.executable, str(script), database],
            stdout=subprocess.PIPE,
            stderr=output,
            check=True,
            text=True,
        ).stdout
    password = sa.make_url(database).password
    assert password
    assert "outbox" in pages
    assert password not in pages
    assert password not in log.read_text()
