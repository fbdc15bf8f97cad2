"""How long a silence of the sensor's may be, by how often it ticks."""

from __future__ import annotations

import pytest

from harvest_dagster.orchestration.pulse import Pulse
from tests.support.clock import Clock


@pytest.mark.parametrize(
    ("apart", "silence", "late"),
    [
        pytest.param(5.0, 15.0, False, id="as they should"),
        pytest.param(8.0, 20.0, False, id="slow"),
        pytest.param(20.0, 25.0, True, id="held up by other sensors"),
        pytest.param(90.0, 25.0, True, id="too late to lead for long"),
        pytest.param(600.0, 25.0, False, id="it was off"),
    ],
)
def test_silence(apart: float, silence: float, late: bool) -> None:
    """Late ticks are waited for as long as leadership may stay unattended, and told of."""
    clock = Clock()
    ticks = Pulse(clock)
    clock.time += apart
    ticks.tick()
    assert ticks.silence == silence
    assert ("use_threads" in ticks.trouble) == late
    clock.time += silence
    assert not ticks.is_silent
    clock.time += 0.1
    assert ticks.is_silent
