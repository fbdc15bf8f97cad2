"""The page of the proof says what the accounts beside it say."""

from __future__ import annotations

import json

from tests.torture import page


def test_the_page_is_of_the_accounts_beside_it() -> None:
    """Nobody wrote a figure by hand."""
    written = page.PAGE.read_text()
    assert written == page.text(json.loads(page.KEPT.read_text()), written)
