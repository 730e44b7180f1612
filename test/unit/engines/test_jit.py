"""The JIT against the interpreter: the same bytes of registers, predicates and memory."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from visa.programs import PREDICATES, general, random_instruction

from xegpu_py.engines.faults import RuntimeFault
from xegpu_py.engines.interpreter import Interpreter
from xegpu_py.engines.jit import tiered_code
from xegpu_py.engines.jit.engine import Jit
from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.rules import CONTROL, RULES
from xegpu_py.engines.jit.rules.alu import ARITHMETIC
from xegpu_py.ir.diagnostics import Source
from xegpu_py.numerics.dpas import MODELS, Model
from xegpu_py.numerics.formats import TYPES
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import TARGETS
from xegpu_py.visa.assembly import read, write_statement
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.messages import ATOMICS
from xegpu_py.visa.operands import Address, Destination, Immediate, Raw, Region
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import DataShape
from xegpu_py.visa.verify import instruction_problem

from .machine import Machine, State, run_batch, varied

THREADS = 5
ANY = TARGETS["any"]
REGISTERS = [n for n, s in INSTRUCTIONS.items() if s.category in ("alu", "math", "dpas")]
MEMORY = ["lsc_load", "lsc_store", *(f"lsc_atomic_{a}" for a in ATOMICS)]


def test_every_instruction_has_a_rule() -> None:
    own = {name for name, spec in INSTRUCTIONS.items() if spec.expansion is None}
    assert own <= {*RULES, *CONTROL, *ARITHMETIC}


def compare(
    instructions: Sequence[Instruction],
    before: State,
    machine: Machine,
    memories: Sequence[DeviceMemory] = (),
    model: Model = "fma",
    host: Host | None = None,
) -> None:
    """Run instructions on both engines, and look for differences in registers, predicates, memory and failures."""
    slm = 4096 if memories else 0
    both = list(memories) or [DeviceMemory(), DeviceMemory()]
    golden, native = (machine.batch(before, m, slm) for m in both)
    interpreter = Interpreter(machine.program(instructions), machine.layout(), model)
    faults = []
    for run in (
        lambda: interpreter.run(golden),
        lambda: run_batch(
            Jit(interpreter.program, interpreter.layout, interpreter.model, divergent=True, keep=True, host=host),
            native,
        ),
    ):
        try:
            run()
            faults.append(None)
        except RuntimeFault as fault:
            faults.append((fault.message, fault.notes))
    text = "\n".join(write_statement(i) for i in instructions)
    assert faults[0] == faults[1], text
    if faults[0]:
        return
    for var in machine.variables:
        start = machine.offsets[var]
        wanted, found = (x.regs[:, start : start + var.bytes] for x in (golden, native))
        for thread in np.flatnonzero((wanted != found).any(axis=1)):
            a, b = (x[thread].view(var.format.dtype) for x in (wanted, found))
            pytest.fail(f"{text}\n{var.name} of thread {thread}:\n{a}\n{b}")
    assert (golden.flags == native.flags).all(), text
    assert (golden.slm.data == native.slm.data).all(), text
    assert (both[0].data == both[1].data).all(), text
    assert golden.traffic == native.traffic, text


@pytest.mark.parametrize("name", REGISTERS)
def test_instructions(name: str) -> None:
    rng = random.Random(name)
    machine = Machine(ANY)
    for _ in range(3):
        count = 4 if name in ("dpas", "bdpas") else 12
        instructions = [varied(random_instruction(name, rng, ANY), rng, ANY) for _ in range(count)]
        compare(instructions, machine.state(THREADS, rng), machine)


@pytest.mark.parametrize("name", [n for n in REGISTERS if INSTRUCTIONS[n].category != "dpas"])
def test_instructions_compiled_quickly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiered_code, "QUICK_SECONDS", 1)
    rng, machine = random.Random(name), Machine(ANY)
    instructions = [varied(random_instruction(name, rng, ANY), rng, ANY) for _ in range(12)]
    program, layout = machine.program(instructions), machine.layout()
    assert Jit(program, layout, divergent=True, keep=True).code.is_quick
    compare(instructions, machine.state(THREADS, rng), machine)


@pytest.mark.native
@settings(max_examples=examples(500))
@given(st.integers(0, 2**32), st.sampled_from(["any", "dg2", "pvcxt"]))
# LLVM 22 lost lanes of a predicate here, which it kept in a mask register.
@example(1003965, "pvcxt")
def test_programs(seed: int, gpu: str) -> None:
    """Programs of all instructions that work on registers, whose results the next ones use."""
    rng, target = random.Random(seed), TARGETS[gpu]
    machine = Machine(target)
    names = [n for n in rng.choices(REGISTERS, k=6) if n not in target.absent]
    instructions = [varied(random_instruction(n, rng, target), rng, target) for n in names]
    compare(instructions, machine.state(2, rng), machine)


@pytest.mark.native
@pytest.mark.parametrize("is_guarded", [False, True])
@pytest.mark.parametrize("kept", ["x", "y"])
@pytest.mark.parametrize("ones", [0x7FFFFFFF, 0x80000000, 0x5A5A1234])
def test_bits_of_two_numbers_in_chosen_lanes(ones: int, kept: str, is_guarded: bool) -> None:
    """With AVX-512, LLVM 22 merges (x & c) | (y & ~c) with x or y to one instruction whose bits are wrong."""
    declared = [f".decl {name} v_type=G type=ud num_elts=16 align=GRF\n" for name in "xyabcd"]
    merge = f"(P) sel (M1_NM, 16) d(0,0)<1> c(0,0)<1;1,0> {kept}(0,0)<1;1,0>"
    if is_guarded:
        merge = f"mov (M1_NM, 16) d(0,0)<1> {kept}(0,0)<1;1,0>\n(P) mov (M1_NM, 16) d(0,0)<1> c(0,0)<1;1,0>"
    text = f"""
    .version 3.8
    .kernel "k"
    {"".join(declared)}
    .decl out v_type=G type=uq num_elts=1
    .decl P v_type=P num_elts=16
    .input out offset=64 size=8
        lsc_load.ugm (M1_NM, 1) x.0:d32x16t flat[out.0]:a64
        lsc_load.ugm (M1_NM, 1) y.0:d32x16t flat[out.0+0x40]:a64
        cmp.lt (M1_NM, 16) P x(0,0)<1;1,0> y(0,0)<1;1,0>
        and (M1_NM, 16) a(0,0)<1> x(0,0)<1;1,0> {ones:#x}:ud
        and (M1_NM, 16) b(0,0)<1> y(0,0)<1;1,0> {ones ^ 0xFFFFFFFF:#x}:ud
        or (M1_NM, 16) c(0,0)<1> a(0,0)<1;1,0> b(0,0)<1;1,0>
        {merge}
        lsc_store.ugm (M1_NM, 1) flat[out.0+0x80]:a64 d.0:d32x16t
        ret (M1, 1)
    """
    found = np.random.default_rng(ones).integers(0, 2**32, (3, 16), np.uint32)
    x, y = found[:2].copy()
    [program] = read(Source(text, "bits.visaasm"))
    Kernel(program, engine="jit")(found)
    expected = np.where(x < y, x & np.uint32(ones) | y & ~np.uint32(ones), {"x": x, "y": y}[kept])
    np.testing.assert_array_equal(found[2], expected)


@pytest.mark.each_value
@pytest.mark.parametrize("rounding", ["up", "down", "zero"])
@pytest.mark.parametrize("name", ["mov", "sel", "add", "mul", "mad", "divm", "sqrtm", "min", "inv"])
def test_rounding_modes(name: str, rounding: str) -> None:
    rng = random.Random(f"{name} {rounding}")
    instructions = [varied(random_instruction(name, rng, ANY), rng, ANY) for _ in range(examples(12))]
    machine = Machine(ANY)
    compare([inst.replaced(rounding=rounding) for inst in instructions], machine.state(THREADS, rng), machine)


@pytest.mark.parametrize("seed", range(examples(2)))
def test_flushed_subnormals(seed: int) -> None:
    rng, machine = random.Random(seed), Machine(ANY)
    instructions: list[Instruction] = []
    for name in ("mov", "sel", "add", "mad", "divm", "min", "cmp", "exp", "rndd", "dpas", "bdpas"):
        flushed = ("bf", "tf32") if "dpas" in name else ("df", "f", "hf")
        found = (varied(random_instruction(name, rng, ANY), rng, ANY) for _ in range(1000))
        chosen = (i for i in found if (i.values.get("W") or i["src0"].format.name) in (*flushed, "bf"))
        instructions += [next(chosen).replaced(flushed=flushed) for _ in range(2)]
    compare(instructions, machine.state(THREADS, rng), machine)


@pytest.mark.parametrize("seed", range(examples(6)))
def test_moves_in_a_row(seed: int) -> None:
    """Moves to adjacent places are combined, unless one reads the result of another one."""
    rng, machine = random.Random(seed), Machine(ANY)
    words = [v for v in general(ANY) if v.type in ("ud", "d")]
    instructions: list[Instruction] = []
    while len(instructions) < 60:
        to, source, lanes = rng.choice(words[:2]), rng.choice(words), rng.choice((1, 1, 1, 2, 4))
        start, constant = rng.randrange(12), rng.random() < 0.4
        apart = rng.choice((1, 1, 2))
        for n in range(rng.randrange(1, 6)):
            place = start + n * lanes + (rng.random() < 0.1)
            values: dict[str, object] = {"dst": Destination(to, place // 16, place % 16, 1)}
            if constant:
                values["src0"] = Immediate(rng.getrandbits(31), to.type)
            else:
                at = rng.randrange(8) if rng.random() < 0.2 else start // 2 + n
                values["src0"] = Region(source, at // 16, at % 16, apart, 1, 0)
            mask = "M1" if rng.random() < 0.1 else "M1_NM"
            move = Instruction("mov", values, lanes, mask, saturate=rng.random() < 0.05)
            if instruction_problem(move, ANY) is None:
                instructions.append(move)
    compare(instructions, machine.state(4, rng), machine)


@pytest.mark.parametrize("source", TYPES)
def test_conversions(source: str) -> None:
    """mov and sel between all types, with all modifiers and saturation."""
    rng, machine = random.Random(source), Machine(ANY)
    variables = {v.type: v for v in general(ANY)}
    instructions = []
    for target in TYPES:
        for modifier in ("", "-", "abs", "-abs"):
            for saturate in (False, True):
                values = {
                    "dst": Destination(variables[target], rng.randrange(2)),
                    "src0": Region(variables[source], rng.randrange(2), 0, 1, 1, 0, modifier),
                }
                move = Instruction("mov", values, 16 if rng.random() < 0.8 else 8, saturate=saturate)
                if instruction_problem(move, ANY) is None:
                    instructions.append(move)
    assert len(instructions) > 8
    for some in (instructions[i : i + 12] for i in range(0, len(instructions), 12)):
        compare(some, machine.state(12, rng), machine)


INTEGERS = [(w, a) for w in ("u1", "s1", "u2", "s2", "u4", "s4", "u8", "s8") for a in ("s8", "u8", "s4", "u2", "s1")]
DPAS = [
    *((w, w, d, s) for w in ("bf", "hf") for d in ("f", w) for s in ("f", w)),
    ("tf32", "tf32", "f", "f"),
    *((w, a, "f", "f") for w in ("bf8", "hf8") for a in ("bf8", "hf8")),
    *(("e2m1", "e2m1", d, s) for d in ("f", "bf") for s in ("f", "bf")),
    ("df", "df", "df", "df"),
]


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("w", "a", "dst", "acc", "model"),
    [*((w, a, "d", "ud", "fma") for w, a in INTEGERS), *((*case, model) for case in DPAS for model in MODELS)],
)
def test_dpas(w: str, a: str, dst: str, acc: str, model: str) -> None:
    rng, machine = random.Random(f"{w} {a} {dst} {acc}"), Machine(ANY)
    variables = {v.type: v for v in general(ANY)}
    instructions = []
    while len(instructions) < examples(4):
        inst = random_instruction("dpas", rng, ANY)
        values = dict(inst.values) | {"W": w, "A": a, "dst": replace(inst["dst"], var=variables[dst])}
        values["src0"] = replace(inst["src0"], var=inst["src0"].var and variables[acc])
        wide = ("df",) if w == "df" else ("d", "ud")
        values["src1"] = replace(inst["src1"], var=variables[rng.choice(wide)])
        values["src2"] = replace(inst["src2"], var=variables[rng.choice(wide)])
        changed = inst.replaced(values=values)
        if instruction_problem(changed, ANY) is None:
            instructions.append(changed)
    compare(instructions, machine.state(3, rng), machine, model=model)


BDPAS = [
    *((w, w, d, s) for w, n in (("bf", "bf"), ("hf", "hf"), ("e2m1", "bf")) for d in ("f", n) for s in ("f", n)),
    *((w, a, "f", s) for w in ("bf8", "hf8") for a in ("bf8", "hf8") for s in ("f", "bf")),
]


@pytest.mark.each_value
@pytest.mark.parametrize(("w", "a", "dst", "acc"), BDPAS)
@pytest.mark.parametrize("model", MODELS)
def test_bdpas(w: str, a: str, dst: str, acc: str, model: str) -> None:
    """Block-scaled products, with random bits as elements and scales, and with scales near one."""
    rng, machine = random.Random(f"{w} {a} {dst} {acc}"), Machine(ANY)
    variables = {v.type: v for v in general(ANY)}
    instructions = []
    while len(instructions) < examples(3):
        inst = random_instruction("bdpas", rng, ANY)
        values = dict(inst.values) | {"W": w, "A": a, "dst": replace(inst["dst"], var=variables[dst])}
        values["src0"] = replace(inst["src0"], var=inst["src0"].var and variables[acc])
        values["src1"], values["src2"] = (replace(inst[n], var=variables["ud"]) for n in ("src1", "src2"))
        changed = inst.replaced(values=values)
        if instruction_problem(changed, ANY) is None:
            instructions.append(changed)
    for low, high in ((0, 256), (120, 134)):
        state = machine.state(3, rng)
        start, ub = machine.offsets[variables["ub"]], variables["ub"]
        scales = np.random.default_rng(rng.getrandbits(32)).integers(low, high, (3, ub.bytes))
        state.regs[:, start : start + ub.bytes] = scales
        compare(instructions, state, machine, model=model)


def chain(rng: random.Random, count: int) -> list[Instruction]:
    """Consecutive dpas on few variables, with all kinds of dependences."""
    f = [v for v in general(ANY) if v.type == "f"]
    d = [v for v in general(ANY) if v.type in ("d", "ud")]
    found: list[Instruction] = []
    while len(found) < count:
        inst = random_instruction("dpas", rng, ANY)
        place = Raw(rng.choice(f), rng.choice((0, 0, 64)))
        values = dict(inst.values) | {"W": "bf", "A": "bf", "SD": 8, "RC": rng.choice((1, 2)), "dst": place}
        values["src0"] = rng.choice((place, place, Raw(rng.choice(f), 0), Raw(None)))
        values["src1"] = Raw(rng.choice((d[0], d[1], f[0]) if rng.random() < 0.1 else d[:2]), 0)
        values["src2"] = replace(inst["src2"], var=d[rng.choice((2, 3))], row=rng.randrange(2))
        changed = inst.replaced(values=values)
        if instruction_problem(changed, ANY) is None:
            found.append(changed)
    return found


@pytest.mark.parametrize("seed", range(examples(12)))
def test_dpas_that_depend_on_each_other(seed: int) -> None:
    rng, machine = random.Random(seed), Machine(ANY)
    compare(chain(rng, 10), machine.state(2, rng), machine)


@pytest.mark.parametrize("name", ("inv", "sqrt", "rsqrt", "exp", "log", "sin", "cos"))
def test_all_halves(name: str) -> None:
    machine = Machine(ANY)
    half = next(v for v in general(ANY) if v.type == "hf")
    inst = Instruction(name, {"dst": Destination(half), "src0": Region(half, 0, 0, 1, 1, 0)}, 32, "M1_NM")
    before = machine.state(2048, random.Random(0))
    start = machine.offsets[half]
    before.regs[:, start : start + 64] = np.arange(1 << 16, dtype=np.uint16).reshape(2048, 32).view(np.uint8)
    compare([inst], before, machine)


@pytest.mark.parametrize("name", ("rsqrt", "exp", "log", "sin", "cos"))
def test_singles(name: str) -> None:
    """Numbers of all sizes, and those about which results are hard to round."""
    machine, rng = Machine(ANY), np.random.default_rng(len(name))
    single = next(v for v in general(ANY) if v.type == "f")
    inst = Instruction(name, {"dst": Destination(single), "src0": Region(single, 0, 0, 1, 1, 0)}, 16, "M1_NM")
    rows = examples(4096, 1 / 4)
    count = 16 * rows
    patterns = rng.integers(0, 1 << 32, count, np.uint32)
    usual = rng.uniform(-150, 130, count).astype(np.float32)
    angles = (rng.integers(-(1 << 20), 1 << 20, count) * (np.pi / 2)).astype(np.float32)
    near = (1 + rng.integers(-9, 9, count) * 2.0**-23).astype(np.float32)
    whole = rng.integers(-160, 140, count).astype(np.float32)
    start = machine.offsets[single]
    for values in (patterns.view(np.float32), usual, angles, near, whole):
        before = machine.state(1, random.Random(0))
        state = State(*(np.repeat(x, rows, axis=0) for x in (before.regs, before.flags, before.active)))
        state.regs[:, start : start + 64] = values.reshape(rows, 16).view(np.uint8)
        compare([inst], state, machine)


def addressed(inst: Instruction, before: State, machine: Machine, rng: random.Random, wrong: bool) -> None:
    """Let the registers of an instruction's addresses hold some that can be accessed, or nearly."""
    operand: Address = inst["address"]
    bits, lanes = (64 if inst["address_size"] == "a64" else 32), inst.exec_size
    start = machine.offsets[operand.var] + operand.offset
    shape = inst["data"]
    size = shape.memory_bytes
    last = 1024 - shape.vector * size
    for thread in range(len(before.regs)):
        places = [rng.randrange(0, last // size + 1) * size for _ in range(lanes)]
        if not inst.name.startswith("lsc_atomic") and rng.random() < 0.5:
            places = [rng.randrange(0, last + 1) for _ in range(lanes)]
        if rng.random() < 0.3:
            places = [places[0]] * lanes
        if rng.random() < 0.3:
            # Side by side, nearly or quite.
            places = [shape.memory_bytes * lane % (last + 1) for lane in range(lanes)]
            places[rng.randrange(lanes)] = rng.choice((0, places[-1], places[0]))
        if wrong:
            places[rng.randrange(lanes)] += rng.choice((1, size, 1024, -2000, 1 << 31))
        base = 0x100000 + rng.choice((0, 8192)) if inst["sfid"] == "ugm" else 0
        numbers = np.array([(base + p - operand.plus) % (1 << bits) for p in places], f"u{bits // 8}")
        before.regs[thread, start : start + lanes * bits // 8] = numbers.view(np.uint8)


@pytest.mark.each_value
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("name", MEMORY)
def test_messages(name: str, wrong: bool) -> None:
    rng, machine = random.Random(name), Machine(ANY)
    for _ in range(examples(8)):
        inst = varied(random_instruction(name, rng, ANY), rng, ANY)
        before = machine.state(1, rng)
        addressed(inst, before, machine, rng, wrong)
        memories = []
        data = np.random.default_rng(0).integers(0, 256, 2048).astype(np.uint8)
        for _ in range(2):
            memory = DeviceMemory()
            for i in range(2):
                memory.bytes_of(memory.allocate(f"B{i}", 1024))[:] = data[1024 * i : 1024 * (i + 1)]
            memories.append(memory)
        compare([inst], before, machine, memories)


@pytest.mark.parametrize("is_partial", [False, True])
@pytest.mark.parametrize("size", ["d32", "d64"])
def test_vectors_of_each_lane(size: str, is_partial: bool) -> None:
    """Lanes that do not act load nothing, wherever their addresses are."""
    rng, machine = random.Random(size), Machine(ANY)
    variable = next(v for v in machine.variables if v.name == "UD0")
    for vector, lanes, sfid in itertools.product((2, 3, 4, 8), (2, 4, 8, 16, 32), ("ugm", "slm")):
        if machine.target.grf_bytes * 8 < vector * DataShape(size).row_bytes(lanes, machine.target.grf_bytes):
            continue
        inst = random_instruction("lsc_load", rng, ANY)
        while inst["sfid"] != sfid or inst["dst"].var is None or inst["data"].transpose:
            inst = random_instruction("lsc_load", rng, ANY)
        values = {**inst.values, "data": DataShape(size, vector), "dst": Raw(variable)}
        inst = inst.replaced(exec_size=lanes, mask="M1", guard=None, values=values)
        assert instruction_problem(inst, ANY) is None
        before, memories = machine.state(1, rng), [DeviceMemory() for _ in range(2)]
        before.active[:] = True
        addressed(inst, before, machine, rng, wrong=False)
        if is_partial:
            out = rng.randrange(lanes)
            before.active[0, out] = False
            first = machine.offsets[inst["address"].var] + inst["address"].offset
            width = 8 if inst["address_size"] == "a64" else 4
            before.regs[0, first + width * out : first + width * (out + 1)] = 0xAA
        for memory in memories:
            for name in ("B0", "B1"):
                memory.bytes_of(memory.allocate(name, 1024))[:] = np.resize(np.arange(251, dtype=np.uint8), 1024)
        compare([inst], before, machine, memories)


@pytest.mark.parametrize("sfid", ["ugm", "slm"])
@pytest.mark.parametrize("name", ["lsc_load", "lsc_store"])
def test_places_side_by_side_at_the_ends_of_memory(name: str, sfid: str) -> None:
    """Active out-of-bounds lanes give an error, and inactive ones change nothing."""
    rng, machine = random.Random(name + sfid), Machine(ANY)
    end = 4096 if sfid == "slm" else 1024
    for data in ("d32", "d16c32"):
        inst = random_instruction(name, rng, ANY)
        while (inst["sfid"], str(inst["data"]), inst.exec_size) != (sfid, data, 16):
            inst = random_instruction(name, rng, ANY)
        inst, lanes = inst.replaced(mask="M1", guard=None), np.arange(16)
        size = inst["data"].memory_bytes
        for start in (0, end - 16 * size, end - 8 * size, -8 * size):
            places = start + size * lanes
            within = (places >= 0) & (places < end)
            for acting in (within, within & (lanes % 3 > 0), np.ones(16, bool)):
                before, memories = machine.state(1, random.Random(start)), [DeviceMemory() for _ in range(2)]
                for memory in memories:
                    memory.bytes_of(memory.allocate("B", end))[:] = np.resize(np.arange(251, dtype=np.uint8), end)
                before.active[:] = np.resize(acting, before.active.shape)
                width = 8 if inst["address_size"] == "a64" else 4
                numbers = places + (0x100000 if sfid == "ugm" else 0) - inst["address"].plus
                first = machine.offsets[inst["address"].var] + inst["address"].offset
                before.regs[0, first : first + 16 * width] = numbers.astype(f"u{width}").view(np.uint8)
                compare([inst], before, machine, memories)


@pytest.mark.parametrize("name", ["lsc_load_block2d", "lsc_store_block2d"])
@pytest.mark.parametrize("seed", range(examples(24)))
def test_blocks(name: str, seed: int) -> None:
    rng, machine = random.Random(seed), Machine(ANY)
    inst = random_instruction(name, rng, ANY)
    width, pitch = rng.choice((64, 68, 128, 252)), rng.choice((256, 272))
    size = inst["block"].size // 8
    y, x = rng.choice((0, 3, -2, 18, 40, -50)), rng.choice((0, 1, 5, -3, width // size - 5, 300, -(2**31)))
    values = dict(inst.values)
    for field, number in (("width", width - 1), ("height", 19), ("pitch", pitch - 1), ("x", x), ("y", y)):
        if rng.random() < 0.5:
            values[field] = Immediate(number & 0xFFFFFFFF, "ud")
    if rng.random() < 0.2:
        values["pitch"] = Immediate(pitch, "ud")
    inst = inst.replaced(values=values)
    before = machine.state(1, rng)
    for field, number in (("width", width - 1), ("height", 19), ("pitch", pitch - 1), ("x", x), ("y", y)):
        if isinstance(inst[field], Region):
            start = machine.offsets[inst[field].var]
            before.regs[:, start : start + 4] = np.array([number & 0xFFFFFFFF], np.uint32).view(np.uint8)
    start = machine.offsets[inst["base"].var]
    before.regs[:, start : start + 8] = np.array([0x100000 + rng.choice((0, 64))], np.uint64).view(np.uint8)
    memories = []
    for _ in range(2):
        memory = DeviceMemory()
        buffer = memory.allocate("S", 20 * 272 + 64)
        memory.bytes_of(buffer)[:] = np.random.default_rng(1).integers(0, 256, buffer.bytes)
        memories.append(memory)
    compare([inst], before, machine, memories)


def test_a_difference_is_found() -> None:
    """The comparison itself: another predicate, another result."""
    machine, rng = Machine(ANY), random.Random(0)
    inst = Instruction("setp", {"dst": random_instruction("setp", rng, ANY)["dst"], "src0": Immediate(1, "ud")})
    assert PREDICATES
    changed = inst.replaced(values=dict(inst.values) | {"src0": Immediate(0, "ud")})
    golden = Interpreter(machine.program([inst]), machine.layout())
    other = Jit(machine.program([changed]), machine.layout())
    before = machine.state(1, rng)
    before.active[:] = True
    batches = [machine.batch(before, DeviceMemory()) for _ in range(2)]
    golden.run(batches[0])
    run_batch(other, batches[1])
    assert (batches[0].flags != batches[1].flags).any()
