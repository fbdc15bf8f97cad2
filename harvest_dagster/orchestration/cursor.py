"""What the sensor remembers from tick to tick, and what follows from that: how fast it goes.

rate             what was done since the last tick, a second; not since the last report,
which may be ten minutes old
still seconds    for how long something waits and nothing is done
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import AliasChoices, BaseModel, Field

_LEAST_SECONDS = 1.0
"""Of a tick that comes so soon after another, as of one that is previewed, no rate is taken."""


class Cursor(BaseModel):
    """What was reported last, and when; what the tick saw comes first, for the UI shows it."""

    saw: str = ""
    ticked_at: float = 0.0
    looked_at: float = 0.0
    done: int = Field(default=0, validation_alias=AliasChoices("done", "published"))
    rate: float = 0.0
    moved_at: float = 0.0
    event: int = 0
    figures_at: float = 0.0
    figures: dict[str, int | float] = Field(default_factory=dict)
    checks_at: float = 0.0
    reds_at: float = 0.0
    checks: dict[str, bool] = Field(default_factory=dict)
    topics_at: float = 0.0
    topics: dict[str, int] = Field(default_factory=dict)

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """Read it back; what another version of us wrote counts as nothing."""
        try:
            return cls.model_validate_json(text or "{}")
        except ValueError:
            return cls()


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast it goes, or for how long it has not gone at all."""

    rate: float
    still_seconds: float


def pace_of(cursor: Cursor, done: int, now: float, *, waits: bool) -> Pace:
    """Compare what was done with what the last tick saw, and remember what this one sees."""
    if not cursor.looked_at or done != cursor.done or not waits:
        cursor.moved_at = now
    since = now - cursor.looked_at
    if since >= _LEAST_SECONDS:
        moved = max(0, done - cursor.done) if cursor.looked_at else 0
        cursor.rate = round(moved / since, 1)
        cursor.looked_at, cursor.done = now, done
    return Pace(cursor.rate, now - cursor.moved_at)
