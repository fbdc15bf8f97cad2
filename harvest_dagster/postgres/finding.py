"""What is not as it should be in the database, and the SQL that mends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be; `safe` if it can be mended without a choice."""

    level: Level
    what: str
    mend: tuple[str, ...] = ()
    safe: bool = False
