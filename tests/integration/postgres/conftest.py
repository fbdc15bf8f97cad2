"""Every kind of target that a transaction is taken from."""

from tests.support.ways import async_way, way

__all__ = ["async_way", "way"]
