"""The state that the rules of ops share while a kernel in `xevm` and `llvm` is rebuilt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir

from xegpu_py.ir.builtin import bit_width
from xegpu_py.passes.common.builders import constant, index_type, integer_type, make
from xegpu_py.passes.common.values import constant_of, element_of, shape_of
from xegpu_py.upstream.rebuilding import parts, refuse
from xegpu_py.upstream.threads import of_first_lane

PRIVATE, GLOBAL, CONSTANT, SHARED, GENERIC = range(5)
"""Address spaces of `llvm.ptr`, as OpenCL and SPIR-V number them."""

Rule = Callable[["KernelImport", ir.Operation], Sequence[ir.Value]]
_UNUSED = (
    "vector.insert", "vector.extract", "memref.extract_strided_metadata", "memref.extract_aligned_pointer_as_index",
)  # fmt: skip
"""Ops that go where nothing uses them, as those of arith do: what blocks took of payloads was taken from elsewhere."""

RULES: dict[str, Rule] = {}
"""By name of an op what rebuilds it, and gives the values of its results. Ops of other dialects stay."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of ops of these names."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def space_of(kind: ir.Type) -> int | None:
    """The address space of a pointer type; None for other types."""
    text = str(kind)
    if not text.startswith("!llvm.ptr"):
        return None
    return int(text[len("!llvm.ptr<") : -1]) if text.endswith(">") else PRIVATE


class KernelImport:
    """Rebuilds one kernel, in place. A pointer becomes the address, i64; in shared local memory the offset there.

    Attributes:
        func: the kernel, a `gpu.func`.
        spaces: the address space of each operand of the op that is rebuilt; None for operands that are not pointers.
        private: the content of private memory by its address; None before it is written.
        aggregates: the parts of each value of an LLVM struct or array.
    """

    def __init__(self, func: ir.Operation) -> None:
        self.func = func
        self.spaces: list[int | None] = []
        self.private: dict[ir.Value, ir.Value | None] = {}
        self.aggregates: dict[ir.Value, Any] = {}
        self._memories: dict[tuple[str, int], ir.Value] = {}
        self._shared: dict[str, ir.Value] = {}

    def run(self) -> None:
        """Rebuild all ops.

        Raises:
            DiagnosticError: at an op that cannot be rebuilt.
        """
        ops = parts(self.func)
        spaces = [[space_of(v.type) for v in op.operands] for op in ops]
        address = integer_type(64)
        for op in (self.func, *ops):
            for argument in (a for region in op.regions for block in region for a in block.arguments):
                if space_of(argument.type) is not None:
                    argument.set_type(address)
        for op, self.spaces in zip(ops, spaces):
            if op.name in RULES:
                with ir.InsertionPoint(op), op.location:
                    made = RULES[op.name](self, op)
                for old, new in zip(op.results, made, strict=True):
                    if old not in self.aggregates:
                        old.replace_all_uses_with(new)
                continue
            if op.name.startswith(("llvm.", "xevm.")):
                refuse(op, "no op of vector or XeGPU does the same")
            for result in op.results:
                if space_of(result.type) is not None:
                    result.set_type(address)
        for op in reversed([o for o in ops if o.name in RULES]):
            op.erase()
        for op in reversed(parts(self.func)):
            is_used = any(next(iter(r.uses), None) for r in op.results)
            if op.results and not is_used and (op.name in _UNUSED or op.name.startswith(("arith.", "vector.b"))):
                op.erase()

    # Helpers for the rules.

    def at_entry(self) -> ir.InsertionPoint:
        """The kernel's beginning."""
        return ir.InsertionPoint.at_block_begin(self.func.regions[0].blocks[0])

    def memory(self, element: ir.Type, space: int) -> ir.Value:
        """All of an address space as a memref of these elements, whose index is the address by their size."""
        key = (str(element), space)
        if key not in self._memories:
            suffix = ", 3" if space == SHARED else ""
            with self.at_entry(), self.func.location:
                kind = ir.Type.parse(f"memref<?x{element}{suffix}>")
                zero = constant(integer_type(64), 0)
                self._memories[key] = make("builtin.unrealized_conversion_cast", kind, zero)
        return self._memories[key]

    def allocate_shared(self, name: str, count: int, element: ir.Type) -> ir.Value:
        """The address of a buffer in shared local memory, the same one for the same name."""
        if name not in self._shared:
            with self.at_entry(), self.func.location:
                kind = ir.Type.parse(f"memref<{count * bit_width(str(element)) // 8}xi8, 3>")
                made = make("memref.alloca", kind, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))
                place = make("memref.extract_aligned_pointer_as_index", index_type(), made)
                self._shared[name] = make("arith.index_cast", integer_type(64), place)
        return self._shared[name]


def first(value: ir.Value) -> ir.Value:
    """The first lane's value, which messages of the whole subgroup take."""
    return value if constant_of(value) is not None else of_first_lane(value)


def as_index(value: ir.Value) -> ir.Value:
    """An integer as an index, by its sign."""
    if isinstance(value.type, ir.IndexType):
        return value
    known = constant_of(value)
    return constant(index_type(), known) if known is not None else make("arith.index_cast", index_type(), value)


def resized(value: ir.Value, width: int, signed: bool = True) -> ir.Value:
    """An integer with another number of bits."""
    own = ir.IntegerType(value.type).width
    if own == width:
        return value
    name = "arith.trunci" if own > width else "arith.extsi" if signed else "arith.extui"
    return make(name, integer_type(width), value)


def zero_of(kind: ir.Type) -> ir.Value:
    """Zero of a type of numbers or vectors."""
    return constant(kind, 0)


def bits_of(value: ir.Value) -> int:
    """The bits of a number or vector."""
    return math.prod(shape_of(value)) * bit_width(str(element_of(value)))


def as_bits(value: ir.Value, count: int, element: ir.Type) -> ir.Value:
    """The bits of a number or vector of one dimension as a vector of `count` elements."""
    own = element_of(value)
    if not shape_of(value):
        value = make("vector.broadcast", ir.VectorType.get([1], own), value)
    if own == element:
        return value
    return make("vector.bitcast", ir.VectorType.get([count], element), value)


def bitcast(value: ir.Value, kind: ir.Type) -> ir.Value:
    """The bits of a number or vector as another type."""
    if value.type == kind:
        return value
    shape, element = shape_of(kind), element_of(kind)
    if not shape and not shape_of(value):
        return make("arith.bitcast", kind, value)
    made = as_bits(value, shape[0] if shape else 1, element)
    return made if shape else make("vector.extract", kind, made, static_position=ir.DenseI64ArrayAttr.get([0]))
