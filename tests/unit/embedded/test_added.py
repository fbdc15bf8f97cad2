"""Which parts `--with` offers, and what it refuses."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from harvest_dagster import embedded
from harvest_dagster.cli.dev import dev
from harvest_dagster.embedded import home_state
from harvest_dagster.embedded.added import OFFERED, load
from harvest_dagster.errors import EmbeddedError


@pytest.mark.parametrize("name", OFFERED)
def test_each_part_is_what_its_line_says(name: str) -> None:
    """It has that name, and its first port too, by which `status` shows it."""
    part = load(name)
    assert part.name == name
    assert part.doors[0] == name


@pytest.mark.parametrize("names", [["s4"], ["s3", "s4"], [""], ["os"]])
@pytest.mark.parametrize("verb", [embedded.up, embedded.drop])
def test_an_unknown_part_is_refused(tmp_path: Path, verb: object, names: list[str]) -> None:
    """The line has the names that there are, and nothing was made or started."""
    assert callable(verb)
    home = tmp_path / "home"
    with pytest.raises(EmbeddedError, match=rf"no part '{names[-1]}': choose from s3, mariadb$"):
        verb(home, parts=names)
    assert not home.exists()


def test_the_help_says_what_each_is_and_what_it_downloads() -> None:
    """A user chooses by that."""
    shown = " ".join(CliRunner().invoke(dev, ["up", "--help"]).stdout.split())
    for name, what in OFFERED.items():
        assert f"{name}, {what}" in shown


@pytest.mark.parametrize("name", OFFERED)
def test_status_shows_no_password(name: str, tmp_path: Path) -> None:
    """Only --json does."""
    plain = home_state.HomeState(1, secure=False, ports=home_state.choose_ports(1))
    state = home_state.with_parts(plain, [name])
    home_state.save(tmp_path, state)
    shown = CliRunner().invoke(dev, ["status", "--home", str(tmp_path)]).stdout
    assert str(state.parts[name][name]) in shown
    assert "***" in shown
    assert state.password not in shown + repr(embedded.status(tmp_path))
    as_json = CliRunner().invoke(dev, ["status", "--json", "--home", str(tmp_path)]).stdout
    assert state.password in json.loads(as_json)["parts"][name].values()


def test_the_sockets_of_another_home_stay() -> None:
    """It may have a port that this one had, and can't do without its sockets."""
    state = home_state.with_parts(home_state.HomeState(1, secure=False, ports={}), ["s3"])
    port = state.parts["s3"]["s3"]
    left = Path(f"/tmp/seaweedfs-test-{port}.sock")  # noqa: S108
    left.touch()
    try:
        with socket.create_server(("127.0.0.1", port)):
            assert load("s3").leftovers(state) == []
        assert load("s3").leftovers(state) == [left]
    finally:
        left.unlink()
