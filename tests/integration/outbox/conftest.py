"""Every kind of target that stash takes."""

from tests.support.ways import async_way, way

__all__ = ["async_way", "way"]
