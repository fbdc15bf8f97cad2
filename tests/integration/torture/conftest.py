"""Places to harvest at."""

from tests.support.place import place

__all__ = ["place"]
