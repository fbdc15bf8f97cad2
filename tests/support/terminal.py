"""What a program takes for a terminal."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """Remembers what is written to it; give it to `redirect_stderr`."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True
