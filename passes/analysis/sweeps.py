"""A worklist for analyses that visit ops in the order of the code and against it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Sweeps:
    """A worklist of numbers, processed in sweeps in ascending or descending order.

    A number that is added ahead of the sweep's position is processed in this sweep, any other one in the next. The
    result is that of sweeps over all numbers, but only the numbers on the list are visited.
    """

    def __init__(self, count: int, *, backward: bool = False) -> None:
        self._sign = -1 if backward else 1
        self._next = {self._sign * i for i in range(count)}
        self._heap: list[int] = []
        self._ahead: set[int] = set()
        self._at: int | None = None

    def add(self, number: int) -> None:
        """Add a number."""
        key = self._sign * number
        if self._at is None or key <= self._at:
            self._next.add(key)
        elif key not in self._ahead:
            self._ahead.add(key)
            heapq.heappush(self._heap, key)

    def sweep(self) -> Iterator[int]:
        """The numbers of one sweep."""
        self._heap, self._ahead, self._next = sorted(self._next), self._next, set()
        while self._heap:
            self._at = heapq.heappop(self._heap)
            self._ahead.discard(self._at)
            yield self._sign * self._at
        self._at = None
