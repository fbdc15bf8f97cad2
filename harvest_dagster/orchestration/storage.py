"""Dagster's instance storage, in a database beside the harvest's own.

`dagster.yaml` can't hold an address that `harvest dev up` chooses, so this asks the settings for it
whenever a process of Dagster starts. What `dagster.yaml` names itself wins:

    storage:
      custom:
        module: harvest_dagster.orchestration.storage
        class: HarvestStorage
        config:
          database: dagster                # beside the one that the settings name
          # postgres_url: {env: DAGSTER_POSTGRES}
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlsplit

import click
import dagster as dg
import psycopg
import psycopg2
from dagster_postgres.storage import DagsterPostgresStorage
from psycopg import sql
from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from harvest_dagster.config import load_settings
from harvest_dagster.errors import ConfigError
from harvest_dagster.postgres.connect import connect
from harvest_dagster.postgres.refusals import explained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dagster._serdes import ConfigurableClassData

    Connection = psycopg.Connection[Any]

DATABASE = "dagster"
_again = Retrying(
    retry=retry_if_exception_type(psycopg.OperationalError),
    stop=stop_after_attempt(5),
    wait=wait_fixed(0.5),
    reraise=True,
)


class HarvestStorage(DagsterPostgresStorage):
    """Runs, events and schedules in PostgreSQL: the one that harvest_dagster's settings name."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Return what `dagster.yaml` may say: all that dagster-postgres takes, and a database."""
        known: Any = DagsterPostgresStorage.config_type()
        named = dg.Field(dg.StringSource, is_required=False, default_value=DATABASE)
        return {**known, "database": named}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Any:  # noqa: ANN401 - dagster-postgres makes one of its own class
        """Make the storage, its database first if that is missing."""
        given: Any = {key: value for key, value in config_value.items() if key != "database"}
        if not {"postgres_url", "postgres_db"} & given.keys():
            given["postgres_url"] = _url(config_value["database"])
        made = super().from_config_value(inst_data, given)
        for part in (made.run_storage, made.event_log_storage, made.schedule_storage):
            _have_lasting_pool(part)
        return made


def _have_lasting_pool(storage: Any) -> None:  # noqa: ANN401 - one of three classes without a common one
    """Have the web server, which keeps connections open, look whether one is good before its use.

    Else the first pages after a restart of PostgreSQL are errors.
    """
    optimize = storage.optimize_for_webserver

    def optimize_lastingly(*args: Any, **named: Any) -> None:  # noqa: ANN401 - as it takes them
        optimize(*args, **named)
        event.listen(storage._engine, "checkout", _look)  # noqa: SLF001 - no other door to it

    storage.optimize_for_webserver = optimize_lastingly


def _look(connection: Any, *_: object) -> None:  # noqa: ANN401 - psycopg2's, which has no types
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT")
    except psycopg2.Error:
        raise DisconnectionError from None  # so the pool makes another


def _url(database: str) -> str:
    """Return SQLAlchemy's URL of the database, which is there by then."""
    try:
        base = load_settings().postgres_url()
    except ConfigError as error:
        _refuse(str(error))
    _have(base, database)
    # Dagster reads psycopg2's error codes; SQLAlchemy would take psycopg 3 by itself.
    parts = urlsplit(base)._replace(
        scheme="postgresql+psycopg2", path=f"/{quote(database, safe='')}"
    )
    return parts.geturl()


@cache
def _have(base: str, database: str) -> None:
    """Make sure of the database, once in a process: each tick of a sensor makes a storage."""
    with _connect(base) as connection:
        try:
            if not _exists(connection, database):
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        except psycopg.errors.InsufficientPrivilege:
            _refuse(
                f"Dagster's database {database} is missing, and this user of PostgreSQL may not"
                " create it: create it, or name another in dagster.yaml (`database`, or"
                " `postgres_url`)"
            )
        except psycopg.errors.IntegrityError:
            # Another process of Dagster's was faster.
            return


def _exists(connection: Connection, database: str) -> bool:
    known = connection.execute("SELECT FROM pg_database WHERE datname = %s", (database,))
    return known.fetchone() is not None


def _connect(base: str) -> Connection:
    """Connect; a server that is just restarting gets a few seconds."""
    try:
        return _again(connect, base, "storage")
    except psycopg.OperationalError as error:
        _refuse(
            f"PostgreSQL, where Dagster keeps its runs: {explained(error)}:"
            " start the one of this machine with `harvest dev up`, or see to yours"
        )


def _refuse(message: str) -> NoReturn:
    """End with one line: it is Dagster's command that would show an error of ours in forty."""
    raise click.ClickException(message) from None
