"""The options of a room as the fields of a resource."""

from __future__ import annotations

from typing import Any, Literal

import dagster as dg
import pytest
from pydantic import BaseModel, Field

from harvest_dagster.errors import ConfigError
from harvest_dagster.orchestration import led_resource
from harvest_dagster.work.durations import Pause
from harvest_dagster.work.room import Room
from tests.support.counter.room import Counter

seen: list[ManyOptions] = []


class ManyOptions(BaseModel):
    """An option of each type."""

    postgres: str = Field(description="where")
    name: str = Field(default="many", description="what")
    size: int = Field(default=3, description="how many")
    share: float = Field(default=0.5, description="how much")
    pause: Pause = Field(default=5.0, description="how long")
    kind: Literal["one", "two"] = Field(default="one", description="which")
    topics: list[str] = Field(default=[], description="of what")


def many(options: ManyOptions) -> Counter:
    """Keep the options, and make what needs few of them."""
    seen.append(options)
    return Counter(options.name, options.postgres)


ROOM = Room(word="many", options=ManyOptions, led=many)


def resource() -> Any:
    """Make the class, whose fields no type checker knows."""
    return led_resource(ROOM)


def test_each_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number is a number, a duration is text, and all of text may be an `EnvVar`."""
    monkeypatch.setenv("MANY_KIND", "two")
    given = resource()(
        postgres="postgresql://here", pause="7s", kind=dg.EnvVar("MANY_KIND"), topics=["a"]
    )
    with given.process_config_and_initialize_cm() as made:
        made.led()
    assert seen.pop().model_dump() == {
        "postgres": "postgresql://here",
        "name": "many",
        "size": 3,
        "share": 0.5,
        "pause": 7.0,
        "kind": "two",
        "topics": ["a"],
    }


def test_postgres_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address it is that of the settings."""
    monkeypatch.setenv("HARVEST_POSTGRES", "postgresql://there")
    resource()().led()
    assert seen.pop().postgres == "postgresql://there"


def test_what_is_wrong_is_named() -> None:
    """The error names the field."""
    given = resource()(postgres="postgresql://here", kind="three")
    with pytest.raises(ConfigError, match="kind: "):
        given.led()


def test_a_room_that_leads_nothing() -> None:
    """It has no resource."""
    with pytest.raises(ConfigError, match="leads nothing"):
        led_resource(Room(word="none"))
