"""What a user gives to say where PostgreSQL is: a URL, or libpq's key=value pairs.

The pairs may also be those of Go's lib/pq, which differ in two ways. Some name a setting of the
server (`search_path=shop`), which libpq takes among its `options` alone; some are for lib/pq
alone, and are dropped. And in `password= dbname=shop` the password is empty, as everyone who
writes it means, where libpq would take `dbname=shop` for it.

No error tells anything of what was given: where it is misread, any part may be of a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import whitespace
from urllib.parse import unquote

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from harvest_dagster.errors import ConfigError

_KEYS = frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())
_OF_SERVER = (
    "search_path",
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "timezone",
    "work_mem",
)
_OF_LIB_PQ = ("binary_parameters", "disable_prepared_binary_result")
_FOREIGN = "|".join(_OF_SERVER + _OF_LIB_PQ)
_FOREIGN_IN_QUERY = re.compile(rf"(?<=[?&])({_FOREIGN})=([^&]*)(?:&|$)")
_PAIR = re.compile(
    rf"""(?P<key>[^\s=]+) \s*=
    (?: \s*'(?P<quoted>(?:[^'\\]|\\.)*)'
      | (?= \s*$ | \s+(?:{"|".join(sorted(_KEYS))}|{_FOREIGN})\s*=)
      | \s*(?P<plain>(?:[^\s'\\]|\\.)(?:[^\s\\]|\\.)*)
    ) (?:\s+|$)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_PORTS = re.compile("[0-9, ]*")
_NOT_READ = (
    "this is no place of a PostgreSQL: write postgresql://user:password@host:5432/database, with"
    " @ as %40, / as %2F and % as %25 in the password; or host=localhost dbname=database"
    " user=name password='...', with \\ before each ' and \\ of the password"
)


def connection_string(text: str, ours: Mapping[str, str] | None = None) -> str:
    """Check it, and write it as libpq's pairs, with what is `ours` where the user says nothing."""
    return make_conninfo("", **{**(ours or {}), **_parameters(text)})


def _parameters(text: str) -> dict[str, str]:
    is_url = text.startswith(("postgresql://", "postgres://"))
    try:
        found = _of_url(text) if is_url else _of_pairs(text)
        _check(found, is_url=is_url)
        if any("\0" in part for part in (text, *found.values())):  # libpq would stop reading there
            raise ConfigError(_NOT_READ)
        ours = _for_libpq(found)
        make_conninfo("", **ours)
    except (psycopg.Error, ValueError):
        raise ConfigError(_NOT_READ) from None
    return ours


def _of_url(url: str) -> dict[str, str]:
    foreign = {key: unquote(value) for key, value in _FOREIGN_IN_QUERY.findall(url)}
    known = conninfo_to_dict(_FOREIGN_IN_QUERY.sub("", url))
    return foreign | {key: str(value) for key, value in known.items()}


def _of_pairs(text: str) -> dict[str, str]:
    found = {}
    rest = text.strip(whitespace)
    while rest:
        pair = _PAIR.match(rest)
        if pair is None:
            raise ValueError
        found[pair["key"]] = _unescaped(pair["quoted"] or pair["plain"] or "")
        rest = rest[pair.end() :]
    return found


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)


def _check(found: dict[str, str], *, is_url: bool) -> None:
    """Refuse too what libpq would pass now, and quote in an error when it connects."""
    for place, key in enumerate(found, 1):
        if key not in _KEYS and key not in _OF_SERVER + _OF_LIB_PQ:
            raise ConfigError(
                f"PostgreSQL's client does not know its key number {place}: mind the spelling,"
                " and write a value that has blanks as '...'"
            )
    misplaced = is_url and "@" in found.get("host", "") + found.get("dbname", "")
    if misplaced or not found or not _PORTS.fullmatch(found.get("port", "")):
        raise ValueError


def _for_libpq(found: dict[str, str]) -> dict[str, str]:
    known = {key: value for key, value in found.items() if key in _KEYS}
    settings = [f"-c {key}={_escaped(found[key])}" for key in _OF_SERVER if key in found]
    if settings:
        known["options"] = " ".join([known.get("options", ""), *settings]).strip()
    return known


def _escaped(value: str) -> str:
    return re.sub(r"([\\\s])", r"\\\1", value)
