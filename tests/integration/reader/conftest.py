"""Topics to read, stores, programs, and roles."""

from tests.support.place import place
from tests.support.reading import shelf
from tests.support.reaping import reap
from tests.support.roles import role, roles

__all__ = ["place", "reap", "role", "roles", "shelf"]
