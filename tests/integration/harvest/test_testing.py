"""What users' own tests are given."""

from __future__ import annotations

import psycopg
import pytest

from harvest_dagster import HarvestStateError, Message, stash
from harvest_dagster.testing import create_outbox, harvest_until_empty, stashed
from tests.support.account import read
from tests.support.place import Place


def test_what_was_stashed(database: str) -> None:
    """Messages come back as they were stashed, when they are committed and not before."""
    create_outbox(database, "letters")
    create_outbox(database, "letters")
    message = Message("orders", b"7", b"{}", {"trace": b"ab"})
    with psycopg.connect(database) as connection:
        stash(connection, message, outbox="letters")
        assert stashed(database, "letters") == []
    assert stashed(database, "letters") == [message]


def test_until_empty(place: Place) -> None:
    """It harvests what waits, says how much that was, and has ended."""
    place.put(120)
    totals = harvest_until_empty(place.config())
    assert (totals.published, stashed(place.postgres)) == (120, [])
    assert len(read(place.kafka, place.topic)) == 120
    (lease,) = place.rows("SELECT expires_at <= now() FROM harvest.lease")
    assert lease == (True,)


def test_what_never_goes_out(place: Place) -> None:
    """What can't be published in the time is told."""
    place.stash([Message("no-such-topic-here", "k", "v")])
    with pytest.raises(HarvestStateError, match="not empty after 3 s"):
        harvest_until_empty(place.config(), seconds=3)
