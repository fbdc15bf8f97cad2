"""The harvest: from which outbox, by which leader, into which Kafka."""

from harvest_dagster.orchestration import (
    HarvestResource,
    KafkaResource,
    NeliResource,
    OutboxResource,
)

# What is not given is what harvest_dagster's settings name: the servers of `harvest dev up`, or
# HARVEST_POSTGRES, HARVEST_KAFKA and HARVEST_OUTBOX. Any field may be a dg.EnvVar.
harvest = HarvestResource(
    outbox=OutboxResource(),
    kafka=KafkaResource(),
    neli=NeliResource(),
    delivery="exactly_once",
)
