"""A code location that harvests one outbox: put your assets beside it."""

from harvest_dagster.orchestration import HarvestResource, OutboxResource, harvest_definitions

shop = HarvestResource(outbox=OutboxResource(table="shop_outbox"))
defs = harvest_definitions(shop, key="shop", topics=["orders"], running=True)
