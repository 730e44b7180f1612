"""What native code reads and writes: bytes are followed through it, and compared with what the engines would access.

Native code here has no jumps. Each byte of its registers is a symbol: a byte of an argument, a constant, or a byte of
what an instruction gives for elements that are symbols themselves.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import target
from xegpu_py.visa.assembly import write_statement
from xegpu_py.visa.finalizer import finalize
from xegpu_py.visa.operands import Destination, Region, Variable
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.verify import instruction_problem

GRF = 64
FINALIZERS = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("GenX_IR", "GenX_IR-2024")]
GPU = target("pvcxt")

_REGISTER = re.compile(
    r"(?P<modifier>-?(?:\(abs\))?|~)(?P<file>r|acc)(?P<r>\d+)\.(?P<e>\d+)<(?P<region>[\d;,]+)>:(?P<type>\w+)"
)
_CONSTANT = re.compile(r"([^r\s]*?|-?qnan\(.*\)):(\w+)")
_CODE = re.compile(r"^(\(W\))? +(\w+)((?:\.\w+)*) \((\d+)\|M(\d+)\) +(.*?) *(?:\{.*)?$")

_PROLOG = re.compile(r"bti\[255\]| r12[67]\.0<1>:ud +r(0|12[67])\.0")
"""Loads of the payload, and what computes their addresses."""

Symbol = tuple[Any, ...]


class Native:
    """The state of native code after it has run."""

    def __init__(self, text: str) -> None:
        self.bytes: dict[int, Symbol] = {}
        self.stored: list[tuple[Symbol, ...]] = []
        self.blocks: list[tuple[str, list[Symbol], int]] = []
        self.ran: list[tuple[str, int, int, bool]] = []
        body = text.partition("cross_thread_prolog:")[2]
        for line in body.split("\n"):
            code, _, comment = line.partition("//")
            if (m := _CODE.match(code.rstrip())) and not _PROLOG.search(code):
                self._run(m[2], m[3], int(m[4]), int(m[5]), m[6], comment, bool(m[1]))

    def byte(self, at: int) -> Symbol:
        return self.bytes.get(at, ("payload", at))

    def _element(self, operand: str, lane: int, comment: str) -> Symbol:
        m = _REGISTER.fullmatch(operand)
        if m is None:
            m = _CONSTANT.fullmatch(operand)
            assert m, operand
            exact = re.search(r"\(0x([0-9A-Fa-f]+):", comment)
            nan = re.fullmatch(r"(-?)qnan\(0x(\w+)\)", m[1])
            if nan:
                value = int(nan[2], 16) | (0xFFC00000 if nan[1] else 0x7FC00000)
            else:
                value = int(exact[1], 16) if exact else int(m[1], 0)
            bits = TYPES[m[2]].bits
            return ("constant", m[2], value & (1 << bits) - 1)
        size, region = TYPES[m["type"]].bytes, [int(n) for n in re.findall(r"\d+", m["region"])]
        vertical, width, horizontal = region if len(region) == 3 else (region[0], 1, 0)
        place = lane // width * vertical + lane % width * horizontal
        start = register(m) * GRF + (int(m["e"]) + place) * size
        found = tuple(self.byte(start + n) for n in range(size))
        return ("element", m["modifier"], m["type"], found)

    def _run(self, name: str, suffix: str, lanes: int, first: int, rest: str, comment: str, no_mask: bool) -> None:
        operands = [o for o in re.split(r" {2,}| (?=-?\(abs\)|[-~]?(?:r|acc)\d+\.)", rest) if o]
        if "block2d" in name:
            address = re.search(r"\[r(\d+):1\]", rest)
            data = re.search(r"(?<!\[)\br(\d+):(\d+)", rest)
            assert address
            start = int(address[1]) * GRF
            self.blocks.append((name + suffix, [self.byte(start + n) for n in range(32)], int(data[2]) if data else 0))
            return
        if name == "store":
            data = re.search(r"\] +r(\d+):(\d+)", rest)
            assert data
            start = int(data[1]) * GRF
            self.stored.append(tuple(self.byte(start + n) for n in range(int(data[2]) * GRF)))
            return
        if name in ("sync", "ret", "load", "send", "sends"):
            return
        dst = _REGISTER.fullmatch(operands[0])
        assert dst, rest
        elements = [[self._element(o, lane, comment) for o in operands[1:]] for lane in range(lanes)]
        size, stride = TYPES[dst["type"]].bytes, int(dst["region"])
        self.ran.append((name, first, lanes, no_mask))
        for lane, sources in enumerate(elements):
            start = register(dst) * GRF + (int(dst["e"]) + lane * stride) * size
            for n, symbol in enumerate(result(name, dst["type"], sources)):
                self.bytes[start + n] = symbol


def register(operand: re.Match[str]) -> int:
    """The number of an operand's register; accumulators come after all others."""
    return int(operand["r"]) + 1000 * (operand["file"] == "acc")


def result(name: str, kind: str, sources: Sequence[Symbol]) -> list[Symbol]:
    """The bytes of what an instruction gives for elements."""
    size = TYPES[kind].bytes
    first = sources[0]
    if name == "mov" and first[0] == "constant":
        value = first[2] if first[1] != "w" or first[2] < 1 << 15 else first[2] - (1 << 16)
        return [("constant", value >> 8 * n & 0xFF) for n in range(size)]
    # A copy of bits, also as another type of the same size.
    if name == "mov" and first[1] == "" and TYPES[first[2]].bytes == size:
        return list(first[3])
    operands = [("element", s[1], TYPES[s[2]].bits, s[3]) if s[0] == "element" else s for s in sources]
    if name in ("add", "mul", "and", "or", "xor"):
        operands = sorted(operands, key=repr)
    return [(name, TYPES[kind].bits, *operands, n) for n in range(size)]


def region(var: Variable, rng: random.Random, lanes: int) -> Region:
    vertical, width, horizontal = rng.choice([(1, 1, 0), (1, 1, 0), (0, 1, 0), (2, 1, 0), (4, 4, 1), (8, 4, 2)])
    modifier = rng.choice(["", "", "-", "abs"])
    return Region(var, rng.randrange(2), rng.choice([0, 0, 1, 3, 4]), vertical, width, horizontal, modifier)


def drawn(rng: random.Random, name: str, dst: Variable, sources: Sequence[Variable]) -> Instruction:
    """A legal instruction of one type."""
    while True:
        lanes = rng.choice([4, 8, 16])
        mask = rng.choice(["M1", "M1_NM", "M3" if lanes <= 8 else "M1"])
        values: dict[str, Any] = {"dst": Destination(dst, 0, rng.choice([0, 1, 4]), rng.choice([1, 1, 2]))}
        values |= {f"src{n}": region(var, rng, lanes) for n, var in enumerate(sources)}
        inst = Instruction(name, values, lanes, mask)
        if instruction_problem(inst, GPU) is None:
            return inst


def expected(inst: Instruction, places: dict[Variable, int]) -> dict[int, Symbol]:
    """The bytes that an instruction writes, by their places in the payload."""
    kind = inst["dst"].var.type
    size, found = TYPES[kind].bytes, {}
    for lane, to in enumerate(inst["dst"].elements(inst.exec_size)):
        elements = []
        for source in inst.sources:
            start = places[source.var] + source.row * GRF + (source.col + source.elements(inst.exec_size)[lane]) * size
            bytes_ = tuple(("payload", start + n) for n in range(size))
            elements.append(("element", source.modifier.replace("abs", "(abs)"), kind, bytes_))
        start = places[inst["dst"].var] + inst["dst"].row * GRF + (inst["dst"].col + to) * size
        found |= {start + n: symbol for n, symbol in enumerate(result(inst.name, kind, elements))}
    return found


@pytest.mark.parametrize("finalizer", FINALIZERS)
@pytest.mark.parametrize("kind", ["f", "d", "hf"])
def test_arithmetic(kind: str, finalizer: str) -> None:
    rng = random.Random(f"{kind} {finalizer}")
    names = ["add", "mul", "mov"] if TYPES[kind].is_float else ["add", "mov", "add"]
    count = 6
    variables = [Variable(f"Var{n}", kind, 256 // TYPES[kind].bytes, "GRF") for n in range(4 + count)]
    places = {var: (2 + 4 * n) * GRF for n, var in enumerate(variables)}
    instructions = []
    for n in range(count):
        name = names[n % len(names)]
        sources = rng.choices(variables[:4], k=1 if name == "mov" else 2)
        instructions.append(drawn(rng, name, variables[4 + n], sources))
    head = '.version 3.8\n.kernel "k"\n.decl P v_type=G type=uq num_elts=1 align=GRF\n'
    head += "".join(f".decl {v.name} v_type=G type={kind} num_elts={v.count} align=GRF\n" for v in variables)
    head += ".input P offset=64 size=8\n" + "".join(f".input {v.name} offset={places[v]} size=256\n" for v in variables)
    body = "".join(f"    {write_statement(inst).strip()}\n" for inst in instructions)
    stores = "".join(
        f"    lsc_store.ugm (M1_NM, 1) flat[P.0+{256 * n:#x}]:a64 {v.name}.0:d32x64t\n"
        for n, v in enumerate(variables[4:])
    )
    text = f'{head}.kernel_attr SimdSize=16\n.kernel_attr Target="cm"\n{body}{stores}    ret (M1, 1)\n'
    native = Native(finalize(text, "pvcxt", finalizer=finalizer).text)
    assert len(native.stored) == count
    for inst, stored in zip(instructions, native.stored):
        start = places[inst["dst"].var]
        own = expected(inst, places)
        wanted = tuple(own.get(start + n, ("payload", start + n)) for n in range(256))
        assert stored == wanted, write_statement(inst)
    # An instruction without NoMask is executed by its own lanes.
    for inst in instructions:
        if inst.name != "mov" and not inst.no_mask:
            own = range(inst.first_lane, inst.first_lane + inst.exec_size)
            ran = {
                n
                for name, first, lanes, w in native.ran
                if name == inst.name and not w
                for n in range(first, first + lanes)
            }
            assert {*own} <= ran, write_statement(inst)


BLOCKS = ["d32.2x8x8nn", "d16.16x16nt", "d16.2x16x32nn", "d8.64x8nn", "d32.8x16tn", "d64.8x8nn", "d8.4x16x32nt"]


@pytest.mark.parametrize("finalizer", FINALIZERS)
def test_blocks(finalizer: str) -> None:
    """The surface, place and shape in the descriptors of 2D block messages."""
    numbers = [(0x7F, 0x3F, 0xFF, 0x10, 0x8), (0xFFF, 0x3FF, 0x1FFF, -4, 12)]
    head = '.version 3.8\n.kernel "k"\n.decl P v_type=G type=uq num_elts=1 align=GRF\n'
    head += ".decl XY v_type=G type=d num_elts=16 align=GRF\n"
    head += "".join(f".decl M{n} v_type=G type=d num_elts=512 align=GRF\n" for n in range(2))
    head += ".input P offset=64 size=8\n.input XY offset=128 size=64\n"
    head += '.kernel_attr SimdSize=16\n.kernel_attr Target="cm"\n'
    body, wanted = "", []
    for n, shape in enumerate(BLOCKS):
        width, height, pitch, x, y = numbers[n % 2]
        at = f"{x:#x},{y:#x}" if n % 3 else "XY(0,3),XY(0,7)"
        surface = f"flat[P(0,0),{width:#x},{height:#x},{pitch:#x},{at}]"
        body += f"    lsc_load_block2d.ugm (M1_NM, 1) M{n % 2}.0:{shape} {surface}\n"
        m = re.fullmatch(r"d(\d+)\.(?:(\d)x)?(\d+)x(\d+)([nt])([nt])", shape)
        assert m
        size, count, columns, rows = int(m[1]), int(m[2] or 1), int(m[3]), int(m[4])
        payload = [("payload", 64 + i) for i in range(8)]
        for value in (width, height, pitch):
            payload += constant(value)
        if n % 3:
            payload += constant(x) + constant(y)
        else:
            payload += [("payload", 128 + 4 * e + i) for e in (3, 7) for i in range(4)]
        payload += constant(columns - 1 | rows - 1 << 8 | count - 1 << 16)
        kind = f"d{size}{'v' * (m[6] == 't')}{'t' * (m[5] == 't')}"
        wanted.append((f"load_block2d.ugm.{kind}.a64", payload))
    native = Native(finalize(f"{head}{body}    ret (M1, 1)\n", "pvcxt", finalizer=finalizer).text)
    assert [(name, payload) for name, payload, _ in native.blocks] == wanted


def constant(value: int) -> list[Symbol]:
    return [("constant", value >> 8 * n & 0xFF) for n in range(4)]
