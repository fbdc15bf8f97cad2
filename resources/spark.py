"""Spark: one session for all the assets of a run, which ends with the run."""

from dagster_pyspark import LazyPySparkResource

from harvest_dagster.spark import java_options

# For a cluster give spark.master, or spark.remote for Spark Connect, and leave the hosts away; and
# set PYSPARK_PYTHON to the Python of its machines that has harvest_dagster.
spark = LazyPySparkResource(
    spark_config={
        "spark.master": "local[2]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": java_options(),
    }
)
