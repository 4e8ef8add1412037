"""The clock that deadlines count on."""

from __future__ import annotations

import sys
import time

if sys.platform == "win32":
    now = time.monotonic
else:
    # Goes on while the machine is suspended. On macOS, CLOCK_MONOTONIC does that.
    _CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def now() -> float:
        """Seconds. Never steps back, and counts the time for which the machine is suspended."""
        return time.clock_gettime(_CLOCK)
