"""Ctrl-C: put off between two steps that belong together, and heard in whatever way we end."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C take effect at the end of the block only; it concerns the main thread alone."""
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
    """Let SIGTERM and a closed terminal interrupt as Ctrl-C does.

    Ctrl-C counts also where it is ignored: in the background jobs of a script.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
