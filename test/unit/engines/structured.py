"""Random structured programs of divergent lanes, as gotos, and the result of each lane when it runs alone."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from xegpu_py.runtime.kernel import Kernel

HEAD = """\
.version 3.8
.kernel "control"
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Id v_type=G type=ud num_elts=3 align=dword
.decl Count v_type=G type=ud num_elts=3 align=dword
.decl Thread v_type=G type=ud num_elts=1 align=dword
.decl At v_type=G type=uq num_elts=32 align=GRF
.decl Lane v_type=G type=ud num_elts=32 align=GRF
.decl T v_type=G type=ud num_elts=32 align=GRF
.decl S v_type=G type=ud num_elts=32 align=GRF
.decl Local v_type=G type=ud num_elts=32 align=GRF
.decl P v_type=P num_elts=32
.decl Q v_type=P num_elts=32
{declarations}
.input Out offset=64 size=8
.implicit_LOCAL_ID Id offset=72 size=12
.implicit_GROUP_COUNT Count offset=84 size=12
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
.kernel_attr SLMSize=1
.kernel_attr NBarrierCnt=4
"""


ENGINE = ["jit"]
"""The engines that run kernels."""


def kernel(body: str, declarations: str = "", **options: object) -> Kernel:
    options.setdefault("engine", None if options.get("check") else ENGINE[0])
    return Kernel.from_assembly(HEAD.format(declarations=declarations) + body, file="control.visaasm", **options)


def thread_number(threads: int) -> str:
    """Number of the thread in a launch in x."""
    return f"    mad (M1_NM, 1) Thread(0,0)<1> %group_id_x(0,0)<0;1,0> {threads}:ud Id(0,0)<0;1,0>\n"


LANES = "    mov (M1_NM, 1) Lane(0,0)<1> 0:ud\n" + "".join(
    f"    add (M1_NM, {n}) Lane({n // 16},{n % 16})<1> Lane(0,0)<1;1,0> {n}:ud\n" for n in (1, 2, 4, 8, 16)
)

VARIABLES = 4
MASK32 = (1 << 32) - 1


@dataclass
class Assign:
    to: int
    operation: str
    left: int
    right: int
    constant: int


@dataclass
class If:
    left: int
    condition: str
    constant: int
    then: list[object]
    other: list[object]


@dataclass
class Loop:
    """`trips` times, of a variable's lowest two bits; the test comes before the body, or after it."""

    trips: int
    before: bool
    body: list[object]


@dataclass
class Leave:
    """Breaks, continues or ends the lane, where a condition holds."""

    how: str
    left: int
    condition: str
    constant: int


OPERATIONS = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "shr": lambda a, b: a >> (b & 31),
}
CONDITIONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
}

variable = st.integers(0, VARIABLES - 1)
condition = st.sampled_from(sorted(CONDITIONS))
constant = st.sampled_from([0, 1, 2, 3, 5, 0x10, 0x7FFFFFFF, 0xFFFFFFFF]) | st.integers(0, 40)
assigns = st.builds(Assign, variable, st.sampled_from(sorted(OPERATIONS)), variable, variable, constant)
leaves = st.builds(Leave, st.sampled_from(["break", "continue", "end", "ret"]), variable, condition, constant)


def statements(depth: int) -> st.SearchStrategy[list[object]]:
    options = [assigns, assigns, leaves]
    if depth:
        inner = statements(depth - 1)
        options += [
            st.builds(If, variable, condition, constant, inner, inner),
            st.builds(Loop, variable, st.booleans(), inner),
        ]
    return st.lists(st.one_of(*options), min_size=1, max_size=4)


class _Left(Exception):
    def __init__(self, how: str) -> None:
        self.how = how


def emulate(program: list[object], lane: list[int]) -> None:
    """Run a program for one lane."""
    with suppress(_Left):
        _emulate(program, lane)


def _emulate(program: list[object], lane: list[int]) -> None:
    for item in program:
        if isinstance(item, Assign):
            right = lane[item.right] ^ item.constant
            lane[item.to] = OPERATIONS[item.operation](lane[item.left], right) & MASK32
        elif isinstance(item, If):
            _emulate(item.then if CONDITIONS[item.condition](lane[item.left], item.constant) else item.other, lane)
        elif isinstance(item, Loop):
            trips = lane[item.trips] & 3
            while trips or not item.before:
                try:
                    _emulate(item.body, lane)
                except _Left as left:
                    if left.how == "break":
                        break
                    if left.how != "continue":
                        raise
                trips -= 1
                if trips <= 0:
                    break
        elif isinstance(item, Leave) and CONDITIONS[item.condition](lane[item.left], item.constant):
            raise _Left(item.how)


class Compiler:
    """A structured program in gotos."""

    def __init__(self, size: str) -> None:
        self.size, self.labels, self.counters = size, 0, 0
        self.lines: list[str] = []

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def emit(self, text: str) -> None:
        self.lines.append(f"    {text}\n")

    def place(self, label: str) -> None:
        self.lines.append(f"{label}:\n")

    def compare(self, condition: str, left: str, right: str) -> None:
        self.emit(f"cmp.{condition} {self.size} P {self.read(left)} {right}")

    @property
    def row(self) -> int:
        return 1 if self.size.startswith("(M5") else 0

    def read(self, name: str) -> str:
        return f"{name}({self.row},0)<8;8,1>"

    def write(self, name: str) -> str:
        return f"{name}({self.row},0)<1>"

    def compile(self, program: list[object], loops: list[tuple[str, str]]) -> None:
        for item in program:
            if isinstance(item, Assign):
                self.emit(f"xor {self.size} {self.write('T')} {self.read(f'Var{item.right}')} {item.constant:#x}:ud")
                left = self.read(f"Var{item.left}")
                self.emit(f"{item.operation} {self.size} {self.write(f'Var{item.to}')} {left} {self.read('T')}")
            elif isinstance(item, If):
                other, end = self.label(), self.label()
                self.compare(item.condition, f"Var{item.left}", f"{item.constant:#x}:ud")
                self.emit(f"(!P) goto {self.size} {other}")
                self.compile(item.then, loops)
                self.emit(f"goto {self.size} {end}")
                self.place(other)
                self.compile(item.other, loops)
                self.place(end)
            elif isinstance(item, Loop):
                self.loop(item, loops)
            else:
                self.leave(item, loops)

    def loop(self, item: Loop, loops: list[tuple[str, str]]) -> None:
        again, on, end = self.label(), self.label(), self.label()
        counter = f"C{self.counters}"
        self.counters += 1
        self.emit(f"and {self.size} {self.write(counter)} {self.read(f'Var{item.trips}')} 3:ud")
        if item.before:
            self.compare("eq", counter, "0:ud")
            self.emit(f"(P) goto {self.size} {end}")
        self.place(again)
        self.compile(item.body, [*loops, (on, end)])
        self.place(on)
        self.emit(f"add {self.size} {self.write(counter)} {self.read(counter)} -1:d")
        self.emit(f"cmp.gt {self.size} P {self.read(counter)} 0:d")
        self.emit(f"(P) goto {self.size} {again}")
        self.place(end)

    def leave(self, item: object, loops: list[tuple[str, str]]) -> None:
        assert isinstance(item, Leave)
        self.compare(item.condition, f"Var{item.left}", f"{item.constant:#x}:ud")
        if item.how in ("break", "continue") and loops:
            self.emit(f"(P) goto {self.size} {loops[-1][item.how == 'break']}")
        elif item.how == "ret":
            on = self.label()
            self.emit(f"(!P) goto {self.size} {on}")
            self.store()
            self.emit("ret (M1, 1)")
            self.place(on)
        else:
            self.emit(f"(P) goto {self.size} End")

    def store(self) -> None:
        """All variables of the enabled lanes."""
        half = self.size.replace(", 32)", ", 16)")
        for number in range(VARIABLES):
            for size, row in [(half, self.row)] + ([("(M5, 16)", 1)] if self.size.endswith(", 32)") else []):
                where = f"At{2 * row}" if row else "At"
                self.emit(f"lsc_store.ugm {size} flat[{where}+{128 * number}]:a64 Var{number}.{64 * row}:d32")


SIZES = {"(M1, 16)": range(16), "(M1, 32)": range(32), "(M5, 16)": range(16, 32), "(M1, 8)": range(8)}


def lanes_of(program: list[object], size: str, threads: int, seed: int) -> tuple[str, str, np.ndarray]:
    """A kernel that runs a program, its declarations, and the variables' first values [threads, variables, lanes]."""
    compiler = Compiler(size)
    for number in range(VARIABLES):
        for half, row in (("(M1_NM, 16)", 0), ("(M5_NM, 16)", 1)):
            where = f"At{2 * row}" if row else "At"
            compiler.emit(f"lsc_load.ugm {half} Var{number}.{64 * row}:d32 flat[{where}+{128 * number}]:a64")
    compiler.compile(program, [])
    compiler.place("End")
    compiler.store()
    compiler.emit("ret (M1, 1)")
    addresses = LANES + (
        "    mul (M1_NM, 1) Thread(0,0)<1> Thread(0,0)<0;1,0> 512:ud\n"
        "    shl (M1_NM, 32) Lane(0,0)<1> Lane(0,0)<8;8,1> 2:ud\n"
        "    add (M1_NM, 32) Lane(0,0)<1> Lane(0,0)<8;8,1> Thread(0,0)<0;1,0>\n"
        "    add (M1_NM, 16) At(0,0)<1> Lane(0,0)<8;8,1> Out(0,0)<0;1,0>\n"
        "    add (M1_NM, 16) At2(0,0)<1> Lane(1,0)<8;8,1> Out(0,0)<0;1,0>\n"
    )
    declarations = [".decl At2 v_type=G type=uq num_elts=16 align=GRF"]
    names = [f"Var{n}" for n in range(VARIABLES)] + [f"C{n}" for n in range(compiler.counters)]
    declarations += [f".decl {n} v_type=G type={'ud' if n[0] == 'V' else 'd'} num_elts=32 align=GRF" for n in names]
    rng = random.Random(seed)
    values = [
        [[rng.choice((0, 1, 2, 3, rng.getrandbits(32))) for _ in range(32)] for _ in range(VARIABLES)]
        for _ in range(threads)
    ]
    return "".join([addresses, *compiler.lines]), "\n".join(declarations), np.array(values, np.uint32)
