"""The gap watch by itself: whatever happens, an id that may still come is looked for."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from harvest_dagster.harvest.batch import as_multirange
from harvest_dagster.harvest.gaps import GapWatch

IDS = st.lists(st.integers(1, 200), unique=True, max_size=60).map(sorted)
NAMES = st.sets(st.sampled_from("abcdef"))


def watched(gaps: GapWatch) -> set[int]:
    """The ids from 1 to 250 that are in a range."""
    lows, highs = gaps.ranges()
    pairs = zip(lows, highs, strict=True)
    return {number for low, high in pairs for number in range(max(low, 1), min(high, 250) + 1)}


def look(gaps: GapWatch, *found: int, complete: bool = True) -> None:
    """Look, and find these."""
    gaps.looked(found, time.monotonic(), complete=complete)


@given(IDS)
def test_multirange_is_exact(ids: list[int]) -> None:
    """A claim's ranges have its ids and no other."""
    text = as_multirange(ids)
    parts = [
        part.strip("[)").split(",") for part in text.strip("{}").replace(",[", ";[").split(";")
    ]
    pairs = [(int(part[0]), int(part[1])) for part in parts if part != [""]]
    assert [number for low, high in pairs for number in range(low, high)] == ids


@given(st.integers(0, 5), IDS)
def test_sees_what_is_missing(after: int, ids: list[int]) -> None:
    """All ids between the last head and the next that a scan did not find are watched."""
    found = [number for number in ids if number > after]
    gaps = GapWatch()
    gaps.see(after, found)
    gaps.listed({"a"}, set())
    last = found[-1] if found else after
    assert watched(gaps) == set(range(after + 1, last)) - set(found)


@given(IDS, IDS)
def test_what_was_found_is_watched_no_more(ids: list[int], late: list[int]) -> None:
    """Of the missing ids just those that came are taken out."""
    gaps = GapWatch()
    gaps.see(0, ids)
    gaps.listed({"a"}, set())
    before = watched(gaps)
    look(gaps, *late, complete=False)
    assert watched(gaps) == before - set(late)


def test_many_gaps_do_not_make_a_sweep_slow() -> None:
    """A sweep's thousands of records are told from gaps by the hundred thousand in no time."""
    gaps = GapWatch()
    gaps.see(0, range(2, 200_002, 2))
    started = time.monotonic()
    gaps.taken(range(2, 10_002, 2))
    gaps.taken(range(190_001, 200_001, 2))
    assert time.monotonic() - started < 5  # pass by pass it takes minutes
    assert len(gaps.ranges()[0]) == 95_000


@given(st.lists(st.tuples(NAMES, NAMES), max_size=8))
def test_watches_while_one_runs(lists: list[tuple[set[str], set[str]]]) -> None:
    """As long as one of the transactions that ran at first still runs, the gap stays."""
    gaps = GapWatch()
    gaps.see(0, [1, 5])
    gaps.listed({"first"}, set())
    for running, prepared in lists:
        gaps.listed(running | {"first"}, prepared)
        look(gaps)
    assert watched(gaps) == {2, 3, 4}


@given(st.lists(NAMES, max_size=8))
def test_watches_while_one_is_prepared(lists: list[set[str]]) -> None:
    """As long as one is prepared of those that were when the others had ended, the gap stays."""
    gaps = GapWatch()
    gaps.see(0, [1, 5])
    gaps.listed({"first"}, set())
    gaps.listed(set(), {"gid"})
    for running in lists:
        gaps.listed(running, {"gid"})
        look(gaps)
    assert watched(gaps) == {2, 3, 4}


@settings(max_examples=30)
@given(NAMES)
def test_gives_up_in_the_end(others: set[str]) -> None:
    """When all have ended, whoever came later, one more complete look is the last."""
    gaps = GapWatch()
    gaps.see(0, [1, 5])
    gaps.listed({"first"}, set())
    gaps.listed(others, set())
    assert watched(gaps) == {2, 3, 4}
    look(gaps)
    assert watched(gaps) == set()


def test_a_cut_look_is_not_the_last() -> None:
    """A look that did not see all that there was ends no watch."""
    gaps = GapWatch()
    gaps.see(0, [1, 5])
    gaps.listed(set(), set())
    gaps.listed(set(), set())
    look(gaps, complete=False)
    assert watched(gaps) == {2, 3, 4}
