"""Shows an account as a table."""

from __future__ import annotations

from collections.abc import Iterator

from tests.torture.account import Account
from tests.torture.tally import FAULTS

_COLUMNS = ("messages", "lost", "invented", *FAULTS, "epochs")


def lines(account: Account) -> Iterator[str]:
    """Write the account for people."""
    yield ""
    yield f"seed {account.seed}, {account.seconds:,.0f} s, {account.delivery}" + (
        f", with the bug {account.plant} planted" if account.plant else ""
    )
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(account.outcomes.items()))
    yield f"transactions: {outcomes}; {account.messages:,} messages were committed"
    yield ""
    yield f"{'reader':26}" + "".join(f"{column:>12}" for column in _COLUMNS)
    for name, seen in account.readers.items():
        yield f"{name:26}" + "".join(f"{getattr(seen, column):12,}" for column in _COLUMNS)
    yield ""
    yield from _faults(account)
    kills = ", ".join(f"{count} {role}" for role, count in sorted(account.kills.items()))
    yield f"kill -9: {sum(account.kills.values())} ({kills})"
    yield f"epochs: {account.epochs}; writes of a deposed leader: {account.stale_writes}"
    yield (
        f"overlap of leaders: {account.overlap_written_seconds} s by what they wrote,"
        f" {account.overlap_trusted_seconds} s by their trust, in {account.terms} terms"
    )
    yield f"records set aside and put back: {account.parked}"
    yield f"longest stop in delivery: {account.longest_stop_seconds} s, of {account.stops} over 1 s"
    if account.drained_seconds is not None:
        yield f"all had gone out {account.drained_seconds} s after the healing"
    for what in ("gave_up", "died", "unclean"):
        if told := getattr(account, what):
            yield f"{what.replace('_', ' ')}: {', '.join(told)}"
    yield ""
    yield from _verdict(account)


def _faults(account: Account) -> Iterator[str]:
    yield f"{'':20}{'':>8}{'':>10}{'all flows again after':>32}"
    yield f"{'fault':20}{'times':>8}{'lasted s':>10}{'worst s':>10}{'median s of those alone':>26}"
    for name, found in account.faults.items():
        alone = f"{found['alone_median']} ({found['alone']})" if found["alone"] else "-"
        figures = (found["count"], found["lasted_median"], found["worst"])
        yield f"{name:20}{figures[0]:8}{figures[1]:10}{figures[2]:10}{alone:>26}"
    yield (
        f"faults: {account.struck} struck, of which {account.measured} could be measured;"
        f" {account.passed_over} passed over, their target was in trouble;"
        f" {account.missed} found nothing to strike"
    )
    yield ""


def _verdict(account: Account) -> Iterator[str]:
    if not account.broken:
        yield "every promise was kept"
    for what, count in account.broken.items():
        yield f"BROKEN: {what}: {count:,}"
    for name, seen in account.readers.items():
        if account.faults_of(name):
            yield from (f"  {name}: {sample}" for sample in seen.samples)
    if any(account.left.values()):
        yield f"  left: {account.left}"
