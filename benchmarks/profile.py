"""Show what a harvest's process is busy with, function by function.

    python -m benchmarks.profile [--records N] [--delivery D]

py-spy looks at the process again and again, also into the clients' own code. What it found stays in
`.harvest/profile.txt`, as a flame graph takes it; who was at work most in the threads of the stages
is printed. librdkafka's own threads are no threads of Python's, and so are not seen.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

_RAW = Path(".harvest/profile.txt")
_SHOWN = 12
_WAITS = re.compile(
    r"(pthread_cond_(timed)?wait|cnd_(timed)?wait|PyThread_acquire_lock|take_gil|e?poll|clock_nano)"
)
_INNER = 4
"""So many frames of libraries there may be between a wait and the system's call."""
_NAMELESS = re.compile(r"^0x|\(libc\.so")


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
    """Print how busy each stage was, and who was at work himself, not by what he called."""
    stages: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        thread, *frames = stack.split(";")
        stage = re.search(r"harvest-(\w+)", thread)
        if stage is not None and not any(map(_WAITS.match, frames[-_INNER:])):
            stages[stage[1]] += int(count)
            alone[_name(frames)] += int(count)
    print(f"{stages.total():,} samples of a stage at work")
    for each in (stages, alone):
        print()
        for what, samples in each.most_common(_SHOWN):
            print(f"{samples / stages.total():6.1%}  {what}")


def _name(frames: list[str]) -> str:
    """Tell the innermost frame that has a name of its own: what libc does, its caller asked for."""
    return next((frame for frame in reversed(frames) if not _NAMELESS.search(frame)), "unknown")


if __name__ == "__main__":
    main()
