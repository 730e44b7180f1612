"""A union-find data structure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class UnionFind(Generic[T]):
    """Disjoint sets of items; an item that was never joined is in a set of its own."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def find(self, item: T) -> T:
        """The representative of an item's set."""
        parent = self._parent
        root, hops = item, 0
        while (above := parent.get(root)) is not None:
            root, hops = above, hops + 1
        # Items whose parent is not the representative get it as their parent.
        for _ in range(hops - 1):
            parent[item], item = root, parent[item]
        return root

    def join(self, items: Iterable[T]) -> None:
        """Join the sets of these items; the representative is that of the first item."""
        first, *others = items
        root = self.find(first)
        for item in others:
            other = self.find(item)
            if other != root:
                self._parent[other] = root
