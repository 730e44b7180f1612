"""The JIT against the interpreter: the same bytes of registers, predicates and memory."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from visa.programs import random_instruction

from xegpu_py.engines import jit
from xegpu_py.engines.interpreter import Interpreter
from xegpu_py.engines.jit.engine import Jit
from xegpu_py.runtime.memory import DeviceMemory
from xegpu_py.target import TARGETS
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.program import Instruction

from .machine import Machine, varied

THREADS = 5
REGISTERS = [n for n, s in INSTRUCTIONS.items() if s.category in ("alu", "math", "dpas")]


def test_every_instruction_has_a_rule() -> None:
    assert jit.missing_rules() == []


def differences(instructions: list[Instruction], rng: random.Random, machine: Machine, model: str = "fma") -> list[str]:
    """Where native code leaves other registers or predicates than the interpreter, by variable."""
    before = machine.state(THREADS, rng)
    batches = [machine.batch(before, DeviceMemory()) for _ in range(2)]
    interpreter = Interpreter(machine.program(instructions), machine.layout(), model)
    interpreter.run(batches[0])
    Jit(interpreter, lanes_part=True).run_batch(batches[1])
    golden, native = batches
    found = []
    for var in machine.variables:
        start = machine.offsets[var]
        a, b = (x.regs[:, start : start + var.bytes] for x in (golden, native))
        if (a != b).any():
            thread = int(np.argwhere(a != b)[0][0])
            found.append(f"{var.name} of thread {thread}:\n{a[thread].view(var.format.dtype)}\n{b[thread].view(var.format.dtype)}")
    if (golden.flags != native.flags).any():
        found.append(f"predicates:\n{np.argwhere(golden.flags != native.flags)}")
    return found


@pytest.mark.parametrize("name", REGISTERS)
def test_instructions(name: str) -> None:
    rng = random.Random(name)
    target = TARGETS["any"]
    machine = Machine(target)
    for _ in range(6):
        count = 3 if name == "dpas" else 12
        instructions = [varied(random_instruction(name, rng, target), rng, target) for _ in range(count)]
        found = differences(instructions, rng, machine)
        if found:
            from xegpu_py.visa.assembly import write_statement
            for i in instructions:
                f = differences([i], random.Random(1), machine)
                if f: print(write_statement(i), *f, sep="\n")
        assert not found, "\n".join(found)
