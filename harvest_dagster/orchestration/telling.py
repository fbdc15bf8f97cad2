"""Figures as people read them."""

from __future__ import annotations

from collections.abc import Mapping

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def told(figures: Mapping[str, int]) -> str:
    """What a tour has done."""
    also = {what: figures[what] for what in ("remarked", "parked") if figures[what]}
    rest = "".join(f", {count:,} {what}" for what, count in also.items())
    return f"{figures['published']:,} published{rest}"


def ages(seconds: float) -> str:
    """A time span, in the unit that suits it."""
    if seconds < _MINUTE:
        return f"{seconds:,.1f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:,.0f} min"
    if seconds < 2 * _DAY:
        return f"{seconds / _HOUR:,.1f} h"
    return f"{seconds / _DAY:,.1f} days"
