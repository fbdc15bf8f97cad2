"""Places to harvest at, and harvests at work."""

from tests.support.place import place
from tests.support.pressing import press
from tests.support.running import start_harvest, start_tour

__all__ = ["place", "press", "start_harvest", "start_tour"]
