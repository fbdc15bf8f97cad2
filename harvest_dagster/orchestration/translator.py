"""What a harvest's assets are in Dagster: a subclass says what is to be otherwise.

    class Ours(HarvestTranslator):
        def group_name(self, key: str) -> str:
            return "messaging"

    harvest_definitions(harvest, key="shop", translator=Ours())

`key` is the key of what is led, as `shop`. One object serves all that have a topic in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from harvest_dagster.work.room import AssetText, CheckText


class HarvestTranslator:
    """Turns what a room says of its assets into Dagster's terms; each method stands for one."""

    def asset_key(self, key: str, asset: str) -> dg.AssetKey:
        """Return the key of an asset, as `outbox` or `lease`."""
        return dg.AssetKey([key, asset])

    def topic_key(self, topic: str) -> dg.AssetKey:
        """Return the key of a topic's asset: the same for whoever publishes to it."""
        return dg.AssetKey(["kafka", topic])

    def group_name(self, key: str) -> str:
        """Return the group that the assets are in."""
        return key

    def owners(self, key: str, asset: AssetText) -> Sequence[str]:
        """Return the owners of an asset."""
        del key, asset
        return ["team:harvest"]

    def kinds(self, key: str, asset: AssetText) -> set[str]:
        """Return the kinds of an asset, three at most."""
        del key
        return set(asset.kinds)

    def description(self, key: str, asset: AssetText) -> str:
        """Return what is said of an asset."""
        del key
        return asset.says

    def tags(self, key: str, asset: AssetText) -> Mapping[str, str]:
        """Return the tags of an asset."""
        del key, asset
        return {}

    def metadata(self, key: str, asset: AssetText) -> Mapping[str, object]:
        """Return the metadata of an asset, beside what is known of it already."""
        del key, asset
        return {}

    def check_description(self, key: str, check: CheckText) -> str:
        """Return what is said of a check; its name is what operators and alerts know it by."""
        del key
        return check.says
