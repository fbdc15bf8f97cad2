"""`harvest topic`: topics that are made and read, on real Kafka."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

if TYPE_CHECKING:
    from harvest_dagster.embedded import Servers
    from tests.support.command import Harvest

Run = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def run(harvest: Harvest, servers: Servers) -> Run:
    """Run `harvest topic` on the tests' Kafka."""

    def topic(*words: str) -> tuple[int, str, str]:
        done = harvest("topic", *words, HARVEST_KAFKA=servers.kafka)
        return done.returncode, done.stdout, done.stderr

    return topic


@pytest.fixture
def name() -> str:
    """The name of a topic that nobody else uses."""
    return f"topic-{uuid.uuid4().hex}"


def transaction(servers: Servers, topic: str, values: list[bytes | None], *, commit: bool) -> None:
    """Write values under one key in a transaction of their own."""
    producer = Producer({**servers.kafka_config, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, "k", headers={"h": b"\xff"})
    producer.flush(30)
    (producer.commit_transaction if commit else producer.abort_transaction)(30)


def test_create(run: Run, name: str) -> None:
    """A topic is made once; one that is too narrow is an error that says what to run."""
    assert run("create", name, "--partitions", "2") == (0, f"created {name} (2 partitions)\n", "")
    assert run("create", name, "--partitions", "2")[1] == f"{name} is there already, unchanged\n"
    code, _, said = run("create", name)
    assert (code, f"the topic {name} has 2 partitions, and 4 are needed" in said) == (1, True)


def test_read(run: Run, servers: Servers, name: str) -> None:
    """What was committed is read, the last of it, in order; an empty value is none."""
    run("create", name, "--partitions", "1")
    assert run("read", name) == (0, f"there is nothing in {name}\n", "")
    transaction(servers, name, [b"one", b"two", None], commit=True)
    transaction(servers, name, [b"never"], commit=False)
    code, shown, _ = run("read", name)
    head, *rows = [line.split() for line in shown.splitlines()]
    assert (code, head) == (0, ["topic", "partition", "offset", "key", "value"])
    assert [row[2:] for row in rows] == [["0", "k", "one"], ["1", "k", "two"], ["2", "k", "-"]]
    (last,) = json.loads(run("read", name, "--last", "1", "--json")[1])
    headers = [{"key": "h", "value_base64": "/w=="}]
    assert (last["offset"], last["value"], last["headers"]) == (2, None, headers)


def test_a_topic_that_is_not_there(run: Run, name: str) -> None:
    """To read it does not make it."""
    said = f"harvest: there is no topic {name}: make it with `harvest topic create {name}`\n"
    assert [run("read", name) for _ in range(2)] == [(1, "", said)] * 2


def test_kafka_that_is_not_there(harvest: Harvest, name: str) -> None:
    """A line says what to check, and nothing else is said."""
    done = harvest("topic", "read", name, HARVEST_KAFKA="127.0.0.1:1")
    said = done.stderr
    assert (done.returncode, done.stdout, said.count("\n")) == (1, "", 1)
    assert said.startswith("harvest: Kafka can't be reached at bootstrap.servers=127.0.0.1:1: ")
    assert said.endswith("check the address, and that Kafka runs\n")


def test_stash_warns_of_a_topic_that_is_not_there(
    harvest: Harvest, servers: Servers, name: str
) -> None:
    """The message is stashed, and who stashed it knows what it waits for; a topic is not made."""
    line = f'{{"topic": "{name}", "key": "k", "value": 1}}'
    environment = {"HARVEST_KAFKA": servers.kafka}
    warned = harvest("stash", stdin=line, **environment)
    assert (warned.returncode, warned.stdout) == (0, "stashed 1 message into outbox\n")
    assert f"warning: there is no topic {name}: its messages wait for it" in warned.stderr
    harvest("topic", "create", name, **environment)
    assert harvest("stash", stdin=line, **environment).stderr == ""
