"""How a parked record is shown, whatever is wrong with it."""

from __future__ import annotations

from datetime import UTC, datetime

from harvest_dagster.cli.parked_record import contents, lines
from harvest_dagster.outbox.parked import Parked

AT = datetime(2026, 1, 2, tzinfo=UTC)


def test_headers_that_do_not_match() -> None:
    """That there are more names than values, or more values, is why a record may be parked."""
    names = ["a", "b"]
    record = Parked(
        1, 0, AT, "t", b"k", b"v", 1, names, [b"1"], None, "no match", 1, AT, None, holds_key=True
    )
    assert contents(record)["headers"] == [["a", "1"], ["b", None]]
    assert ("header b", "NULL") in lines(record)
    values: list[bytes | None] = [b"1", b"2", b"3"]
    record = Parked(
        1, 0, AT, "t", b"k", b"v", 1, names, values, None, "no match", 1, AT, None, holds_key=True
    )
    assert ("header ", "3") in lines(record)
