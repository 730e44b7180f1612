"""Timing of functions."""

import statistics
import time
from collections.abc import Callable


def median_seconds(run: Callable[[], object], times: int = 5) -> float:
    """The median time of a call in seconds, after one that is not counted."""
    run()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)
