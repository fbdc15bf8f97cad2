"""A room of the tests, among the others."""

from tests.support.counted import count, counter

__all__ = ["count", "counter"]
