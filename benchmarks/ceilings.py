"""The plainest loops without any guarantee, which the harvest's rates are ratios of."""

from __future__ import annotations

import time

import psycopg
from confluent_kafka import Producer

from benchmarks.place import Place

BATCH = 5000
_SELECT = """
    SELECT id, kafka_topic, kafka_key, kafka_value, kafka_header_keys, kafka_header_values
      FROM outbox WHERE id > %s ORDER BY id LIMIT %s
"""
_MARK = """
    UPDATE outbox SET kafka_partition = NULL
     WHERE id IN (SELECT id FROM outbox WHERE id > %s ORDER BY id LIMIT %s)
    RETURNING id, kafka_topic, kafka_key, kafka_value, kafka_header_keys, kafka_header_values
"""
_DELETE = "DELETE FROM outbox WHERE id BETWEEN %s AND %s"


def loop(
    here: Place, records: int, *, marks: bool, transactions: bool, batch: int = BATCH
) -> float:
    """Read or mark, produce, flush, delete, and again; tell the rate."""
    settings = {**here.kafka, "linger.ms": 5}
    if transactions:
        settings["transactional.id"] = here.topic
    producer = Producer(settings)
    if transactions:
        producer.init_transactions()
    with psycopg.connect(here.url, autocommit=True) as connection:
        start, head, done = time.perf_counter(), 0, 0
        while done < records:
            query = _MARK if marks else _SELECT
            rows = connection.cursor(binary=True).execute(query, (head, batch)).fetchall()
            rows.sort()
            if transactions:
                producer.begin_transaction()
            for _, topic, key, value, names, contents in rows:
                produce(producer, topic, key, value, list(zip(names, contents, strict=True)))
            if transactions:
                producer.commit_transaction()
            else:
                producer.flush()
            connection.execute(_DELETE, (rows[0][0], rows[-1][0]))
            head, done = rows[-1][0], done + len(rows)
        return records / (time.perf_counter() - start)


def raw_produce(here: Place, records: int) -> float:
    """Produce messages that are there already; tell the rate."""
    producer = Producer({**here.kafka, "linger.ms": 5})
    headers: list[tuple[str, str | bytes | None]] = [("trace", b"ab12cd34")]
    rows = [(str(n % 1000).encode(), str(n).encode().ljust(100)) for n in range(records)]
    start = time.perf_counter()
    for key, value in rows:
        produce(producer, here.topic, key, value, headers)
    producer.flush()
    return records / (time.perf_counter() - start)


def raw_copy_out(here: Place, records: int) -> float:
    """Read the table's bytes as fast as PostgreSQL tells them; tell the rate."""
    with psycopg.connect(here.url) as connection:
        start = time.perf_counter()
        with connection.cursor().copy("COPY outbox TO STDOUT (FORMAT binary)") as copy:
            for _ in copy:
                pass
        return records / (time.perf_counter() - start)


def produce(
    producer: Producer,
    topic: str,
    key: bytes,
    value: bytes,
    headers: list[tuple[str, str | bytes | None]],
) -> None:
    """Produce, waiting when the client's queue is full."""
    while True:
        try:
            producer.produce(topic, value, key, headers=headers)
        except BufferError:
            producer.poll(0.1)
        else:
            return
