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
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tests.torture import plan as plans
from tests.torture.account import Account
from tests.torture.bench import Bench
from tests.torture.plan import DAGSTER, PROGRAMS, RATE, WRITERS, Plan
from tests.torture.plants import PLANTS
from tests.torture.show import lines

_HOME = Path(".harvest") / "torture"


def say(line: str) -> None:
    """Tell a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(plan: Plan, home: Path) -> Account:
    """Run a plan, and show its account; Ctrl-C or SIGTERM end it early, and it is judged then."""
    bench = Bench(plan, home, say)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: bench.ending.set())
    account = bench.run()
    for line in lines(account):
        say(line)
    return account


def main(words: Sequence[str] | None = None, run: Callable[[Plan, Path], Account] = run) -> int:
    """Run what was asked for; tell whether all was kept."""
    given = _arguments(words)
    plan = _plan(given)
    given.plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write(given.plan)
    say(f"{len(plan.faults)} faults in {plan.seconds:,.0f} s; --replay {given.plan} repeats them")
    account = run(plan, given.home)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(account.as_dict(), indent=1) + "\n", encoding="utf-8")
    return 1 if account.broken else 0


def _plan(given: argparse.Namespace) -> Plan:
    if given.replay:
        return Plan.read(given.replay)
    variant = DAGSTER if given.dagster else PROGRAMS
    plan = plans.make(given.seed, given.minutes * 60, given.delivery, given.plant, variant)
    return replace(plan, rate=given.rate, writers=given.writers)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
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
    add("--dagster", action="store_true", help="with a Dagster instead of three programs")
    add("--replay", type=Path, metavar="FILE", help="do what a run did, from its plan")
    add("--json", type=Path, metavar="FILE", help="write the account there, too")
    add("--rate", type=float, default=RATE, help=f"messages per second at most ({RATE:.0f})")
    add("--writers", type=int, default=WRITERS, help=f"by how many processes ({WRITERS})")
    add("--home", type=Path, default=_HOME, help=f"where the servers live meanwhile ({_HOME})")
    add(
        "--plan",
        type=Path,
        default=_HOME.with_name("torture-plan.json"),
        metavar="FILE",
        help="where the plan is written for a replay",
    )
    given = parser.parse_args(words)
    if given.plant and given.delivery != "exactly_once":
        parser.error("--plant: the bugs are planted in the delivery exactly_once")
    if given.dagster and (given.plant or given.delivery != "exactly_once"):
        parser.error("--dagster: it runs with the delivery exactly_once, and without a bug")
    return given


if __name__ == "__main__":
    sys.exit(main())
