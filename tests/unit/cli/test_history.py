from __future__ import annotations

from click.testing import CliRunner

from harvest_dagster.cli import main
from harvest_dagster.harvest.leader_events import KINDS


def test_a_kind_that_is_none() -> None:
    """A kind that nothing is written down under is refused, and all that there are are named."""
    result = CliRunner().invoke(main, ["history", "--kind", "fenecd"])
    assert result.exit_code == 2
    assert all(kind in result.output for kind in KINDS)
