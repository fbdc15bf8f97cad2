"""SQL lives in `.sql` files as named statements; this reads them.

A statement starts at a line `-- name: what it is for` and ends at the next such line. The one
thing that is ever put into its text is a checked name, where it says `{table}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import LiteralString

from psycopg.sql import SQL, Composable, Composed, Identifier

from harvest_dagster.postgres.names import TableName

_HEADING = re.compile(r"^-- (?P<name>[a-z_]+): (?P<purpose>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a `.sql` file."""

    name: str
    purpose: str
    text: LiteralString

    def sql(self, **places: TableName | Composable) -> Composed:
        """Make it executable, with checked names, or what is made of them, in its places."""
        filled = {k: _identifier(v) if isinstance(v, TableName) else v for k, v in places.items()}
        return SQL(self.text).format(**filled)


@cache
def statements(package: str, file: str) -> dict[str, Statement]:
    """Read the statements of a package's `.sql` file, by name."""
    text = files(package).joinpath(file).read_text()
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return {
        heading["name"]: Statement(
            heading["name"], heading["purpose"], text[heading.end() : end].strip().rstrip(";")
        )
        for heading, end in zip(headings, ends, strict=True)
    }


def _identifier(name: TableName) -> Identifier:
    return Identifier(name.table) if name.schema is None else Identifier(name.schema, name.table)
