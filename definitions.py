"""The code location: assets, resources and sensors of this directory, put together."""

import dagster as dg

from assets.orders import orders
from resources.database import DatabaseResource
from resources.outbox import OutboxResource

defs = dg.Definitions(
    assets=[orders],
    resources={"database": DatabaseResource(), "outbox": OutboxResource()},
)
