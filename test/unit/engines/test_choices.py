"""Alternatives of chosen rules: both engines have the same bits, and each alternative changes some."""

from __future__ import annotations

import random

import numpy as np
import pytest
from msgspec.structs import replace
from visa.programs import general, random_instruction

from xegpu_py.engines.interpreter import Interpreter
from xegpu_py.ir.diagnostics import Source
from xegpu_py.numerics.choices import CHOICES
from xegpu_py.numerics.formats import PRECISIONS
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.choices import governed, with_choices
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.verify import instruction_problem

from .machine import Machine, varied
from .test_jit import REGISTERS, compare
from .test_subnormals import F_OPERANDS, TEXT

ANY = TARGETS["any"]
SELECTABLE = [(n, a) for n, c in CHOICES.items() if c.option == "choices" and c.is_visible for a in c.alternatives]
OF_INSTRUCTIONS = [s for s in SELECTABLE if s[0] not in ("dpas-mask", "alu-denormals")]


def candidate(name: str, rng: random.Random) -> Instruction:
    """A random instruction that a choice may govern; products have types of their own."""
    if name == "dpas-tf32":
        f = next(v for v in general(ANY) if v.type == "f")
        inst = random_instruction("dpas", rng, ANY)
        values = dict(inst.values) | {"W": "tf32", "A": "tf32", "dst": replace(inst["dst"], var=f)}
        values["src0"] = replace(inst["src0"], var=inst["src0"].var and f)
        ud = next(v for v in general(ANY) if v.type == "ud")
        values |= {n: replace(inst[n], var=ud) for n in ("src1", "src2")}
        return inst.replaced(values=values)
    named = name.removesuffix("-accuracy") if name.endswith("-accuracy") else None
    usual = {"division": "div", "bdpas-products": "bdpas"}.get(name) or rng.choice(REGISTERS)
    return varied(random_instruction(named or usual, rng, ANY), rng, ANY)


def following(name: str, value: str, rng: random.Random, machine: Machine, count: int) -> list[Instruction]:
    found: list[Instruction] = []
    while len(found) < count:
        inst = candidate(name, rng)
        [changed] = with_choices(machine.program([inst]), ANY, ((name, value),)).instructions[:1]
        if changed.alternatives and instruction_problem(inst, ANY) is None:
            found.append(changed)
    return found


@pytest.mark.parametrize(("name", "value"), OF_INSTRUCTIONS)
def test_engines_agree(name: str, value: str) -> None:
    rng, machine = random.Random(f"{name} {value}"), Machine(ANY)
    count = 4 if name in ("dpas-tf32", "bdpas-products") else 12
    instructions = following(name, value, rng, machine, count)
    compare(instructions, machine.state(3, rng), machine)
    assert changes(instructions, machine, rng)


def changes(instructions: list[Instruction], machine: Machine, rng: random.Random) -> bool:
    """Whether an instruction gives other bits than by the default rule."""
    for _ in range(20):
        state = machine.state(3, rng)
        for inst in instructions:
            batches = []
            for one in (inst, inst.replaced(alternatives=())):
                batch = machine.batch(state, DeviceMemory())
                Interpreter(machine.program([one]), machine.layout()).run(batch)
                batches.append(batch.regs)
            if (batches[0] != batches[1]).any():
                return True
    return False


def test_every_visible_choice_is_governed() -> None:
    program = Machine(ANY).program([])
    assert [*governed(program, ANY)] == [name for name, choice in CHOICES.items() if choice.is_visible]


def test_products_are_governed_by_their_precisions() -> None:
    rng, machine = random.Random(1), Machine(ANY)
    instructions = [random_instruction("dpas", rng, ANY) for _ in range(40)]
    found = governed(machine.program(instructions), ANY)
    floats = {at for at, inst in enumerate(instructions) if PRECISIONS[inst["W"]].is_float}
    assert {*found["dpas-sums"]} == floats and 0 < len(floats) < 40
    assert {*found["nan-bits"]} == floats
    assert {*found["dpas-repeat"]} == {at for at, i in enumerate(instructions) if i["SD"] != 8 and i["RC"] > 1}
    flushable = {"bf", "tf32", "bf8", "hf8", "e2m1"}
    narrow = {at for at in floats if {instructions[at]["W"], instructions[at]["A"]} & flushable}
    assert narrow <= {*found["dpas-denormals"]} <= floats


FLOAT, MATH = "nan-bits alu-denormals", "math-special nan-bits alu-denormals"
GOVERNED = [
    ("add F0 F1 F2", FLOAT), ("add.sat F0 F1 F2", f"{FLOAT} saturation"), ("add F0 F1 HF2", f"{FLOAT} execution-type"),
    ("add HF0 F1 F2", f"{FLOAT} execution-type"), ("add BF0 BF1 F2", f"{FLOAT} execution-type"),
    ("add DF0 DF1 DF2", FLOAT), ("mad F0 F1 F2 F2", FLOAT), ("rnde F0 F1", FLOAT), ("frc F0 F1", FLOAT),
    ("add D0 D1 D2", ""), ("add.sat D0 D1 D2", ""), ("add D0 D1 UD2", ""), ("add.sat D0 D1 UD2", "integer-types"),
    ("mov F0 F1", ""), ("mov.sat F0 F1", f"{FLOAT} saturation"), ("mov HF0 F1", FLOAT),
    ("mov D0 F1", "float-to-integer"),
    ("mov.sat UB0 F1", "float-to-integer"), ("mov Q0 DF1", "float-to-integer"), ("sel F0 F1 F2", ""),
    ("min F0 F1 F2", f"{FLOAT} minimum"), ("max F0 F1 F2", f"{FLOAT} minimum"), ("max D0 D1 D2", ""),
    ("max D0 D1 UD2", "integer-types"), ("min UD0 UD1 UD2", ""), ("cmp.lt P1 F1 F2", "alu-denormals"),
    ("cmp.lt P1 D1 UD2", "integer-types"), ("cmp.lt P1 D1 D2", ""), ("cmp.lt D0 F1 F2", "alu-denormals"),
    ("div F0 F1 F2", f"division {MATH}"), ("div D0 D1 D2", ""), ("inv F0 F1", f"inv-accuracy {MATH}"),
    ("sqrt F0 F1", f"sqrt-accuracy {MATH}"), ("exp HF0 HF1", f"exp-accuracy {MATH}"),
    ("sin F0 F1", f"sin-accuracy {MATH}"),
    ("srnd HF0 F1 HF2", "srnd-subnormal execution-type"), ("and D0 D1 D2", ""),
]  # fmt: skip
"""Instructions, and the choices that govern them."""


def test_what_governs_an_instruction() -> None:
    types = ("f", "hf", "bf", "df", "d", "ud", "q", "ub")
    head = [".version 4.2", '.kernel "k"', ".decl P1 v_type=P num_elts=16"]
    head += [f".decl {t.upper()}{i} v_type=G type={t} num_elts=64 align=GRF" for t in types for i in range(3)]
    head += [".kernel_attr SimdSize=16", '.function "_main_0"', "_main_0:"]
    lines = {}
    for short, names in GOVERNED:
        name, dst, *sources = short.split()
        into = dst if dst == "P1" else f"{dst}(0,0)<1>"
        guard = "(P1) " if name == "sel" else ""
        lines[" ".join([f"{guard}{name} (M1, 16)", into, *(f"{s}(0,0)<1;1,0>" for s in sources)])] = names.split()
    [program] = assembly.read(Source("\n".join([*head, *lines, "ret (M1, 1)"]), "k.visaasm"))
    found = governed(program, ANY)
    first = next(at for at, inst in enumerate(program.instructions) if inst.name == "add")
    for at, (line, names) in enumerate(lines.items(), first):
        assert sorted(name for name, positions in found.items() if at in positions) == sorted(names), line


ATOMIC = """.version 4.2
.kernel "k"
.decl A v_type=G type=uq num_elts=16 align=GRF
.decl S v_type=G type=ud num_elts=16 align=GRF
.decl V v_type=G type=f num_elts=16 align=GRF
.kernel_attr SimdSize=16
.function "_main_0"
_main_0:
lsc_atomic_{} (M1, 16) %null.0:d32 flat[{} V %null.0
ret (M1, 1)
"""


@pytest.mark.parametrize(
    ("name", "names"),
    [("fmin", "atomic-minimum"), ("fmax", "atomic-minimum"), ("fadd", "atomic-order"), ("fsub", "atomic-order"),
     ("iadd", ""), ("smin", "")],
)  # fmt: skip
def test_what_governs_an_atomic_update(name: str, names: str) -> None:
    """The order of updates of shared local memory is that of the threads of a workgroup."""
    for memory, address in (("ugm", "A]:a64"), ("slm", "S]:a32")):
        [program] = assembly.read(Source(ATOMIC.format(f"{name}.{memory}", address), "k.visaasm"))
        found = [n for n, positions in governed(program, ANY).items() if positions]
        assert found == names.split() * (names != "atomic-order" or memory == "ugm")


def test_subnormal_numbers_are_kept_by_an_alternative() -> None:
    """`alu-denormals=kept`: as if `%cr0` kept them."""
    text = TEXT.format(modes="", instruction=f"add (M1, 16) Z(0,0)<1> {F_OPERANDS}")
    least = np.full(32, 2.0**-149, np.float32)
    for engine in ("jit", "interpreter"):
        for choices, wanted in (((), np.zeros(16)), (("alu-denormals=kept",), 2 * least[:16])):
            z = np.ones(16, np.float32)
            Kernel.from_assembly(text, engine=engine, choices=choices)(least, z)
            np.testing.assert_array_equal(z, wanted)


DIVERGENT = """
.version 4.2
.kernel "k"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl B v_type=G type=d num_elts=128 align=wordx32
.decl A v_type=G type=d num_elts=8 align=wordx32
.decl F v_type=G type=f num_elts=16 align=wordx32
.decl C v_type=G type=f num_elts=16 align=wordx32
.decl P v_type=P num_elts=16
.input In offset=64 size=8
.input Out offset=72 size=8
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1_NM, 16) F(0,0)<1> 0x0:f
    mov (M1_NM, 16) C(0,0)<1> 0x3f800000:f
    mov (M1_NM, 32) B(0,0)<1> 0x3f803f80:d
    mov (M1_NM, 32) B(2,0)<1> 0x3f803f80:d
    mov (M1_NM, 32) B(4,0)<1> 0x3f803f80:d
    mov (M1_NM, 32) B(6,0)<1> 0x3f803f80:d
    mov (M1_NM, 8) A(0,0)<1> 0x3f803f80:d
    lsc_load.ugm (M1_NM, 1) F:d32x16t flat[In]:a64
    cmp.gt (M1, 16) P F(0,0)<0;1,0> F(0,0)<1;1,0>
    (P) goto (M1, 16) SKIP
    dpas.bf.bf.8.1 (M1, 16) C.0 C.0 B.0 A(0,0)
SKIP:
    lsc_store.ugm (M1_NM, 1) flat[Out]:a64 C:d32x16t
    ret (M1, 1)
"""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_products_write_disabled_lanes_by_an_alternative(engine: str) -> None:
    x = np.array([2, 1, 3, 4, 0, *range(11)], np.float32)
    for choices, wanted in (((), np.where(x[0] > x, 1, 17)), (("dpas-mask=written",), np.full(16, 17))):
        c = np.zeros(16, np.float32)
        Kernel.from_assembly(DIVERGENT, target="pvcxt", engine=engine, choices=choices)(x, c)
        np.testing.assert_array_equal(c, wanted)
