"""DPAS in the models `stage` and `exact`: exact sums of products, which are then rounded."""

from __future__ import annotations

from xegpu_py.engines.jit.code import PTR, Code, Value, vector
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.numbers import narrow, odd_sum, two_sum
from xegpu_py.engines.jit.products import Shape, accumulator, add_products, tiled
from xegpu_py.numerics.formats import PRECISIONS, TYPES

_F64_BITS = 53
_ROWS_AT_ONCE = 8
"""The number of rows of accumulators that each iteration of a loop computes."""
_LEAST, _MOST = -149, 70
"""The range of the exponent of a sum's unit: at least that of f32, and such that no sum overflows f32."""


def summer(name: str, shape: Shape, host: Host) -> str:
    """The function that adds in the models `stage` and `exact`: `shape.terms` products at a time are added exactly.

    The function takes pointers to accumulator, result, A and B; A and B are followed by an `Extent` each. It returns an
    i1: whether the result is correct. If not, the result is not written.

    If the accumulator and all products are multiples of a number that is not too small in comparison with them, sums in
    f64 are exact. Otherwise the rounding errors of the sums are added too. The function fails if the sums of these
    errors have rounding errors again.
    """
    code = host.function(name, [PTR] * 4, "i1")
    acc, dst, a, b = code.arguments
    before = [accumulator(code, shape, acc, r, 0, shape.columns) for r in range(shape.rows)]
    careful = code.label()
    code.go_on_if(_all_exact(code, shape, before, a, b), careful)
    if shape.terms < shape.depth:
        _exact_stages(code, shape, before, a, b, dst, host)
    else:
        _write(code, shape, _exact_sums(code, shape, acc, a, b, host), dst)
    code.ret(code.const(1, "i1"))
    code.begin(careful)
    sums, fine = _sums_with_errors(code, shape, before, a, b)
    out = code.label()
    code.go_on_if(fine, out)
    _write(code, shape, sums, dst)
    code.br(out)
    code.begin(out)
    code.ret(fine)
    return code.text()


def _write(code: Code, shape: Shape, places: list[Value], dst: Value) -> None:
    """Write the rows of the result, which are f32 in memory."""
    fmt = TYPES[shape.dst]
    for r, place in enumerate(places):
        total = code.load(place, vector(shape.columns, "f32"), 4)
        code.store(narrow(code, total, fmt), code.at(dst, r * shape.columns * fmt.bytes))


def _all_exact(code: Code, shape: Shape, before: list[Value], a: Value, b: Value) -> Value:
    """Whether no sum of the accumulator and products needs more bits than f64 has: an i1.

    All numbers are then multiples of 2**unit, and the sum of their magnitudes is below 2**(unit + 53). Rounding of
    intermediate sums to f32 preserves both properties.
    """
    a_end = code.at(a, shape.rows * shape.depth * shape.size)
    b_end = code.at(b, shape.depth * shape.columns * shape.size)
    (a_most, a_least), (b_most, b_least) = (
        [code.load(code.at(p, i), "i32", 4) for i in (0, 4)] for p in (a_end, b_end)
    )
    # 254 is twice the bias of f32.
    below = 254 + PRECISIONS[shape.A].mantissa + PRECISIONS[shape.W].mantissa
    unit = code.sub(code.add(a_least, b_least), code.const(below, "i32"))
    unit = code.intrinsic("smin", unit, code.const(_MOST, "i32"))
    fine = code.icmp("sge", unit, code.const(_LEAST, "i32"))
    # Neither infinity nor NaN.
    fine = code.and_(fine, code.icmp("slt", code.intrinsic("umax", a_most, b_most), 255))
    # Half of the range is for products, each below 2**(a_most + b_most - 252), and half for the accumulator.
    share = _F64_BITS - 2
    products = code.sub(code.add(a_most, b_most), code.const(252 - (shape.depth - 1).bit_length(), "i32"))
    fine = code.and_(fine, code.icmp("sle", products, code.add(unit, code.const(share, "i32"))))
    # All f32 numbers from 2**(unit + 23) on are multiples. Adding this number to smaller ones rounds them to multiples.
    bits = code.shl(code.add(unit, code.const(23 + 127, "i32")), 23)
    rounder = code.splat(code.cast("bitcast", bits, "f32"), shape.columns)
    none = code.const(0, vector(shape.columns, "i32"))
    greatest = lost = none
    for row in before:
        pattern = code.mask(code.cast("bitcast", row, "i32"), 0x7FFFFFFF)
        magnitude = code.cast("bitcast", pattern, "f32")
        kept = code.bin("fsub", code.bin("fadd", magnitude, rounder), rounder)
        differs = code.xor(code.cast("bitcast", kept, "i32"), pattern)
        lost = code.or_(lost, code.select(code.fcmp("olt", magnitude, rounder), differs, none))
        greatest = code.intrinsic("umax", greatest, pattern)
    limit = code.shl(code.add(unit, code.const(share + 127, "i32")), 23)
    large = code.icmp("uge", greatest, code.splat(limit, shape.columns))
    return code.and_(fine, code.not_(code.any(code.or_(code.icmp("ne", lost, 0), large))))


def _exact_sums(code: Code, shape: Shape, acc: Value, a: Value, b: Value, host: Host) -> list[Value]:
    """Add if all sums are exact in f64; return the addresses of the rows of sums, f32."""
    lanes, row_bytes = shape.lanes(host), 4 * shape.columns
    found = code.alloca(shape.rows * row_bytes, 64)
    for sums in tiled(code, shape, 1, host):
        for row, _, first, slot in sums.each():
            code.store(code.cast("fpext", accumulator(code, shape, acc, row, first, lanes), "f64"), slot, 64)
        add_products(code, shape, sums, [a], [b], host)
        for row, _, first, slot in sums.each():
            total = code.cast("fptrunc", code.load(slot, vector(lanes, "f64"), 64), "f32")
            code.store(total, code.at(found, row * row_bytes + 4 * first), 4)
    return [code.at(found, row * row_bytes) for row in range(shape.rows)]


def _exact_stages(code: Code, shape: Shape, before: list[Value], a: Value, b: Value, dst: Value, host: Host) -> None:
    """Add if all sums are exact in f64 and are rounded several times. Intermediate sums are in memory, as f32.

    So there are enough independent sums that none waits for its own conversions, and a conversion from memory is one
    operation, while a conversion between registers is two. No sum is NaN.
    """
    lanes, row_bytes, terms = shape.lanes(host), 4 * shape.columns, shape.terms
    kind, single = vector(lanes, "f64"), vector(lanes, "f32")
    in_place = shape.dst == "f"
    held = dst if in_place else code.alloca(shape.rows * row_bytes, 64)
    for row, numbers in enumerate(before):
        code.store(numbers, code.at(held, row * row_bytes), 4)
    unrolled = next(n for n in (_ROWS_AT_ONCE, 4, 2, 1) if shape.rows % n == 0)

    def stage(index: Value) -> None:
        first = code.mul(index, code.const(terms, "i64"))
        a_at, b_at = code.at(a, code.mul(first, code.const(8, "i64"))), code.mul(first, code.const(shape.b_row, "i64"))
        columns = [
            [code.load(code.at(code.at(b, b_at), t * shape.b_row + 8 * at), kind) for t in range(terms)]
            for at in range(0, shape.columns, lanes)
        ]

        def rows(index: Value) -> None:
            at = code.mul(index, code.const(unrolled * row_bytes, "i64"))
            own = code.at(a_at, code.mul(index, code.const(unrolled * shape.depth * 8, "i64")))
            for r in range(unrolled):
                ones = [
                    code.splat(code.load(code.at(own, 8 * (r * shape.depth + t)), "f64"), lanes) for t in range(terms)
                ]
                for number, column in enumerate(columns):
                    place = code.at(code.at(held, at), r * row_bytes + 4 * lanes * number)
                    total = code.cast("fpext", code.load(place, single, 4), "f64")
                    for one, value in zip(ones, column):
                        total = code.intrinsic("fma", one, value, total)
                    code.store(code.cast("fptrunc", total, "f32"), place, 4)

        code.repeat(code.const(shape.rows // unrolled, "i64"), rows)

    code.repeat(code.const(shape.depth // terms, "i64"), stage)
    if not in_place:
        _write(code, shape, [code.at(held, row * row_bytes) for row in range(shape.rows)], dst)


def _sums_with_errors(code: Code, shape: Shape, before: list[Value], a: Value, b: Value) -> tuple[list[Value], Value]:
    """Add with the errors of sums; return the addresses of the sums, f32, and an i1: whether they are correct."""
    kind, columns, terms = vector(shape.columns, "f64"), shape.columns, shape.terms
    held = code.alloca(shape.rows * columns * 4, 64)
    unsure = code.alloca(columns, 64)
    none = code.const(0, vector(columns, "i8"))
    code.store(none, unsure)
    places = [code.at(held, r * columns * 4) for r in range(shape.rows)]
    for place, row in zip(places, before):
        code.store(row, place, 4)

    def stage(index: Value) -> None:
        first = code.mul(index, code.const(terms, "i64"))
        a_at, b_at = code.at(a, code.shl(first, 3)), code.at(b, code.mul(first, code.const(8 * columns, "i64")))
        rows = [code.load(code.at(b_at, t * columns * 8), kind) for t in range(terms)]

        def row(number: Value) -> None:
            place = code.at(held, code.mul(number, code.const(4 * columns, "i64")))
            own = code.at(a_at, code.mul(number, code.const(8 * shape.depth, "i64")))
            total = code.cast("fpext", code.load(place, vector(columns, "f32"), 4), "f64")
            errors, bad = code.const(0, kind), code.const(0, vector(columns, "i1"))
            for t in range(terms):
                one = code.splat(code.load(code.at(own, 8 * t), "f64"), columns)
                total, error = two_sum(code, total, code.bin("fmul", one, rows[t]))
                errors, rest = two_sum(code, errors, error)
                bad = code.or_(bad, code.fcmp("one", rest, code.const(0, kind)))
            exact = code.fcmp("oeq", errors, code.const(0, kind))
            finite = code.fcmp("oeq", code.bin("fsub", total, total), code.const(0, kind))
            odd = code.select(code.or_(exact, code.not_(finite)), total, odd_sum(code, total, errors))
            # The errors of infinities and NaNs are ignored.
            bad = code.and_(bad, finite)
            noted = code.or_(code.load(unsure, none.type), code.cast("zext", bad, "i8"))
            code.store(noted, unsure)
            code.store(code.cast("fptrunc", odd, "f32"), place, 4)

        code.repeat(code.const(shape.rows, "i64"), row)

    code.repeat(code.const(shape.depth // terms, "i64"), stage)
    return places, code.not_(code.any(code.icmp("ne", code.load(unsure, none.type), 0)))
