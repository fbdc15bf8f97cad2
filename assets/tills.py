"""What the shop's tills send: orders and payments of a day, as Parquet, made up at any size."""

from collections.abc import Iterator

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from assets.days import DAYS
from assets.files import write_files
from resources.lake import Lake


class Tills(dg.Config):
    """How many orders come in on a day, and from how many customers."""

    orders: int = 20_000
    customers: int = 500


@dg.multi_asset(
    partitions_def=DAYS,
    specs=[
        dg.AssetSpec(name, group_name="sales", kinds={"pyspark", "parquet"}, owners=["team:shop"])
        for name in ("till_orders", "till_payments")
    ],
)
def tills(
    context: dg.AssetExecutionContext, config: Tills, spark: LazyPySparkResource, lake: Lake
) -> Iterator[dg.MaterializeResult[None]]:
    """Orders, of which some come twice and some without a customer, and their payments."""
    day = context.partition_key
    drawn = spark.spark_session.range(config.orders).select(
        "id", F.expr(f"abs(xxhash64(id, '{day}'))").alias("dice")
    )
    number = F.col("id") % max(config.orders * 99 // 100, 1)
    orders = drawn.select(
        F.concat_ws("-", F.lit(day), number).alias("order"),
        F.when(F.col("dice") % 100 > 0, _customer(config)).alias("customer"),
        (F.col("dice") % 20_000 + 100).alias("cents"),
        F.timestamp_seconds(F.unix_timestamp(F.lit(day), "yyyy-MM-dd") + number).alias("at"),
    )
    payments = orders.where("customer IS NOT NULL AND cents % 10 > 0").drop("at")
    for name, frame in (("till_orders", orders), ("till_payments", payments)):
        told = write_files(frame, lake.day(name, day))
        yield dg.MaterializeResult(asset_key=name, metadata=told)


def _customer(config: Tills) -> Column:
    return F.concat(F.lit("customer-"), F.col("dice") % config.customers)
