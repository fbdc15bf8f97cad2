"""Whom PostgreSQL runs as: us; but it refuses root, so for root it is nobody."""

from __future__ import annotations

import os
import pwd
import shutil
from typing import TYPE_CHECKING

from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NOBODY = "nobody"


def as_owner(command: Sequence[str]) -> list[str]:
    """Tell the command line that runs `command` as PostgreSQL's owner."""
    if not _is_root():
        return list(command)
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise EmbeddedError(
            "PostgreSQL does not run as root: run this as an ordinary user, or install util-linux"
        )
    user = pwd.getpwnam(NOBODY)
    return [
        setpriv,
        f"--reuid={user.pw_uid}",
        f"--regid={user.pw_gid}",
        "--clear-groups",
        # Root's home, and what lies below it, is closed to nobody otherwise; and without the bit,
        # access(2) goes by the user alone, by which initdb looks for its programs.
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--securebits=+no_setuid_fixup",
        "--",
        *command,
    ]


def give(path: Path) -> None:
    """Make PostgreSQL's owner the owner of a file."""
    if _is_root():
        user = pwd.getpwnam(NOBODY)
        os.chown(path, user.pw_uid, user.pw_gid)


def _is_root() -> bool:
    return os.geteuid() == 0
