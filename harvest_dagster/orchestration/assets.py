"""The assets of whatever is led: what its tables and topics are called in Dagster's catalogue.

None of them is materialised by a run: the sensor reports what it sees, as observations, whose
figures Dagster plots over time.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from harvest_dagster.harvest.room import ROOM
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.work.described import assets_of
from harvest_dagster.work.room import AssetText, Room


def led_assets(
    names: Names, room: Room, upstream: Sequence[dg.CoercibleToAssetKey] = ()
) -> list[dg.AssetSpec]:
    """Make the assets of what a room leads; those of `upstream` come before the first ones."""
    return [
        _spec(
            names,
            asset,
            names.asset(asset.name),
            [names.asset(each) for each in asset.behind] or upstream,
        )
        for asset in assets_of(room)
    ]


def harvest_assets(
    names: Names, topics: Sequence[str], upstream: Sequence[dg.CoercibleToAssetKey]
) -> list[dg.AssetSpec]:
    """Make those of outbox, lease, remarks and parked records, and of the topics behind them."""
    return [
        *led_assets(names, ROOM, upstream),
        *(topic_asset(names, topic) for topic in topics),
    ]


_topics: dict[dg.AssetKey, dg.AssetSpec] = {}


def topic_asset(names: Names, topic: str) -> dg.AssetSpec:
    """Return the asset of a topic: the same one for several outboxes, behind them all.

    Dagster takes an asset that comes with several Definitions if it is one and the same object. So
    this process makes it once, for whoever publishes to it first, and puts the others before it.
    """
    key, outbox = names.topic(topic), dg.AssetDep(names.asset("outbox"))
    made = _topics.get(key)
    if made is None:
        kinds = frozenset({"kafka"})
        says = (
            f"The topic {topic}, and the sum of its partitions' end offsets, in which the marks of"
            " transactions count as well."
        )
        text = AssetText(topic, says, kinds)
        made = _topics[key] = _spec(names, text, key, [outbox], topic=topic)
    before = made.deps
    if isinstance(before, list) and outbox not in before:
        before.append(outbox)
    return made


def _spec(
    names: Names,
    asset: AssetText,
    key: dg.AssetKey,
    deps: Sequence[dg.CoercibleToAssetDep],
    **metadata: str,
) -> dg.AssetSpec:
    ours = names.translator
    return dg.AssetSpec(
        key,
        deps=deps,
        group_name=ours.group_name(names.key),
        kinds=ours.kinds(names.key, asset),
        owners=ours.owners(names.key, asset),
        description=ours.description(names.key, asset),
        tags=ours.tags(names.key, asset),
        metadata={**metadata, **ours.metadata(names.key, asset)},
    )
