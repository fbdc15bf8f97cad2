"""For assets that stash: the key of a materialization, and what Dagster shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import dagster as dg

from harvest_dagster.ledger.keys import scoped
from harvest_dagster.ledger.once import OnRepeat, Written
from harvest_dagster.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 5
OUTBOX = dg.AssetKey(["harvest", "outbox"])


class Repeat(dg.Config):
    """What becomes of a materialization whose messages are stashed already."""

    on_repeat: OnRepeat = "skip"

    def options(
        self, context: dg.AssetExecutionContext, *, scope: str | None = None
    ) -> dict[str, Any]:
        """Return the key for `transaction`, what to do if it was written, and the launch.

        The key is what `stash_key` returns for this scope. A run that is executed again has the
        configuration of the first. It is the same launch, so that `again` does not write once more
        what the first has written.
        """
        launch = _first_run(context)
        key = stash_key(context, scope=scope)
        return {"key": key, "on_repeat": self.on_repeat, "launch": launch}


class Write(Protocol):
    """A transaction of Spark's, or the progress of a stream, at its end."""

    @property
    def written(self) -> Written: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102


class Frame(Protocol):
    """A DataFrame of Spark's."""

    columns: Any

    def take(self, num: int) -> Iterable[Any]: ...  # noqa: D102


def stash_key(context: dg.AssetExecutionContext, *, scope: str | None = None) -> str | list[str]:
    """Return the key under which a materialization is stashed once for each outbox.

    It names the asset and its partition; for a range of partitions there is a key for each; without
    partitions it names the run. A run that is executed again, from failure or from the start, has
    the key of the first.

    Its scope is the code location, whose assets may have the same names as those of another one.
    Give the `scope` of a code location that is renamed, so that it still knows what it wrote. In a
    run that no code location has launched, such as `materialize` in a test, a key without a given
    scope is bare.
    """
    scope = _code_location(context) if scope is None else scope
    keys = [key if scope is None else scoped(key, scope) for key in _bare_keys(context)]
    return keys[0] if len(keys) == 1 else keys


def _bare_keys(context: dg.AssetExecutionContext) -> list[str]:
    asset = context.asset_key.to_user_string()
    if context.has_partition_key:
        return [f"{asset}/{context.partition_key}"]
    if context.has_partition_key_range:
        return [f"{asset}/{partition}" for partition in context.partition_keys]
    return [f"{asset}/{_first_run(context)}"]


def _code_location(context: dg.AssetExecutionContext) -> str | None:
    origin = context.run.remote_job_origin
    return None if origin is None else origin.location_name


def _first_run(context: dg.AssetExecutionContext) -> str:
    return context.run.root_run_id or context.run.run_id


def stash_report(
    write: Write, *, sample: Frame | None = None, outbox: dg.AssetKey = OUTBOX
) -> dict[str, Any]:
    """Return the metadata that shows what was stashed, and which rows were written with it.

    If nothing was, since it was written before, the metadata and the run's log have a warning.
    """
    written = write.written
    shown: dict[str, Any] = {
        "stashed": 0 if written.repeated else written.messages,
        "seconds": round(write.seconds, 3),
        "outbox": dg.MetadataValue.asset(outbox),
    }
    if written.first_id is not None:
        shown["ids"] = f"{written.first_id:,} to {written.last_id:,}"
    if written.repeated:
        shown["repeated"] = _warned(written)
    for table, rows in written.tables.items():
        shown[f"rows in {table}"] = rows
    if sample is not None and not written.repeated:
        shown["sample"] = _table(sample)
    return shown


def _warned(written: Written) -> str:
    """Warn in the log of the run, if there is one, that nothing was written; return the warning."""
    under = (
        "" if written.known_by is None else f", last under the key {printable(written.known_by)}"
    )
    warning = (
        f"nothing was written, for it was stashed before{under}; a new run with on_repeat: again"
        " writes it again"
    )
    dg.get_dagster_logger().warning(warning)
    return f"warning: {warning}"


def _table(frame: Frame) -> dg.TableMetadataValue:
    names = list(frame.columns)
    records = [
        dg.TableRecord({name: str(row[name]) for name in names}) for row in frame.take(_SHOWN)
    ]
    columns = [dg.TableColumn(name) for name in names]
    return dg.MetadataValue.table(records, dg.TableSchema(columns))
