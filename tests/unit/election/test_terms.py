from __future__ import annotations

from uuid import uuid4

import pytest

from harvest_dagster.election.terms import EXPIRED, Terms
from harvest_dagster.ledger.lease import Lease
from tests.support.clock import Clock

LEASE = Lease("outbox", 0, 1, uuid4(), "x")


@pytest.fixture
def clock() -> Clock:
    """Give the clock that terms go by."""
    return Clock(100.0)


def test_trust_ends_by_the_clock(clock: Clock) -> None:
    """A term is trusted until its time, and not at it, whoever asks or does not ask."""
    terms = Terms(clock)
    terms.begin(LEASE, 105)
    assert terms.leads(0)
    assert terms.trusted(0)
    clock.time = 105
    assert not terms.leads(0)
    assert not terms.trusted(0)


def test_what_has_run_out_stays_out(clock: Clock) -> None:
    """A proof that comes too late does not bring a term back."""
    terms = Terms(clock)
    terms.begin(LEASE, 105)
    assert terms.extend(LEASE, 106)
    clock.time = 106
    assert not terms.extend(LEASE, 200)
    assert not terms.trusted(0)


def test_an_expired_term_is_fenced_once(clock: Clock) -> None:
    """Fencing ends the term and leaves it to be written down; it can't be handed back as well."""
    terms = Terms(clock)
    terms.begin(LEASE, 105)
    assert terms.fence_expired() == []
    clock.time = 105
    assert terms.fence_expired() == [LEASE]
    assert terms.fence_expired() == []
    assert terms.end(0) is None
    assert list(terms.unsettled) == [(LEASE, EXPIRED)]


def test_an_ending_term_is_trusted_but_does_not_lead(clock: Clock) -> None:
    """While it is being revoked a term takes up nothing new, and finishes what it has."""
    terms = Terms(clock)
    terms.begin(LEASE, clock.time + 5)
    assert terms.ending(0) == LEASE
    assert not terms.leads(0)
    assert terms.trusted(0)
    assert terms.end(0) == LEASE
    assert not terms.trusted(0)
    assert not terms.unsettled


def test_the_next_expiry_is_the_nearest(clock: Clock) -> None:
    """Of several terms the first that runs out tells how long to sleep."""
    terms = Terms(clock)
    assert terms.seconds_to_expiry() is None
    terms.begin(LEASE, clock.time + 5)
    terms.begin(Lease("outbox", 1, 1, uuid4(), "x"), clock.time + 2)
    assert terms.seconds_to_expiry() == 2
