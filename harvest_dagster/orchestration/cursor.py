"""What the sensor remembers from tick to tick, and what follows from that: how fast it goes.

rate             what was done in the last minute, a second; a tick's own would jump
still seconds    for how long something waits and nothing is done

Dagster shows the cursor with each tick: first what the tick saw, as a sentence, and in lines of
their own what we remember, packed, since it is for nobody's eyes.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass
from textwrap import wrap
from zlib import compress, decompress

from pydantic import BaseModel, Field

_LEAST_SECONDS = 1.0
"""Of a tick that comes so soon after another, as of one that is previewed, no rate is taken."""
_MINUTE = 60.0
_LINE = 120
"""Characters: a longer line makes Dagster's page wider than the screen."""


class Cursor(BaseModel):
    """What was reported last, and when; what the tick saw comes first, for the UI shows it."""

    saw: str = ""
    ticked_at: float = 0.0
    looks: list[tuple[float, int]] = Field(default_factory=list)
    """When it looked in the last minute, and what was done by then."""
    moved_at: float = 0.0
    event: int = 0
    figures_at: float = 0.0
    figures: dict[str, int | float] = Field(default_factory=dict)
    checks_at: float = 0.0
    reds_at: float = 0.0
    checks: dict[str, bool] = Field(default_factory=dict)
    topics_at: float = 0.0
    topics: dict[str, int] = Field(default_factory=dict)
    leaders: str = ""
    said_of: dict[str, str] = Field(default_factory=dict)
    """What was reported of assets beside the first one, each as a digest."""

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """Read it back; what another version of us wrote counts as nothing."""
        saw, *packed = (text or "").split("\n")
        try:
            found = cls.model_validate_json(decompress(b64decode("".join(packed), validate=True)))
        except (ValueError, zlib.error):
            return cls()
        found.saw = saw
        return found

    def write(self) -> str:
        """Return it as Dagster keeps it."""
        remembered = self.model_dump_json(exclude={"saw"}, exclude_defaults=True)
        packed = b64encode(compress(remembered.encode())).decode()
        return "\n".join([self.saw, *wrap(packed, _LINE)])


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast it goes, or for how long it has not gone at all."""

    rate: float
    still_seconds: float


def pace_of(cursor: Cursor, done: int, now: float, *, waits: bool) -> Pace:
    """Compare what was done with what the last tick saw, and remember what this one sees."""
    last = cursor.looks[-1] if cursor.looks else None
    if last is None or done != last[1] or not waits:
        cursor.moved_at = now
    if last is None or now - last[0] >= _LEAST_SECONDS:
        lately = [look for look in cursor.looks if now - look[0] <= _MINUTE]
        # After a silence there is one look at least to compare with: the last one before it.
        cursor.looks = [*(lately or cursor.looks[-1:]), (now, done)]
    return Pace(_rate(cursor.looks), now - cursor.moved_at)


def _rate(looks: list[tuple[float, int]]) -> float:
    (since, before), (now, done) = looks[0], looks[-1]
    return round(max(0, done - before) / (now - since), 1) if now > since else 0.0
