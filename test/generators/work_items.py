"""Random kernels of work items in workgroups of any shape, and what numpy says that they compute.

Other random programs are compared with the reference evaluator alone. Here each op is a function of numpy arrays with an
element for each work item of a workgroup, by the op table, docs/simt.md and MLIR's documents, and a mask says which are active.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from xegpu_py.runtime.host_arrays import parse_argument

from . import elementwise, ops
from .body import Value
from .computed import TYPES, Computed
from .ops import Array
from .program import Program

Values = dict[str, Any]
Step = Callable[[Values, Array], None]
"""What an op does with the values by name, for the work items that a mask has."""

ELEMENTS = ("i32", "i64", "i8", "f32", "f16")
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
    **{n: "i32" for n, _ in UPDATED.values()},
}
PARAMETERS = ", ".join(f"{n}: memref<?x{t}>" for n, t in ARRAYS.items())


class WorkItems(Computed):
    """A kernel, or a function of it, under construction."""

    elements = (*ELEMENTS, "i1")

    def __init__(self, r: Random, items: int, lanes: int, functions: list[Function]) -> None:
        super().__init__(r)
        self.items, self.lanes, self.functions = items, lanes, functions
        self.steps: list[Step] = []

    def computed(self, value: Value, function: Callable[..., Any], *operands: Value) -> Value:
        """A value that each launch computes from those of its operands."""
        names, dtype = [v.name for v in operands], TYPES[value.element]

        def step(values: Values, mask: Array) -> None:
            values[value.name] = np.broadcast_to(function(*(values[n] for n in names)), self.items).astype(dtype)

        self.steps.append(step)
        return value

    def made(self, text: str, element: str, function: Callable[..., Any], *operands: Value) -> Value:
        """An op that is not of the table."""
        return self.computed(self.op(text, (), element), function, *operands)

    def bitcast(self, x: Value) -> Value:
        """No bits of floats: NaNs of numpy have others."""
        return elementwise.number(self, x)

    def number_of(self, name: str, element: str = "index") -> Value:
        """A value that is known by its name."""
        return Value(name, (), element)

    def one(self, element: str) -> Value:
        """A value of an element, mostly a late one."""
        found = [v for v in self.values if v.element == element]
        return (
            self.r.choice(found[-12:]) if found and self.r.random() < 0.85 else elementwise.constant(self, (), element)
        )

    def index(self, below: int) -> Value:
        """An index that differs between work items."""
        rest = self.made(
            f"arith.remui {(x := self.one('i32')).name}, {self.splat(below, (), 'i32').name} : i32", "i32",
            lambda v: ops.unsigned(v) % below, x,
        )  # fmt: skip
        return self.made(f"arith.index_cast {rest.name} : i32 to index", "index", np.asarray, rest)

    def compute(self) -> None:
        """An op of the table."""
        elementwise.step(self, self.one(self.r.choice(["i32", "i32", "f32", *ELEMENTS])))

    def load(self) -> None:
        element = self.r.choice(list(LOADED))
        array, at = self.number_of(LOADED[element], element), self.index(LENGTH)
        text = f"memref.load {array.name}[{at.name}] : memref<?x{element}>"
        self.keep(self.made(text, element, lambda a, at: a[at], array, at))

    def store(self) -> None:
        """A store of any value to any of the work item's places."""
        self.store_at(self.r.randrange(PLACES), self.one(self.r.choice(list(STORED))))

    def store_at(self, place: int, x: Value) -> None:
        """A store to one of the work item's places of the value's element."""
        element, array = x.element, STORED[x.element]
        start = elementwise.binary(self, "muli", self.number_of("%gid"), self.splat(PLACES, (), "index"))
        at = elementwise.binary(self, "addi", start, self.splat(place, (), "index"))
        self.line(f"memref.store {x.name}, {array}[{at.name}] : memref<?x{element}>")
        self.steps.append(lambda v, mask: v[array].__setitem__(v[at.name][mask], v[x.name][mask]))

    def atomic(self) -> None:
        name = self.r.choice(list(UPDATED))
        x, at, (array, update) = self.one("i32"), self.index(BINS), UPDATED[name]
        self.op(f"memref.atomic_rmw {name} {x.name}, {array}[{at.name}] : (i32, memref<?xi32>) -> i32", (), "i32")
        self.steps.append(lambda v, mask: update.at(v[array], v[at.name][mask], v[x.name][mask]))

    def block(self, depth: int, element: str, end: str = "scf.yield {} : {}") -> tuple[list[Step], str]:
        """Ops of a region, and the value that they yield."""
        outer, self.steps = self.steps, []
        with self.region():
            self.statements(self.r.randrange(1, 5), depth + 1)
            result = self.one(element)
            self.line(end.format(result.name, element))
        steps, self.steps = self.steps, outer
        return steps, result.name

    def branch(self, depth: int) -> None:
        """scf.if, or scf.index_switch."""
        element, name = self.r.choice(["i32", "f32"]), self.name()
        if self.r.random() < 0.7:
            condition = elementwise.compare(self, self.one(self.r.choice(ELEMENTS)))
            heads, numbers = [f"{name} = scf.if {condition.name} -> ({element}) {{", "} else {"], [1, 0]
        else:
            condition, numbers = self.index(4), [0, 2, 1]
            heads = [
                f"{name} = scf.index_switch {condition.name} -> {element}\ncase 0 {{",
                "}\ncase 2 {",
                "}\ndefault {",
            ]
        ways = []
        for head in heads:
            self.line(head)
            ways.append(self.block(depth, element))
        self.line("}")

        def run(values: Values, mask: Array) -> None:
            left, found = mask, np.zeros(self.items, TYPES[element])
            for number, (steps, result) in zip(numbers, ways):
                last = number == numbers[-1]
                taken = left if last else left & (values[condition.name] == number)
                run_all(steps, values, taken)
                found, left = np.where(taken, values[result], found), left & ~taken
            values[name] = found

        self.steps.append(run)
        self.keep(Value(name, (), element))

    def loop(self, depth: int) -> None:
        """scf.for, or scf.while with a part before the test."""
        end, element, turns = self.index(6), self.r.choice(["i32", "f32"]), self.r.random() < 0.3
        initial, step = self.one(element), self.splat(1 if turns else self.r.choice([1, 2]), (), "index")
        start, kept = self.splat(0, (), "index"), list(self.values)
        name, at, carried, again, passed = (self.name() for _ in range(5))
        before: tuple[list[Step], str] = [], carried
        if turns:
            types = f"(index, {element})"
            self.line(f"{name}:2 = scf.while ({at} = {start.name}, {carried} = {initial.name}) : {types} -> {types} {{")
            self.values += [Value(carried, (), element)] * 2
            test = f"%m{name[2:]} = arith.cmpi ult, {at}, {end.name} : index\nscf.condition(%m{name[2:]}) {at}, {{}} : index, {{}}"
            before = self.block(depth, element, test)
            self.line(f"}} do {{\n^bb0({again}: index, {passed}: {element}):")
            self.values = [*kept, *[Value(passed, (), element)] * 2]
            next_ = (
                f"%n{name[2:]} = arith.addi {again}, {step.name} : index\nscf.yield %n{name[2:]}, {{}} : index, {{}}"
            )
            steps, result = self.block(depth, element, next_)
        else:
            self.line(
                f"{name} = scf.for {at} = {start.name} to {end.name} step {step.name} "
                f"iter_args({carried} = {initial.name}) -> ({element}) {{"
            )
            self.values += [Value(carried, (), element)] * 2
            steps, result = self.block(depth, element)
        self.values = kept
        self.line("}")
        found = f"{name}#1" if turns else name

        def run(values: Values, mask: Array) -> None:
            current, number, active = values[initial.name], values[start.name], mask
            while active.any():
                values |= {at: number, again: number, carried: current}
                run_all(before[0], values, active)
                current = np.where(active, values[before[1]], current)
                active = active & (number < values[end.name])
                values |= {carried: current, passed: current}
                run_all(steps, values, active)
                current = np.where(active, values[result], current)
                number = np.where(active, number + values[step.name], number)
            values[found] = current

        self.steps.append(run)
        self.keep(Value(found, (), element))

    def call(self) -> None:
        function = self.r.choice(self.functions)
        given, kinds = [self.one(k).name for k in ("i32", "f32")], ", ".join(f"memref<?x{t}>" for t in ARRAYS.values())
        names = [self.name(), self.name()]
        arguments = ", ".join([*ARRAYS, "%gid", *given])
        self.line(
            f"{', '.join(names)} = func.call @{function.name}({arguments}) : ({kinds}, index, i32, f32) -> (i32, f32)"
        )

        def run(values: Values, mask: Array) -> None:
            inner = {n: values[n] for n in (*ARRAYS, "%gid")} | dict(zip(("%x", "%y"), (values[g] for g in given)))
            run_all(function.body.steps, inner, mask)
            values.update({name: inner[result] for name, result in zip(names, function.results)})

        self.steps.append(run)
        for element, name in zip(("i32", "f32"), names):
            self.keep(Value(name, (), element))

    def exchanged(self) -> None:
        """A value of another work item, through shared local memory."""
        element = self.r.choice(["i32", "f32"])
        x, buffer, memory = self.one(element), self.name(), f"memref<{self.items}x{element}, 3>"
        self.line(f"{buffer} = memref.alloc() : {memory}")
        self.line(f"memref.store {x.name}, {buffer}[%item] : {memory}\ngpu.barrier")
        at = self.number_of("%item")
        for name, number in (("muli", self.r.randrange(1, 20)), ("addi", self.r.randrange(50))):
            at = elementwise.binary(self, name, at, self.splat(number, (), "index"))
        size = self.splat(self.items, (), "index")
        at = self.made(f"arith.remui {at.name}, {size.name} : index", "index", np.remainder, at, size)
        text = f"memref.load {buffer}[{at.name}] : {memory}"
        self.keep(self.made(text, element, lambda x, at: x[at], x, at))
        self.line("gpu.barrier")

    def reduced(self) -> None:
        x, n = self.one("i32"), self.items
        name, op = self.r.choice(list(ops.reductions("i32").items()))

        def each(values: Array, size: int) -> Array:
            parts = [values[s : s + size] for s in range(0, n, size)]
            return np.concatenate([np.full(len(p), ops.folded(op, p, 0)[-1], np.int32) for p in parts])

        if self.r.random() < 0.5:
            text, size = f"gpu.all_reduce {name} {x.name} {{}} : (i32) -> i32", n
        else:
            text, size = f"gpu.subgroup_reduce {name} {x.name} : (i32) -> i32", self.lanes
        self.keep(self.made(text, "i32", lambda values: each(values, size), x))

    def shuffled(self) -> None:
        """gpu.shuffle in segments of full subgroups; the result of lanes outside of their segment is not defined."""
        x, kind = self.one(self.r.choice(["i32", "f32"])), self.r.choice(["xor", "up", "down", "idx"])
        size = self.r.choice([n for n in (4, 8, 16, 32) if n <= self.lanes])
        width, few = self.splat(size, (), "i32"), self.splat(size - 1, (), "i32")
        known = self.r.random() < 0.5
        by = (
            self.splat(self.r.randrange(size), (), "i32")
            if known
            else elementwise.binary(self, "andi", self.one("i32"), few)
        )
        names = self.name(), self.name()
        self.line(f"{', '.join(names)} = gpu.shuffle {kind} {x.name}, {by.name}, {width.name} : {x.type}")
        items = np.arange(self.items)
        first, place = items // size * size, items % size

        def there(by: Array) -> Array:
            return {"xor": place ^ by, "up": place - by, "down": place + by, "idx": by}[kind]

        def fits(by: Array) -> Array:
            return (there(by) >= 0) & (there(by) < size)

        valid = self.computed(Value(names[1], (), "i1"), fits, by)
        other = Value(names[0], (), x.element)
        self.computed(other, lambda x, by: x[np.where(fits(by), first + there(by), items)], x, by)
        self.keep(self.selected(valid, other, x))

    def statements(self, count: int, depth: int = 0) -> None:
        """Random ops; those of all work items only outside of branches and loops."""
        kinds: list[Callable[[], None]] = [*[self.compute] * 3, self.load, self.store, self.atomic]
        kinds += [self.call] * bool(self.functions)
        kinds += [lambda: self.branch(depth), lambda: self.loop(depth)] * (depth < 2)
        if depth == 0:
            kinds += [self.exchanged, self.reduced, *[self.shuffled] * (6 * (self.items % self.lanes == 0))]
        for _ in range(count):
            self.r.choice(kinds)()


class Function:
    """A function with two results."""

    def __init__(self, r: Random, name: str, items: int, lanes: int) -> None:
        self.name, self.body = name, WorkItems(r, items, lanes, [])
        self.body.values += [Value("%x", (), "i32"), Value("%y", (), "f32")]
        self.body.statements(r.randrange(2, 8), 1)
        self.results = [self.body.one("i32").name, self.body.one("f32").name]

    @property
    def text(self) -> str:
        """Its MLIR."""
        lines, returned = "\n".join(self.body.lines), ", ".join(self.results)
        return (
            f"func.func private @{self.name}({PARAMETERS}, %gid: index, %x: i32, %y: f32) -> (i32, f32) {{\n{lines}\n"
            f"return {returned} : i32, f32\n}}"
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


def program(r: Random) -> Program:
    """A random kernel with its launch and the arrays after it."""
    block, grid, lanes = r.choice(BLOCKS), r.choice(GRIDS), r.choice([8, 16, 32])
    if r.random() < 0.5:
        block = (lanes, r.choice([1, 2]))
    items, groups = math.prod(block), math.prod(grid)
    functions = [Function(r, f"f{n}", items, lanes) for n in range(r.randrange(3))]
    body = WorkItems(r, items, lanes, functions)
    for name in ("%t0", "%t1", "%t2", "%item", "%group", "%gid", "%lane", "%subgroup"):
        text = f"arith.index_cast {name} : index to i32"
        body.keep(body.made(text, "i32", np.asarray, body.number_of(name)))
    body.statements(r.randrange(2, 20))
    for element in STORED:
        # The newest values, which most of the others have gone into.
        newest = [v for v in body.values if v.element == element and not v.shape][-PLACES:]
        for place, value in enumerate(newest):
            body.store_at(place, value)
    known = f", known_block_size = array<i32: {', '.join(map(str, (*block, 1, 1)[:3]))}>" * (r.random() < 0.4)
    text = "\n".join([
        "gpu.module @kernels {", *(f.text for f in functions),
        f"gpu.func @k({PARAMETERS}) kernel attributes {{xegpu.subgroup_size = {lanes} : i32{known}}} {{", IDS,
        *body.lines, "gpu.return\n}\n}\n",
    ])  # fmt: skip
    sizes = dict.fromkeys(LOADED.values(), LENGTH) | dict.fromkeys(STORED.values(), groups * items * PLACES)
    words = tuple(
        body.data(element, (LENGTH,)) if name in LOADED.values() else f"zeros:{element}:{sizes.get(name, BINS)}"
        for name, element in ARRAYS.items()
    )
    arrays = [parse_argument(word) for word in words]
    x, y, _ = (*block, 1, 1)[:3]
    item = np.arange(items)
    for group in range(groups):
        ids = {"%t0": item % x, "%t1": item // x % y, "%t2": item // x // y, "%item": item}
        ids |= {"%group": np.full(items, group), "%gid": group * items + item}
        ids |= {"%lane": item % lanes, "%subgroup": item // lanes}
        with np.errstate(all="ignore"):
            run_all(body.steps, {**dict(zip(ARRAYS, arrays)), **ids}, np.ones(items, bool))
    return Program(text, words, grid, block, expected=tuple(arrays))
