"""Every kind of target that stash takes, and a role that has nothing."""

from tests.support.roles import role
from tests.support.ways import async_way, way

__all__ = ["async_way", "role", "way"]
