"""Fixtures of the tests of what Dagster is given."""

from __future__ import annotations

import pytest

from harvest_dagster.orchestration import assets


@pytest.fixture(autouse=True)
def _topics_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find the topics that another has published to, as a new process would not."""
    monkeypatch.setattr(assets, "_topics", {})
