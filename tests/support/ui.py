"""A client of Dagster's GraphQL: what a person sees and presses in the UI."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.support import answers, graphql, waiting
from tests.support.answers import Asset, AssetEvent, Check, LogLine, Run, Tick

T = TypeVar("T")

ENDED = frozenset({"SUCCESS", "FAILURE", "CANCELED"})
ASSETS_JOB = "__ASSET_JOB"
PARTITION = "dagster/partition"
ANSWER_SECONDS = 60.0
BACKFILL_SECONDS = 400.0
POLL = 0.25


class UiError(Exception):
    """Dagster refused what was asked; the message is its own."""


def until(true: Callable[[], T], seconds: float = 120.0, what: str = "it holds") -> T:
    """Wait until Dagster shows something, which takes it longer, and return what it was."""
    return waiting.until(true, seconds, what, POLL)


class Ui:
    """One `dagster dev`, with one code location, or one of several."""

    def __init__(self, url: str, location: str | None = None) -> None:
        self.url, self._location = url, location

    def ask(self, query: str, **variables: Any) -> Any:
        """Ask anything; tell the value of the one field that was asked for."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/graphql", body, head)  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:  # noqa: S310
            found = json.load(answer)
        if "errors" in found:
            raise UiError("; ".join(error["message"] for error in found["errors"]))
        (value,) = found["data"].values()
        return value

    # The code location

    def load_errors(self) -> dict[str, str]:
        """Tell what each code location could not be loaded for."""
        return {
            entry["name"]: answers.reason(entry["locationOrLoadError"])
            for entry in self._locations()
            if "message" in (entry["locationOrLoadError"] or {})
        }

    def loaded(self) -> bool:
        """Tell whether there are code locations, and none is being loaded."""
        found = self._locations()
        return bool(found) and all(entry["loadStatus"] == "LOADED" for entry in found)

    def reload(self) -> None:
        """Load the code location anew, as the button `Reload` does."""
        name = self._locations()[0]["name"]
        self._press(graphql.RELOAD, "WorkspaceLocationEntry", name=name)
        until(self.loaded, what="the code location is loaded anew")

    # Runs

    def launch_job(
        self, job: str, config: Any = None, *, tags: dict[str, str] | None = None
    ) -> str:
        """Launch a job from the Launchpad; tell the run's id."""
        return self._launch({"jobName": job}, config, tags)

    def launch_assets(self, *keys: str, config: Any = None, partition: str | None = None) -> str:
        """Materialize assets (`a/b` for keys of several parts); tell the run's id."""
        selection = [_key(key) for key in keys]
        tags = {PARTITION: partition} if partition else None
        return self._launch({"jobName": ASSETS_JOB, "assetSelection": selection}, config, tags)

    def launch_backfill(
        self, keys: Sequence[str], partitions: Sequence[str], config: Any = None
    ) -> str:
        """Back-fill partitions of assets; tell the back-fill's id."""
        params = {
            "assetSelection": [*map(_key, keys)],
            "partitionNames": [*partitions],
            "runConfigData": config or {},
        }
        found = self._press(graphql.BACKFILL, "LaunchBackfillSuccess", params=params)
        return str(found["backfillId"])

    def wait_for_backfill(self, backfill: str, seconds: float = BACKFILL_SECONDS) -> str:
        """Wait until a back-fill is over; tell how it ended."""

        def ended() -> str:
            status = str(self.ask(graphql.BACKFILL_STATUS, id=backfill)["status"])
            return "" if status in {"REQUESTED", "FAILING", "CANCELING"} else status

        return until(ended, seconds, f"back-fill {backfill} is over")

    def run_status(self, run: str) -> str:
        """Tell the status of a run, such as STARTED."""
        return str(self.ask(graphql.RUN, id=run)["status"])

    def wait_for_run(
        self, run: str, statuses: frozenset[str] = ENDED, seconds: float = 180.0
    ) -> str:
        """Wait until a run has one of these statuses; tell which."""
        until(lambda: self.run_status(run) in statuses, seconds, f"run {run} is in {statuses}")
        return self.run_status(run)

    def runs(self, job: str | None = None, limit: int = 25) -> list[Run]:
        """Tell the newest runs, of one job or of all."""
        wanted = {"pipelineName": job} if job else {}
        found = self.ask(graphql.RUNS, filter=wanted, limit=limit)
        return [*map(answers.run, found["results"])]

    def run_log(self, run: str) -> list[LogLine]:
        """Tell the events of a run, oldest first."""
        return [*map(answers.log_line, self.ask(graphql.RUN_LOG, id=run)["events"])]

    def terminate(self, run: str) -> None:
        """Press `Terminate`."""
        self._press(graphql.TERMINATE, "TerminateRunSuccess", id=run)

    # Sensors

    def start_sensor(self, name: str) -> None:
        """Toggle a sensor on."""
        self._press(graphql.START_SENSOR, "Sensor", selector=self._sensor(name))

    def stop_sensor(self, name: str) -> None:
        """Toggle a sensor off."""
        found = self._sensor_state(name, 0)["id"]
        self._press(graphql.STOP_SENSOR, "StopSensorMutationResult", id=found)

    def sensor_runs(self, name: str) -> bool:
        """Tell whether a sensor is toggled on."""
        return bool(self._sensor_state(name, 0)["status"] == "RUNNING")

    def ticks(self, name: str, limit: int = 20) -> list[Tick]:
        """Tell the newest ticks of a sensor, newest first."""
        return [*map(answers.tick, self._sensor_state(name, limit)["ticks"])]

    # Assets

    def assets(self) -> dict[str, Asset]:
        """Tell all assets as they are defined, by key."""
        return {one.key: one for one in map(answers.asset, self.ask(graphql.ASSETS))}

    def materializations(self, asset: str, limit: int = 100) -> list[AssetEvent]:
        """Tell the newest materializations, newest first."""
        return self._events(asset, ["MATERIALIZATION"], limit)

    def observations(self, asset: str, limit: int = 100) -> list[AssetEvent]:
        """Tell the newest observations, newest first."""
        return self._events(asset, ["OBSERVATION"], limit)

    def checks(self, asset: str) -> dict[str, Check]:
        """Tell the newest outcome of each check of an asset, by the check's name."""
        found = self.ask(graphql.CHECKS, key=_key(asset))["assetChecksOrError"]["checks"]
        return {one["name"]: answers.check(one) for one in found}

    def _events(self, asset: str, kinds: Sequence[str], limit: int) -> list[AssetEvent]:
        found = self.ask(graphql.EVENTS, key=_key(asset), kinds=kinds, limit=limit)
        history = found.get("assetEventHistory", {"results": []})
        return [*map(answers.asset_event, history["results"])]

    def _launch(self, selector: Any, config: Any, tags: dict[str, str] | None) -> str:
        tagged = [{"key": key, "value": value} for key, value in (tags or {}).items()]
        params = {
            "selector": {**selector, **self._repository()},
            "runConfigData": config or {},
            "executionMetadata": {"tags": tagged},
        }
        return str(self._press(graphql.LAUNCH, "LaunchRunSuccess", params=params)["run"]["runId"])

    def _sensor(self, name: str) -> dict[str, str]:
        return {**self._repository(), "sensorName": name}

    def _sensor_state(self, name: str, limit: int) -> Any:
        found = self.ask(graphql.SENSOR, selector=self._sensor(name), limit=limit)
        if "sensorState" not in found:
            raise UiError(f"there is no sensor {name}")
        return found["sensorState"]

    def _repository(self) -> dict[str, str]:
        if errors := self.load_errors():
            raise UiError(str(errors))
        entry = self._locations()[0]
        (repository,) = entry["locationOrLoadError"]["repositories"]
        return {"repositoryLocationName": entry["name"], "repositoryName": repository["name"]}

    def _locations(self) -> list[Any]:
        found = list(self.ask(graphql.LOCATIONS)["locationEntries"])
        return [each for each in found if self._location in {None, each["name"]}]

    def _press(self, mutation: str, wanted: str, **variables: Any) -> Any:
        """Ask for a change; tell the answer, if it is the one that is wanted."""
        found = self.ask(mutation, **variables)
        if found["__typename"] != wanted:
            raise UiError(f"{found.pop('__typename')}: {found}")
        return found


def _key(asset: str) -> dict[str, list[str]]:
    return {"path": asset.split("/")}
