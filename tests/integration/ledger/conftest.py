"""A connection to this test's database, as a candidate has it."""

from tests.support.candidates import free

__all__ = ["free"]
