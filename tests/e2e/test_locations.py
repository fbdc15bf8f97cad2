"""Two code locations of one Dagster, with an asset of one name."""

from __future__ import annotations

import pytest
import yaml

from tests.support.dagster_dev import dagster_dev
from tests.support.project import Project
from tests.support.ui import Ui

pytestmark = pytest.mark.long

DAY = "2026-01-02"
CODE = """
import dagster as dg

from harvest_dagster.orchestration import stash_key

DAYS = dg.DailyPartitionsDefinition("2026-01-01")


@dg.asset(partitions_def=DAYS)
def sales(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"key": stash_key(context)})


@dg.asset(partitions_def=DAYS)
def LOCATION_stock(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"key": stash_key(context)})


defs = dg.Definitions([sales, LOCATION_stock])
"""


def test_each_has_keys_of_its_own(project: Project) -> None:
    """A day's key names the code location, be the day launched alone or by a back-fill."""
    files = []
    for name in ("north", "south"):
        (project.folder / f"{name}.py").write_text(CODE.replace("LOCATION", name))
        files.append({"python_file": {"relative_path": f"{name}.py", "location_name": name}})
    (project.folder / "workspace.yaml").write_text(yaml.safe_dump({"load_from": files}))
    with dagster_dev(project) as running:
        for name in ("north", "south"):
            ui = Ui(running.ui.url, name)
            assert ui.wait_for_run(ui.launch_assets("sales", partition=DAY)) == "SUCCESS"
            assert key(ui, "sales") == f"scope={name} key=sales/{DAY}"
        filled = ui.launch_backfill(["south_stock"], [DAY])
        assert ui.wait_for_backfill(filled) == "COMPLETED_SUCCESS"
        assert key(ui, "south_stock") == f"scope=south key=south_stock/{DAY}"


def key(ui: Ui, asset: str) -> str:
    """Return the key of an asset's newest materialization."""
    return str(ui.materializations(asset)[0].metadata["key"])
