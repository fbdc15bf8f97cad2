"""Arrays of header keys and values, in PostgreSQL's binary form and as literals.

Drivers know arrays too, but take longer over one than over all the rest of a row.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

TEXT_OID, BYTEA_OID = 25, 17
NO_ITEMS = "{}"

_int32 = struct.Struct("!i").pack
_head = struct.Struct("!iiiii").pack
_empty = struct.Struct("!iii").pack
_NULL = _int32(-1)


def binary_array(oid: int, items: Sequence[bytes | None]) -> bytes:
    """An array in binary form: dimensions, whether there are NULLs, the items' type, the items."""
    if not items:
        return _empty(0, 0, oid)
    parts = [_head(1, None in items, oid, len(items), 1)]
    parts += [_NULL if item is None else _int32(len(item)) + item for item in items]
    return b"".join(parts)


@lru_cache(maxsize=1024)
def binary_keys(keys: tuple[str, ...]) -> bytes:
    """An array of header keys, which are mostly the same few, in binary form."""
    return binary_array(TEXT_OID, [key.encode() for key in keys])


@lru_cache(maxsize=1024)
def keys_literal(keys: tuple[str, ...]) -> str:
    """An array of header keys as a literal."""
    return text_literal([key.encode() for key in keys])


def text_literal(items: Sequence[bytes | None]) -> str:
    """An array of texts as a literal."""
    return "{" + ",".join(["NULL" if item is None else _quoted(item) for item in items]) + "}"


def bytes_literal(items: Sequence[bytes | None]) -> str:
    """An array of bytes as a literal."""
    return "{" + ",".join(["NULL" if i is None else f'"\\\\x{i.hex()}"' for i in items]) + "}"


def _quoted(item: bytes) -> str:
    text = item.decode().replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
