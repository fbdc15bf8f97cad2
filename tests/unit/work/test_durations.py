from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from harvest_dagster.work.durations import Pause, Period, format_duration, parse_duration

PAUSE: TypeAdapter[float] = TypeAdapter(Pause)
PERIOD: TypeAdapter[float] = TypeAdapter(Period)
EXACT = 2**52
"""So many nanoseconds, 52 days, a float of seconds can tell from one more."""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("0s", 0),
        ("1s", 1),
        ("+5s", 5),
        ("-1s", -1),
        ("100ms", 0.1),
        ("2us", 2e-6),
        ("2\u00b5s", 2e-6),
        ("2\u03bcs", 2e-6),
        ("1ns", 1e-9),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("5.s", 5),
        ("1h30m", 5400),
        ("1h2m3.004s", 3723.004),
        ("3s1h", 3603),
        ("1s1s", 2),
        ("0.3333333333333333333h", 1199.999999999),
        ("720h", 30 * 24 * 3600),
        ("9223372036854775807ns", 9223372036.854775807),
    ],
)
def test_reads_as_go(text: str, seconds: float) -> None:
    """A duration means what it means to Go."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("1", "100", "1.5", "-5", "s", ".s", "1d", "1S", "1e3s", "--1s", "1s-1s", "1s5", "1,5s"),
        *("", " ", "1 s", " 1s", "1s ", "\u0661s", "abc", "infs", "9" * 5000 + "s"),
        *("9223372036854775808ns", "300000000h"),
    ],
)
def test_refuses_what_go_refuses(text: str) -> None:
    """What is no duration to Go is none here."""
    with pytest.raises(ValueError, match=r"unit|no duration|longer|digits"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("100", "it lacks its unit: write 100ms, 5s or 1h30m, of ns, us, ms, s, m and h"),
        ("30d", "this is no duration: write 100ms, 5s or 1h30m, of ns, us, ms, s, m and h"),
        ("300000000h", "it is longer than the 292 years of Go's durations"),
    ],
)
def test_refusal(text: str, said: str) -> None:
    """A refusal says what to write."""
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared whole
        parse_duration(text)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1e-9, "1ns"),
        (1.5e-6, "1.5\u00b5s"),
        (0.1, "100ms"),
        (0.0025, "2.5ms"),
        (2.5, "2.5s"),
        (10, "10s"),
        (60, "1m0s"),
        (5400, "1h30m0s"),
        (3600.5, "1h0m0.5s"),
        (-1.5, "-1.5s"),
    ],
)
def test_writes_as_go(seconds: float, text: str) -> None:
    """A duration is written as Go writes it."""
    assert format_duration(seconds) == text


@given(st.integers(-EXACT, EXACT))
def test_round_trip(nanoseconds: int) -> None:
    """What is written reads as what it was, to the nanosecond."""
    seconds = nanoseconds / 10**9
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.text("0123456789.+-nuµmsh", max_size=12))
def test_reads_or_refuses(text: str) -> None:
    """A text is read, and then can be written, or it is refused with a ValueError."""
    try:
        seconds = parse_duration(text)
    except ValueError:
        return
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["1500ms", 1.5, timedelta(seconds=1.5)])
def test_field_takes(value: object) -> None:
    """A field takes seconds, a timedelta or Go's text."""
    assert PERIOD.validate_python(value) == 1.5


@pytest.mark.parametrize(
    "value", [-1, "-1s", timedelta(-1), True, None, [], float("nan"), float("inf"), "1"]
)
def test_field_refuses(value: object) -> None:
    """A field refuses what is no duration, and what lies before zero."""
    with pytest.raises(ValidationError):
        PAUSE.validate_python(value)


def test_period_takes_time() -> None:
    """A period is of a millisecond at least, where a pause may be of none."""
    assert PAUSE.validate_python("0") == 0
    assert PERIOD.validate_python("1ms") == 0.001
    with pytest.raises(ValidationError, match="it must be 1ms or more"):
        PERIOD.validate_python("0")
