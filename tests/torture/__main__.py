"""The fault bench: writers, three candidates, three brokers and PostgreSQL, and all that can fail.

    python -m tests.torture --minutes 10 --seed 1

A nemesis kills, pauses and restarts the parts, and cuts, stalls and delays their connections, as
the seed has it. Then all is healed and drained, and every message is accounted for. The exit code
is 1 if a promise was broken. Ctrl-C has it end early, and judge what was done.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from tests.torture import plan as plans
from tests.torture.account import Account
from tests.torture.bench import Bench
from tests.torture.plan import Plan
from tests.torture.plants import PLANTS
from tests.torture.show import lines

_HOME = Path(".harvest") / "torture"
_RATE, _WRITERS = 500.0, 4


def say(line: str) -> None:
    """Tell a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(plan: Plan, home: Path, rate: float = _RATE) -> Account:
    """Run a plan, and show its account; Ctrl-C or SIGTERM end it early, and it is judged then."""
    bench = Bench(plan, home, rate, _WRITERS, say)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: bench.ending.set())
    account = bench.run()
    for line in lines(account):
        say(line)
    return account


def main() -> int:
    """Run what was asked for; tell whether all was kept."""
    given = _arguments()
    if given.replay:
        plan = Plan.read(given.replay)
    else:
        plan = plans.make(given.seed, given.minutes * 60, given.delivery, given.plant)
    given.plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write(given.plan)
    say(f"{len(plan.faults)} faults in {plan.seconds:,.0f} s; --replay {given.plan} repeats them")
    account = run(plan, given.home, given.rate)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(account.as_dict(), indent=1) + "\n", encoding="utf-8")
    return 1 if account.broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--minutes", type=float, default=10.0, help="how long the nemesis is at work (10)")
    add("--seed", type=int, default=1, help="what it does follows from this (1)")
    add("--delivery", choices=("exactly_once", "at_least_once"), default="exactly_once")
    add("--plant", choices=sorted(PLANTS), help="run with a bug, which the account must show")
    add("--replay", type=Path, metavar="FILE", help="do what a run did, from its plan")
    add("--json", type=Path, metavar="FILE", help="write the account there, too")
    add("--rate", type=float, default=_RATE, help=f"messages per second at most ({_RATE:.0f})")
    add("--home", type=Path, default=_HOME, help=f"where the servers live meanwhile ({_HOME})")
    add(
        "--plan",
        type=Path,
        default=_HOME.with_name("torture-plan.json"),
        metavar="FILE",
        help="where the plan is written for a replay",
    )
    given = parser.parse_args()
    if given.plant and given.delivery != "exactly_once":
        parser.error("--plant: the bugs are planted in the delivery exactly_once")
    return given


if __name__ == "__main__":
    sys.exit(main())
