"""The resource of whatever is led: its fields are the options of its room."""

from __future__ import annotations

from typing import Any

import dagster as dg

from harvest_dagster.errors import ConfigError
from harvest_dagster.orchestration.fields import of_dagster, values_for, with_fields
from harvest_dagster.work.led import Led
from harvest_dagster.work.room import Room


def led_resource(room: Room) -> type[dg.ConfigurableResource[None]]:
    """Make the class of a room's resources; every field may be an `EnvVar`."""
    if room.options is None or room.led is None:
        raise ConfigError(f"the room of {room.word} leads nothing: it has no options, or no `led`")
    options, make = room.options, room.led
    fields = {name: of_dagster(name, field) for name, field in options.model_fields.items()}

    @with_fields(fields, lambda field: field.annotation)
    class LedOptions(dg.ConfigurableResource[None]):
        """What is led, and how."""

        def __init__(self, **given: Any) -> None:  # noqa: ANN401 - each of its field's type
            super().__init__(**given)

        def led(self) -> Led:
            """Return what is led; raise a ConfigError that names the field."""
            return make(options.model_validate(values_for(options, self)))

    return LedOptions
