"""The writers and readers of a run, each a process: at work, at their end, and what they tell."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.support.place import Place
from tests.torture.account import COMMITTED, PLAIN
from tests.torture.child import Child
from tests.torture.plan import Plan
from tests.torture.reader import Times
from tests.torture.tally import Tally

_END_SECONDS = 120.0
_READ_SECONDS = 180.0
_QUIET_SECONDS = 15.0
_LOOK_SECONDS = 0.5


class Crowd:
    """Writers by number, readers by what they read and when."""

    def __init__(self, plan: Plan, place: Place, postgres: str, logs: Path) -> None:
        self._plan, self._place, self._postgres, self._logs = plan, place, postgres, logs
        self._numbers = range(1, plan.writers + 1)
        self._stack = ExitStack()
        self._all: dict[str, Child] = {}
        self._readers: list[str] = []

    def start(self) -> None:
        """Begin to read along, and to write."""
        for isolation in (COMMITTED, PLAIN):
            self._read(isolation, "during")
        for number in self._numbers:
            self._write(number)

    def close(self) -> None:
        """Leave none behind."""
        self._stack.close()

    def delivered(self) -> int:
        """Tell how much the reader of what is committed has by now."""
        said = self._all[f"{COMMITTED} during"].said.get("read")
        return int(said["messages"]) if said else 0

    def written(self) -> int:
        """Tell how much the writers know to be committed by now."""
        return sum(writer.said.get("wrote", {}).get("messages", 0) for writer in self._writers())

    def died(self) -> list[str]:
        """Tell who has ended otherwise than well."""
        codes = {name: child.code for name, child in self._all.items()}
        return [f"{name}: exit code {code}" for name, code in codes.items() if code]

    def end_writing(self) -> None:
        """Have the writers end."""
        for writer in self._writers():
            writer.tell(end=True)
        for writer in self._writers():
            if not writer.wait(_END_SECONDS):
                writer.kill()

    def journal(self) -> dict[int, str]:
        """Tell what became of each transaction, for all that its writer knows."""
        journals = [self._logs / f"writer-{number}.journal" for number in self._numbers]
        lines = [
            line for each in journals if each.exists() for line in each.read_text().splitlines()
        ]
        return {int(tx): outcome for tx, outcome in (line.split() for line in lines)}

    def read(self, messages: int) -> dict[str, dict[str, Any]]:
        """Have the readers end, and others read all once more; tell what each has found."""
        self._await_delivery(messages)
        for name in self._readers:
            self._all[name].tell(end=True)
        for isolation in (COMMITTED, PLAIN):
            self._read(isolation, "after")
        for name in self._readers:
            if not self._all[name].wait(_READ_SECONDS):
                self._all[name].kill()
        return {name: self._found(name) for name in self._readers}

    def _writers(self) -> list[Child]:
        return [self._all[f"writer-{number}"] for number in self._numbers]

    def _write(self, number: int) -> None:
        given = {
            "writer": number,
            "seed": self._plan.seed,
            "rate": self._plan.rate / self._plan.writers,
            "postgres": self._postgres,
            "journal": str(self._logs / f"writer-{number}.journal"),
        }
        self._start("writer", f"writer-{number}", given)

    def _read(self, isolation: str, when: str) -> None:
        name = f"{isolation} {when}"
        given = {
            "isolation": isolation,
            "how": "follow" if when == "during" else "whole",
            "result": str(self._result(name)),
            "kafka": self._place.kafka,
        }
        self._readers.append(name)
        self._start("reader", name, given)

    def _start(self, module: str, name: str, given: dict[str, Any]) -> None:
        child = Child(module, given, self._logs / f"{name.replace(' ', '-')}.log")
        self._all[name] = child
        self._stack.callback(child.kill)

    def _await_delivery(self, messages: int) -> None:
        """Wait until so many were delivered, or no more come; what is lost never does."""
        delivered, since = self.delivered(), time.monotonic()
        while delivered < messages and time.monotonic() - since < _QUIET_SECONDS:
            time.sleep(_LOOK_SECONDS)
            if self.delivered() > delivered:
                delivered, since = self.delivered(), time.monotonic()

    def _found(self, name: str) -> dict[str, Any]:
        """Read what a reader has left; one that died has found nothing."""
        if not self._result(name).exists():
            return Tally().told() | Times().told()
        found: dict[str, Any] = json.loads(self._result(name).read_text())
        return found

    def _result(self, name: str) -> Path:
        return self._logs / f"{name.replace(' ', '-')}.json"
