"""Every kind of target that a transaction is taken from; poolers, and harvests through them."""

from tests.support.place import place
from tests.support.poolers import pooled
from tests.support.running import start_harvest
from tests.support.ways import async_way, way

__all__ = ["async_way", "place", "pooled", "start_harvest", "way"]
