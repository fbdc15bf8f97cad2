"""What a room's description comes to, with what all has that is led: a lease, and its leader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg

from harvest_dagster.ledger.candidates import CandidateRow
from harvest_dagster.ledger.events import KINDS
from harvest_dagster.text import ages, counted
from harvest_dagster.work.led import Led
from harvest_dagster.work.room import AssetText, CheckText, Facts, Room, Verdict
from harvest_dagster.work.status import WorkStatus

LEASE_KINDS = tuple(KINDS)
"""What happens to a lease."""
_NOTHING: Mapping[str, int] = {}
_LEASE = AssetText(
    "lease", "Who leads, under which epoch, and how each term began and ended.", events=LEASE_KINDS
)
_ONE_LEADER = CheckText(
    "lease", "one_leader", "Each shard has a leader whose lease has not expired."
)


def assets_of(room: Room) -> tuple[AssetText, ...]:
    """Return the assets of what a room leads: its own first, and its lease."""
    own = room.assets or (AssetText(room.word, "What is done, and how fast."),)
    if any(asset.name == _LEASE.name for asset in own):
        return own
    lease = AssetText(_LEASE.name, _LEASE.says, behind=(own[0].name,), events=_LEASE.events)
    return (*own, lease)


def checks_of(room: Room) -> tuple[CheckText, ...]:
    """Return the checks of what a room leads: that it has its leaders, and the room's own."""
    return (_ONE_LEADER, *room.checks)


def judged(
    room: Room, led: Led, status: WorkStatus, still_seconds: float = 0.0
) -> Iterator[Verdict]:
    """Judge what is seen at one moment."""
    yield one_leader(status, led.candidate.shards, room.word)
    yield from room.judge(led, status, still_seconds)


def judged_by(
    room: Room, check: CheckText, connection: psycopg.Connection[Any], led: Led
) -> Verdict:
    """Look, and return what one check finds; what can't be judged is none of a room's checks."""
    found = (
        room.inspect(connection, led)
        if check.closely
        else judged(room, led, room.look(connection, led))
    )
    return next(verdict for verdict in found if verdict.check == check.name)


def one_leader(status: WorkStatus, shards: int, word: str) -> Verdict:
    """Judge whether each shard has its leader, and where one has not, say why."""
    leading = {row.shard for row in status.leases if not row.expired}
    missing = ", ".join(str(shard) for shard in range(shards) if shard not in leading)
    says = f"nobody leads shard {missing}: {_why(status.candidates, word)}" if missing else ""
    return Verdict(
        _ONE_LEADER.asset, _ONE_LEADER.name, not missing, says or "every shard has its leader"
    )


def _why(standing: Sequence[CandidateRow], word: str) -> str:
    if not standing:
        return f"nobody stands for election; turn the sensor on, or start `harvest {word} run`"
    troubles = {trouble: row for row in standing for trouble in row.troubles}
    said = [f"{trouble} (for {ages(row.since_seconds)})" for trouble, row in troubles.items()]
    return "; ".join(said) or (
        f"{counted(len(standing), 'candidate')} without any trouble should lead within seconds; if"
        " this lasts, see the log of " + ", ".join(row.holder for row in standing)
    )


def unwatched(room: Room, name: str) -> Iterator[Verdict]:
    """Judge what nobody leads any more, since its sensor does not tick: none is green for long."""
    why = f"the sensor of {name} does not tick: turn it on, or see to Dagster's daemon"
    yield Verdict(_ONE_LEADER.asset, _ONE_LEADER.name, passed=False, says=f"nobody leads, {why}")
    yield from (verdict for verdict in blind(room, why) if verdict.check != _ONE_LEADER.name)


def blind(room: Room, why: str) -> Iterator[Verdict]:
    """Judge what can't be seen: nothing is known to be well any more."""
    for check in checks_of(room):
        yield Verdict(check.asset, check.name, passed=False, says=f"it can't be told: {why}")


def facts_of(room: Room, led: Led, status: WorkStatus) -> Mapping[str, Facts]:
    """Return what is seen of each asset, the first one first."""
    found = room.observe(led, status)
    return {asset or assets_of(room)[0].name: facts for asset, facts in found.items()}


def did(led: Led, figures: Mapping[str, int], before: Mapping[str, int] = _NOTHING) -> str:
    """Write how much was done, and what of it is rare, where there is more of that than before."""
    rare = [
        figure.name
        for figure in led.figures
        if figure.rare and figures.get(figure.name, 0) > before.get(figure.name, 0)
    ]
    return ", ".join(f"{figures.get(name, 0):,} {name}" for name in (led.figures[0].name, *rare))


def just_now(led: Led, figures: Mapping[str, int]) -> str:
    """Write what is so just now, each with a comma before it."""
    names = [figure.name for figure in led.figures if not figure.counts]
    return "".join(f", {figures.get(name, 0):,} {name.replace('_', ' ')}" for name in names)
