"""The commands, where no server is needed."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from harvest_dagster.cli.dev import dev
from harvest_dagster.embedded.psql import variables
from harvest_dagster.embedded.server_info import Server, Servers

PLAIN = "postgresql://postgres:secret@127.0.0.1:5000/harvest"


def servers(url: str) -> Servers:
    """Make a home's servers up."""
    server = Server("postgres", 4000, None, Path("postgres.log"))
    return Servers(Path("/home"), url, {"bootstrap.servers": "a,b"}, (server,), ready=False)


def test_status_of_nothing_is_json_too(tmp_path: Path) -> None:
    """A program that asks gets an answer, and no failure."""
    shown = CliRunner().invoke(dev, ["status", "--json", "--home", str(tmp_path)])
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["running"] is False


def test_reset_asks_first(tmp_path: Path) -> None:
    """A plain "no" keeps all."""
    (tmp_path / "state.json").write_text("{}", encoding="utf-8")
    shown = CliRunner().invoke(dev, ["reset", "--home", str(tmp_path)], input="n\n")
    assert shown.exit_code == 1
    assert (tmp_path / "state.json").exists()


def test_logs_are_told_apart(tmp_path: Path) -> None:
    """Lines of several logs bear the server's name, those of one do not."""
    (tmp_path / "logs").mkdir()
    for name in ("kafka-1", "postgres"):
        (tmp_path / "logs" / f"{name}.log").write_text("old\nnew\n", encoding="utf-8")
    every = CliRunner().invoke(dev, ["logs", "--home", str(tmp_path), "-n", "1"])
    assert every.stdout == "kafka-1 | new\npostgres | new\n"
    one = CliRunner().invoke(dev, ["logs", "postgres", "--home", str(tmp_path)])
    assert one.stdout == "old\nnew\n"


def test_psql_is_told_the_password_by_its_environment() -> None:
    """Where no other user reads it."""
    told = variables(servers(PLAIN))
    assert told["PGPASSWORD"] == "secret"
    assert (told["PGHOST"], told["PGPORT"]) == ("127.0.0.1", "5000")


def test_psql_of_a_secure_home_takes_the_socket() -> None:
    """It was built without TLS."""
    told = variables(servers(f"{PLAIN}?sslmode=verify-full&sslrootcert=/ca"))
    assert (told["PGHOST"], told["PGPORT"]) == ("/home/postgres", "4000")


def test_servers_that_are_printed_keep_their_password() -> None:
    """A log or a traceback may have them."""
    assert "secret" not in repr(servers(PLAIN))
