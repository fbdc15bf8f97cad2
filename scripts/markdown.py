"""Tables and SQL as Markdown, for the pages that are made from the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

_CODE = re.compile(r"`[^`]*`|<")


def sql(text: str) -> str:
    """Return SQL as a block; not as one of `sql`, since tests run those."""
    return f"```postgresql\n{text.strip()}\n```"


def grid(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(_cell(str(cell or '')) for cell in row)} |"


def _cell(text: str) -> str:
    """Return Markdown that shows the text in a cell; within `code` only the bar is special."""
    shown = _CODE.sub(lambda found: "&lt;" if found[0] == "<" else found[0], text)
    return shown.replace("|", "\\|").replace("\n", " ")
