"""The lake: Parquet files, a directory for each asset and day."""

from pathlib import Path

import dagster as dg


class Lake(dg.ConfigurableResource[None]):
    """Where Spark's files are: a directory here, or anything that Spark can read and write."""

    root: str = str(Path(".harvest", "lake").absolute())

    def day(self, asset: str, day: str) -> str:
        """Tell where an asset's files of a day are."""
        return f"{self.root}/{asset}/day={day}"

    def days(self, asset: str) -> str:
        """Tell where an asset's files of all days are."""
        return f"{self.root}/{asset}/day=*"

    def checkpoint(self, asset: str) -> str:
        """Tell where a stream remembers how far it is."""
        return f"{self.root}/_checkpoints/{asset}"
