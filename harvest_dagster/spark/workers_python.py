"""With which Python Spark's workers are run: it must be one that has harvest_dagster.

Spark runs `python3`, whichever that is, unless PYSPARK_PYTHON is set in the driver's environment;
`spark.pyspark.python` it reads only where `spark-submit` starts the driver.
"""

from __future__ import annotations

import os
import sys
import warnings

from pyspark.sql import SparkSession

_VARIABLE = "PYSPARK_PYTHON"
_SETTING = "spark.pyspark.python"


def choose_python(spark: object) -> None:
    """Have workers on this machine run this very Python, unless one was chosen; else warn.

    What is no session of this process is one of Spark Connect, whose server has chosen already.
    """
    if not isinstance(spark, SparkSession) or os.environ.get(_VARIABLE):
        return
    context = spark.sparkContext
    chosen = context.getConf().get(_SETTING)
    if chosen or str(context.master).startswith("local"):
        context.pythonExec = chosen or sys.executable
        return
    warnings.warn(
        f"Spark's executors run {context.pythonExec}, whichever that is there: set {_VARIABLE}, or"
        f" {_SETTING}, to the Python that has harvest_dagster",
        RuntimeWarning,
        stacklevel=1,  # of one place, so that it is said once
    )
