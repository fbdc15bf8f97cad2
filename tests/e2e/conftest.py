"""A real `dagster dev` that all tests share, and a browser."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from harvest_dagster.embedded import Servers
from tests.support.browser import browser, chromium
from tests.support.dagster_dev import DagsterDev, dagster_dev
from tests.support.project import Project, new_project, with_kafka_secret

__all__ = ["browser", "chromium", "dagster_ui", "project"]


@pytest.fixture(scope="session")
def dagster_ui(
    servers: Servers, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DagsterDev]:
    """Dagster with its UI, that no test may stop or break."""
    folder = tmp_path_factory.mktemp("dagster") / "project"
    with new_project(folder, servers, template) as project:
        secretive = with_kafka_secret(project, f"kafka-{uuid.uuid4().hex}")
        with dagster_dev(secretive) as running:
            yield running


@pytest.fixture
def project(
    servers: Servers, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
    """A project of this test's own, for which nothing runs yet: see `dagster_dev`."""
    with new_project(tmp_path_factory.mktemp("own") / "project", servers, template) as project:
        yield project


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests that share a Dagster run in one worker, since each worker starts its own."""
    for item in items:
        if "dagster_ui" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("dagster_ui"))
