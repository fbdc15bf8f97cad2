from __future__ import annotations

import io
import json
import logging
import re
from contextlib import redirect_stderr

import pytest

from harvest_dagster.cli.console import Form, logged
from tests.support.terminal import Terminal

LOGGER = logging.getLogger("harvest_dagster.test")


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    """A line has the time with its zone, the level and the message."""
    with logged("text", logging.INFO):
        LOGGER.info("%s records", 5)
    line = capsys.readouterr().err
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\S+ INFO    5 records\n", line)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A line is an object, whatever is in the message; an error's traceback stands in it."""
    with logged("json", logging.INFO):
        LOGGER.warning("a\n%s", "é")
        LOGGER.error("failed", exc_info=ValueError("so"))
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["level"], first["message"]) == ("warning", "a\né")
    assert (first["logger"], "error" in first) == ("harvest_dagster.test", False)
    assert second["error"].endswith("ValueError: so")


def test_levels(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours are logged from the level that was given on, everybody else's from warnings on."""
    with logged("text", logging.DEBUG):
        LOGGER.debug("ours")
        logging.getLogger("other").info("too much")
        logging.getLogger("other").warning("theirs")
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["ours", "theirs"]


def test_off(capsys: pytest.CaptureFixture[str]) -> None:
    """A level above all of them logs nothing of ours."""
    with logged("text", logging.CRITICAL + 1):
        LOGGER.critical("no")
    assert capsys.readouterr().err == ""


def test_once(capsys: pytest.CaptureFixture[str]) -> None:
    """When it is over nothing more is logged here."""
    with logged("text", logging.INFO):
        pass
    LOGGER.info("late")
    assert capsys.readouterr().err == ""


def test_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a log line takes the place of the live line, which comes back below it."""
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "10")
    with redirect_stderr(terminal), logged("text", logging.INFO) as console:
        assert console.is_live
        console.show("0123456789abc")
        LOGGER.info("x")
    assert terminal.getvalue().startswith("\r\x1b[K012345678\r\x1b[K2")
    assert terminal.getvalue().endswith(" x\n\r\x1b[K")


@pytest.mark.parametrize(("form", "is_terminal"), [("json", True), ("text", False)])
def test_no_live_line(form: Form, *, is_terminal: bool) -> None:
    """There is no live line among JSON, nor where there is no terminal."""
    written = Terminal() if is_terminal else io.StringIO()
    with redirect_stderr(written), logged(form, logging.INFO) as console:
        assert not console.is_live
