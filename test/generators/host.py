"""Random kernels of MLIR's own dialects, which MLIR lowers to LLVM as well: arith, math, scf, vector and memref.

`Program.hosted` runs MLIR's lowering on the host, so these programs check our reading of upstream's ops, which the
engines and the reference evaluator have in common. Where upstream's definition leaves the result open, or LLVM gives
one of several, the programs do not depend on it:

- The bits of NaNs: NaNs compare equal, and become integers (`bitcast`) only in one form (`Kernel.one_nan`).
- `maxnumf`, `minnumf` and float reductions with them: LLVM does not order -0 and +0, so conversions alone have them.
- Sums and products of floats in vectors (`reduction`, `contract`, `outerproduct`): LLVM chooses the order and the fusion.
- Functions with roundings of their own: only `sqrt`, the roundings to integers, `fma` and `remf` are exact by definition.
- `fma` of f16, which the host rounds twice, through f32.
- Poison and undefined behaviour: shift amounts are below the width, divisors are not 0, and not -1 for signed
  division; floats are clamped before they become integers; flags (`nsw`, `inbounds`) are not written.
- Conversions of integers and f64 to f16, which the host rounds twice, through f32, or has no function for.
- `isinf` and `isnormal`, which MLIR does not lower to LLVM.
- bf16, whose subnormal numbers a host may flush even where LLVM moves them (AVX512-BF16), and f8E5M2, f8E4M3FN, tf32,
  unsigned elements and those of less than a byte, for which the host has no types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from xegpu_py.ir.builtin import bit_width, is_float, vector_text

from . import elementwise, ops, vectors
from .body import Value, filled, twin
from .ops import NARROW, NUMBERS, SIGNLESS, Op
from .program import Program
from .xegpu_control import Control

ELEMENTS = (*SIGNLESS, "f32", "f16", "f64")
ROUNDED = (vectors.reduction, vectors.multi_reduction, vectors.contract, vectors.outer_product)
"""Ops of vector whose floats have roundings in an order that is not defined."""


@dataclass(frozen=True)
class Rows:
    """A memref in which each thread has one row, so that threads do not race.

    Attributes:
        columns: the elements of a row.
        whole: whether it has the rows of all threads; otherwise it is the row of one.
        unit: whether the elements of a row are contiguous by the type, as `vector.load` requires.
    """

    name: str
    type: str
    element: str
    columns: int
    whole: bool = True
    unit: bool = True


class Kernel(Control):
    """A kernel in which each thread, or each work item, computes with its own rows of memory."""

    elements: tuple[str, ...] = ELEMENTS
    wraps = False

    def __init__(self, r: Random, target: str, grid: int, block: int, items: bool) -> None:
        super().__init__(r, target, grid, block)
        self.items = items
        self.rows: list[Rows] = []
        self.keep(Value(self.tid, (), "index"))
        for element in r.sample([e for e in self.elements if e != "i1"], r.randint(1, 3)):
            columns = filled(r.choice([1, 5, 8, 17, 32]), element)
            dims = [str(n) if r.random() < 0.5 else "?" for n in (self.threads, columns)]
            kind = f"memref<{'x'.join(dims)}x{element}>"
            name = self.argument(kind, self.data(element, (self.threads, columns)))
            self.rows.append(Rows(name, kind, element, columns))

    # Values

    def one_nan(self, x: Value) -> Value:
        """The value with all NaNs replaced by a number."""
        nan = self.op(f"arith.cmpf uno, {x.name}, {x.name} : {x.type}", x.shape, "i1")
        number = self.splat(7, x.shape, x.element)
        return self.op(f"arith.select {nan.name}, {number.name}, {x.name} : {nan.type}, {x.type}", x.shape, x.element)

    def allows(self, op: Op, x: Value) -> bool:
        """Ops with one result; MLIR lowers some of those on integers in one dimension only."""
        one = len(x.shape) < 2 or is_float(x.element) or op.family in ("arithmetic", *ops.TRUTH)
        return super().allows(op, x) and x.element in op.hosted and one

    def targets(self, element: str) -> list[str]:
        """The elements to which the host converts numbers with one rounding."""
        found = [e for e in (*ELEMENTS, "index") if e != element and ops.conversions(element, e)]
        return [e for e in found if element == "f32" or e != "f16"]

    def bitcast(self, x: Value) -> Value:
        """The bits of floats as integers, or of integers in another width."""
        if is_float(x.element):
            x = self.one_nan(x)
            return self.op(f"arith.bitcast {x.name} : {x.type} to {x.typed(twin(x.element))}", x.shape, twin(x.element))
        bits = (x.shape[-1] if x.shape else 1) * bit_width(x.element)
        element = self.r.choice([e for e in ELEMENTS if bits % bit_width(e) == 0])
        if element == x.element or (is_float(element) and bit_width(element) != bit_width(x.element)):
            return x
        if not x.shape:
            if bit_width(element) != bit_width(x.element):
                return x
            return self.op(f"arith.bitcast {x.name} : {x.type} to {element}", (), element)
        shape = (*x.shape[:-1], bits // bit_width(element))
        return self.op(f"vector.bitcast {x.name} : {x.type} to {vector_text(shape, element)}", shape, element)

    def compute(self, x: Value) -> Value:
        """Any op that keeps the shape."""
        if x.element in NUMBERS and self.r.random() < 0.05:
            return self.keep(elementwise.mask(self, x.shape))
        return elementwise.step(self, x)

    def reshaped(self, x: Value) -> Value:
        """Any op of vector; of floats only those that move elements."""
        options = [f for f in vectors.options(self, x) if f is not vectors.bitcast]
        if is_float(x.element):
            options = [f for f in options if f not in ROUNDED]
        return self.keep(self.r.choice(options)(self, x))

    # Memory

    def column(self, rows: Rows, count: int = 1) -> str:
        """A column after which a row has so many elements; it may depend on a value."""
        most = rows.columns - count
        x = self.pick(lambda v: not v.shape and v.element == "index")
        if x is None or self.r.random() < 0.5:
            return self.dynamic(self.r.randint(0, most))
        return self.op(f"arith.remui {x.name}, {self.index(most + 1)} : index", (), "index").name

    def view(self) -> None:
        """Some columns of rows as further rows, with static or dynamic bounds; the type may be without them."""
        fits = [rows for rows in self.rows if rows.whole and rows.element not in NARROW]
        if not fits:
            return
        rows = self.r.choice(fits)
        # Views are those of a subgroup.
        first, alone = self.r.randrange(rows.columns), not self.items and self.r.random() < 0.6
        step = self.r.choice([1, 1, 2])
        columns = self.r.randint(1, (rows.columns - first + step - 1) // step)
        places = [self.place(n) for n in (first, columns, step)]
        kind = f"memref<?x?x{rows.element}, strided<[?, ?], offset: ?>>"
        # The type of a view repeats its static bounds and those of its source, so the source's become dynamic.
        source = self.op(f"memref.cast {rows.name} : {rows.type} to {kind}", (), "memref").name
        row, sizes = ("0", [str(self.threads), places[1]]) if not alone else (self.tid, ["1", places[1]])
        dims = [n if not n.startswith("%") else "?" for n in sizes][alone:]
        made = f"memref<{'x'.join(dims)}x{rows.element}, strided<[{', '.join('?' * len(dims))}], offset: ?>>"
        found = self.op(
            f"memref.subview {source}[{row}, {places[0]}] [{', '.join(sizes)}] [1, {places[2]}] : {kind} to {made}",
            (),
            "memref",
        ).name
        if self.r.random() < 0.3:
            self.keep(self.op(f"memref.dim {found}, {self.index(len(dims) - 1)} : {made}", (), "index"))
        self.rows.append(Rows(found, made, rows.element, columns, whole=not alone, unit=False))

    def at(self, rows: Rows, count: int = 1) -> str:
        """Rows and the place of so many elements in this thread's row."""
        column = self.column(rows, count)
        return f"{rows.name}[{self.tid}, {column}]" if rows.whole else f"{rows.name}[{column}]"

    def line_of(self, rows: Rows) -> int:
        """How many elements a vector of a row has."""
        return self.r.choice([n for n in (1, 2, 3, 4, 8, 16, 32) if n <= rows.columns])

    def load(self) -> Value:
        """One element of a row, or several."""
        rows = self.r.choice(self.rows)
        if not rows.unit or self.r.random() < 0.5:
            return self.op(f"memref.load {self.at(rows)} : {rows.type}", (), rows.element)
        count = self.line_of(rows)
        at, kind = self.at(rows, count), vector_text((count,), rows.element)
        if self.r.random() < 0.7 or rows.element in NARROW:
            return self.op(f"vector.load {at} : {rows.type}, {kind}", (count,), rows.element)
        mask, other = elementwise.mask(self, (count,)), self.of_shape((count,), rows.element)
        types = f"{rows.type}, {mask.type}, {kind} into {kind}"
        return self.op(f"vector.maskedload {at}, {mask.name}, {other.name} : {types}", (count,), rows.element)

    def save(self) -> None:
        """Change some elements of a row."""
        rows = self.r.choice(self.rows)
        if rows.unit and self.r.random() < 0.5:
            count = self.line_of(rows)
            x, at = self.of_shape((count,), rows.element), self.at(rows, count)
            if self.r.random() < 0.7 or rows.element in NARROW:
                self.line(f"vector.store {x.name}, {at} : {rows.type}, {x.type}")
            else:
                mask = elementwise.mask(self, (count,))
                self.line(f"vector.maskedstore {at}, {mask.name}, {x.name} : {rows.type}, {mask.type}, {x.type}")
            return
        one = self.pick(lambda v: not v.shape and v.element == rows.element)
        x = one or elementwise.constant(self, (), rows.element)
        self.line(f"memref.store {x.name}, {self.at(rows)} : {rows.type}")

    def store(self, x: Value) -> None:
        """Store a value as a row of an array of its own."""
        if x.element == "i1":
            x = self.op(f"arith.extui {x.name} : {x.type} to {x.typed('i8')}", x.shape, "i8")
        if x.element == "index":
            x = self.op(f"arith.index_cast {x.name} : {x.type} to {x.typed('i64')}", x.shape, "i64")
        if x.element in NARROW:
            x = self.op(f"arith.extsi {x.name} : {x.type} to {x.typed('i8')}", x.shape, "i8")
        kind = f"memref<?x{x.size}x{x.element}>"
        name = self.argument(kind, f"zeros:{x.element}:{self.threads}x{x.size}")
        if not x.shape:
            self.line(f"memref.store {x.name}, {name}[{self.tid}, {self.index(0)}] : {kind}")
            return
        flat = vector_text((x.size,), x.element)
        if len(x.shape) > 1:
            x = self.op(f"vector.shape_cast {x.name} : {x.type} to {flat}", (x.size,), x.element)
        self.line(f"vector.store {x.name}, {name}[{self.tid}, {self.index(0)}] : {kind}, {flat}")

    # Control flow

    @contextmanager
    def region(self) -> Iterator[None]:
        rows = list(self.rows)
        with super().region():
            yield
        self.rows = rows

    def walking(self) -> None:
        """Loops carry no descriptors."""

    def carried(self) -> list[Value]:
        fits = self.values
        if self.r.random() < 0.5:
            # Values of one type may change places in a loop.
            kind = self.r.choice(fits).type
            fits = [v for v in fits if v.type == kind]
        found = self.r.sample(fits, min(len(fits), self.r.randint(1, 4)))
        return [Value(v.name, v.shape, v.element) for v in found]

    def like(self, x: Value) -> Value:
        if x.element == "i1" and not self.pick(lambda v: v.type == x.type):
            return elementwise.mask(self, x.shape)
        if x.element == "index" and not self.pick(lambda v: v.type == x.type):
            return self.splat(self.r.randint(-4, 99), x.shape, "index")
        return super().like(x)

    def exchange(self) -> None:
        """A loop whose values of one type change places, or come from outside."""
        kind = self.r.choice(["i1", "i1", *(v.type for v in self.values)])
        found = [v for v in self.values if v.type == kind]
        if kind == "i1":
            numbers = self.r.sample(range(min(self.threads, 4)), min(self.threads, 3))
            ids = [f"arith.cmpi eq, {self.tid}, {self.index(n)} : index" for n in numbers]
            found = [*(self.op(text, (), "i1") for text in ids), self.uniform()]
        count = self.r.randint(2, 4)
        starts = [self.r.choice(found) for _ in range(count)]
        names, result = [self.name() for _ in starts], self.name()
        trips = self.op(f"arith.remui {self.tid}, {self.index(4)} : index", (), "index").name
        bounds = f"{self.index(0)} to {trips if self.r.random() < 0.5 else self.dynamic(self.r.randint(1, 3))} step {self.index(1)}"
        carried = ", ".join(f"{n} = {v.name}" for n, v in zip(names, starts))
        types = ", ".join([kind] * count)
        self.line(f"{result}:{count} = scf.for {self.name()} = {bounds} iter_args({carried}) -> ({types}) {{")
        with self.region():
            self.statements(self.r.randint(0, 1), 0)
            yielded = [self.r.choice([*names, *names, self.r.choice(found).name]) for _ in names]
            self.line(f"scf.yield {', '.join(yielded)} : {types}")
        self.line("}")
        for n in range(count):
            self.keep(Value(f"{result}#{n}", starts[0].shape, starts[0].element))

    def statement(self, depth: int) -> None:
        numbers = [v for v in self.values if v.element != "i1"]
        shaped = [v for v in numbers if v.element != "index"]
        x = self.r.choice(numbers[-4:]) if self.r.random() < 0.7 else self.r.choice(numbers)
        options: dict[str, tuple[int, Callable[[], object]]] = {
            "compute": (10, lambda: self.compute(x)),
            "reshape": (4 if shaped else 0, lambda: self.reshaped(self.r.choice(shaped))),
            "load": (3, lambda: self.keep(self.load())),
            "save": (3, self.save),
            "view": (1, self.view),
            "branch": (2 if depth else 0, lambda: self.branch(depth)),
            "counted": (3 if depth else 0, lambda: self.counted(depth)),
            "turning": (1 if depth else 0, lambda: self.turning(depth)),
            "exchange": (2 if depth else 0, self.exchange),
            "switch": (1 if depth else 0, lambda: self.switch(depth)),
        }
        (how,) = self.r.choices(list(options), weights=[weight for weight, _ in options.values()])
        options[how][1]()


def program(r: Random) -> Program:
    """A random kernel of threads, or of work items."""
    target = r.choice(["pvcxt", "pvc", "any", "bmg", "dg2"])
    lanes = r.choice([0, 0, 8, 16, 32])
    grid, block = r.choice([1, 2]), r.choice([1, 5, lanes, 2 * lanes] if lanes else [1, 2])
    b = Kernel(r, target, grid, block, bool(lanes))
    for _ in range(r.randint(1, 3)):
        b.keep(b.load())
    b.statements(r.choice([4, 8, 16]), 3)
    for x in b.values[-6:]:
        b.store(x)
    attributes = f"xegpu.subgroup_size = {lanes} : i32" if lanes else ""
    return Program(
        b.text(attributes=attributes),
        b.words(),
        b.grid_size,
        b.block_size,
        target,
        r.choice([None, None, 256]),
        host=True,
    )
