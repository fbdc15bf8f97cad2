"""The limits that a reaper.yaml may have for goharvest's sake.

Those that `Limits` lacks have no effect: this engine does in another way what they are about. They
are checked as goharvest checks them, so that a file means the same to both.
"""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from harvest_dagster.harvest.config import Limits
from harvest_dagster.work.checked import Count, Size
from harvest_dagster.work.durations import Pause, Period, format_duration


class GoharvestLimits(Limits):
    """Our limits, and those of goharvest's that have no effect here."""

    poll_duration: Period | None = None
    min_poll_interval: Period = 0.1
    max_poll_interval: Period = Field(
        default_factory=lambda data: data["heartbeat_timeout"] / 2, validate_default=True
    )
    drain_interval: Period | None = None
    mark_backoff: Pause | None = None
    send_concurrency: Count | None = None
    send_buffer: Size | None = None

    @field_validator("max_poll_interval")
    @classmethod
    def _leaves_time_to_poll(cls, value: float, info: ValidationInfo) -> float:
        least = info.data.get("min_poll_interval", 0)
        if value < least:
            raise ValueError(
                f"{format_duration(value)} is less than the {format_duration(least)} that must"
                " pass between two polls; its default is half the heartbeat's timeout"
            )
        return value
