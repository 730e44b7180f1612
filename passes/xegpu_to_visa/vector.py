"""`vector`: casts of shapes emit nothing; ops that reorder elements become moves."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
from mlir import ir

from xegpu_py.ir.builtin import CombiningKind, bit_width
from xegpu_py.ir.element_movement import VIEWS, positions
from xegpu_py.passes.analysis.ir_queries import INDEX, defining_op, integers, narrow_bits, shape_and_element, shape_of
from xegpu_py.passes.xegpu_to_visa.emitter import (
    MASK_LANES,
    NARROW,
    Const,
    KnownMask,
    Mask,
    Numbers,
    Reg,
    Splat,
    Undefined,
    Value,
    const,
    is_handle,
    is_whole,
)
from xegpu_py.passes.xegpu_to_visa.lowering import Lowering, result_of, rule
from xegpu_py.passes.xegpu_to_visa.register_values import Combine, combiner, dense, from_numbers, iota
from xegpu_py.visa.program import (
    HORIZONTAL_STRIDES,
    VERTICAL_STRIDES,
    WIDTHS,
    Destination,
    Flag,
    Predicate,
    Region,
    strides_of,
)

NEEDS_EXPANSION = "xegpu-expand-arith chooses among all parts"

Order = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def gather(low: Lowering, source: Reg, order: Order, into: Reg | None = None) -> Reg:
    """Gather the numbers at the positions `order` of a source, with few moves by means of regions."""
    # A list is faster than numpy for so few numbers.
    flat: list[int] = order.ravel().tolist()
    count = len(flat)
    if into is None and count and flat == list(range(flat[0], flat[0] + count)):
        return source.part(flat[0], count)
    result = into or low.emit.reg(source.type, count)
    at = 0
    while at < count:
        lanes, regions = _moves(low, source, result, flat, at)
        step = len(regions)
        raw = low.emit.as_unsigned(source), low.emit.as_unsigned(result)
        for phase, (vstride, width, hstride) in enumerate(regions):
            of, to, place, stride = source, result, at, 1
            if step > 1:
                of, to, place, stride = *raw, at + phase, step
            if step > 1 and phase == 0:
                # This move writes zeros between its numbers, so that nothing of the registers' old value is kept.
                to, place, stride = low.emit.as_type(result, _WIDER[source.format.bytes * step]), at // step, 1
            low.emit.emit(
                "mov",
                lanes,
                dst=Destination(to.var, *low.emit.place_of(to, place), stride),
                src0=Region(of.var, *low.emit.place_of(of, flat[at + phase]), vstride, width, hstride),
            )
        at += lanes * step
    return result


_Strides = tuple[int, int, int]
"""The vertical stride, the width and the horizontal stride of a region."""

_WIDER = {2: "uw", 4: "ud"}

_MANY = 8
"""The lanes of a move that need not become more by results with strides."""


def _moves(low: Lowering, source: Reg, result: Reg, flat: list[int], at: int) -> tuple[int, list[_Strides]]:
    """The moves of most lanes that write the numbers from `at` on: the lanes, and the source region of each move.

    Two or four moves write every second or every fourth number each, as in VNNI form.
    """
    lanes, region = _region(low, source, result, flat, at)
    best = lanes, [region]
    for step in (2, 4):
        fits = at + _MANY * step <= len(flat) and source.format.bytes * step in _WIDER
        if lanes < _MANY and fits and (result.first + at) % step == 0:
            least = min(_region(low, source, result, flat, at + phase, step)[0] for phase in range(step))
            if least > best[0]:
                best = least, [_region(low, source, result, flat, at + i, step, least)[1] for i in range(step)]
    return best


def _region(
    low: Lowering, source: Reg, result: Reg, flat: list[int], at: int, step: int = 1, most: int = 32
) -> tuple[int, _Strides]:
    """The most lanes that one move can read from `flat[at]` on, every `step`-th number, and its source region."""
    grf, size = low.target.grf_bytes, source.format.bytes
    lanes = min(most, 1 << len(range(at, len(flat), step)).bit_length() - 1)
    while lanes > 1:
        positions = flat[at : at + lanes * step : step]
        lowest, highest = min(positions), max(positions)
        first, last = (source.first + lowest) * size, (source.first + highest + 1) * size - 1
        to_first, to_last = (result.first + at) * size, (result.first + at + (lanes - 1) * step + 1) * size - 1
        near = last // grf - first // grf < 2 and to_last // grf - to_first // grf < 2
        if near and positions[0] == lowest and (region := strides_of([p - lowest for p in positions])):
            vstride, width, hstride = region
            if vstride in VERTICAL_STRIDES and width in WIDTHS and hstride in HORIZONTAL_STRIDES:
                return lanes, region
        lanes //= 2
    return 1, (0, 1, 0)


def _reorder(low: Lowering, op: ir.Operation, order: Order) -> Value:
    """The operand's elements at these positions."""
    source = low.value(op.operands[0])
    if isinstance(source, Const):
        return Const(source.bits, source.type, order.size)
    if isinstance(source, KnownMask):
        return KnownMask(source.value, order.size)
    if isinstance(source, Mask):
        return _reorder_mask(low, source, order)
    bits = narrow_bits(shape_and_element(op.operands[0])[1])
    if bits:
        held = low.emit.as_type(low.emit.in_registers(low.numbers(op.operands[0])), "ub")
        return gather(low, held, _bytes_of(low, order, 8 // bits))
    return gather(low, low.reg(op.operands[0]), order)


def _bytes_of(low: Lowering, order: Order, count: int) -> Order:
    """The positions of bytes that hold `count` elements each, from those of the elements."""
    groups = order.ravel()[: order.size // count * count].reshape(-1, count)
    stay = np.array_equal(groups, groups[:, :1] + np.arange(count))
    if order.size % count or (groups[:, 0] % count).any() or not stay:
        low.fail(f"moves parts of bytes, of which each has {count} elements")
    return groups[:, 0] // count


def _reorder_mask(low: Lowering, mask: Mask, order: Order) -> Mask:
    """Reorder truth values: whole predicates, or by way of numbers."""
    if np.array_equal(order.ravel(), np.arange(mask.count)):
        return mask
    if order.size % MASK_LANES == 0:
        rows = order.reshape(-1, MASK_LANES)
        if not (rows[:, 0] % MASK_LANES).any() and (rows == rows[:, :1] + np.arange(MASK_LANES)).all():
            return Mask(tuple(mask.predicates[first // MASK_LANES] for first in rows[:, 0]), order.size)
    return _truth(low, gather(low, _choose(low, mask), order))


def _choose(low: Lowering, mask: Mask) -> Reg:
    return low.emit.choose(mask, "w", mask.count, const(1, "w"), const(0, "w"))


def _truth(low: Lowering, numbers: Numbers) -> Mask:
    return low.emit.compare("ne", numbers.count, low.emit.in_registers(numbers), const(0, "w"))


def _numbers(low: Lowering, value: ir.Value) -> Numbers:
    """The numbers of an SSA value; truth values become 1 and 0, w."""
    found = low.value(value)
    if isinstance(found, KnownMask):
        return const(int(found.value), "w", found.count)
    return _choose(low, found) if isinstance(found, Mask) else low.numbers(value)


def _registers(low: Lowering, value: ir.Value) -> Reg:
    """The same numbers in registers, one for each element."""
    if isinstance(low.value(value), (Mask, KnownMask)):
        return low.emit.spread(low.emit.in_registers(_numbers(low, value)), math.prod(shape_of(value)))
    return low.reg(value)


def _give(low: Lowering, op: ir.Operation, *numbers: Numbers) -> None:
    """Set an op's result; truth values are given as numbers, where non-zero is true."""
    for result, found in zip(op.results, numbers):
        is_mask = shape_and_element(result)[1] == "i1"
        low.values[result] = _truth(low, found) if is_mask else found


@rule("vector.shape_cast")
def shape_cast(low: Lowering, op: ir.Operation) -> Value:
    """The same registers."""
    return low.value(op.operands[0])


@rule("vector.bitcast")
def bitcast(low: Lowering, op: ir.Operation) -> Value:
    """The same registers as another type; the first truth value is the lowest bit.

    Elements of 2 and 4 bits stay packed in bytes.
    """
    if bit_width(shape_and_element(op.results[0])[1]) in (2, 4):
        return low.reg(op.operands[0])
    count, _, name = result_of(low, op)
    value = low.value(op.operands[0])
    if not name and isinstance(value, (Mask, KnownMask)):
        return value
    if not name:
        return _mask_of_bits(low, low.reg(op.operands[0]), count)
    if isinstance(value, (Mask, KnownMask)):
        bits = _bits_of_mask(low, low.mask(op.operands[0]))
        return Reg(low.emit.as_type(bits, name).var, 0, count)
    found = low.emit.as_type(low.reg(op.operands[0]), name)
    return found.part(0, count) if isinstance(found, Reg) else found


def _bits_of_mask(low: Lowering, mask: Mask) -> Reg:
    """Pack truth values into words, one bit each."""
    words = low.emit.whole("uw", len(mask.predicates))
    for i, predicate in enumerate(mask.predicates):
        low.emit.emit("mov", dst=low.emit.destination(words, i), src0=Flag(predicate))
    return words


def _mask_of_bits(low: Lowering, numbers: Reg, count: int) -> Mask:
    """The bits of numbers as truth values."""
    bits = low.emit.whole("uw", -(-count // MASK_LANES))
    held = low.emit.as_type(bits, numbers.type)
    low.emit.apply("mov", numbers.type, numbers.count, numbers, into=Reg(held.var, 0, numbers.count))
    result = low.emit.mask(count)
    for i, predicate in enumerate(result.predicates):
        low.emit.emit("setp", predicate.count, dst=Flag(predicate), src0=low.emit.source(Reg(bits.var, i, 1), 0))
    return result


@rule(*VIEWS)
def viewed(low: Lowering, op: ir.Operation) -> Value | None:
    """Elements of the operand, reordered or repeated."""
    if len(op.operands) > 1:
        low.fail("requires constant positions", NEEDS_EXPANSION)
    value, count = low.value(op.operands[0]), math.prod(shape_of(op.results[0]))
    if isinstance(value, Reg) and value.count == 1 and count > 1:
        return Splat(value, count)
    return _reorder(low, op, positions(op))


@rule("vector.insert", "vector.insert_strided_slice")
def insert(low: Lowering, op: ir.Operation) -> None:
    """A vector with an element, or all elements of a part, replaced."""
    if len(op.operands) > 2:
        low.fail("requires constant positions", NEEDS_EXPANSION)
    _insert(low, op, np.flatnonzero(positions(op) < math.prod(shape_of(op.operands[0]))))


def _insert(low: Lowering, op: ir.Operation, places: Order) -> None:
    count, _, name = result_of(low, op)
    name = name or "w"
    old = _numbers(low, op.operands[1])
    result = Reg(low.emit.variable(name, old.var.count if isinstance(old, Reg) and is_whole(old) else count), 0, count)
    if (made := defining_op(op.operands[1])) is None or made.name != "ub.poison":
        if isinstance(old, Const) and name == INDEX:
            old = low.typed(old, name)
        low.emit.copy(result, old if isinstance(old, Const) or old.count == count else low.emit.spread(old, count))
    value = _numbers(low, op.operands[0])
    at = 0
    while at < len(places):
        run = 1
        while at + run < len(places) and places[at + run] == places[at] + run:
            run += 1
        part = value if isinstance(value, Const) or value.count == 1 else value.part(at, run)
        low.emit.apply("mov", name, run, part, into=Reg(result.var, int(places[at]), run))
        at += run
    if _is_joined_further(op):
        # The words of a mask become a predicate when all its parts are there: parts that are missing must not be read.
        low.replace(op, result)
    else:
        _give(low, op, result)


def _is_joined_further(op: ir.Operation) -> bool:
    """Whether the only use of an insertion's result is as the vector that another one inserts into."""
    uses = list(op.results[0].uses)
    return (
        len(uses) == 1
        and uses[0].owner.name in ("vector.insert", "vector.insert_strided_slice")
        and uses[0].operand_number == 1
    )


@rule("ub.poison")
def poison(low: Lowering, op: ir.Operation) -> Value:
    """Poison; zeros if an instruction reads it."""
    if is_handle(str(op.results[0].type)):
        return Undefined()
    count, _, name = result_of(low, op)
    return Const(0, name, count) if name else KnownMask(False, count)


@rule("vector.shuffle")
def shuffle(low: Lowering, op: ir.Operation) -> Value | None:
    """Rows of two vectors, chosen."""
    (a, b), order = op.operands, positions(op).ravel()
    size = math.prod(shape_of(a))
    if a == b or order.max() < size:
        return _reorder(low, op, order % size)
    sources = [_registers(low, a), _registers(low, b)]
    result = low.emit.reg(result_of(low, op)[2] or "w", len(order))
    for first, end in itertools.pairwise([0, *np.flatnonzero(np.diff(order >= size)) + 1, len(order)]):
        of_b = int(order[first] >= size)
        gather(low, sources[of_b], order[first:end] - of_b * size, into=Reg(result.var, int(first), int(end - first)))
    _give(low, op, result)
    return None


@rule("vector.interleave")
def interleave(low: Lowering, op: ir.Operation) -> None:
    """Alternating elements of two vectors: the first of each, then the second of each."""
    count, _, name = result_of(low, op)
    result = low.emit.reg(name or "w", count)
    # A destination of type df cannot be strided; uq moves the same bits.
    bits = "uq" if name == "df" else result.type
    for phase, operand in enumerate(op.operands):
        _spaced(low, low.emit.as_type(_registers(low, operand), bits), low.emit.as_type(result, bits), phase)
    _give(low, op, result)


def _spaced(low: Lowering, source: Reg, result: Reg, phase: int) -> None:
    """Copy a source's numbers to every second element of a result."""
    grf, size = low.target.grf_bytes, source.format.bytes
    at = 0
    while at < source.count:
        lanes = 1 << min(source.count - at, 16).bit_length() - 1
        while lanes > 1:
            first, last = (
                (result.first + 2 * at + phase) * size,
                (result.first + 2 * (at + lanes) + phase - 1) * size - 1,
            )
            if last // grf - first // grf < 2:
                break
            lanes //= 2
        row, col = low.emit.place_of(result, 2 * at + phase)
        low.emit.emit(
            "mov", lanes, dst=Destination(result.var, row, col, 2 if lanes > 1 else 1), src0=low.emit.source(source, at)
        )
        at += lanes


@rule("vector.deinterleave")
def deinterleave(low: Lowering, op: ir.Operation) -> None:
    """Even and odd elements."""
    source = _registers(low, op.operands[0])
    _give(low, op, *(gather(low, source, order) for order in positions(op)))


@rule("vector.from_elements")
def from_elements(low: Lowering, op: ir.Operation) -> None:
    """Copy scalars side by side."""
    name = result_of(low, op)[2]
    numbers = [_numbers(low, v) for v in op.operands]
    _give(low, op, from_numbers(low.emit, [low.typed(n, name) if name == INDEX else n for n in numbers]))


@rule("vector.to_elements")
def to_elements(low: Lowering, op: ir.Operation) -> None:
    """Each element."""
    source = _registers(low, op.operands[0])
    _give(low, op, *(source.part(i, 1) for i in range(source.count)))


@rule("vector.step")
def step(low: Lowering, op: ir.Operation) -> Value:
    """0, 1, 2 and so on."""
    return iota(result_of(low, op)[0])


@rule("vector.create_mask", "vector.constant_mask")
def create_mask(low: Lowering, op: ir.Operation) -> Value:
    """True where every index is below its bound."""
    shape = shape_of(op.results[0])
    count = math.prod(shape)
    if op.name == "vector.constant_mask":
        bounds: list[Numbers] = [low.index(n) for n in integers(op.attributes["mask_dim_sizes"])]
    else:
        bounds = [low.clamped(low.numbers(v)) for v in op.operands]
    found: Mask | None = None
    for d, bound in enumerate(bounds):
        if isinstance(bound, Const) and bound.value >= shape[d]:
            continue
        index = np.broadcast_to(np.arange(shape[d]).reshape([-1 if i == d else 1 for i in range(len(shape))]), shape)
        mask = _below(low, index.ravel(), bound)
        found = mask if found is None else low.emit.flags("and", count, found, mask)
    return found or KnownMask(True, count)


def _below(low: Lowering, indices: Order, bound: Numbers) -> Mask:
    """True where an index is below a bound. Lanes of the same indices have the same predicate."""
    emit, found = low.emit, list[Predicate]()
    most = int(indices.max()) + 1

    def compared(some: Order) -> Mask:
        if isinstance(bound, Reg) and some.min() == some.max():
            return emit.compare("gt", some.size, bound, const(int(some[0]), NARROW))
        held = emit.once(
            ("index", most, some.tobytes()), lambda: gather(low, dense(low.emit, iota(most).numbers), some)
        )
        return emit.compare("lt", some.size, held, bound)

    for at in range(0, indices.size, MASK_LANES):
        some = indices[at : at + MASK_LANES]
        found += emit.once(("below", some.tobytes(), bound), partial(compared, some), hoists=False).predicates
    return Mask(tuple(found), indices.size)


@rule("vector.fma", "math.fma")
def fma(low: Lowering, op: ir.Operation) -> Value:
    """Fused multiply-add, rounded once."""
    count, _, name = result_of(low, op)
    return low.emit.apply("mad", name, count, *(low.emit.in_registers(low.numbers(v)) for v in op.operands))


def _reduce(low: Lowering, rows: Reg, count: int, each: int, combine: Combine) -> Reg:
    """Combine `count` groups of `each` contiguous numbers by halves."""
    while count > 1:
        half = count // 2
        joined = combine(rows.part(0, half * each), rows.part(half * each, half * each))
        if count % 2:
            last = rows.part(2 * half * each, each)
            first = combine(joined.part(0, each), last)
            if half == 1:
                joined = first
            else:
                low.emit.apply("mov", first.type, each, first, into=joined.part(0, each))
        rows, count = joined, half
    return rows


def _working(low: Lowering, source: Reg, name: str) -> Reg:
    """Convert numbers to the type in which a reduction to type `name` is computed."""
    return low.emit.in_registers(source, {"bf": "f", "d": name}.get(source.type, ""))


@rule("vector.reduction")
def reduction(low: Lowering, op: ir.Operation) -> Value:
    """Reduce all elements to one by halves: first element i with element i + n/2."""
    count = math.prod(shape_of(op.operands[0]))
    _, _, name = result_of(low, op)
    value = low.value(op.operands[0])
    if isinstance(value, (Mask, KnownMask)):
        return _reduce_mask(low, op, value)
    source = _working(low, low.reg(op.operands[0]), name)
    combine = combiner(low.emit, CombiningKind.of(op), source.type)
    found = _reduce(low, source, count, 1, combine)
    if len(op.operands) > 1:
        acc = low.emit.in_registers(low.numbers(op.operands[1]), source.type)
        found = combine(acc, found)
    return low.emit.in_registers(found, name)


_MASK_KINDS = {"maxui": "or", "minsi": "or", "add": "xor", "minui": "and", "maxsi": "and", "mul": "and"}
"""The logic operation of each arithmetic kind on truth values, where true is 1 unsigned and -1 signed."""


def _mask_kind(low: Lowering, op: ir.Operation) -> str:
    """The logic instruction for a reduction of truth values."""
    kind = CombiningKind.of(op).value
    found = _MASK_KINDS.get(kind, kind)
    if found not in ("or", "and", "xor"):
        low.fail(f"of kind {kind} is not supported for i1")
    return found


def _reduce_mask(low: Lowering, op: ir.Operation, value: Mask | KnownMask) -> Mask | KnownMask:
    """Reduce all truth values to one."""
    kind = _mask_kind(low, op)
    emit = low.emit
    if isinstance(value, KnownMask):
        found: Mask | KnownMask = KnownMask(value.value and (kind != "xor" or value.count % 2 == 1))
    elif kind == "xor" or value.count % MASK_LANES not in (0, value.predicates[-1].count):
        numbers = emit.choose(value, "w", value.count, const(1, "w"), const(0, "w"))
        one = _reduce(low, numbers, value.count, 1, combiner(low.emit, CombiningKind(kind), "w"))
        found = emit.compare("ne", 1, one, const(0, "w"))
    else:
        joined, *others = (Mask((p,), p.count) for p in value.predicates)
        for other in others:
            joined = emit.flags(kind, other.count, joined, other)
        found = emit.test(joined, "any" if kind == "or" else "all")
    if len(op.operands) > 1:
        acc = low.value(op.operands[1])
        assert isinstance(acc, (Mask, KnownMask))
        both = [emit.set_flags(m) if isinstance(m, KnownMask) else m for m in (acc, found)]
        found = emit.flags(kind, 1, *both)
    return found


@rule("vector.multi_reduction")
def multi_reduction(low: Lowering, op: ir.Operation) -> Value:
    """Reduce some dimensions."""
    shape = shape_of(op.operands[0])
    dims = integers(op.attributes["reduction_dims"])
    kept = [d for d in range(len(shape)) if d not in dims]
    count, _, name = result_of(low, op)
    groups = math.prod(shape[d] for d in dims)
    order = np.arange(math.prod(shape)).reshape(shape).transpose([*dims, *kept])
    if not name:
        return _multi_reduce_mask(low, op, order.reshape(groups, count))
    source = _working(low, gather(low, low.reg(op.operands[0]), order), name)
    combine = combiner(low.emit, CombiningKind.of(op), source.type)
    found = _reduce(low, source, groups, count, combine)
    found = combine(low.emit.in_registers(low.numbers(op.operands[1]), source.type), found)
    return low.emit.in_registers(found, name)


def _multi_reduce_mask(low: Lowering, op: ir.Operation, order: Order) -> Mask:
    """Reduce truth values along the first dimension of `order`, with the accumulator."""
    groups, count = order.shape
    kind = _mask_kind(low, op)
    rows = gather(low, _registers(low, op.operands[0]), order)
    found = _truth(low, _reduce(low, rows, groups, count, combiner(low.emit, CombiningKind(kind), "w")))
    return low.emit.flags(kind, count, found, low.mask(op.operands[1]))
