"""What everything of whatever is led is called in Dagster: all of it begins with one key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import dagster as dg

from harvest_dagster.errors import ConfigError
from harvest_dagster.orchestration.translator import HarvestTranslator

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
OUTBOX_TAG, SHARD_TAG = "harvest/name", "harvest/shard"
"""The tags of a run that people see."""
TABLE_TAG, HOLDER_TAG, EPOCH_TAG = (
    ".dagster/harvest_table",
    ".dagster/harvest_holder",
    ".dagster/harvest_epoch",
)
"""Tags by which we find runs; Dagster's pages leave out what begins so."""
NO_RETRY = {"dagster/max_retries": "0"}
"""Whatever Dagster does with other runs: the sensor starts the next tour, and what an operator's
job has written is not to be written twice."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the parts; `key` is also the key of the resource."""

    key: str
    translator: HarvestTranslator = field(default_factory=HarvestTranslator, compare=False)

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise ConfigError(f"{self.key!r} can't be a harvest's key: use letters, digits and '_'")

    def job(self, verb: str) -> str:
        """The job that does this: `tour`, or one of the operator's."""
        return f"{self.key}_{verb}"

    @property
    def sensor(self) -> str:
        """The sensor that leads."""
        return f"{self.key}_leader"

    @property
    def handles(self) -> str:
        """The I/O manager that hands a running tour from op to op."""
        return f"{self.key}_handles"

    def asset(self, what: str) -> dg.AssetKey:
        """The asset of that name: of a harvest `outbox`, `lease`, `remarks` or `parked`."""
        return self.translator.asset_key(self.key, what)

    def topic(self, topic: str) -> dg.AssetKey:
        """The asset of one of Kafka's topics."""
        return self.translator.topic_key(topic)
