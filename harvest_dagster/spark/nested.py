"""Types that can't be written, found on the driver, however deep in a column they are.

Otherwise a task would find them, and fail as often as Spark tries it. And Arrow takes some, such as
a VARIANT, for a type that can be written, which would write what nobody asked for.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CharType,
    DataType,
    DateType,
    FractionalType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from harvest_dagster.errors import ConfigError

_TEXTS = (StringType, CharType, VarcharType)
_KEYS = (*_TEXTS, IntegralType, BooleanType)
_TIMES = (DateType, TimestampType, TimestampNTZType)
_VALUES = (*_KEYS, *_TIMES, FractionalType, BinaryType, NullType)


def check_types(schema: StructType, path: str = "") -> None:
    """Raise a ConfigError that names the first column, or field in one, that can't be written."""
    for field in schema.fields:
        _check(f"{path}{field.name}", field.dataType)


def _check(path: str, type_: DataType) -> None:
    if isinstance(type_, StructType):
        check_types(type_, f"{path}.")
    elif isinstance(type_, ArrayType):
        _check(f"{path}.element", type_.elementType)
    elif isinstance(type_, MapType):
        _check_key(f"{path}.key", type_.keyType)
        _check(f"{path}.value", type_.valueType)
    elif not isinstance(type_, _VALUES):
        raise ConfigError(
            f"column {path} is {type_.simpleString()}, which can't be written: cast it to a type"
            " that PostgreSQL has, such as string"
        )


def _check_key(path: str, type_: DataType) -> None:
    if not isinstance(type_, _KEYS):
        raise ConfigError(
            f"column {path} is {type_.simpleString()}, which is no key of JSON: cast it to string,"
            " a whole number or boolean"
        )
