"""Topics to read, and stores."""

from tests.support.place import place
from tests.support.reading import shelf

__all__ = ["place", "shelf"]
