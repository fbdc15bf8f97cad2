"""The command `harvest`, run in this process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from harvest_dagster.cli import main

Harvest = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def harvest(database: str) -> Harvest:
    """Run the command `harvest` on this test's database, in this process, which is faster."""

    def run(*words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        known = {"HARVEST_POSTGRES": database, **environment}
        ended = CliRunner().invoke(main, words, input=stdin, env=known, catch_exceptions=False)
        return subprocess.CompletedProcess(words, ended.exit_code, ended.stdout, ended.stderr)

    return run
