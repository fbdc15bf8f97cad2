"""The resource of whatever is led: its fields are the options of its room."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import ValidationError

from harvest_dagster.config import load_settings
from harvest_dagster.errors import ConfigError
from harvest_dagster.orchestration.fields import config_type, of_dagster, values_for, with_fields
from harvest_dagster.orchestration.resources import OutboxResource
from harvest_dagster.work.led import Led
from harvest_dagster.work.room import Room

_POSTGRES = "postgres"
"""The option that says where PostgreSQL is: without it, where the settings say."""


def led_resource(room: Room) -> type[dg.ConfigurableResource[None]]:
    """Make the class of a room's resources; every field may be an `EnvVar`."""
    if room.options is None or room.led is None:
        raise ConfigError(f"the room of {room.word} leads nothing: it has no options, or no `led`")
    options, make = room.options, room.led
    fields = {name: of_dagster(name, field) for name, field in options.model_fields.items()}
    if _POSTGRES in fields:
        fields[_POSTGRES] = OutboxResource.model_fields[_POSTGRES]

    @with_fields(fields, config_type)
    class LedOptions(dg.ConfigurableResource[None]):
        """What is led, and how."""

        def __init__(self, **given: Any) -> None:  # noqa: ANN401 - each of its field's type
            super().__init__(**given)

        def led(self) -> Led:
            """Return what is led; raise a ConfigError that names the field."""
            values = values_for(options, self)
            if _POSTGRES in fields:
                values[_POSTGRES] = load_settings(postgres=values.get(_POSTGRES)).postgres_url()
            try:
                return make(options.model_validate(values))
            except ValidationError as error:
                faults = error.errors(include_input=False, include_url=False)
                said = "; ".join(f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in faults)
            raise ConfigError(f"the resource of {room.word}: {said}")

    return LedOptions
