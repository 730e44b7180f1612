"""The conversion of a function: the rules by op, and the builders that rules share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mlir import ir

from xegpu_py.dialects import iree_vector_ext
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.layout import NestedLayout
from xegpu_py.passes.common.builders import Index, add, binary, index, index_type, like, make, multiply
from xegpu_py.passes.common.conversion import Conversion
from xegpu_py.passes.common.kernels import SUBGROUP_SIZE
from xegpu_py.passes.common.layouts.flow import Layouts, analyze
from xegpu_py.passes.common.layouts.relations import relation
from xegpu_py.passes.common.patterns import PatternSet
from xegpu_py.passes.common.values import element_of

Pattern = Callable[["Distributor", ir.Operation], None]
pattern: PatternSet[Pattern] = PatternSet(
    __package__,
    {
        "accesses": "vector",
        "masks": "vector",
        "reductions": "vector",
        "shapes": "vector arith ub iree_vector_ext",
    },
)
"""The distribution rules by op name."""


def distribute(func: ir.Operation, subgroup_size: int) -> None:
    """Distribute a function.

    Raises:
        DiagnosticError: at an op that cannot be distributed.
    """
    layouts = analyze(func)
    if not layouts:
        return
    d = Distributor(func, layouts, subgroup_size)
    d.region(func.regions[0])
    d.finish()
    if func.name == "gpu.func":
        i32 = ir.IntegerType.get_signless(32, func.context)
        func.attributes[SUBGROUP_SIZE] = ir.IntegerAttr.get(i32, subgroup_size)


@pattern("vector.fma", "vector.gather")
def elementwise(d: Distributor, op: ir.Operation) -> None:
    """Apply the same op to parts."""
    if relation(op) is None:
        d.fail("cannot be distributed", "its vectors must have the same shape")
    types = [d.part_type(d.layout(op, r), element_of(r)) if r in d.layouts else r.type for r in op.results]
    d.replace_parts(op, *like(op, types, [d.part(v) for v in op.operands]).results)


@pattern("func.return", "gpu.return")
def leave(d: Distributor, op: ir.Operation) -> None:
    """The results of a function are whole vectors."""
    for i, value in enumerate(list(op.operands)):
        if value in d.layouts:
            op.operands[i] = iree_vector_ext.ToSimdOp(d.part(value), output=value.type).operation.results[0]


class Distributor(Conversion):
    """The conversion of a function: vectors with layouts become a lane's parts.

    Attributes:
        layouts: of the whole vectors.
        subgroup_size: the number of lanes.
        subgroups: the number of subgroups, if the function has it as an attribute.
        first: the first op of the original function.
    """

    patterns = pattern

    def __init__(self, func: ir.Operation, layouts: Layouts, subgroup_size: int) -> None:
        super().__init__()
        self.func = func
        self.layouts = layouts
        self.subgroup_size = subgroup_size
        self.subgroups = self._subgroups()
        self._entry: dict[Any, ir.Value] = {}
        self.first = next(iter(func.regions[0].blocks[0]), None)
        self._fits: set[NestedLayout] = set()

    def convert_types(self, value: ir.Value, init: ir.Value | None = None) -> list[ir.Type] | None:
        return [self.part_type(self.layouts[value], element_of(value))] if value in self.layouts else None

    def get(self, value: ir.Value) -> list[ir.Value]:
        return [self.part(value)]

    def is_legal(self, op: ir.Operation) -> bool:
        for value in op.results:
            if value in self.layouts:
                self._check(op, self.layouts[value])
        return not any(v in self.layouts for v in (*op.operands, *op.results))

    def no_pattern(self, op: ir.Operation) -> None:
        if op.name.startswith(("arith.", "math.")):
            elementwise(self, op)
        else:
            notes = [f"there is no rule for {op.name} on vectors with layouts"]
            if op.name == "vector.outerproduct":
                notes.append("vector-lower-contract lowers it to ops that have one")
            self.fail("cannot be distributed", *notes)

    def _check(self, op: ir.Operation, layout: NestedLayout) -> None:
        """Check that a layout gives each lane and subgroup one part."""
        if layout in self._fits:
            return
        size = self.subgroup_size
        for ids, present in ((layout.subgroups, self.subgroups), (layout.threads, size)):
            if ids.whole:
                i = ids.whole[0]
                message = f"has a layout with {ids.tile[i]} {ids.what} tiles in dimension {i}, but a stride of 0"
                emit_error(op, message, "a distributed vector holds one tile")
            if present is None and ids.period > 1 and self.func.name == "gpu.func":
                message = f"has a layout over {ids.period} subgroups, but the number of subgroups is not known"
                emit_error(op, message, "set known_block_size, the number of work items in a workgroup")
            if present and present % ids.period:
                what = "lanes" if ids.what == "thread" else "subgroups"
                emit_error(op, f"has a layout over {ids.period} {what}, but there are {present}", str(layout))
        self._fits.add(layout)

    def _subgroups(self) -> int | None:
        """The number of subgroups, from the size of the workgroup."""
        if "known_block_size" not in self.func.attributes:
            return None
        total = math.prod(int(n) for n in ir.DenseI32ArrayAttr(self.func.attributes["known_block_size"]))
        if total % self.subgroup_size:
            message = f"workgroup size {total} must be a multiple of the subgroup size {self.subgroup_size}"
            emit_error(self.func, message, "every lane holds a part of each vector")
        return total // self.subgroup_size

    def layout(self, op: ir.Operation, value: ir.Value) -> NestedLayout:
        """The layout of a vector that an op uses or defines.

        Raises:
            DiagnosticError: at the op, if the vector has none.
        """
        found = self.layouts.get(value)
        if found is None:
            message = f"cannot be distributed because the layout of its {value.type} is not known"
            emit_error(op, message, "set the layout with iree_vector_ext.to_layout")
        return found

    def part_type(self, layout: NestedLayout, element: ir.Type) -> ir.Type:
        """The type of a lane's part of a vector."""
        return ir.VectorType.get(layout.distributed_shape, element)

    def part(self, value: ir.Value) -> ir.Value:
        """A lane's part of a vector with a layout; any other value unchanged."""
        if value not in self.layouts:
            return value
        if value not in self.values:
            # The value is an argument, or the result of an op that is not distributed.
            kind = self.part_type(self.layouts[value], element_of(value))
            made = iree_vector_ext.ToSimtOp(value, output=kind).operation.results[0]
            if not isinstance(value.owner, ir.Block):
                return made
            self.define(value, [made])
            made.owner.move_before(self.first)
        return self.values[value][0]

    def replace_parts(self, op: ir.Operation, *parts: ir.Value) -> None:
        """Replace an op's results: vectors with layouts by parts, others by the values themselves."""
        self.replace(op, *([new] if old in self.layouts else new for old, new in zip(op.results, parts, strict=True)))

    def once(self, key: Any, make: Callable[[], ir.Value]) -> ir.Value:
        """A value that is made at the beginning of the function, once for each key."""
        if key not in self._entry:
            with ir.InsertionPoint(self.first), self.func.location:
                self._entry[key] = make()
        return self._entry[key]

    def virtual_id(self, level: str, stride: int, n: int) -> Index:
        """`(id / stride) mod n` of this lane or subgroup."""
        if n == 1:
            return 0

        def built() -> ir.Value:
            name = "gpu.subgroup_id" if level == "subgroup" else "gpu.lane_id"
            found = self.once(name, lambda: make(name, index_type()))
            if stride > 1:
                found = binary("divui", found, stride)
            total = self.subgroup_size if level == "thread" else self.subgroups
            return binary("remui", found, n) if total is None or stride * n < total else found

        return self.once((level, stride, n), built)

    def virtual_ids(self, layout: NestedLayout, dim: int) -> tuple[Index, Index]:
        """The virtual subgroup and thread id in a dimension."""
        return (
            self.virtual_id("subgroup", layout.subgroup_strides[dim], layout.subgroup_tile[dim]),
            self.virtual_id("thread", layout.thread_strides[dim], layout.thread_tile[dim]),
        )

    def base(self, layout: NestedLayout, dim: int) -> Index:
        """The index in a dimension of this lane's first element."""
        subgroup, thread = self.virtual_ids(layout, dim)
        size, step = layout.shape[dim] // layout.subgroup_tile[dim], layout.element_tile[dim]
        if isinstance(subgroup, int) and isinstance(thread, int):
            return 0
        key = ("base", subgroup, thread, size, step)
        return self.once(key, lambda: index(add(multiply(subgroup, size), multiply(thread, step))))
