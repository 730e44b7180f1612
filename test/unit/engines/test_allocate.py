"""Programs compute the same wherever their variables lie, and the allocator's pressure is no less than the true one."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from xegpu_py.engines.operands import Batch
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import TARGETS, Target
from xegpu_py.visa import allocate as allocator
from xegpu_py.visa.allocate import Allocation
from xegpu_py.visa.dataflow import liveness_of
from xegpu_py.visa.operands import Address, Destination, Raw, Region, Variable
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import DataShape

PVC = TARGETS["pvcxt"]
TYPES = {"ud": 4, "uw": 2, "uq": 8, "ub": 1}
THREADS = 4
HEAD = """\
.version 3.8
.kernel "random"
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Seed v_type=G type=ud num_elts=1 align=dword
.decl Id v_type=G type=ud num_elts=3 align=dword
.decl Where v_type=G type=uq num_elts=1 align=qword
.decl P v_type=P num_elts=16
.decl Q v_type=P num_elts=1
{declarations}
.input Out offset=96 size=8
.input Seed offset=104 size=4
.implicit_LOCAL_ID Id offset=108 size=12
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
"""
SLOT = 128
"""Bytes of memory that a thread has for each variable."""


class Generator:
    """Random programs with loops and branches, of threads by `jmp` and of lanes by `goto`."""

    def __init__(self, rng: random.Random, diverges: bool) -> None:
        self.rng, self.diverges = rng, diverges
        self.types = [rng.choice(list(TYPES)) for _ in range(rng.randint(6, 16))]
        self.lines: list[str] = []
        self.labels = self.counters = self.temporaries = 0
        self.seen: set[int] = set()
        # How often each loop may still turn is kept in variables of their own.
        self.declarations: list[str] = []

    def emit(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def source(self, known: set[int]) -> str:
        """A variable that was written before; sometimes one that was written on some paths only."""
        some = sorted(self.seen if self.rng.random() < 0.1 else known)
        if not some:
            return f"{self.rng.getrandbits(16):#x}:ud"
        v = self.rng.choice(some)
        region = self.rng.choice(("<8;8,1>", "<8;8,1>", "<0;1,0>"))
        return f"Var{v}(0,{self.rng.randrange(8) if region == '<0;1,0>' else 0}){region}"

    def write(self, known: set[int]) -> None:
        v = self.rng.randrange(len(self.types))
        kind = self.rng.random()
        a, b = self.source(known), self.source(known)
        operation = f"{self.rng.choice(('add', 'xor', 'max'))} {{}} Var{v}(0,0)<1> {a} {b}"
        if kind < 0.4:
            self.emit(operation.format("(M1_NM, 16)"))
            known.add(v)
        elif kind < 0.7:
            self.emit(operation.format("(M1, 16)"))
            if not self.diverges:
                known.add(v)
        elif kind < 0.8:
            self.emit(operation.format("(M1_NM, 4)"))
        elif kind < 0.9 and v in known:
            self.emit("(P) " + operation.format("(M1, 16)"))
        else:
            # A value that may never be read.
            self.emit(f"mov (M1_NM, 16) Var{v}(0,0)<1> {self.rng.getrandbits(8):#x}:ud")
            known.add(v)
        self.seen.add(v)

    def temporary(self, known: set[int]) -> None:
        """A value that lives for two instructions, and may have the registers of whatever does not live there."""
        name = f"Temporary{self.temporaries}"
        self.temporaries += 1
        self.declarations.append(f".decl {name} v_type=G type=ud num_elts=32 align=GRF")
        self.emit(f"mov (M1_NM, 32) {name}(0,0)<1> {self.rng.getrandbits(31):#x}:ud")
        v = self.rng.randrange(len(self.types))
        self.emit(f"add (M1_NM, 16) Var{v}(0,0)<1> {name}(0,0)<8;8,1> {self.source(known)}")
        known.add(v)
        self.seen.add(v)

    def leave(self, known: set[int]) -> None:
        """Terminates some lanes while others may wait."""
        stay = self.label()
        self.emit(f"{self.test(known, True)} {stay}")
        self.emit("ret (M1, 1)")
        self.lines.append(f"{stay}:")

    def test(self, known: set[int], lanes: bool) -> str:
        """Sets a predicate, and returns the jump that depends on it."""
        condition = self.rng.choice(("lt", "ge", "ne"))
        size, name = ("(M1, 16)", "P") if lanes else ("(M1_NM, 1)", "Q")
        some = sorted(known)
        v = f"Var{self.rng.choice(some)}" if some else "Id"
        source = f"{v}(0,0)<8;8,1>" if lanes and some else f"{v}(0,0)<0;1,0>"
        self.emit(f"cmp.{condition} {size} {name} {source} {self.rng.getrandbits(7):#x}:uw")
        return f"({self.rng.choice(('', '!'))}{name}) " + (f"goto {size}" if lanes else "jmp (M1, 1)")

    def block(self, known: set[int], depth: int, leaves: tuple[str, bool] | None) -> set[int]:
        for _ in range(self.rng.randint(1, 5)):
            kind = self.rng.random()
            lanes = self.diverges and self.rng.random() < 0.6
            if kind < 0.3:
                self.temporary(known)
            elif kind < 0.6 or not depth:
                self.write(known)
            elif kind < 0.65:
                if self.diverges:
                    self.leave(known)
            elif kind < 0.75:
                other, end = self.label(), self.label()
                self.emit(f"{self.test(known, lanes)} {other}")
                then = self.block(set(known), depth - 1, leaves)
                self.emit(f"goto (M1, 16) {end}" if lanes else f"jmp (M1, 1) {end}")
                self.lines.append(f"{other}:")
                known = then & self.block(set(known), depth - 1, leaves)
                self.lines.append(f"{end}:")
            elif kind < 0.9:
                self.loop(known, depth, lanes)
            elif leaves and (leaves[1] or not lanes):
                # Lanes that part leave a loop of lanes alone, and threads a loop of threads.
                self.emit(f"{self.test(known, leaves[1])} {leaves[0]}")
        return known

    def loop(self, known: set[int], depth: int, lanes: bool) -> None:
        again, end = self.label(), self.label()
        turns = f"N{self.counters}"
        self.counters += 1
        self.declarations.append(f".decl {turns} v_type=G type=d num_elts=16 align=GRF")
        size = "(M1, 16)" if lanes else "(M1_NM, 1)"
        width = "<8;8,1>" if lanes else "<0;1,0>"
        self.emit(f"and {size} {turns}(0,0)<1> {self.narrow(known) if lanes else 'Id(0,0)<0;1,0>'} 3:ud")
        self.lines.append(f"{again}:")
        self.block(set(known), depth - 1, (end, lanes))
        self.emit(f"add {size} {turns}(0,0)<1> {turns}(0,0){width} -1:d")
        predicate = "P" if lanes else "Q"
        self.emit(f"cmp.gt {size} {predicate} {turns}(0,0){width} 0:d")
        self.emit(f"({predicate}) " + (f"goto {size} {again}" if lanes else f"jmp (M1, 1) {again}"))
        self.lines.append(f"{end}:")

    def narrow(self, known: set[int]) -> str:
        return f"Var{self.rng.choice(sorted(known))}(0,0)<8;8,1>" if known else "Id(0,0)<0;1,0>"

    def text(self) -> str:
        known: set[int] = set()
        for v in range(2):
            self.emit(f"mad (M1_NM, 16) Var{v}(0,0)<1> Seed(0,0)<0;1,0> {v + 3}:ud Id(0,0)<0;1,0>")
            for lane in range(16):
                self.emit(f"mul (M1_NM, 1) Var{v}(0,{lane})<1> Var{v}(0,{lane})<0;1,0> {lane + 7}:uw")
            known.add(v)
        self.types[:2] = "ud", "uw"
        self.emit("setp (M1_NM, 16) P 0x5a5a:uw")
        self.seen |= known
        known = self.block(known, 3, None)
        self.emit(f"mad (M1_NM, 1) Where(0,0)<1> Id(0,0)<0;1,0> {SLOT * len(self.types)}:ud 0:ud")
        self.emit("add (M1_NM, 1) Where(0,0)<1> Where(0,0)<0;1,0> Out(0,0)<0;1,0>")
        # Most are not asked for, so that they end early and leave their registers to others.
        for v in self.rng.sample(sorted(known), min(len(known), 3)):
            words = 16 * TYPES[self.types[v]] // 4
            self.emit(f"lsc_store.ugm (M1_NM, 1) flat[Where+{SLOT * v}]:a64 Var{v}.0:d32x{words}t")
        self.emit("ret (M1, 1)")
        declared = [
            f".decl Var{v} v_type=G type={t} num_elts=16 align={self.rng.choice(('GRF', 'GRF', 'GRF', 'GRFx2'))}"
            for v, t in enumerate(self.types)
        ]
        return HEAD.format(declarations="\n".join(declared + self.declarations)) + "\n".join(self.lines) + "\n"


def apart(program: Program, target: Target, registers: int | None = None) -> Allocation:
    """Each variable at registers of its own, inputs where they belong."""
    offsets = {i.var: i.offset for i in program.inputs}
    at = max([256, *(i.offset + i.size for i in program.inputs)])
    at = -(-at // 128) * 128
    for var in program.variables:
        if var.alias is None and var not in offsets:
            offsets[var] = at
            at += -(-var.bytes // 128) * 128
    return Allocation(offsets, at, target.grf_bytes, 1 << 20, 0, 0, ())


def result(text: str, count: int, seed: int, separate: bool, **options: object) -> np.ndarray:
    out = np.zeros(THREADS * count * SLOT, np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        if separate:
            patch.setattr("xegpu_py.runtime.executor.engine_allocation", apart)
        kernel = Kernel.from_assembly(text, **options)
        kernel(out, np.uint32(seed), block=THREADS)
    return out


@settings(max_examples=examples(150, 0.1))
@given(st.integers(0, 1 << 32), st.booleans())
def test_placement_changes_nothing(seed: int, diverges: bool) -> None:
    """In both engines, also where programs read what was never written: those bytes are zero."""
    generator = Generator(random.Random(seed), diverges)
    text = generator.text()
    want = result(text, len(generator.types), seed % 1000, True, engine="interpreter")
    np.testing.assert_array_equal(result(text, len(generator.types), seed % 1000, False, engine="both"), want)


@settings(max_examples=examples(60, 0.1))
@given(st.integers(0, 1 << 32), st.booleans())
def test_placement_hides_no_unwritten_read(seed: int, diverges: bool) -> None:
    """Each check finds what it finds if every variable has registers of its own."""
    generator = Generator(random.Random(seed), diverges)
    text = generator.text()
    found = []
    for separate, engine in ((True, "interpreter"), (False, "interpreter"), (False, "jit")):
        try:
            result(text, len(generator.types), seed % 1000, separate, check=["uninit"], engine=engine)
            found.append(None)
        except DiagnosticError as error:
            assert "never written" in str(error)
            found.append(str(error) if engine == "interpreter" else True)
    assert found[0] == found[1]
    assert bool(found[1]) == bool(found[2])


def test_a_value_outlives_turns_that_do_not_write_it() -> None:
    """The last iteration leaves the loop before it writes `Kept` again, but after it has written an unused value."""
    text = """\
.version 3.8
.kernel "kept"
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Turn v_type=G type=ud num_elts=1 align=dword
.decl Kept v_type=G type=ud num_elts=16 align=GRF
.decl Unread v_type=G type=ud num_elts=16 align=GRF
.decl P v_type=P num_elts=1
.input Out offset=64 size=8
.kernel_attr Target="cm"
    mov (M1_NM, 1) Turn(0,0)<1> 0:ud
Again:
    mov (M1_NM, 16) Unread(0,0)<1> 7:ud
    cmp.eq (M1_NM, 1) P Turn(0,0)<0;1,0> 2:ud
    (P) jmp (M1, 1) End
    add (M1_NM, 1) Turn(0,0)<1> Turn(0,0)<0;1,0> 1:ud
    mov (M1_NM, 16) Kept(0,0)<1> 5:ud
    jmp (M1, 1) Again
End:
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 Kept.0:d32x16t
    ret (M1, 1)
"""
    out = np.zeros(16, np.uint32)
    Kernel.from_assembly(text)(out)
    assert out.tolist() == [5] * 16


# The true pressure, from the execution of a thread.


def accessed(inst: Instruction) -> tuple[set[tuple[Variable, int]], set[tuple[Variable, int]]]:
    """The bytes that an instruction without a mask reads and writes, as (variable, byte)."""
    reads: set[tuple[Variable, int]] = set()
    writes: set[tuple[Variable, int]] = set()
    for name, operand in inst.values.items():
        if isinstance(operand, (Region, Destination)):
            size = operand.var.format.bytes
            for lane in range(inst.exec_size):
                if isinstance(operand, Region):
                    width = max(operand.width, 1)
                    element = lane // width * operand.vstride + lane % width * operand.hstride
                else:
                    element = lane * operand.stride
                start = operand.row * 64 + (operand.col + element) * size
                (writes if name == "dst" else reads).update((operand.var, start + b) for b in range(size))
        elif isinstance(operand, Address):
            reads.update((operand.var, b) for b in range(8))
        elif isinstance(operand, Raw) and operand.var:
            shape: DataShape = inst["data"]
            reads.update((operand.var, b) for b in range(4 * shape.vector))
    return reads, writes


class Recorder:
    """The instructions of thread 0 to 3 in the order in which they ran."""

    def __init__(self) -> None:
        self.ran_by: list[list[int]] = [[] for _ in range(THREADS)]

    def ran(self, index: int, batch: Batch, rows: np.ndarray) -> None:
        for row in rows:
            self.ran_by[row].append(index)


@settings(max_examples=examples(60))
@given(st.integers(0, 1 << 32))
def test_pressure_is_no_less_than_what_lives(seed: int) -> None:
    generator = Generator(random.Random(seed), False)
    text = generator.text()
    kernel = Kernel.from_assembly(text, engine="interpreter")
    recorder = Recorder()
    kernel.executor.observer = recorder
    kernel(np.zeros(THREADS * len(generator.types) * SLOT, np.uint8), np.uint32(1), block=THREADS)
    allocation, program = kernel.executor.allocation, kernel.program
    each = [accessed(i) for i in program.instructions]
    for ran in recorder.ran_by:
        living: set[tuple[Variable, int]] = set()
        most = 0
        # A predicated write may leave the old contents.
        for index in reversed(ran):
            reads, writes = each[index]
            most = max(most, len(living | writes))
            if program.instructions[index].guard is None:
                living -= writes
            living |= reads
            most = max(most, len(living))
        assert allocation.pressure * 64 >= most
    assert 0 <= allocation.peak < len(program.instructions)


@settings(max_examples=examples(60))
@given(st.integers(0, 1 << 32), st.booleans())
def test_places_are_legal(seed: int, diverges: bool) -> None:
    program = Kernel.from_assembly(Generator(random.Random(seed), diverges).text()).program
    allocation = allocator.allocate(program, PVC)
    check_places(program, allocation)
    assert allocation.bytes >= max(at + v.bytes for v, at in allocation.offsets.items())
    limit = allocation.registers * 64
    assert {v for v, at in allocation.offsets.items() if at + v.bytes > limit} == set(allocation.beyond)


def check_places(program: Program, allocation: Allocation) -> None:
    """Inputs are at their places in the thread's payload, its header is not used, and alignments are kept."""
    offsets: Mapping[Variable, int] = allocation.offsets
    for item in program.inputs:
        assert offsets[item.var] == item.offset
    for var, at in offsets.items():
        assert at >= 32 or var.name[0] == "%"
        assert at % {"GRF": 64, "GRFx2": 128, "qword": 8, "dword": 4}[var.align] == 0


@settings(max_examples=examples(60))
@given(st.integers(0, 1 << 32), st.booleans())
def test_each_variable_has_the_first_place_that_is_free(seed: int, diverges: bool) -> None:
    program = Kernel.from_assembly(Generator(random.Random(seed), diverges).text()).program
    offsets, ranges = allocator.allocate(program, PVC).offsets, liveness_of(program, PVC).ranges
    placed = [(0, 32, 0, len(program.instructions))]
    placed += [(i.offset, i.offset + i.size, *ranges[i.var]) for i in program.inputs]
    given_places = {i.var for i in program.inputs}
    for var in sorted((v for v in ranges if v not in given_places), key=lambda v: ranges[v]):
        first, last = ranges[var]
        alignment = {"GRF": 64, "GRFx2": 128, "qword": 8, "dword": 4}[var.align]
        taken = [(start, end) for start, end, begins, ends in placed if begins <= last and ends >= first]
        at = 0
        while any(at < end and at + var.bytes > start for start, end in taken):
            at += alignment
        assert offsets[var] == at
        placed.append((at, at + var.bytes, first, last))


def test_variables_that_do_not_live_together_share_registers() -> None:
    """Also in a loop whose iterations write each variable before they read it."""
    count = 40
    lines = [".version 3.8", '.kernel "share"', ".decl Out v_type=G type=uq num_elts=1 align=qword"]
    lines += [f".decl Var{n} v_type=G type=f num_elts=512 align=GRF" for n in range(count)]
    lines += [".decl P v_type=P num_elts=1", ".input Out offset=64 size=8", '.kernel_attr Target="cm"', "Again:"]
    for n in range(count):
        lines += [f"    mov (M1_NM, 16) Var{n}({r},0)<1> 0x0:f" for r in range(32)]
        lines.append(f"    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 Var{n}.0:d32x64t")
    lines += ["    cmp.gt (M1_NM, 1) P %r0(0,2)<0;1,0> 0:ud", "    (P) jmp (M1, 1) Again"]
    text = "\n".join([*lines, "    ret (M1, 1)", ""])
    allocation = Kernel.from_assembly(text, strict_grf=True).executor.allocation
    assert allocation.pressure <= 34
