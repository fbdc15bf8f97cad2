"""Files of a day in the lake, and what Dagster is told of them."""

import time
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame

_SHOWN = 5


def write_files(frame: DataFrame, path: str) -> dict[str, Any]:
    """Write a day's files anew; tell how many rows there are, where, after how long, and a few."""
    began = time.monotonic()
    frame.write.mode("overwrite").parquet(path)
    seconds = time.monotonic() - began
    written = frame.sparkSession.read.parquet(path)
    return {
        "dagster/row_count": written.count(),
        "seconds": round(seconds, 3),
        "path": dg.MetadataValue.path(path),
        "sample": _sample(written),
    }


def _sample(frame: DataFrame) -> dg.TableMetadataValue:
    rows = [
        {name: str(value) for name, value in row.asDict().items()} for row in frame.take(_SHOWN)
    ]
    columns = [dg.TableColumn(name) for name in frame.columns]
    return dg.MetadataValue.table([dg.TableRecord(row) for row in rows], dg.TableSchema(columns))
