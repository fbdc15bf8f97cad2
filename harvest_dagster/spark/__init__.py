"""Spark: DataFrames become messages of an outbox, alone or together with rows of tables.

from harvest_dagster.spark import register, transaction

register(spark)
frame.write.format("outbox").mode("append").option("topic", "orders").save()

with transaction(spark, key="sales/2026-11-18") as write:
    write.upsert(sales, "daily_sales", key=["day", "customer"])
    write.stash(events, topic="sales", order_by=["at"])
"""

from harvest_dagster.ledger.once import Written
from harvest_dagster.spark.class_archive import java_options
from harvest_dagster.spark.session import register
from harvest_dagster.spark.source import OutboxSource
from harvest_dagster.spark.stream_progress import Progress, progress
from harvest_dagster.spark.transaction import Transaction, transaction

__all__ = [
    "OutboxSource",
    "Progress",
    "Transaction",
    "Written",
    "java_options",
    "progress",
    "register",
    "transaction",
]
