"""Places to harvest at, and harvests at work."""

from tests.support.place import place
from tests.support.running import spawn, start_harvest, start_tour

__all__ = ["place", "spawn", "start_harvest", "start_tour"]
