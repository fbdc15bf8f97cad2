"""Facts as Dagster shows them: as metadata, with rows as a table."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from harvest_dagster.work.room import Facts, Row

_ROWS = 50


def as_metadata(facts: Facts) -> dict[str, dg.MetadataValue | int | float | str]:
    """Return facts as Dagster has them: rows as a table, and no table of none."""
    return {
        name: fact if isinstance(fact, str | int | float) else _table(fact)
        for name, fact in facts.items()
        if isinstance(fact, str | int | float) or fact
    }


def schema(row: Row) -> dg.TableSchema:
    """Return the columns of a table by one of its rows."""
    return dg.TableSchema([dg.TableColumn(name, _TYPES[type(fact)]) for name, fact in row.items()])


def _table(rows: Sequence[Row]) -> dg.MetadataValue:
    """Show the first fifty rows, each with the same columns."""
    records = [dg.TableRecord(dict(row)) for row in rows[:_ROWS]]
    return dg.MetadataValue.table(records, schema=schema(rows[0]))


_TYPES = {str: "string", int: "int", float: "float", bool: "bool"}
