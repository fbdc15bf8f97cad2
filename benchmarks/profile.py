"""Show what a harvest's process is busy with, function by function.

    python -m benchmarks.profile [--records N] [--delivery D]

py-spy looks at the process again and again, also into the clients' own code. What it found stays in
`.harvest/profile.txt`, as a flame graph takes it; who was at work most is printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path

_RAW = Path(".harvest/profile.txt")
_SHOWN = 12


def main() -> None:
    """Profile a drain in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument(
        "--delivery", choices=("exactly_once", "at_least_once"), default="exactly_once"
    )
    given = parser.parse_args()
    program = [sys.executable, "-m", "benchmarks.harvest", "--child", given.delivery]
    program += ["--records", str(given.records)]
    recorder = [str(Path(sys.executable).with_name("py-spy")), "record", "--native", "--threads"]
    _RAW.parent.mkdir(parents=True, exist_ok=True)
    command = [*recorder, "--rate", "500", "--format", "raw", "--output", str(_RAW)]
    subprocess.run([*command, "--", *program], check=True)
    _show(_RAW.read_text(encoding="utf-8"))


def _show(folded: str) -> None:
    """Print who was at work himself, not by what he called."""
    alone: Counter[str] = Counter()
    total = 0
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        alone[frames[-1]] += int(count)
        total += int(count)
    print(f"{total:,} samples")
    for frame, samples in alone.most_common(_SHOWN):
        print(f"{samples / total:6.1%}  {frame}")


if __name__ == "__main__":
    main()
