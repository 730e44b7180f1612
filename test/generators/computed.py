"""Programs whose values numpy computes as well, by the functions of the op table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from . import ops
from .body import Body, Value
from .ops import Array, Conversion, Op

TYPES: dict[str, Any] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
"""Elements that numpy has."""


class Computed(Body, ABC):
    """A body whose values numpy computes."""

    elements: tuple[str, ...] = tuple(TYPES)

    @abstractmethod
    def computed(self, value: Value, function: Callable[..., Any], *operands: Value) -> Value:
        """A value that is written, as a function of the arrays of its operands."""

    def allows(self, op: Op, x: Value) -> bool:
        """Ops that have a function."""
        return super().allows(op, x) and op.compute is not None

    def apply(self, op: Op, operands: dict[str, Value]) -> Value:
        """An op of the table."""
        compute = op.compute
        assert compute
        value = super().apply(op, operands)
        if not op.second:
            return self.computed(value, compute, *operands.values())
        first = self.computed(self.values.pop(), lambda *data: compute(*data)[0], *operands.values())
        self.keep(first)
        return self.computed(value, lambda *data: compute(*data)[1], *operands.values())

    def targets(self, element: str) -> list[str]:
        """Elements that numpy has."""
        return [e for e in super().targets(element) if e in self.elements]

    def conversion(self, conversion: Conversion, x: Value, to: str, exact: int | None) -> Value:
        """A conversion."""
        value = super().conversion(conversion, x, to, exact)
        return self.computed(value, lambda a: conversion.compute(a, TYPES[to]), x)

    def selected(self, mask: Value, x: Value, y: Value) -> Value:
        """A choice, element by element."""
        return self.computed(super().selected(mask, x, y), np.where, mask, x, y)

    def splat(self, number: int | float | str, shape: tuple[int, ...], element: str) -> Value:
        """A constant whose elements are all the same."""
        value, dtype = super().splat(number, shape, element), TYPES[element]
        if isinstance(number, str) and number.startswith("0x"):
            data: Array = np.array(int(number, 16), f"u{np.dtype(dtype).itemsize}").view(dtype)
        else:
            data = np.array(number == "true" or number, dtype) if isinstance(number, str) else _wrapped(number, dtype)
        return self.computed(value, lambda: data)


def _wrapped(number: float, dtype: Any) -> Array:
    if dtype is np.bool_:
        return np.array(bool(int(number) & 1))
    return np.array(number, dtype) if np.dtype(dtype).kind == "f" else ops.wrapped(np.array(number, object), dtype)
