"""Ctrl-C that is put off."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from harvest_dagster.embedded.interrupt import uninterrupted


@pytest.fixture(autouse=True)
def handled_as_ever() -> Iterator[None]:
    """Have Python's own handler here, where a session of Spark may have put one that it leaves."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_takes_effect_when_the_block_is_done() -> None:
    """The block is finished first; then the interrupt is what it always was."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(done)
    assert done == ["the rest"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def interrupted(done: list[str]) -> None:
    """Be interrupted in the middle."""
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
        done.append("the rest")
