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


def test_version() -> None:
    """The version is told."""
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, "version" in result.output) == (0, True)
