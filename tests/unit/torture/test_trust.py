"""The bench tells from the candidates' journals whether two trusted at once that they lead."""

from __future__ import annotations

import pytest

from tests.torture.trust import Trust, overlap, read_trust

LEFT = ["begin 1 10.0", "until 1 15.0", "until 1 20.0", "end 1 17.0"]
KILLED = ["begin 2 10.0", "until 2 15.0"]
WOKEN = [*KILLED, "end 2 40.0"]


@pytest.mark.parametrize(("lines", "end"), [(LEFT, 17.0), (KILLED, 15.0), (WOKEN, 15.0)])
def test_a_term_ends(lines: list[str], end: float) -> None:
    """Trust ends when the term is given up, and by itself if its leader is dead or asleep."""
    assert read_trust(lines) == [Trust(10.0, end)]


def test_terms_of_one_journal() -> None:
    """A candidate may lead more than once, also after it was killed."""
    assert len(read_trust([*KILLED, *LEFT])) == 2


def test_overlap() -> None:
    """Each pair counts with the seconds that it has in common."""
    assert overlap([Trust(10.0, 15.0), Trust(15.0, 30.0), Trust(31.0, 32.0)]) == 0
    assert overlap([Trust(15.0, 30.0), Trust(10.0, 16.0), Trust(20.0, 21.0)]) == 2.0
