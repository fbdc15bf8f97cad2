"""Durations as Go writes them, 1s, 100ms, 1h30m, and as Python takes them, in seconds."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

_SECOND = 1_000_000_000
_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_LONGEST = 2**63 - 1
_PART = rf"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:{'|'.join(_NANOSECONDS)})"
_DURATION = re.compile(rf"[-+]?(?:{_PART})+")
_PARTS = re.compile(r"([0-9.]+)([^0-9.]+)")
_BARE = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?")


def parse_duration(text: str) -> float:
    """Read a duration by Go's rules, in seconds; what is none raises a ValueError."""
    if text in ("0", "+0", "-0"):
        return 0.0
    if not _DURATION.fullmatch(text):
        lacking = "it lacks its unit" if _BARE.fullmatch(text) else "this is no duration"
        raise ValueError(f"{lacking}: write 100ms, 5s or 1h30m, of ns, us, ms, s, m and h")
    parts = _PARTS.findall(text)
    nanoseconds = sum(int(Fraction(number) * _NANOSECONDS[unit]) for number, unit in parts)
    if nanoseconds > _LONGEST:
        raise ValueError("it is longer than the 292 years of Go's durations")
    return (-nanoseconds if text.startswith("-") else nanoseconds) / _SECOND


def format_duration(seconds: float) -> str:
    """Write a duration as Go would."""
    nanoseconds = round(Fraction(seconds) * _SECOND)
    sign = "-" if nanoseconds < 0 else ""
    return sign + _written(abs(nanoseconds))


def _seconds(given: object) -> float:
    if isinstance(given, str):
        return parse_duration(given)
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ValueError("this is no duration: give seconds, a timedelta, or a text as 100ms or 5s")
    return float(given)


def _at_least(least: float) -> AfterValidator:
    def check(seconds: float) -> float:
        if seconds < least:
            raise ValueError(f"it must be {format_duration(least)} or more")
        return seconds

    return AfterValidator(check)


Pause = Annotated[float, BeforeValidator(_seconds), _at_least(0)]
"""A field of zero seconds or more, given as such, as a timedelta or as Go's text."""

Period = Annotated[float, BeforeValidator(_seconds), _at_least(0.001)]
"""Likewise a field of at least a millisecond, for what must take time."""


def _written(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    for unit in ("ns", "µs", "ms"):
        if nanoseconds < 1000 * _NANOSECONDS[unit]:
            return _amount(nanoseconds, unit)
    minutes, rest = divmod(nanoseconds, _NANOSECONDS["m"])
    hours, minutes = divmod(minutes, 60)
    longer = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return longer + _amount(rest, "s")


def _amount(nanoseconds: int, unit: str) -> str:
    amount = Decimal(nanoseconds) / _NANOSECONDS[unit]
    return f"{amount.normalize():f}{unit}"
