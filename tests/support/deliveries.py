"""Both ways to deliver; CI takes both through some faults, and `make faults` through all."""

from __future__ import annotations

import pytest

DELIVERIES = pytest.mark.parametrize(
    "delivery", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.long)]
)
BOTH = pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
