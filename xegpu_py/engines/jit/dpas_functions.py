"""The functions that compute a dpas as loops over the host's vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce

import numpy as np
from msgspec import Struct

from xegpu_py.engines.jit.host import Host, even_parts, intrinsic_of
from xegpu_py.engines.jit.ir_text import (
    PTR,
    FunctionBody,
    LLVMValue,
    bits_of,
    lanes_of,
    narrow,
    odd_sum,
    two_sum,
    vector,
    widen,
)
from xegpu_py.engines.jit.packed_operand_cache import Prefetches
from xegpu_py.numerics.formats import HF, PRECISIONS, TYPES, F, Format
from xegpu_py.numerics.narrow_floats import half_of

# The functions that implement DPAS: they widen matrices, and multiply them with accumulators in vector registers.

_UNROLLED = 4
"""Steps of a loop along K. With more, LLVM loads some operands ahead, and registers do not suffice."""

_UNROLLED_IN_ALL = 2
"""The same where accumulators and operands take all registers, or sums of several products take some more."""

_PREFETCHING = 6
"""Of the tiles of accumulators, about how many are multiplied with prefetches."""


class Shape(Struct, frozen=True):
    """The shape and the types of one DPAS instruction.

    A step is the work of one host multiplication in each lane. For integers, it may add several products.

    Attributes:
        W, A: precisions of B and A.
        depth: elements of K.
        stages: systolic depth.
        rows, columns: size of the result.
        dst, acc: types of destination and accumulator; "" for no accumulator.
        dot: products in a step: 4 for bytes that are not widened (VNNI or AMX), 2 for words, else 1.
        terms: products that are added exactly before the sum is rounded.
        tiles: whether one instruction of the host multiplies whole matrices (AMX).
        any_nan: whether NaNs of the result may have any bits; see `free_nans`.
        flushed: the formats whose subnormal elements are zeros.
    """

    W: str
    A: str
    depth: int
    stages: int
    rows: int
    columns: int
    dst: str
    acc: str
    dot: int = 1
    terms: int = 1
    tiles: bool = False
    any_nan: bool = False
    flushed: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """The number of steps, each of which multiplies one row of B."""
        return self.depth // self.dot

    @property
    def corrected(self) -> bool:
        """Whether both byte operands have the same signedness: VNNI only multiplies unsigned bytes by signed bytes."""
        return self.dot == 4 and not self.tiles and self.W[0] == self.A[0]

    @property
    def work(self) -> str:
        """The type in which sums are computed."""
        if not PRECISIONS[self.W].is_float:
            return "i32"
        return "f64" if self.W == "df" or self.terms > 1 else "f32"

    @property
    def unit(self) -> int:
        """Bytes of the elements of a step, which are as wide as a sum."""
        return bits_of(self.work) // 8

    @property
    def size(self) -> int:
        """Bytes of an element as it is multiplied."""
        return self.unit // self.dot

    @property
    def b_row(self) -> int:
        """Bytes of the elements of B in one step."""
        return self.columns * self.unit

    def lanes(self, host: Host) -> int:
        """Sums in a vector register of the host."""
        return min(self.columns, host.lanes(self.unit))


def as_float(code: FunctionBody, pattern: LLVMValue, fmt: Format) -> LLVMValue:
    """Convert elements, given as integers of at least their width, to f64 for df, to i32 for integers, else to f32."""
    if fmt.name in ("bf", "hf"):
        return widen(code, pattern, TYPES[fmt.name])
    if fmt.name == "tf32":
        return code.cast("bitcast", code.mask(pattern, 0xFFFFE000), "f32")
    if fmt.name == "df":
        return code.cast("bitcast", pattern, "f64")
    if not fmt.is_float:
        return code.resize(pattern, 32, fmt.kind == "s")
    # The numbers are f32 from the start.
    ops: dict[str, Callable[..., LLVMValue]] = {
        "arith.andi": code.mask,
        "arith.ori": code.or_,
        "arith.shli": code.shl,
        "number": lambda half: widen(code, half, HF),
        "arith.mulf": lambda a, by: code.bin("fmul", a, code.const(int(np.float32(by).view(np.uint32)), a.type)),
        "arith.select": lambda truth, a, _: code.select(truth, a, code.const(F.nan, a.type)),
        "ne": partial(code.icmp, "ne"),
    }
    return half_of(code.resize(pattern, 16, False), fmt, ops, canonical=False)


class Extent:
    """The range of the exponents of a matrix's elements. It determines whether sums of their products are exact.

    It is stored after the matrix as two i32: the greatest and the least exponent field of the nonzero elements as
        f32. The least may be one less; 511 if all are zero.
    """

    BYTES = 64

    def __init__(self, code: FunctionBody) -> None:
        self._code = code
        self._extremes: dict[int, tuple[LLVMValue, LLVMValue]] = {}

    def note(self, numbers: LLVMValue, shape: Shape, fmt: Format) -> LLVMValue:
        """Update the range with elements of a format. Returns the elements in the type in which they are multiplied."""
        if fmt.name in shape.flushed:
            numbers = _flushed(self._code, numbers, fmt)
        if shape.terms == 1:
            return numbers
        code = self._code
        magnitude = code.mask(code.cast("bitcast", numbers, "i32"), 0x7FFFFFFF)
        # Zero becomes the greatest number.
        less = code.sub(magnitude, 1)
        if extremes := self._extremes.get(numbers.lanes):
            magnitude = code.intrinsic("umax", extremes[0], magnitude)
            less = code.intrinsic("umin", extremes[1], less)
        self._extremes[numbers.lanes] = magnitude, less
        return code.cast("fpext", numbers, "f64")

    def store(self, pointer: LLVMValue) -> None:
        """Store the range."""
        code = self._code
        extremes: list[LLVMValue] = []
        for max_and_min in self._extremes.values():
            reduced = [code.intrinsic(f"vector.reduce.u{n}", v, ty="i32") for n, v in zip(("max", "min"), max_and_min)]
            extremes = (
                [code.intrinsic(f"u{n}", *x) for n, x in zip(("max", "min"), zip(extremes, reduced))]
                if extremes
                else reduced
            )
        for i, extreme in enumerate(extremes):
            code.store(code.lshr(extreme, 23), code.at(pointer, 4 * i), 4)


def _flushed(code: FunctionBody, numbers: LLVMValue, fmt: Format) -> LLVMValue:
    """Elements of a format, as f32, with zeros of their signs in place of subnormal ones."""
    bits = code.cast("bitcast", numbers, "i32")
    # As a pattern of f, the least normal number of the format.
    exponent = 127 + 2 - (1 << (fmt.exponent - 1))
    subnormal = code.icmp("ult", code.mask(bits, 0x7FFFFFFF), exponent << F.mantissa)
    return code.cast("bitcast", code.select(subnormal, code.mask(bits, 0x80000000), bits), "f32")


def _fields(code: FunctionBody, dwords: LLVMValue, fmt: Format) -> list[LLVMValue]:
    """The elements below a byte's width that words hold, from the lowest bit on, as i32 or f32."""
    width = int(dwords.element[1:])
    fields = []
    for start in range(0, width, fmt.bits):
        raised = code.shl(dwords, width - start - fmt.bits)
        lowered = code.ashr(raised, width - fmt.bits) if fmt.kind == "s" else code.lshr(raised, width - fmt.bits)
        fields.append(as_float(code, lowered, fmt))
    return fields


def widen_a(name: str, shape: Shape, count: int, host: Host) -> str:
    """The function that widens `count` consecutive elements of A."""
    code, fmt = host.function(name, [PTR, PTR]), PRECISIONS[shape.A]
    to, source = code.arguments
    extent = Extent(code)
    element_count = 0
    while element_count < count:
        lanes = min(host.lanes(4), count - element_count)
        at = code.at(source, element_count * fmt.bits // 8)
        if fmt.bits >= 8:
            numbers = as_float(code, code.load(at, vector(lanes, f"i{fmt.bits}")), fmt)
        else:
            dword_lanes = max(lanes * fmt.bits // 8, 1)
            lanes = min(lanes, dword_lanes * 8 // fmt.bits)
            numbers = _interleaved(code, _fields(code, code.load(at, vector(dword_lanes, "i8")), fmt))
            if numbers.lanes > lanes:
                numbers = code.shuffle(numbers, numbers, list(range(lanes)))
        if shape.dot == 2:
            numbers = code.resize(numbers, 16, False)
        code.store(extent.note(numbers, shape, fmt), code.at(to, element_count * shape.size))
        element_count += lanes
    extent.store(code.at(to, count * shape.size))
    code.ret()
    return code.text()


def _interleaved(code: FunctionBody, vectors: list[LLVMValue]) -> LLVMValue:
    """The first elements of all parts, then the second, and so on."""
    if len(vectors) == 1:
        return vectors[0]
    even, odd = _interleaved(code, vectors[::2]), _interleaved(code, vectors[1::2])
    return code.shuffle(even, odd, [i // 2 + even.lanes * (i % 2) for i in range(2 * even.lanes)])


def widen_b(name: str, shape: Shape, host: Host) -> str:
    """The function that widens B, whose columns lie in channels, to the rows of its steps."""
    code, fmt = host.function(name, [PTR, PTR]), PRECISIONS[shape.W]
    to, source = code.arguments
    extent = Extent(code)
    channel = max(fmt.bits, 32)
    per, columns = channel // fmt.bits, shape.columns
    for first_k in range(0, shape.depth, per):
        dwords = code.load(code.at(source, first_k // per * columns * channel // 8), vector(columns, f"i{channel}"))
        rows = rows_of(code, dwords, fmt)[: shape.depth - first_k]
        if shape.dot == 2:
            rows = words_of(code, rows)
        for i, row in enumerate(rows):
            code.store(extent.note(row, shape, fmt), code.at(to, (first_k // shape.dot + i) * shape.b_row))
    extent.store(code.at(to, shape.steps * shape.b_row))
    code.ret()
    return code.text()


def rows_of(code: FunctionBody, dwords: LLVMValue, fmt: Format) -> list[LLVMValue]:
    """The rows of B whose elements lie in channels: of each column the first, then the second, and so on."""
    channel = bits_of(dwords.type)
    if fmt.bits == channel:
        return [as_float(code, dwords, fmt)]
    if fmt.name == "bf":
        high = code.mask(dwords, 0xFFFF0000)
        return [code.cast("bitcast", v, "f32") for v in (code.shl(dwords, 16), high)]
    if fmt.bits < 8:
        return _fields(code, dwords, fmt)
    shifted = [code.lshr(dwords, i * fmt.bits) if i else dwords for i in range(channel // fmt.bits)]
    return [as_float(code, code.resize(v, fmt.bits, False), fmt) for v in shifted]


def words_of(code: FunctionBody, rows: Sequence[LLVMValue]) -> list[LLVMValue]:
    """Pack pairs of rows of small integers as words of one row."""
    return [code.or_(code.mask(low, 0xFFFF), code.shl(high, 16)) for low, high in zip(rows[::2], rows[1::2])]


def accumulator(
    code: FunctionBody, shape: Shape, pointer: LLVMValue, row: int, first_column: int, lanes: int
) -> LLVMValue:
    """Some columns of a row of the accumulator: f64 or i32 if that is its type, else f32."""
    if not shape.acc:
        return code.const(0, vector(lanes, "f32" if shape.terms > 1 else shape.work))
    fmt = TYPES[shape.acc]
    row_pointer = code.at(pointer, (row * shape.columns + first_column) * fmt.bytes)
    pattern = code.load(row_pointer, vector(lanes, f"i{fmt.bits}"))
    return widen(code, pattern, fmt) if fmt.is_float else pattern


class Sums(Struct, frozen=True):
    """Accumulators that are in vector registers at the same time: some rows, and some vectors of each.

    Attributes:
        rows: the rows of the result.
        columns: the chain and the first column of each vector.
        slots: the stack slot of each accumulator, by row and vector. LLVM promotes the slots to registers.
        kind: the type of each accumulator.
    """

    rows: range
    columns: Sequence[tuple[int, int]]
    slots: Sequence[Sequence[LLVMValue]]
    kind: str

    def each(self) -> Iterator[tuple[int, int, int, LLVMValue]]:
        """The row, chain, first column and slot of each accumulator."""
        for row, slots in zip(self.rows, self.slots):
            for (chain, first_column), slot in zip(self.columns, slots):
                yield row, chain, first_column, slot


def tiled(code: FunctionBody, shape: Shape, count: int, host: Host, stacked: int = 1) -> Iterator[Sums]:
    """The accumulators of chains side by side, in tiles that the host's registers hold.

    Args:
        count: chains side by side.
        stacked: how many such rows of chains there are, one below the other.
    """
    lanes, rows = shape.lanes(host), stacked * shape.rows
    vectors = [(chain, first_column) for chain in range(count) for first_column in range(0, shape.columns, lanes)]
    tile = host.tile(rows, len(vectors), temporaries=1 if shape.dot == 2 else 0)
    slots = [[code.alloca(lanes * shape.unit, 64) for _ in range(tile.vectors)] for _ in range(tile.rows)]
    # Columns of B stay in the first-level cache while all rows are multiplied with them.
    for column_range in even_parts(len(vectors), tile.vectors):
        tile_columns = vectors[column_range.start : column_range.stop]
        for own_rows in even_parts(rows, tile.rows):
            yield Sums(own_rows, tile_columns, slots, vector(lanes, shape.work))


def add_products(
    code: FunctionBody,
    shape: Shape,
    sums: Sums,
    a: Sequence[LLVMValue] | Mapping[int, LLVMValue],
    b: Sequence[LLVMValue],
    host: Host,
) -> None:
    """Add the products of matrices A and matrices B to sums, in increasing k.

    Args:
        a: the matrix of each row of chains that the sums have elements of.
        b: one matrix for each chain of a row.
    """
    lanes = shape.lanes(host)
    vector_type = vector(lanes, shape.work)
    registers_used = len(sums.rows) * len(sums.columns) + min(len(sums.rows), len(sums.columns)) + 1
    scarce = shape.dot > 1 or registers_used >= host.vector_registers
    few = scarce and shape.terms == 1 and not host.multiplies_by_lane
    step = min(_UNROLLED_IN_ALL if few else _UNROLLED, shape.steps)
    by_lane = host.multiplies_by_lane and step > 1

    def steps(index: LLVMValue) -> None:
        first_k = code.mul(index, step)
        totals = [[code.load(slot, vector_type, 64) for slot, _ in zip(slots, sums.columns)] for slots in sums.slots]
        a_offset = code.mul(first_k, shape.unit)
        a_at = {n: code.at(a[n], a_offset) for n in sorted({row // shape.rows for row in sums.rows})}
        b_offset = code.mul(first_k, shape.b_row)
        b_at = [code.at(b[chain], code.add(b_offset, at * shape.unit)) for chain, at in sums.columns]
        row_bytes = shape.steps * shape.unit
        row_pointers = [code.at(a_at[row // shape.rows], row % shape.rows * row_bytes) for row in sums.rows]
        a_vectors = (
            [code.load(row_pointer, vector(step, shape.work)) for row_pointer in row_pointers] if by_lane else []
        )

        def of_a(r: int, k: int) -> LLVMValue:
            if by_lane:
                return code.shuffle(a_vectors[r], a_vectors[r], [k] * lanes)
            return code.splat(code.load(code.at(row_pointers[r], k * shape.unit), shape.work), lanes)

        def of_b(pointer: LLVMValue, k: int) -> LLVMValue:
            return code.load(code.at(pointer, k * shape.b_row), vector_type)

        for k in range(step):
            # LLVM keeps this order. The smaller of A and B is loaded first, and stays in registers.
            if len(row_pointers) >= len(b_at):
                rows = [of_b(p, k) for p in b_at]
                for r in range(len(row_pointers)):
                    wide = of_a(r, k)
                    totals[r] = [_fused(code, shape, wide, row, total) for row, total in zip(rows, totals[r])]
            else:
                wides = [of_a(r, k) for r in range(len(row_pointers))]
                for v, p in enumerate(b_at):
                    row = of_b(p, k)
                    for r, wide in enumerate(wides):
                        totals[r][v] = _fused(code, shape, wide, row, totals[r][v])
        for values, slots in zip(totals, sums.slots):
            for value, slot in zip(values, slots):
                code.store(value, slot, 64)

    code.repeat(code.const(shape.steps // step, "i64"), steps)


def multiplier(name: str, shape: Shape, count: int, result_mask: tuple[bool, ...], host: Host) -> str:
    """The function that multiplies: each product is added in increasing k with one rounding.

    Its arguments are pointers: the accumulator of each chain, its results in registers, A of each link, and B of
        each link of each chain. Bytes may need one more for each B: its correction.
    """
    links, results = len(result_mask), sum(result_mask)
    corrections = count * links if shape.corrected else 0
    code = host.function(name, [PTR] * (count + count * results + links + count * links + corrections))
    acc, pointers = code.arguments[:count], code.arguments[count:]
    dst, pointers = pointers[: count * results], pointers[count * results :]
    a, b, correction = pointers[:links], pointers[links : links + count * links], pointers[links + count * links :]
    vector_type = vector(shape.lanes(host), shape.work)
    for sums in tiled(code, shape, count, host):
        for row, chain, first_column, slot in sums.each():
            code.store(accumulator(code, shape, acc[chain], row, first_column, lanes_of(vector_type)), slot, 64)
        result_count = 0
        for link in range(links):
            for _, chain, first_column, slot in sums.each() if corrections else ():
                excess = code.load(code.at(correction[chain * links + link], first_column * shape.unit), vector_type)
                code.store(code.sub(code.load(slot, vector_type, 64), excess), slot, 64)
            add_products(code, shape, sums, a[link : link + 1], b[link::links], host)
            if not result_mask[link]:
                continue
            results_of_link = [
                (dst[chain * results + result_count], row, first_column, slot)
                for row, chain, first_column, slot in sums.each()
            ]
            _store_sums(code, shape, sums.kind, results_of_link)
            result_count += 1
    code.ret()
    return code.text()


def queue_multiplier(name: str, shape: Shape, sums_at: Sequence[Sequence[int]], host: Host) -> str:
    """The function that multiplies what several steps of a loop have queued, in accumulators that stay where they are.

    It takes the context, a pointer to the thread's block, one to the queue, and how many entries that has, an i64. An
    entry has pointers to the matrices A of all rows of chains, then to the matrices B of a row's chains.

    Args:
        sums_at: byte of the thread's block at which each accumulator is, of rows of chains.
    """
    code = host.function(name, [PTR, f"{PTR} noalias align 64", PTR, "i64"])
    ctx, thread, queue, entries = code.arguments
    prefetches = Prefetches(code, ctx)
    stacked, count = len(sums_at), len(sums_at[0])
    acc = [[code.at(thread, panel) for panel in row] for row in sums_at]
    tiles = list(tiled(code, shape, count, host, stacked))
    for number, sums in enumerate(tiles):
        for at, chain, first_column, slot in sums.each():
            row, row_in_matrix = divmod(at, shape.rows)
            accumulator_value = accumulator(
                code, shape, acc[row][chain], row_in_matrix, first_column, lanes_of(sums.kind)
            )
            code.store(accumulator_value, slot, 64)

        def step(index: LLVMValue, sums: Sums = sums, number: int = number) -> None:
            if number % max(len(tiles) // _PREFETCHING, 1) == 0:
                prefetches.some()
            entry = code.at(queue, code.mul(index, 8 * (stacked + count)))
            rows = sorted({row // shape.rows for row in sums.rows})
            a = {row: code.load(code.at(entry, 8 * row), PTR, 8) for row in rows}
            b = [code.load(code.at(entry, 8 * (stacked + chain)), PTR, 8) for chain in range(count)]
            add_products(code, shape, sums, a, b, host)

        code.repeat(entries, step)
        results = [
            (acc[at // shape.rows][chain], at % shape.rows, first_column, slot)
            for at, chain, first_column, slot in sums.each()
        ]
        _store_sums(code, shape, sums.kind, results)
    prefetches.end()
    code.ret()
    return code.text()


def _store_sums(
    code: FunctionBody, shape: Shape, element_type: str, destinations: Sequence[tuple[LLVMValue, int, int, LLVMValue]]
) -> None:
    """Store the sums of a tile.

    Two sums at a time are compared with each other, which finds NaNs. Only if there is one, each sum is compared with
    itself, and its NaNs are replaced.

    Args:
        element_type: the type of each sum.
        destinations: for each sum the result's address, its row and first column there, and the sum's slot.
    """
    fmt, any_nan = TYPES[shape.dst], shape.any_nan
    slots = [slot for *_, slot in destinations]
    if fmt.name == "f" and shape.work == "f32" and not any_nan and len(slots) > 1:
        totals = [code.load(slot, element_type, 64) for slot in slots]
        nan_flags = [code.fcmp("uno", a, b) for a, b in zip(totals[::2], [*totals[1::2], totals[0]])]
        with code.when(code.any(reduce(code.or_, nan_flags))):
            for total, slot in zip(totals, slots):
                code.store(
                    code.select(code.fcmp("uno", total, total), code.const(fmt.nan, element_type), total), slot, 64
                )
        any_nan = True
    for dst, row, first_column, slot in destinations:
        total = code.load(slot, element_type, 64)
        pattern = narrow(code, total, fmt, any_nan=any_nan) if fmt.is_float else total
        code.store(pattern, code.at(dst, (row * shape.columns + first_column) * fmt.bytes))


def _fused(code: FunctionBody, shape: Shape, a: LLVMValue, b: LLVMValue, total: LLVMValue) -> LLVMValue:
    if shape.dot == 4:
        return _dot_bytes(code, shape, a, b, total)
    if shape.dot == 2:
        words_type = vector(2 * total.lanes, "i16")
        return code.add(total, _dot_words(code, code.recast(a, words_type), code.recast(b, words_type), total.type))
    if a.element == "i32":
        return code.add(code.mul(a, b), total)
    return code.intrinsic("fma", a, b, total)


def _dot_bytes(code: FunctionBody, shape: Shape, a: LLVMValue, b: LLVMValue, total: LLVMValue) -> LLVMValue:
    """Add the products of four unsigned bytes and four signed bytes in each lane."""
    bytes_type = vector(4 * total.lanes, "i8")
    # A of the same kind as B has been moved by 128 to the other kind.
    unsigned_bytes, signed_bytes = (b, a) if shape.W[0] == "u" else (a, b)
    return code.call(
        intrinsic_of("dot_bytes", total.lanes),
        total,
        code.recast(unsigned_bytes, bytes_type),
        code.recast(signed_bytes, bytes_type),
        result=total.type,
    )


def _dot_words(code: FunctionBody, a: LLVMValue, b: LLVMValue, words_type: str) -> LLVMValue:
    """The sums of the products of two signed words in each lane."""
    return code.call(intrinsic_of("dot_words", a.lanes // 2), a, b, result=words_type)


def move_a(name: str, size: int, host: Host) -> str:
    """The function that adds 128 to bytes modulo 256, which converts signed bytes to unsigned bytes and vice versa."""
    code = host.function(name, [PTR, PTR])
    to, source = code.arguments
    for start in range(0, size, host.vector_bytes):
        bytes_type = vector(min(host.vector_bytes, size - start), "i8")
        value = code.load(code.at(source, start), bytes_type)
        code.store(code.xor(value, 0x80), code.at(to, start))
    code.ret()
    return code.text()


def correct_b(name: str, shape: Shape, host: Host) -> str:
    """The function that computes the excess of products, for each column of B, if `move_a` has added 128 to A."""
    code, lanes = host.function(name, [PTR, PTR]), shape.lanes(host)
    dwords_type = vector(lanes, "i32")
    to, source = code.arguments
    for first_column in range(0, shape.columns, lanes):
        total, shifted_bytes = code.const(0, dwords_type), code.const(0x80808080, dwords_type)
        for step in range(shape.steps):
            row = code.load(code.at(source, step * shape.b_row + first_column * shape.unit), dwords_type)
            total = _dot_bytes(code, shape, shifted_bytes, row, total)
        code.store(total, code.at(to, first_column * shape.unit))
    code.ret()
    return code.text()


# DPAS in the models `stage` and `exact`: exact sums of products, which are then rounded.

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
    accumulators = [accumulator(code, shape, acc, r, 0, shape.columns) for r in range(shape.rows)]
    careful = code.label()
    code.go_on_if(_all_exact(code, shape, accumulators, a, b), careful)
    if shape.terms == shape.depth:
        _write(code, shape, _exact_sums(code, shape, acc, a, b, host), dst)
    elif shape.dst == "f":
        # No sum is NaN.
        _in_stages(code, shape, shape.terms, accumulators, a, b, dst, host)
    else:
        row_sums = code.alloca(shape.rows * shape.columns * 4, 64)
        _write(code, shape, _in_stages(code, shape, shape.terms, accumulators, a, b, row_sums, host), dst)
    code.ret(code.const(1, "i1"))
    code.begin(careful)
    sums, fine = _sums_with_errors(code, shape, accumulators, a, b)
    out = code.label()
    code.go_on_if(fine, out)
    _write(code, shape, sums, dst)
    code.br(out)
    code.begin(out)
    code.ret(fine)
    return code.text()


def _write(code: FunctionBody, shape: Shape, row_pointers: list[LLVMValue], dst: LLVMValue) -> None:
    """Write the rows of the result, which are f32 in memory."""
    fmt = TYPES[shape.dst]
    for r, row_pointer in enumerate(row_pointers):
        total = code.load(row_pointer, vector(shape.columns, "f32"), 4)
        code.store(narrow(code, total, fmt), code.at(dst, r * shape.columns * fmt.bytes))


def _all_exact(
    code: FunctionBody, shape: Shape, accumulators: list[LLVMValue], a: LLVMValue, b: LLVMValue
) -> LLVMValue:
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
    lowest_exponent = 254 + PRECISIONS[shape.A].mantissa + PRECISIONS[shape.W].mantissa
    unit = code.sub(code.add(a_least, b_least), lowest_exponent)
    unit = code.intrinsic("smin", unit, code.const(_MOST, "i32"))
    fine = code.icmp("sge", unit, code.const(_LEAST, "i32"))
    # Neither infinity nor NaN.
    fine = code.and_(fine, code.icmp("slt", code.intrinsic("umax", a_most, b_most), 255))
    # Half of the range is for products, each below 2**(a_most + b_most - 252), and half for the accumulator.
    share = _F64_BITS - 2
    products = code.sub(code.add(a_most, b_most), 252 - (shape.depth - 1).bit_length())
    fine = code.and_(fine, code.icmp("sle", products, code.add(unit, share)))
    # All f32 numbers from 2**(unit + 23) on are multiples. Adding this number to smaller ones rounds them to multiples.
    bits = code.shl(code.add(unit, 23 + 127), 23)
    rounder = code.splat(code.cast("bitcast", bits, "f32"), shape.columns)
    none = code.const(0, vector(shape.columns, "i32"))
    greatest = inexact = none
    for row in accumulators:
        pattern = code.mask(code.cast("bitcast", row, "i32"), 0x7FFFFFFF)
        magnitude = code.cast("bitcast", pattern, "f32")
        rounded_magnitude = code.bin("fsub", code.bin("fadd", magnitude, rounder), rounder)
        differs = code.xor(code.cast("bitcast", rounded_magnitude, "i32"), pattern)
        inexact = code.or_(inexact, code.select(code.fcmp("olt", magnitude, rounder), differs, none))
        greatest = code.intrinsic("umax", greatest, pattern)
    limit = code.shl(code.add(unit, share + 127), 23)
    large = code.icmp("uge", greatest, code.splat(limit, shape.columns))
    return code.and_(fine, code.not_(code.any(code.or_(code.icmp("ne", inexact, 0), large))))


def _exact_sums(
    code: FunctionBody, shape: Shape, acc: LLVMValue, a: LLVMValue, b: LLVMValue, host: Host
) -> list[LLVMValue]:
    """Add if all sums are exact in f64; return the addresses of the rows of sums, f32."""
    lanes, row_bytes = shape.lanes(host), 4 * shape.columns
    sum_rows = code.alloca(shape.rows * row_bytes, 64)
    for sums in tiled(code, shape, 1, host):
        for row, _, first_column, slot in sums.each():
            code.store(code.cast("fpext", accumulator(code, shape, acc, row, first_column, lanes), "f64"), slot, 64)
        add_products(code, shape, sums, [a], [b], host)
        for row, _, first_column, slot in sums.each():
            total = code.cast("fptrunc", code.load(slot, vector(lanes, "f64"), 64), "f32")
            code.store(total, code.at(sum_rows, row * row_bytes + 4 * first_column), 4)
    return [code.at(sum_rows, row * row_bytes) for row in range(shape.rows)]


def in_order(name: str, shape: Shape, host: Host) -> str:
    """The function that adds products of f64 numbers in increasing k, each sum rounded to f32.

    It takes pointers to accumulator, result, A and B. Products are exact in f64. Rounding a sum to f64 before it is
    rounded to f32 changes nothing. If the first rounding is inexact, one term has at most 24 bits and is at least 2^28
    times the other. The sum is then nearer to this term, which is an f32 number, than to any midpoint of two f32
    numbers, before and after the first rounding.
    """
    code = host.function(name, [PTR] * 4)
    acc, dst, a, b = code.arguments
    accumulators = [accumulator(code, shape, acc, r, 0, shape.columns) for r in range(shape.rows)]
    row_sums = code.alloca(shape.rows * shape.columns * 4, 64)
    _write(code, shape, _in_stages(code, shape, 1, accumulators, a, b, row_sums, host), dst)
    code.ret()
    return code.text()


def _in_stages(
    code: FunctionBody,
    shape: Shape,
    terms: int,
    accumulators: list[LLVMValue],
    a: LLVMValue,
    b: LLVMValue,
    row_sums: LLVMValue,
    host: Host,
) -> list[LLVMValue]:
    """Add if the sums of so many terms are exact in f64, and are then rounded. Intermediate sums are in memory, as f32;
    the addresses of their rows.

    So there are enough independent sums that none waits for its own conversions, and a conversion from memory is one
    operation, while a conversion between registers is two.
    """
    lanes, row_bytes = shape.lanes(host), 4 * shape.columns
    f64_lanes, f32_lanes = vector(lanes, "f64"), vector(lanes, "f32")
    for row, numbers in enumerate(accumulators):
        code.store(numbers, code.at(row_sums, row * row_bytes), 4)
    unrolled = next(n for n in (_ROWS_AT_ONCE, 4, 2, 1) if shape.rows % n == 0)

    def stage(index: LLVMValue) -> None:
        first_k = code.mul(index, terms)
        a_at, b_at = code.at(a, code.mul(first_k, 8)), code.mul(first_k, shape.b_row)
        columns = [
            [code.load(code.at(code.at(b, b_at), t * shape.b_row + 8 * at), f64_lanes) for t in range(terms)]
            for at in range(0, shape.columns, lanes)
        ]

        def rows(index: LLVMValue) -> None:
            at = code.mul(index, unrolled * row_bytes)
            a_pointer = code.at(a_at, code.mul(index, unrolled * shape.depth * 8))
            for r in range(unrolled):
                ones = [
                    code.splat(code.load(code.at(a_pointer, 8 * (r * shape.depth + t)), "f64"), lanes)
                    for t in range(terms)
                ]
                for number, column in enumerate(columns):
                    sum_pointer = code.at(code.at(row_sums, at), r * row_bytes + 4 * lanes * number)
                    total = code.cast("fpext", code.load(sum_pointer, f32_lanes, 4), "f64")
                    for a_element, value in zip(ones, column):
                        total = code.intrinsic("fma", a_element, value, total)
                    code.store(code.cast("fptrunc", total, "f32"), sum_pointer, 4)

        code.repeat(code.const(shape.rows // unrolled, "i64"), rows)

    code.repeat(code.const(shape.depth // terms, "i64"), stage)
    return [code.at(row_sums, row * row_bytes) for row in range(shape.rows)]


def _sums_with_errors(
    code: FunctionBody, shape: Shape, accumulators: list[LLVMValue], a: LLVMValue, b: LLVMValue
) -> tuple[list[LLVMValue], LLVMValue]:
    """Add with the errors of sums; return the addresses of the sums, f32, and an i1: whether they are correct."""
    f64_row, columns, terms = vector(shape.columns, "f64"), shape.columns, shape.terms
    row_sums = code.alloca(shape.rows * columns * 4, 64)
    unsure = code.alloca(columns, 64)
    none = code.const(0, vector(columns, "i8"))
    code.store(none, unsure)
    row_pointers = [code.at(row_sums, r * columns * 4) for r in range(shape.rows)]
    for row_pointer, row in zip(row_pointers, accumulators):
        code.store(row, row_pointer, 4)

    def stage(index: LLVMValue) -> None:
        first_k = code.mul(index, terms)
        a_at, b_at = code.at(a, code.shl(first_k, 3)), code.at(b, code.mul(first_k, 8 * columns))
        rows = [code.load(code.at(b_at, t * columns * 8), f64_row) for t in range(terms)]

        def row(number: LLVMValue) -> None:
            row_pointer = code.at(row_sums, code.mul(number, 4 * columns))
            a_pointer = code.at(a_at, code.mul(number, 8 * shape.depth))
            total = code.cast("fpext", code.load(row_pointer, vector(columns, "f32"), 4), "f64")
            errors, inexact = code.const(0, f64_row), code.const(0, vector(columns, "i1"))
            for t in range(terms):
                a_element = code.splat(code.load(code.at(a_pointer, 8 * t), "f64"), columns)
                total, error = two_sum(code, total, code.bin("fmul", a_element, rows[t]))
                errors, rounding_error = two_sum(code, errors, error)
                inexact = code.or_(inexact, code.fcmp("one", rounding_error, code.const(0, f64_row)))
            exact = code.fcmp("oeq", errors, code.const(0, f64_row))
            finite = code.fcmp("oeq", code.bin("fsub", total, total), code.const(0, f64_row))
            odd = code.select(code.or_(exact, code.not_(finite)), total, odd_sum(code, total, errors))
            # The errors of infinities and NaNs are ignored.
            inexact = code.and_(inexact, finite)
            noted = code.or_(code.load(unsure, none.type), code.cast("zext", inexact, "i8"))
            code.store(noted, unsure)
            code.store(code.cast("fptrunc", odd, "f32"), row_pointer, 4)

        code.repeat(code.const(shape.rows, "i64"), row)

    code.repeat(code.const(shape.depth // terms, "i64"), stage)
    return row_pointers, code.not_(code.any(code.icmp("ne", code.load(unsure, none.type), 0)))


# Products of bytes by instructions that multiply tiles (AMX), which are exact: sums of 32 bits wrap around.
#
# Matrices lie in registers as these instructions load them. A tile register holds the accumulator of one DPAS, another
# one its matrix A or B.

_A, _B = 4, (5, 6, 7)
"""The tile registers of matrices; those before them have accumulators. That of B is another one from one product to
the next, so that it is loaded while the last one multiplies."""

_PALETTE = 1

_BYTES_OF_ROWS, _ROWS = 16, 48
"""Offsets in a tile configuration of the row bytes of each tile, u16, and of its row count, u8."""


def configure(name: str, shape: Shape, host: Host) -> str:
    """The function that configures the tile registers for products of a shape.

    The configuration is valid until other code uses the tile registers.
    """
    code = host.function(name, [])
    config_pointer = code.alloca(64, 64)
    settings = bytearray(64)
    settings[0] = _PALETTE
    for tile in range(_B[-1] + 1):
        columns, rows = 4 * shape.columns, shape.rows
        if tile == _A:
            columns = shape.depth
        if tile in _B:
            rows = shape.steps
        settings[_BYTES_OF_ROWS + 2 * tile : _BYTES_OF_ROWS + 2 * tile + 2] = columns.to_bytes(2, "little")
        settings[_ROWS + tile] = rows
    for at in range(0, 64, 8):
        code.store(code.const(int.from_bytes(settings[at : at + 8], "little"), "i64"), code.at(config_pointer, at), 8)
    code.call("llvm.x86.ldtilecfg", config_pointer)
    code.ret()
    return code.text()


def tile_multiplier(name: str, shape: Shape, count: int, result_mask: tuple[bool, ...], host: Host) -> str:
    """The function that multiplies up to four chains; see `multiplier` for its arguments."""
    assert count <= _A
    links, results = len(result_mask), sum(result_mask)
    code = host.function(name, [PTR] * (count + count * results + links + count * links))
    acc, pointers = code.arguments[:count], code.arguments[count:]
    dst, pointers = pointers[: count * results], pointers[count * results :]
    a, b = pointers[:links], pointers[links:]
    row = 4 * shape.columns
    for chain in range(count):
        if shape.acc:
            _load(code, chain, acc[chain], row)
        else:
            code.call("llvm.x86.tilezero", _tile(chain))
    for link in range(links):
        _load(code, _A, a[link], shape.depth)
        for chain in range(count):
            b_tile = _B[(link * count + chain) % len(_B)]
            _load(code, b_tile, b[chain * links + link], row)
            code.call(f"llvm.x86.tdpb{shape.A[0]}{shape.W[0]}d", _tile(chain), _tile(_A), _tile(b_tile))
            if result_mask[link]:
                result_pointer = dst[chain * results + sum(result_mask[:link])]
                code.call("llvm.x86.tilestored64", _tile(chain), result_pointer, code.const(row, "i64"))
    code.ret()
    return code.text()


def _tile(number: int) -> LLVMValue:
    return FunctionBody.const(number, "i8")


def _load(code: FunctionBody, tile: int, pointer: LLVMValue, row_bytes: int) -> None:
    code.call("llvm.x86.tileloadd64", _tile(tile), pointer, code.const(row_bytes, "i64"))
