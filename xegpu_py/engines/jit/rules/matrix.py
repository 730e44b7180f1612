"""DPAS: operands are widened to f32, f64 or i32 once, and multiplied by functions that keep accumulators in registers.

Consecutive instructions are taken together. Those that add to one accumulator become one chain, and chains that share
their matrix A are multiplied side by side, so that each element of A is loaded once for two columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xegpu_py.engines.jit.code import PTR, Code, Value, vector
from xegpu_py.engines.jit.emitter import Emitter
from xegpu_py.engines.jit.numbers import narrow, widen
from xegpu_py.engines.jit.rules import rule
from xegpu_py.numerics.dpas import operand_bytes, ops_per_channel
from xegpu_py.numerics.formats import PRECISIONS, TYPES, Format
from xegpu_py.visa.program import Instruction

_SIDE_BY_SIDE = 2
_LONGEST_CHAIN = 4
_LONGEST_RUN = 64
_UNROLLED = 4
_NAN32 = 0x7FC00000
_WORKER = '"noinline", "nounwind", ["prefer-vector-width", "512"]'


@dataclass(frozen=True)
class Shape:
    """What is multiplied in one instruction.

    Attributes:
        W, A: precisions of B and A.
        depth: elements of K.
        stages: systolic depth.
        rows, columns: of the result.
        dst, acc: types of destination and accumulator; "" for no accumulator.
    """

    W: str
    A: str
    depth: int
    stages: int
    rows: int
    columns: int
    dst: str
    acc: str

    @property
    def work(self) -> str:
        """The type in which elements are multiplied."""
        if not PRECISIONS[self.W].is_float:
            return "i32"
        return "f64" if self.W == "df" else "f32"

    @property
    def size(self) -> int:
        """Bytes of a widened element."""
        return 8 if self.work == "f64" else 4


@dataclass
class _Chain:
    """Instructions that add to one accumulator, one after the other: places in the register file.

    Attributes:
        shape: what each multiplies.
        acc: where the first one's accumulator is.
        dst: where each result goes.
        a, b: where matrices are.
        at: the instructions' indices.
    """

    shape: Shape
    acc: int
    dst: list[int] = field(default_factory=list)
    a: list[int] = field(default_factory=list)
    b: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Of a result."""
        return self.shape.rows * self.shape.columns * TYPES[self.shape.dst].bytes

    def written(self) -> set[tuple[int, int]]:
        """What it writes, from and to which byte."""
        return {(d, d + self.bytes) for d in self.dst}

    def needed(self) -> set[tuple[int, int]]:
        """The accumulator that it reads."""
        size = self.shape.rows * self.shape.columns * TYPES[self.shape.acc or "f"].bytes
        return {(self.acc, self.acc + size)} if self.shape.acc else set()


def shape_of(inst: Instruction) -> Shape:
    """What an instruction multiplies."""
    acc = inst["src0"].var
    depth = inst["SD"] * ops_per_channel(inst["W"], inst["A"])
    return Shape(
        inst["W"],
        inst["A"],
        depth,
        inst["SD"],
        inst["RC"],
        inst.exec_size,
        inst["dst"].var.type,
        acc.type if acc else "",
    )


@rule("dpas")
def dpas(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Multiply and add matrices (DPAS.md)."""
    emit_run(emitter, [(at, inst)])


def emit_run(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> None:
    """Write consecutive instructions, together where none reads what another one writes but as its accumulator."""
    parts: list[list[tuple[int, Instruction]]] = [[]]
    links: dict[int, int] = {}
    for at, inst in run:
        acc, dst = emitter.place(inst["src0"]) if inst["src0"].var else -1, emitter.place(inst["dst"])
        length = links.get(acc, 0) + 1
        if len(parts[-1]) == _LONGEST_RUN or length > _LONGEST_CHAIN:
            parts.append([])
            links, length = {}, 1
        links[dst] = length
        parts[-1].append((at, inst))
    for part in parts:
        _emit_part(emitter, part)


def _emit_part(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> None:
    chains = _chains(emitter, run)
    if len(run) > 1 and not _independent(emitter, run, chains):
        middle = len(run) // 2
        _emit_part(emitter, run[:middle])
        _emit_part(emitter, run[middle:])
        return
    groups: dict[tuple[object, ...], list[list[_Chain]]] = {}
    order: list[tuple[list[_Chain], tuple[bool, ...]]] = []
    for chain in chains:
        kept = _kept(emitter, chain)
        found = groups.setdefault((chain.shape, tuple(chain.a), kept), [])
        if not found or len(found[-1]) == _SIDE_BY_SIDE:
            found.append([])
            order.append((found[-1], kept))
        found[-1].append(chain)
    scratch = _Scratch(emitter)
    for group, kept in order:
        if emitter.model == "fma" or group[0].shape.work == "i32":
            _multiply(emitter, group, kept, scratch)
        else:
            for chain in group:
                _sum(emitter, chain, scratch)


def _chains(emitter: Emitter, run: Sequence[tuple[int, Instruction]]) -> list[_Chain]:
    """The chains of a run, in the order of their first instructions."""
    chains: list[_Chain] = []
    latest: dict[int, _Chain] = {}
    for at, inst in run:
        shape = shape_of(inst)
        acc = emitter.place(inst["src0"]) if shape.acc else -1
        dst = emitter.place(inst["dst"])
        chain = latest.pop(acc, None)
        # What is rounded to a narrower accumulator in between is no chain.
        wide = emitter.model == "fma" and shape.dst == shape.acc and shape.dst not in ("bf", "hf")
        if chain is None or not wide or chain.shape != shape:
            chain = _Chain(shape, acc)
            chains.append(chain)
        chain.dst.append(dst)
        chain.a.append(emitter.place(inst["src2"]))
        chain.b.append(emitter.place(inst["src1"]))
        chain.at.append(at)
        latest[dst] = chain
    return chains


def _independent(emitter: Emitter, run: Sequence[tuple[int, Instruction]], chains: Sequence[_Chain]) -> bool:
    """Whether chains can run one after the other: none touches what another one writes, and none changes a matrix."""
    written = [(place, n) for n, chain in enumerate(chains) for place in chain.written()]
    touched = [*written, *((place, n) for n, chain in enumerate(chains) for place in chain.needed())]
    touched += [(place, -1) for _, inst in run for place in _matrices(emitter, inst)]
    for (start, end), number in written:
        for (first, last), other in touched:
            if start < last and first < end and other != number:
                return False
    return True


def _matrices(emitter: Emitter, inst: Instruction) -> list[tuple[int, int]]:
    sizes = operand_bytes(inst["W"], inst["A"], inst["SD"], inst["RC"], inst.exec_size)
    starts = [emitter.place(inst[n]) for n in ("src1", "src2")]
    return [(start, start + size) for start, size in zip(starts, sizes)]


def _kept(emitter: Emitter, chain: _Chain) -> tuple[bool, ...]:
    """Which of a chain's results must be in registers: the last one, and those that are read by others."""
    found = []
    for n, (at, dst) in enumerate(zip(chain.at, chain.dst)):
        overwritten = dst in chain.dst[n + 1 :]
        last = n + 1 == len(chain.at)
        found.append(last or not (overwritten or emitter.forgotten(at, chain.at[n + 1])))
    return tuple(found)


class _Scratch:
    """Widened operands of a run, each once."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self._places: dict[tuple[str, int], int] = {}
        self._end = 0

    def operand(self, function: str, place: int, size: int) -> Value:
        """An operand widened by a function, which takes where to and where from."""
        code = self.emitter.code
        offset = self._places.get((function, place))
        if offset is None:
            offset = self._places[function, place] = self._end
            self._end += -(-size // 64) * 64
            target = code.at(self.emitter.scratch(self._end), offset)
            code.call(function, target, code.at(self.emitter.thread, place))
        return code.at(self.emitter.scratch(self._end), offset)

    def a(self, shape: Shape, place: int) -> Value:
        """Matrix A, row after row."""
        count = shape.rows * shape.depth
        name = f"widen_a_{shape.A}_{shape.work}_{count}"
        self.emitter.helper(name, lambda: _widen_a(name, shape, count))
        return self.operand(name, place, count * shape.size)

    def b(self, shape: Shape, place: int) -> Value:
        """Matrix B, row after row."""
        name = f"widen_b_{shape.W}_{shape.work}_{shape.depth}_{shape.columns}"
        self.emitter.helper(name, lambda: _widen_b(name, shape))
        return self.operand(name, place, shape.depth * shape.columns * shape.size)


def _number(code: Code, pattern: Value, fmt: Format, work: str) -> Value:
    """Elements, integers of their width or wider, as what they are multiplied as."""
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


def _fields(code: Code, words: Value, fmt: Format) -> list[Value]:
    """The elements below a byte's width that words hold, from the lowest bit on, as i32."""
    width = int(words.element[1:])
    found = []
    for start in range(0, width, fmt.bits):
        raised = code.shl(words, width - start - fmt.bits)
        lowered = code.ashr(raised, width - fmt.bits) if fmt.kind == "s" else code.lshr(raised, width - fmt.bits)
        found.append(code.resize(lowered, 32, fmt.kind == "s"))
    return found


def _widen_a(name: str, shape: Shape, count: int) -> str:
    """The function that widens A, `count` elements side by side."""
    code, fmt = Code(name, [PTR, PTR], "", _WORKER), PRECISIONS[shape.A]
    to, source = code.arguments
    done = 0
    while done < count:
        lanes = min(16, count - done)
        at = code.at(source, done * fmt.bits // 8)
        if fmt.bits >= 8:
            numbers = _number(code, code.load(at, vector(lanes, f"i{fmt.bits}")), fmt, shape.work)
        else:
            held = max(lanes * fmt.bits // 8, 1)
            lanes = min(lanes, held * 8 // fmt.bits)
            numbers = _interleaved(code, _fields(code, code.load(at, vector(held, "i8")), fmt))
            if numbers.lanes > lanes:
                numbers = code.shuffle(numbers, numbers, list(range(lanes)))
        code.store(numbers, code.at(to, done * shape.size))
        done += lanes
    code.ret()
    return code.text()


def _interleaved(code: Code, parts: list[Value]) -> Value:
    """The first elements of all parts, then the second, and so on."""
    if len(parts) == 1:
        return parts[0]
    even, odd = _interleaved(code, parts[::2]), _interleaved(code, parts[1::2])
    return code.shuffle(even, odd, [i // 2 + even.lanes * (i % 2) for i in range(2 * even.lanes)])


def _widen_b(name: str, shape: Shape) -> str:
    """The function that widens B, whose columns lie in channels, to rows."""
    code, fmt = Code(name, [PTR, PTR], "", _WORKER), PRECISIONS[shape.W]
    to, source = code.arguments
    channel = max(fmt.bits, 32)
    per, columns = channel // fmt.bits, shape.columns
    for first in range(0, shape.depth, per):
        words = code.load(code.at(source, first // per * columns * channel // 8), vector(columns, f"i{channel}"))
        if fmt.bits == channel:
            rows = [_number(code, words, fmt, shape.work)]
        elif fmt.name == "bf":
            high = code.mask(words, 0xFFFF0000)
            rows = [code.cast("bitcast", v, "f32") for v in (code.shl(words, 16), high)]
        elif fmt.is_float:
            shifted = [code.lshr(words, i * fmt.bits) if i else words for i in range(per)]
            rows = [_number(code, code.resize(v, fmt.bits, False), fmt, shape.work) for v in shifted]
        else:
            rows = _fields(code, words, fmt)
        for i, row in enumerate(rows[: shape.depth - first]):
            code.store(row, code.at(to, (first + i) * columns * shape.size))
    code.ret()
    return code.text()


def _accumulator(code: Code, shape: Shape, pointer: Value, row: int) -> Value:
    """One row of the accumulator."""
    if not shape.acc:
        return code.const(0, vector(shape.columns, shape.work))
    fmt = TYPES[shape.acc]
    pattern = code.load(code.at(pointer, row * shape.columns * fmt.bytes), vector(shape.columns, f"i{fmt.bits}"))
    return widen(code, pattern, fmt) if fmt.is_float else pattern


def _multiply(emitter: Emitter, group: list[_Chain], kept: tuple[bool, ...], scratch: _Scratch) -> None:
    """Multiply chains that share A."""
    code, shape = emitter.code, group[0].shape
    stored = "".join("01"[k] for k in kept)
    types = f"{shape.work}_{shape.dst}_{shape.acc or 'none'}"
    name = f"multiply_{types}_{shape.rows}x{shape.columns}x{shape.depth}_{len(group)}_{stored}"
    emitter.helper(name, lambda: _multiplier(name, shape, len(group), kept))
    operands = [code.at(emitter.thread, max(c.acc, 0)) for c in group]
    operands += [code.at(emitter.thread, d) for c in group for d, k in zip(c.dst, kept) if k]
    operands += [scratch.a(shape, place) for place in group[0].a]
    operands += [scratch.b(shape, place) for c in group for place in c.b]
    code.call(name, *operands)


def _multiplier(name: str, shape: Shape, count: int, kept: tuple[bool, ...]) -> str:
    """The function that multiplies: each product is added in increasing k with one rounding.

    It takes pointers: to each chain's accumulator, to its results that are kept, to A of each link, and to B of each
    link of each chain.
    """
    links, results = len(kept), sum(kept)
    code = Code(name, [PTR] * (count + count * results + links + count * links), "", _WORKER)
    acc, rest = code.arguments[:count], code.arguments[count:]
    dst, rest = rest[: count * results], rest[count * results :]
    a, b = rest[:links], rest[links:]
    kind = vector(shape.columns, shape.work)
    slots = [[code.alloca(shape.columns * shape.size, 64) for _ in range(shape.rows)] for _ in range(count)]
    for c in range(count):
        for r in range(shape.rows):
            code.store(_accumulator(code, shape, acc[c], r), slots[c][r], 64)
    step = min(_UNROLLED, shape.depth)

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
                one = code.load(code.at(a_at, (r * shape.depth + k) * shape.size), shape.work)
                wide = code.splat(one, shape.columns)
                for c in range(count):
                    sums[c][r] = _fused(code, wide, rows[c], sums[c][r])
        for column, values in zip(slots, sums):
            for slot, value in zip(column, values):
                code.store(value, slot, 64)

    fmt, stored = TYPES[shape.dst], 0
    for link in range(links):
        code.repeat(code.const(shape.depth // step, "i64"), lambda index, link=link: steps(link, index))  # type: ignore[misc]
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


def _fused(code: Code, a: Value, b: Value, total: Value) -> Value:
    if a.element == "i32":
        return code.add(code.mul(a, b), total)
    return code.intrinsic("fma", a, b, total)


def _sum(emitter: Emitter, chain: _Chain, scratch: _Scratch) -> None:
    """Add in the models `stage` and `exact`."""
    for at in chain.at:
        emitter.golden(at)
