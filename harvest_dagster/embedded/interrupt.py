"""Ctrl-C: put it off until two steps are both done, and have other signals do what it does."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put Ctrl-C off until the block ends; in another thread than the main one, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    for number in came[:1]:
        signal.raise_signal(number)


@contextmanager
def politely_ended() -> Iterator[None]:
    """Have SIGTERM, and a terminal that is closed, interrupt as Ctrl-C does.

    SIGINT itself is handled too, because the background jobs of a script begin with it ignored.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
