"""UUIDs of messages: RFC 4122's version 1, whose sequence bits say how a message counts."""

from __future__ import annotations

import secrets
import struct
from enum import IntEnum
from typing import NamedTuple

from harvest_dagster.errors import MessageError

HEADER = "uuid"
"""The header of a message that has its UUID, as sixteen bytes."""
LENGTH = 16
NIL = bytes(LENGTH)
LARGEST_FLAGS = 0x3FF
_RANDOM_BIT, _STABLE_BIT = 0x01, 0x02
_PRODUCER_BYTES = 6
_FORM = struct.Struct(">IHHH6s")
_VERSION, _VARIANT = 0x1000, 0x8000


class Flags(IntEnum):
    """How a message counts; what is none of these counts at once."""

    OUTSIDE = 0  # it counts at once
    CONTINUE = 1  # it is pending, until a later one settles it
    ACK = 2  # settles what its producer has pending up to its clock, and rolls back what is later
    SETTLE = 4  # a message that settles what is pending up to its clock, and itself


class Identity(NamedTuple):
    """What a UUID says."""

    producer: bytes
    clock: int
    flags: int


def new_producer(*, stable: bool = False) -> bytes:
    """Return a producer that nobody else has; a stable one is never forgotten by readers."""
    first, *rest = secrets.token_bytes(_PRODUCER_BYTES)
    marked = (first & ~_STABLE_BIT) | _RANDOM_BIT | (_STABLE_BIT if stable else 0)
    return bytes((marked, *rest))


def is_stable(producer: bytes) -> bool:
    """Return whether readers must never forget a producer, however long it is silent."""
    return bool(producer[0] & _STABLE_BIT)


def made(producer: bytes, clock: int, flags: int) -> bytes:
    """Return the UUID of a message."""
    if not 0 <= flags <= LARGEST_FLAGS:
        raise ValueError(f"flags are of 10 bits, and {flags:#x} has more")
    ticks = clock >> 4
    return _FORM.pack(
        ticks & 0xFFFFFFFF,
        ticks >> 32 & 0xFFFF,
        ticks >> 48 & 0x0FFF | _VERSION,
        clock << 10 & 0x3C00 | flags | _VARIANT,
        producer,
    )


def read(uuid: bytes) -> Identity:
    """Return what a UUID says; raise a MessageError where it is none of version 1."""
    if len(uuid) != LENGTH:
        raise MessageError(f"a UUID has {LENGTH} bytes, and this one has {len(uuid)}")
    low, middle, high, sequence, producer = _FORM.unpack(uuid)
    if uuid == NIL:
        return Identity(producer, 0, Flags.OUTSIDE)
    if high & 0xF000 != _VERSION or sequence & 0xC000 != _VARIANT:
        raise MessageError(f"{uuid.hex()} is no UUID of version 1, which messages here have")
    ticks = (high & 0x0FFF) << 48 | middle << 32 | low
    return Identity(producer, ticks << 4 | sequence >> 10 & 0xF, sequence & LARGEST_FLAGS)
