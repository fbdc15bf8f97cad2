"""Sales: orders cleaned and summed up by Spark, and what the company is told of them."""

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from assets.days import DAYS
from assets.files import write_files
from harvest_dagster.orchestration import Repeat, stash_report
from harvest_dagster.spark import progress, register, transaction
from resources.lake import Lake
from resources.shop import Shop

DAILY_SALES = """CREATE TABLE IF NOT EXISTS daily_sales (
    day date, customer text, orders bigint NOT NULL, cents bigint NOT NULL,
    PRIMARY KEY (day, customer))"""
PAYMENT = "order string, customer string, cents bigint"


@dg.asset(
    partitions_def=DAYS,
    deps=["till_orders"],
    group_name="sales",
    kinds={"pyspark", "parquet"},
    owners=["team:shop"],
)
def clean_orders(
    context: dg.AssetExecutionContext, spark: LazyPySparkResource, lake: Lake
) -> dg.MaterializeResult[None]:
    """Orders of a day, each once, and with its customer."""
    day = context.partition_key
    raw = spark.spark_session.read.parquet(lake.day("till_orders", day))
    clean = raw.where("customer IS NOT NULL").dropDuplicates(["order"])
    return dg.MaterializeResult(metadata=write_files(clean, lake.day("clean_orders", day)))


@dg.asset(
    partitions_def=DAYS,
    deps=[clean_orders],
    group_name="sales",
    kinds={"pyspark", "postgres"},
    owners=["team:shop"],
)
def daily_sales(
    context: dg.AssetExecutionContext,
    config: Repeat,
    spark: LazyPySparkResource,
    lake: Lake,
    shop: Shop,
) -> dg.MaterializeResult[None]:
    """What each customer bought on a day: a row and a message, both or neither."""
    day = context.partition_key
    orders = spark.spark_session.read.parquet(lake.day("clean_orders", day))
    sales = orders.groupBy("customer").agg(
        F.lit(day).cast("date").alias("day"),
        F.count("order").alias("orders"),
        F.sum("cents").alias("cents"),
    )
    messages = sales.select(F.col("customer").alias("key"), F.struct("*").alias("value"))
    shop.database.execute(DAILY_SALES)
    shop.kafka.ensure_topic("daily-sales")
    options = config.options(context, scope=shop.scope) | shop.outbox.options()
    with transaction(spark.spark_session, **options) as write:
        write.replace(sales, "daily_sales", day=day)
        write.stash(messages, topic="daily-sales")
    return dg.MaterializeResult(
        metadata={
            **stash_report(write, sample=sales),
            "table": "daily_sales",
            "topic": "daily-sales",
        }
    )


@dg.asset(
    partitions_def=DAYS,
    deps=[clean_orders],
    group_name="sales",
    kinds={"pyspark", "kafka"},
    owners=["team:shop"],
)
def large_orders(
    context: dg.AssetExecutionContext,
    config: Repeat,
    spark: LazyPySparkResource,
    lake: Lake,
    shop: Shop,
) -> dg.MaterializeResult[None]:
    """A message for each large order of a day, in the order of their time."""
    orders = spark.spark_session.read.parquet(lake.day("clean_orders", context.partition_key))
    large = orders.where("cents > 19000").select(
        F.col("customer").alias("key"), F.struct("order", "cents", "at").alias("value"), "at"
    )
    shop.kafka.ensure_topic("large-orders")
    options = config.options(context, scope=shop.scope) | shop.outbox.options()
    with transaction(spark.spark_session, **options) as write:
        write.stash(large, topic="large-orders", order_by=["at"])
    return dg.MaterializeResult(
        metadata={**stash_report(write, sample=large), "topic": "large-orders"}
    )


@dg.asset(
    deps=["till_payments"],
    group_name="sales",
    kinds={"pyspark", "kafka"},
    owners=["team:shop"],
)
def payment_feed(spark: LazyPySparkResource, lake: Lake, shop: Shop) -> dg.MaterializeResult[None]:
    """A message for each payment that is new since the last time, as a stream that ends.

    Files of a day that is materialized again are new to the stream, so it remembers, in its
    checkpoint, which orders are paid. Where that gets too much, a watermark bounds it.
    """
    shop.kafka.ensure_topic("payments")
    register(spark.spark_session)
    files = spark.spark_session.readStream.schema(PAYMENT).parquet(lake.days("till_payments"))
    payments = files.dropDuplicates(["order"])
    messages = payments.select(F.col("customer").alias("key"), F.struct("*").alias("value"))
    options = shop.outbox.options()
    with progress("payment_feed", **options) as write:
        stream = (
            messages.writeStream.format("outbox")
            .options(topic="payments", key="payment_feed", **options)
            .option("checkpointLocation", lake.checkpoint("payment_feed"))
            .trigger(availableNow=True)
            .start()
        )
        stream.awaitTermination()
    sample = spark.spark_session.read.schema(PAYMENT).parquet(lake.days("till_payments"))
    return dg.MaterializeResult(
        metadata={**stash_report(write, sample=sample), "topic": "payments"}
    )
