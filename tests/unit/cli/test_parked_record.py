from __future__ import annotations

import pytest

from harvest_dagster.outbox.parked import as_text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"plain", "plain"),
        ("é✓".encode(), "é✓"),
        (b"\xff\x00", r"\xff\x00"),
        (b"a\n\x1b[2J", r"a\n\x1b[2J"),
        (b"", ""),
        (None, ""),
    ],
)
def test_as_text(content: bytes | None, text: str) -> None:
    """Bytes are shown as text, without anything that a terminal would act on."""
    assert as_text(content) == text
