"""All of one harvest, or of whatever else is led, for a project's Definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg
from pydantic import BaseModel

from harvest_dagster.errors import ConfigError
from harvest_dagster.orchestration.assets import harvest_assets, led_assets
from harvest_dagster.orchestration.checks import harvest_checks, led_checks
from harvest_dagster.orchestration.led_job import WORK, led_job
from harvest_dagster.orchestration.led_resource import led_resource
from harvest_dagster.orchestration.operate import operator_jobs
from harvest_dagster.orchestration.part_names import Names
from harvest_dagster.orchestration.resources import HarvestResource
from harvest_dagster.orchestration.sensor import leader_sensor, led_sensor
from harvest_dagster.orchestration.tour_job import tour_job
from harvest_dagster.orchestration.translator import HarvestTranslator
from harvest_dagster.work.room import Room, rooms


def harvest_definitions(
    harvest: HarvestResource | None = None,
    *,
    key: str = "harvest",
    topics: Sequence[str] = (),
    upstream: Sequence[dg.CoercibleToAssetKey] = (),
    running: bool = False,
    translator: HarvestTranslator | None = None,
) -> dg.Definitions:
    """Make the assets, checks, jobs, sensor and resources of one harvest.

    `key` sets it apart from others; `topics` and `upstream` are what the lineage shows behind and
    before the outbox; a `translator` gives the assets other keys, groups, owners and the like. What
    is wrong in the resource itself is refused here, when it is loaded.
    """
    names = Names(key, translator or HarvestTranslator())
    resource = harvest or HarvestResource()
    resource.check()
    return dg.Definitions(
        assets=harvest_assets(names, topics, upstream),
        asset_checks=harvest_checks(names),
        jobs=[tour_job(names), *operator_jobs(names)],
        sensors=[leader_sensor(names, topics, running=running)],
        resources={names.key: resource, names.handles: dg.mem_io_manager},
    )


def led_definitions(
    room: Room | str,
    given: BaseModel | None = None,
    *,
    key: str,
    upstream: Sequence[dg.CoercibleToAssetKey] = (),
    running: bool = False,
    translator: HarvestTranslator | None = None,
) -> dg.Definitions:
    """Make the same of anything that a room leads, named by its word, or described.

    What is `given` is the room's options, or a resource that has them, as `led_resource` makes it.
    """
    names = Names(key, translator or HarvestTranslator())
    found = _room(room)
    return dg.Definitions(
        assets=led_assets(names, found, upstream),
        asset_checks=led_checks(names, found),
        jobs=[led_job(names, found), *operator_jobs(names, found)],
        sensors=[led_sensor(names, found, op=WORK, running=running)],
        resources={names.key: _resource(found, given)},
    )


def _room(room: Room | str) -> Room:
    if isinstance(room, Room):
        return room
    known = {each.word: each for each in rooms() if each.led is not None}
    if room not in known:
        raise ConfigError(f"nothing is led that is called {room!r}; there is {', '.join(known)}")
    return known[room]


def _resource(room: Room, given: BaseModel | None) -> Any:  # noqa: ANN401 - of a class made for it
    if isinstance(given, dg.ConfigurableResource):
        return given
    values = {} if given is None else given.model_dump(exclude_unset=True)
    return led_resource(room)(**values)
