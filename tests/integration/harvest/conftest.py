"""Places to harvest at, and harvests at work."""

from tests.integration.harvest.place import place
from tests.integration.harvest.running import spawn, start_harvest, start_tour

__all__ = ["place", "spawn", "start_harvest", "start_tour"]
