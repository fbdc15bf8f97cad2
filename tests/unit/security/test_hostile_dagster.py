"""What Dagster shows of texts from outside: a tick's line, a check's, an event's."""

from __future__ import annotations

import pytest

from harvest_dagster.harvest.room import ROOM
from harvest_dagster.harvest.status import ParkedCount
from harvest_dagster.orchestration.checks import evaluation
from harvest_dagster.orchestration.logbook import described
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.orchestration.sensor import line_of_tick
from harvest_dagster.orchestration.supervise import Step
from tests.support.hostile import TEXTS
from tests.support.statuses import event, lease, status, tour, verdicts


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_each_is_a_line(text: str) -> None:
    """Topics, reasons, leaders and troubles of any name stay in the line that tells of them."""
    seen = status(
        tours=[tour(held={text: text})],
        leases=[lease(holder=text)],
        parked=ParkedCount(1, 1, {text: 1}),
    )
    steps = [Step(f"standing by, {text} leads")]
    assert line_of_tick(steps, ROOM.about(seen), [text]).isprintable()
    names = Names("harvest")
    for verdict in verdicts(seen, 1):
        assert (evaluation(names, verdict).description or "").isprintable()
    assert described(event(1, text, holder=text, reason=text)).isprintable()
