"""What a process that harvests, and does nothing else, tells Python's garbage collector.

Records in flight are thousands of tuples, which look to the collector like a heap that grows: again
and again it would go through all that the process has imported, for a tenth of a second or more,
and find nothing. Nothing of the stages makes cycles that matter.
"""

from __future__ import annotations

import gc

_YOUNG = 50_000


def settle_heap() -> None:
    """Leave alone what is loaded by now, and look through new objects less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG)
