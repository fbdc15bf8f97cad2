"""The assets of a harvest: what its tables and topics are called in Dagster's catalogue.

None of them is materialised by a run: the sensor reports what it sees, as observations, whose
figures Dagster plots over time.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from harvest_dagster.orchestration.names import Names

_OWNERS = ["team:harvest"]


def harvest_assets(
    names: Names, topics: Sequence[str], upstream: Sequence[dg.CoercibleToAssetKey]
) -> list[dg.AssetSpec]:
    """Tell of outbox, lease, remarks and parked records, and of the topics behind them."""
    outbox = names.asset("outbox")
    return [
        _spec(
            names,
            "outbox",
            "Messages that wait to be published: backlog, age of the oldest, in flight, rate.",
            deps=upstream,
            kinds={"postgres", "outbox"},
        ),
        _spec(
            names,
            "lease",
            "Who leads, under which epoch, and how each term began and ended.",
            deps=[outbox],
            kinds={"postgres", "kafka"},
        ),
        _spec(
            names,
            "remarks",
            "What was marked again, since nobody could tell that it had been published.",
            deps=[outbox],
            kinds={"postgres"},
        ),
        _spec(
            names,
            "parked",
            "Records that Kafka refused for good, with the reason; an operator lets them go on.",
            deps=[outbox],
            kinds={"postgres"},
        ),
        *(topic_asset(names, topic) for topic in topics),
    ]


_topics: dict[str, dg.AssetSpec] = {}


def topic_asset(names: Names, topic: str) -> dg.AssetSpec:
    """Tell of a topic: of one that several outboxes publish to by the same asset, behind them all.

    Dagster takes an asset that comes with several Definitions if it is one and the same object. So
    this process makes it once, for whoever publishes to it first, and puts the others before it.
    """
    outbox = dg.AssetDep(names.asset("outbox"))
    made = _topics.get(topic)
    if made is None:
        made = _topics[topic] = dg.AssetSpec(
            names.topic(topic),
            deps=[outbox],
            group_name=names.key,
            kinds={"kafka"},
            owners=_OWNERS,
            description=f"The topic {topic}, and how much is in it.",
            metadata={"topic": topic},
        )
    before = made.deps
    if isinstance(before, list) and outbox not in before:
        before.append(outbox)
    return made


def _spec(
    names: Names,
    what: str,
    description: str,
    *,
    deps: Sequence[dg.CoercibleToAssetKey],
    kinds: set[str],
) -> dg.AssetSpec:
    return dg.AssetSpec(
        names.asset(what),
        deps=deps,
        group_name=names.key,
        kinds=kinds,
        owners=_OWNERS,
        description=description,
    )
