"""The ways to deliver; CI takes all through some faults, and `make faults` through the rest."""

from __future__ import annotations

import pytest

_SOME = ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.long)]
WITHOUT_IDENTITY = pytest.mark.parametrize("delivery", _SOME)
DELIVERIES = pytest.mark.parametrize(
    "delivery", [*_SOME, pytest.param("sequenced", marks=pytest.mark.long)]
)
ALL = pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "sequenced"])
