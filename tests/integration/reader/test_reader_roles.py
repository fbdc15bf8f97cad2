"""Which grants a reader needs, and an operator who resets one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from harvest_dagster.reader import PostgresStore
from tests.support.databases import new_database
from tests.support.reading import Shelf
from tests.support.roles import url_as

if TYPE_CHECKING:
    from harvest_dagster.embedded import Servers
    from tests.support.command import Harvest
    from tests.support.place import Place
    from tests.support.roles import Roles

GRANTS = (
    "GRANT USAGE ON SCHEMA harvest TO {role}",
    "GRANT SELECT ON harvest.migration TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON harvest.reader_position TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON harvest.reader_producer TO {role}",
    "GRANT INSERT ON seen TO {role}; GRANT USAGE ON SEQUENCE seen_id_seq TO {role}",
)


def test_a_harvester_reads(shelf: Shelf, roles: Roles) -> None:
    """Its grants are enough, but for the tables of the user."""
    role = sql.Identifier(roles["harvester"].split("//")[1].split(":")[0])
    with psycopg.connect(shelf.url) as connection:
        shelf.store.prepare(connection)
        connection.execute(sql.SQL(GRANTS[-1]).format(role=role))
    shelf.store = PostgresStore(roles["harvester"])
    shelf.write("A1O", "B1C", "B2K")
    with shelf.read():
        shelf.has_seen("A1O", "B1C", "B2K")


def test_an_operator_resets(shelf: Shelf, roles: Roles, harvest: Harvest) -> None:
    """With an operator's grants."""
    shelf.write("-1", "B1C")
    with shelf.read() as reading:
        reading.caught_up(2)
    known = {
        "HARVEST_POSTGRES": roles["operator"],
        "HARVEST_KAFKA": shelf.place.kafka["bootstrap.servers"],
    }
    options = ("--name", shelf.name, "--topic", shelf.topic, "--to", "end")
    done = harvest("reader", "reset", *options, **known)
    assert done.returncode == 0, done.stderr


def test_the_least_in_a_database_of_its_own(place: Place, servers: Servers, role: str) -> None:
    """What the docs say is enough where nothing else of ours is."""
    with new_database(servers, "template0") as url:
        shelf = Shelf(place, url)
        with psycopg.connect(url) as connection:
            shelf.store.prepare(connection)
            for grant in GRANTS:
                connection.execute(sql.SQL(grant).format(role=sql.Identifier(role)))
        shelf.store = PostgresStore(url_as(role, url))
        shelf.write("A1O", "B1C", "B2K")
        with shelf.read():
            shelf.has_seen("A1O", "B1C", "B2K")
        with psycopg.connect(url) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
