"""The user that PostgreSQL runs as: our own; but it refuses root, so for root it is `nobody`."""

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
    """Return the command line that runs `command` as PostgreSQL's user."""
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
        # Root's home is closed to `nobody`, and what we need may be in it. So it may pass by the
        # rights of files; and the bit makes that hold for access(2) too, which initdb asks.
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--securebits=+no_setuid_fixup",
        "--",
        *command,
    ]


def give(path: Path) -> None:
    """Make PostgreSQL's user the owner of a file."""
    if _is_root():
        user = pwd.getpwnam(NOBODY)
        os.chown(path, user.pw_uid, user.pw_gid)


def _is_root() -> bool:
    return os.geteuid() == 0
