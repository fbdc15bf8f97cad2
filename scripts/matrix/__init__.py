"""Try what the library may run on: other versions of Python, PostgreSQL, Kafka and Dagster."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".harvest" / "matrix"
"""Where the cells have their environments, servers and logs."""
