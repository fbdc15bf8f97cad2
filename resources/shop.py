"""The shop: its database, its outbox, and the Kafka that its messages go to."""

import dagster as dg

from harvest_dagster.orchestration import KafkaResource, OutboxResource
from resources.database import DatabaseResource


class Shop(dg.ConfigurableResource[None]):
    """What the shop's assets write to."""

    database: DatabaseResource
    outbox: OutboxResource
    kafka: KafkaResource
    scope: str | None = None
    """Whose writes they are, whatever name the code location is loaded under."""
