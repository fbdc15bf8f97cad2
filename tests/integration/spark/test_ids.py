"""Ids that a large task draws many at once are nobody else's, and hold nobody up."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from harvest_dagster.postgres.names import TableName
from harvest_dagster.spark import ids
from harvest_dagster.spark.ids import DrawnIds, IdSequence, sequence_of
from tests.support.parts import PARTS, finish, plan, stage

if TYPE_CHECKING:
    from tests.support.spark import Rows

NAME = "public.outbox_id_seq"
SEQUENCE = IdSequence(NAME, "postgres")
NEXT = f"SELECT nextval('{NAME}')"


def last(rows: Rows) -> int:
    """The last id that was drawn."""
    return int(rows(f"SELECT pg_sequence_last_value('{NAME}')")[0][0])


def test_many_at_once(database: str, rows: Rows) -> None:
    """The sequence jumps over what is taken, as often as it takes."""
    sequence = f"SELECT pg_relation_filenode('{NAME}'), * FROM pg_sequence"
    before = rows(sequence)
    assert rows(NEXT) == [(1,)]
    taken = DrawnIds(database, SEQUENCE, many=10)
    assert [*taken.take(4)] == [2, 3, 4, 5]
    assert rows(NEXT) == [(12,)]
    assert [*taken.take(8)] == [6, 7, 8, 9, 10, 11, 13, 14]
    assert [*taken.take(30)] == [*range(15, 45)]
    assert last(rows) == 52
    assert rows(sequence) == before


def test_nobody_waits(database: str, rows: Rows) -> None:
    """Where a transaction has drawn and is open, ids are drawn one by one beside others."""
    taken = DrawnIds(database, SEQUENCE, some=5)
    with psycopg.connect(database) as open_:
        open_.execute(NEXT)
        assert [*taken.take(7)] == [*range(2, 9)]
        assert rows(NEXT) == [(12,)]
        assert last(rows) == 12
    assert [*taken.take(5)] == [9, 10, 11, 13, 14]
    assert last(rows) == 12 + ids.MANY


class Counted(DrawnIds):
    """Ids that are drawn many at once or one by one, and how many each time."""

    def __init__(self, url: str) -> None:
        super().__init__(url, SEQUENCE, many=7, some=3)
        self.draws: list[int] = []

    def draw(self, connection: psycopg.Connection[Any]) -> int:
        """Draw, and note how many."""
        self.draws.append(super().draw(connection))
        return self.draws[-1]


def test_all_at_once(database: str) -> None:
    """However many tasks draw beside however many stashes, each id is one's own."""
    over, tasks = Event(), [Counted(database) for _ in range(4)]

    def task(taken: Counted) -> list[int]:
        return [int(each) for _ in range(100) for each in taken.take(2)]

    def stash(number: int) -> list[int]:
        found = []
        with psycopg.connect(database) as connection:
            while not over.wait(0.001):
                for _ in range(number):
                    row = connection.execute(NEXT).fetchone()
                    assert row is not None
                    found.append(row[0])
                over.wait(0.003 * (number - 1))
                connection.commit()
        return found

    with ThreadPoolExecutor(8) as pool:
        stashes = [pool.submit(stash, number) for number in (1, 1, 2)]
        drawn = [*pool.map(task, tasks)]
        over.set()
        drawn += [each.result() for each in stashes]
    every = [each for one in drawn for each in one]
    assert len(set(every)) == len(every)
    assert all(earlier < later for one in drawn for earlier, later in pairwise(one))
    assert {count for taken in tasks for count in taken.draws} == {3, 7}


@pytest.mark.parametrize(
    "change",
    [
        f"ALTER SEQUENCE {NAME} CACHE 2",
        f"ALTER SEQUENCE {NAME} INCREMENT BY 2",
        f"ALTER SEQUENCE {NAME} CYCLE",
        f"ALTER SEQUENCE {NAME} MAXVALUE 1000000",
        "ALTER TABLE outbox ALTER id TYPE integer",
    ],
)
def test_sequences_that_do_not_jump(database: str, rows: Rows, change: str) -> None:
    """Where a sequence is not as it should be, each row draws its id, as in any INSERT."""
    rows(change)
    planned = plan(database)
    done = stage(planned, 0, 3, attach_from=1)
    with psycopg.connect(database) as connection:
        own = TableName(str(done.own), "harvest_staging")
        assert sequence_of(connection, own) is None
    finish(planned, done)
    assert rows(f"SELECT ({PARTS}), (SELECT count(DISTINCT id) FROM outbox)") == [(1, 3)]
    assert last(rows) < 10


def test_who_may_jump(database: str) -> None:
    """Only the owner, or a member of it, and who may set the sequence."""
    with psycopg.connect(database) as connection:
        owner, member, other = (
            f"{kind}_{uuid.uuid4().hex}" for kind in ("owner", "member", "other")
        )
        connection.execute(f"CREATE ROLE {owner}; CREATE ROLE {member} IN ROLE {owner}")
        connection.execute(f"CREATE ROLE {other}; CREATE TABLE jumps (id bigserial)")
        connection.execute(f"ALTER TABLE jumps OWNER TO {owner}")
        connection.execute(f"GRANT ALL ON SEQUENCE jumps_id_seq TO {other}")

        def found(role: str) -> IdSequence | None:
            connection.execute(f"SET LOCAL ROLE {role}")
            return sequence_of(connection, TableName("jumps"))

        jumps = IdSequence("public.jumps_id_seq", owner)
        assert [found(role) for role in (owner, member, other)] == [jumps, jumps, None]
        connection.execute(f"RESET ROLE; REVOKE UPDATE ON SEQUENCE jumps_id_seq FROM {owner}")
        assert found(member) is None
        connection.rollback()


def test_a_task_jumps(database: str, rows: Rows) -> None:
    """A large task's ids are in the order of its messages, and a later stash comes after them."""
    rows('ALTER SEQUENCE outbox_id_seq RENAME TO "the "" seq"')
    planned = plan(database)
    written = finish(planned, stage(planned, 0, 3, attach_from=1))
    assert (written.first_id, written.last_id) == (1, 3)
    found = rows("SELECT id, convert_from(kafka_value, 'UTF8') FROM outbox ORDER BY id")
    assert found == [(1, "0"), (2, "1"), (3, "2")]
    rows("INSERT INTO outbox (kafka_topic) VALUES ('t')")
    assert rows("SELECT max(id) FROM outbox") == [(1 + ids.MANY,)]
