"""Text from outside, as it may stand in a log, on a terminal, or in one line of anything."""

from __future__ import annotations

_KINDS = {
    "NoneType": "null (None)",
    "bool": "true or false",
    "bytes": "bytes",
    "dict": "an object (dict)",
    "float": "a number",
    "int": "a number",
    "list": "an array (list)",
    "str": "text (str)",
}
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def printable(text: str) -> str:
    """Write what can't be printed as its escape, so that it ends no line and colours none."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(count: int, one: str, more: str | None = None) -> str:
    """Count things for people: 1 record, 2,000 records."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def kind_of(value: object) -> str:
    """Say what a value is, to who wrote it in Python or in JSON."""
    name = type(value).__name__
    return _KINDS.get(name, f"of type {name}")


def one_line(error: BaseException) -> str:
    """What an error says, in a line."""
    return printable(" ".join(str(error).split())) or type(error).__name__


def ages(seconds: float) -> str:
    """Write a time span in the unit that suits it."""
    if seconds < _MINUTE:
        return f"{seconds:,.1f} s"
    if seconds < 2 * _HOUR:
        return f"{seconds / _MINUTE:,.0f} min"
    if seconds < 2 * _DAY:
        return f"{seconds / _HOUR:,.1f} h"
    return f"{seconds / _DAY:,.1f} days"
