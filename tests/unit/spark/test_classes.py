"""Where Spark takes its classes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from harvest_dagster.spark.class_archive import archive, java_options


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_without_an_archive(cache: Path) -> None:
    """Spark is told nothing."""
    assert (archive().parent, java_options()) == (cache / "harvest_dagster", "")


def test_with_an_archive(cache: Path) -> None:
    """Spark is told where it is."""
    archive().parent.mkdir()
    archive().touch()
    assert java_options().startswith(f"-XX:SharedArchiveFile={cache}/harvest_dagster/spark-")
