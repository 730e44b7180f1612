"""Random kernels with many patterns that optimisers look for, and many obstacles to these optimisations.

Copies, constants, sums and repeated computations, on few variables that alias each other, in any regions, under masks
and predicates; memory accesses that must keep their order; jumps, loops, and divergent lanes. A kernel reads all its
variables from memory first, and writes all of them back in the end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from xegpu_py.numerics.formats import TYPES
from xegpu_py.target import TARGETS, Target
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import (
    Address,
    AddressOf,
    Destination,
    Flag,
    Guard,
    Immediate,
    Indirect,
    Predicate,
    Raw,
    Region,
    Variable,
)
from xegpu_py.visa.program import Input, Instruction, Program
from xegpu_py.visa.spec import DataShape
from xegpu_py.visa.verify import instruction_problem

from .programs import random_instruction

REGISTERS = 4
"""Registers of each variable that is no alias."""

SCRATCH = 1024
"""Bytes of memory that the kernels read and write as they run."""

_TYPES = ("d", "d", "ud", "uq", "f", "hf", "w")
_ALIASES = {"d": ("ud", "f", "w"), "ud": ("d",), "uq": ("q", "d"), "f": ("ud",), "hf": ("uw",), "w": ("uw", "ub")}
_ARITHMETIC = ("add", "add", "mul", "and", "or", "xor", "shl", "shr", "asr", "min", "max", "mad", "not", "rndd")
_CONDITIONS = ("eq", "ne", "lt", "ge")
_SMALL = (0, 0, 1, 1, 2, 4, 8, 16, 0x80, -1, 0x3F800000, 0x80000000, 0x7FC00001)


@dataclass
class Mixture:
    """A kernel as it is made.

    Attributes:
        lanes_part: whether control flow is by goto, else by jmp.
        partly: whether some variables are not read from memory first, so that their bytes may be read unwritten.
        indirect: whether registers are also named by address variables.
    """

    rng: random.Random
    target: Target = TARGETS["pvcxt"]
    lanes_part: bool = False
    partly: bool = False
    indirect: bool = False
    body: list[Instruction] = field(default_factory=list)
    hidden: list[Predicate] = field(default_factory=list)

    def __post_init__(self) -> None:
        grf = self.target.grf_bytes
        roots = [Variable(f"{t.upper()}{n}", t, REGISTERS * grf // TYPES[t].bytes, "GRF") for n, t in enumerate(_TYPES)]
        aliases = [
            Variable(f"{r.name}_{t}", t, r.bytes // TYPES[t].bytes, "GRF", (r, 0))
            for r in roots
            for t in _ALIASES[r.type]
        ]
        inner = [Variable("Inner", "d", 2 * grf // 4, "dword", (roots[0], grf + 32))]
        self.roots, self.written = roots, [*roots, *roots, *aliases, *inner]
        self.named = list(self.written)
        self.variables: list[Variable] = [*roots, *aliases, *inner]
        self.predicates = [Predicate(f"P{n}", count) for n, count in enumerate((16, 16, 32, 1))]
        self.addresses = [Variable(n, "uq", 1, "qword") for n in ("In", "Out", "Scratch")]
        self.labels = self.counters = 0

    def program(self, statements: int, depth: int = 2) -> Program:
        """The kernel. It takes the variables' first contents, where they go in the end, and scratch memory."""
        for n, root in enumerate(self.roots):
            if not self.partly or self.rng.random() < 0.6:
                self.message("lsc_load", "In", n * root.bytes, root)
        for predicate in self.predicates:
            self.emit("setp", predicate.count, dst=Flag(predicate), src0=self.truth(predicate.count))
        self.statements(statements, depth)
        for n, root in enumerate(self.roots):
            self.message("lsc_store", "Out", n * root.bytes, root)
        for n, predicate in enumerate(self.predicates):
            to = Variable(f"Bits{n}", "uw" if predicate.count <= 16 else "ud", 1, "GRF")
            self.variables.append(to)
            if predicate.count > 1:
                self.emit("mov", dst=Destination(to), src0=Flag(predicate))
                shape = DataShape("d16c32" if predicate.count <= 16 else "d32")
                at = Address(self.addresses[1], 0, len(self.roots) * self.roots[0].bytes + 4 * n)
                values = {"sfid": "ugm", "data": shape, "address_size": "a64", "caches": ""}
                self.emit("lsc_store", address=at, src0=Raw(to), **values)
        inputs = tuple(Input(v, 64 + 8 * n, 8) for n, v in enumerate(self.addresses))
        return Program(
            "mixture",
            (*self.variables, *self.addresses),
            (*self.predicates, *self.hidden),
            inputs,
            {"Target": "cm", "SimdSize": 16},
            (*self.body, Instruction("ret")),
        )

    def emit(
        self, name: str, exec_size: int = 1, mask: str = "M1_NM", guard: Guard | None = None, **values: Any
    ) -> None:
        """Add an instruction, if it is legal."""
        inst = Instruction(name, values, exec_size, mask, guard)
        if name in ("label", "jmp", "goto") or instruction_problem(inst, self.target) is None:
            self.body.append(inst)

    def message(self, name: str, memory: str, offset: int, root: Variable) -> None:
        """Load or store a whole variable."""
        address = Address(next(a for a in self.addresses if a.name == memory), 0, offset)
        shape = DataShape("d32", root.bytes // 4, True)
        operand = {"dst" if name == "lsc_load" else "src0": Raw(root)}
        self.emit(name, sfid="ugm", data=shape, address_size="a64", caches="", address=address, **operand)

    def statements(self, count: int, depth: int) -> None:
        """Some statements, with nested ones."""
        for _ in range(count):
            kind = self.rng.random()
            if depth and kind < 0.06:
                self.loop(depth - 1)
            elif depth and kind < 0.12:
                self.branch(depth - 1)
            elif kind < 0.2:
                self.access()
            elif kind < 0.23:
                self.emit("fence_sw")
            elif self.indirect and kind < 0.3:
                self.through_addresses()
            elif kind < 0.35:
                self.anything()
            elif kind < 0.5:
                self.fresh(self.rng.choice((1, 1, 16)))
            else:
                self.usual()

    def scope(self, count: int, depth: int) -> None:
        """Statements whose new variables are named by none but them."""
        named = list(self.named)
        self.statements(count, depth)
        self.named = named

    def branch(self, depth: int) -> None:
        """Statements that are jumped over, and perhaps others in their place."""
        other, end = self.label(), self.label()
        predicate = self.rng.choice(self.predicates[:3] if self.lanes_part else self.predicates)
        control = "" if self.lanes_part else self.rng.choice(("", "any", "all"))
        self.jump(other, Guard(predicate, self.rng.random() < 0.5, control))
        self.scope(self.rng.randint(1, 4), depth)
        if self.rng.random() < 0.5:
            self.jump(end)
            self.emit("label", label=other)
            self.scope(self.rng.randint(1, 4), depth)
            self.emit("label", label=end)
        else:
            self.emit("label", label=other)

    def loop(self, depth: int) -> None:
        """Statements that run two or three times."""
        counter = Variable(f"Counter{self.counters}", "d", 16, "GRF")
        done = Predicate(f"Again{self.counters}", 16)
        self.counters += 1
        self.variables.append(counter)
        self.hidden.append(done)
        size, mask = (16, "M1") if self.lanes_part and self.rng.random() < 0.7 else (1, "M1_NM")
        self.emit("mov", size, mask, dst=Destination(counter), src0=Immediate(0, "d"))
        again = self.label()
        self.emit("label", label=again)
        self.scope(self.rng.randint(2, 8), depth)
        here = Region(counter, 0, 0, 1, 1, 0) if size > 1 else Region(counter, 0, 0, 0, 1, 0)
        self.emit("add", size, mask, dst=Destination(counter), src0=here, src1=Immediate(1, "d"))
        most = Immediate(self.rng.randint(1, 3), "d")
        self.emit("cmp", size, mask, condition="lt", dst=Flag(done), src0=here, src1=most)
        if size > 1:
            self.emit("goto", 16, "M1", Guard(done), label=again)
        else:
            self.emit("jmp", 1, "M1", Guard(done), label=again)

    def fresh(self, exec_size: int) -> None:
        """A new variable, which is written here and nowhere else."""
        rng = self.rng
        type_name = rng.choice(("d", "d", "ud", "f", "uq"))
        var = Variable(f"New{len(self.variables)}", type_name, exec_size, "GRF")
        if rng.random() < 0.2 and type_name in ("d", "ud", "f"):
            shape = DataShape("d32", exec_size, True)
            values = {"sfid": "ugm", "data": shape, "address_size": "a64", "caches": ""}
            address = Address(self.addresses[2], 0, 4 * rng.randrange(64))
            inst = Instruction("lsc_load", {"dst": Raw(var), "address": address, **values}, 1, "M1_NM")
        else:
            name = rng.choice(("mov", "mov", "add", "mul", "mad", "max", "add"))
            count = {"mov": 1, "mad": 3}.get(name, 2)
            sources = {f"src{n}": self.source(type_name, exec_size) for n in range(count)}
            # The rest of a variable that is written in part may lie where another variable was before.
            size = exec_size // 2 if self.partly and exec_size > 1 and rng.random() < 0.3 else exec_size
            inst = Instruction(name, {"dst": Destination(var), **sources}, size, "M1_NM")
        if instruction_problem(inst, self.target) is None:
            self.body.append(inst)
            self.variables.append(var)
            self.named += [var] * 3

    def label(self) -> str:
        """A new label."""
        self.labels += 1
        return f"L{self.labels}"

    def jump(self, label: str, guard: Guard | None = None) -> None:
        """A forward jump."""
        if self.lanes_part and (guard or self.rng.random() < 0.5):
            self.emit("goto", 16, "M1", guard, label=label)
        else:
            self.emit("jmp", 1, "M1", guard, label=label)

    def through_addresses(self) -> None:
        """A move from, or to, registers of a variable at places that an address variable holds."""
        rng, number = self.rng, len(self.variables)
        var, other, type_name = rng.choice(self.roots), rng.choice(self.roots), rng.choice(("d", "ud", "f"))
        places = Variable(f"Places{number}", "ud", 16, "dword", kind="A")
        steps = Variable(f"Steps{number}", "uw", 16, "GRF")
        self.variables += [places, steps]
        # The last byte is below 128, the bytes of the smallest variable: 16 + 28 + 4 + 12, and 16 lanes.
        self.emit("mov", 16, dst=Destination(steps), src0=Immediate(rng.getrandbits(32) & 0x77777777, "uv"))
        self.emit("shl", 16, dst=Destination(steps), src0=Region(steps), src1=Immediate(2, "uw"))
        start = AddressOf(var, 4 * rng.randrange(5))
        self.emit("addr_add", 16, dst=Destination(places), src0=start, src1=Region(steps))
        if rng.random() < 0.3:
            self.emit("addr_add", 16, dst=Destination(places), src0=Region(places), src1=Immediate(4, "uw"))
        lanes, mask = rng.choice((1, 8, 16)), rng.choice(("M1", "M1_NM"))
        guard = Guard(self.predicates[0], rng.random() < 0.5) if rng.random() < 0.3 else None
        column, plus = rng.randrange(17 - lanes), 4 * rng.randrange(4)
        if rng.random() < 0.5:
            region = rng.choice(((None, 1, 0), (0, 1, 0), (1, 1, 0)))
            source = Indirect(places, column, plus, *region, type_name, bases=(var,))
            self.emit("mov", lanes, mask, guard, dst=self.destination(other, lanes), src0=source)
        else:
            source = self.source(type_name, lanes, modify=False)
            dst = Indirect(places, column, plus, 1, 1, 0, type_name, bases=(var,))
            self.emit("mov", lanes, mask, guard, dst=dst, src0=source)

    def access(self) -> None:
        """A load from, or a store to, the scratch memory."""
        shape = DataShape("d32", self.rng.choice((1, 16)), True)
        values = {"sfid": "ugm", "data": shape, "address_size": "a64", "caches": ""}
        offset = 4 * self.rng.randrange((SCRATCH - 4 * shape.vector) // 4)
        address = Address(self.addresses[2], 0, offset)
        if self.rng.random() < 0.5:
            # The address is computed, where the message could add to it.
            sum_ = Variable(f"Sum{len(self.variables)}", "uq", 1, "qword")
            self.variables.append(sum_)
            base = Region(self.addresses[2], 0, 0, 0, 1, 0)
            constant = Immediate(offset, self.rng.choice(("ud", "d", "uw")))
            self.emit("add", dst=Destination(sum_), src0=base, src1=constant)
            address = Address(sum_)
        raw = Raw(self.rng.choice(self.written), self.target.grf_bytes * self.rng.randrange(REGISTERS - 1))
        name = self.rng.choice(("lsc_load", "lsc_store"))
        guard = Guard(self.predicates[3]) if self.rng.random() < 0.2 else None
        mask = self.rng.choice(("M1", "M1_NM"))
        self.emit(name, 1, mask, guard, address=address, **{"dst" if name == "lsc_load" else "src0": raw}, **values)

    def usual(self) -> None:
        """Copies, constants, and arithmetic of few kinds."""
        rng = self.rng
        exec_size = rng.choice((1, 1, 4, 8, 16, 16))
        mask = rng.choice(("M1", "M1_NM", "M1_NM"))
        if exec_size == 16 and rng.random() < 0.05:
            mask = mask.replace("1", "5")
        first = 16 if mask[1] == "5" else 0
        fitting = [p for p in self.predicates if p.count >= first + exec_size]
        guard = None
        if rng.random() < 0.15:
            guard = Guard(rng.choice(fitting), rng.random() < 0.5, rng.choice(("", "", "any", "all")))
        kind = rng.random()
        var = rng.choice(self.written)
        dst = self.destination(var, exec_size)
        if kind < 0.35:
            same = rng.random() < 0.8
            self.emit(
                "mov",
                exec_size,
                mask,
                guard,
                dst=dst,
                src0=self.source(var.type if same else None, exec_size, modify=not same),
            )
        elif kind < 0.45:
            flag = rng.choice(fitting)
            source = self.source(None, exec_size, constant=False)
            other = self.source(source.var.type, exec_size)
            self.emit(
                "cmp", exec_size, mask, condition=rng.choice(_CONDITIONS), dst=Flag(flag), src0=source, src1=other
            )
        elif kind < 0.5:
            self.emit(
                "setp",
                exec_size,
                mask,
                dst=Flag(rng.choice(fitting)),
                src0=Immediate(rng.choice((0, 0xFFFFFFFF, 5)), "ud"),
            )
        elif kind < 0.55:
            flags = {f"src{n}": Flag(rng.choice(fitting)) for n in range(2)}
            self.emit(rng.choice(("and", "or", "xor")), exec_size, mask, dst=Flag(rng.choice(fitting)), **flags)
        elif kind < 0.65:
            chosen = Guard(rng.choice(fitting), rng.random() < 0.5)
            sources = {f"src{n}": self.source(var.type, exec_size) for n in range(2)}
            self.emit("sel", exec_size, mask, chosen, dst=dst, **sources)
        else:
            name = rng.choice(_ARITHMETIC)
            count = {"mad": 3, "not": 1, "rndd": 1}.get(name, 2)
            sources = {
                f"src{n}": self.source(var.type if rng.random() < 0.8 else None, exec_size, modify=rng.random() < 0.1)
                for n in range(count)
            }
            saturate = INSTRUCTIONS[name].saturates and rng.random() < 0.05
            inst = Instruction(name, {"dst": dst, **sources}, exec_size, mask, guard, saturate)
            again = inst.replaced(values={**inst.values, "dst": self.destination(var, exec_size)})
            # Some are computed once more, elsewhere.
            for each in (inst, again) if rng.random() < 0.3 else (inst,):
                if instruction_problem(each, self.target) is None:
                    self.body.append(each)

    def anything(self) -> None:
        """Any instruction that works on registers, on these variables."""
        name = self.rng.choice(("mov", "add", "mul", "mad", "sel", "cmp", "shr", "min", "xor", "div", "exp", "mulh"))
        inst = random_instruction(name, self.rng, self.target)
        values: dict[str, Any] = {}
        for slot, value in inst.values.items():
            if isinstance(value, (Region, Destination)):
                same = [v for v in self.variables if v.type == value.var.type and v.bytes >= self.roots[0].bytes]
                if not same:
                    return
                values[slot] = replace(value, var=self.rng.choice(same))
            else:
                values[slot] = Flag(self.predicates[2]) if isinstance(value, Flag) else value
        guard = inst.guard and replace(inst.guard, var=self.predicates[2])
        changed = inst.replaced(values=values, guard=guard)
        if instruction_problem(changed, self.target) is None:
            self.body.append(changed)

    def destination(self, var: Variable, exec_size: int) -> Destination:
        """Somewhere in a variable, mostly at the start of a register."""
        size = var.format.bytes
        stride = self.rng.choice((1, 1, 1, 1, 2)) if exec_size * size <= self.target.grf_bytes else 1
        rows = var.bytes // self.target.grf_bytes
        row = self.rng.randrange(max(rows - exec_size * size * stride // self.target.grf_bytes, 1))
        return Destination(var, row, self.rng.choice((0, 0, 0, 1, 4)), stride)

    def truth(self, lanes: int) -> Any:
        """The bits of a predicate: a number that the program loads, or a constant, often that of one lane."""
        if self.rng.random() < 0.6:
            return self.source("ud", 1, constant=False)
        return Immediate(self.rng.choice((1, 1 << self.rng.randrange(lanes), self.rng.getrandbits(32))), "ud")

    def source(self, type_name: str | None, exec_size: int, *, modify: bool = False, constant: bool = True) -> Any:
        """A region of a type, or a constant."""
        rng = self.rng
        name = type_name or rng.choice(self.named).type
        if constant and rng.random() < 0.3:
            if exec_size > 1 and rng.random() < 0.15:
                return Immediate(rng.getrandbits(32), rng.choice(("v", "uv")) if name != "f" else "vf")
            return Immediate(rng.choice(_SMALL) % (1 << TYPES[name].bits), name)
        var = rng.choice([v for v in self.named if v.type == name])
        size = var.format.bytes
        strides = rng.choice(
            [(1, 1, 0)] * 5 + [(0, 1, 0)] * 3 + [(2, 1, 0), (1, 4, 0), (0, 4, 1), (4, 4, 1), (8, 4, 2)]
        )
        modifier = rng.choice(("-", "abs", "-abs", "~")) if modify else ""
        row = rng.randrange(max(var.bytes // self.target.grf_bytes - 1, 1)) if exec_size * size <= 64 else 0
        return Region(var, row, rng.choice((0, 0, 0, 1, 4)), *strides, modifier)
