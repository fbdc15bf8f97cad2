"""Structs, maps and lists as JSON, as Spark's `to_json` writes them.

Only times differ: they keep their microseconds, and their zone is `+00:00`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa

_PLAIN_FROM, _PLAIN_TO = 1e-3, 1e7


def json_texts(array: pa.Array) -> pa.Array:
    """Return each value as JSON; null stays null."""
    write = _writer(array.type)
    return pa.array([None if v is None else write(v) for v in array.to_pylist()], pa.string())


def _writer(type_: pa.DataType) -> Callable[[Any], str]:
    """Return what writes values of a type, so that we look at the type once, not for each value."""
    if pa.types.is_struct(type_):
        return _struct(type_)
    if pa.types.is_map(type_):
        return _map(type_)
    if pa.types.is_float32(type_):
        return lambda value: _float(value, str(np.float32(value)))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        item = _writer(type_.value_type)
        return lambda values: f"[{','.join('null' if v is None else item(v) for v in values)}]"
    return _scalar


def _struct(type_: pa.DataType) -> Callable[[Any], str]:
    fields = [(f.name, f"{_scalar(f.name)}:", _writer(f.type)) for f in type_]

    def write(row: dict[str, Any]) -> str:
        known = ((head, item, row[name]) for name, head, item in fields)
        return f"{{{','.join(head + item(v) for head, item, v in known if v is not None)}}}"

    return write


def _map(type_: pa.DataType) -> Callable[[Any], str]:
    item = _writer(type_.item_type)

    def write(pairs: list[tuple[Any, Any]]) -> str:
        known = (f"{_scalar(_key(k))}:{'null' if v is None else item(v)}" for k, v in pairs)
        return f"{{{','.join(known)}}}"

    return write


def _key(value: Any) -> str:  # noqa: ANN401 - text, a whole number or a boolean
    return str(value).lower() if isinstance(value, bool) else str(value)


def _float(value: float, digits: str) -> str:
    """Return a number as Java writes it: plain from 0.001 to 10,000,000, else with an exponent."""
    if not isfinite(value):
        return f'"{value}"'.replace("nan", "NaN").replace("inf", "Infinity")
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        return digits
    sign, figures, exponent = Decimal(digits).normalize().as_tuple()
    first, *rest = map(str, figures)
    power = len(rest) + int(exponent)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{power}"


def _scalar(value: Any) -> str:  # noqa: ANN401 - whatever Arrow gives
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float):
        return _float(value, repr(value))
    if isinstance(value, bytes):
        return f'"{b64encode(value).decode()}"'
    if isinstance(value, datetime):
        return f'"{value.isoformat(timespec="microseconds" if value.microsecond else "seconds")}"'
    if isinstance(value, date):
        return f'"{value.isoformat()}"'
    return json.dumps(value, ensure_ascii=False)
