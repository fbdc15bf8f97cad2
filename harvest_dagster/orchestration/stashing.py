"""What an asset that stashes tells Dagster: what was stashed, and under which key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

import dagster as dg

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SHOWN = 5
OUTBOX = dg.AssetKey(["harvest", "outbox"])


class Repeat(dg.Config):
    """What becomes of a materialization whose messages are stashed already."""

    on_repeat: Literal["skip", "again", "error"] = "skip"

    def options(self, context: dg.AssetExecutionContext) -> dict[str, Any]:
        """Tell `transaction` the key, and what to do about a repetition, once for each launch.

        A run that is executed again has the configuration of the first, though nobody asked twice.
        """
        launch = _first_run(context)
        return {"key": stash_key(context), "on_repeat": self.on_repeat, "launch": launch}


class Written(Protocol):
    """What a write has done."""

    @property
    def messages(self) -> int: ...  # noqa: D102
    @property
    def first_id(self) -> int | None: ...  # noqa: D102
    @property
    def last_id(self) -> int | None: ...  # noqa: D102
    @property
    def tables(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def repeated(self) -> bool: ...  # noqa: D102


class Write(Protocol):
    """A transaction of Spark's, at its end."""

    @property
    def written(self) -> Written: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102


class Frame(Protocol):
    """A DataFrame of Spark's."""

    columns: Any

    def take(self, num: int) -> Iterable[Any]: ...  # noqa: D102


def stash_key(context: dg.AssetExecutionContext) -> str | list[str]:
    """Name what is stashed once: an asset's partition, or each of a range; without any, its run.

    A run that is executed again, from failure or from the start, has the name of the first.
    """
    asset = context.asset_key.to_user_string()
    if context.has_partition_key:
        return f"{asset}/{context.partition_key}"
    if context.has_partition_key_range:
        keys = [f"{asset}/{partition}" for partition in context.partition_keys]
        return keys[0] if len(keys) == 1 else keys
    return f"{asset}/{_first_run(context)}"


def _first_run(context: dg.AssetExecutionContext) -> str:
    return context.run.root_run_id or context.run.run_id


def stash_report(
    write: Write, *, sample: Frame | None = None, outbox: dg.AssetKey = OUTBOX
) -> dict[str, Any]:
    """Tell what was stashed, and which rows were written with it."""
    written = write.written
    told: dict[str, Any] = {
        "stashed": 0 if written.repeated else written.messages,
        "seconds": round(write.seconds, 3),
        "outbox": dg.MetadataValue.asset(outbox),
    }
    if written.first_id is not None:
        told["ids"] = f"{written.first_id:,} to {written.last_id:,}"
    if written.repeated:
        told["repeated"] = (
            "stashed before: nothing was written; a new run with on_repeat: again writes it again"
        )
    for table, rows in written.tables.items():
        told[f"rows in {table}"] = rows
    if sample is not None and not written.repeated:
        told["sample"] = _table(sample)
    return told


def _table(frame: Frame) -> dg.TableMetadataValue:
    names = list(frame.columns)
    records = [
        dg.TableRecord({name: str(row[name]) for name in names}) for row in frame.take(_SHOWN)
    ]
    columns = [dg.TableColumn(name) for name in names]
    return dg.MetadataValue.table(records, dg.TableSchema(columns))
