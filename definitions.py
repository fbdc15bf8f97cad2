"""The code location: assets, resources and sensors of this directory, put together."""

import dagster as dg

from assets.orders import orders
from resources.database import DatabaseResource
from resources.harvest import harvest
from sensors import leader

defs = dg.Definitions.merge(
    leader.defs,
    dg.Definitions(
        assets=[orders],
        resources={
            "database": DatabaseResource(),
            "outbox": harvest.outbox,
            "kafka": harvest.kafka,
        },
    ),
)
