"""What a home remembers, and its ports."""

from __future__ import annotations

import json
import socket
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.embedded import home_state, ports
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_state_is_read_as_it_was_saved(tmp_path: Path) -> None:
    """Nothing is lost, and only the owner reads it."""
    saved = home_state.HomeState(3, secure=True, ports=home_state.choose_ports(3))
    saved = home_state.with_parts(saved, ["s3", "mariadb"])
    home_state.save(tmp_path, saved)
    assert home_state.load(tmp_path) == saved
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600


def test_a_home_that_was_never_set_up_has_no_state(tmp_path: Path) -> None:
    """That is no error."""
    assert home_state.load(tmp_path) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"brokers": 1, "unknown": 2}'])
def test_a_damaged_state_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    """The line says how to go on."""
    (tmp_path / "state.json").write_text(text, encoding="utf-8")
    with pytest.raises(EmbeddedError, match=r"^.*state.json is damaged: .*harvest dev reset`$"):
        home_state.load(tmp_path)


@pytest.mark.parametrize(
    "ports_then", [{"postgres": 1}, {**home_state.choose_ports(1), "postgres-tls": 1}]
)
def test_a_secure_home_of_another_version_is_refused(
    tmp_path: Path, ports_then: dict[str, int]
) -> None:
    """A home with other listeners has other certificates too; without TLS that does not matter."""
    for secure in (False, True):
        home_state.save(tmp_path, home_state.HomeState(1, secure=secure, ports=ports_then))
        with (
            pytest.raises(EmbeddedError, match=r"another version: .*harvest dev reset`$")
            if secure
            else nullcontext()
        ):
            home_state.load(tmp_path)


def test_parts_come_and_go_with_ports_of_their_own() -> None:
    """What is there keeps its ports; nobody's port is another's; new ports are for all."""
    state = home_state.HomeState(1, secure=True, ports=home_state.choose_ports(1))
    with_s3 = home_state.with_parts(state, ["s3"])
    both = home_state.with_parts(with_s3, ["mariadb", "s3"])
    assert both.parts["s3"] == with_s3.parts["s3"]
    used = [*both.ports.values(), *both.parts["s3"].values(), *both.parts["mariadb"].values()]
    assert len(set(used)) == len(used)
    moved = home_state.with_new_ports(both)
    assert moved.parts.keys() == both.parts.keys()
    assert moved.parts["s3"] != both.parts["s3"]
    assert home_state.without_parts(both, ["mariadb"]) == with_s3


def test_a_state_from_before_there_were_parts_is_read(tmp_path: Path) -> None:
    """It has none."""
    home_state.save(tmp_path, home_state.HomeState(1, secure=False, ports={}))
    written = json.loads((tmp_path / "state.json").read_text())
    del written["parts"]
    (tmp_path / "state.json").write_text(json.dumps(written))
    known = home_state.load(tmp_path)
    assert known
    assert known.parts == {}


def test_a_port_that_is_taken_is_not_chosen() -> None:
    """A server that does not run just now keeps its port."""
    left = set(ports.choose("ab").values())
    taken = set(ports.CHOICE) - left
    assert set(ports.choose("ab", taken).values()) == left


def test_a_secret_is_not_shown() -> None:
    """A state that is printed keeps its passwords."""
    made = home_state.HomeState(1, secure=False, ports={})
    assert made.password not in repr(made)
    assert made.admin_password not in repr(made)


def test_chosen_ports_are_free_and_differ() -> None:
    """Each name gets a port of its own, below those that clients are given."""
    chosen = home_state.choose_ports(3)
    assert len(set(chosen.values())) == len(chosen) == 10
    assert all(ports.is_free(port) and port < 32768 for port in chosen.values())


def test_a_port_that_someone_listens_on_is_not_free() -> None:
    """Whoever it is."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not ports.is_free(server.getsockname()[1])
