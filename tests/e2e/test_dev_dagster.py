"""`harvest dev dagster`: what is left of it when it ends, and how mistakes look at its start."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from harvest_dagster.embedded import remembered
from harvest_dagster.embedded.process import is_alive
from tests.support.dagster_dev import DagsterDev, dagster_dev
from tests.support.project import Project, copy_location
from tests.support.ui import until


def left_of(running: DagsterDev) -> list[str]:
    """Tell the command lines of what still runs."""
    return [" ".join(each.cmdline()) for each in running.processes()]


@pytest.mark.long
def test_it_ends_with_all_that_it_started_and_keeps_what_was(project: Project) -> None:
    """SIGTERM ends it politely; started again, its runs are there."""
    with dagster_dev(project) as running:
        run = running.ui.launch_assets("orders")
        running.ui.wait_for_run(run)
        assert running.stop(signal.SIGTERM) == 0, running.said()
        assert left_of(running) == []
    with dagster_dev(project) as again:
        assert run in {known.id for known in again.ui.runs()}


def test_a_second_one_is_refused_and_leaves_the_first_alone(dagster_ui: DagsterDev) -> None:
    """Two daemons would start everything twice: one line says where the first is."""
    done = subprocess.run(
        ["harvest", "dev", "dagster"],
        cwd=dagster_ui.project.folder,
        env=dagster_ui.project.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    port = dagster_ui.ui.url.rpartition(":")[2]
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"runs here already, on port {port}" in done.stderr
    assert dagster_ui.ui.loaded()


@pytest.mark.long
def test_what_a_killed_one_left_is_ended_by_the_next(project: Project) -> None:
    """After kill -9 the next start finds the Dagster that nobody waits for, and ends it."""
    with dagster_dev(project) as killed:
        left = killed.processes()
        assert left
        killed.stop(signal.SIGKILL)
        with dagster_dev(project) as running:
            assert "stopping the Dagster that was left" in running.said()
            assert not [*filter(is_alive, left)]


@pytest.mark.long
def test_when_dagster_dies_the_command_says_so_and_ends(project: Project) -> None:
    """Nothing of it is left, and the exit code tells a script."""
    with dagster_dev(project) as running:
        leader = remembered.load(project.home).process()
        assert leader is not None
        leader.kill()
        until(lambda: running.command.poll() is not None, what="the command ends")
        assert running.command.returncode == 1
        assert "harvest: Dagster ended by itself" in running.said()
        assert "run `harvest dev dagster` again" in running.said()
        assert left_of(running) == []


@pytest.mark.parametrize(
    ("url", "line"),
    [
        (None, "no PostgreSQL is configured: set HARVEST_POSTGRES"),
        ("postgresql://me:hush@127.0.0.1:9/db", "PostgreSQL, where Dagster keeps its runs"),
    ],
)
def test_plain_dagster_dev_without_postgres_says_what_to_do(
    url: str | None, line: str, tmp_path: Path, project: Project
) -> None:
    """One line, and no traceback."""
    folder = tmp_path / "copy"
    copy_location(folder, "dagster_unused")
    environment = project.environment | {"HARVEST_HOME": str(tmp_path / "none")}
    environment.pop("HARVEST_POSTGRES")
    done = subprocess.run(
        ["dagster", "dev"],
        cwd=folder,
        env={**environment, **({"HARVEST_POSTGRES": url} if url else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"Error: {line}" in done.stderr
    assert "harvest dev up" in done.stderr
    for hidden in ("Traceback", "hush"):
        assert hidden not in done.stdout + done.stderr
