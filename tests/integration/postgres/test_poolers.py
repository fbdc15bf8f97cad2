"""What goes through PgBouncer, and what refuses to, as docs/how-to/poolers.md says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from harvest_dagster import ConfigError, Message, stash
from harvest_dagster.harvest.harvest import Harvest
from harvest_dagster.postgres.connect import connect
from tests.support import parts
from tests.support.account import judge, read
from tests.support.command import Harvest as Command
from tests.support.databases import Stashed
from tests.support.place import Place
from tests.support.poolers import BY_SESSION, BY_TRANSACTION, Pooled, needs_pgbouncer
from tests.support.running import StartHarvest

pytestmark = needs_pgbouncer
REFUSAL = "a pooler in front of PostgreSQL gives sessions to others .*docs/how-to/poolers.md"


def test_stash_by_transaction(pooled: Pooled, stashed: Stashed) -> None:
    """Many programs stash over a few sessions, and PostgreSQL has each message once."""
    url = pooled(BY_TRANSACTION)

    def program(number: int) -> None:
        with psycopg.connect(url, prepare_threshold=None) as connection:
            for each in range(20):
                stash(connection, Message("t", f"{number}", f"{number}-{each}"))
                connection.commit()

    with ThreadPoolExecutor(30) as programs:
        list(programs.map(program, range(30)))
    values = [message.value for message in stashed()]
    assert sorted(values, key=str) == sorted(
        (f"{number}-{each}".encode() for number in range(30) for each in range(20)), key=str
    )


def test_a_large_stash_by_transaction(pooled: Pooled, stashed: Stashed) -> None:
    """What is stashed as a stream goes through too, in the one transaction."""
    with psycopg.connect(pooled(BY_TRANSACTION), prepare_threshold=None) as connection:
        stash(connection, (Message("t", None, str(each)) for each in range(20_000)))
    assert len(stashed()) == 20_000


def test_what_spark_writes_by_transaction(pooled: Pooled, stashed: Stashed) -> None:
    """Tasks copy through it at once, and one transaction makes it all visible."""
    planned = parts.plan(pooled(BY_TRANSACTION))
    with ThreadPoolExecutor(2) as tasks:
        done = tasks.map(lambda first: parts.stage(planned, first, 5000, 1), (0, 5000))
        parts.finish(planned, *done)
    assert len(stashed()) == 10_000


def test_commands_by_transaction(pooled: Pooled, harvest: Command) -> None:
    """The commands that look and stash do their work."""
    through = {"HARVEST_POSTGRES": pooled(BY_TRANSACTION)}
    lines = '{"topic": "t", "key": null, "value": "1"}\n' * 100
    for words in (["stash", "-"], ["outbox", "check"], ["outbox", "list"], ["outbox", "migrate"]):
        done = harvest(*words, stdin=lines, **through)
        assert done.returncode == 0, (words, done.stdout, done.stderr)


def test_a_leader_by_transaction_is_refused(place: Place, pooled: Pooled) -> None:
    """A harvest says at once why it can't lead there, and leaves nothing set for others."""
    url = pooled(BY_TRANSACTION)
    leader = Harvest(place.config(postgres=url))
    leader.start()
    with pytest.raises(ConfigError, match=REFUSAL):
        leader.wait(20)
    with pytest.raises(ConfigError, match=REFUSAL):
        leader.stop(20)
    with psycopg.connect(url) as other:
        for name, usual in (("enable_seqscan", "on"), ("lock_timeout", "0")):
            assert other.execute(f"SHOW {name}").fetchall() == [(usual,)]


def test_a_busy_pool_is_refused_too(pooled: Pooled) -> None:
    """However many sessions others take meanwhile, who shares them is found out."""
    url = pooled(BY_TRANSACTION)
    with ThreadPoolExecutor(8) as others:
        busy = [others.submit(_busy, url) for _ in range(8)]
        for _ in range(10):
            with pytest.raises(ConfigError, match=REFUSAL):
                connect(url, "test", by_index=True).close()
        for each in busy:
            each.result()


def test_a_leader_by_session(place: Place, pooled: Pooled, start_harvest: StartHarvest) -> None:
    """Through a pool of whole sessions everything is as without one."""
    place.put(200)
    start_harvest(place.config(postgres=pooled(BY_SESSION)))
    place.drained()
    judge(place.stashed, read(place.kafka, place.topic), "exactly_once")


def _busy(url: str) -> None:
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        for _ in range(200):
            connection.execute("SELECT pg_sleep(0.002)")
