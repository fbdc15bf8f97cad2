"""Ctrl-C before a command runs and after it: there is nothing to clean up, so the process ends.

Loading what the commands need takes most of a second; a KeyboardInterrupt in the midst of an import
would be printed with a stack.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""The exit code, as a shell's."""


def ends() -> None:
    """Have Ctrl-C say so and end this process; where it is ignored, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


@contextmanager
def raised() -> Iterator[None]:
    """Have Ctrl-C raise a KeyboardInterrupt in a block, where it would end this process."""
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        ends()


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
