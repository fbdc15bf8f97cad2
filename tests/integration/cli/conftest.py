"""`harvest reap` in a process of its own, what reaches Kafka, a room of the tests, and a role."""

from tests.support.counted import count, counter
from tests.support.parked import three
from tests.support.reaping import data_source, left, outbox, reap
from tests.support.roles import role
from tests.support.topics import admin, made_topic, published

__all__ = [
    "admin",
    "count",
    "counter",
    "data_source",
    "left",
    "made_topic",
    "outbox",
    "published",
    "reap",
    "role",
    "three",
]
