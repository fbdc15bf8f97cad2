"""The sensor that leads, with the job that it runs, its assets and its checks."""

from harvest_dagster.orchestration import harvest_definitions
from resources.harvest import harvest

TOPICS = ["orders", "daily-sales", "large-orders", "payments"]
UPSTREAM = ["orders", "daily_sales", "large_orders", "payment_feed"]

# It is on from the start; without `running` somebody turns it on in the UI. Give `key` a name of
# its own for each further outbox.
defs = harvest_definitions(harvest, topics=TOPICS, upstream=UPSTREAM, running=True)
