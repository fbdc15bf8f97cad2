"""The business database, by SQLAlchemy."""

import dagster as dg
import sqlalchemy as sa

from harvest_dagster import load_settings


class DatabaseResource(dg.ConfigurableResource[sa.Engine]):
    """PostgreSQL; without a URL, the one that harvest_dagster's settings name."""

    url: str | None = None

    def engine(self) -> sa.Engine:
        """Make an engine that leaves no connection open behind a run."""
        url = load_settings(postgres=self.url).sqlalchemy_url()
        return sa.create_engine(url, poolclass=sa.NullPool)

    def execute(self, statement: str) -> None:
        """Execute one statement in a transaction of its own, such as a CREATE TABLE."""
        with self.engine().begin() as connection:
            connection.execute(sa.text(statement))
