"""The days that the shop's Spark assets are cut into."""

import dagster as dg

DAYS = dg.DailyPartitionsDefinition(start_date="2026-10-01")
