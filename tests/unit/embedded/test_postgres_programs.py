"""Which PostgreSQL a secure home is run by."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.embedded import jars
from harvest_dagster.embedded.home_state import HomeState
from harvest_dagster.embedded.ivy import Module
from harvest_dagster.embedded.part import Site
from harvest_dagster.embedded.postgres_programs import have_build, tls_build
from harvest_dagster.embedded.postgres_server import PostgresServer
from harvest_dagster.errors import EmbeddedError
from tests.support import downloads

if TYPE_CHECKING:
    from pathlib import Path


def packed(program: bytes) -> bytes:
    """Pack a program as the jar has them: an archive in an archive."""
    inner, outer = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:xz") as archive:
        entry = tarfile.TarInfo("bin/postgres")
        entry.size, entry.mode = len(program), 0o755
        archive.addfile(entry, io.BytesIO(program))
    with zipfile.ZipFile(outer, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "")
        jar.writestr("postgres-linux-x86_64.txz", inner.getvalue())
    return outer.getvalue()


def test_what_was_downloaded_is_unpacked_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A second home finds the programs of the first, and each can be run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jar = {"postgres.jar": packed(b"a program")}
    build, java = downloads.module(tmp_path, jar), downloads.java(tmp_path, jar)
    postgres = have_build(build, java, tmp_path / "log", print) / "postgres"
    made = postgres.stat()
    again = have_build(build, "no java", tmp_path / "log", print)
    assert again == postgres.parent
    assert postgres.read_bytes() == b"a program"
    assert postgres.stat().st_ino == made.st_ino
    assert made.st_mode & 0o700 == 0o700


@pytest.mark.parametrize(
    ("system", "processor", "build"),
    [
        ("Linux", "x86_64", "linux-amd64"),
        ("Linux", "aarch64", "linux-arm64v8"),
        ("Darwin", "x86_64", "darwin-amd64"),
        ("Darwin", "arm64", "darwin-arm64v8"),
    ],
)
def test_each_kind_of_machine_has_its_build(system: str, processor: str, build: str) -> None:
    """Its folder is its own, and one jar, with a sum of its own, is what it waits for."""
    found = tls_build(system, processor)
    assert jars.folder_of(found).name == f"postgres-18.6.0-{build}"
    (name,) = jars.hashes(found)
    assert name == f"embedded-postgres-binaries-{build}-18.6.0.jar"


def test_a_machine_without_a_build_is_told_what_to_do() -> None:
    """The line names the machine, and the way that is left."""
    with pytest.raises(EmbeddedError, match=r"for Linux on riscv64: .* without --secure$"):
        tls_build("Linux", "riscv64")


def test_a_server_by_another_build(tmp_path: Path) -> None:
    """It is run by the programs that it is given, and not by those of its home."""
    build = Module("postgres-0.0", "Another PostgreSQL")
    site = Site(tmp_path, HomeState(1, secure=False, ports={"postgres": 1}))
    command = PostgresServer(build).command(site)
    assert str(jars.unpacked(jars.folder_of(build)) / "bin" / "postgres") in command
