"""The functions that DPAS is made of: they widen matrices, and multiply them with accumulators in vector registers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xegpu_py.engines.jit.code import PTR, Code, Value, bits_of, vector
from xegpu_py.engines.jit.numbers import narrow, widen
from xegpu_py.numerics.formats import PRECISIONS, TYPES, Format

_UNROLLED = 4
_NAN32 = 0x7FC00000
WORKER = '"noinline", "nounwind", ["prefer-vector-width", "512"]'


@dataclass(frozen=True)
class Shape:
    """What is multiplied in one instruction.

    Attributes:
        W, A: precisions of B and A.
        depth: elements of K.
        stages: systolic depth.
        rows, columns: of the result.
        dst, acc: types of destination and accumulator; "" for no accumulator.
        packed: whether bytes are multiplied as they are, four of them by one instruction of the host (VNNI).
        terms: products that are added exactly before the sum is rounded.
    """

    W: str
    A: str
    depth: int
    stages: int
    rows: int
    columns: int
    dst: str
    acc: str
    packed: bool = False
    terms: int = 1

    @property
    def steps(self) -> int:
        """How often a row of B is multiplied."""
        return self.depth // 4 if self.packed else self.depth

    @property
    def corrected(self) -> bool:
        """Whether packed bytes are both signed, or both not: the host multiplies unsigned ones with signed ones."""
        return self.packed and self.W[0] == self.A[0]

    @property
    def work(self) -> str:
        """The type in which elements are multiplied."""
        if not PRECISIONS[self.W].is_float:
            return "i32"
        return "f64" if self.W == "df" or self.terms > 1 else "f32"

    @property
    def size(self) -> int:
        """Bytes of a widened element."""
        return 8 if self.work == "f64" else 4


def as_float(code: Code, pattern: Value, fmt: Format) -> Value:
    """Elements, integers of their width or wider, as f32, or as f64 or i32 where they are df or integers."""
    if fmt.name in ("bf", "hf"):
        return widen(code, pattern, TYPES[fmt.name])
    if fmt.name == "tf32":
        return code.cast("bitcast", code.mask(pattern, 0xFFFFE000), "f32")
    if fmt.name == "df":
        return code.cast("bitcast", pattern, "f64")
    if fmt.name == "bf8":
        return widen(code, code.shl(code.resize(pattern, 16, False), 8), TYPES["hf"])
    if fmt.name == "hf8":
        # As hf with the exponent in its lower bits, which is 2**-8 of the number.
        wide = code.resize(pattern, 16, False)
        magnitude = code.mask(wide, 0x7F)
        half = code.or_(code.shl(magnitude, 7), code.shl(code.mask(wide, 0x80), 8))
        value = widen(code, half, TYPES["hf"])
        value = code.bin("fmul", value, code.const(0x43800000, value.type))
        return code.select(code.icmp("eq", magnitude, 0x7F), code.const(_NAN32, value.type), value)
    return code.resize(pattern, 32, fmt.kind == "s")


class Extent:
    """How large and how small the elements of a matrix are: what sums of their products are exact in.

    It is stored behind the matrix as two i32: the greatest exponent field of elements as f32, and the least of those
    that are not zero, or one less; 511 if all are zero.
    """

    BYTES = 64

    def __init__(self, code: Code) -> None:
        self._code = code
        self._found: dict[int, tuple[Value, Value]] = {}

    def note(self, numbers: Value, shape: Shape) -> Value:
        """Take note of elements; gives them as what they are multiplied as."""
        if shape.terms == 1:
            return numbers
        code = self._code
        magnitude = code.mask(code.cast("bitcast", numbers, "i32"), 0x7FFFFFFF)
        # Zero becomes the greatest number.
        less = code.sub(magnitude, code.const(1, magnitude.type))
        if before := self._found.get(numbers.lanes):
            magnitude = code.intrinsic("umax", before[0], magnitude)
            less = code.intrinsic("umin", before[1], less)
        self._found[numbers.lanes] = magnitude, less
        return code.cast("fpext", numbers, "f64")

    def store(self, place: Value) -> None:
        """Write what was found."""
        code = self._code
        ends: list[Value] = []
        for found in self._found.values():
            both = [code.intrinsic(f"vector.reduce.u{n}", v, kind="i32") for n, v in zip(("max", "min"), found)]
            ends = [code.intrinsic(f"u{n}", *x) for n, x in zip(("max", "min"), zip(ends, both))] if ends else both
        for i, end in enumerate(ends):
            code.store(code.lshr(end, 23), code.at(place, 4 * i), 4)


def _fields(code: Code, words: Value, fmt: Format) -> list[Value]:
    """The elements below a byte's width that words hold, from the lowest bit on, as i32."""
    width = int(words.element[1:])
    found = []
    for start in range(0, width, fmt.bits):
        raised = code.shl(words, width - start - fmt.bits)
        lowered = code.ashr(raised, width - fmt.bits) if fmt.kind == "s" else code.lshr(raised, width - fmt.bits)
        found.append(code.resize(lowered, 32, fmt.kind == "s"))
    return found


def widen_a(name: str, shape: Shape, count: int) -> str:
    """The function that widens A, `count` elements side by side."""
    code, fmt = Code(name, [PTR, PTR], "", WORKER), PRECISIONS[shape.A]
    to, source = code.arguments
    extent = Extent(code)
    done = 0
    while done < count:
        lanes = min(16, count - done)
        at = code.at(source, done * fmt.bits // 8)
        if fmt.bits >= 8:
            numbers = as_float(code, code.load(at, vector(lanes, f"i{fmt.bits}")), fmt)
        else:
            held = max(lanes * fmt.bits // 8, 1)
            lanes = min(lanes, held * 8 // fmt.bits)
            numbers = _interleaved(code, _fields(code, code.load(at, vector(held, "i8")), fmt))
            if numbers.lanes > lanes:
                numbers = code.shuffle(numbers, numbers, list(range(lanes)))
        code.store(extent.note(numbers, shape), code.at(to, done * shape.size))
        done += lanes
    extent.store(code.at(to, count * shape.size))
    code.ret()
    return code.text()


def _interleaved(code: Code, parts: list[Value]) -> Value:
    """The first elements of all parts, then the second, and so on."""
    if len(parts) == 1:
        return parts[0]
    even, odd = _interleaved(code, parts[::2]), _interleaved(code, parts[1::2])
    return code.shuffle(even, odd, [i // 2 + even.lanes * (i % 2) for i in range(2 * even.lanes)])


def widen_b(name: str, shape: Shape) -> str:
    """The function that widens B, whose columns lie in channels, to rows."""
    code, fmt = Code(name, [PTR, PTR], "", WORKER), PRECISIONS[shape.W]
    to, source = code.arguments
    extent = Extent(code)
    channel = max(fmt.bits, 32)
    per, columns = channel // fmt.bits, shape.columns
    for first in range(0, shape.depth, per):
        words = code.load(code.at(source, first // per * columns * channel // 8), vector(columns, f"i{channel}"))
        rows = rows_of(code, words, fmt)
        for i, row in enumerate(rows[: shape.depth - first]):
            code.store(extent.note(row, shape), code.at(to, (first + i) * columns * shape.size))
    extent.store(code.at(to, shape.depth * columns * shape.size))
    code.ret()
    return code.text()


def rows_of(code: Code, words: Value, fmt: Format) -> list[Value]:
    """The rows of B whose elements lie in channels: of each column the first, then the second, and so on."""
    channel = bits_of(words.type)
    if fmt.bits == channel:
        return [as_float(code, words, fmt)]
    if fmt.name == "bf":
        high = code.mask(words, 0xFFFF0000)
        return [code.cast("bitcast", v, "f32") for v in (code.shl(words, 16), high)]
    if not fmt.is_float:
        return _fields(code, words, fmt)
    shifted = [code.lshr(words, i * fmt.bits) if i else words for i in range(channel // fmt.bits)]
    return [as_float(code, code.resize(v, fmt.bits, False), fmt) for v in shifted]


def accumulator(code: Code, shape: Shape, pointer: Value, row: int) -> Value:
    """One row of the accumulator, as f32, or as f64 or i32 where that is its type."""
    if not shape.acc:
        return code.const(0, vector(shape.columns, "f32" if shape.terms > 1 else shape.work))
    fmt = TYPES[shape.acc]
    pattern = code.load(code.at(pointer, row * shape.columns * fmt.bytes), vector(shape.columns, f"i{fmt.bits}"))
    return widen(code, pattern, fmt) if fmt.is_float else pattern


def multiplier(name: str, shape: Shape, count: int, kept: tuple[bool, ...]) -> str:
    """The function that multiplies: each product is added in increasing k with one rounding.

    It takes pointers: to each chain's accumulator, to its results that are kept, to A of each link, to B of each link
    of each chain, and, of bytes that need it, to the correction of each link of each chain.
    """
    links, results = len(kept), sum(kept)
    corrections = count * links if shape.corrected else 0
    code = Code(name, [PTR] * (count + count * results + links + count * links + corrections), "", WORKER)
    acc, rest = code.arguments[:count], code.arguments[count:]
    dst, rest = rest[: count * results], rest[count * results :]
    a, b, correction = rest[:links], rest[links : links + count * links], rest[links + count * links :]
    kind = vector(shape.columns, shape.work)
    slots = [[code.alloca(shape.columns * shape.size, 64) for _ in range(shape.rows)] for _ in range(count)]
    for c in range(count):
        for r in range(shape.rows):
            code.store(accumulator(code, shape, acc[c], r), slots[c][r], 64)
    step = min(_UNROLLED, shape.steps)

    def steps(link: int, index: Value) -> None:
        first = code.mul(index, code.const(step, "i64"))
        sums = [[code.load(s, kind, 64) for s in column] for column in slots]
        a_at = code.at(a[link], code.mul(first, code.const(shape.size, "i64")))
        b_at = [
            code.at(b[c * links + link], code.mul(first, code.const(shape.columns * shape.size, "i64")))
            for c in range(count)
        ]
        for k in range(step):
            rows = [code.load(code.at(p, k * shape.columns * shape.size), kind) for p in b_at]
            for r in range(shape.rows):
                one = code.load(code.at(a_at, (r * shape.steps + k) * shape.size), shape.work)
                wide = code.splat(one, shape.columns)
                for c in range(count):
                    sums[c][r] = _fused(code, shape, wide, rows[c], sums[c][r])
        for column, values in zip(slots, sums):
            for slot, value in zip(column, values):
                code.store(value, slot, 64)

    fmt, stored = TYPES[shape.dst], 0
    for link in range(links):
        for c in range(count if corrections else 0):
            wrong = code.load(correction[c * links + link], kind)
            for slot in slots[c]:
                code.store(code.sub(code.load(slot, kind, 64), wrong), slot, 64)
        code.repeat(code.const(shape.steps // step, "i64"), partial(steps, link))
        if not kept[link]:
            continue
        for c in range(count):
            for r in range(shape.rows):
                total = code.load(slots[c][r], kind, 64)
                pattern = narrow(code, total, fmt) if fmt.is_float else total
                code.store(pattern, code.at(dst[c * results + stored], r * shape.columns * fmt.bytes))
        stored += 1
    code.ret()
    return code.text()


def _fused(code: Code, shape: Shape, a: Value, b: Value, total: Value) -> Value:
    if shape.packed:
        return _dot_bytes(code, shape, a, b, total)
    if a.element == "i32":
        return code.add(code.mul(a, b), total)
    return code.intrinsic("fma", a, b, total)


def _dot_bytes(code: Code, shape: Shape, a: Value, b: Value, total: Value) -> Value:
    """Add the products of four bytes in each lane: unsigned ones with signed ones."""
    kind = vector(4 * shape.columns, "i8")
    # A of the same kind as B has been moved by 128 to the other kind.
    first, second = (b, a) if shape.W[0] == "u" else (a, b)
    operands = f"{total}, {code.recast(first, kind)}, {code.recast(second, kind)}"
    name = f"llvm.x86.avx512.vpdpbusd.{32 * shape.columns}"
    text = f'llvm.call_intrinsic "{name}"({operands}) : ({total.type}, {kind}, {kind}) -> {total.type}'
    return code.op(text, total.type)


def move_a(name: str, size: int) -> str:
    """The function that moves bytes by 128, so that signed ones become unsigned and the other way."""
    code = Code(name, [PTR, PTR], "", WORKER)
    to, source = code.arguments
    for start in range(0, size, 64):
        kind = vector(min(64, size - start), "i8")
        value = code.load(code.at(source, start), kind)
        code.store(code.xor(value, code.const(0x80, kind)), code.at(to, start))
    code.ret()
    return code.text()


def correct_b(name: str, shape: Shape) -> str:
    """The function that computes what is too much in the products with an A that was moved: of each column of B."""
    code, kind = Code(name, [PTR, PTR], "", WORKER), vector(shape.columns, "i32")
    to, source = code.arguments
    total, moved = code.const(0, kind), code.const(0x80808080, kind)
    for step in range(shape.steps):
        row = code.load(code.at(source, step * shape.columns * 4), kind)
        total = _dot_bytes(code, shape, moved, row, total)
    code.store(total, to)
    code.ret()
    return code.text()
