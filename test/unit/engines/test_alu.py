"""Arithmetic, logic and conversions against a reference that works lane by lane in integers and rationals.

Of each instruction, random legal ones run on random registers, and the whole register file is compared.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, inf

import numpy as np
import pytest
from effort import examples, some
from msgspec.structs import replace
from numerics.exact import truncated, value
from visa.programs import random_instruction

from xegpu_py import numerics
from xegpu_py.engines.operands import AluOp
from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import TARGETS
from xegpu_py.visa.operands import Destination, Flag, Guard, Immediate, Region, Variable
from xegpu_py.visa.program import Instruction

from .machine import Machine, State, enabled, guarded, varied
from .scalar import (
    BITS,
    CANONICAL,
    Number,
    chosen,
    encode,
    integral,
    inverse,
    isinf,
    isnan,
    negated,
    negative,
    over,
    plus,
    root,
    rounded,
    times,
)

INTEGER_BITS = {"ub": 8, "b": 8, "uw": 16, "w": 16, "ud": 32, "d": 32, "uq": 64, "q": 64}
BITS_OF_INDEX = {"ub": 8, "uw": 16}
THREADS = 3
FLOATING = ("hf", "bf", "f", "df")


def size_of(name: str) -> int:
    return INTEGER_BITS.get(name, BITS.get(name, 0)) // 8


def by_library(name: str) -> Callable[[Number, str], Number]:
    """Functions whose own tests are elsewhere, of one number."""

    def function(a: Number, fmt: str) -> Number:
        bits = np.array([encode(a, fmt)], f"u{BITS[fmt] // 8}")
        with np.errstate(all="ignore"):
            found = getattr(numerics, name)(bits, fmt)
        return value(int(found.view(bits.dtype)[0]), fmt)

    return function


def once(x: Number) -> Number:
    return rounded(x, "f")


FLOAT_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "add": plus,
    "mul": times,
    "mad": lambda a, b, c: plus(times(a, b), c),
    "div": over,
    "divm": over,
    "sqrtm": root,
    "inv": inverse,
    "sqrt": root,
    "min": lambda a, b: chosen(a, b, True),
    "max": lambda a, b: chosen(a, b, False),
    "frc": lambda a: plus(a, negated(integral(a, floor))),
    "lrp": lambda a, b, c: plus(times(a, b), once(times(c, once(plus(Fraction(1), negated(a)))))),
    "invm": over,
    "rndd": lambda a: integral(a, floor),
    "rndu": lambda a: integral(a, ceil),
    "rnde": lambda a: integral(a, round),
    "rndz": lambda a: integral(a, int),
}
LIBRARY = {name: by_library(name) for name in ("rsqrt", "exp", "log", "sin", "cos", "tanh", "sigm")}
LIBRARY["rsqtm"] = LIBRARY["rsqrt"]
INTEGER_FUNCTIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "add3": lambda a, b, c: a + b + c,
    "addc": lambda a, b: a + b,
    "subb": lambda a, b: a - b,
    "mulh": lambda a, b: (a * b) >> 32,
    "mad": lambda a, b, c: a * b + c,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "cbit": int.bit_count,
    "lzd": lambda a: 32 - a.bit_length(),
    "bfrev": lambda a: int(f"{a % 2**32:032b}"[::-1], 2),
    "avg": lambda a, b: (a + b + 1) // 2,
    "madw": lambda a, b, c: a * b + c,
    "fbl": lambda a: (a & -a).bit_length() - 1 if a else 2**32 - 1,
}
CONDITIONS: dict[str, Callable[[Number, Number], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}

# Operands.


def type_of(operand: Region | Immediate | Destination) -> str:
    return operand.type if isinstance(operand, Immediate) else operand.var.type


def place(operand: Region | Destination, lane: int, machine: Machine) -> int:
    """The first byte of a lane's element."""
    var: Variable = operand.var
    if isinstance(operand, Region):
        width = max(operand.width, 1)
        element = lane // width * operand.vstride + lane % width * operand.hstride
    else:
        element = lane * operand.stride
    within = operand.row * machine.target.grf_bytes + (operand.col + element) * size_of(var.type)
    return machine.offsets[var] + within


def fetch(operand: Region | Immediate, lane: int, regs: bytes, machine: Machine) -> int:
    """The bit pattern of a lane's element."""
    if isinstance(operand, Immediate):
        return operand.bits
    at = place(operand, lane, machine)
    return int.from_bytes(regs[at : at + size_of(operand.var.type)], "little")


def integer(bits: int, name: str) -> int:
    width = INTEGER_BITS[name]
    return bits - (1 << width) if name[0] != "u" and bits >> (width - 1) else bits


def modified(x: Number | int, modifier: str) -> Number | int:
    if modifier == "~":
        return ~x
    if "abs" in modifier and negative(x):
        x = negated(x) if isinstance(x, (float, Fraction)) else -x
    if modifier.startswith("-"):
        x = negated(x) if isinstance(x, (float, Fraction)) else -x
    return x


def number(operand: Region | Immediate, bits: int) -> Number | int:
    """The value of an operand's element, with its modifier applied."""
    name = type_of(operand)
    x = value(bits, name) if name in FLOATING else integer(bits, name)
    return modified(x, getattr(operand, "modifier", ""))


# Results, as bit patterns.


def limits(name: str) -> tuple[int, int]:
    width = INTEGER_BITS[name]
    return (0, (1 << width) - 1) if name[0] == "u" else (-1 << (width - 1), (1 << (width - 1)) - 1)


def narrowed(x: int, name: str, saturate: bool) -> int:
    low, high = limits(name)
    if saturate:
        x = min(max(x, low), high)
    return x & ((1 << INTEGER_BITS[name]) - 1)


def to_float(x: Number | int, name: str, saturate: bool) -> int:
    """A number rounded once; saturated, it is clamped to 0 to 1, and NaN gives 0."""
    wide = Fraction(x) if isinstance(x, int) else x
    bits = encode(wide, name)
    if not saturate:
        return bits
    wide = value(bits, name)
    if isnan(wide) or wide <= 0:
        return 0
    return encode(Fraction(1), name) if wide > 1 else bits


def moved(operand: Region | Immediate, bits: int, name: str, saturate: bool) -> int:
    """The pattern that `mov` converts another one to."""
    source, modifier = type_of(operand), getattr(operand, "modifier", "")
    if source in FLOATING and source == name and not saturate:
        sign = 1 << (BITS[name] - 1)
        if "abs" in modifier:
            bits &= ~sign
        return bits ^ sign if modifier.startswith("-") else bits
    x = number(operand, bits)
    if name in FLOATING:
        return to_float(x, name, saturate)
    if isinstance(x, int):
        return narrowed(x, name, saturate)
    low, high = limits(name)
    if isnan(x):
        return 0
    if isinf(x):
        return narrowed(low if x < 0 else high, name, False)
    return narrowed(int(Fraction(x)), name, True)


def execution_type(names: list[str]) -> str:
    floats = [n for n in names if n in FLOATING]
    if not floats:
        return ""
    if "df" in floats:
        return "df"
    return "hf" if all(n == "hf" for n in floats) else "f"


def result(inst: Instruction, operands: list[Region | Immediate], patterns: list[int]) -> int:
    """The pattern that a lane of an arithmetic instruction writes."""
    name: str = inst["dst"].var.type
    if inst.name == "mov":
        return moved(operands[0], patterns[0], name, inst.saturate)
    if inst.name == "fcvt":
        return converted(patterns[0], name)
    if inst.name == "srnd":
        return stochastic(*patterns, name)
    types = [type_of(o) for o in operands]
    numbers = [number(o, p) for o, p in zip(operands, patterns)]
    fmt = execution_type([*types, name])
    if fmt:
        if inst.name == "pow":
            power = rounded(times(LIBRARY["log"](modified(numbers[0], "abs"), fmt), numbers[1]), fmt)
            exact = LIBRARY["exp"](power, fmt)
        elif inst.name in LIBRARY:
            exact = LIBRARY[inst.name](numbers[0], fmt)
        else:
            exact = FLOAT_FUNCTIONS[inst.name](*numbers)
        return to_float(rounded(exact, fmt), name, inst.saturate)
    if inst.name == "bfn":
        cases = [
            [x if n >> i & 1 else ~x for i, x in enumerate(numbers)] for n in range(8) if inst["function"] >> n & 1
        ]
        return narrowed(sum_of_bits(cases), name, False)
    if inst.name == "bfe":
        width, start = numbers[0] & 31, numbers[1] & 31
        # Beyond bit 31 of a signed number are its sign's bits, as Intel's BFE.md and IGC's folder say.
        field = f"{numbers[2] % 2**64:064b}"[64 - start - width : 64 - start]
        return narrowed(int(field or "0", 2) - (2**width if name == "d" and field[:1] == "1" else 0), name, False)
    if inst.name == "bfi":
        width, start = numbers[0] & 31, numbers[1] & 31
        base, digits = f"{numbers[3] % 2**32:064b}", f"{numbers[2] % 2**32:064b}"
        return int(base[: 64 - start - width] + digits[64 - width :] + base[64 - start :], 2) % 2**32
    if inst.name == "dp4a":
        x, y = (int(n % 2**32).to_bytes(4, "little") for n in numbers[1:])
        first, second = (np.frombuffer(v, np.int8 if t == "d" else np.uint8) for v, t in zip((x, y), types[1:]))
        return narrowed(numbers[0] + sum(int(a) * int(b) for a, b in zip(first, second)), name, inst.saturate)
    if inst.name == "lfsr":
        size = int(inst["fields"][1:].partition("v")[0])
        fields = [((numbers[0] >> n) % 2**size, (numbers[1] >> n) % 2**size) for n in range(0, 32, size)]
        return sum((x // 2 ^ (p if x % 2 else 0)) << n for n, (x, p) in zip(range(0, 32, size), fields))
    if inst.name in ("rol", "ror"):
        width = INTEGER_BITS[types[0]]
        digits = f"{numbers[0] % (1 << width):0{width}b}"
        by = (numbers[1] if inst.name == "rol" else -numbers[1]) % width
        return int(digits[by:] + digits[:by], 2)
    if inst.name in ("shl", "shr", "asr"):
        width = 64 if name[-1] == "q" or types[0][-1] == "q" else 32
        count = numbers[1] & (width - 1)
        if inst.name == "shl":
            return narrowed(numbers[0] << count, name, False)
        first = numbers[0] & ((1 << width) - 1) if inst.name == "shr" else numbers[0]
        return narrowed(first >> count, name, False)
    return narrowed(INTEGER_FUNCTIONS[inst.name](*numbers), name, inst.saturate)


def sum_of_bits(cases: list[list[int]]) -> int:
    """The bits that are set in all numbers of a case."""
    found = 0
    for numbers in cases:
        found |= numbers[0] & numbers[1] & numbers[2]
    return found


def converted(bits: int, name: str) -> int:
    """FCVT.md."""
    if name == "ub":
        return encode(value(bits, "hf"), "bf8")
    if name == "hf":
        return encode(value(bits, "bf8"), "hf")
    if bits >> 23 & 0xFF == 0:
        return bits & 0x80000000
    return encode(value(bits, "f"), "tf32") << 13


def stochastic(bits: int, noise: int, name: str) -> int:
    """SRND.md."""
    source, dst, count = ("f", "hf", 13) if name == "hf" else ("hf", "bf8", 8)
    top = 1 << (BITS[source] - 1)
    sign, magnitude = bits & top, bits & (top - 1)
    number_ = value(magnitude, source)
    if isnan(number_):
        return CANONICAL[dst]
    if not isinf(number_):
        number_ = value(magnitude + (noise & ((1 << count) - 1)), source)
    pattern = encode(inf, dst) if isinf(number_) or isnan(number_) else truncated(Fraction(number_), dst)
    return pattern | (1 << (BITS[dst] - 1) if sign else 0)


# Whole instructions.


def expected(inst: Instruction, before: State, machine: Machine) -> State:
    after = State(before.regs.copy(), before.flags.copy(), before.active)
    for thread in range(len(before.regs)):
        if before.active[thread].any():
            _expect(inst, before, after, thread, machine)
    return after


def _expect(inst: Instruction, before: State, after: State, thread: int, machine: Machine) -> None:
    regs = before.regs[thread].tobytes()
    acts = enabled(inst, before, thread, machine)
    chooses = guarded(inst, before, thread, machine) if inst.name == "sel" else []
    operands = [v for n, v in inst.values.items() if n.startswith("src")]
    dst = inst["dst"]
    for lane in range(inst.exec_size):
        if not acts[lane]:
            continue
        if inst.name == "shfl_idx4":
            index, size = fetch(operands[1], lane, regs, machine), 16 // BITS_OF_INDEX[operands[1].var.type]
            entries = [fetch(operands[0], index >> 4 * n & 15, regs, machine) for n in range(4 // size)]
            parts = [e.to_bytes(4, "little")[size * n : size * n + size] for n, e in enumerate(entries)]
            at = machine.offsets[dst.var] + dst.offset + 4 * lane
            after.regs[thread, at : at + 4] = np.frombuffer(b"".join(parts), np.uint8)
            continue
        if isinstance(operands[0], Flag):
            held = [before.flags[thread, machine.predicates[o.var]] for o in operands]
            if inst.name == "mov":
                bits = sum(int(b) << i for i, b in enumerate(held[0][: operands[0].var.count]))
                _store(after, thread, dst, lane, narrowed(bits, dst.var.type, False), machine)
                continue
            truth = INTEGER_FUNCTIONS[inst.name](*(int(h[inst.first_lane + lane]) for h in held)) & 1
            after.flags[thread, machine.predicates[dst.var], inst.first_lane + lane] = truth
            continue
        if inst.name == "setp":
            bit = fetch(operands[0], 0, regs, machine) >> lane & 1
            after.flags[thread, machine.predicates[dst.var], inst.first_lane + lane] = bit
            continue
        patterns = [fetch(o, lane, regs, machine) for o in operands]
        if inst.name == "cmp":
            truth = CONDITIONS[inst["condition"]](*(number(o, p) for o, p in zip(operands, patterns)))
            if isinstance(dst, Flag):
                after.flags[thread, machine.predicates[dst.var], inst.first_lane + lane] = truth
            else:
                _store(after, thread, dst, lane, -int(truth) % (1 << 8 * size_of(dst.var.type)), machine)
            continue
        if inst.name == "sel":
            which = 0 if chooses[lane] else 1
            bits = moved(operands[which], patterns[which], dst.var.type, inst.saturate)
        else:
            bits = result(inst, operands, patterns)
        _store(after, thread, dst, lane, bits, machine)
    if inst.name == "madw":
        high = replace(dst, row=dst.row + -(-4 * inst.exec_size // machine.target.grf_bytes))
        for lane in range(inst.exec_size):
            if acts[lane]:
                total = INTEGER_FUNCTIONS["madw"](*(number(o, fetch(o, lane, regs, machine)) for o in operands))
                _store(after, thread, high, lane, total >> 32 & 0xFFFFFFFF, machine)
    if "special" in inst.values:
        for lane in range(inst.exec_size):
            if acts[lane]:
                at, size = place(dst, lane, machine), size_of(dst.var.type)
                found = value(int.from_bytes(after.regs[thread, at : at + size].tobytes(), "little"), dst.var.type)
                special = isnan(found) or isinf(found) or found == 0
                after.flags[thread, machine.predicates[inst["special"].var], inst.first_lane + lane] = special
    if "carry" in inst.values:
        for lane in range(inst.exec_size):
            if acts[lane]:
                first, second = (number(o, fetch(o, lane, regs, machine)) % 2**32 for o in operands)
                carried = first < second if inst.name == "subb" else first + second >= 2**32
                _store(after, thread, inst["carry"], lane, int(carried), machine)


def _store(after: State, thread: int, dst: Destination, lane: int, bits: int, machine: Machine) -> None:
    at, size = place(dst, lane, machine), size_of(dst.var.type)
    after.regs[thread, at : at + size] = np.frombuffer(bits.to_bytes(size, "little"), np.uint8)


def check(inst: Instruction, machine: Machine, rng: random.Random) -> None:
    before = machine.state(THREADS, rng)
    want, got = expected(inst, before, machine), machine.run(inst, before)
    np.testing.assert_array_equal(got.flags, want.flags, err_msg=str(inst))
    differ = np.argwhere(got.regs != want.regs)
    if len(differ):
        thread, byte = differ[0]
        where = next(f"{v.name} byte {byte - o}" for v, o in machine.offsets.items() if o <= byte < o + v.bytes)
        pytest.fail(_difference(inst, before, want, got, int(thread), machine, where), pytrace=False)


def _difference(
    inst: Instruction, before: State, want: State, got: State, thread: int, machine: Machine, where: str
) -> str:
    from xegpu_py.visa.assembly import write_statement

    lines = [f"{write_statement(inst)}: thread {thread}, {where}"]
    dst = inst["dst"]
    for lane in range(inst.exec_size):
        at = place(dst, lane, machine)
        held = [s.regs[thread, at : at + size_of(dst.var.type)].tobytes()[::-1].hex() for s in (want, got)]
        if held[0] != held[1]:
            sources = [
                f"{fetch(o, lane, before.regs[thread].tobytes(), machine):#x}:{type_of(o)}"
                for n, o in inst.values.items()
                if n.startswith("src") and not isinstance(o, Flag)
            ]
            lines.append(f"lane {lane}: of {', '.join(sources)} expected {held[0]}, got {held[1]}")
    return "\n".join(lines)


ALU = (
    *("mov", "add", "mul", "mulh", "mad", "div", "inv", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "min", "max"),
    *("rndd", "rndu", "rnde", "rndz", "and", "or", "xor", "not", "shl", "shr", "asr", "cmp", "sel", "setp"),
    *("srnd", "fcvt", "cbit", "lzd", "add3", "addc", "subb", "bfn", "bfrev", "fbl", "rol", "ror", "divm", "sqrtm"),
    *("tanh", "sigm", "bfe", "bfi", "dp4a", "frc", "avg", "lrp", "lfsr", "madw", "pow", "invm", "rsqtm"),
    "shfl_idx4",
)
ROUNDS = {"mov": 300, "mad": 250, **dict.fromkeys(("add", "mul", "sel", "cmp"), 200)}


@pytest.mark.parametrize("name", ALU)
def test_random_instructions(name: str) -> None:
    rng = random.Random(name)
    newest = next(t for t in ("pvcxt", "cri", "any") if name not in TARGETS[t].absent)
    machines = [Machine(TARGETS[t]) for t in (newest, "dg2")]
    for n in range(examples(ROUNDS.get(name, 80))):
        machine = machines[n % 4 == 0 and name not in machines[1].target.absent]
        inst = varied(random_instruction(name, rng, machine.target), rng, machine.target)
        check(inst, machine, rng)


def test_every_arithmetic_instruction_is_covered() -> None:
    from xegpu_py.visa.instructions import INSTRUCTIONS

    assert {n for n, s in INSTRUCTIONS.items() if s.category in ("alu", "math")} == set(ALU)


def test_every_conversion() -> None:
    """mov between all types, with each modifier, saturated and not."""
    machine = Machine(TARGETS["pvcxt"])
    rng = random.Random(0)
    by_type = {v.type: v for v in machine.variables if v.count > 1}
    cases = [
        (dst, src, modifier, saturate)
        for dst, src, modifier, saturate in itertools.product(TYPES, TYPES, ("", "-", "abs", "-abs"), (False, True))
        if dst == src or "bf" not in (dst, src) or "f" in (dst, src)
        if not (dst == src == "bf" and (modifier or saturate))
    ]
    for dst, src, modifier, saturate in some(rng.sample(cases, len(cases))):
        values = {"dst": Destination(by_type[dst]), "src0": Region(by_type[src], 0, 0, 8, 8, 1, modifier)}
        check(Instruction("mov", values, 16, "M1", None, saturate), machine, rng)


@pytest.mark.parametrize("control", ["", "any", "all"])
@pytest.mark.parametrize("inverted", [False, True])
def test_guards(control: str, inverted: bool) -> None:
    machine = Machine(TARGETS["pvcxt"])
    rng = random.Random(1)
    by_type = {v.type: v for v in machine.variables if v.count > 1}
    region = Region(by_type["d"], 0, 0, 8, 8, 1)
    for predicate in machine.predicates:
        for name in ("add", "sel"):
            if predicate.count < 16 and not control:
                continue
            values = {"dst": Destination(by_type["ud"]), "src0": region, "src1": region}
            inst = Instruction(name, values, 16, "M1", Guard(predicate, inverted, control))
            for _ in range(8):
                check(inst, machine, rng)


@pytest.mark.each_value
@pytest.mark.parametrize("name", ["add", "mul", "mad", "min", "max"])
@pytest.mark.parametrize("types", [("ud", "ud", "ud"), ("d", "ud", "d"), ("q", "ud", "uq"), ("uq", "q", "uq")])
def test_saturation_at_the_limits(name: str, types: tuple[str, ...]) -> None:
    """The exact result is clamped, however many bits it has."""
    machine = Machine(TARGETS["pvcxt"])
    rng = random.Random(2)
    by_type = {v.type: v for v in machine.variables if v.count > 1}
    wide = any(t[-1] == "q" for t in types)
    if wide and name in ("mul", "mad"):
        types = ("ud", "d", types[2])
    for dst in ("ub", "d", "ud", "q", "uq"):
        for modifier in ("", "-", "abs", "-abs"):
            values: dict[str, object] = {"dst": Destination(by_type[dst])}
            for i in range(3 if name == "mad" else 2):
                modifiers = modifier if i < 2 else rng.choice(("", "-"))
                values[f"src{i}"] = Region(by_type[types[i]], 0, 0, 4, 4, 1, modifiers)
            check(Instruction(name, values, 8, "M1", None, True), machine, rng)


@pytest.mark.parametrize(
    ("name", "types", "signs", "size", "bits"),
    [
        ("add", ("d", "d", "ud"), (True, False), 32, 32),
        ("add", ("ud", "uw", "w"), (False, True), 16, 32),
        ("add", ("d", "b", "ub"), (True, False), 8, 32),
        ("shl", ("q", "d", "ud"), (True, False), 32, 64),
        ("shr", ("ud", "uq", "ud"), (False, False), 64, 64),
        ("asr", ("d", "d", "w"), (True, True), 32, 32),
        ("mul", ("f", "f", "f"), (False, False), 32, 32),
    ],
)
def test_properties_that_functions_use(name, types, signs, size, bits):
    dst, *sources = (Variable(f"v{n}", kind, 16, "GRF") for n, kind in enumerate(types))
    values = {"dst": Destination(dst, 0, 0, 1)} | {f"src{n}": Region(v, 0, 0, 1, 1, 0) for n, v in enumerate(sources)}
    found = AluOp.of(Instruction(name, values, 16, "M1_NM"))
    assert (found.name, found.signs, found.size, found.bits) == (name, signs, size, bits)
    assert found.format == ("f" if "f" in types else "")
