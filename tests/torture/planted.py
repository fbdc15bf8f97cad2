"""Shows that the bench can fail: each planted bug must be found, and for the right reason.

python -m tests.torture.planted [BUG ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.torture import plan as plans
from tests.torture.__main__ import run, say
from tests.torture.account import Account

_SECONDS = 45.0
_HOME = Path(".harvest") / "torture-planted"
SIGNS = {
    "fence-off": ("doubled", "out of order", "writes of a deposed leader", "of an old epoch"),
    "purge-early": ("lost",),
    "no-gap-watch": ("out of order", "lost"),
}
"""What of the account must show each bug; one of them is enough."""


def found(bug: str, account: Account) -> list[str]:
    """Tell which of the signs of a bug an account shows."""
    return [what for what in account.broken if what.startswith(SIGNS[bug])]


def main(bugs: list[str]) -> int:
    """Plant each bug, and tell whether all were found."""
    missed = []
    for bug in bugs:
        account = run(plans.make(1, _SECONDS, "exactly_once", bug), _HOME)
        signs = found(bug, account)
        say(f"{bug}: {'found: ' + ', '.join(signs) if signs else 'NOT FOUND'}")
        if not signs:
            missed.append(bug)
    return len(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or sorted(SIGNS)))
