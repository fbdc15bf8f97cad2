"""What is the same in all messages of a large write is not in its rows, but read as if it were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harvest_dagster.errors import MessageError
from tests.support.parts import COUNT, PARTS, finish, plan, stage

if TYPE_CHECKING:
    from tests.support.spark import Rows


@pytest.mark.parametrize("attach_from", [None, 1])
@pytest.mark.parametrize(
    ("own", "kinds"),
    [
        ("ADD CHECK (kafka_topic <> '')", 1),
        ('ALTER kafka_topic TYPE varchar(249) COLLATE "C"', 1),
        ("ADD own numeric(4, 2) NOT NULL DEFAULT '1.5'", 1),
        ("ADD own timestamptz DEFAULT now()", 1),
        ("ADD own word", 1),
        ("ADD own uuid DEFAULT gen_random_uuid()", 4),
        ("ADD own serial", 4),
    ],
)
def test_what_is_the_same(
    database: str, rows: Rows, own: str, kinds: int, attach_from: int | None
) -> None:
    """Messages of a part have in every column what they would have if they were moved."""
    rows("CREATE DOMAIN word AS text NOT NULL DEFAULT 'x' CHECK (VALUE <> '')")
    rows(f"ALTER TABLE outbox {own}")
    planned = plan(database)
    finish(planned, stage(planned, 0, 2, attach_from))
    planned = plan(database)
    finish(planned, stage(planned, 2, 2), attach_from=COUNT)
    row = "to_jsonb(outbox) - '{id,create_time,kafka_value}'::text[]"
    if "now()" in own:
        row = "COALESCE(now() - own < interval '1 hour', false)"
    assert rows(f"SELECT count(*), count(DISTINCT {row}) FROM outbox") == [(4, kinds)]
    assert rows(PARTS) == [(1,)]


def test_rows_hold_what_differs(database: str, rows: Rows) -> None:
    """What is the same in all messages of a large task is in none of their rows."""
    planned = plan(database)
    own = stage(planned, 0, 2, attach_from=1)
    finish(planned, own)
    held = f"""SELECT attname::text FROM pg_attribute
                WHERE attrelid = 'harvest_staging.part_{own.own}'::regclass AND attnum > 0
                  AND NOT attisdropped AND NOT atthasmissing ORDER BY 1"""
    assert rows(held) == [("id",), ("kafka_key",), ("kafka_partition",), ("kafka_value",)]


def test_a_topic_that_is_too_long(database: str, rows: Rows) -> None:
    """A topic that the table has no room for is refused before anything is copied."""
    rows("ALTER TABLE outbox ALTER kafka_topic TYPE varchar(3)")
    with pytest.raises(MessageError, match="topic: 'long' has 4 characters; the table's limit"):
        plan(database, "long")
