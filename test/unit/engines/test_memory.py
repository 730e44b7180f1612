"""Messages to memory against loops over single elements of a bytearray, and the faults of illegal accesses."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from msgspec import structs
from numerics.exact import value
from visa.programs import BASES, PREDICATES, random_instruction

from xegpu_py.engines.interpreter import Interpreter
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import TARGETS, verdict
from xegpu_py.target.message_rules import RULES, MessageRule, broken_rules
from xegpu_py.visa.messages import ATOMICS
from xegpu_py.visa.operands import Address, Guard, Raw, Region
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import BlockShape, DataShape
from xegpu_py.visa.verify import instruction_problem

from .machine import Machine, State, enabled, pattern, varied
from .scalar import chosen, encode, negated, plus

PVC = TARGETS["pvcxt"]
GROUPS, THREADS, SLM = 2, 4, 1024
WIDTHS = {"d8": (1, 1), "d16": (2, 2), "d32": (4, 4), "d64": (8, 8), "d8c32": (1, 4), "d16c32": (2, 4)}
"""Bytes in memory and in registers."""


@dataclass
class World:
    """The state that a message can access and change."""

    state: State
    data: bytearray
    slm: bytearray


def new_memory(rng: random.Random) -> DeviceMemory:
    memory = DeviceMemory()
    for name, size in (("first", 300), ("second", 4096), ("third", 77)):
        memory.bytes_of(memory.allocate(name, size))[:] = np.frombuffer(rng.randbytes(size), np.uint8)
    return memory


def run(inst: Instruction, machine: Machine, before: State, memory: DeviceMemory, slm: bytes = b"") -> World:
    batch = machine.batch(before, memory, len(slm) // GROUPS, GROUPS)
    batch.slm.data[:] = np.frombuffer(slm, np.uint8)
    Interpreter(machine.program([inst]), machine.layout()).run(batch)
    return World(
        State(batch.regs, batch.flags, before.active), bytearray(memory.data.tobytes()), bytearray(batch.slm.data)
    )


def same(got: World, want: World, inst: Instruction) -> None:
    np.testing.assert_array_equal(got.state.regs, want.state.regs, err_msg=str(inst))
    np.testing.assert_array_equal(got.state.flags, want.state.flags, err_msg=str(inst))
    assert got.data == want.data, inst
    assert got.slm == want.slm, inst


class Gather:
    """A random message by addresses in a random world, with addresses that are legal where its lanes act."""

    def __init__(self, inst: Instruction, rng: random.Random, machine: Machine, places: int, aligned: bool) -> None:
        self.inst, self.machine = inst, machine
        self.memory = new_memory(rng)
        self.slm = rng.randbytes(GROUPS * SLM)
        self.state = machine.state(THREADS, rng)
        self.shape: DataShape = inst["data"]
        self.width, self.held = WIDTHS[self.shape.size]
        self.local = inst["sfid"] == "slm"
        total = self.shape.vector * self.width
        rooms = [(0, SLM)] if self.local else [(b.address, b.bytes) for b in self.memory.buffers]
        fitting = [r for r in rooms if r[1] >= total]
        spots = []
        for _ in range(places):
            start, size = rng.choice(fitting)
            offset = rng.choice((0, size - total, rng.randint(0, size - total)))
            spots.append(start + (offset // self.width * self.width if aligned else offset))
        operand: Address = inst["address"]
        each = 8 if inst["address_size"] == "a64" else 4
        self.addresses = []
        for thread in range(THREADS):
            acts = enabled(inst, self.state, thread, machine)
            row = [rng.choice(spots) for _ in acts]
            for lane, (act, address) in enumerate(zip(acts, row)):
                if act:
                    at = machine.offsets[operand.var] + operand.offset + each * lane
                    bits = (address - operand.plus) % (1 << 8 * each)
                    self.state.regs[thread, at : at + each] = np.frombuffer(bits.to_bytes(each, "little"), np.uint8)
            self.addresses.append(row)

    def place(self, thread: int, lane: int) -> tuple[str, int]:
        """The start of a lane's data: which of the world's memories, and which byte."""
        address = self.addresses[thread][lane]
        if self.local:
            return "slm", thread // (THREADS // GROUPS) * SLM + address
        return "data", address - 0x100000

    def register(self, name: str, lane: int, element: int) -> int:
        """The byte in the register file of a lane's element."""
        raw: Raw = self.inst[name]
        start = self.machine.offsets[raw.var] + raw.offset
        if self.shape.transpose:
            return start + element * self.held
        grf = self.machine.target.grf_bytes
        # The registers of a message have room for a GRF of dwords at least.
        row = -(-max(self.inst.exec_size, grf // 4) * self.held // grf) * grf
        return start + element * row + lane * self.held

    def world(self) -> World:
        state = State(self.state.regs.copy(), self.state.flags.copy(), self.state.active)
        return World(state, bytearray(self.memory.data.tobytes()), bytearray(self.slm))

    def acting(self) -> list[tuple[int, int]]:
        """(thread, lane) in order."""
        return [
            (thread, lane)
            for thread in range(THREADS)
            if self.state.active[thread].any()
            for lane, act in enumerate(enabled(self.inst, self.state, thread, self.machine))
            if act
        ]

    def run(self) -> World:
        return run(self.inst, self.machine, self.state, self.memory, self.slm)


def gathers(name: str, seed: str, count: int, places: int = 6, aligned: bool = False) -> list[Gather]:
    rng = random.Random(seed)
    found = []
    for n in range(count):
        machine = Machine(TARGETS["dg2" if n % 5 == 0 else "pvcxt"])
        inst = varied(random_instruction(name, rng, machine.target), rng, machine.target)
        found.append(Gather(inst, rng, machine, places, aligned))
    return found


def test_loads() -> None:
    shapes = set()
    for case in gathers("lsc_load", "load", 250):
        want = case.world()
        if case.inst["dst"].var is not None:
            shapes.add((str(case.shape), case.inst["sfid"]))
            for thread, lane in case.acting():
                memory, at = case.place(thread, lane)
                for element in range(case.shape.vector):
                    bits = getattr(want, memory)[at + element * case.width : at + (element + 1) * case.width]
                    to = case.register("dst", lane, element)
                    padded = bytes(bits) + bytes(case.held - case.width)
                    want.state.regs[thread, to : to + case.held] = np.frombuffer(padded, np.uint8)
        same(case.run(), want, case.inst)
    assert len(shapes) > 20


def test_stores() -> None:
    for case in gathers("lsc_store", "store", 250):
        want = case.world()
        for thread, lane in case.acting():
            memory, at = case.place(thread, lane)
            for element in range(case.shape.vector):
                start = case.register("src0", lane, element)
                bits = case.state.regs[thread, start : start + case.width].tobytes()
                getattr(want, memory)[at + element * case.width : at + (element + 1) * case.width] = bits
        same(case.run(), want, case.inst)


def _number(kind: str, bits: int, rng: random.Random) -> int:
    """A pattern; zeros of both signs are frequent, since which of them is smaller is a rule of its own."""
    return rng.getrandbits(1) << (bits - 1) if rng.random() < 0.2 else pattern(kind, bits, rng)


def _signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


def _float(function: Callable[..., object]) -> Callable[..., int]:
    def operation(bits: int, *patterns: int) -> int:
        name = {16: "hf", 32: "f", 64: "df"}[bits]
        return encode(function(*(value(p, name) for p in patterns)), name)

    return operation


REFERENCE: dict[str, Callable[..., int]] = {
    "iinc": lambda bits, old: old + 1,
    "idec": lambda bits, old: old - 1,
    "load": lambda bits, old: old,
    "store": lambda bits, old, a: a,
    "iadd": lambda bits, old, a: old + a,
    "isub": lambda bits, old, a: old - a,
    "smin": lambda bits, old, a: min(_signed(old, bits), _signed(a, bits)),
    "smax": lambda bits, old, a: max(_signed(old, bits), _signed(a, bits)),
    "umin": lambda bits, old, a: min(old, a),
    "umax": lambda bits, old, a: max(old, a),
    "and": lambda bits, old, a: old & a,
    "or": lambda bits, old, a: old | a,
    "xor": lambda bits, old, a: old ^ a,
    "icas": lambda bits, old, a, b: b if old == a else old,
    "fadd": _float(plus),
    "fsub": _float(lambda old, a: plus(old, negated(a))),
    "fmin": _float(lambda old, a: chosen(old, a, True)),
    "fmax": _float(lambda old, a: chosen(old, a, False)),
    "fcas": lambda bits, old, a, b: b if value(old, _name(bits)) == value(a, _name(bits)) else old,
}


def _name(bits: int) -> str:
    return {16: "hf", 32: "f"}[bits]


@pytest.mark.parametrize("operation", ATOMICS)
def test_atomics(operation: str) -> None:
    """Updates are made in the order of threads and lanes, many of which access the same place."""
    returned = 0
    rng = random.Random(operation)
    for case in gathers(f"lsc_atomic_{operation}", operation, 24, places=3, aligned=True):
        bits = 8 * case.width
        kind = {16: "hf", 32: "f", 64: "df"}[bits] if operation[0] == "f" else "u"
        acting = case.acting()
        # Numbers, not arbitrary bytes; some are those in memory, so that comparisons succeed.
        for thread, lane in acting:
            memory, at = case.place(thread, lane)
            if rng.random() < 0.5:
                held = _number(kind, bits, rng).to_bytes(case.width, "little")
                if memory == "slm":
                    case.slm = case.slm[:at] + held + case.slm[at + case.width :]
                else:
                    case.memory.data[at : at + case.width] = np.frombuffer(held, np.uint8)
        for name in ("src0", "src1"):
            if case.inst[name].var in (None, case.inst["address"].var):
                continue
            for thread, lane in acting:
                memory, at = case.place(thread, lane)
                found = case.slm if memory == "slm" else case.memory.data.tobytes()
                same_as = int.from_bytes(found[at : at + case.width], "little")
                bits_ = same_as if rng.random() < 0.5 and operation[1:] == "cas" else _number(kind, bits, rng)
                to = case.register(name, lane, 0)
                case.state.regs[thread, to : to + case.width] = np.frombuffer(
                    bits_.to_bytes(case.width, "little"), np.uint8
                )
        want = case.world()
        for thread, lane in acting:
            memory, at = case.place(thread, lane)
            old = int.from_bytes(getattr(want, memory)[at : at + case.width], "little")
            operands = [
                int.from_bytes(case.state.regs[thread, r : r + case.width].tobytes(), "little")
                for name in ("src0", "src1")
                if case.inst[name].var is not None
                for r in [case.register(name, lane, 0)]
            ]
            new = REFERENCE[operation](bits, old, *operands) % (1 << bits)
            getattr(want, memory)[at : at + case.width] = new.to_bytes(case.width, "little")
            if case.inst["dst"].var is not None:
                returned += 1
                to = case.register("dst", lane, 0)
                want.state.regs[thread, to : to + case.held] = np.frombuffer(
                    old.to_bytes(case.held, "little"), np.uint8
                )
        same(case.run(), want, case.inst)
    assert returned > 20


# 2D blocks.


def surfaces() -> tuple[Machine, dict[str, Region]]:
    machine = Machine(PVC)
    by_name = {v.name: v for v in machine.variables}
    names = ("width", "height", "pitch", "x", "y")
    operands = {n: Region(by_name["D1"], 0, i, 0, 1, 0) for i, n in enumerate(names)}
    return machine, {"base": Region(BASES[0], 0, 0, 0, 1, 0), **operands}


def block_message(block: BlockShape, store: bool, operands: dict[str, Region], rng: random.Random) -> Instruction:
    machine_var = next(v for v in Machine(PVC).variables if v.name == "F0")
    values: dict[str, object] = {"sfid": "ugm", "block": block, "caches": "", **operands}
    values["src0" if store else "dst"] = Raw(machine_var, 0)
    name = "lsc_store_block2d" if store else "lsc_load_block2d"
    guard = Guard(PREDICATES[-1], rng.random() < 0.5) if rng.random() < 0.3 else None
    return Instruction(name, values, 1, rng.choice(("M1", "M1_NM", "M2")), guard)


def blocks(store: bool) -> list[BlockShape]:
    """All legal ones of some sizes that fit the variable."""
    machine, operands = surfaces()
    found = []
    for size in (8, 16, 32, 64):
        for count in (1, 2, 4):
            for width in (1, 2, 4, 5, 8, 12, 16, 32, 64):
                for height in (1, 2, 3, 7, 8, 16, 32):
                    for transpose, vnni in ((False, False), (True, False), (False, True)):
                        block = BlockShape(size, count, width, height, transpose, vnni)
                        inst = block_message(block, store, operands, random.Random(0))
                        if instruction_problem(inst, machine.target) is None:
                            found.append(block)
    return found


def block_register(block: BlockShape, b: int, row: int, column: int) -> int:
    """The byte from the operand's start at which an element of block `b` lies."""
    size = block.size // 8
    pack = 4 // size if block.vnni else 1
    rows, columns = (block.width, block.height) if block.transpose else (block.height, block.width)
    padded = 1
    while padded < columns:
        padded *= 2
    r, c = (column, row) if block.transpose else (row, column)
    each = -(-rows // pack) * pack * padded * size
    each = -(-each // 64) * 64
    return b * each + ((r // pack * padded + c) * pack + r % pack) * size


def block_bytes(block: BlockShape) -> int:
    """Bytes of a whole message."""
    last = block_register(structs.replace(block, count=1), 0, block.height - 1, block.width - 1)
    return -(-(last + 1) // 64) * 64 * block.count


@pytest.mark.parametrize("store", [False, True])
def test_blocks(store: bool) -> None:
    rng = random.Random(3)
    machine, operands = surfaces()
    shapes = blocks(store)
    assert len(shapes) > (20 if store else 90)
    assert {b.size for b in shapes} == {8, 16, 32, 64}
    for block in shapes:
        inst = block_message(block, store, operands, rng)
        memory = DeviceMemory()
        state = machine.state(THREADS, rng)
        world: list[dict[str, int]] = []
        for thread in range(THREADS):
            size = block.size // 8
            width = rng.choice((64, 68, 100, 128, 256)) // size * size
            pitch = -(-width // 16) * 16 + rng.choice((0, 16, 64))
            height = rng.choice((1, 2, 5, 9, 40))
            # Just as large as the surface: its last row ends with its width.
            buffer = memory.allocate(f"surface{thread}", (height - 1) * pitch + width + 64)
            memory.bytes_of(buffer)[:] = np.frombuffer(rng.randbytes(buffer.bytes), np.uint8)
            columns = width // size
            x = rng.choice(
                (0, 1, -1, -3, columns - 2, columns, rng.randint(-20, columns + 4), -(1 << 31), (1 << 31) - 1)
            )
            y = rng.choice((0, 1, -1, height - 1, height, rng.randint(-8, height + 2), -(1 << 31), (1 << 31) - 1))
            surface = {"base": buffer.address + 64, "width": width, "height": height, "pitch": pitch, "x": x, "y": y}
            world.append(surface)
            at = machine.offsets[BASES[0]]
            state.regs[thread, at : at + 8].view(np.uint64)[0] = surface["base"]
            at = machine.offsets[operands["x"].var]
            words = [width - 1, height - 1, pitch - 1, x, y]
            state.regs[thread, at : at + 20].view(np.int32)[:] = words
        want = World(State(state.regs.copy(), state.flags, state.active), bytearray(memory.data.tobytes()), bytearray())
        start = machine.offsets[inst["src0" if store else "dst"].var]
        for thread, surface in enumerate(world):
            if not state.active[thread].any() or not enabled(inst, state, thread, machine)[0]:
                continue
            if not store:
                want.state.regs[thread, start : start + block_bytes(block)] = 0
            for b in range(block.count):
                for row in range(block.height):
                    for column in range(block.width):
                        x, y = surface["x"] + b * block.width + column, surface["y"] + row
                        if x < 0 or (x + 1) * size_of(block) > surface["width"] or not 0 <= y < surface["height"]:
                            continue
                        at = surface["base"] - 0x100000 + y * surface["pitch"] + x * size_of(block)
                        to = start + block_register(block, b, row, column)
                        if store:
                            bits = state.regs[thread, to : to + size_of(block)].tobytes()
                            want.data[at : at + size_of(block)] = bits
                        else:
                            bits = bytes(want.data[at : at + size_of(block)])
                            want.state.regs[thread, to : to + len(bits)] = np.frombuffer(bits, np.uint8)
        same(run(inst, machine, state, memory), want, inst)


def size_of(block: BlockShape) -> int:
    return block.size // 8


def test_prefetches_change_nothing_and_never_fail() -> None:
    rng = random.Random(4)
    machine, operands = surfaces()
    gather = {"sfid": "ugm", "data": DataShape("d32"), "caches": "", "address_size": "a64"}
    address = Address(next(v for v in machine.variables if v.type == "uq" and v.count > 1))
    for inst in (
        replace_values(block_message(BlockShape(16, 1, 16, 8), False, operands, rng), dst=Raw(None)),
        Instruction("lsc_load", {**gather, "dst": Raw(None), "address": address}, 8, "M1_NM"),
    ):
        state, memory = machine.state(THREADS, rng), new_memory(rng)
        want = World(state, bytearray(memory.data.tobytes()), bytearray())
        same(run(inst, machine, state, memory), want, inst)


def replace_values(inst: Instruction, **values: object) -> Instruction:
    return inst.replaced(values={**inst.values, **values})


# Faults.

HEAD = """\
.version 3.8
.kernel "astray"
.decl A v_type=G type=uq num_elts=1 align=qword
.decl B v_type=G type=uq num_elts=1 align=qword
.decl At v_type=G type=ud num_elts=1 align=dword
.decl Id v_type=G type=ud num_elts=3 align=dword
.decl Addr v_type=G type=uq num_elts=16 align=GRF
.decl Local v_type=G type=ud num_elts=16 align=GRF
.decl Data v_type=G type=ud num_elts=64 align=GRF
.decl X v_type=G type=d num_elts=1 align=dword
.decl Base v_type=G type=uq num_elts=1 align=qword
.decl P v_type=P num_elts=16
.input A offset=64 size=8
.input B offset=72 size=8
.input At offset=80 size=4
.implicit_LOCAL_ID Id offset=84 size=12
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
.kernel_attr SLMSize=1
"""


def fault(body: str, at: int = 0, grid: tuple[int, ...] = (1,), block: tuple[int, ...] = (1,)) -> DiagnosticError:
    kernel = Kernel.from_assembly(HEAD + body + "    ret (M1, 1)\n", file="astray.visaasm")
    a, b = np.zeros(64, np.uint8), np.zeros(128, np.uint8)
    with pytest.raises(DiagnosticError) as caught:
        kernel(a, b, np.uint32(at), grid=grid, block=block)
    assert not a.any() and not b.any()
    return caught.value


def lines(error: DiagnosticError) -> list[str]:
    assert len(error.diagnostics) == 1
    (diagnostic,) = error.diagnostics
    return [diagnostic.message, *(n.message for n in diagnostic.notes)]


SCATTER = """\
    mov (M1_NM, 16) Addr(0,0)<1> A(0,0)<0;1,0>
    cmp.eq (M1, 1) P %group_id_x(0,0)<0;1,0> 2:ud
    (!P) jmp (M1, 1) Go
    cmp.eq (M1, 1) P Id(0,0)<0;1,0> 1:ud
    (!P) jmp (M1, 1) Go
    add (M1, 1) Addr(0,5)<1> A(0,0)<0;1,0> At(0,0)<0;1,0>
Go:
    lsc_load.ugm (M1_NM, 16) Data.0:d32 flat[Addr]:a64
"""


def test_fault_says_where() -> None:
    """The message names the thread and lane, the access, and the line."""
    error = fault(SCATTER, 61, grid=(4, 2), block=(2,))
    assert lines(error) == [
        "'lsc_load' reads 4 bytes at 0x10003d, reaching 1 bytes over the end of 'A', which has 64 bytes",
        "in workgroup (2, 0, 0), subgroup 1, lane 5",
        "instruction 7 of kernel 'astray': lsc_load.ugm (M1_NM, 16) Data.0:d32 flat[Addr.0]:a64",
    ]
    line = len((HEAD + SCATTER).splitlines())
    assert str(error).startswith(f"astray.visaasm:{line}:5: error: ")
    assert "    lsc_load.ugm (M1_NM, 16)" in str(error)


@pytest.mark.parametrize(
    ("at", "what"),
    [
        (-1, "0xfffff, 1 bytes before 'A', which has 64 bytes"),
        (8191, "0x101fff, 1 bytes before 'B', which has 128 bytes"),
        (8192 + 125, "0x10207d, reaching 1 bytes over the end of 'B', which has 128 bytes"),
        (64, "0x100040, reaching 4 bytes over the end of 'A', which has 64 bytes"),
    ],
)
def test_fault_names_the_nearest_buffer(at: int, what: str) -> None:
    body = f"""\
    mov (M1, 1) X(0,0)<1> {at}:d
    add (M1, 1) Addr(0,0)<1> A(0,0)<0;1,0> X(0,0)<0;1,0>
    lsc_store.ugm (M1, 1) flat[Addr]:a64 Data.0:d32
"""
    message, where, _ = lines(fault(body))
    assert message == f"'lsc_store' writes 4 bytes at {what}"
    assert where == "in workgroup (0, 0, 0), subgroup 0"


@pytest.mark.parametrize("address", ["0x0:ud", "0xfff:ud"])
def test_null_pointers(address: str) -> None:
    body = f"""\
    mov (M1_NM, 8) Addr(0,0)<1> {address}
    lsc_atomic_iinc.ugm (M1_NM, 8) %null.0:d32 flat[Addr]:a64 %null.0 %null.0
"""
    message, where, _ = lines(fault(body))
    assert message.startswith("'lsc_atomic_iinc' atomically accesses 4 bytes at 0x")
    assert "before 'A'" in message and where.endswith("lane 0")


def test_addresses_far_from_all_buffers() -> None:
    body = """\
    mov (M1, 1) Addr(0,0)<1> 0xffffffff:ud
    shl (M1, 1) Addr(0,0)<1> Addr(0,0)<0;1,0> 32:ud
    lsc_load.ugm (M1, 1) Data.0:d32 flat[Addr]:a64
"""
    assert lines(fault(body))[0] == "'lsc_load' reads 4 bytes at 0xffffffff00000000, which is in no buffer"


@pytest.mark.parametrize(("at", "good"), [(1020, True), (1021, False), (0xFFFFFFFC, False)])
def test_shared_local_memory_has_bounds(at: int, good: bool) -> None:
    body = f"""\
    mov (M1_NM, 16) Local(0,0)<1> 0:ud
    mov (M1, 1) Local(0,3)<1> {at}:ud
    lsc_store.slm (M1_NM, 16) flat[Local]:a32 Data.0:d32
"""
    if good:
        Kernel.from_assembly(HEAD + body + "    ret (M1, 1)\n")(np.zeros(4), np.zeros(4), 0)
        return
    message, where, _ = lines(fault(body))
    assert message == f"'lsc_store' writes 4 bytes at {at:#x} of the shared local memory, which has 1024 bytes"
    assert where == "in workgroup (0, 0, 0), subgroup 0, lane 3"


def test_fault_counts_lanes_that_are_off() -> None:
    body = """\
    mov (M1_NM, 16) Addr(0,0)<1> A(0,0)<0;1,0>
    mov (M1, 1) Addr(0,2)<1> 0:ud
    mov (M1, 1) Addr(1,1)<1> 0:ud
    setp (M1_NM, 16) P 0x310:uw
    (P) lsc_load.ugm (M1_NM, 16) Data.0:d32 flat[Addr]:a64
"""
    assert lines(fault(body))[1] == "in workgroup (0, 0, 0), subgroup 0, lane 9"


@pytest.mark.parametrize("sfid", ["ugm", "slm"])
def test_atomics_are_aligned(sfid: str) -> None:
    address = "flat[Addr]:a64" if sfid == "ugm" else "flat[Local]:a32"
    body = f"""\
    mov (M1_NM, 16) Addr(0,0)<1> B(0,0)<0;1,0>
    mov (M1_NM, 16) Local(0,0)<1> 8:ud
    add (M1, 1) Addr(0,6)<1> B(0,0)<0;1,0> 2:ud
    mov (M1, 1) Local(0,6)<1> 0x2:ud
    lsc_atomic_iinc.{sfid} (M1_NM, 16) %null.0:d32 {address} %null.0 %null.0
"""
    message, where, rule, _ = lines(fault(body))
    assert message == "'lsc_atomic_iinc' atomically accesses 4 bytes at an address that is not a multiple of that"
    assert rule.startswith("rule atomic-align: an atomic's address is a multiple of its element's size; ")
    assert where == "in workgroup (0, 0, 0), subgroup 0, lane 6"


def test_disabled_lanes_go_nowhere() -> None:
    """Lanes that the predicate switches off may have any address."""
    body = """\
    mov (M1_NM, 16) Addr(0,0)<1> 0:ud
    mov (M1, 1) Addr(0,4)<1> A(0,0)<0;1,0>
    setp (M1_NM, 16) P 0x10:uw
    (P) lsc_load.ugm (M1_NM, 16) Data.0:d32 flat[Addr]:a64
    ret (M1, 1)
"""
    Kernel.from_assembly(HEAD + body)(np.zeros(4), np.zeros(4), 0)


SURFACE = "lsc_load_block2d.ugm (M1, 1) Data.0:d32.16x1nn flat[Base,{width},{height},{pitch},0x0,0x0]"


def surface_error(target: str, engine: str, text: str = SURFACE, **change: int) -> list[str]:
    """The error of a message of one thread in a copy of `SURFACE`, and its notes; nothing if it is executed."""
    shape = {"base": 0, "width": 64, "height": 1, "pitch": 64, "x": 0, "y": 0} | change
    shown = {
        n: f"{(v - 1) % (1 << 32) if n in ('width', 'height', 'pitch') else v % (1 << 32):#x}" for n, v in shape.items()
    }
    text = text.replace("0x0,0x0]", "{x},{y}]").format(**shown)
    body = f"    add (M1, 1) Base(0,0)<1> B(0,0)<0;1,0> {shape['base']}:ud\n    {text}\n    ret (M1, 1)\n"
    kernel = Kernel.from_assembly(HEAD + body, file="astray.visaasm", target=target, engine=engine, cache="off")
    try:
        kernel(np.zeros(64, np.uint8), np.zeros(1 << 12, np.uint8), np.uint32(0))
    except DiagnosticError as error:
        return lines(error)
    return []


LONG = 1 << 24
ENDS = [
    # Of each rule what breaks it, and what is just legal.
    ("base", {"base": 32}, {"base": 64}, "base is not a multiple of 64"),
    ("pitch-least", {"width": 48, "pitch": 48}, {}, "pitch is below 64 bytes"),
    ("pitch-multiple", {"pitch": 72}, {"pitch": 80}, "pitch is not a multiple of 16 bytes"),
    ("pitch-most", {"pitch": LONG}, {"pitch": LONG - 16}, f"pitch is above {LONG - 1} bytes"),
    ("width-least", {"width": 60}, {}, "width is below 64 bytes"),
    ("width-multiple", {"width": 66, "pitch": 80}, {"width": 68, "pitch": 80}, "width is not a multiple of 4 bytes"),
    ("width-most", {"width": LONG + 64, "pitch": LONG + 64}, {}, f"pitch is above {LONG - 1} bytes"),
    ("height-most", {"height": LONG + 1}, {}, f"height is above {LONG} rows"),
    ("height-most", {"height": 0}, {"height": 2}, f"height is above {LONG} rows"),
    ("pitch-width", {"width": 128, "pitch": 112}, {"width": 128, "pitch": 128}, "pitch is below the width"),
]


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize(("rule", "broken", "kept", "message"), ENDS, ids=[e[0] for e in ENDS])
def test_rules_of_surfaces(rule: str, broken: dict[str, int], kept: dict[str, int], message: str, engine: str) -> None:
    error = surface_error("bmg", engine, **broken)
    assert error[0].startswith(f"'lsc_load_block2d' accesses a surface whose {message}: base 0x")
    assert any(note.startswith(f"rule block2d-{rule}: ") and "; bmg" in note for note in error)
    assert surface_error("bmg", engine, **kept) == []


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_columns_of_blocks_of_small_elements(bits: int, engine: str) -> None:
    """The first column is a multiple of 4 bytes; a wide one may be anywhere, also outside."""
    text = SURFACE.replace("d32.16x1nn", f"d{bits}.{256 // bits}x1nn")
    for x in (-4, -2, -1, 0, 1, 2, 3, 4):
        error = surface_error("bmg", engine, text, x=x)
        assert bool(error) == (x * bits % 32 != 0), x
        if error:
            assert error[0].endswith(f", column {x}") and "block begins in a column that is not" in error[0]
            assert "bmg and lnl return undefined data" in error[2]


def test_rules_of_each_target() -> None:
    """52 bytes are below the least, and no multiple of 16: an error of Xe2, tolerated by Xe-HPC, legal on Xe3P."""
    for target in ("pvc", "pvcxt", "cri"):
        assert surface_error(target, "jit", width=52, pitch=52) == surface_error(target, "interpreter", width=52) == []
    for target in ("bmg", "lnl", "ptl", "any"):
        error = surface_error(target, "jit", width=52, pitch=52)
        assert error == surface_error(target, "interpreter", width=52, pitch=52)
        assert error[0].startswith("'lsc_load_block2d' accesses a surface whose pitch is below 64 bytes: ")
        assert [note.split(":")[0] for note in error if note.startswith("rule")] == [
            f"rule block2d-{name}" for name in ("pitch-least", "pitch-multiple", "width-least")
        ]
    assert (
        "; bmg and lnl return undefined data; pvc and pvcxt accept it; ptl"
        in surface_error("bmg", "jit", width=52, pitch=52)[2]
    )
    assert "; cri allows it" in surface_error("bmg", "jit", width=52, pitch=52)[2]
    # A message of Xe-HPC needs 4 bytes, and a base as aligned as elsewhere.
    assert surface_error("pvcxt", "jit", width=54, pitch=64) and surface_error("pvcxt", "jit", base=16)
    assert surface_error("pvcxt", "jit", height=2, pitch=LONG, width=64)[0].startswith(
        "'lsc_load_block2d' reads a surface"
    )


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_widths_of_wide_elements(engine: str) -> None:
    text = SURFACE.replace("d32.16x1nn", "d64.8x1nn")
    assert "width is not a multiple of 8 bytes" in surface_error("bmg", engine, text, width=68, pitch=80)[0]
    assert surface_error("bmg", engine, text, width=72, pitch=80) == []


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_prefetches_keep_the_rules(engine: str) -> None:
    """Of assembly; they may be of memory that is not allocated."""
    text = SURFACE.replace("Data.0", "%null.0")
    assert "pitch is not a multiple of 16 bytes" in surface_error("bmg", engine, text, pitch=72)[0]
    assert surface_error("bmg", engine, text, height=1 << 20, pitch=1 << 20) == []


def random_surface(rng: random.Random) -> dict[str, int]:
    """Operands of which most are at or next to a limit."""
    near = lambda *limits: rng.choice(limits) + rng.choice((-16, -8, -4, -2, -1, 0, 0, 0, 0, 1, 2, 4, 8, 16))  # noqa: E731
    width = near(4, 64, 64, 64, 128, LONG) if rng.random() < 0.5 else 64
    return {
        "base": rng.choice((0, 0, 0, 64, 128, 16, 32, 1)),
        "width": max(width, 1),
        "height": rng.choice((1, 1, 1, 2, 5, LONG, LONG + 1, 1 << 32)),
        "pitch": max(rng.choice((width, 64, 80, near(64, 128, LONG))), 1),
        "x": rng.choice((0, 0, -4, -1, 1, 2, 3, 16)),
        "y": rng.choice((0, 0, -1, 3)),
    }


@pytest.mark.each_value
@pytest.mark.parametrize("target", ["bmg", "pvcxt", "ptl", "cri"])
@pytest.mark.parametrize("block", ["d8.64x1nn", "d16.32x1nn", "d32.16x1nn", "d64.8x1nn"])
def test_random_surfaces(target: str, block: str) -> None:
    """Both engines refuse what the table refuses, and say the same."""
    names = ("width", "height", "pitch", "x", "y")
    extra = "".join(
        f".decl {n} v_type=G type=ud num_elts=1 align=dword\n.input {n} offset={96 + 4 * i} size=4\n"
        for i, n in enumerate(names)
    )
    body = f"""\
    add (M1, 1) Base(0,0)<1> B(0,0)<0;1,0> At(0,0)<0;1,0>
    lsc_load_block2d.ugm (M1, 1) Data.0:{block} flat[Base,width,height,pitch,x,y]
    lsc_store.ugm (M1, 1) flat[A]:a64 Data:d32x16t
    ret (M1, 1)
"""
    kernels = [
        Kernel.from_assembly(HEAD + extra + body, file="astray.visaasm", target=target, engine=engine, cache="off")
        for engine in ("interpreter", "jit")
    ]
    limits = TARGETS[target].block2d
    assert limits
    rng = random.Random(f"{target} {block}")
    data = np.frombuffer(rng.randbytes(1 << 12), np.uint8)
    refused = set()
    for _ in range(60):
        surface = random_surface(rng)
        broken = [r.name for r in broken_rules(limits.executed, surface | {"size": int(block[1:].split(".")[0]) // 8})]
        got = []
        for kernel in kernels:
            out = np.zeros(64, np.uint8)
            sent = [np.uint32((surface[n] - (n in names[:3])) % (1 << 32)) for n in names]
            try:
                kernel(out, data.copy(), np.uint32(surface["base"]), *sent)
                got.append(["", *out.tolist()])
            except DiagnosticError as error:
                got.append(lines(error))
        assert got[0] == got[1], surface
        assert ("accesses a surface whose" in got[0][0]) == bool(broken), surface
        assert [n.split(":")[0] for n in got[0] if str(n).startswith("rule ")] == [f"rule {n}" for n in broken], surface
        refused.update(broken)
    assert len(refused) > 4


def test_surfaces_that_are_known_before_the_launch() -> None:
    """The lowering takes the limits from the same rules; what is not known is trusted."""
    limits = TARGETS["bmg"].block2d
    assert limits
    good = {"width": 64, "height": 1, "pitch": 64, "base": 0}
    for change in ({}, {"width": LONG - 16, "pitch": LONG - 16}, {"height": LONG}, dict.fromkeys(good)):
        assert limits.surface_problem(*(good | change).values()) is None
    for change, problem in (
        ({"height": 0}, "has no rows, but 2D block messages need 1"),
        ({"height": LONG + 1}, f"has {LONG + 1} rows"),
        ({"width": 60}, "has rows of 60 bytes, but 2D block messages need 64"),
        ({"width": 66, "pitch": 80}, "a multiple of 4"),
        ({"pitch": 48, "width": None}, "has a pitch of 48 bytes, but 2D block messages need 64"),
        ({"pitch": 72}, "a multiple of 16"),
        ({"pitch": LONG}, f"at most {LONG - 1}"),
        ({"width": 128}, "has a pitch of 64 bytes, less than its rows' 128"),
        ({"base": 32}, "begins 32 bytes behind its buffer"),
    ):
        found = limits.surface_problem(*(good | change).values())
        assert found is not None and problem in found

    for strides in ((), (None,), (64, None, 128)):
        assert limits.outer_problem(strides) is None
    for strides in ((None, 96), (96,), (64, 96)):
        problem = limits.outer_problem(strides)
        assert problem is not None and "has matrices that begin 96 bytes behind each other" in problem


@pytest.mark.parametrize("rule", [*RULES.values()], ids=lambda rule: rule.name)
def test_the_verdict_names_each_gpu_once(rule: MessageRule) -> None:
    """GPUs that do not exist react to nothing, and those without 2D block messages do not to these."""
    text = verdict(rule, TARGETS["bmg"])
    assert text.startswith(f"rule {rule.name}: {rule.sentence(TARGETS['bmg'].block2d)}; ")
    outcomes = text.removeprefix(f"rule {rule.name}: {rule.sentence(TARGETS['bmg'].block2d)}; ")
    named = [word.strip(",;") for word in outcomes.split() if word.strip(",;") in TARGETS]
    gpus = {name for name, gpu in TARGETS.items() if gpu.generation}
    if rule.name.startswith("block2d"):
        gpus = {name for name in gpus if TARGETS[name].block2d}
    assert sorted(named) == sorted(gpus) and named[0] == "bmg"
    assert 0 < len(gpus) < len(TARGETS)


@pytest.mark.parametrize(
    ("shape", "strides", "problem"),
    [
        ((64,), (4,), None),
        ((3, 16), (64, 4), None),
        ((3, 15), (60, 4), "has rows of 60 bytes"),
        ((16, 3), (4, 64), None),
        ((15, 3), (4, 60), "has rows of 60 bytes"),
        ((2, 3, 16), (192, 64, 4), None),
        ((2, 3, 16), (208, 64, 4), "has matrices that begin 208 bytes behind each other"),
        ((1, 3, 16), (208, 64, 4), None),
        ((2, 1, 3, 16), (400, 208, 64, 4), "has matrices that begin 400 bytes behind each other"),
    ],
)
def test_arrays_that_messages_address(shape: tuple[int, ...], strides: tuple[int, ...], problem: str | None) -> None:
    """Row-major or column-major matrices, of which those of more dimensions begin at multiples of 64 bytes."""
    limits = TARGETS["bmg"].block2d
    assert limits
    found = limits.array_problem(np.lib.stride_tricks.as_strided(np.zeros(256, np.float32), shape, strides))
    assert found is None if problem is None else found is not None and problem in found


@pytest.mark.parametrize("bad", ["outside", "illegal"])
def test_surface_faults_name_the_thread_of_several(bad: str) -> None:
    """Threads that are predicated off do not count."""
    body = f"""\
    mov (M1, 1) Base(0,0)<1> B(0,0)<0;1,0>
    cmp.eq (M1, 1) P Id(0,0)<0;1,0> 3:ud
    (P) add (M1, 1) Base(0,0)<1> B(0,0)<0;1,0> {128 if bad == "outside" else 4}:ud
    cmp.ge (M1, 1) P Id(0,0)<0;1,0> 2:ud
    (P) {SURFACE.format(width="0x3f", height="0x0", pitch="0x3f")}
"""
    error = lines(fault(body, block=(4,)))
    if bad == "outside":
        assert error[0] == (
            "'lsc_load_block2d' reads a surface of 64 bytes at 0x102080, reaching 64 bytes over the end of 'B', which "
            "has 128 bytes"
        )
    assert error[1] == "in workgroup (0, 0, 0), subgroup 3"


def test_traffic_counts_bytes_of_lanes_that_act() -> None:
    body = """\
    mov (M1_NM, 16) Addr(0,0)<1> A(0,0)<0;1,0>
    mov (M1_NM, 16) Local(0,0)<1> 0:ud
    setp (M1_NM, 16) P 0x7:uw
    (P) lsc_load.ugm (M1_NM, 16) Data.0:d32x2 flat[Addr]:a64
    lsc_store.slm (M1_NM, 16) flat[Local]:a32 Data.0:d8c32
    lsc_atomic_iinc.ugm (M1_NM, 8) %null.0:d64 flat[Addr]:a64 %null.0 %null.0
    lsc_load_block2d.ugm (M1, 1) Data.0:d32.16x2nn flat[B,0x3f,0x0,0x3f,0x0,0x0]
    ret (M1, 1)
"""
    done = Kernel.from_assembly(HEAD + body)(np.zeros(64, np.uint8), np.zeros(128, np.uint8), 0, grid=(3,), block=(2,))
    each = {("ugm", "load"): 3 * 8 + 64, ("slm", "store"): 16, ("ugm", "atomic"): 64}
    assert done.traffic == {k: 6 * v for k, v in each.items()}


ADDRESSES = {
    # What messages need of addresses, and the rule that says so.
    "lsc_load.ugm (M1_NM, 1) Data.0:d32x16t flat[Addr]:a64": (4, "lsc-transposed-align"),
    "lsc_load.ugm (M1_NM, 1) Data.0:d64x4t flat[Addr]:a64": (8, "lsc-transposed-align"),
    "lsc_store.ugm (M1_NM, 1) flat[Addr]:a64 Data.0:d64x4t": (8, "lsc-transposed-align"),
    "lsc_load.slm (M1_NM, 1) Data.0:d32x4t flat[Local]:a32": (4, "lsc-transposed-align"),
    "lsc_load.ugm (M1_NM, 16) Data.0:d32x2 flat[Addr]:a64": (4, "lsc-vector-align"),
    "lsc_store.ugm (M1_NM, 16) flat[Addr]:a64 Data.0:d32x2": (4, "lsc-vector-align"),
    "lsc_load.ugm (M1_NM, 16) Data.0:d32 flat[Addr]:a64": (1, ""),
    "lsc_load.ugm (M1_NM, 16) Data.0:d16c32 flat[Addr]:a64": (1, ""),
    "lsc_atomic_iinc.ugm (M1_NM, 16) %null.0:d32 flat[Addr]:a64 %null.0 %null.0": (4, "atomic-align"),
}


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("message", ADDRESSES)
def test_alignment_of_addresses(message: str, engine: str) -> None:
    """Of assembly: gathers of single elements may be anywhere."""
    needed, rule = ADDRESSES[message]
    for step in (1, 2, 4, 8):
        body = f"""\
    add (M1_NM, 16) Addr(0,0)<1> B(0,0)<0;1,0> {64 + step}:ud
    mov (M1_NM, 16) Local(0,0)<1> {64 + step}:ud
    {message}
    ret (M1, 1)
"""
        kernel = Kernel.from_assembly(HEAD + body, target="bmg", engine=engine, cache="off")
        try:
            kernel(np.zeros(64, np.uint8), np.zeros(1 << 12, np.uint8), np.uint32(0))
        except DiagnosticError as error:
            found = lines(error)
            assert step % needed, message
            assert "at an address that is not a multiple of" in found[0] and found[2].startswith(f"rule {rule}: ")
        else:
            assert step % needed == 0, message
