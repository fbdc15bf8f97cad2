"""What the sensor reports, and how seldom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
import yaml

from harvest_dagster.harvest.meter import Backlog
from harvest_dagster.harvest.room import ROOM
from harvest_dagster.harvest.status import ParkedCount, Status
from harvest_dagster.orchestration.cursor import Cursor, Pace, pace_of
from harvest_dagster.orchestration.leaders import leaders
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.orchestration.report import AssetEvent, Reporter
from harvest_dagster.work.described import assets_of, facts_of
from harvest_dagster.work.room import Verdict
from tests.support.statuses import event, harvesting, lease, record, status, tour, verdicts

NAMES = Names("harvest")


class Clock:
    """A clock that the test moves, and what a tick at its time would say."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def reporter(self, cursor: Cursor) -> Reporter:
        """Return the reporter of a tick."""
        return Reporter(NAMES, ROOM, cursor, self.now)

    def pace(self, cursor: Cursor, of: Status) -> Pace:
        """Return the pace that a tick sees."""
        return pace_of(cursor, of.done, self.now, waits=of.backlog.records > 0)

    def figures(self, cursor: Cursor, of: Status) -> list[dict[str, Any]]:
        """Return the figures that a tick reports."""
        pace = self.pace(cursor, of)
        facts, waits = facts_of(ROOM, harvesting(), of), of.backlog.records > 0
        return plain(self.reporter(cursor).figures(facts, pace.rate, leaders(of), waits=waits))


@pytest.fixture
def clock() -> Clock:
    """Give a clock that stands still."""
    return Clock()


def plain(events: Iterator[AssetEvent]) -> list[dict[str, Any]]:
    """Tell the values of observations."""
    found = []
    for one in events:
        assert isinstance(one, dg.AssetObservation)
        found.append({key: value.value for key, value in one.metadata.items()})
    return found


def test_figures_and_their_rate(clock: Clock) -> None:
    """Figures are reported when they changed, with the rate since the last tick."""
    cursor = Cursor()
    (first,) = clock.figures(cursor, status())
    assert (first["published"], first["rate"]) == (109, 0.0)
    clock.now += 590
    assert clock.figures(cursor, status()) == []
    clock.now += 5
    (second,) = clock.figures(cursor, status(tours=[tour(done=6009)]))
    assert (second["published"], second["rate"]) == (6109, 1200.0)


def test_a_rate_falls_to_nothing(clock: Clock) -> None:
    """When nothing is published any more, that is reported once."""
    cursor, busy = Cursor(), status(tours=[tour(done=209)])
    clock.figures(cursor, status())
    clock.now += 20
    assert [one["rate"] for one in clock.figures(cursor, busy)] == [10.0]
    told = []
    for _ in range(100):
        clock.now += 5
        told += clock.figures(cursor, busy)
    assert [one["rate"] for one in told] == [0.0]


def test_what_is_stuck_grows_older(clock: Clock) -> None:
    """While records wait, their age is reported every minute, though nothing else changes."""
    cursor, told = Cursor(), []
    for age in range(0, 600, 5):
        clock.now += 5
        told += clock.figures(cursor, status(backlog=Backlog(7, float(age), exact=True)))
    assert [one["oldest seconds"] for one in told] == [60.0 * minute for minute in range(10)]


def test_two_ticks_at_once_make_no_rate(clock: Clock) -> None:
    """A tick that is previewed right after another does not divide by next to nothing."""
    cursor = Cursor()
    clock.figures(cursor, status())
    clock.now += 0.01
    assert clock.pace(cursor, status(tours=[tour(done=209)])) == Pace(0.0, 0.0)
    clock.now += 9.99
    assert clock.pace(cursor, status(tours=[tour(done=209)])).rate == 20.0


def test_a_stall_is_measured_from_where_records_wait(clock: Clock) -> None:
    """An idle hour is no stall: the time counts from when records waited and none went out."""
    cursor, waits = Cursor(), status(backlog=Backlog(7, 0.0, exact=True))
    clock.pace(cursor, status())
    clock.now += 3600
    clock.pace(cursor, status())
    clock.now += 5
    assert clock.pace(cursor, waits).still_seconds == 5.0
    clock.now += 5
    assert clock.pace(cursor, waits).still_seconds == 10.0


@pytest.mark.parametrize(
    ("seconds", "waiting", "reported"), [(5, 7, 0), (20, 7, 1), (20, 0, 0), (600, 0, 1)]
)
def test_figures_are_bounded(clock: Clock, seconds: float, waiting: int, reported: int) -> None:
    """What changed is reported every 20 s at most, what did not every 10 minutes."""
    cursor = Cursor()
    clock.figures(cursor, status())
    clock.now += seconds
    then = status(backlog=Backlog(waiting, 0.0, exact=True))
    assert len(clock.figures(cursor, then)) == reported


def test_parked_records_come_with_their_reasons(clock: Clock) -> None:
    """When something was parked or let go, the asset of parked records tells of it."""
    cursor = Cursor()
    parked = ParkedCount(2, 1, {"too large": 2})
    clock.figures(cursor, status())
    clock.now += 30
    told = clock.figures(cursor, status(parked=parked))
    assert told[1]["parked"] == 2
    assert "reasons" in told[1]
    clock.now += 30
    assert clock.figures(cursor, status())[1]["parked"] == 0


def test_checks_are_reported_when_they_turn(clock: Clock) -> None:
    """A check is reported when it turns, and all of them now and then."""
    cursor, well = Cursor(), [*verdicts(status(), 1)]
    red = [*verdicts(status(leases=[]), 1)]

    def reported(found: list[Verdict]) -> int:
        reporter = clock.reporter(cursor)
        told = len([*reporter.checks(found)])
        reporter.said("")
        return told

    assert [reported(v) for v in (well, well, red, red, well)] == [len(well), 0, 1, 0, 1]
    for _ in range(60):
        clock.now += 10
        assert reported(well) == (0 if clock.now < 1_000_600.0 else len(well))
    clock.now += 26  # silence, in which the check may have been reported by others
    assert reported(well) == len(well)


def test_what_is_red_is_said_again(clock: Clock) -> None:
    """Each minute: who runs a check from the UI sees one moment, and may have made it green."""
    cursor, red = Cursor(), [*verdicts(status(leases=[]), 1)]
    told = []
    for _ in range(60):
        reporter = clock.reporter(cursor)
        told += [*reporter.checks(red)]
        reporter.said("")
        clock.now += 5
    again = [one.check_name for one in told[len(red) :] if isinstance(one, dg.AssetCheckEvaluation)]
    assert again == ["one_leader"] * 4


def test_history_is_told_once(clock: Clock) -> None:
    """Each event is told once, in order, to the asset that it belongs to."""
    cursor = Cursor()
    events = [
        event(3, "remarked", records=5, from_epoch=6, reason="r"),
        event(2, "parked"),
        event(1, "acquired", holder="us"),
    ]
    told = [*clock.reporter(cursor).history(assets_of(ROOM), events)]
    assert [one.asset_key for one in told if isinstance(one, dg.AssetObservation)] == [
        NAMES.asset("lease"),
        NAMES.asset("remarks"),
    ]
    assert plain(iter(told))[1]["records"] == 5
    assert [*clock.reporter(cursor).history(assets_of(ROOM), events)] == []


def test_topics_are_told_when_they_changed(clock: Clock) -> None:
    """A topic is told of when there is more in it, once a minute at most."""
    cursor = Cursor()
    assert len(plain(clock.reporter(cursor).topics({"a": 1, "b": 2}))) == 2
    assert plain(clock.reporter(cursor).topics({"a": 2, "b": 2})) == []
    clock.now += 60
    assert plain(clock.reporter(cursor).topics({"a": 2, "b": 2})) == [{"end offsets": 2}]


@pytest.mark.parametrize("text", [None, "", "3", "{", '{"event": "x"}'])
def test_a_cursor_of_another_kind(text: str | None) -> None:
    """What can't be read as a cursor counts as none."""
    assert Cursor.read(text) == Cursor()


def test_a_cursor_is_read_back() -> None:
    """What was written is read."""
    many = {f"topic-{number}": number for number in range(100)}
    cursor = Cursor(saw="leader, epoch 3", event=5, topics=many)
    assert Cursor.read(cursor.write()) == cursor


def test_a_cursor_begins_with_a_sentence() -> None:
    """Who looks at a tick reads what it saw, and no JSON."""
    many = {f"topic-{number}": number for number in range(100)}
    first, *remembered = Cursor(saw="leader, epoch 3", topics=many).write().splitlines()
    assert first == "leader, epoch 3"
    assert len(remembered) > 1
    assert "{" not in "".join(remembered)


def test_who_leads_comes_first(clock: Clock) -> None:
    """The first rows of the outbox say who leads, with the tour's run; another's lead is news."""
    cursor = Cursor()
    (first,) = clock.figures(cursor, status())
    assert [*first][:2] == ["led by", "tour"]
    assert first["led by"].startswith("us, epoch 7, since ")
    assert first["tour"] == "run-1"
    clock.now += 1
    (changed,) = clock.figures(cursor, status(leases=[lease(holder="them", epoch=8)]))
    assert changed["led by"].startswith("them, epoch 8, since ")
    clock.now += 1
    (gone,) = clock.figures(cursor, status(leases=[lease(expired=True)], tours=[]))
    assert gone["led by"] == "nobody"


def test_what_is_remarked_is_counted_for_ever(clock: Clock) -> None:
    """A new tour begins to count anew, the figure does not."""
    again = tour(figures={"remarked": 2}, figures_before={"remarked": 40})
    (figures,) = clock.figures(Cursor(), status(tours=[again]))
    assert figures["remarked"] == 42


def test_what_waits_is_said_by_topic(clock: Clock) -> None:
    """The outbox says which topics its records wait for."""
    (figures,) = clock.figures(Cursor(), status(topics={"orders": 7, "images": 1}))
    rows = [dict(row.data) for row in figures["backlog by topic"].records]
    assert rows == [{"topic": "orders", "records": 7}, {"topic": "images", "records": 1}]


def test_which_records_are_parked(clock: Clock) -> None:
    """Each is in a table with what to paste; others in their place are news at once."""
    cursor, two = Cursor(), ParkedCount(2, 1, {"too large": 2})
    clock.figures(cursor, status())
    clock.now += 1
    (told,) = clock.figures(cursor, status(parked=two, aside=[record(11), record(12)]))
    assert [row.data["id"] for row in told["which"].records] == [11, 12]
    pasted = yaml.safe_load(told["config of harvest_requeue"])
    assert pasted == {"ops": {"do_harvest_requeue": {"config": {"ids": [11, 12]}}}}
    clock.now += 1
    (other,) = clock.figures(cursor, status(parked=two, aside=[record(11), record(13)]))
    assert [row.data["id"] for row in other["which"].records] == [11, 13]
    clock.now += 1
    assert clock.figures(cursor, status(parked=two, aside=[record(11), record(13)])) == []


def test_what_happened_is_logged(clock: Clock) -> None:
    """What is news in a tick is in its log: events, and checks that turned."""
    cursor = Cursor()
    reporter = clock.reporter(cursor)
    list(reporter.history(assets_of(ROOM), [event(1, "acquired", holder="us")]))
    list(reporter.checks([*verdicts(status(leases=[]), 1)]))
    assert reporter.happened[0] == "acquired: epoch 7, holder us"
    assert any(line.startswith("one_leader is red: nobody leads") for line in reporter.happened)
    again = clock.reporter(cursor)
    list(again.history(assets_of(ROOM), [event(1, "acquired", holder="us")]))
    assert again.happened == []
