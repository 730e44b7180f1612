"""`vector`: casts of shapes emit nothing; ops that reorder elements become moves."""

from __future__ import annotations

import itertools
import math
from functools import partial, reduce

import numpy as np
from mlir import ir
from msgspec import Struct

from xegpu_py.ir.builtin import CombiningKind, bit_width
from xegpu_py.ir.element_movement import VIEWS, positions
from xegpu_py.passes.analysis.ir_queries import INDEX, defining_op, integers, narrow_bits, shape_and_element, shape_of
from xegpu_py.passes.xegpu_to_visa.arith_expansion import Combine, combiner, constants_in_registers, from_numbers, iota
from xegpu_py.passes.xegpu_to_visa.lowering import Lowering, result_of, vc_lowering_rule
from xegpu_py.passes.xegpu_to_visa.register_values import (
    MASK_LANES,
    NARROW,
    Const,
    KnownMask,
    Mask,
    Numbers,
    Reg,
    Splat,
    UndefinedHandle,
    Value,
    const,
    is_handle,
    is_whole_variable,
)
from xegpu_py.visa.operands import (
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
        return source.slice(flat[0], count)
    result = into or low.emit.reg(source.type, count)
    plan = _GatherPlan(low.target.grf_bytes, source.format.bytes, source.first, result.first, flat)
    moves = plan.moves()
    target, paired = result, plan.paired()
    if paired is not None and _number_of(pair_moves := paired.moves()) < _number_of(moves):
        plan, moves = paired, pair_moves
        source, target = (low.emit.as_type(r, _UNSIGNED[paired.size]) for r in (source, result))
    start = 0
    for lanes, regions in moves:
        step = len(regions)
        wide = _UNSIGNED.get(source.format.bytes * step)
        raw = low.emit.as_unsigned(source), low.emit.as_unsigned(target)
        for phase, (vstride, width, hstride) in enumerate(regions):
            from_reg, to_reg, index, stride = source, target, start, 1
            if step > 1:
                from_reg, to_reg, index, stride = *raw, start + phase, step
            if step > 1 and phase == 0 and wide is not None:
                # This move writes zeros between its numbers, so that it overwrites the registers' old value completely.
                to_reg, index, stride = low.emit.as_type(target, wide), start // step, 1
            at = low.emit.register_and_element(from_reg, plan.order[start + phase])
            low.emit.emit(
                "mov",
                lanes,
                dst=Destination(to_reg.var, *low.emit.register_and_element(to_reg, index), stride),
                src0=Region(from_reg.var, *at, vstride, width, hstride),
            )
        start += lanes * step
    return result


_Strides = tuple[int, int, int]
"""The vertical stride, the width and the horizontal stride of a region."""

_UNSIGNED = {2: "uw", 4: "ud", 8: "uq"}
"""The unsigned type of a size in bytes."""

_Moves = list[tuple[int, list[_Strides]]]
"""The lanes of moves, and the source region of each move that writes every second or fourth number."""

_MOST_BYTES = 16
"""The most bytes from one number that a move writes to the next."""

_MANY = 8
"""A move of this many lanes is not replaced by moves with strided results."""


class _GatherPlan(Struct):
    """The numbers that moves gather, and where they stand.

    Attributes:
        grf: the bytes of a register.
        size: the bytes of a number.
        first: the number of the source's variable at which the source begins.
        to_first: the same of the result.
        order: the numbers of the source.
    """

    grf: int
    size: int
    first: int
    to_first: int
    order: list[int]

    def paired(self) -> _GatherPlan | None:
        """The same with pairs of numbers as wider ones; None if it moves the numbers of a pair to different places."""
        order, wider = self.order, 2 * self.size
        starts = (len(order), self.first, self.to_first, *order[::2])
        if wider not in _UNSIGNED or any(n % 2 for n in starts):
            return None
        if any(b != a + 1 for a, b in zip(order[::2], order[1::2])):
            return None
        return _GatherPlan(self.grf, wider, self.first // 2, self.to_first // 2, [n // 2 for n in order[::2]])

    def moves(self) -> _Moves:
        """The fewest moves, in order."""
        moves: _Moves = []
        start = 0
        while start < len(self.order):
            lanes, regions = self._best_moves(start)
            moves.append((lanes, regions))
            start += lanes * len(regions)
        return moves

    def _best_moves(self, at: int) -> tuple[int, list[_Strides]]:
        """The moves of most lanes that write the numbers from `at` on: the lanes, and the source region of each move.

        Two or four moves write every second or every fourth number each, as in VNNI form.
        """
        lanes, region = self._region(at)
        best = lanes, [region]
        for step in (2, 4):
            fits = at + _MANY * step <= len(self.order) and self.size * step <= _MOST_BYTES
            if lanes < _MANY and fits and self.to_first % step == at % step == 0:
                least = min(self._region(at + phase, step)[0] for phase in range(step))
                if least > best[0]:
                    best = least, [self._region(at + i, step, least)[1] for i in range(step)]
        return best

    def _region(self, at: int, step: int = 1, most: int = 32) -> tuple[int, _Strides]:
        """The most lanes that one move can read from `at` on, every `step`-th number, and its source region."""
        grf, size = self.grf, self.size
        lanes = min(most, 1 << len(range(at, len(self.order), step)).bit_length() - 1)
        while lanes > 1:
            positions = self.order[at : at + lanes * step : step]
            lowest, highest = min(positions), max(positions)
            first, last = (self.first + lowest) * size, (self.first + highest + 1) * size - 1
            to_first, to_last = (self.to_first + at) * size, (self.to_first + at + (lanes - 1) * step + 1) * size - 1
            near = last // grf - first // grf < 2 and to_last // grf - to_first // grf < 2
            if near and positions[0] == lowest and (region := strides_of([p - lowest for p in positions])):
                vstride, width, hstride = region
                if vstride in VERTICAL_STRIDES and width in WIDTHS and hstride in HORIZONTAL_STRIDES:
                    return lanes, region
            lanes //= 2
        return 1, (0, 1, 0)


def _number_of(moves: _Moves) -> int:
    return sum(len(regions) for _, regions in moves)


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
        packed_bytes = low.emit.as_type(low.emit.in_registers(low.numbers(op.operands[0])), "ub")
        return gather(low, packed_bytes, _byte_positions(low, order, 8 // bits))
    return gather(low, low.reg(op.operands[0]), order)


def _byte_positions(low: Lowering, order: Order, count: int) -> Order:
    """Convert positions of elements to positions of bytes, of which each contains `count` elements."""
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
    return _nonzero_mask(low, gather(low, _mask_as_words(low, mask), order))


def _mask_as_words(low: Lowering, mask: Mask) -> Reg:
    return low.emit.select(mask, "w", mask.count, const(1, "w"), const(0, "w"))


def _nonzero_mask(low: Lowering, numbers: Numbers) -> Mask:
    return low.emit.compare("ne", numbers.count, low.emit.in_registers(numbers), const(0, "w"))


def _numbers_of(low: Lowering, value: ir.Value) -> Numbers:
    """The numbers of an SSA value; truth values become 1 and 0, w."""
    operand = low.value(value)
    if isinstance(operand, KnownMask):
        return const(int(operand.value), "w", operand.count)
    return _mask_as_words(low, operand) if isinstance(operand, Mask) else low.numbers(value)


def _registers(low: Lowering, value: ir.Value) -> Reg:
    """The same numbers in registers, one for each element."""
    if isinstance(low.value(value), (Mask, KnownMask)):
        return low.emit.broadcast(low.emit.in_registers(_numbers_of(low, value)), math.prod(shape_of(value)))
    return low.reg(value)


def _set_results(low: Lowering, op: ir.Operation, *numbers: Numbers) -> None:
    for result, number in zip(op.results, numbers):
        is_mask = shape_and_element(result)[1] == "i1"
        low.values[result] = _nonzero_mask(low, number) if is_mask else number


@vc_lowering_rule("vector.shape_cast")
def shape_cast(low: Lowering, op: ir.Operation) -> Value:
    """The same registers."""
    return low.value(op.operands[0])


@vc_lowering_rule("vector.bitcast")
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
    registers = low.emit.as_type(low.reg(op.operands[0]), name)
    return registers.slice(0, count) if isinstance(registers, Reg) else registers


def _bits_of_mask(low: Lowering, mask: Mask) -> Reg:
    """Pack truth values into words, one bit each."""
    words = low.emit.grf_reg("uw", len(mask.predicates))
    for i, predicate in enumerate(mask.predicates):
        low.emit.emit("mov", dst=low.emit.destination(words, i), src0=Flag(predicate))
    return words


def _mask_of_bits(low: Lowering, numbers: Reg, count: int) -> Mask:
    """The bits of numbers as truth values."""
    bits = low.emit.grf_reg("uw", -(-count // MASK_LANES))
    words = low.emit.as_type(bits, numbers.type)
    low.emit.apply("mov", numbers.type, numbers.count, numbers, into=Reg(words.var, 0, numbers.count))
    result = low.emit.mask(count)
    for i, predicate in enumerate(result.predicates):
        low.emit.emit("setp", predicate.count, dst=Flag(predicate), src0=low.emit.source(Reg(bits.var, i, 1), 0))
    return result


@vc_lowering_rule(*VIEWS)
def extract_or_broadcast(low: Lowering, op: ir.Operation) -> Value | None:
    """Elements of the operand, reordered or repeated."""
    if len(op.operands) > 1:
        low.fail("requires constant positions", NEEDS_EXPANSION)
    value, count = low.value(op.operands[0]), math.prod(shape_of(op.results[0]))
    if isinstance(value, Reg) and value.count == 1 and count > 1:
        return Splat(value, count)
    return _reorder(low, op, positions(op))


@vc_lowering_rule("vector.insert", "vector.insert_strided_slice")
def insert(low: Lowering, op: ir.Operation) -> None:
    """A vector with an element, or all elements of a part, replaced."""
    if len(op.operands) > 2:
        low.fail("requires constant positions", NEEDS_EXPANSION)
    _insert(low, op, np.flatnonzero(positions(op) < math.prod(shape_of(op.operands[0]))))


def _insert(low: Lowering, op: ir.Operation, positions_: Order) -> None:
    count, _, name = result_of(low, op)
    name = name or "w"
    old = _numbers_of(low, op.operands[1])
    result = Reg(
        low.emit.variable(name, old.var.count if isinstance(old, Reg) and is_whole_variable(old) else count), 0, count
    )
    if (definition := defining_op(op.operands[1])) is None or definition.name != "ub.poison":
        if isinstance(old, Const) and name == INDEX:
            old = low.cast(old, name)
        low.emit.copy(result, old if isinstance(old, Const) or old.count == count else low.emit.broadcast(old, count))
    value = _numbers_of(low, op.operands[0])
    start = 0
    while start < len(positions_):
        run = 1
        while start + run < len(positions_) and positions_[start + run] == positions_[start] + run:
            run += 1
        part = value if isinstance(value, Const) or value.count == 1 else value.slice(start, run)
        low.emit.apply("mov", name, run, part, into=Reg(result.var, int(positions_[start]), run))
        start += run
    if _is_joined_further(op):
        # The words of a mask become a predicate after the last insertion: missing parts must not be read.
        low.replace(op, result)
    else:
        _set_results(low, op, result)


def _is_joined_further(op: ir.Operation) -> bool:
    """Return whether the only use of an insertion's result is as the vector that another one inserts into."""
    uses = list(op.results[0].uses)
    return (
        len(uses) == 1
        and uses[0].owner.name in ("vector.insert", "vector.insert_strided_slice")
        and uses[0].operand_number == 1
    )


@vc_lowering_rule("ub.poison")
def poison(low: Lowering, op: ir.Operation) -> Value:
    """Poison; zeros if an instruction reads it."""
    if is_handle(str(op.results[0].type)):
        return UndefinedHandle()
    count, _, name = result_of(low, op)
    return Const(0, name, count) if name else KnownMask(False, count)


@vc_lowering_rule("vector.shuffle")
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
    _set_results(low, op, result)
    return None


@vc_lowering_rule("vector.interleave")
def interleave(low: Lowering, op: ir.Operation) -> None:
    """Alternating elements of two vectors: the first of each, then the second of each."""
    count, _, name = result_of(low, op)
    result = low.emit.reg(name or "w", count)
    # A destination of type df cannot be strided; uq moves the same bits.
    bits = "uq" if name == "df" else result.type
    for phase, operand in enumerate(op.operands):
        _interleave_operand(
            low, low.emit.as_type(_registers(low, operand), bits), low.emit.as_type(result, bits), phase
        )
    _set_results(low, op, result)


def _interleave_operand(low: Lowering, source: Reg, result: Reg, phase: int) -> None:
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
        row, col = low.emit.register_and_element(result, 2 * at + phase)
        low.emit.emit(
            "mov", lanes, dst=Destination(result.var, row, col, 2 if lanes > 1 else 1), src0=low.emit.source(source, at)
        )
        at += lanes


@vc_lowering_rule("vector.deinterleave")
def deinterleave(low: Lowering, op: ir.Operation) -> None:
    """Even and odd elements."""
    source = _registers(low, op.operands[0])
    _set_results(low, op, *(gather(low, source, order) for order in positions(op)))


@vc_lowering_rule("vector.from_elements")
def from_elements(low: Lowering, op: ir.Operation) -> None:
    """Copy scalars side by side."""
    name = result_of(low, op)[2]
    numbers = [_numbers_of(low, v) for v in op.operands]
    _set_results(low, op, from_numbers(low.emit, [low.cast(n, name) if name == INDEX else n for n in numbers]))


@vc_lowering_rule("vector.to_elements")
def to_elements(low: Lowering, op: ir.Operation) -> None:
    """Each element."""
    source = _registers(low, op.operands[0])
    _set_results(low, op, *(source.slice(i, 1) for i in range(source.count)))


@vc_lowering_rule("vector.step")
def step(low: Lowering, op: ir.Operation) -> Value:
    """0, 1, 2 and so on."""
    return iota(result_of(low, op)[0])


@vc_lowering_rule("vector.create_mask", "vector.constant_mask")
def create_mask(low: Lowering, op: ir.Operation) -> Value:
    """True where every index is below its bound."""
    shape = shape_of(op.results[0])
    count = math.prod(shape)
    if op.name == "vector.constant_mask":
        bounds: list[Numbers] = [low.index(n) for n in integers(op.attributes["mask_dim_sizes"])]
    else:
        bounds = [low.clamp_to_32_bits(low.numbers(v)) for v in op.operands]
    mask_of_all: Mask | None = None
    for d, bound in enumerate(bounds):
        if isinstance(bound, Const) and bound.value >= shape[d]:
            continue
        index = np.broadcast_to(np.arange(shape[d]).reshape([-1 if i == d else 1 for i in range(len(shape))]), shape)
        mask = _below_mask(low, index.ravel(), bound)
        mask_of_all = mask if mask_of_all is None else low.emit.flags("and", count, mask_of_all, mask)
    return mask_of_all or KnownMask(True, count)


def _below_mask(low: Lowering, indices: Order, bound: Numbers) -> Mask:
    """True where an index is below a bound. Lanes of the same indices have the same predicate."""
    emit, predicates = low.emit, list[Predicate]()
    most = int(indices.max()) + 1

    def compared(lane_indices: Order) -> Mask:
        if isinstance(bound, Reg) and lane_indices.min() == lane_indices.max():
            return emit.compare("gt", lane_indices.size, bound, const(int(lane_indices[0]), NARROW))
        index_vector = emit.memoized(
            ("index", most, lane_indices.tobytes()),
            lambda: gather(low, constants_in_registers(low.emit, iota(most).numbers), lane_indices),
        )
        return emit.compare("lt", lane_indices.size, index_vector, bound)

    for at in range(0, indices.size, MASK_LANES):
        lane_indices = indices[at : at + MASK_LANES]
        predicates += emit.memoized(
            ("below", lane_indices.tobytes(), bound), partial(compared, lane_indices), hoists=False
        ).predicates
    return Mask(tuple(predicates), indices.size)


@vc_lowering_rule("vector.fma", "math.fma")
def fma(low: Lowering, op: ir.Operation) -> Value:
    """Fused multiply-add, rounded once."""
    count, _, name = result_of(low, op)
    return low.emit.apply("mad", name, count, *(low.emit.in_registers(low.numbers(v)) for v in op.operands))


def _reduce(low: Lowering, rows: Reg, count: int, each: int, combine: Combine) -> Reg:
    """Combine `count` groups of `each` contiguous numbers by halves."""
    while count > 1:
        half = count // 2
        halves = combine(rows.slice(0, half * each), rows.slice(half * each, half * each))
        if count % 2:
            last = rows.slice(2 * half * each, each)
            first = combine(halves.slice(0, each), last)
            if half == 1:
                halves = first
            else:
                low.emit.apply("mov", first.type, each, first, into=halves.slice(0, each))
        rows, count = halves, half
    return rows


def _reduce_in_order(rows: Reg, count: int, each: int, combine: Combine, start: Reg | None) -> Reg:
    """Combine `count` groups of `each` contiguous numbers by increasing index, beginning with `start`."""
    groups = [rows.slice(i * each, each) for i in range(count)]
    return reduce(combine, groups if start is None else [start, *groups])


def _to_accumulation_type(low: Lowering, source: Reg, name: str) -> Reg:
    return low.emit.in_registers(source, {"bf": "f", "d": name}.get(source.type, ""))


@vc_lowering_rule("vector.reduction")
def reduction(low: Lowering, op: ir.Operation) -> Value:
    """Reduce all elements to one by halves: first element i with element i + n/2."""
    count = math.prod(shape_of(op.operands[0]))
    _, _, name = result_of(low, op)
    value = low.value(op.operands[0])
    if isinstance(value, (Mask, KnownMask)):
        return _reduce_mask(low, op, value)
    source = _to_accumulation_type(low, low.reg(op.operands[0]), name)
    kind = CombiningKind.of(op)
    combine = combiner(low.emit, kind, source.type)
    acc = low.emit.in_registers(low.numbers(op.operands[1]), source.type) if len(op.operands) > 1 else None
    if kind.is_sequential(op):
        return low.emit.in_registers(_reduce_in_order(source, count, 1, combine, acc), name)
    result = _reduce(low, source, count, 1, combine)
    return low.emit.in_registers(result if acc is None else combine(acc, result), name)


_MASK_KINDS = {"maxui": "or", "minsi": "or", "add": "xor", "minui": "and", "maxsi": "and", "mul": "and"}
"""The logic operation of each arithmetic kind on truth values, where true is 1 unsigned and -1 signed."""


def _mask_kind(op: ir.Operation) -> str:
    """The logic instruction for a reduction of truth values."""
    kind = CombiningKind.of(op).value
    return _MASK_KINDS.get(kind, kind)


def _reduce_mask(low: Lowering, op: ir.Operation, value: Mask | KnownMask) -> Mask | KnownMask:
    """Reduce all truth values to one."""
    kind = _mask_kind(op)
    emit = low.emit
    if isinstance(value, KnownMask):
        result: Mask | KnownMask = KnownMask(value.value and (kind != "xor" or value.count % 2 == 1))
    elif kind == "xor" or value.count != len(value.predicates) * value.predicates[-1].count:
        # A predicate has lanes beyond the values, or fewer lanes than the others.
        numbers = emit.select(value, "w", value.count, const(1, "w"), const(0, "w"))
        parity = _reduce(low, numbers, value.count, 1, combiner(low.emit, CombiningKind(kind), "w"))
        result = emit.compare("ne", 1, parity, const(0, "w"))
    else:
        combined, *masks = (Mask((p,), p.count) for p in value.predicates)
        for next_mask in masks:
            combined = emit.flags(kind, next_mask.count, combined, next_mask)
        result = emit.any_or_all(combined, "any" if kind == "or" else "all")
    if len(op.operands) > 1:
        acc = low.value(op.operands[1])
        assert isinstance(acc, (Mask, KnownMask))
        both = [emit.set_flags(m) if isinstance(m, KnownMask) else m for m in (acc, result)]
        result = emit.flags(kind, 1, *both)
    return result


@vc_lowering_rule("vector.multi_reduction")
def multi_reduction(low: Lowering, op: ir.Operation) -> Value:
    """Reduce some dimensions."""
    shape = shape_of(op.operands[0])
    dims = integers(op.attributes["reduction_dims"])
    remaining = [d for d in range(len(shape)) if d not in dims]
    count, _, name = result_of(low, op)
    groups = math.prod(shape[d] for d in dims)
    order = np.arange(math.prod(shape)).reshape(shape).transpose([*dims, *remaining])
    if not name:
        return _multi_reduce_mask(low, op, order.reshape(groups, count))
    source = _to_accumulation_type(low, gather(low, low.reg(op.operands[0]), order), name)
    kind = CombiningKind.of(op)
    combine = combiner(low.emit, kind, source.type)
    acc = low.emit.in_registers(low.numbers(op.operands[1]), source.type)
    if kind.is_sequential(op):
        return low.emit.in_registers(_reduce_in_order(source, groups, count, combine, acc), name)
    return low.emit.in_registers(combine(acc, _reduce(low, source, groups, count, combine)), name)


def _multi_reduce_mask(low: Lowering, op: ir.Operation, order: Order) -> Mask:
    """Reduce truth values along the first dimension of `order`, with the accumulator."""
    groups, count = order.shape
    kind = _mask_kind(op)
    rows = gather(low, _registers(low, op.operands[0]), order)
    mask = _nonzero_mask(low, _reduce(low, rows, groups, count, combiner(low.emit, CombiningKind(kind), "w")))
    return low.emit.flags(kind, count, mask, low.mask(op.operands[1]))
