"""A machine with chosen contents, on which instructions run, and its state before and after."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from visa.programs import BASES, PREDICATES, general, program_of

from xegpu_py.engines.interpreter import Interpreter
from xegpu_py.engines.jit.engine import Jit, _ThreadTeam, dwords, packed, unpacked
from xegpu_py.engines.jit.native_launch import NativeLaunch
from xegpu_py.engines.jit.native_launch_struct import TRAFFIC, Status
from xegpu_py.engines.operands import ENDED, Batch, RegisterPositions, new_batch
from xegpu_py.runtime.device_memory import DeviceMemory
from xegpu_py.target import Target
from xegpu_py.visa.allocate import Allocation
from xegpu_py.visa.operands import Destination, Guard, Region, Variable
from xegpu_py.visa.program import Instruction, Program
from xegpu_py.visa.spec import LANES
from xegpu_py.visa.verify import instruction_problem

SPECIAL = {
    # Zeros, subnormal numbers, the least and greatest normal ones, one and its neighbours, infinities, NaNs, integers.
    "hf": (0, 1, 0x3FF, 0x400, 0x3BFF, 0x3C00, 0x3C01, 0x3800, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7FFF, 0x4900),
    "bf": (0, 1, 0x7F, 0x80, 0x3F7F, 0x3F80, 0x3F81, 0x3F00, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x4F00, 0x4120),
    "f": (
        0, 1, 0x7FFFFF, 0x800000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001,
        0x7FC00000, 0x7FFFFFFF, 0x4F000000, 0x4F800000, 0x5F000000, 0x5F800000, 0x4EFFFFFF, 0x477FE000, 0x477FF000,
        0x33000000, 0x33000001, 0x40200000, 0x42FE0000, 0x43000000,
    ),
    "df": (
        0, 1, (1 << 52) - 1, 1 << 52, 0x3FEFFFFFFFFFFFFF, 0x3FF << 52, 0x3FF0000000000001, 0x3FE << 52,
        0x7FEFFFFFFFFFFFFF, 0x7FF << 52, (0x7FF << 52) + 1, 0x7FF8 << 48, 0x41E << 52, 0x43E << 52, 0x43F << 52,
        0x43DFFFFFFFFFFFFF, 0x47EFFFFFF0000000, 0x36A0000000000000, 0x4004 << 48,
    ),
}  # fmt: skip
"""Patterns of floats at which rules change; each also with its sign."""

NEAR_ONE = {"hf": (10, 15), "bf": (7, 127), "f": (23, 127), "df": (52, 1023)}
"""Bits of the mantissa and the exponent of one: numbers near it meet each other in sums."""

WHOLE = (0, 1, 2, -1, -2)
"""Integers at which rules change, beside those next to the greatest."""


def pattern(name: str, bits: int, rng: random.Random) -> int:
    """A bit pattern of a type; those at which something special happens are frequent."""
    kind = rng.random()
    if name in SPECIAL:
        if kind < 0.45:
            return rng.choice(SPECIAL[name]) | rng.getrandbits(1) << (bits - 1)
        if kind < 0.75:
            mantissa, bias = NEAR_ONE[name]
            exponent = bias + rng.randint(-4, 6)
            return rng.getrandbits(1) << (bits - 1) | exponent << mantissa | rng.getrandbits(mantissa)
        return rng.getrandbits(bits)
    top = 1 << (bits - 1)
    if kind < 0.4:
        return rng.choice((*(x % (2 * top) for x in WHOLE), top - 1, top, top + 1, top >> 1))
    if kind < 0.7:
        return rng.randint(-40, 40) % (2 * top)
    return rng.getrandbits(bits)


def patterns(name: str, bits: int, shape: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    """Many results of `pattern`, as unsigned integers of the type's width."""
    width = getattr(np, f"uint{bits}")

    def signs() -> np.ndarray:
        return draw.integers(0, 2, shape, width) << width(bits - 1)

    anything = draw.integers(0, width(-1 % (1 << bits)), shape, width, endpoint=True)
    kind = draw.random(shape)
    if name in SPECIAL:
        mantissa, bias = NEAR_ONE[name]
        special = draw.choice(np.array(SPECIAL[name], width), shape) | signs()
        exponent = draw.integers(bias - 4, bias + 6, shape, width, endpoint=True) << width(mantissa)
        near = signs() | exponent | anything & width((1 << mantissa) - 1)
        return np.where(kind < 0.45, special, np.where(kind < 0.75, near, anything))
    top = 1 << (bits - 1)
    special = draw.choice(np.array([*(x % (2 * top) for x in WHOLE), top - 1, top, top + 1, top >> 1], width), shape)
    small = draw.integers(-40, 41, shape).astype(width)
    return np.where(kind < 0.4, special, np.where(kind < 0.7, small, anything))


@dataclass
class State:
    """The state of threads: their registers, predicates and enabled lanes."""

    regs: np.ndarray
    flags: np.ndarray
    active: np.ndarray


@dataclass
class Machine:
    """The variables of `visa.programs`, each at registers of its own."""

    target: Target

    def __post_init__(self) -> None:
        self.variables: tuple[Variable, ...] = (*general(self.target), *BASES)
        at = self.target.grf_bytes
        self.offsets = {}
        for var in self.variables:
            self.offsets[var] = at
            at += -(-var.bytes // self.target.grf_bytes) * self.target.grf_bytes
        self.bytes = at
        self.predicates = {p: i for i, p in enumerate(PREDICATES)}

    def layout(self, *, watch: bool = False) -> RegisterPositions:
        allocation = Allocation(self.offsets, self.bytes, self.target.grf_bytes, 256, 0, 0, ())
        return RegisterPositions(self.target, allocation, self.predicates, watch)

    def state(self, threads: int, rng: random.Random) -> State:
        regs = np.zeros((threads, self.bytes), np.uint8)
        draw = np.random.default_rng(rng.getrandbits(64))
        of_type: defaultdict[str, list[Variable]] = defaultdict(list)
        for var in self.variables:
            of_type[var.type].append(var)
        for name, variables in of_type.items():
            size = variables[0].format.bytes
            ends = size * np.cumsum([var.count for var in variables])
            data = patterns(name, 8 * size, (threads, ends[-1] // size), draw).view(np.uint8)
            for var, part in zip(variables, np.split(data, ends[:-1], 1)):
                regs[:, self.offsets[var] : self.offsets[var] + part.shape[1]] = part
        flags = np.zeros((threads, len(PREDICATES), LANES), bool)
        for i, predicate in enumerate(PREDICATES):
            flags[:, i, : predicate.count] = _bits(threads, predicate.count, rng)
        active = np.ones((threads, LANES), bool) if rng.random() < 0.3 else _bits(threads, LANES, rng)
        return State(regs, flags, active)

    def batch(self, before: State, memory: DeviceMemory, slm_bytes: int = 0, groups: int = 1) -> Batch:
        threads = len(before.regs)
        batch = new_batch(
            groups, threads // groups, self.bytes, len(PREDICATES), 0, slm_bytes, memory, divergent=True, watch=False
        )
        batch.regs[:], batch.flags[:] = before.regs, before.flags
        assert batch.lane_pc is not None
        batch.lane_pc[~before.active] = ENDED
        batch.pc[:] = batch.lane_pc.min(axis=1)
        return batch

    def program(self, instructions: Sequence[Instruction]) -> Program:
        return program_of(instructions, self.target)

    def run(self, inst: Instruction, before: State) -> State:
        """The state of threads after an instruction that does not access memory."""
        batch = self.batch(before, DeviceMemory())
        Interpreter(self.program([inst]), self.layout()).run(batch)
        return State(batch.regs, batch.flags, before.active)


def run_batch(jit: Jit, batch: Batch) -> None:
    """Run a batch's threads from the state in which they are to their end, as `Interpreter.run` does, in native code.

    Raises:
        RuntimeFault: if an access is refused, or threads wait forever.
    """
    frame, size = jit.frame, batch.group_size
    groups = batch.threads // size
    team = _ThreadTeam(jit, NativeLaunch((groups, 1, 1), (1, 1), size, 1, np.zeros(0, np.uint8), batch.memory, str), 1)
    worker = team.workers[0]
    for group in range(groups):
        rows, slot = slice(group * size, (group + 1) * size), worker.own
        slot.group = group
        blocks = slot.blocks.reshape(size, frame.bytes)
        blocks[:] = 0
        blocks[:, : batch.regs.shape[1]] = batch.regs[rows]
        blocks[:, frame.flags : frame.pc] = packed(batch.flags[rows])
        if batch.written is not None:
            blocks[:, frame.written : frame.written + batch.written.shape[1]] = batch.written[rows]
        dwords(blocks, frame.status)[:] = Status.YIELDED
        dwords(blocks, frame.pc)[:] = batch.pc[rows, None]
        if batch.lane_pc is not None:
            dwords(blocks, frame.lane_pc, LANES)[:] = batch.lane_pc[rows]
        local = batch.slm.data[group * batch.slm.bytes : (group + 1) * batch.slm.bytes]
        slot.slm[: len(local)] = local
        slot.barriers[:] = 0
        slot.use(worker.context)
        status = Status.YIELDED
        while status == Status.YIELDED:
            jit.driver.resume(worker.context)
            status = Status(worker.context.status)
        if not worker._fine(status):
            team.end()
        batch.regs[rows] = blocks[:, : batch.regs.shape[1]]
        batch.flags[rows] = unpacked(blocks[:, frame.flags : frame.pc])
        if batch.written is not None:
            batch.written[rows] = blocks[:, frame.written : frame.written + batch.written.shape[1]] != 0
        local[:] = slot.slm[: len(local)]
    batch.traffic += Counter({k: int(n) for k, n in zip(TRAFFIC, worker.traffic) if n})
    batch.pc[:] = ENDED


def _bits(threads: int, count: int, rng: random.Random) -> np.ndarray:
    chance = rng.choice((0.1, 0.5, 0.5, 0.9))
    return np.array([[rng.random() < chance for _ in range(count)] for _ in range(threads)])


def enabled(inst: Instruction, state: State, thread: int, machine: Machine) -> list[bool]:
    """Which lanes of an instruction act, `sel`'s predicate apart."""
    first = inst.first_lane
    found = [inst.no_mask or bool(state.active[thread, first + i]) for i in range(inst.exec_size)]
    if inst.guard is None or inst.name == "sel":
        return found
    return [a and b for a, b in zip(found, guarded(inst, state, thread, machine))]


def guarded(inst: Instruction, state: State, thread: int, machine: Machine) -> list[bool]:
    """The bits of an instruction's predicate by lanes, inverted if they are to be."""
    guard = inst.guard
    assert guard
    bits = [bool(b) for b in state.flags[thread, machine.predicates[guard.var]]]
    if guard.control:
        joined = (any if guard.control == "any" else all)(bits[: guard.var.count])
        found = [joined] * inst.exec_size
    else:
        found = bits[inst.first_lane : inst.first_lane + inst.exec_size]
    return [b != guard.inverted for b in found]


def varied(inst: Instruction, rng: random.Random, target: Target) -> Instruction:
    """An instruction as legal, with other regions, guards, masks and sizes."""
    for _ in range(6):
        changed = _varied_once(inst, rng)
        if instruction_problem(changed, target) is None:
            inst = changed
    return inst


def _varied_once(inst: Instruction, rng: random.Random) -> Instruction:
    what = rng.randrange(5)
    if what == 0:
        size = rng.choice((1, 2, 4, 8, 16, 32))
        masks = [f"M{1 + i // 4}" for i in range(0, LANES - size + 1, max(size, 4))]
        return inst.replaced(exec_size=size, mask=rng.choice(masks) + ("_NM" if inst.no_mask else ""))
    if what == 1:
        return inst.replaced(mask=inst.mask[:2] + rng.choice(("", "_NM")))
    if what == 2:
        guard = Guard(rng.choice(PREDICATES), rng.random() < 0.5, rng.choice(("", "any", "all")))
        return inst.replaced(guard=guard) if inst.guard else inst
    values = dict(inst.values)
    name = rng.choice([n for n, v in values.items() if isinstance(v, (Region, Destination))] or [""])
    operand = values.get(name)
    if isinstance(operand, Region):
        values[name] = replace(
            operand,
            row=rng.randrange(3),
            col=rng.randrange(4),
            vstride=rng.choice((0, 1, 2, 4, 8, 16)),
            width=rng.choice((1, 2, 4, 8, 16)),
            hstride=rng.choice((0, 1, 2, 4)),
        )
    elif isinstance(operand, Destination):
        values[name] = replace(operand, row=rng.randrange(3), col=rng.randrange(4), stride=rng.choice((1, 2, 4)))
    return inst.replaced(values=values)
