"""What the options of a room, and of its verbs, are on the command line."""

from __future__ import annotations

from typing import Literal

import pytest
from click.testing import CliRunner, Result
from pydantic import BaseModel, Field

from harvest_dagster.cli.room_commands import group_of
from harvest_dagster.work.room import Call, Did, Room, Verb
from tests.support.counter.room import Counter


class LampOptions(BaseModel):
    """What is led."""

    name: str = Field(default="lamp", description="What it is called.")


class TurnOptions(BaseModel):
    """How it is turned."""

    shard: int = Field(description="Which one.")
    bright: bool = Field(default=False, description="Whether it is bright.")
    colours: list[str] = Field(default=[], description="In which colours.")
    way: Literal["on", "off"] = Field(default="on", description="Which way.")


def run(*words: str) -> Result:
    """Run a command of a lamp's, whose verb says what it was given."""

    def turn(call: Call, options: TurnOptions) -> Did:
        raise AssertionError(call, options)

    room = Room(
        word="lamp",
        options=LampOptions,
        led=lambda options: Counter(options.name, "host=nowhere.invalid"),
        verbs=(Verb("turn_it", "Turn it.", TurnOptions, turn),),
    )
    return CliRunner().invoke(group_of(room), words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Missing option '--shard'"),
        (("--shard", "x"), "--shard: Input should be a valid integer"),
        (("--shard", "1", "--way", "up"), "'up' is not one of 'on', 'off'"),
    ],
)
def test_refused(words: tuple[str, ...], said: str) -> None:
    """What a field does not take is refused, by the option's name."""
    refused = run("turn-it", *words)
    assert (refused.exit_code, said in refused.output) == (2, True), refused.output


def test_options() -> None:
    """Each field is an option, with what the field says of itself and its default."""
    shown = " ".join(run("turn-it", "--help").output.split())
    for said in (
        "--name TEXT What it is called. [default: lamp]",
        "--shard TEXT Which one. [required]",
        "--bright / --no-bright Whether it is bright.",
        "--colours TEXT In which colours.",
        "--way [on|off] Which way. [default: on]",
    ):
        assert said in shown


def test_commands() -> None:
    """A room has run, status, list, resign, and its own verbs."""
    shown = run("--help").output
    assert all(f"\n  {name} " in shown for name in ("list", "resign", "run", "status", "turn-it"))
