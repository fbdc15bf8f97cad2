from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from harvest_dagster.ledger import lease as leases
from tests.support.roles import url_as
from tests.support.waiting import until

if TYPE_CHECKING:
    from tests.support.reaping import Reap


def test_missing_table(reap: Reap, connection: psycopg.Connection[Any]) -> None:
    """A table that is not there is refused with how to make it; nothing is made for its name."""
    reaping = reap("--outbox", "ordres")
    assert reaping.process.wait(30) == 1
    said = "harvest: there is no table ordres: make it with `harvest outbox create --outbox ordres`"
    assert reaping.log == f"{said}\n"
    assert leases.read(connection) == []


def test_a_database_without_the_schema(
    reap: Reap, outbox: str, connection: psycopg.Connection[Any]
) -> None:
    """It is made where that may be, which a line says, and the outbox is harvested."""
    connection.execute("DROP SCHEMA harvest CASCADE")
    connection.commit()
    reaping = reap(HARVEST_OUTBOX=outbox)
    until(lambda: "acquired: epoch 1" in reaping.log)
    assert "made the schema harvest, which was missing" in reaping.log
    assert reaping.stopped() == 0


def test_a_schema_that_may_not_be_made(
    reap: Reap, outbox: str, role: str, database: str, connection: psycopg.Connection[Any]
) -> None:
    """The command is named, and who is to give it."""
    connection.execute("DROP SCHEMA harvest CASCADE")
    connection.commit()
    command = f"run `harvest outbox create --outbox {outbox}` as who owns the table"
    forbidden = reap("--no-create", HARVEST_OUTBOX=outbox)
    assert forbidden.process.wait(30) == 1
    assert forbidden.log == f"harvest: the schema harvest is missing: {command}\n"
    refused = reap(HARVEST_OUTBOX=outbox, HARVEST_POSTGRES=url_as(role, database))
    assert refused.process.wait(30) == 1
    grant = f"`harvest outbox grant {role} --as harvester --outbox {outbox}`"
    said = f"the schema harvest is missing, and {role} may not create it: {command}, and then"
    assert refused.log == f"harvest: {said} {grant}\n"
