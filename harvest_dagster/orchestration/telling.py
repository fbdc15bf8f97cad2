"""Figures as people read them."""

from __future__ import annotations

from harvest_dagster.harvest.tour import Totals

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def told(totals: Totals) -> str:
    """What a tour has done."""
    rest = "".join(
        f", {number:,} {what}"
        for what, number in (("remarked", totals.remarked), ("parked", totals.parked))
        if number
    )
    return f"{totals.published:,} published{rest}"


def ages(seconds: float) -> str:
    """A time span, in the unit that suits it."""
    if seconds < _MINUTE:
        return f"{seconds:,.1f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:,.0f} min"
    if seconds < 2 * _DAY:
        return f"{seconds / _HOUR:,.1f} h"
    return f"{seconds / _DAY:,.1f} days"
