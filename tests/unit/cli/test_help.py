from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from harvest_dagster.cli import main


def commands(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of each command, from the first to the innermost."""
    yield path
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, *path, name)


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("words", list(commands(main)), ids=" ".join)
def test_help(words: tuple[str, ...], option: str) -> None:
    """Every command tells of itself."""
    result = CliRunner().invoke(main, [*words, option])
    assert (result.exit_code, result.output.startswith("Usage: ")) == (0, True)


@pytest.mark.parametrize("words", list(commands(main)), ids=" ".join)
def test_nothing_is_cut_off(words: tuple[str, ...]) -> None:
    """On a terminal of the usual width, a list of commands tells each in whole words."""
    shown = CliRunner().invoke(main, [*words, "--help"], terminal_width=80).output
    _, _, inner = shown.partition("\nCommands:\n")
    assert [line for line in inner.splitlines() if line.endswith("...")] == []


@pytest.mark.parametrize("words", list(commands(main)), ids=" ".join)
def test_every_option_has_help(words: tuple[str, ...]) -> None:
    """No option has just a name."""
    command: click.Command = main
    for word in words:
        assert isinstance(command, click.Group)
        command = command.commands[word]
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_version() -> None:
    """The version is told."""
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, "version" in result.output) == (0, True)
