"""Names of tables that come from outside, checked before they reach any SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harvest_dagster.errors import ConfigError

_IDENTIFIER_BYTES = 63
_PLAIN = r"[A-Za-z_][A-Za-z0-9_$]*"
_QUOTED = (
    r'"(?:[^"%\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|"")+"'  # drivers read % as a placeholder
)
_FOLDED = re.compile(r"[a-z_][a-z0-9_$]*")
_NAME = re.compile(rf"(?:(?P<schema>{_PLAIN}|{_QUOTED})\.)?(?P<table>{_PLAIN}|{_QUOTED})")


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's name as PostgreSQL's catalogue has it, in a schema or found by the search path."""

    table: str
    schema: str | None = None

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Read a name as SQL would: folded to lower case unless it stands in double quotes."""
        match = _NAME.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"{text!r} is no table name: write table or schema.table, each of letters, digits,"
                ' "_" and "$", or in double quotes, without "%" and control characters'
            )
        schema = match["schema"]
        return cls(_fold(match["table"]), None if schema is None else _fold(schema))

    @property
    def sql(self) -> str:
        """The name quoted, safe to stand in a statement."""
        parts = (self.table,) if self.schema is None else (self.schema, self.table)
        return ".".join(map(quoted, parts))

    def __str__(self) -> str:
        """The name as `parse` reads it, in quotes only where it needs them."""
        parts = (self.table,) if self.schema is None else (self.schema, self.table)
        return ".".join(part if _FOLDED.fullmatch(part) else quoted(part) for part in parts)


def quoted(identifier: str) -> str:
    """Quote an identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def _fold(part: str) -> str:
    name = part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()
    if len(name.encode()) > _IDENTIFIER_BYTES:
        raise ConfigError(f"{name!r} is longer than PostgreSQL's {_IDENTIFIER_BYTES} bytes a name")
    return name
