"""Random kernels of work items in workgroups of any shape, and what numpy says that they compute.

Other random programs are compared with the reference evaluator. Here each op is a function of numpy arrays with an element
for each work item of a workgroup, written from docs/simt.md and MLIR's documents, and a mask says which are active.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Values = dict[str, Any]
Step = Callable[[Values, Array], None]
"""What an op does with the values by name, for the work items that a mask has."""

TYPES = {"i32": np.int32, "i64": np.int64, "i8": np.int8, "f32": np.float32, "f16": np.float16}
UNSIGNED = {"i32": np.uint32, "i64": np.uint64, "i8": np.uint8}
BLOCKS = [(5, 3, 2), (7,), (33,), (17, 2), (1,), (16,), (3, 3, 3), (31,), (1, 1, 6), (2, 8), (40,), (13, 4, 1)]
GRIDS = [(1,), (3,), (2, 2), (1, 2, 2)]

LENGTH, PLACES, BINS = 61, 4, 13
"""Elements of an array that is loaded, that a work item stores, and that atomics update."""

LOADED = {"i32": "%A", "f32": "%B", "i8": "%C", "f16": "%D"}
STORED = {"i32": "%OI", "f32": "%OF"}
UPDATED = {"addi": ("%T0", np.add), "maxs": ("%T1", np.maximum), "ori": ("%T2", np.bitwise_or)}
"""An array of its own for each kind of atomic, so that their order does not matter."""

ARRAYS = {
    **{n: t for t, n in LOADED.items()},
    **{n: t for t, n in STORED.items()},
    "%T0": "i32",
    "%T1": "i32",
    "%T2": "i32",
}

UNIFORM = {"add": np.add, "maxsi": np.maximum, "xor": np.bitwise_xor, "and": np.bitwise_and}
"""Reductions whose order does not matter."""


class WorkItems:
    """A kernel, or a function of it, under construction."""

    def __init__(self, r: Random, items: int, lanes: int, functions: list[Function]) -> None:
        self.r, self.items, self.lanes, self.functions = r, items, lanes, functions
        self.lines: list[str] = []
        self.steps: list[Step] = []
        self.known: dict[str, list[str]] = {kind: [] for kind in TYPES}
        self.count = 0

    def op(self, text: str, kind: str, compute: Callable[[Values], Array], keep: bool = True) -> str:
        """An op with one result."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{name} = {text}")
        self.steps.append(lambda values, mask: values.update({name: compute(values)}))
        if keep and kind in self.known:
            self.known[kind].append(name)
        return name

    def constant(self, value: float, kind: str) -> str:
        dtype = TYPES.get(kind, np.int64)
        text = repr(float(value)) if kind[0] == "f" else str(int(value))
        return self.op(f"arith.constant {text} : {kind}", kind, lambda _: np.full(self.items, value, dtype), False)

    def one(self, kind: str) -> str:
        """A value of a type."""
        if not self.known[kind] or self.r.random() < 0.15:
            return self.constant(self.r.choice([0.0, 1.0, -2.5, 0.1] if kind[0] == "f" else [0, 1, -1, 3, 100]), kind)
        return self.r.choice(self.known[kind][-12:])

    def index(self, below: int) -> str:
        """An index that differs between work items."""
        x, n = self.one("i32"), self.constant(below, "i32")
        rest = self.op(f"arith.remui {x}, {n} : i32", "", lambda v: (v[x].view(np.uint32) % below).astype(np.int32))
        return self.op(f"arith.index_cast {rest} : i32 to index", "", lambda v: v[rest].astype(np.int64))

    def integers(self) -> None:
        kind = self.r.choice(["i32", "i32", "i64", "i8"])
        dtype, unsigned, a, b = TYPES[kind], UNSIGNED[kind], self.one(kind), self.one(kind)
        ops: dict[str, Callable[[Array, Array], Array]] = {
            "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "xori": np.bitwise_xor,
            "minsi": np.minimum, "maxui": lambda x, y: np.maximum(x.view(unsigned), y.view(unsigned)).view(dtype),
            "shrsi": np.right_shift, "shli": np.left_shift, "remsi": np.fmod,
            "divui": lambda x, y: (x.view(unsigned) // y.view(unsigned)).view(dtype),
        }  # fmt: skip
        name = self.r.choice(list(ops))
        if name in ("shrsi", "shli", "remsi", "divui"):
            # Counts within the width, divisors that are not zero.
            for op, number in (("andi", 7), ("ori", 3)):
                limit, before = self.constant(number, kind), b
                compute = ops["andi"] if op == "andi" else np.bitwise_or
                b = self.op(
                    f"arith.{op} {before}, {limit} : {kind}", kind,
                    lambda v, before=before, limit=limit, compute=compute: compute(v[before], v[limit]), False,
                )  # fmt: skip
        self.op(f"arith.{name} {a}, {b} : {kind}", kind, lambda v: ops[name](v[a], v[b]).astype(dtype))

    def floats(self) -> None:
        kind = self.r.choice(["f32", "f32", "f16"])
        a, b = self.one(kind), self.one(kind)
        ops = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply} | (
            {"divf": np.divide} if kind == "f32" else {}
        )
        name = self.r.choice(list(ops))
        self.op(f"arith.{name} {a}, {b} : {kind}", kind, lambda v: ops[name](v[a], v[b]))

    def converted(self) -> None:
        name, source, kind = self.r.choice([
            ("extsi", "i32", "i64"), ("trunci", "i64", "i32"), ("trunci", "i32", "i8"), ("extsi", "i8", "i32"),
            ("sitofp", "i32", "f32"), ("truncf", "f32", "f16"), ("extf", "f16", "f32"), ("sitofp", "i8", "f16"),
        ])  # fmt: skip
        x = self.one(source)
        self.op(f"arith.{name} {x} : {source} to {kind}", kind, lambda v: v[x].astype(TYPES[kind]))

    def load(self) -> None:
        kind = self.r.choice(list(LOADED))
        array, at = LOADED[kind], self.index(LENGTH)
        self.op(f"memref.load {array}[{at}] : memref<?x{kind}>", kind, lambda v: v[array][v[at]])

    def store(self) -> None:
        kind = self.r.choice(list(STORED))
        x, array, place, places = self.one(kind), STORED[kind], self.r.randrange(PLACES), self.constant(PLACES, "index")
        start = self.op(f"arith.muli %gid, {places} : index", "", lambda v: v["%gid"] * PLACES)
        offset = self.constant(place, "index")
        at = self.op(f"arith.addi {start}, {offset} : index", "", lambda v: v[start] + place)
        self.lines.append(f"memref.store {x}, {array}[{at}] : memref<?x{kind}>")
        self.steps.append(lambda v, mask: v[array].__setitem__(v[at][mask], v[x][mask]))

    def atomic(self) -> None:
        name = self.r.choice(list(UPDATED))
        x, at, (array, update) = self.one("i32"), self.index(BINS), UPDATED[name]
        self.count += 1
        self.lines.append(f"%v{self.count} = memref.atomic_rmw {name} {x}, {array}[{at}] : (i32, memref<?xi32>) -> i32")
        self.steps.append(lambda v, mask: update.at(v[array], v[at][mask], v[x][mask]))

    def region(self, depth: int, kind: str) -> tuple[list[Step], str]:
        """Ops of a region, and the value that they yield."""
        outer, self.steps = self.steps, []
        known = {k: list(names) for k, names in self.known.items()}
        self.ops(self.r.randrange(1, 5), depth + 1)
        result = self.one(kind)
        self.lines.append(f"scf.yield {result} : {kind}")
        steps, self.steps, self.known = self.steps, outer, known
        return steps, result

    def branch(self, depth: int) -> None:
        a, b, kind = self.one("i32"), self.one("i32"), self.r.choice(["i32", "f32"])
        condition = self.op(f"arith.cmpi slt, {a}, {b} : i32", "", lambda v: v[a] < v[b])
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{name} = scf.if {condition} -> ({kind}) {{")
        first, of_first = self.region(depth, kind)
        self.lines.append("} else {")
        second, of_second = self.region(depth, kind)
        self.lines.append("}")

        def run(values: Values, mask: Array) -> None:
            taken = values[condition]
            run_all(first, values, mask & taken)
            found = values[of_first]
            run_all(second, values, mask & ~taken)
            values[name] = np.where(taken, found, values[of_second])

        self.steps.append(run)
        self.known[kind].append(name)

    def loop(self, depth: int) -> None:
        end, kind = self.index(6), self.r.choice(["i32", "f32"])
        start, step, initial = self.constant(0, "index"), self.constant(self.r.choice([1, 2]), "index"), self.one(kind)
        self.count += 1
        name, at, carried = (f"{c}{self.count}" for c in ("%v", "%i", "%c"))
        self.lines.append(
            f"{name} = scf.for {at} = {start} to {end} step {step} iter_args({carried} = {initial}) -> ({kind}) {{"
        )
        before = list(self.known[kind])
        self.known[kind] += [carried, carried]
        steps, result = self.region(depth, kind)
        self.known[kind] = [*before, name]
        self.lines.append("}")

        def run(values: Values, mask: Array) -> None:
            current, number = values[initial], values[start]
            while (active := mask & (number < values[end])).any():
                values |= {at: number, carried: current}
                run_all(steps, values, active)
                current = np.where(active, values[result], current)
                number = np.where(active, number + values[step], number)
            values[name] = current

        self.steps.append(run)

    def call(self) -> None:
        function = self.r.choice(self.functions)
        given, kinds = [self.one(k) for k in ("i32", "f32")], ", ".join(f"memref<?x{t}>" for t in ARRAYS.values())
        self.count += 1
        names = [f"%v{self.count}_{n}" for n in range(2)]
        self.lines.append(
            f"{', '.join(names)} = func.call @{function.name}({', '.join([*ARRAYS, '%gid', *given])})"
            f" : ({kinds}, index, i32, f32) -> (i32, f32)"
        )

        def run(values: Values, mask: Array) -> None:
            inner = {n: values[n] for n in (*ARRAYS, "%gid")} | dict(zip(("%x", "%y"), (values[g] for g in given)))
            run_all(function.body.steps, inner, mask)
            values.update({name: inner[result] for name, result in zip(names, function.results)})

        self.steps.append(run)
        for kind, name in zip(("i32", "f32"), names):
            self.known[kind].append(name)

    def exchanged(self) -> None:
        """A value of another work item, through shared local memory."""
        kind, n = self.r.choice(["i32", "f32"]), self.items
        x, factor, offset = self.one(kind), self.r.randrange(1, 20), self.r.randrange(50)
        self.count += 1
        buffer, memory = f"%m{self.count}", f"memref<{n}x{kind}, 3>"
        self.lines += [f"{buffer} = memref.alloc() : {memory}", f"memref.store {x}, {buffer}[%item] : {memory}"]
        self.lines.append("gpu.barrier")
        at = "%item"
        for op, number in (("muli", factor), ("addi", offset), ("remui", n)):
            other, before = self.constant(number, "index"), at
            compute = {"muli": np.multiply, "addi": np.add, "remui": np.remainder}[op]
            at = self.op(
                f"arith.{op} {before}, {other} : index", "",
                lambda v, before=before, other=other, compute=compute: compute(v[before], v[other]),
            )  # fmt: skip
        self.op(f"memref.load {buffer}[{at}] : {memory}", kind, lambda v, at=at: v[x][v[at]])
        self.lines.append("gpu.barrier")

    def reduced(self) -> None:
        x, name, n = self.one("i32"), self.r.choice(list(UNIFORM)), self.items
        of = UNIFORM[name].reduce
        if self.r.random() < 0.5:
            self.op(f"gpu.all_reduce {name} {x} {{}} : (i32) -> i32", "i32", lambda v: np.full(n, of(v[x]), np.int32))
            return
        starts = range(0, n, self.lanes)

        def each(values: Values) -> Array:
            parts = [values[x][s : s + self.lanes] for s in starts]
            return np.concatenate([np.full(len(p), of(p), np.int32) for p in parts])

        self.op(f"gpu.subgroup_reduce {name} {x} : (i32) -> i32", "i32", each)

    def ops(self, number: int, depth: int = 0) -> None:
        """Random ops; those of all work items only outside of branches and loops."""
        kinds: list[Callable[[], None]] = [
            self.integers,
            self.floats,
            self.converted,
            self.load,
            self.store,
            self.atomic,
        ]
        kinds += [self.call] * bool(self.functions)
        kinds += [lambda: self.branch(depth), lambda: self.loop(depth)] * (depth < 2)
        kinds += [self.exchanged, self.reduced] * (depth == 0)
        for _ in range(number):
            self.r.choice(kinds)()


class Function:
    """A function with two results."""

    def __init__(self, r: Random, name: str, items: int, lanes: int) -> None:
        self.name, self.body = name, WorkItems(r, items, lanes, [])
        self.body.known["i32"].append("%x")
        self.body.known["f32"].append("%y")
        self.body.ops(r.randrange(2, 8), 1)
        self.results = [self.body.one("i32"), self.body.one("f32")]

    @property
    def text(self) -> str:
        """Its MLIR."""
        lines, parameters = "\n    ".join(self.body.lines), ", ".join(f"{n}: memref<?x{t}>" for n, t in ARRAYS.items())
        return (
            f"func.func private @{self.name}({parameters}, %gid: index, %x: i32, %y: f32) -> (i32, f32) {{\n    {lines}\n"
            f"    return {', '.join(self.results)} : i32, f32\n  }}"
        )


def run_all(steps: list[Step], values: Values, mask: Array) -> None:
    """Run ops in order."""
    for step in steps:
        step(values, mask)


IDS = """\
%t0 = gpu.thread_id x
%t1 = gpu.thread_id y
%t2 = gpu.thread_id z
%b0 = gpu.block_id x
%b1 = gpu.block_id y
%b2 = gpu.block_id z
%d0 = gpu.block_dim x
%d1 = gpu.block_dim y
%d2 = gpu.block_dim z
%g0 = gpu.grid_dim x
%g1 = gpu.grid_dim y
%p0 = arith.muli %t2, %d1 : index
%p1 = arith.addi %p0, %t1 : index
%p2 = arith.muli %p1, %d0 : index
%item = arith.addi %p2, %t0 : index
%q0 = arith.muli %b2, %g1 : index
%q1 = arith.addi %q0, %b1 : index
%q2 = arith.muli %q1, %g0 : index
%group = arith.addi %q2, %b0 : index
%s0 = arith.muli %d0, %d1 : index
%s1 = arith.muli %s0, %d2 : index
%s2 = arith.muli %group, %s1 : index
%gid = arith.addi %s2, %item : index
%lane = gpu.lane_id
%subgroup = gpu.subgroup_id : index"""


class Program:
    """A kernel with its launch.

    Attributes:
        text: the module.
        grid, block: the launch.
        arrays: the arguments, by the names of the kernel's.
    """

    def __init__(self, seed: int) -> None:
        r = Random(seed)
        self.block, self.grid, self.lanes = r.choice(BLOCKS), r.choice(GRIDS), r.choice([8, 16, 32])
        self.items = math.prod(self.block)
        functions = [Function(r, f"f{n}", self.items, self.lanes) for n in range(r.randrange(3))]
        self.body = body = WorkItems(r, self.items, self.lanes, functions)
        for name in ("%t0", "%t1", "%t2", "%item", "%group", "%gid", "%lane", "%subgroup"):
            body.op(f"arith.index_cast {name} : index to i32", "i32", lambda v, name=name: v[name].astype(np.int32))
        body.ops(r.randrange(6, 20))
        for _ in range(4):
            body.store()
        known = f", known_block_size = array<i32: {', '.join(map(str, (*self.block, 1, 1)[:3]))}>"
        parameters = ", ".join(f"{n}: memref<?x{t}>" for n, t in ARRAYS.items())
        lines = "\n    ".join([*IDS.splitlines(), *body.lines])
        self.text = "\n  ".join([
            "gpu.module @kernels {", *(f.text for f in functions),
            f"gpu.func @k({parameters}) kernel attributes {{xegpu.subgroup_size = {self.lanes} : i32"
            f"{known * (r.random() < 0.4)}}} {{\n    {lines}\n    gpu.return\n  }}\n}}",
        ])  # fmt: skip
        rng, stored = np.random.default_rng(seed), math.prod(self.grid) * self.items * PLACES
        self.arrays = {
            name: rng.integers(-100, 100, LENGTH).astype(TYPES[kind])
            if name in LOADED.values()
            else np.zeros(stored if name in STORED.values() else BINS, TYPES[kind])
            for name, kind in ARRAYS.items()
        }

    def results(self) -> dict[str, Array]:
        """The arrays after the launch."""
        found, items = {n: a.copy() for n, a in self.arrays.items()}, np.arange(self.items)
        x, y, _ = (*self.block, 1, 1)[:3]
        for group in range(math.prod(self.grid)):
            ids = {"%t0": items % x, "%t1": items // x % y, "%t2": items // x // y, "%item": items}
            ids |= {"%group": np.full(self.items, group), "%gid": group * self.items + items}
            ids |= {"%lane": items % self.lanes, "%subgroup": items // self.lanes}
            with np.errstate(all="ignore"):
                run_all(self.body.steps, {**found, **ids}, np.ones(self.items, bool))
        return found
