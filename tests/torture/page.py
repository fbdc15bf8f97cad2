"""Put the accounts of several runs into docs/explanation/proof.md, and keep them beside it.

    python -m tests.torture.page FILE...

Each file is what `python -m tests.torture --json FILE` wrote.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import Any

from tests.support.paths import ROOT
from tests.torture.table import Told, faults, runs, total

_FOLDER = ROOT / "docs" / "explanation"
PAGE, KEPT = _FOLDER / "proof.md", _FOLDER / "proof.json"
_WIDTH = 104
_BEGIN, _END = "<!-- from proof.json -->", "<!-- until here -->"
_FLOWS = """
How long until every partition delivered again what was stashed after a fault had begun, its own
length and that of all others at the same time included. Faults come every few seconds, so that few
strike alone: the last columns tell of how many that is known, and what one takes by itself.
"""


def text(kept: dict[str, Any], page: str) -> str:
    """Write the page anew, with what was kept."""
    told = "\n".join([_BEGIN, "", *_told(kept), "", _END])
    return re.sub(f"{_BEGIN}.*{_END}", lambda _: told, page, flags=re.DOTALL)


def _told(kept: dict[str, Any]) -> Iterator[str]:
    accounts: list[Told] = kept["accounts"]
    ways = ", ".join(sorted({f"`{told['delivery']}`" for told in accounts}))
    said = (
        f"{len(accounts)} seeds, {total(accounts, 'minutes')} minutes, {ways}, on {kept['on']}:"
        f" {total(accounts, 'messages')} messages and {total(accounts, 'kill -9')} kill -9. For a"
        f" reader of what is committed {total(accounts, 'lost')} were lost,"
        f" {total(accounts, 'doubled')} doubled and {total(accounts, 'out of order')} out of order;"
        f" {total(accounts, 'broken')} of the promises above were broken, all told."
    )
    yield fill(said, _WIDTH)
    yield ""
    yield from runs(accounts)
    yield _FLOWS
    yield from faults(accounts)


def main(files: Sequence[str]) -> None:
    """Keep these accounts, and write the page."""
    accounts = [json.loads(Path(file).read_text(encoding="utf-8")) for file in files]
    accounts.sort(key=lambda told: told["seed"])
    kept = {"on": datetime.now(UTC).date().isoformat(), "accounts": accounts}
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(text(kept, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
