"""The commands of a room, made of its description: `harvest <word> run`, `status`, `list`, verbs.

A room that has a group of commands of its own names it, and is asked for that instead.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

import click
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from harvest_dagster.cli.console import Form, logged
from harvest_dagster.cli.led_names import list_of
from harvest_dagster.cli.live import LiveFigures
from harvest_dagster.cli.run import Program, run, run_options
from harvest_dagster.cli.shared_options import json_option, operator, postgres_option, with_options
from harvest_dagster.cli.show import print_json, say
from harvest_dagster.cli.status import print_work_status
from harvest_dagster.config import load_settings
from harvest_dagster.ledger.words import refuse_another
from harvest_dagster.postgres.connect import connected
from harvest_dagster.work.led import Led
from harvest_dagster.work.room import Call, Room, Verb, rooms
from harvest_dagster.work.runner import Runner
from harvest_dagster.work.status import read_work_status
from harvest_dagster.work.verbs import done, verbs_of

_EVENTS = 5
_CLAUSE = re.compile(r"[,.:;]\s|[,.:;]$")
_Given = Mapping[str, Any]


def groups() -> Iterator[click.Command]:
    """Return the group of commands of each room that leads something."""
    for room in rooms():
        if room.commands:
            module, _, name = room.commands.partition(":")
            yield getattr(import_module(module), name)
        elif room.led is not None:
            yield group_of(room)


def group_of(room: Room) -> click.Group:
    """Make the group of a room's commands."""
    group = click.Group(room.word, help=f"Run, see and operate what is led as {room.word}.")
    group.add_command(_run(room))
    group.add_command(_status(room))
    group.add_command(list_of(room.word))
    for verb in verbs_of(room):
        group.add_command(_verb(room, verb))
    return group


def _run(room: Room) -> click.Command:
    @run_options
    def act(*, form: Form, metrics: str | None, stop_seconds: float, **given: object) -> None:
        """Do its work for as long as this process leads, until SIGTERM or Ctrl-C.

        Run as many as you like: one leads each shard, the others stand by. The exit code is 0 if
        all that was begun has settled.
        """
        runner = Runner(room, _led(room, given))
        with logged(form, logging.INFO) as console:
            program = Program(runner, runner.start, LiveFigures(runner))
            run(program, console, metrics, stop_seconds)

    return _command("run", act, room.options)


def _status(room: Room) -> click.Command:
    @json_option
    def act(*, as_json: bool, **given: object) -> None:
        """Show who leads, how far its tours have come, and what happened last."""
        led = _led(room, given)
        with connected(led.postgres_url, "command") as connection:
            refuse_another(connection, led.name, room.word)
            found = read_work_status(connection, led.name, last_events=_EVENTS)
        if as_json:
            print_json(asdict(found))
        else:
            print_work_status(room.word, found)

    return _command("status", act, room.options)


def _verb(room: Room, verb: Verb) -> click.Command:
    def act(**given: object) -> None:
        led, options = _led(room, given), _model(verb.options, given)
        with connected(led.postgres_url, "command") as connection:
            did = done(room, verb, Call(led, connection, operator(), say), options)
        for line in did.lines:
            say(line)

    act.__doc__ = verb.says
    return _command(verb.name.replace("_", "-"), act, verb.options, room.options)


def _command(name: str, act: Callable[..., None], *models: type[BaseModel] | None) -> click.Command:
    """Make a command that has an option for each field of some models."""
    fields: dict[str, FieldInfo] = {}
    for model in models:
        fields = {**(model.model_fields if model else {}), **fields}
    given = with_options(*(_option(field, of) for field, of in fields.items()))
    short = _CLAUSE.split((act.__doc__ or "").strip(), maxsplit=1)[0]
    return click.command(name, short_help=f"{short}.")(given(act))


def _option(name: str, field: FieldInfo) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make the option of a field; what is given is text, which the field's model will read."""
    if name == "postgres":
        return postgres_option
    words, kind = name.replace("_", "-"), field.annotation
    how: dict[str, Any] = {"help": _help(name, field)}
    if kind is bool:
        return click.option(f"--{words}/--no-{words}", name, default=None, **how)
    if get_origin(kind) is Literal:
        how["type"] = click.Choice([str(choice) for choice in get_args(kind)])
    several = get_origin(kind) in {list, tuple, set, frozenset}
    return click.option(f"--{words}", name, required=field.is_required(), multiple=several, **how)


def _help(name: str, field: FieldInfo) -> str:
    said = field.description or f"Sets {name}."
    default = field.get_default(call_default_factory=False)
    return said if default in (None, PydanticUndefined) else f"{said} [default: {default}]"


def _led(room: Room, given: _Given) -> Led:
    assert room.led is not None  # noqa: S101 - or there would be no command
    if room.options is None:
        return room.led(None)
    if "postgres" in room.options.model_fields:
        given = {**given, "postgres": load_settings(postgres=given["postgres"]).postgres_url()}
    return room.led(_model(room.options, given))


def _model(model: type[BaseModel], given: _Given) -> BaseModel:
    known = {name: given[name] for name in model.model_fields if given[name] not in {None, ()}}
    try:
        return model.model_validate(known)
    except ValidationError as error:
        (fault, *_) = error.errors(include_input=False, include_url=False)
        option = "--" + "-".join(str(part) for part in fault["loc"][:1]).replace("_", "-")
        said = f"{option}: {fault['msg']}"
    raise click.UsageError(said)
