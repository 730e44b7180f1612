"""Integer range analysis: intervals of a kernel's integers by forward dataflow.

`index` has 64 bits; an index whose interval fits is lowered to 32 bits. MLIR's integer range analysis is not used,
since it accepts no assumptions about arguments and launches, does not support XeGPU's ops, and does not bound the
total change of a value in a loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from mlir import ir
from msgspec import Struct, structs

from xegpu_py.ir.bindings import blocks_in
from xegpu_py.ir.builtin import CombiningKind, Decoded, bit_width, enumerator, integer_elements, is_integer
from xegpu_py.ir.control_flow import yielded
from xegpu_py.ir.element_movement import MOVES
from xegpu_py.numerics import integers
from xegpu_py.passes.analysis.ir_queries import (
    SIGNED_CASTS,
    UNSIGNED_CASTS,
    added_to,
    integer_op,
    moves_of,
    shape_and_element,
    work_items,
)
from xegpu_py.target import GRID_LIMIT, Target

Bounds = tuple[int, int]
"""Lower and upper bound of integers, inclusive."""

_GRID_MOST = (1 << 32) - 1

_BYTES_MOST = 1 << 57

INDEX_BITS = 64

_SIGNED_LESS = 2
"""`slt` among the predicates of arith.cmpi."""


class Limits(Struct, frozen=True):
    """The limits that a launch must satisfy.

    Attributes:
        bytes: greatest span of an array in bytes, which also limits its extents and strides; 0 for no limit.
        index: greatest absolute value of arguments of type index; 0 for no limit.
        grid: most workgroups in each dimension; 0 for no limit.
        threads: most hardware threads of a workgroup.
        lanes: work items of a thread.
        known_grid, known_block: the extents, if the kernel has them as attributes.
    """

    bytes: int = 0
    index: int = 0
    grid: int = GRID_LIMIT
    threads: int = 64
    lanes: int = 1
    known_grid: tuple[int, ...] = ()
    known_block: tuple[int, ...] = ()

    @property
    def most_work_items(self) -> int:
        """Most work items of a workgroup."""
        return self.threads * self.lanes

    def array(self, element: str) -> Bounds:
        """The interval of an array's extents, strides and offset, in elements."""
        bits = INDEX_BITS if element == "index" else bit_width(element)
        return 0, 8 * (self.bytes or _BYTES_MOST) // bits

    @property
    def argument(self) -> Bounds:
        """The interval of an argument of type index."""
        return (-self.index, self.index) if self.index else type_range(INDEX_BITS)

    def launch_range(self, kind: str, dimension: int = 0) -> Bounds:
        """The interval of an id or extent of the launch, by the name of its op without `gpu.`."""
        grid = self.known_grid[dimension] if self.known_grid else self.grid or _GRID_MOST
        block = self.known_block[dimension] if self.known_block else self.most_work_items
        return {
            "block_id": (0, grid - 1),
            "grid_dim": (grid if self.known_grid else 1, grid),
            "thread_id": (0, block - 1),
            "block_dim": (block if self.known_block else 1, block),
            "global_id": (0, grid * block - 1),
            "subgroup_id": (0, self.threads - 1),
            "num_subgroups": (1, self.threads),
            "lane_id": (0, self.lanes - 1),
            "subgroup_size": (1, self.lanes),
        }[kind]


def limits_of(func: ir.Operation, target: Target, limits: Limits) -> Limits:
    """The limits of a kernel's launches: the limits of all launches, and those of the kernel and its target."""
    grid, block = (
        tuple(ir.DenseI32ArrayAttr(func.attributes[name])) if name in func.attributes else ()
        for name in ("known_grid_size", "known_block_size")
    )
    lanes = max(work_items(func), 1)
    return structs.replace(limits, threads=target.threads, lanes=lanes, known_grid=grid, known_block=block)


def type_range(bits: int) -> Bounds:
    """All numbers of a signed type."""
    return -(1 << bits - 1), (1 << bits - 1) - 1


def join(*intervals: Bounds) -> Bounds:
    """The smallest interval that contains all of these."""
    return min(lo for lo, _ in intervals), max(hi for _, hi in intervals)


def contains(inner: Bounds, outer: Bounds) -> bool:
    """Return whether an interval is contained in another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _monotone(op: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    """The transfer function of an operation that is monotone in each operand."""

    def transfer(a: Bounds, b: Bounds) -> Bounds:
        values = [op(x, y) for x in a for y in b]
        return min(values), max(values)

    return transfer


def sums(a: Bounds, b: Bounds) -> Bounds:
    """The interval of sums."""
    return a[0] + b[0], a[1] + b[1]


products = _monotone(lambda x, y: x * y)
"""The interval of products."""


def _divisors(b: Bounds) -> list[int]:
    candidates = {n for n in (*b, -1, 1) if b[0] <= n <= b[1]} - {0}
    return sorted(candidates)


def _quotient(op: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds | None]:
    def transfer(a: Bounds, b: Bounds) -> Bounds | None:
        quotients = [op(x, y) for x in a for y in _divisors(b)]
        return (min(quotients), max(quotients)) if quotients else None

    return transfer


def _if_nonnegative(op: Callable[[Bounds, Bounds], Bounds | None]) -> Callable[[Bounds, Bounds], Bounds | None]:
    return lambda a, b: op(a, b) if a[0] >= 0 and b[0] >= 0 else None


def _remainder(a: Bounds, b: Bounds) -> Bounds:
    most = min(max(abs(n) for n in b) - 1, max(abs(n) for n in a))
    return (-max(most, 0) if a[0] < 0 else 0), (max(most, 0) if a[1] > 0 else 0)


def _unsigned_remainder(a: Bounds, b: Bounds) -> Bounds | None:
    if b[0] < 0:
        return None
    return 0, max(min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1, 0)


def _magnitude(*intervals: Bounds) -> int:
    return max((n if n >= 0 else ~n).bit_length() for pair in intervals for n in pair)


def _and(a: Bounds, b: Bounds) -> Bounds:
    natural = [hi for lo, hi in (a, b) if lo >= 0]
    if natural:
        return 0, min(natural)
    return -(1 << _magnitude(a, b)), max(a[1], b[1], -1)


def _or(a: Bounds, b: Bounds) -> Bounds:
    bits = 1 << _magnitude(a, b)
    return (0 if a[0] >= 0 and b[0] >= 0 else -bits), bits - 1


def _shift_left(a: Bounds, b: Bounds) -> Bounds | None:
    return _monotone(lambda x, n: x << n)(a, b) if contains(b, (0, INDEX_BITS - 1)) else None


def _shift_right(a: Bounds, b: Bounds) -> Bounds:
    # Shifts by more than the type's bits are poison.
    at = (min(max(b[0], 0), 64), min(max(b[1], 0), 64)) if b[0] >= 0 else (0, 64)
    return _monotone(lambda x, n: x >> n)(a, at)


_BINARY_TRANSFER: dict[str, Callable[[Bounds, Bounds], Bounds | None]] = {
    "add": sums,
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": products,
    "and": _and,
    "or": _or,
    "xor": _or,
    "maxs": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "mins": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "maxu": join,
    "minu": lambda a, b: (0, min(a[1], b[1])) if a[0] >= 0 and b[0] >= 0 else join(a, b),
    "shl": _shift_left,
    "shrs": _shift_right,
    "shru": lambda a, b: _shift_right(a, b) if a[0] >= 0 else None,
    "divs": _quotient(integers.truncdiv),
    "divu": _if_nonnegative(_quotient(integers.truncdiv)),
    "floordivs": _quotient(integers.floordiv),
    "ceildivs": _quotient(integers.ceildiv),
    "ceildivu": _if_nonnegative(_quotient(integers.ceildiv)),
    "rems": _remainder,
    "remu": _unsigned_remainder,
}

_MOVEMENT_OPS = (*MOVES, "arith.select")
"""Ops whose results consist of elements of their operands."""

_LAUNCH_IDS = (
    "gpu.block_id", "gpu.grid_dim", "gpu.thread_id", "gpu.block_dim", "gpu.global_id", "gpu.subgroup_id",
    "gpu.num_subgroups", "gpu.lane_id", "gpu.subgroup_size",
)  # fmt: skip
"""Ids and extents of a launch."""

_CASTS_OF_MEMREFS = ("memref.cast", "memref.memory_space_cast", "memref.assume_alignment")


def integer_bits(element: str) -> int:
    """Bits of an integer or index type; 0 of others."""
    return INDEX_BITS if element == "index" else int(element.lstrip("sui")) if is_integer(element) else 0


_BITS = Decoded(lambda kind: integer_bits(shape_and_element(kind)[1]))


class Ranges:
    """The intervals of a kernel's integers, scalars and vectors of them, as signed numbers.

    A descriptor of a block has the intervals of its offsets.
    """

    def __init__(self, func: ir.Operation, limits: Limits) -> None:
        """Analyse a kernel whose body is one block."""
        self._limits = limits
        self._intervals_of: dict[ir.Value, tuple[Bounds, ...]] = {}
        self._dimensions: dict[ir.Value, frozenset[int]] = {}
        block = func.regions[0].blocks[0]
        self._arguments = set(block.arguments)
        for argument in block.arguments:
            if shape_and_element(argument)[1] == "index":
                self._intervals_of[argument] = (limits.argument,)
        self._visit_block(block)

    def of(self, value: ir.Value) -> Bounds:
        """The interval of an integer, or of all elements of a vector of integers."""
        intervals = self._intervals_of.get(value)
        return intervals[0] if intervals else type_range(self._bits(value) or INDEX_BITS)

    def _bits(self, value: ir.Value) -> int:
        """Bits of an integer or of a vector's elements; 0 of other types."""
        return _BITS[value.type]

    def _set(self, value: ir.Value, bounds: Bounds | None) -> None:
        bits = self._bits(value)
        if bits:
            full_range = type_range(bits)
            self._intervals_of[value] = (bounds if bounds and contains(bounds, full_range) else full_range,)

    def _visit_block(self, block: ir.Block) -> None:
        for op in block.operations:
            self._visit_op(op.operation)

    def _visit_op(self, op: ir.Operation) -> None:
        name = op.name
        rule = _TRANSFER_RULES.get(name)
        if rule is not None:
            rule(self, op)
            return
        kind = integer_op(op)
        transfer = _BINARY_TRANSFER.get(kind)
        if transfer is not None:
            result = op.results[0]
            if self._bits(result):
                a, b = op.operands
                self._set(result, transfer(self.of(a), self.of(b)))
                if kind == "mul":
                    self._limit_work_items(result, a, b)
            return
        for block in blocks_in(op):
            self._visit_block(block)
        for result in op.results:
            self._set(result, None)

    # Descriptors of blocks.

    def _intervals(self, offsets: Iterable[ir.Value | int]) -> tuple[Bounds, ...]:
        return tuple((v, v) if isinstance(v, int) else self.of(v) for v in offsets)

    def create_nd_tdesc(self, op: ir.Operation) -> None:
        """The offsets of the op."""
        self._intervals_of[op.results[0]] = self._intervals(op.opview.offsets)

    def update_nd_offset(self, op: ir.Operation) -> None:
        """The sums of offsets."""
        old = self._intervals_of.get(op.operands[0])
        if old:
            moved = zip(old, self._intervals(op.opview.offsets))
            self._intervals_of[op.results[0]] = tuple(checked(sums(a, b)) for a, b in moved)

    def offsets(self, desc: ir.Value, rank: int) -> tuple[Bounds, ...]:
        """The intervals of a descriptor's offsets."""
        return self._intervals_of.get(desc) or (type_range(INDEX_BITS),) * rank

    # Values.

    def constant(self, op: ir.Operation) -> None:
        """A number, or the least and greatest of several."""
        result = op.results[0]
        if not self._bits(result):
            return
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            attribute = attribute.get_splat_value()
        if isinstance(attribute, ir.DenseIntElementsAttr):
            values = integer_elements(attribute)
            self._set(result, (min(values), max(values)))
        elif isinstance(attribute, ir.IntegerAttr) and self._bits(result) > 1:
            self._set(result, (attribute.value, attribute.value))
        else:
            self._set(result, None)

    def cast(self, op: ir.Operation) -> None:
        """The operand's interval; unsigned casts of negative numbers give that of the unsigned operand type."""
        bounds = self.of(op.operands[0])
        if op.name in UNSIGNED_CASTS and bounds[0] < 0:
            bounds = 0, (1 << self._bits(op.operands[0])) - 1
        self._set(op.results[0], bounds)

    def move(self, op: ir.Operation) -> None:
        """The join of the operands that have the result's element type."""
        for result in op.results:
            bits = self._bits(result)
            if bits:
                self._set(result, join(*(self.of(v) for v in op.operands if self._bits(v) == bits)))
            elif result in self._intervals_of:
                del self._intervals_of[result]

    def poison(self, op: ir.Operation) -> None:
        """Any number; the lowering takes zero."""
        self._set(op.results[0], (0, 0))

    def step(self, op: ir.Operation) -> None:
        """0 to the number of elements less one."""
        self._set(op.results[0], (0, shape_and_element(op.results[0])[0][0] - 1))

    def reduction(self, op: ir.Operation) -> None:
        """The transfer function of reductions: minimum and maximum give an element, an addition the sum of all."""
        result = op.results[0]
        if not self._bits(result):
            return
        kind = CombiningKind.of(op)
        operands = [self.of(v) for v in op.operands]
        if kind.value.startswith(("min", "max")):
            self._set(result, join(*operands))
        elif kind == CombiningKind.ADD:
            count = math.prod(shape_and_element(op.operands[0])[0])
            lo, hi = operands[0]
            more = [(0, 0), *operands[1:]][-1]
            self._set(result, (min(lo * count, lo) + more[0], max(hi * count, hi) + more[1]))
        else:
            self._set(result, None)

    def absolute(self, op: ir.Operation) -> None:
        """The magnitude."""
        lo, hi = self.of(op.operands[0])
        self._set(op.results[0], (0 if lo <= 0 <= hi else min(abs(lo), abs(hi)), max(abs(lo), abs(hi))))

    # Ids and extents of the launch.

    def launch_range(self, op: ir.Operation) -> None:
        """An id or extent of the launch."""
        dimension = "xyz".index(enumerator(op.attributes["dimension"])) if "dimension" in op.attributes else 0
        low, high = self._limits.launch_range(op.name.partition(".")[2], dimension)
        if "upper_bound" in op.attributes:
            # Extents can be the bound itself, and ids cannot.
            bound = ir.IntegerAttr(op.attributes["upper_bound"]).value
            high = min(high, bound - 1 if op.name.endswith("_id") else bound)
        self._set(op.results[0], (low, high))

        if op.name == "gpu.block_dim":
            self._dimensions[op.results[0]] = frozenset([dimension])

    def _limit_work_items(self, result: ir.Value, a: ir.Value, b: ir.Value) -> None:
        """Limit a product of a workgroup's extents by its number of work items."""
        a_dimensions, b_dimensions = (self._dimensions.get(v, frozenset()) for v in (a, b))
        if a_dimensions and b_dimensions and not a_dimensions & b_dimensions:
            self._dimensions[result] = a_dimensions | b_dimensions
            low, high = self.of(result)
            self._set(result, (low, min(high, self._limits.most_work_items)))

    # Memrefs.

    def dim(self, op: ir.Operation) -> None:
        """An extent."""
        self._set(op.results[0], self._dim(op.operands[0], self.of(op.operands[1])))

    def metadata(self, op: ir.Operation) -> None:
        """An offset, extents and strides."""
        memref = op.operands[0]
        kind = ir.MemRefType(memref.type)
        strides, offset = kind.get_strides_and_offset()
        unknown = ir.ShapedType.get_dynamic_stride_or_offset()
        array_bounds = self._limits.array(str(kind.element_type))
        stride_bounds = array_bounds if self._is_argument(memref) else type_range(INDEX_BITS)
        extents = [self._dim(memref, (d, d)) for d in range(kind.rank)]
        intervals = [(n, n) if n != unknown else stride_bounds for n in (offset, *strides)]
        for result, bounds in zip(list(op.results)[1:], [intervals[0], *extents, *intervals[1:]]):
            self._set(result, bounds)

    def _dim(self, memref: ir.Value, at: Bounds) -> Bounds:
        kind = ir.MemRefType(memref.type)
        if at[0] != at[1] or not 0 <= at[0] < kind.rank:
            return type_range(INDEX_BITS)
        if not kind.is_dynamic_dim(at[0]):
            extent = kind.shape[at[0]]
            return extent, extent
        if self._is_argument(memref):
            return self._limits.array(str(kind.element_type))
        return type_range(INDEX_BITS)

    def _is_argument(self, memref: ir.Value) -> bool:
        while not isinstance(memref.owner, ir.Block) and memref.owner.operation.name in _CASTS_OF_MEMREFS:
            memref = memref.owner.operation.operands[0]
        return memref in self._arguments

    # Control flow.

    def _values(self, value: ir.Value) -> tuple[Bounds, ...] | None:
        intervals = self._intervals_of.get(value)
        if intervals is None and self._bits(value):
            return (type_range(self._bits(value)),)
        return intervals

    def _set_join(self, result: ir.Value, values: Iterable[ir.Value]) -> None:
        intervals = [self._values(v) for v in values]
        if intervals and all(f is not None for f in intervals):
            self._intervals_of[result] = tuple(join(*parts) for parts in zip(*(f for f in intervals if f)))

    def branch(self, op: ir.Operation) -> None:
        """Results are those of one of the regions."""
        blocks = [r.blocks[0] for r in op.regions if len(r.blocks)]
        for block in blocks:
            self._visit_block(block)
        yields = [yielded(block) for block in blocks]
        for i, result in enumerate(op.results):
            self._set_join(result, [y[i] for y in yields])

    def loop(self, op: ir.Operation) -> None:
        """A counted loop: bound carried values by their greatest change per iteration times the trip count."""
        body = op.regions[0].blocks[0]
        counter, *arguments = body.arguments
        lower, upper, step = (self.of(v) for v in list(op.operands)[:3])
        inits = list(op.operands)[3:]
        if "unsignedCmp" in op.attributes and min(lower[0], upper[0]) < 0:
            self._set(counter, None)
            trips = math.inf
        else:
            self._set(counter, (lower[0], max(lower[0], upper[1] - 1)))
            trips = max(0, -(-(upper[1] - lower[0]) // max(step[0], 1)))
        self._loop_carried(arguments, inits, yielded(body), [body], lambda: trips)
        for result, argument, out in zip(op.results, arguments, yielded(body)):
            self._set_join(result, [argument, out])

    def _loop_carried(
        self,
        arguments: Sequence[ir.Value],
        inits: Sequence[ir.Value],
        yields: Sequence[ir.Value],
        blocks: Sequence[ir.Block],
        count: Callable[[], float],
        starts: Sequence[ir.Value] = (),
    ) -> None:
        """Find the intervals of blocks' arguments, and analyse the blocks with them.

        Args:
            count: gives the greatest trip count; called after the blocks were analysed for unknown arguments.
            starts: the values of the arguments in the yielding block, if another block has the arguments.
        """
        moved: list[tuple[ir.Value, ir.Value, tuple[Bounds, ...], ir.Value]] = []
        for argument, start, init, out in zip(arguments, starts or arguments, inits, yields):
            first = self._values(init)
            if first is None:
                continue
            self._intervals_of[argument] = first
            if out != start:
                moved.append((argument, start, first, out))
                self._intervals_of[argument] = tuple(type_range(self._bits(argument) or INDEX_BITS) for _ in first)
        if moved:
            # These results hold for any arguments.
            for block in blocks:
                self._visit_block(block)
            ranges, trips = {}, count()
            for argument, start, first, out in moved:
                step = self._step_per_iteration(start, out, len(first))
                last = self._values(out)
                bits = self._bits(argument) or INDEX_BITS
                if step is not None and trips != math.inf:
                    n = int(trips)
                    far = [(a[0] + min(s[0], 0) * n, a[1] + max(s[1], 0) * n) for a, s in zip(first, step)]
                    ranges[argument] = tuple(checked(f, bits) for f in far)
                else:
                    ranges[argument] = tuple(
                        join(a, b) for a, b in zip(first, last or (type_range(bits),) * len(first))
                    )
            self._intervals_of |= ranges
        for block in blocks:
            self._visit_block(block)

    def _trips(
        self, before: ir.Block, starts: Sequence[ir.Value], inits: Sequence[ir.Value], yields: Sequence[ir.Value]
    ) -> float:
        """The greatest trip count of an scf.while whose condition compares a growing value with a bound.

        Args:
            starts: the values of the first region's arguments in the second region.
        """
        condition = yielded(before)[0]
        arguments = list(before.arguments)
        while not isinstance(condition.owner, ir.Block) and condition.owner.operation.name == "vector.reduction":
            op = condition.owner.operation
            if "<or>" not in str(op.attributes["kind"]) or len(op.operands) > 1:
                return math.inf
            condition = op.operands[0]
        is_delayed = condition in arguments
        # The carried value is the condition of the next iteration.
        checked = yields[arguments.index(condition)] if is_delayed else condition
        compared = yields if is_delayed else arguments
        counts = [self._comparison_trips(c, compared, starts, inits, yields) for c in self._conjuncts(checked)]
        return min(counts, default=math.inf) + is_delayed

    def _conjuncts(self, condition: ir.Value) -> list[ir.Value]:
        """The comparisons whose conjunction is a condition."""
        if isinstance(condition.owner, ir.Block):
            return []
        op = condition.owner.operation
        if op.name == "arith.andi":
            return [c for v in op.operands for c in self._conjuncts(v)]
        return [condition] if op.name == "arith.cmpi" else []

    def _comparison_trips(
        self,
        comparison: ir.Value,
        compared: Sequence[ir.Value],
        starts: Sequence[ir.Value],
        inits: Sequence[ir.Value],
        yields: Sequence[ir.Value],
    ) -> float:
        """The greatest number of iterations for which a comparison of a growing value can hold."""
        op = comparison.owner.operation
        value, limit = op.operands
        if ir.IntegerAttr(op.attributes["predicate"]).value != _SIGNED_LESS or value not in compared:
            return math.inf
        i = list(compared).index(value)
        step = self._step_per_iteration(starts[i], yields[i], 1)
        first, last = self.of(inits[i]), self.of(limit)
        if step is None or step[0][0] < 1 or last[1] - 1 + step[0][1] > type_range(self._bits(value))[1]:
            return math.inf
        return max(0, -(-(last[1] - first[0]) // step[0][0]))

    def _step_per_iteration(self, argument: ir.Value, out: ir.Value, rank: int) -> list[Bounds] | None:
        """The distance of a value's parts from an argument of the block, if the value is the argument plus a sum."""
        start, moves = moves_of(out)
        steps = [self._intervals(offsets) for offsets in moves]
        if start != argument:
            terms = added_to(argument, out)
            if terms is None:
                return None
            steps = [(products((sign, sign), self.of(v)),) for sign, v in terms]
        return [(sum(lo for lo, _ in parts), sum(hi for _, hi in parts)) for parts in zip(*steps)] or [(0, 0)] * rank

    def while_(self, op: ir.Operation) -> None:
        """A loop of two regions."""
        before, after = (r.blocks[0] for r in op.regions)
        passed = yielded(before)[1:]
        for argument in after.arguments:
            self._intervals_of.pop(argument, None)
            self._set(argument, None)
        arguments, inits, yields = list(before.arguments), list(op.operands), yielded(after)
        if passed[: len(arguments)] == arguments:
            # The second region starts with the same values as the first one.
            starts = list(after.arguments)[: len(arguments)]
            self._loop_carried(
                arguments, inits, yields, [before, after], lambda: self._trips(before, starts, inits, yields), starts
            )
        else:
            self._loop_carried(arguments, inits, yields, [before, after], lambda: math.inf)
        for argument, result, value in zip(after.arguments, op.results, passed):
            self._set_join(argument, [value])
            self._set_join(result, [value])
        self._visit_block(after)


def checked(bounds: Bounds, bits: int = INDEX_BITS) -> Bounds:
    """An interval if numbers of a signed type do not wrap around in it; otherwise all of them."""
    return bounds if contains(bounds, type_range(bits)) else type_range(bits)


_TransferRule = Callable[[Ranges, ir.Operation], None]

_TRANSFER_RULES: dict[str, _TransferRule] = {
    "arith.constant": Ranges.constant,
    "index.constant": Ranges.constant,
    "ub.poison": Ranges.poison,
    "vector.step": Ranges.step,
    "vector.reduction": Ranges.reduction,
    "vector.multi_reduction": Ranges.reduction,
    "math.absi": Ranges.absolute,
    "memref.dim": Ranges.dim,
    "memref.extract_strided_metadata": Ranges.metadata,
    "xegpu.create_nd_tdesc": Ranges.create_nd_tdesc,
    "xegpu.update_nd_offset": Ranges.update_nd_offset,
    "scf.if": Ranges.branch,
    "scf.index_switch": Ranges.branch,
    "scf.for": Ranges.loop,
    "scf.while": Ranges.while_,
    **dict.fromkeys((*SIGNED_CASTS, *UNSIGNED_CASTS), Ranges.cast),
    **dict.fromkeys(_MOVEMENT_OPS, Ranges.move),
    **dict.fromkeys(_LAUNCH_IDS, Ranges.launch_range),
}
