"""The nemesis: does to the parts what its plan says, when it says so, and then heals all."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.torture.candidates import Candidates
from tests.torture.dagster_candidate import DagsterCandidate
from tests.torture.ground import POSTGRES, Ground
from tests.torture.lanes import BIG_TOPIC
from tests.torture.links import Links
from tests.torture.operator import USUAL_LIMIT, Operator
from tests.torture.plan import LEADER, Fault, Plan

_LINK_FAULTS = {"cut", "refuse", "stall", "delay"}
_BUTTONS = {"reload", "terminate"}
_THREADS = 24
_RETRY_SECONDS = 0.5
_SETTLED_SECONDS = 20.0
"""So long after a fault what it did is over, or it is no excuse."""


class Parts(NamedTuple):
    """What can be disturbed."""

    candidates: Candidates | DagsterCandidate
    ground: Ground
    links: Links
    operator: Operator


@dataclass(slots=True)
class Struck:
    """A fault as it came about: to whom, in which part, and when, by the clock.

    It missed if nothing was there to strike; what was restarted may not have ended in good order.
    """

    fault: Fault
    target: str
    role: str
    began: float = 0.0
    ended: float = 0.0
    missed: bool = False
    unclean: bool = False

    @property
    def label(self) -> str:
        """What it is counted as."""
        return f"{self.fault.kind} {self.role}"


class Nemesis:
    """Runs one plan; each fault is a task of its own, from its beginning to its healing."""

    def __init__(self, plan: Plan, parts: Parts) -> None:
        self._plan, self._parts = plan, parts
        self._healing = threading.Event()
        self._pool = ThreadPoolExecutor(_THREADS, "nemesis")
        self._tasks: list[Future[None]] = []
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="nemesis")
        self.struck: list[Struck] = []
        self.passed_over = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the plan goes on."""
        return self._thread.is_alive()

    @property
    def under_way(self) -> list[str]:
        """The faults of just now."""
        return [f"{s.fault.kind} {s.target}" for s in list(self.struck) if not s.ended]

    @property
    def kills(self) -> int:
        """How many kill -9 there were."""
        return sum(each.fault.kind == "kill" and not each.missed for each in list(self.struck))

    def heal(self) -> None:
        """End all faults, and have all parts run; raise what a task failed with."""
        self._healing.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._pool.shutdown()
        for task in self._tasks:
            task.result()
        self._parts.ground.await_all()
        self._parts.candidates.start_all()

    def _run(self) -> None:
        start = time.monotonic()
        for fault in self._plan.faults:
            if self._healing.wait(max(0.0, start + fault.at - time.monotonic())):
                return
            self._tasks.append(self._pool.submit(self._strike, fault))
        self._healing.wait(max(0.0, start + self._plan.seconds - time.monotonic()))

    def _strike(self, fault: Fault) -> None:
        struck = self._aim(fault)
        place = self._place(struck)
        with self._lock:
            if place in self._busy:
                self.passed_over += 1
                return
            self._busy.add(place)
        self.struck.append(struck)
        struck.began = time.time()
        try:
            self._begin(struck)
            self._healing.wait(fault.seconds)
            self._end(struck)
        finally:
            struck.ended = time.time()
            with self._lock:
                self._busy.discard(place)

    def _aim(self, fault: Fault) -> Struck:
        """Find who leads now; if nobody does, it hits the first."""
        target = fault.target
        if not (target == LEADER or target.startswith("candidate")):
            role = "broker" if target.startswith("kafka") else target
            return Struck(fault, target, role)
        leader = self._parts.candidates.leader()
        target = (leader or "candidate-1") if target == LEADER else target
        return Struck(fault, target, "leader" if target == leader else "standby")

    @staticmethod
    def _place(struck: Struck) -> str:
        is_link = struck.fault.kind in _LINK_FAULTS
        return f"link of {struck.target}" if is_link else struck.target

    def _begin(self, struck: Struck) -> None:
        fault, target = struck.fault, struck.target
        parts = self._parts
        if fault.kind in _LINK_FAULTS:
            parts.links.disturb(target, fault.kind, fault.amount)
        elif fault.kind == "kill":
            struck.missed = not self._servers(target).kill(target)
        elif fault.kind == "restart":
            struck.unclean = not self._servers(target).stop(target)
        elif fault.kind == "pause":
            self._servers(target).signal(target, signal.SIGSTOP)
        elif fault.kind == "clock":
            self._servers(target).move_clock(target, fault.amount)
        elif fault.kind in _BUTTONS:
            struck.missed = not self._servers(target).press(fault.kind)
        else:
            parts.operator.limit(BIG_TOPIC, int(fault.amount))

    def _end(self, struck: Struck) -> None:
        kind, target = struck.fault.kind, struck.target
        if kind in _LINK_FAULTS:
            self._parts.links.heal(target)
        elif kind in {"kill", "restart"}:
            self._servers(target).start(target)
        elif kind == "pause":
            self._servers(target).signal(target, signal.SIGCONT)
        elif kind == "clock":
            self._servers(target).move_clock(target, 0.0)
        elif kind == "limit":
            while not self._parts.operator.limit(BIG_TOPIC, USUAL_LIMIT):
                time.sleep(_RETRY_SECONDS)
            self._parts.operator.requeue()

    def _servers(self, target: str) -> Any:
        is_server = target == POSTGRES or target.startswith("kafka")
        return self._parts.ground if is_server else self._parts.candidates


def unclean(struck: Sequence[Struck]) -> list[str]:
    """Tell the candidates that were stopped while nothing else was wrong, and did not end well."""
    return [
        f"{each.target} at its restart"
        for each in struck
        if each.unclean and each.target.startswith("candidate") and _is_alone(each, struck)
    ]


def _is_alone(one: Struck, struck: Sequence[Struck]) -> bool:
    return not any(
        other is not one and other.began < one.ended and other.ended + _SETTLED_SECONDS > one.began
        for other in struck
    )
