"""Compile-time evaluation of each lane's numbers: those that follow from `gpu.lane_id` and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from mlir import ir

from xegpu_py.ir.dense import integer_elements
from xegpu_py.passes.common.fragments import Order

_Op = Callable[..., npt.NDArray[Any]]


def _unsigned(op: _Op) -> _Op:
    """Restrict a function to non-negative numbers, for which signed and unsigned arithmetic agree."""

    def checked(a: Order, b: Order) -> npt.NDArray[Any]:
        if (a < 0).any() or (b <= 0).any():
            raise ValueError("a sign or a zero that the arithmetic would have to mind")
        return op(a, b)

    return checked


def _shift(op: _Op) -> _Op:
    def checked(a: Order, b: Order) -> npt.NDArray[Any]:
        if (a < 0).any() or (b < 0).any() or (b >= 31).any():
            raise ValueError("a shift of a sign, or by too much")
        return op(a, b)

    return checked


_BINARY: dict[str, _Op] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.divui": _unsigned(np.floor_divide),
    "arith.remui": _unsigned(np.remainder),
    "arith.divsi": _unsigned(np.floor_divide),
    "arith.remsi": _unsigned(np.remainder),
    "arith.shli": _shift(np.left_shift),
    "arith.shrui": _shift(np.right_shift),
    "arith.shrsi": _shift(np.right_shift),
}
_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
_LIMIT = 1 << 31


class Known:
    """The numbers of integer values by lane, as far as they follow from `gpu.lane_id` and constants.

    Only numbers from 0 to 2^31 - 1 are known, which have the same value in all integer types of at least 32 bits.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._found: dict[ir.Value, Order | None] = {}

    def of(self, value: ir.Value) -> Order | None:
        """int64[lanes], the number of each lane; None if it is not known at compile time."""
        if value not in self._found:
            self._found[value] = self._checked(value)
        return self._found[value]

    def _checked(self, value: ir.Value) -> Order | None:
        width = 64 if isinstance(value.type, ir.IndexType) else 0
        if isinstance(value.type, ir.IntegerType):
            width = ir.IntegerType(value.type).width
        if width < 32 or isinstance(value.owner, ir.Block):
            return None
        try:
            found = self._computed(value.owner)
        except ValueError:
            return None
        if found is None or (found < 0).any() or (found >= _LIMIT).any():
            return None
        return np.broadcast_to(found, self._lanes).astype(np.int64)

    def _computed(self, op: ir.Operation) -> npt.NDArray[Any] | None:
        if op.name == "gpu.lane_id":
            return np.arange(self._lanes)
        if op.name == "arith.constant":
            return np.array(ir.IntegerAttr(op.attributes["value"]).value)
        if op.name == "vector.extract":
            return self._looked_up(op)
        if op.name not in _BINARY and op.name not in _CASTS:
            return None
        given = [self.of(v) for v in op.operands]
        if any(x is None for x in given):
            return None
        return given[0] if op.name in _CASTS else _BINARY[op.name](*given)

    def _looked_up(self, op: ir.Operation) -> npt.NDArray[Any] | None:
        """Numbers extracted from a constant vector."""
        at = positions(op, self)
        table = op.operands[0]
        if at is None or isinstance(table.owner, ir.Block) or table.owner.name != "arith.constant":
            return None
        numbers = np.array(integer_elements(ir.DenseIntElementsAttr(table.owner.attributes["value"])), np.int64)
        shape = tuple(ir.VectorType(table.type).shape)
        return np.asarray(numbers.reshape(shape)[tuple(at)]) if len(at) == len(shape) else None


def positions(op: ir.Operation, known: Known) -> list[Order] | None:
    """For each position of a `vector.extract` or `vector.insert` each lane's number; None if any is unknown."""
    dynamic = iter(list(op.operands)[1 if op.name == "vector.extract" else 2 :])
    found = []
    for n in ir.DenseI64ArrayAttr(op.attributes["static_position"]):
        at = known.of(next(dynamic)) if n == ir.ShapedType.get_dynamic_size() else np.array(n)
        if at is None:
            return None
        found.append(at)
    return found
