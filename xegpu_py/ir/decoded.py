"""Memoised decoding of MLIR's types and attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Decoded(dict[Any, T], Generic[T]):
    """Results of a function of types or attributes, memoised by the object: `decoded[type]`.

    Looking up an object takes a fraction of printing it. Results are kept for one context at a time, since an object
    keeps its context alive.
    """

    def __init__(self, decode: Callable[[Any], T]) -> None:
        """Start without memoised results.

        Args:
            decode: what to do with an `ir.Type` or `ir.Attribute`. What it raises is not kept.
        """
        super().__init__()
        self._decode = decode
        self._context: Any = None

    def __missing__(self, key: Any) -> T:
        found = self._decode(key)
        if key.context != self._context:
            self.clear()
            self._context = key.context
        self[key] = found
        return found
