"""A union-find: sets of items that are joined as they are found to belong together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class UnionFind(Generic[T]):
    """Disjoint sets of items; an item that was never joined is a set of its own."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def find(self, item: T) -> T:
        """The representative of an item's set."""
        root = item
        while (above := self._parent.get(root)) is not None:
            root = above
        while item != root:
            self._parent[item], item = root, self._parent[item]
        return root

    def join(self, items: Iterable[T]) -> None:
        """Make the sets of these items one, whose representative is the first one's."""
        first, *others = items
        root = self.find(first)
        for item in others:
            other = self.find(item)
            if other != root:
                self._parent[other] = root
