"""Every file of settings that a page shows is one, and is taken by whatever reads it."""

from __future__ import annotations

import configparser
import re
import time
import tomllib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import trustme
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from harvest_dagster.config import load_settings
from harvest_dagster.harvest.reaper_yaml import load_reaper_yaml
from harvest_dagster.kafka.settings import client_settings, make
from harvest_dagster.postgres.dsn import connection_string
from tests.support.pages import FENCE, PAGES
from tests.support.paths import ROOT

LANGUAGES = {"yaml", "toml", "ini"}
BLOCKS = {
    f"{page.relative_to(ROOT)}:{number}": (language, text)
    for page in [*PAGES, ROOT / "docs" / "tutorial.md"]
    for number, (language, text) in enumerate(FENCE.findall(page.read_text()))
    if language in LANGUAGES
}
REAPERS = {at: text for at, (_, text) in BLOCKS.items() if text.startswith("harvest:")}
COMPONENTS = {at: text for at, (_, text) in BLOCKS.items() if text.startswith("type:")}
TOMLS = {at: text for at, (language, text) in BLOCKS.items() if language == "toml"}


def read_ini(text: str) -> Any:
    """Read a unit of systemd, whose keys keep their case."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return parser.sections()


READERS: dict[str, Callable[[str], Any]] = {
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "ini": read_ini,
}


@pytest.mark.parametrize("at", BLOCKS)
def test_it_can_be_read(at: str) -> None:
    """What a block says to be, it is."""
    language, text = BLOCKS[at]
    assert READERS[language](text)


@pytest.mark.parametrize("at", REAPERS)
def test_reaper_yaml(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `reaper.yaml` is one that `harvest reap` takes."""
    for name in re.findall(r"(?<!\$)\$\{(\w+)\}", REAPERS[at]):
        monkeypatch.setenv(name, "given")
    file = tmp_path / "reaper.yaml"
    file.write_text(REAPERS[at])
    assert load_reaper_yaml(file).harvest.base_kafka["bootstrap.servers"] == "kafka.example:9093"


@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning")  # Dagster's own
@pytest.mark.parametrize("at", COMPONENTS)
def test_component(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `defs.yaml` is one that makes a harvest: no attribute of it is unknown, or wrong."""
    for name in re.findall(r"env\.(\w+)", COMPONENTS[at]):
        monkeypatch.setenv(name, "postgresql://given")
    project = f"project_{uuid.uuid4().hex[:8]}"
    folder = tmp_path / project / "defs" / "outbox"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "{project}"\n'
    )
    (folder / "defs.yaml").write_text(COMPONENTS[at])
    dg.Definitions.validate_loadable(dg.load_from_defs_folder(path_within_project=tmp_path))


@pytest.mark.parametrize("at", TOMLS)
def test_harvest_toml(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `harvest.toml` is one that all commands take."""
    for name in ("HARVEST_POSTGRES", "HARVEST_KAFKA", "HARVEST_OUTBOX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harvest.toml").write_text(TOMLS[at])
    shown = tomllib.loads(TOMLS[at])
    settings = load_settings()
    assert settings.postgres_url() == shown["postgres"]
    assert settings.kafka_config() == shown["kafka"]


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Have what a block takes for granted: certificates, and modules that a page shows."""
    authority = trustme.CA()
    client = authority.issue_cert("harvester").private_key_and_cert_chain_pem.bytes()
    for name in ("service.cert", "service.key"):
        (tmp_path / name).write_bytes(client)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.syspath_prepend(str(tmp_path))
    page = (ROOT / "docs" / "how-to" / "managed-services.md").read_text()
    (module,) = [text for language, text in FENCE.findall(page) if language == "python"]
    (tmp_path / "msk_tokens.py").write_text(module)
    return lambda text: text.replace("/etc/harvest/", f"{tmp_path}/")


@pytest.mark.parametrize("kind", [Producer, Consumer, AdminClient])
@pytest.mark.parametrize("at", TOMLS)
def test_real_clients(at: str, kind: Any, own_files: Callable[[str], str]) -> None:
    """Of each block real clients can be made: every name is known, and its value can be read."""
    shown = tomllib.loads(own_files(TOMLS[at]))
    assert connection_string(shown["postgres"])
    settings = client_settings(shown["kafka"], {"group.id": "shop"}, {})
    if "oauth_cb" in settings:  # its own would ask a cloud for the token
        settings["oauth_cb"] = lambda _config: ("token", time.time() + 60)
    make(kind, settings)


def test_all_kinds_are_shown() -> None:
    """None of the tests above is without an example."""
    assert {language for language, _ in BLOCKS.values()} == LANGUAGES
    assert REAPERS
    assert COMPONENTS
    assert TOMLS
