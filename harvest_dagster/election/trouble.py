"""What goes wrong for a while: warned of when it begins or changes, and told when it is over."""

from __future__ import annotations

import logging

_LOGGER = logging.getLogger("harvest_dagster.election")


class Trouble:
    """The troubles of one candidate, by what is troubled; its thread alone reports."""

    def __init__(self) -> None:
        self._current: dict[str, str] = {}

    @property
    def said(self) -> list[str]:
        """What is wrong just now; any thread may ask."""
        return [*self._current.values()]

    def report(self, what: str, trouble: str) -> None:
        """Warn, unless that was the last thing said."""
        if self._current.get(what) != trouble:
            self._current[what] = trouble
            _LOGGER.warning(trouble)

    def over(self, *whats: str) -> None:
        """Log that a trouble is over, if there was one."""
        for what in whats:
            if self._current.pop(what, None) is not None:
                _LOGGER.info("%s: all is well again", what)
