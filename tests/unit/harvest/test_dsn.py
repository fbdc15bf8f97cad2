from __future__ import annotations

import traceback
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from harvest_dagster import ConfigError
from harvest_dagster.postgres.dsn import connection_string

SECRET = "hunter2"  # noqa: S105 - what must not be shown
README = "host=localhost port=5432 user=postgres password= dbname=postgres sslmode=disable"
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
PLACES = st.fixed_dictionaries(
    {"host": st.sampled_from(["localhost", "/run/postgresql", "a,b"])},
    optional={"user": TEXTS, "password": TEXTS, "dbname": TEXTS, "port": st.sampled_from("19")},
)


def read(text: str) -> dict[str, str | int | None]:
    """What libpq reads in the connection string made of it."""
    return conninfo_to_dict(connection_string(text))


def test_goharvest() -> None:
    """In goharvest's own example the password is empty, and the database is named."""
    assert read(README) == {
        "host": "localhost",
        "port": "5432",
        "user": "postgres",
        "password": "",
        "dbname": "postgres",
        "sslmode": "disable",
    }


def test_what_we_say_and_the_user_does_not() -> None:
    """Of what both say, the user's word counts."""
    ours = {"keepalives_idle": "10", "keepalives_count": "3"}
    found = conninfo_to_dict(connection_string("host=h keepalives_count=9", ours))
    assert found == {"host": "h", "keepalives_idle": "10", "keepalives_count": "9"}


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("host=h", {"host": "h"}),
        ("  host = h\tport\n=\n5432  ", {"host": "h", "port": "5432"}),
        ("host=a host=b", {"host": "b"}),
        (r"host=h password=it\'s\\", {"host": "h", "password": "it's\\"}),
        (r"host=h password='it\'s \\'", {"host": "h", "password": "it's \\"}),
        ("host=h password='' user=u", {"host": "h", "password": "", "user": "u"}),
        ("host=h password=", {"host": "h", "password": ""}),
        ("host=h password= s3cret user=u", {"host": "h", "password": "s3cret", "user": "u"}),
        ("host=h password=user=x user=u", {"host": "h", "password": "user=x", "user": "u"}),
        ("host=h password= my=pw", {"host": "h", "password": "my=pw"}),
        ("host=@abstract", {"host": "@abstract"}),
        ("host=h fallback_application_name=x", {"host": "h", "fallback_application_name": "x"}),
        ("host=h binary_parameters=yes", {"host": "h"}),
        ("host=h disable_prepared_binary_result=yes", {"host": "h"}),
        ("host=h search_path='a, b'", {"host": "h", "options": r"-c search_path=a,\ b"}),
        (
            "host=h options='-c geqo=off' timezone=UTC",
            {"host": "h", "options": "-c geqo=off -c timezone=UTC"},
        ),
        ("postgresql://h/d", {"host": "h", "dbname": "d"}),
        (
            "postgres://u:p%40q@h:1/d",
            {"host": "h"} | {"user": "u", "password": "p@q"} | {"port": "1", "dbname": "d"},
        ),
        ("postgresql://a:1,b:2/d", {"host": "a,b", "port": "1,2", "dbname": "d"}),
        ("postgresql:///d?host=/run/postgresql", {"host": "/run/postgresql", "dbname": "d"}),
        ("postgresql://h?binary_parameters=yes", {"host": "h"}),
        (
            "postgresql://h?sslmode=require&binary_parameters=yes&user=u",
            {"host": "h", "sslmode": "require", "user": "u"},
        ),
        ("postgresql://h?search_path=a%20b", {"host": "h", "options": r"-c search_path=a\ b"}),
    ],
)
def test_reads(text: str, parameters: dict[str, str]) -> None:
    """URLs and pairs are read as libpq and Go's lib/pq read them."""
    assert read(text) == parameters


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        SECRET,
        f"host=h password='{SECRET}",
        f"host=h password=a {SECRET}",
        f"host=h password=a {SECRET}=b",
        f"host=h {SECRET}=",
        f"host=h pasword={SECRET}",
        f"host=h port={SECRET}",
        f"host=h password={SECRET}\0",
        f"host=h password=a\\ {SECRET}\\",
        f"mysql://u:{SECRET}@h/d",
        f"postgresql://u:{SECRET}%zz@h/d",
        f"postgresql://u:{SECRET}%00@h/d",
        f"postgresql://u:{SECRET}/@h/d",
        f"postgresql://u:12/{SECRET}@h/d",
        f"postgresql://u:a@{SECRET}@h/d",
        f"postgresql://u@h/d?{SECRET}=1",
        f"postgresql://u@h/d?search_path=%00{SECRET}",
        f"postgresql://u:{SECRET}\ud800@h/d",
    ],
)
def test_refuses_without_showing(text: str) -> None:
    """What is neither is refused in one line that shows nothing of it."""
    with pytest.raises(ConfigError) as error:
        connection_string(text)
    assert "\n" not in str(error.value)
    assert SECRET not in "".join(traceback.format_exception(error.value))


def test_unknown_key() -> None:
    """A key that nobody knows is told by its place, since it may be a part of a password."""
    with pytest.raises(ConfigError, match="does not know its key number 2: mind the spelling"):
        connection_string("host=h usr=u")


@given(PLACES)
@example({"host": "h", "password": " "})
@example({"host": "h", "password": "\\"})
@example({"host": "h", "password": "host=x"})
def test_round_trip(place: dict[str, str]) -> None:
    """Whatever the values, libpq reads of the connection string what was given."""
    text = make_conninfo("", **place)
    assert read(text) == place
    assert connection_string(connection_string(text)) == connection_string(text)


@given(st.one_of(st.text(), st.text().map(lambda rest: f"postgresql://{rest}")))
def test_fuzz(text: str) -> None:
    """Any text is read or refused with a ConfigError."""
    with suppress(ConfigError):
        assert read(text)
