"""When no tick comes any more, the check still turns red; in a Dagster that keeps its events."""

from __future__ import annotations

import dagster as dg

from harvest_dagster.orchestration import Names, harvest_definitions
from harvest_dagster.orchestration.sensor import telling

NAMES = Names("harvest")


def test_that_nobody_leads_reaches_dagster() -> None:
    """It is reported without a tick, by a thread that has the instance's address only."""
    check = dg.AssetCheckKey(NAMES.asset("lease"), "one_leader")
    assert check in harvest_definitions().resolve_asset_graph().asset_check_keys
    with dg.DagsterInstance.local_temp() as instance:
        telling(instance.get_ref(), NAMES, "the shop")()
        (record,) = instance.event_log_storage.get_asset_check_execution_history(check, 5)
        assert record.event is not None
        evaluation = record.event.asset_check_evaluation
    assert evaluation is not None
    assert not evaluation.passed
    assert "nobody leads the shop" in str(evaluation.description)
