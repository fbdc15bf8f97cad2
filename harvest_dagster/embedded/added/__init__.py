"""The parts that `harvest dev up --with` adds to a home: a new one is a line here, and its module.

The module has the name of the part, and the part itself under the name PART.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harvest_dagster.errors import EmbeddedError

if TYPE_CHECKING:
    from harvest_dagster.embedded.part import AddedPart

OFFERED = {
    "s3": "an S3 store, SeaweedFS 4.48 (48 MB)",
    "mariadb": "MariaDB 11.4 with its binlog (149 MB)",
}
"""What each is, and how much is downloaded for it the first time."""


def load(name: str) -> AddedPart:
    """Return the part of this name; its module is imported now, for it needs the extra."""
    if name not in OFFERED:
        raise EmbeddedError(f"there is no part {name!r}: choose from {', '.join(OFFERED)}")
    part: AddedPart = import_module(f"{__name__}.{name}").PART
    return part
