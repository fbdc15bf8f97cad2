from __future__ import annotations

import logging

from harvest_dagster.kafka.client_logs import OnceInAWhile


def _line(text: str) -> logging.LogRecord:
    return logging.LogRecord("kafka", logging.ERROR, "", 0, text, None, None)


def test_a_line_that_repeats_passes_once() -> None:
    """Of lines that differ in figures alone, the first is logged; another trouble is not hidden."""
    quiet = OnceInAWhile()
    assert quiet.filter(_line("127.0.0.1:9092: refused (after 0ms)"))
    assert not quiet.filter(_line("127.0.0.1:9092: refused (after 4ms)"))
    assert not quiet.filter(
        _line("127.0.0.1:9092: refused (after 4ms, 1 identical error(s) suppressed)")
    )
    assert quiet.filter(_line("127.0.0.1:9092: authentication failed"))
