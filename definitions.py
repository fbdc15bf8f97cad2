"""The code location: assets, resources and sensors of this directory, put together."""

import dagster as dg

from assets import sales, tills
from assets.orders import orders
from resources.database import DatabaseResource
from resources.harvest import harvest
from resources.lake import Lake
from resources.shop import Shop
from resources.spark import spark
from sensors import leader

defs = dg.Definitions.merge(
    leader.defs,
    dg.Definitions(
        assets=[orders, *dg.load_assets_from_modules([tills, sales])],
        resources={
            "database": DatabaseResource(),
            "outbox": harvest.outbox,
            "kafka": harvest.kafka,
            "shop": Shop(
                database=DatabaseResource(),
                outbox=harvest.outbox,
                kafka=harvest.kafka,
                scope="shop",  # in a copy of this directory, give a name of your own
            ),
            "lake": Lake(),
            "spark": spark,
        },
        executor=dg.in_process_executor,  # so that the assets of a run share one Spark session
    ),
)
