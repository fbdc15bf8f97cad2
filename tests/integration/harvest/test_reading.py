"""What the sensor asks of an outbox with every tick is answered from its index."""

from __future__ import annotations

from typing import Any

from harvest_dagster.harvest import meter
from harvest_dagster.postgres.connect import connect
from harvest_dagster.postgres.names import TableName
from tests.support.place import Place


def plan(connection: Any) -> str:
    """Tell how the backlog is read."""
    query = meter._SQL["backlog"].sql(table=TableName("outbox"))  # noqa: SLF001 - the very statement
    rows = connection.execute("EXPLAIN " + query.as_string(None), {"most": meter.COUNTED})
    return "\n".join(row[0] for row in rows)


def test_a_tick_reads_no_dead_rows(place: Place) -> None:
    """After a drain the table is full of them: only the index tells soon that nothing waits."""
    place.put(300)
    by_index = connect(place.postgres, "test", by_index=True)
    with place.connect() as plain, by_index as reading:
        assert "Seq Scan" in plan(plain)
        assert "Seq Scan" not in plan(reading)
