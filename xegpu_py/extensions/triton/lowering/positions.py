"""Integers of TTIR that do not overflow: positions, which become values of type `index`.

TTIR's i32 wraps around, and the passes know indices best: of type `index`, which does not. An integer that offsets of
pointers, masks or bounds of loops are computed of becomes an `index` if its range is known from the arguments and the
grid of the launch. The condition is an expression, which each launch evaluates. A launch that may overflow
runs the exact version of the kernel, in which no integer is an `index`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from mlir import ir as mlir
from msgspec import Struct

from xegpu_py.extensions.triton.lowering.types import integer_bits, number_of
from xegpu_py.ir.control_flow import yielded
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.integer_analysis import type_range
from xegpu_py.passes.analysis.ir_queries import block_of, defining_op

Interval = tuple[int, int]

Node = tuple[Any, ...]
"""An op and its operands, which are numbers of earlier nodes:

    ("number", low, high), ("argument", number of the argument, bits), ("program", axis), ("programs", axis)
    ("add" | "sub" | "mul" | "div" | "rem" | "min" | "max" | "join", a, b)
    ("counter", lower, upper, step)
    ("carried", first, by, lower, upper, step, 1 if the last iteration's is included, else 0)
"""

GUESS = {"argument": (0, 1 << 12), "program": (0, 1 << 6), "programs": (1, 1 << 6)}
"""Ranges of usual launches: what overflows with them, such as a hash, is no position. The number of a program, times
a block of 1,024 elements and two arguments, such as a length and a stride, is one."""

MOST_PROGRAMS = (1 << 31) - 1


class Assumptions(Struct, frozen=True):
    """Assumptions of a kernel on its launches: that integers fit.

    Attributes:
        nodes: expressions of arguments and the grid.
        checks: the numbers of nodes that must fit a width, and the widths in bits.
    """

    nodes: tuple[Node, ...] = ()
    checks: tuple[tuple[int, int], ...] = ()

    def hold(self, arguments: Sequence[Any], grid: Sequence[int]) -> bool:
        """Whether all fit in a launch."""
        if not self.checks:
            return True
        integers = {i: int(a) for i, a in enumerate(arguments) if isinstance(a, (int, np.integer))}
        ranges = evaluated(self.nodes, integers, grid)
        for number, bits in self.checks:
            (low, high), (least, most) = ranges[number], type_range(bits)
            if low < least or high > most:
                return False
        return True

    def encode(self) -> bytes:
        """The assumptions as bytes."""
        return msgspec.msgpack.encode((self.nodes, self.checks))

    @classmethod
    def decode(cls, data: bytes) -> Assumptions:
        """The assumptions of which `encode` made bytes."""
        nodes, checks = msgspec.msgpack.decode(data)
        return cls(tuple(map(tuple, nodes)), tuple(map(tuple, checks)))


def evaluated(
    nodes: Sequence[Node], arguments: Mapping[int, int] | None = None, grid: Sequence[int] | None = None
) -> list[Interval]:
    """The range of each node; without arguments and grid for all launches."""
    intervals: list[Interval] = []
    for node in nodes:
        intervals.append(range_of(node, intervals, arguments, grid))
    return intervals


def range_of(
    node: Node,
    intervals: Sequence[Interval],
    arguments: Mapping[int, int] | None,
    grid: Sequence[int] | None,
    guess: bool = False,
) -> Interval:
    """The range of a node, from those of earlier nodes."""
    kind, *of = node
    if kind == "number":
        return of[0], of[1]
    if guess and kind in GUESS:
        return GUESS[kind]
    if kind == "argument":
        if arguments is None or of[0] not in arguments:
            return type_range(of[1])
        return arguments[of[0]], arguments[of[0]]
    if kind == "programs":
        return (1, MOST_PROGRAMS) if grid is None else (grid[of[0]], grid[of[0]])
    if kind == "program":
        return (0, MOST_PROGRAMS - 1) if grid is None else (0, grid[of[0]] - 1)
    if kind in _BINARY:
        return _BINARY[kind](intervals[of[0]], intervals[of[1]])
    if kind == "counter":
        lower, upper, step = (intervals[n] for n in of)
        return min(lower[0], upper[0]), max(lower[1], upper[1] - 1)
    assert kind == "carried"
    first, by, lower, upper, step = (intervals[n] for n in of[:5])
    count = max(0, -(-(upper[1] - lower[0]) // max(step[0], 1)))
    moves = _product((0, max(count - 1 + of[5], 0)), by)
    return first[0] + min(0, moves[0]), first[1] + max(0, moves[1])


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        most = max(abs(a[0]), abs(a[1]))
        return (-most if a[0] < 0 or b[0] < 0 else 0), most
    corners = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x in a for y in b]
    return min(corners), max(corners)


def _remainder(a: Interval, b: Interval) -> Interval:
    most = max(max(abs(b[0]), abs(b[1])) - 1, 0)
    return max(a[0], -most) if a[0] < 0 else 0, min(a[1], most) if a[1] > 0 else 0


_BINARY: dict[str, Callable[[Interval, Interval], Interval]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "div": _quotient,
    "rem": _remainder,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "join": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
}

_OPS = {
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.divsi": "div", "arith.remsi": "rem",
    "arith.minsi": "min", "arith.maxsi": "max",
}  # fmt: skip

_VIEWS = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.unsplat", "arith.extsi")
"""Ops whose elements are those of their operand."""

_COMPARED = range(6)
"""The predicates of `arith.cmpi` that take its operands as signed: eq, ne, slt, sle, sgt, sge."""


def can_be_position(mlir_type: mlir.Type) -> bool:
    """Whether integers of a type, or of its elements, can be positions: of 32 and of 64 bits."""
    return integer_bits(mlir_type) in (32, 64)


def is_signed_comparison(op: mlir.Operation) -> bool:
    """Whether an op compares signed integers of more than one bit."""
    return (
        op.name == "arith.cmpi"
        and mlir.IntegerAttr(op.attributes["predicate"]).value in _COMPARED
        and integer_bits(op.operands[0].type) > 1
    )


class Positions:
    """The positions of a kernel.

    Attributes:
        assumptions: what their ranges assume.
    """

    def __init__(self, func: mlir.Operation, arguments: Mapping[mlir.Value, int], exact: bool = False) -> None:
        """Find the positions.

        Args:
            func: the kernel.
            arguments: for the block arguments of the kernel that are integers, their numbers among those of a launch.
            exact: whether there are none.
        """
        self._arguments = arguments
        self._nodes: list[Node] = []
        self._numbers: dict[Node, int] = {}
        self._always: list[Interval] = []
        self._usual: list[Interval] = []
        self._found: dict[mlir.Value, int | None] = {}
        self._checks: dict[tuple[int, int], None] = {}
        self._wanted: set[mlir.Value] = set()
        if not exact:
            self._want(func)
            for value in list(self._wanted):
                self._node(value)
        self._positions = {v for v in self._wanted if self._found.get(v) is not None}

    @property
    def assumptions(self) -> Assumptions:
        """The assumptions of the ranges on a launch."""
        return Assumptions(tuple(self._nodes), tuple(self._checks))

    def __contains__(self, value: mlir.Value) -> bool:
        return value in self._positions

    # Demand: the integers of which positions in memory, masks and bounds are computed.

    def _want(self, func: mlir.Operation) -> None:
        pending: list[mlir.Value] = []
        for op in walk(func)[1:]:
            if op.name == "tt.addptr":
                pending.append(op.operands[1])
            elif is_signed_comparison(op):
                pending += list(op.operands)
            elif op.name == "scf.for":
                pending += list(op.operands)[:3]
            elif op.name.startswith("tt.descriptor_") or op.name == "tt.make_tensor_descriptor":
                pending += list(op.operands)
        while pending:
            value = pending.pop()
            if value in self._wanted or not can_be_position(value.type):
                continue
            self._wanted.add(value)
            pending += self._computed_of(value)

    def _computed_of(self, value: mlir.Value) -> Iterable[mlir.Value]:
        """The integers of which a value is computed."""
        op = defining_op(value)
        if op is None:
            loop, index = value.owner.owner.operation, mlir.BlockArgument(value).arg_number - 1
            if loop.name != "scf.for" or index < 0:
                return ()
            return loop.operands[3 + index], yielded(value.owner)[index], loop.results[index]
        if op.name == "scf.for":
            index = list(op.results).index(value)
            body = op.regions[0].blocks[0]
            return op.operands[3 + index], yielded(body)[index], body.arguments[1 + index]
        if op.name == "scf.if":
            index = list(op.results).index(value)
            return [yielded(region.blocks[0])[index] for region in op.regions]
        if op.name == "arith.select":
            return list(op.operands)[1:]
        return list(op.operands) if op.name in _OPS or op.name in _VIEWS or op.name == "arith.trunci" else ()

    # Ranges.

    def _add(self, *node: Any) -> int:
        number = self._numbers.get(node)
        if number is None:
            number = self._numbers[node] = len(self._nodes)
            self._nodes.append(node)
            self._always.append(range_of(node, self._always, None, None))
            self._usual.append(range_of(node, self._usual, None, None, guess=True))
        return number

    def _node(self, value: mlir.Value) -> int | None:
        """The node of an integer; None if its range is not known, or is not expected to fit."""
        if value in self._found:
            return self._found[value]
        # A value that depends on itself is known only if `_carried` finds it.
        self._found[value] = None
        self._found[value] = self._fitting(self._made(value), integer_bits(value.type))
        return self._found[value]

    def _fitting(self, number: int | None, bits: int) -> int | None:
        """A node that fits a width: always, or as a launch checks."""
        if number is None:
            return None
        least, most = type_range(bits)
        low, high = self._always[number]
        if least <= low and high <= most:
            return number
        low, high = self._usual[number]
        if low < least or high > most:
            return None
        self._checks[number, bits] = None
        return number

    def _made(self, value: mlir.Value) -> int | None:
        if not can_be_position(value.type):
            return None
        op = defining_op(value)
        if op is None:
            return self._block_argument(value)
        name = op.name
        if name == "arith.constant":
            number = number_of(op)
            return None if number is None else self._add("number", number, number)
        if name == "tt.make_range":
            return self._add("number", op.opview.start, op.opview.end - 1)
        if name == "tt.get_program_id":
            return self._add("program", int(op.opview.axis))
        if name == "tt.get_num_programs":
            return self._add("programs", int(op.opview.axis))
        if name in _VIEWS or name == "arith.trunci":
            return self._node(op.operands[0])
        if name in _OPS:
            return self._binary(_OPS[name], *op.operands)
        if name == "arith.select":
            return self._binary("join", *list(op.operands)[1:])
        if name == "scf.if":
            index = list(op.results).index(value)
            return self._binary("join", *(yielded(region.blocks[0])[index] for region in op.regions))
        if name == "scf.for":
            return self._carried(op, list(op.results).index(value), 1)
        return None

    def _binary(self, kind: str, a: mlir.Value, b: mlir.Value) -> int | None:
        left, right = self._node(a), self._node(b)
        return None if left is None or right is None else self._add(kind, left, right)

    def _block_argument(self, value: mlir.Value) -> int | None:
        number = self._arguments.get(value)
        if number is not None:
            return self._add("argument", number, integer_bits(value.type))
        loop, index = value.owner.owner.operation, mlir.BlockArgument(value).arg_number
        if loop.name != "scf.for" or "unsignedCmp" in loop.attributes:
            return None
        if index:
            return self._carried(loop, index - 1, 0)
        bounds = [self._node(v) for v in list(loop.operands)[:3]]
        return None if None in bounds else self._add("counter", *bounds)

    def _carried(self, loop: mlir.Operation, index: int, last: int) -> int | None:
        """The node of what a loop carries, if each iteration adds the same number."""
        body = loop.regions[0].blocks[0]
        argument, after = body.arguments[1 + index], yielded(body)[index]
        first = self._node(loop.operands[3 + index])
        if first is None or after == argument:
            return first
        step_op = defining_op(after)
        if step_op is None or step_op.name not in ("arith.addi", "arith.subi"):
            return None
        operands = list(step_op.operands)
        if argument not in operands or (step_op.name == "arith.subi" and operands[0] != argument):
            return None
        other = operands[1] if operands[0] == argument else operands[0]
        by = self._node(other) if _is_outside(other, body) else None
        if by is not None and step_op.name == "arith.subi":
            by = self._add("sub", self._add("number", 0, 0), by)
        bounds = [self._node(v) for v in list(loop.operands)[:3]]
        return None if by is None or None in bounds else self._add("carried", first, by, *bounds, last)


def _is_outside(value: mlir.Value, body: mlir.Block) -> bool:
    """Whether a value is the same in all iterations of a loop: defined before it, or a constant."""
    op = defining_op(value)
    if op is not None:
        if op.name == "arith.constant":
            return True
        if op.name in _VIEWS:
            return _is_outside(op.operands[0], body)
    block: mlir.Block | None = block_of(value)
    while block is not None and block != body:
        owner = block.owner.operation if block.owner is not None else None
        block = owner.block if owner is not None and owner.parent is not None else None
    return block is None
