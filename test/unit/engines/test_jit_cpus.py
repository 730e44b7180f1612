"""The same bits on CPUs that have less than the one on which the tests run."""

from __future__ import annotations

import platform
import random
from dataclasses import replace

import numpy as np
import pytest
from visa.programs import general, random_instruction

from xegpu_py.target import TARGETS
from xegpu_py.visa.operands import Destination, Region
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.verify import instruction_problem

from .machine import Machine, State
from .test_jit import compare

X86 = [
    # The least that there is: no fused multiply-add, no conversion of halves, vectors of 16 bytes.
    ("x86-64", "sse2"),
    # Those of before AVX-512.
    ("x86-64-v3", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe", "popcnt"),
]
CPUS = X86 if platform.machine().lower() in ("x86_64", "amd64") else [("generic", "neon")]
ANY = TARGETS["any"]


@pytest.fixture(params=CPUS, ids=lambda cpu: cpu[0])
def cpu(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return tuple(request.param)


def test_instructions(cpu: tuple[str, ...]) -> None:
    """Some of each kind."""
    names = ["add", "mul", "mad", "mulh", "shr", "div", "inv", "sqrt", "exp", "sin", "cmp", "srnd", "fcvt", "rnde"]
    rng, machine = random.Random(0), Machine(ANY)
    for half in (names[:7], names[7:]):
        instructions = [random_instruction(name, rng, ANY) for name in half for _ in range(3)]
        compare(instructions, machine.state(3, rng), machine, cpu=cpu)


def test_products(cpu: tuple[str, ...]) -> None:
    rng, machine = random.Random(1), Machine(ANY)
    for model in ("fma", "stage"):
        instructions = [random_instruction("dpas", rng, ANY) for _ in range(5)]
        # Bytes, which some hosts multiply four at a time.
        product = instructions[0]
        while product["W"] != "u8" or instruction_problem(product, ANY):
            other = random_instruction("dpas", rng, ANY)
            product = replace(other, values=dict(other.values) | {"W": "u8", "A": "s8"})
        compare([*instructions, product], machine.state(2, rng), machine, model=model, cpu=cpu)


def test_halves(cpu: tuple[str, ...]) -> None:
    """All of them to f; and to hf what lies at and about the middle between two of them, and beyond the greatest."""
    machine = Machine(ANY)
    half, single = (next(v for v in general(ANY) if v.type == t) for t in ("hf", "f"))
    start, end = machine.offsets[half], machine.offsets[single]
    before = machine.state(1, random.Random(0))
    state = State(*(np.repeat(x, 4096, axis=0) for x in (before.regs, before.flags, before.active)))
    patterns = np.arange(1 << 16, dtype=np.uint16)
    state.regs[:, start : start + 32] = patterns.reshape(4096, 16).view(np.uint8)
    # Not a copy of patterns: what is added makes it a conversion.
    wide = Instruction("add", {"dst": Destination(single), **_both(half, half)}, 16, "M1_NM")
    compare([wide], state, machine, cpu=cpu)
    numbers = patterns.view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        step = np.abs(numbers - np.nextafter(patterns.view(np.float16), np.float16(np.inf)).astype(np.float32))
        middle = np.where(np.isfinite(step), numbers + step / 2, numbers)
    move = Instruction("mov", {"dst": Destination(half), "src0": Region(single, 0, 0, 1, 1, 0)}, 16, "M1_NM")
    middle[:6] = 65519.0, 65520.0, 65535.9, 65536.0, 70000.0, 3e38
    for apart in (-1, 0, 1):
        near = (middle.view(np.uint32) + np.uint32(apart % (1 << 32))).reshape(4096, 16)
        state.regs[:, end : end + 64] = near.view(np.uint8)
        compare([move], state, machine, cpu=cpu)


def _both(*sources: object) -> dict[str, Region]:
    return {f"src{i}": Region(s, 0, 0, 1, 1, 0) for i, s in enumerate(sources)}
