"""Accounts of several runs as tables in Markdown.

    python -m tests.torture.table FILE...

Each file is what `python -m tests.torture --json FILE` wrote.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.torture.account import COMMITTED

Told = dict[str, Any]
_ROLES = ("leader", "standby", "broker", "postgres", "run", "code server")
_NO = "-"


def runs(accounts: Iterable[Told]) -> Iterator[str]:
    """Write what each run came to, and their total."""
    accounts = sorted(accounts, key=lambda told: told["seed"])
    columns = {**_COLUMNS, **_kills(accounts), **_JUDGED}
    yield _row(["seed", *columns])
    yield _row(["---"] * (1 + len(columns)))
    for told in accounts:
        yield _row([told["seed"], *(_shown(one([told])) for one in columns.values())])
    yield _row(["all", *(_shown(one(accounts)) for one in columns.values())])


def faults(accounts: Sequence[Told]) -> Iterator[str]:
    """Write how long each kind of fault took to be got over, in all runs."""
    yield _row(["fault", "times", "worst, s", "alone", "median of those alone, s"])
    yield _row(["---"] * 5)
    yield from _recoveries(accounts)


def total(accounts: Sequence[Told], column: str) -> str:
    """Tell what one column comes to for all runs."""
    return _shown({**_COLUMNS, **_kills(accounts), **_JUDGED}[column](accounts))


def _sum(name: Callable[[Told], float | None]) -> Callable[[Sequence[Told]], float]:
    return lambda accounts: sum(name(told) or 0 for told in accounts)


def _max(name: str) -> Callable[[Sequence[Told]], float | None]:
    def most(accounts: Sequence[Told]) -> float | None:
        found = [told[name] for told in accounts]
        return None if None in found else max(found)

    return most


def _committed(*names: str) -> Callable[[Sequence[Told]], float]:
    """Take the worst of those who read what is committed: all are to have read the same."""

    def worst(told: Told) -> int:
        readers = [seen for name, seen in told["readers"].items() if name.startswith(COMMITTED)]
        return max(sum(int(seen[name]) for name in names) for seen in readers)

    return _sum(worst)


def _overlap(told: Told) -> float:
    return float(told["overlap_written_seconds"] + told["overlap_trusted_seconds"])


def _kills(accounts: Iterable[Told]) -> dict[str, Callable[[Sequence[Told]], float]]:
    found = {role for told in accounts for role in told["kills"]}
    roles = [*(role for role in _ROLES if role in found), *sorted(found.difference(_ROLES))]
    return {f"kill {role}": _killed(role) for role in roles}


def _killed(role: str) -> Callable[[Sequence[Told]], float]:
    return _sum(lambda told: told["kills"].get(role, 0))


_COLUMNS: dict[str, Callable[[Sequence[Told]], float | None]] = {
    "minutes": _sum(lambda told: told["seconds"] / 60),
    "acknowledged": _sum(lambda told: told["outcomes"].get("acknowledged", 0)),
    "messages": _sum(lambda told: told["messages"]),
    "epochs": _sum(lambda told: told["epochs"]),
}
_JUDGED: dict[str, Callable[[Sequence[Told]], float | None]] = {
    "kill -9": _sum(lambda told: sum(told["kills"].values())),
    "lost": _committed("lost"),
    "doubled": _committed("doubled", "repeated"),
    "out of order": _committed("disordered"),
    "stale writes": _sum(lambda told: told["stale_writes"]),
    "of an old epoch": _committed("outdated"),
    "overlap, s": _sum(_overlap),
    "longest stop, s": _max("longest_stop_seconds"),
    "drained, s": _max("drained_seconds"),
    "broken": _sum(lambda told: len(told["broken"])),
}


def _recoveries(accounts: Sequence[Told]) -> Iterator[str]:
    for label in sorted({label for told in accounts for label in told["faults"]}):
        found = [told["faults"][label] for told in accounts if label in told["faults"]]
        alone = [seconds for one in found for seconds in one["alone_each"]]
        yield _row(
            [
                label,
                _shown(sum(one["count"] for one in found)),
                _shown(max(one["worst"] for one in found)),
                _shown(len(alone)),
                _shown(float(median(alone))) if alone else _NO,
            ]
        )
    struck, measured = (sum(told[name] for told in accounts) for name in ("struck", "measured"))
    missed, over = (sum(told[name] for told in accounts) for name in ("missed", "passed_over"))
    yield ""
    yield f"{struck:,} faults struck, of which {measured:,} could be measured;"
    yield f"{missed:,} found nothing to strike, and {over:,} were passed over, since their target"
    yield "was in trouble already."


def _shown(figure: float | None) -> str:
    if figure is None:
        return "no"
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:,.1f}"


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main(files: Sequence[str]) -> None:
    """Write the tables of these files."""
    accounts = [json.loads(Path(file).read_text(encoding="utf-8")) for file in files]
    for line in [*runs(accounts), "", *faults(accounts)]:
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
