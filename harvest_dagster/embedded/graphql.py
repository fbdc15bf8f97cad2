"""Ask the UI of Dagster, by GraphQL, to load code, to materialise assets, and how a run goes.

Dagster has a client of its own, `DagsterGraphQLClient`. It can't say which code locations there
are, whether one is loaded, and why not, and that is what we wait for; and it imports Dagster, which
this room must not need.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

from harvest_dagster.errors import EmbeddedError

_ANSWER_SECONDS = 60.0
_LOCATIONS = """{workspaceOrError{... on Workspace{locationEntries{
    name loadStatus locationOrLoadError{__typename
        ... on RepositoryLocation{repositories{name}}
        ... on PythonError{message}}}}}}"""
_RELOAD = """mutation($name: String!){
    reloadRepositoryLocation(repositoryLocationName: $name){__typename}}"""
_LAUNCH = """mutation($params: ExecutionParams!){launchRun(executionParams: $params){
    __typename ... on LaunchRunSuccess{run{runId}} ... on PythonError{message}}}"""
_RUN = "query($id: ID!){runOrError(runId: $id){... on Run{status}}}"


@dataclass(frozen=True)
class Location:
    """A code location: the name of its one repository, or why it could not be loaded."""

    name: str
    loaded: bool
    repository: str | None
    fault: str | None


class GraphQl:
    """The UI of one Dagster. Each method raises an EmbeddedError if the UI does not answer."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port

    def locations(self) -> list[Location]:
        """Return the code locations."""
        return [_location(entry) for entry in self._ask(_LOCATIONS)["locationEntries"]]

    def reload(self) -> None:
        """Load every code location anew."""
        for location in self.locations():
            self._ask(_RELOAD, name=location.name)

    def materialize(
        self,
        location: Location,
        assets: Sequence[str],
        config: dict[str, Any],
        partition: str | None = None,
    ) -> str:
        """Start one run that materialises these assets, and return its id."""
        selector = {
            "repositoryLocationName": location.name,
            "repositoryName": location.repository,
            "jobName": "__ASSET_JOB",
            "assetSelection": [{"path": [asset]} for asset in assets],
        }
        params: dict[str, Any] = {"selector": selector, "runConfigData": config}
        if partition is not None:
            tag = {"key": "dagster/partition", "value": partition}
            params["executionMetadata"] = {"tags": [tag]}
        found = self._ask(_LAUNCH, params=params)
        if "run" not in found:
            named = ", ".join(assets)
            raise EmbeddedError(f"{named} could not be materialised: {found.get('message', found)}")
        return str(found["run"]["runId"])

    def run_status(self, run: str) -> str:
        """Return the status of a run."""
        return str(self._ask(_RUN, id=run)["status"])

    def _ask(self, query: str, **variables: Any) -> Any:  # noqa: ANN401 - JSON, both ways
        connection = HTTPConnection(self._host, self._port, timeout=_ANSWER_SECONDS)
        try:
            body = json.dumps({"query": query, "variables": variables})
            connection.request("POST", "/graphql", body, {"Content-Type": "application/json"})
            (value,) = json.load(connection.getresponse())["data"].values()
        except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
            raise EmbeddedError(
                f"http://{self._host}:{self._port} gave no answer that can be used: {error}"
            ) from error
        finally:
            connection.close()
        return value


def _location(entry: Any) -> Location:  # noqa: ANN401 - JSON
    found = entry["locationOrLoadError"] or {}
    repositories = found.get("repositories") or [{"name": None}]
    loaded = entry["loadStatus"] == "LOADED"
    return Location(entry["name"], loaded, repositories[0]["name"], found.get("message"))
