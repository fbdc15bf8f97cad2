from __future__ import annotations

import subprocess
import sys

import pytest

FEW, MANY = 10_000, 300_000
GROWTH_KIB = 20 * 1024

SCRIPT = """
import resource, sys
import psycopg
from harvest_dagster import Message, stash

with psycopg.connect(sys.argv[1]) as connection:
    for count in map(int, sys.argv[2:]):
        messages = (Message("orders", str(n), b"v" * 100, {"h": "v"}) for n in range(count))
        assert stash(connection, messages) == count
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux alone")
def test_millions_in_constant_memory(database: str) -> None:
    """Thirty times as many messages from a generator take no more memory."""
    command = [sys.executable, "-c", SCRIPT, database, str(FEW), str(MANY)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    few, many = map(int, run.stdout.split())
    assert many - few < GROWTH_KIB
