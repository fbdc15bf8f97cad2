"""Topics to read, and stores."""

from tests.support.place import place
from tests.support.reading import shelf
from tests.support.reaping import reap

__all__ = ["place", "reap", "shelf"]
