"""Integer analysis: the bounds of a kernel's integers, and the powers of two that divide them.

`index` has 64 bits; an index whose bounds fit is lowered to 32 bits. MLIR's integer range analysis is not used, since
it accepts no assumptions about arguments and launches, does not support XeGPU's ops, and does not bound the total
change of a value in a loop.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from mlir import ir
from msgspec import Struct, structs

from xegpu_py.ir.builtin import CombiningKind, Decoded, bit_width, enumerator, integer_elements, is_integer
from xegpu_py.ir.control_flow import STRUCTURED, sources, yielded
from xegpu_py.ir.definition import FUNCTIONS
from xegpu_py.ir.element_movement import MOVES
from xegpu_py.numerics import integers
from xegpu_py.passes.analysis.ir_queries import (
    SIGNED_CASTS,
    UNSIGNED_CASTS,
    added_to,
    argument_number,
    defining_op,
    is_desc,
    moves_of,
    post_order,
    shape_and_element,
    work_items,
)
from xegpu_py.passes.analysis.launch_assumptions import assumed_divisor
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
    lanes: int = 32
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


_ANY_LAUNCH = Limits()
"""The limits of all launches of all kernels."""


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


class Multiples(Struct, frozen=True):
    """A set of integers: the multiples of a number within bounds.

    The divisor is a power of two, because these also divide numbers that have wrapped around, or 0 for the number 0.
    """

    bounds: Bounds
    divisor: int = 1

    def __add__(self, other: Multiples) -> Multiples:
        return Multiples(sums(self.bounds, other.bounds), math.gcd(self.divisor, other.divisor))

    def times(self, least: int, most: int) -> Multiples:
        """The products with numbers between two."""
        return Multiples(products(self.bounds, (least, most)), self.divisor)

    def wrapped(self, bits: int) -> Multiples:
        """The set if a signed type holds all its numbers; otherwise the multiples that the type holds."""
        bounds = checked(self.bounds, bits)
        return Multiples(bounds, power_of_two(bounds[0]) if bounds[0] == bounds[1] else self.divisor)


def exactly(number: int) -> Multiples:
    """The set of one integer."""
    return Multiples((number, number), power_of_two(number))


def power_of_two(number: int) -> int:
    """The largest power of two that divides a number; 0 for 0."""
    return number & -number


def union(sets: Iterable[Multiples]) -> Multiples:
    """The smallest set that contains all of these."""
    bounds, divisors = zip(*((s.bounds, s.divisor) for s in sets))
    return Multiples(join(*bounds), math.gcd(*divisors))


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


_Bounding = Callable[[Bounds, Bounds], Bounds | None]

_Dividing = Callable[[Multiples, Multiples], int]


def _gcd(a: Multiples, b: Multiples) -> int:
    return math.gcd(a.divisor, b.divisor)


def _unknown(a: Multiples, b: Multiples) -> int:
    return 1


_BINARY_TRANSFER: dict[str, tuple[_Bounding, _Dividing]] = {
    "add": (sums, _gcd),
    "sub": (lambda a, b: (a[0] - b[1], a[1] - b[0]), _gcd),
    "mul": (products, lambda a, b: a.divisor * b.divisor),
    "and": (_and, lambda a, b: math.lcm(a.divisor, b.divisor)),
    "or": (_or, _gcd),
    "xor": (_or, _gcd),
    "maxs": (lambda a, b: (max(a[0], b[0]), max(a[1], b[1])), _gcd),
    "mins": (lambda a, b: (min(a[0], b[0]), min(a[1], b[1])), _gcd),
    "maxu": (join, _gcd),
    "minu": (lambda a, b: (0, min(a[1], b[1])) if a[0] >= 0 and b[0] >= 0 else join(a, b), _gcd),
    "shl": (_shift_left, lambda a, b: a.divisor << min(max(b.bounds[0], 0), INDEX_BITS)),
    "shrs": (_shift_right, _unknown),
    "shru": (lambda a, b: _shift_right(a, b) if a[0] >= 0 else None, _unknown),
    "divs": (_quotient(integers.truncdiv), _unknown),
    "divu": (_if_nonnegative(_quotient(integers.truncdiv)), _unknown),
    "floordivs": (_quotient(integers.floordiv), _unknown),
    "ceildivs": (_quotient(integers.ceildiv), _unknown),
    "ceildivu": (_if_nonnegative(_quotient(integers.ceildiv)), _unknown),
    "rems": (_remainder, _gcd),
    "remu": (_unsigned_remainder, _gcd),
}

_LAUNCH_KINDS = (
    "block_id", "grid_dim", "thread_id", "block_dim", "global_id", "subgroup_id", "num_subgroups", "lane_id",
    "subgroup_size",
)  # fmt: skip
"""The ids and extents of a launch: ops of gpu."""

_CASTS_OF_MEMREFS = ("memref.cast", "memref.memory_space_cast", "memref.assume_alignment")


def integer_bits(element: str) -> int:
    """Bits of an integer or index type; 0 of others."""
    return INDEX_BITS if element == "index" else int(element.lstrip("sui")) if is_integer(element) else 0


_BITS = Decoded(lambda kind: integer_bits(shape_and_element(kind)[1]))

Sets = tuple[Multiples, ...]
"""One set of an integer, or of all elements of a vector; one for each offset of a descriptor; none of other values."""


class Integers:
    """The numbers that a kernel's integers, vectors of integers and offsets of descriptors can be, signed.

    A value is analysed when it is first asked for, so that a pass may change the kernel in between.
    """

    def __init__(self, limits: Limits = _ANY_LAUNCH, divisors: Mapping[str, int] = MappingProxyType({})) -> None:
        """Create an analysis that has no results yet.

        Args:
            limits: those of the kernel's launches.
            divisors: a divisor of all results of an op, by the op's name.
        """
        self._limits, self._divisors = limits, divisors
        self._sets: dict[ir.Value, Sets] = {}
        # By the first block of each region that is being analysed, the sets that its arguments are assumed to have.
        self._assumed: dict[ir.Block, dict[ir.Value, Sets]] = {}
        # The dimensions of the workgroup whose extents a value is the product of.
        self._dimensions: dict[ir.Value, frozenset[int]] = {}

    def bounds(self, value: ir.Value) -> Bounds:
        """The bounds of an integer, or of all elements of a vector of integers."""
        return self._one(value).bounds

    def divisor(self, value: ir.Value | int) -> int:
        """The largest power of two that is known to divide an integer, or the first column of a descriptor's blocks.

        It is 0 if the number is known to be 0. Columns count in elements.
        """
        return self._one(value, -1).divisor

    def offsets(self, desc: ir.Value, rank: int) -> tuple[Bounds, ...]:
        """The bounds of a descriptor's offsets."""
        return tuple(s.bounds for s in self.of(desc)) or (type_range(INDEX_BITS),) * rank

    def of(self, value: ir.Value | int) -> Sets:
        """The sets that contain the numbers of a value."""
        if isinstance(value, int):
            return (exactly(value),)
        if value not in self._sets:
            for v in post_order(value, self._sets, self._operands):
                if v not in self._sets:
                    bits = _BITS[v.type]
                    sets = self._computed(v) if bits or is_desc(v) else ()
                    self._sets[v] = tuple(s.wrapped(bits or INDEX_BITS) for s in sets)
        return self._sets[value]

    def _one(self, value: ir.Value | int, number: int = 0) -> Multiples:
        sets = self.of(value)
        return sets[number] if sets else Multiples(type_range(INDEX_BITS))

    def _sources(self, value: ir.Value) -> list[ir.Value]:
        """The values that control flow forwards to a value, first that of a loop's first iteration."""
        try:
            return sources(value) or []
        except ValueError:
            # A loop that is being converted has its old arguments beside the new ones.
            return []

    def _operands(self, value: ir.Value) -> list[ir.Value]:
        """The values to analyse before a value. Those that an iteration passes on are analysed with it."""
        op = defining_op(value)
        if op is not None and op.name not in STRUCTURED:
            return list(op.operands) if op.name in _TRANSFER_RULES else []
        if op is not None or (parent := value.owner.owner) is None:
            return self._sources(value)
        if parent.name not in STRUCTURED:
            return []
        # Outer loops are analysed before inner ones, so that they do not depend on what is assumed of these.
        outer = parent.operation.block
        while not len(outer.arguments) and outer.owner.name in STRUCTURED:
            outer = outer.owner.operation.block
        numbers = [v for v in (*parent.operands, *outer.arguments) if _BITS[v.type]]
        return [*self._sources(value)[:1], *numbers]

    def _computed(self, value: ir.Value) -> Sets:
        op = defining_op(value)
        if op is None:
            return self._argument(value)
        if op.name in STRUCTURED:
            return self._union(value, self._sources(value))
        rule = _TRANSFER_RULES.get(op.name)
        result = self._any(value) if rule is None else rule(self, op, value)
        known = self._divisors.get(op.name)
        return tuple(Multiples(s.bounds, math.lcm(s.divisor, known)) for s in result) if known else result

    def _any(self, value: ir.Value) -> Sets:
        bits = _BITS[value.type]
        return (Multiples(type_range(bits)),) if bits else ()

    def _union(self, value: ir.Value, values: Iterable[ir.Value]) -> Sets:
        return tuple(map(union, zip(*map(self.of, values)))) or self._any(value)

    def binary(self, op: ir.Operation, value: ir.Value, bound: _Bounding, divide: _Dividing) -> Sets:
        """The result of an op on two integers."""
        x, y = op.operands
        a, b = self._one(x), self._one(y)
        bounds = bound(a.bounds, b.bounds) or type_range(INDEX_BITS)
        if bound is products and self._dimensions:
            dimensions, others = (self._dimensions.get(v, frozenset()) for v in (x, y))
            if dimensions and others and not dimensions & others:
                # The product of a workgroup's extents is at most its number of work items.
                self._dimensions[value] = dimensions | others
                bounds = bounds[0], min(bounds[1], self._limits.most_work_items)
        return (Multiples(bounds, divide(a, b)),)

    # Descriptors of blocks.

    def create_nd_tdesc(self, op: ir.Operation, value: ir.Value) -> Sets:
        """The offsets of the op."""
        return tuple(map(self._one, op.opview.offsets))

    def update_nd_offset(self, op: ir.Operation, value: ir.Value) -> Sets:
        """The sums of offsets."""
        return tuple(a + self._one(b) for a, b in zip(self.of(op.operands[0]), op.opview.offsets))

    # Values.

    def constant(self, op: ir.Operation, value: ir.Value) -> Sets:
        """A number, or the least and greatest of several."""
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            attribute = attribute.get_splat_value()
        if isinstance(attribute, ir.DenseIntElementsAttr):
            return (union(map(exactly, integer_elements(attribute))),)
        is_number = isinstance(attribute, ir.IntegerAttr) and _BITS[value.type] > 1
        return (exactly(attribute.value),) if is_number else self._any(value)

    def cast(self, op: ir.Operation, value: ir.Value) -> Sets:
        """The operand's numbers; unsigned casts of negative numbers give those of the unsigned operand type."""
        old = self._one(op.operands[0])
        if op.name in UNSIGNED_CASTS and old.bounds[0] < 0:
            old = Multiples((0, (1 << _BITS[op.operands[0].type]) - 1), old.divisor)
        return (old,)

    def move(self, op: ir.Operation, value: ir.Value) -> Sets:
        """The union of the operands that have the result's element type."""
        return self._union(value, (v for v in op.operands if _BITS[v.type] == _BITS[value.type]))

    def poison(self, op: ir.Operation, value: ir.Value) -> Sets:
        """Any number; the lowering takes zero."""
        return (exactly(0),) if _BITS[value.type] else ()

    def step(self, op: ir.Operation, value: ir.Value) -> Sets:
        """0 to the number of elements less one."""
        return (Multiples((0, shape_and_element(value)[0][0] - 1)),)

    def reduction(self, op: ir.Operation, value: ir.Value) -> Sets:
        """The transfer function of reductions: minimum and maximum give an element, an addition the sum of all."""
        kind = CombiningKind.of(op)
        elements, *more = map(self._one, op.operands)
        if kind.value.startswith(("min", "max")):
            return (union([elements, *more]),)
        if kind == CombiningKind.ADD:
            count = math.prod(shape_and_element(op.operands[0])[0])
            return (sum(more, elements.times(1, count)),)
        return self._any(value)

    def absolute(self, op: ir.Operation, value: ir.Value) -> Sets:
        """The magnitude."""
        old = self._one(op.operands[0])
        lo, hi = old.bounds
        return (Multiples((0 if lo <= 0 <= hi else min(abs(lo), abs(hi)), max(abs(lo), abs(hi))), old.divisor),)

    # Ids and extents of the launch.

    def launch_range(self, op: ir.Operation, value: ir.Value) -> Sets:
        """An id or extent of the launch."""
        dimension = "xyz".index(enumerator(op.attributes["dimension"])) if "dimension" in op.attributes else 0
        low, high = self._limits.launch_range(op.name.partition(".")[2], dimension)
        if "upper_bound" in op.attributes:
            # Extents can be the bound itself, and ids cannot.
            bound = ir.IntegerAttr(op.attributes["upper_bound"]).value
            high = min(high, bound - 1 if op.name.endswith("_id") else bound)
        if op.name == "gpu.block_dim":
            self._dimensions[value] = frozenset([dimension])
        return (Multiples((low, high)),)

    # Memrefs.

    def dim(self, op: ir.Operation, value: ir.Value) -> Sets:
        """An extent."""
        return self._extent(op.operands[0], self.bounds(op.operands[1]))

    def metadata(self, op: ir.Operation, value: ir.Value) -> Sets:
        """An offset, an extent or a stride."""
        memref, number = op.operands[0], ir.OpResult(value).result_number - 1
        kind = ir.MemRefType(memref.type)
        if 1 <= number <= kind.rank:
            return self._extent(memref, (number - 1, number - 1))
        strides, offset = kind.get_strides_and_offset()
        stated = [offset, *strides][max(number - kind.rank, 0)]
        return self._stated(memref, stated if stated != ir.ShapedType.get_dynamic_stride_or_offset() else None)

    def _extent(self, memref: ir.Value, at: Bounds) -> Sets:
        kind = ir.MemRefType(memref.type)
        if at[0] != at[1] or not 0 <= at[0] < kind.rank:
            return (Multiples(type_range(INDEX_BITS)),)
        return self._stated(memref, None if kind.is_dynamic_dim(at[0]) else kind.shape[at[0]])

    def _stated(self, memref: ir.Value, number: int | None) -> Sets:
        """A number that a memref's type states; if it does not, any that an argument can have."""
        if number is not None:
            return (exactly(number),)
        kind = ir.MemRefType(memref.type)
        while (op := defining_op(memref)) is not None and op.name in _CASTS_OF_MEMREFS:
            memref = op.operands[0]
        is_argument = argument_number(memref, *FUNCTIONS) is not None
        return (Multiples(self._limits.array(str(kind.element_type)) if is_argument else type_range(INDEX_BITS)),)

    # Control flow.

    def _argument(self, value: ir.Value) -> Sets:
        """An argument of a block."""
        forwarded = self._sources(value)
        if forwarded:
            start = _start_of(value)
            is_invariant = start is not None and start == forwarded[-1]
            return self.of(forwarded[0]) if is_invariant else self._solved(value)
        if argument_number(value, "scf.for") == 0:
            return self._counter(value.owner.owner.operation)
        number = argument_number(value, *FUNCTIONS)
        is_index = shape_and_element(value)[1] == "index" and number is not None
        sets = (Multiples(self._limits.argument),) if is_index else self._any(value)
        if number is None or not sets:
            return sets
        divisor = power_of_two(assumed_divisor(value.owner.owner.operation, number))
        return tuple(Multiples(s.bounds, divisor) for s in sets)

    def _counter(self, loop: ir.Operation) -> Sets:
        lower, upper, step = map(self._one, list(loop.operands)[:3])
        divisor = math.gcd(lower.divisor, step.divisor)
        if "unsignedCmp" in loop.attributes and min(lower.bounds[0], upper.bounds[0]) < 0:
            return (Multiples(type_range(INDEX_BITS), divisor),)
        return (Multiples((lower.bounds[0], max(lower.bounds[0], upper.bounds[1] - 1)), divisor),)

    def _solved(self, value: ir.Value) -> Sets:
        """An argument that control flow forwards values to, which may depend on it and on others of its region.

        Meanwhile the bounds of these are unknown, so that results hold for any, and their divisors are assumed until
        no result refutes them.
        """
        region = value.owner.region.blocks[0]
        if region in self._assumed:
            return self._assumed[region].setdefault(value, self._assumption(value))
        assumed: dict[ir.Value, Sets] = {}
        while True:
            count = len(self._sets)
            self._assumed[region] = assumed
            results = {value: self._carried(value)}
            while missing := [v for v in assumed if v not in results]:
                results |= {v: self._carried(v) for v in missing}
            del self._assumed[region]
            if not assumed:
                return results[value]
            # Results of other values may depend on the assumptions.
            while len(self._sets) > count:
                self._sets.popitem()
            met = {v: tuple(map(union, zip(sets, results[v]))) for v, sets in assumed.items()}
            if met == assumed:
                self._sets |= {v: sets for v, sets in results.items() if v != value}
                return results[value]
            assumed = met

    def _assumption(self, value: ir.Value) -> Sets:
        if value.owner.owner.operation.name not in STRUCTURED:
            # All sources may depend on the argument.
            return tuple(Multiples(s.bounds, 0) for s in self._any(value))
        full_range = type_range(_BITS[value.type] or INDEX_BITS)
        return tuple(Multiples(full_range, s.divisor) for s in self.of(self._sources(value)[0]))

    def _carried(self, value: ir.Value) -> Sets:
        """An argument to which control flow forwards values; in loops its first numbers and their greatest change."""
        forwarded, start, loop = self._sources(value), _start_of(value), value.owner.owner.operation
        if start is None:
            return self._union(value, forwarded)
        init, out = forwarded
        trips = self._loop_trips(loop) if loop.name == "scf.for" else self._while_trips(loop)
        first = self.of(init)
        steps = None if trips == math.inf else self._step_per_iteration(start, out, len(first))
        if steps is None:
            return self._union(value, forwarded)
        bits = _BITS[value.type] or INDEX_BITS
        return tuple((a + step.times(0, int(trips))).wrapped(bits) for a, step in zip(first, steps))

    def _loop_trips(self, loop: ir.Operation) -> float:
        lower, upper, step = (self.bounds(v) for v in list(loop.operands)[:3])
        if "unsignedCmp" in loop.attributes and min(lower[0], upper[0]) < 0:
            return math.inf
        return max(0, -(-(upper[1] - lower[0]) // max(step[0], 1)))

    def _while_trips(self, loop: ir.Operation) -> float:
        """The greatest trip count of an scf.while whose condition compares a growing value with a bound."""
        before, after = (r.blocks[0] for r in loop.regions)
        condition, arguments, yields = yielded(before)[0], list(before.arguments), yielded(after)
        while (op := defining_op(condition)) is not None and op.name == "vector.reduction":
            if CombiningKind.of(op) != CombiningKind.OR or len(op.operands) > 1:
                return math.inf
            condition = op.operands[0]
        is_delayed = condition in arguments
        # The carried value is the condition of the next iteration.
        tested = yields[arguments.index(condition)] if is_delayed else condition
        compared = yields if is_delayed else arguments
        counts = []
        for comparison in _conjuncts(tested):
            value, limit = comparison.operands
            if ir.IntegerAttr(comparison.attributes["predicate"]).value == _SIGNED_LESS and value in compared:
                i = compared.index(value)
                counts.append(self._comparison_trips(loop.operands[i], after.arguments[i], yields[i], limit))
        return min(counts, default=math.inf) + is_delayed

    def _comparison_trips(self, init: ir.Value, start: ir.Value, out: ir.Value, limit: ir.Value) -> float:
        """The greatest number of iterations for which a growing value can be less than a limit."""
        steps = self._step_per_iteration(start, out, 1)
        least, most = self.bounds(init)[0], self.bounds(limit)[1]
        if steps is None:
            return math.inf
        slowest, fastest = steps[0].bounds
        if slowest < 1 or most - 1 + fastest > type_range(_BITS[init.type])[1]:
            return math.inf
        return max(0, -(-(most - least) // slowest))

    def _step_per_iteration(self, argument: ir.Value, out: ir.Value, rank: int) -> Sets | None:
        """The distance of a value's parts from an argument of the block, if the value is the argument plus a sum."""
        start, moves = moves_of(out)
        steps = [tuple(map(self._one, offsets)) for offsets in moves]
        if start != argument:
            terms = added_to(argument, out)
            if terms is None:
                return None
            steps = [(self._one(v).times(sign, sign),) for sign, v in terms]
        return tuple(sum(parts, exactly(0)) for parts in zip(*steps)) or (exactly(0),) * rank


def _start_of(value: ir.Value) -> ir.Value | None:
    """The value of a loop's argument in the block that yields its next one; None if the loop passes another value."""
    block, loop = value.owner, value.owner.owner.operation
    if loop.name == "scf.for":
        return value
    if loop.name != "scf.while" or block != loop.regions[0].blocks[0]:
        return None
    arguments, passed = list(block.arguments), yielded(block)[1:]
    number = arguments.index(value)
    return loop.regions[1].blocks[0].arguments[number] if passed[: len(arguments)] == arguments else None


def _conjuncts(condition: ir.Value) -> list[ir.Operation]:
    """The comparisons whose conjunction is a condition."""
    op = defining_op(condition)
    if op is not None and op.name == "arith.andi":
        return [comparison for v in op.operands for comparison in _conjuncts(v)]
    return [op] if op is not None and op.name == "arith.cmpi" else []


def checked(bounds: Bounds, bits: int = INDEX_BITS) -> Bounds:
    """An interval if numbers of a signed type do not wrap around in it; otherwise all of them."""
    return bounds if contains(bounds, type_range(bits)) else type_range(bits)


_TransferRule = Callable[[Integers, ir.Operation, ir.Value], Sets]

_TRANSFER_RULES: dict[str, _TransferRule] = {
    "arith.constant": Integers.constant,
    "index.constant": Integers.constant,
    "ub.poison": Integers.poison,
    "vector.step": Integers.step,
    "vector.reduction": Integers.reduction,
    "vector.multi_reduction": Integers.reduction,
    "math.absi": Integers.absolute,
    "memref.dim": Integers.dim,
    "memref.extract_strided_metadata": Integers.metadata,
    "xegpu.create_nd_tdesc": Integers.create_nd_tdesc,
    "xegpu.update_nd_offset": Integers.update_nd_offset,
    "arith.select": Integers.move,
    **{
        name: functools.partial(Integers.binary, bound=bound, divide=divide)
        for kind, (bound, divide) in _BINARY_TRANSFER.items()
        for name in (f"arith.{kind}i", f"index.{kind}")
    },
    **dict.fromkeys(MOVES, Integers.move),
    **dict.fromkeys((*SIGNED_CASTS, *UNSIGNED_CASTS), Integers.cast),
    **dict.fromkeys((f"gpu.{kind}" for kind in _LAUNCH_KINDS), Integers.launch_range),
}


def divisor(value: ir.Value | int, divisors: Mapping[str, int] = MappingProxyType({})) -> int:
    """`Integers.divisor` in IR that is being converted."""
    return Integers(divisors=divisors).divisor(value)
