"""Both ways to deliver; CI takes one of them through each fault, and `make faults` both."""

from __future__ import annotations

import pytest

DELIVERIES = pytest.mark.parametrize(
    "delivery", ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.long)]
)
