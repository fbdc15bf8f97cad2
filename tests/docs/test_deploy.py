"""The files to deploy with fit each other, and what they start is there."""

from __future__ import annotations

import runpy
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import dagster as dg
import promql_parser
import pytest
import yaml

from harvest_dagster.harvest.reaper_yaml import load_reaper_yaml
from scripts.reference import families
from tests.support.paths import ROOT

DEPLOY = ROOT / "docs" / "deploy"


def read(name: str) -> list[Any]:
    """Read the documents of a file."""
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


COMPOSE = read("compose.yaml")[0]["services"]
OBJECTS = {(each["kind"], each["metadata"]["name"]): each for each in read("kubernetes.yaml")}
PODS = {
    name: each["spec"]["template"]
    for (_, name), each in OBJECTS.items()
    if "template" in each.get("spec", {})
}
CONTAINERS = [one for pod in PODS.values() for one in pod["spec"]["containers"]]
PROBES = [
    one["readinessProbe"]["exec"] for one in CONTAINERS if "exec" in one.get("readinessProbe", ())
]
COMMANDS = {tuple(one["command"]) for one in (*COMPOSE.values(), *CONTAINERS, *PROBES)}


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Have Ctrl-C do afterwards what it did before: a command may have changed that."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("command", sorted(COMMANDS), ids=" ".join)
def test_commands(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command is one that the image has, and takes these options."""
    (script,) = entry_points(group="console_scripts", name=command[0])
    monkeypatch.setattr(sys, "argv", [*command, "--help"])
    with pytest.raises(SystemExit) as ended:
        script.load()()
    assert not ended.value.code


def test_places() -> None:
    """Daemon and UI find the code server in both, and each Service has pods behind it."""
    (place,) = (each["grpc_server"] for each in read("workspace.yaml")[0]["load_from"])
    assert place["host"] in COMPOSE
    assert str(place["port"]) in COMPOSE[place["host"]]["command"]
    services = {name: each["spec"] for (kind, name), each in OBJECTS.items() if kind == "Service"}
    assert place["port"] == services[place["host"]]["ports"][0]["port"]
    for name, service in services.items():
        assert service["selector"] == PODS[name]["metadata"]["labels"]
        (container,) = PODS[name]["spec"]["containers"]
        assert service["ports"][0]["port"] == container["ports"][0]["containerPort"]


def test_who_reaches_whom() -> None:
    """No Service is open to all pods of a cluster, and those that are let in are there."""
    policies = {name: each["spec"] for (kind, name), each in OBJECTS.items() if kind.endswith("cy")}
    services = {name: each["spec"] for (kind, name), each in OBJECTS.items() if kind == "Service"}
    labels = [pod["metadata"]["labels"] for pod in PODS.values() if "metadata" in pod]
    for name, service in services.items():
        assert policies[name]["podSelector"]["matchLabels"] == service["selector"]
        let_in = [one for rule in policies[name]["ingress"] for one in rule["from"]]
        assert all(one["podSelector"]["matchLabels"] in labels for one in let_in)


def test_every_alert_is_explained() -> None:
    """The page on monitoring has a row for each, with what to do."""
    page = (DEPLOY.parent / "how-to" / "monitor.md").read_text()
    names = [rule["alert"] for group in read("alerts.yaml")[0]["groups"] for rule in group["rules"]]
    assert [name for name in names if f"| `{name}` |" in page] == names


def test_same_harvest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code location loads, and what stands by for it harvests the same, under the same name."""
    monkeypatch.setenv("HARVEST_POSTGRES", "postgresql://db")
    monkeypatch.setenv("HARVEST_KAFKA", "kafka:9092")
    module = runpy.run_path(str(DEPLOY / "definitions.py"))
    dg.Definitions.validate_loadable(module["defs"])
    reaper = load_reaper_yaml(DEPLOY / "reaper.yaml").harvest
    same = {"outbox", "name", "leader_group", "leader_topic", "delivery", "shards", "marks"}
    assert reaper.model_dump(include=same) == module["shop"].config().model_dump(include=same)


def queries() -> list[str]:
    """Read what the alerts and the dashboard ask Prometheus."""
    rules = [rule["expr"] for group in read("alerts.yaml")[0]["groups"] for rule in group["rules"]]
    panels = [at["expr"] for one in read("grafana.json")[0]["panels"] for at in one["targets"]]
    return [*rules, *(query.replace("$__rate_interval", "1m") for query in panels)]


@pytest.mark.parametrize("query", queries())
def test_queries(query: str) -> None:
    """Each query is one that Prometheus reads, of figures and labels that the code exports."""
    exported = {one.name: {"instance", *one.labels} for each in families() for one in each.samples}
    asked: list[promql_parser.VectorSelector] = []

    def note(part: promql_parser.Expr) -> None:
        if isinstance(part, promql_parser.VectorSelector):
            asked.append(part)

    promql_parser.walk(promql_parser.parse(query), note)
    assert asked
    for selector in asked:
        assert {matcher.name for matcher in selector.matchers.matchers} <= exported[
            selector.name or ""
        ]
