"""Uniformity: the values that vary among the lanes of a subgroup, and the numbers that each lane has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from mlir import ir

from xegpu_py.dialects.xegpu.fragments import Order, mapped
from xegpu_py.dialects.xegpu.op_interfaces import BlockLoad
from xegpu_py.ir.bindings import blocks_in
from xegpu_py.ir.builtin import enumerator, integer_elements
from xegpu_py.ir.control_flow import FIXED_OPERANDS, STRUCTURED, forwarded, yielded
from xegpu_py.ir.module import walk
from xegpu_py.ir.operation import implements
from xegpu_py.numerics import integers
from xegpu_py.passes.analysis.ir_queries import SIGNED_CASTS, UNSIGNED_CASTS, constant_of, shape_of

_CASTS = (*SIGNED_CASTS, *UNSIGNED_CASTS)

# Uniformity analysis: the values that vary among the work items of a subgroup.

_VARYING_OPS = frozenset(
    (
        "gpu.thread_id",
        "gpu.global_id",
        "gpu.lane_id",
        "gpu.rotate",
        "memref.atomic_rmw",
        "memref.generic_atomic_rmw",
        "xegpu.lane_shuffle",
    )
)
"""Ops whose results vary even if their operands are uniform."""

_UNIFORM_OPS = frozenset(("gpu.subgroup_broadcast", "gpu.all_reduce"))
"""Ops whose results are uniform even if their operands vary."""


def lane_of_broadcast(shuffle: ir.Operation, lanes: int) -> int | None:
    """The lane whose value all lanes get from a `gpu.shuffle` in a subgroup of so many lanes; None if it is not one."""
    lane, width = (constant_of(v) for v in list(shuffle.operands)[1:])
    broadcasts = enumerator(shuffle.attributes["mode"]) == "idx" and width == lanes and lane is not None
    return lane if broadcasts and lane in range(lanes) else None


class Uniformity:
    """The values of a kernel that vary from lane to lane.

    A value is uniform if it is the same in all work items of a subgroup that reach its definition. It varies if it
    depends on the work item's position in the subgroup, on a block that is distributed by an `sg_map`, or on a varying
    condition.
    """

    def __init__(self, func: ir.Operation, lanes: int) -> None:
        self._lanes = lanes
        self._varying: set[ir.Value] = set()
        ops = walk(func)[1:]
        count = -1
        while len(self._varying) > count:
            count = len(self._varying)
            for op in ops:
                self._visit_op(op)

    def varies(self, value: ir.Value) -> bool:
        """Return whether a value differs from lane to lane."""
        return value in self._varying

    def _any_varies(self, values: Iterable[ir.Value]) -> bool:
        return any(v in self._varying for v in values)

    def _visit_op(self, op: ir.Operation) -> None:
        name = op.name
        if name in STRUCTURED:
            self._control_flow(op)
        elif name in _VARYING_OPS:
            self._varying.update(op.results)
        elif name == "gpu.shuffle":
            if lane_of_broadcast(op, self._lanes) is None:
                self._varying.update(op.results)
        elif name == "gpu.subgroup_reduce":
            if "cluster_size" in op.attributes:
                self._varying.add(op.results[0])
        elif implements(op, BlockLoad):
            if mapped(op):
                self._varying.add(op.results[0])
        elif name not in _UNIFORM_OPS:
            # The results of a `vector.mask` are those of the op inside.
            inside = (v for block in blocks_in(op) for v in yielded(block))
            if self._any_varies(op.operands) or self._any_varies(inside):
                self._varying.update(op.results)

    def diverges(self, op: ir.Operation) -> bool:
        """Return whether work items may take different paths through a structured loop or branch."""
        decides = list(op.operands)[: FIXED_OPERANDS.get(op.name, 1)]
        if op.name == "scf.while":
            decides = yielded(op.regions[0].blocks[0])[:1]
        return self._any_varies(decides)

    def _control_flow(self, op: ir.Operation) -> None:
        divergent = self.diverges(op)
        if divergent and op.name == "scf.for":
            self._varying.add(op.regions[0].blocks[0].arguments[0])
        for uses, values in forwarded(op):
            if divergent or self._any_varies(user.operands[number] for user, number in uses):
                self._varying.update(values)


# Compile-time evaluation of each lane's numbers: those that follow from `gpu.lane_id` and constants.

_SHIFTS: dict[str, integers.Integers] = {"shli": np.left_shift, "shrui": np.right_shift, "shrsi": np.right_shift}

LANE_ARITHMETIC = {
    f"arith.{name}": function for name, function in (integers.SIGNED | integers.UNSIGNED | _SHIFTS).items()
}
"""Functions of lane constants, which are not negative, so that signed and unsigned arithmetic agree."""

_LANE_CONSTANT_LIMIT = 1 << 31


class LaneConstants:
    """The numbers of integer values by lane, as far as they follow from `gpu.lane_id` and constants.

    Only numbers from 0 to 2^31 - 1 are known, which have the same value in all integer types of at least 32 bits.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._numbers: dict[ir.Value, Order | None] = {}

    def of(self, value: ir.Value) -> Order | None:
        """int64[lanes], the number of each lane; None if it is not known at compile time."""
        if value not in self._numbers:
            self._numbers[value] = self._checked(value)
        return self._numbers[value]

    def _checked(self, value: ir.Value) -> Order | None:
        width = 64 if isinstance(value.type, ir.IndexType) else 0
        if isinstance(value.type, ir.IntegerType):
            width = ir.IntegerType(value.type).width
        if width < 32 or isinstance(value.owner, ir.Block):
            return None
        numbers = self._computed(value.owner)
        if numbers is None or (numbers < 0).any() or (numbers >= _LANE_CONSTANT_LIMIT).any():
            return None
        return np.broadcast_to(numbers, self._lanes).astype(np.int64)

    def _computed(self, op: ir.Operation) -> npt.NDArray[Any] | None:
        if op.name == "gpu.lane_id":
            return np.arange(self._lanes)
        if op.name == "arith.constant":
            return np.array(ir.IntegerAttr(op.attributes["value"]).value)
        if op.name == "vector.extract":
            return self._table_lookup(op)
        if op.name not in LANE_ARITHMETIC and op.name not in _CASTS:
            return None
        operands = [numbers for v in op.operands if (numbers := self.of(v)) is not None]
        if len(operands) < len(op.operands):
            return None
        if op.name.removeprefix("arith.") in _SHIFTS and (operands[1] >= 31).any():
            return None
        return operands[0] if op.name in _CASTS else LANE_ARITHMETIC[op.name](*operands)

    def _table_lookup(self, op: ir.Operation) -> npt.NDArray[Any] | None:
        """Numbers extracted from a constant vector."""
        position = lane_positions(op, self)
        table = op.operands[0]
        if position is None or isinstance(table.owner, ir.Block) or table.owner.name != "arith.constant":
            return None
        elements, shape = table.owner.attributes["value"], shape_of(table)
        if not isinstance(elements, ir.DenseIntElementsAttr) or len(position) != len(shape):
            return None
        # Positions outside of the vector give poison.
        linear = np.ravel_multi_index(np.broadcast_arrays(*position), shape, mode="clip")
        return np.array(integer_elements(elements), np.int64)[linear]


def lane_positions(op: ir.Operation, lanes: LaneConstants) -> list[Order] | None:
    """int64[lanes] for each position of a `vector.extract` or `vector.insert`; None if a position is unknown."""
    dynamic = iter(list(op.operands)[1 if op.name == "vector.extract" else 2 :])
    result = []
    for n in ir.DenseI64ArrayAttr(op.attributes["static_position"]):
        numbers = lanes.of(next(dynamic)) if n == ir.ShapedType.get_dynamic_size() else np.array(n)
        if numbers is None:
            return None
        result.append(numbers)
    return result
