"""When no tick comes any more, the check still turns red; in a Dagster that keeps its events."""

from __future__ import annotations

import dagster as dg

from harvest_dagster.harvest.room import ROOM
from harvest_dagster.orchestration import Names, harvest_definitions
from harvest_dagster.orchestration.sensor import telling

NAMES = Names("harvest")


def test_that_nobody_leads_reaches_dagster() -> None:
    """It is reported without a tick, by a thread that has the instance's address only.

    No other check stays green on what was seen before.
    """
    keys = harvest_definitions().resolve_asset_graph().asset_check_keys
    with dg.DagsterInstance.local_temp() as instance:
        telling(instance.get_ref(), NAMES, ROOM, "the shop")()
        storage = instance.event_log_storage
        found = {key: storage.get_asset_check_execution_history(key, 5) for key in keys}
    said = {}
    for key, (record,) in found.items():
        assert record.event is not None
        assert record.event.asset_check_evaluation is not None
        assert not record.event.asset_check_evaluation.passed
        said[key.name] = str(record.event.asset_check_evaluation.description)
    assert said.pop("one_leader").startswith("nobody leads, the sensor of the shop does not tick")
    assert all("the sensor of the shop does not tick" in each for each in said.values())
