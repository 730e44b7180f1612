"""Messages to memory: gathers and scatters, and atomics. Every access is checked before it is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from xegpu_py.engines.access import data_places
from xegpu_py.engines.jit.code import PTR, Code, Value, bits_of, vector
from xegpu_py.engines.jit.emitter import Emitter
from xegpu_py.engines.jit.frame import context_offset, traffic_offset
from xegpu_py.engines.jit.numbers import narrow
from xegpu_py.engines.jit.rules import rule
from xegpu_py.numerics.formats import TYPES
from xegpu_py.visa.instructions import ATOMICS, INSTRUCTIONS
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import DataShape


def locator(emitter: Emitter, lanes: int) -> str:
    """A function that finds host addresses: those of some lanes' addresses, each of which has bytes in one allocation.

    It takes the context, the addresses i64[lanes], the bytes, the lanes that count as bits of an i32, and where to put
    the host's addresses; gives an i1, whether all were found.
    """

    def make() -> str:
        kind = vector(lanes, "i64")
        code = Code(f"locate_{lanes}", [PTR, kind, "i64", "i32", PTR], "i1", "noinline nounwind")
        ctx, addresses, size, acting, to = code.arguments
        table = code.load(code.at(ctx, context_offset("table")), PTR, 8)
        count = code.load(code.at(ctx, context_offset("buffers")), "i64", 8)
        left, found = code.alloca(4, 4), code.alloca(8 * lanes, 64)
        code.store(acting, left, 4)
        code.store(addresses, found, 8)
        done = code.label()

        def look(index: Value) -> None:
            entry = code.at(table, code.mul(index, code.const(24, "i64")))
            start, length, delta = (code.load(code.at(entry, 8 * i), "i64", 8) for i in range(3))
            # Signed: an allocation may be smaller than the access.
            last = code.splat(code.sub(length, size), lanes)
            distance = code.sub(addresses, code.splat(start, lanes))
            within = code.and_(code.icmp("sle", distance, last), code.icmp("sge", distance, 0))
            moved = code.select(within, code.add(addresses, code.splat(delta, lanes)), code.load(found, kind, 8))
            code.store(moved, found, 8)
            rest = code.and_(code.load(left, "i32", 4), code.not_(code.mask_to_bits(within)))
            code.store(rest, left, 4)
            more = code.label()
            code.cond_br(code.icmp("eq", rest, 0), done, more)
            code.begin(more)

        code.repeat(count, look)
        code.br(done)
        code.begin(done)
        code.store(code.load(found, kind, 8), to, 8)
        code.ret(code.icmp("eq", code.load(left, "i32", 4), 0))
        return code.text()

    return emitter.helper(f"locate_{lanes}", make)


def _reacher(emitter: Emitter, lanes: int) -> str:
    """The same as `locator`, which also counts the bytes: it takes in addition where they are counted."""
    name = f"reach_{lanes}"

    def make() -> str:
        kind = vector(lanes, "i64")
        code = Code(name, [PTR, kind, "i64", "i32", PTR, "i64"], "i1", "noinline nounwind")
        ctx, addresses, size, acting, to, place = code.arguments
        fine = code.call(locator(emitter, lanes), ctx, addresses, size, acting, to, result="i1")
        counted, done = code.label(), code.label()
        code.cond_br(fine, counted, done)
        code.begin(counted)
        counter = code.at(code.load(code.at(ctx, context_offset("traffic")), PTR, 8), place)
        moved = code.mul(code.resize(code.intrinsic("ctpop", acting), 64, False), size)
        code.store(code.add(code.load(counter, "i64", 8), moved), counter, 8)
        code.br(done)
        code.begin(done)
        code.ret(fine)
        return code.text()

    return emitter.helper(name, make)


def _addresses(emitter: Emitter, inst: Instruction) -> Value:
    """Each lane's address, i64. The constant is added in the address's own width."""
    code, operand = emitter.code, inst["address"]
    bits = 64 if inst["address_size"] == "a64" else 32
    raw = code.fetch(emitter.thread, emitter.place(operand), vector(inst.exec_size, f"i{bits}"))
    found = code.add(raw, code.const(operand.plus, raw.type)) if operand.plus else raw
    return code.resize(found, 64, False)


def _locate(emitter: Emitter, inst: Instruction, at: int, size: int, aligned: bool = False) -> tuple[Value, Value]:
    """Host addresses i64[lanes] that a message reaches, and the lanes that act as bits of an i32; checked."""
    code, lanes = emitter.code, inst.exec_size
    addresses, acting = _addresses(emitter, inst), emitter.acting(inst)
    bits = code.const((1 << lanes) - 1, "i32") if acting is None else acting
    bytes_, category = code.const(size, "i64"), INSTRUCTIONS[inst.name].category
    if inst["sfid"] == "slm":
        last = emitter.program.slm_bytes - size
        fits = code.icmp("sle", addresses, last)
        missing = code.and_(bits, code.not_(code.mask_to_bits(fits)))
        fine = code.icmp("eq", missing, 0)
        base = code.op(f"ptrtoint {emitter.context('slm', PTR)} to i64", "i64")
        hosts = code.add(addresses, code.splat(base, lanes))
    else:
        to, counter = emitter.scratch(8 * lanes), code.const(traffic_offset("ugm", category), "i64")
        fine = code.call(_reacher(emitter, lanes), emitter.ctx, addresses, bytes_, bits, to, counter, result="i1")
        hosts = code.load(to, addresses.type, 8)
    if aligned:
        odd = code.mask_to_bits(code.icmp("ne", code.mask(addresses, size - 1), 0))
        fine = code.and_(fine, code.icmp("eq", code.and_(odd, bits), 0))
    emitter.require(fine, at)
    if inst["sfid"] == "slm":
        place = code.at(emitter.context("traffic", PTR), traffic_offset("slm", category))
        moved = code.mul(code.resize(code.intrinsic("ctpop", bits), 64, False), bytes_)
        code.store(code.add(code.load(place, "i64", 8), moved), place, 8)
    return hosts, bits


def _pointer(code: Code, address: Value) -> Value:
    return code.op(f"inttoptr {address} to ptr", PTR)


def _pointers(code: Code, addresses: Value) -> Value:
    return code.cast("inttoptr", addresses, PTR)


def _rows(shape: DataShape, lanes: int, grf_bytes: int) -> list[int]:
    """Where the elements of lane 0 lie in the operand."""
    return [int(n) for n in data_places(shape, lanes, grf_bytes)[0]]


def _if_acting(code: Code, bits: Value, body: Callable[[], None]) -> None:
    """Do something if a bit is set."""
    yes, done = code.label(), code.label()
    code.cond_br(code.icmp("ne", bits, 0), yes, done)
    code.begin(yes)
    body()
    code.br(done)
    code.begin(done)


@rule("lsc_load")
def lsc_load(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Load from each lane's address."""
    if inst["dst"].var is None:
        return
    code, shape, lanes = emitter.code, inst["data"], inst.exec_size
    base, size = emitter.place(inst["dst"]), shape.memory_bytes
    addresses, bits = _locate(emitter, inst, at, shape.vector * size)
    element, wide = f"i{8 * size}", f"i{8 * shape.register_bytes}"
    if lanes == 1:
        _load_one(emitter, code.extract(addresses, 0), bits, shape, base)
        return
    mask = code.bits_to_mask(bits, lanes)
    found = []
    for e, row in enumerate(_rows(shape, lanes, emitter.layout.target.grf_bytes)):
        before = code.fetch(emitter.thread, base + row, vector(lanes, wide))
        moved = code.add(addresses, code.const(e * size, addresses.type)) if e else addresses
        pointers = _pointers(code, moved)
        other = code.resize(before, 8 * size, False)
        loaded = code.gather(pointers, mask, other)
        if wide != element:
            loaded = code.select(mask, code.resize(loaded, bits=8 * shape.register_bytes, signed=False), before)
        found.append((loaded, base + row))
    for loaded, place in found:
        code.put(loaded, emitter.thread, place)


def _load_one(emitter: Emitter, address: Value, bits: Value, shape: DataShape, base: int) -> None:
    """Load the elements of one lane, which lie side by side in memory."""
    code, size = emitter.code, shape.memory_bytes

    def load() -> None:
        pointer = _pointer(code, address)
        places = _rows(shape, 1, emitter.layout.target.grf_bytes)
        if shape.vector > 1 and places == [i * size for i in range(shape.vector)]:
            code.put(code.load(pointer, vector(shape.vector, f"i{8 * size}")), emitter.thread, base)
            return
        for e, place in enumerate(places):
            loaded = code.load(code.at(pointer, e * size), f"i{8 * size}")
            code.put(code.resize(loaded, 8 * shape.register_bytes, False), emitter.thread, base + place)

    _if_acting(code, bits, load)


@rule("lsc_store")
def lsc_store(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Store to each lane's address; of lanes that share one the last wins."""
    code, shape, lanes = emitter.code, inst["data"], inst.exec_size
    base, size = emitter.place(inst["src0"]), shape.memory_bytes
    addresses, bits = _locate(emitter, inst, at, shape.vector * size)
    places = data_places(shape, lanes, emitter.layout.target.grf_bytes)
    if lanes > 1 and shape.vector == 1:
        values = code.fetch(emitter.thread, base, vector(lanes, f"i{8 * shape.register_bytes}"))
        values, mask, pointers = (
            code.resize(values, 8 * size, False),
            code.bits_to_mask(bits, lanes),
            _pointers(code, addresses),
        )
        code.scatter(values, pointers, mask)
        return

    def store(lane: int) -> None:
        pointer = _pointer(code, code.extract(addresses, lane))
        own = [int(p) for p in places[lane]]
        if own == [own[0] + i * size for i in range(len(own))]:
            code.store(code.fetch(emitter.thread, base + own[0], vector(len(own), f"i{8 * size}")), pointer)
            return
        for e, place in enumerate(own):
            code.store(code.fetch(emitter.thread, base + place, f"i{8 * size}"), code.at(pointer, e * size))

    # Lane by lane: where the elements of several lanes overlap, the later lane's are to stay.
    for lane in range(lanes):
        _if_acting(code, code.mask(bits, 1 << lane), partial(store, lane))


_RMW = {
    "iinc": "add", "idec": "sub", "load": "or", "store": "xchg", "iadd": "add", "isub": "sub", "smin": "min",
    "smax": "max", "umin": "umin", "umax": "umax", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
"""LLVM's atomic operations; `load` changes nothing by an or with zero."""


def _exchanged(code: Code, pointer: Value, old: Value, new: Value) -> tuple[Value, Value]:
    """Write a number if another one is there, as one step; what was there, and an i1, whether it was that one."""
    align = bits_of(old.type) // 8
    pair = code.op(f"cmpxchg {pointer}, {old}, {new} seq_cst seq_cst, align {align}", f"{{ {old.type}, i1 }}")
    return code.op(f"extractvalue {pair}, 0", old.type), code.op(f"extractvalue {pair}, 1", "i1")


def _atomic_float(emitter: Emitter, operation: str, bits: int) -> str:
    """A function that changes a float atomically: takes a pointer and the operands, gives the old value."""
    name = f"atomic_{operation}_{bits}"

    def make() -> str:
        code = Code(name, [PTR, f"i{bits}", f"i{bits}"], f"i{bits}", "noinline nounwind")
        pointer, a, b = code.arguments
        slot, again, done = code.alloca(8, 8), code.label(), code.label()
        code.store(code.load(pointer, f"i{bits}", bits // 8), slot, 8)
        code.br(again)
        code.begin(again)
        old = code.load(slot, f"i{bits}", 8)
        new = _changed(code, operation, bits, old, a, b)
        before, same = _exchanged(code, pointer, old, new)
        code.store(before, slot, 8)
        code.cond_br(same, done, again)
        code.begin(done)
        code.ret(old)
        return code.text()

    return emitter.helper(name, make)


def _changed(code: Code, operation: str, bits: int, old: Value, a: Value, b: Value) -> Value:
    """What becomes of a float's pattern."""
    fmt = TYPES[{16: "hf", 32: "f", 64: "df"}[bits]]

    def number(pattern: Value) -> Value:
        value = code.recast(pattern, {16: "f16", 32: "f32", 64: "f64"}[bits])
        return code.cast("fpext", value, "f32") if bits == 16 else value

    x, y = number(old), number(a)
    if operation == "fcas":
        return code.select(code.fcmp("oeq", x, y), b, old)
    if operation in ("fadd", "fsub"):
        return narrow(code, code.bin(operation, x, y), fmt)
    smaller = operation == "fmin"
    sign = code.icmp("slt" if smaller else "sge", old, 0)
    first = code.or_(code.fcmp("olt" if smaller else "ogt", x, y), code.and_(code.fcmp("oeq", x, y), sign))
    return narrow(code, code.select(code.or_(first, code.fcmp("uno", y, y)), x, y), fmt)


@rule(*(f"lsc_atomic_{name}" for name in ATOMICS))
def lsc_atomic(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Change each lane's location, lane after lane."""
    code, shape, lanes = emitter.code, inst["data"], inst.exec_size
    operation, size = inst.name.removeprefix("lsc_atomic_"), shape.memory_bytes
    addresses, acting = _locate(emitter, inst, at, size, aligned=True)
    places = [int(p[0]) for p in data_places(shape, lanes, emitter.layout.target.grf_bytes)]
    element, kind = f"i{8 * size}", f"i{8 * shape.register_bytes}"
    # All operands are read before the first result is written.
    operands = []
    for name in ("src0", "src1"):
        if inst[name].var is not None:
            whole = code.fetch(emitter.thread, emitter.place(inst[name]), vector(lanes, kind))
            operands.append(code.resize(whole, 8 * size, False))

    def change(lane: int) -> None:
        pointer = _pointer(code, code.extract(addresses, lane))
        old = _change(emitter, operation, element, pointer, [code.extract(o, lane) for o in operands])
        if inst["dst"].var is not None:
            wide = code.resize(old, 8 * shape.register_bytes, False)
            code.put(wide, emitter.thread, emitter.place(inst["dst"]) + places[lane])

    for lane in range(lanes):
        _if_acting(code, code.mask(acting, 1 << lane), partial(change, lane))


def _change(emitter: Emitter, operation: str, element: str, pointer: Value, operands: list[Value]) -> Value:
    """Change one location; what was there."""
    code, bits = emitter.code, int(element[1:])
    if operation in _RMW:
        neutral = code.const(0 if operation == "load" else 1, element)
        operand = operands[0] if operands else neutral
        return code.op(
            f"atomicrmw {_RMW[operation]} {pointer}, {operand} seq_cst, align {bits // 8}",
            element,
        )
    if operation == "icas":
        return _exchanged(code, pointer, operands[0], operands[1])[0]
    function = _atomic_float(emitter, operation, bits)
    second = operands[1] if len(operands) > 1 else code.const(0, element)
    return code.call(function, pointer, operands[0], second, result=element)


@rule("lsc_fence")
def lsc_fence(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Order memory for other workers; within a workgroup each access is complete before the next instruction."""
    emitter.code.line("fence seq_cst")


@rule("fence_sw")
def fence_sw(emitter: Emitter, inst: Instruction, at: int) -> None:
    """Nothing: instructions run in their order."""
