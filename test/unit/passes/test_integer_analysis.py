"""Which integers a value can be: of a launch, of loops, and of random programs, whose numbers are compared."""

import random
from collections import Counter

import numpy as np
import pytest
from effort import examples
from generators.strategies import generator

import xegpu_py
from xegpu_py import reference
from xegpu_py.ir.builtin import shape_and_element
from xegpu_py.ir.definition import FUNCTIONS
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.integer_analysis import Integers, Limits, integer_bits, limits_of, type_range
from xegpu_py.passes.analysis.uniformity import Uniformity
from xegpu_py.reference import machine
from xegpu_py.target import TARGETS

WORK_ITEMS = TARGETS["bmg"].threads
KERNEL = """
gpu.module @k {{
  gpu.func @f(%n: index) kernel {{
    %x = gpu.block_dim x
    %y = gpu.block_dim y
    %z = gpu.block_dim z
    %c7 = arith.constant 7 : index
    {product}
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("product", "greatest"),
    [
        ("%p = arith.muli %x, %y : index", WORK_ITEMS),
        ("%q = arith.muli %x, %y : index %p = arith.muli %z, %q : index", WORK_ITEMS),
        ("%p = arith.muli %z, %z : index", WORK_ITEMS**2),
        ("%q = arith.muli %x, %y : index %p = arith.muli %q, %y : index", WORK_ITEMS**2),
        ("%p = arith.muli %x, %c7 : index", 7 * WORK_ITEMS),
        ("%p = arith.muli %c7, %x : index", 7 * WORK_ITEMS),
        ("%p = arith.muli %n, %x : index", 5000 * WORK_ITEMS),
        ("%p = arith.muli %x, %n : index", 5000 * WORK_ITEMS),
    ],
)
def test_greatest_product(product, greatest):
    # The number of work items limits a product only if each dimension occurs once.
    module = xegpu_py.parse(KERNEL.format(product=product)).ir
    func = next(op for op in walk(module.operation) if op.name == "gpu.func")
    integers = Integers(limits_of(func, TARGETS["bmg"], Limits(index=5000)))
    products = [op for op in walk(func) if op.name == "arith.muli"]
    assert integers.bounds(products[-1].results[0])[1] == greatest


def integers_of(func, **limits):
    return Integers(limits_of(func, TARGETS["bmg"], Limits(**limits)))


LAUNCH = {
    "block_id x": (0, 9),
    "grid_dim x": (1, 10),
    "thread_id y": (0, WORK_ITEMS - 1),
    "block_dim y": (1, WORK_ITEMS),
    "subgroup_id : index": (0, WORK_ITEMS - 1),
    "num_subgroups : index": (1, WORK_ITEMS),
    "lane_id": (0, 0),
    "subgroup_size : index": (1, 1),
}
"""Ids and extents, and what they can be in launches of up to ten workgroups."""


@pytest.mark.parametrize("bound", [None, 1, 3, 1 << 20])
@pytest.mark.parametrize("op", LAUNCH)
def test_ids_and_extents(op, bound):
    """An id is less than its `upper_bound`; an extent can be equal to it, as MLIR's own ranges have it."""
    name, _, kind = op.partition(" : ")
    text = f"%i = gpu.{name}{f' upper_bound {bound}' if bound else ''}{f' : {kind}' if kind else ''}"
    module = xegpu_py.parse(f"gpu.module @k {{ gpu.func @f() kernel {{ {text} gpu.return }} }}")
    func = next(op for op in walk(module.operation) if op.name == "gpu.func")
    (inner,) = [op for op in walk(func)[1:] if op.name != "gpu.return"]
    low, high = LAUNCH[op]
    greatest = bound if bound is None or "dim" in op or "num" in op or "size" in op else bound - 1
    expected = (low, high if greatest is None else min(high, greatest))
    assert integers_of(func, grid=10).bounds(inner.results[0]) == expected


def test_sizes_of_the_launch_that_are_known():
    text = """gpu.module @k {
      gpu.func @f() kernel attributes {known_grid_size = array<i32: 7, 5, 1>, known_block_size = array<i32: 4, 2, 1>} {
        %0 = gpu.grid_dim x
        %1 = gpu.block_id y
        %2 = gpu.block_dim x
        %3 = gpu.thread_id y
        %4 = gpu.global_id y
        %5 = gpu.thread_id z
        gpu.return
      }
    }"""
    module = xegpu_py.parse(text)
    func = next(op for op in walk(module.operation) if op.name == "gpu.func")
    integers = integers_of(func)
    found = [integers.bounds(op.results[0]) for op in walk(func)[1:] if op.name != "gpu.return"]
    assert found == [(7, 7), (0, 4), (4, 4), (0, 1), (0, 9), (0, 0)]


@pytest.mark.parametrize(
    ("op", "grid", "block"),
    [("grid_dim x", 4, 1), ("grid_dim y", (1, 4), 1), ("block_dim x", 1, 4), ("num_subgroups : index", 1, 4),
     ("block_id x", 5, 1), ("thread_id x", 1, 5), ("subgroup_id : index", 1, 5)],
)  # fmt: skip
def test_products_of_the_greatest_ids_and_extents(op, grid, block):
    """Registers hold the product, of 32 bits where it always fits them."""
    name, _, kind = op.partition(" : ")
    text = f"""gpu.module @k {{ gpu.func @f(%m: memref<8xi64>) kernel {{
      %n = arith.constant {((1 << 31) - 1) // 3} : index
      %i = gpu.{name} upper_bound {5 if "_id" in op else 4}{f" : {kind}" if kind else ""}
      %p = arith.muli %i, %n : index
      %q = arith.index_cast %p : index to i64
      memref.store %q, %m[%i] : memref<8xi64>
      gpu.return }} }}"""
    out = np.zeros(8, np.int64)
    xegpu_py.compile(text, engine="interpreter")(out, grid=grid, block=block)
    assert out[4] == 4 * (((1 << 31) - 1) // 3)


class Observed:
    """Runs of programs on the reference evaluator, with all that is known of values checked against their numbers."""

    def __init__(self, monkeypatch):
        self.analyses, self.checked = {}, Counter()
        evaluate = machine.EvaluatedSubgroup.block

        def block(subgroup, frame, block, lanes):
            op = (block.end or block.nodes[-1]).op
            self.check(frame, zip(block.arguments, op.block.arguments), lanes, op)
            end = yield from evaluate(subgroup, frame, block, lanes)
            for node in block.nodes:
                self.check(frame, zip(node.results, node.op.results), lanes, op)
            return end

        monkeypatch.setattr(machine.EvaluatedSubgroup, "block", block)

    def check(self, frame, values, lanes, op):
        """Check that the analyses of the function around an op allow the numbers that lanes have."""
        while op.name not in FUNCTIONS:
            op = op.parent.operation
        if op not in self.analyses:
            # Uniformity is asked after xegpu-lift-cf and xegpu-inline.
            structured = op.name == "gpu.func" and not any(inner.successors for inner in walk(op))
            self.analyses[op] = Integers(), Uniformity(op, 16) if structured else None
        integers, uniformity = self.analyses[op]
        for slot, value in values:
            bits = integer_bits(shape_and_element(value.type)[1])
            numbers = [frame.values[slot][lane] for lane in lanes]
            if bits < 2 or any(n is None for n in numbers):
                continue
            every = [(int(n) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for n in np.ravel(numbers)]
            (low, high), divisor = integers.bounds(value), integers.divisor(value)
            assert low <= min(every) and max(every) <= high, f"{value} is {every}, not within {low} and {high}"
            assert not any(n % divisor if divisor else n for n in every), (
                f"{value} is {every}, but {divisor} divides it"
            )
            if uniformity and not uniformity.varies(value):
                assert all(np.array_equal(numbers[0], n) for n in numbers), f"{value} is {every}, but not uniform"
                self.checked["uniform"] += len(lanes) > 1
            self.checked["bounds"] += (low, high) != type_range(bits)
            self.checked["divisor"] += divisor != 1


@pytest.mark.parametrize("level", ["xetile", "xegpu_vc", "xegpu_simt", "host", "core"])
def test_numbers_of_random_programs(level, monkeypatch):
    observed = Observed(monkeypatch)
    for seed in range(examples(120)):
        generator(level)(random.Random(seed)).evaluated()
    assert observed.checked["bounds"] > 50 and observed.checked["divisor"] > 20
    assert observed.checked["uniform"] > 50 or level != "xegpu_simt"


ARITHMETIC = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")
DIVISIONS = ("divsi", "divui", "floordivsi", "ceildivsi", "ceildivui", "remsi", "remui")
SHIFTS = ("shli", "shrsi", "shrui")
CASTS = {
    ("index", "i32"): ("index_cast", "index_castui"), ("i32", "index"): ("index_cast", "index_castui"),
    ("i32", "i8"): ("trunci",), ("i8", "i32"): ("extsi", "extui"),
}  # fmt: skip


class Arithmetic:
    """Random integer arithmetic with small numbers, whose bounds are tight, in loops and branches."""

    def __init__(self, r):
        self.r, self.lines, self.count = r, [], 0

    def add(self, text):
        """Add an op with one result."""
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def constant(self, kind, low=-9, high=9):
        return self.add(f"arith.constant {self.r.randint(low, high)} : {kind}")

    def one(self, values, kind):
        """A value of a type."""
        known = [name for name, of in values if of == kind]
        return self.r.choice(known) if known and self.r.random() < 0.8 else self.constant(kind)

    def step(self, values):
        """Add an op on values, and what it makes to them."""
        kind = self.r.choice(["index", "index", "i32", "i8"])
        x, y = self.one(values, kind), self.one(values, kind)
        choice = self.r.choice(["arithmetic", "arithmetic", "division", "shift", "cast", "select"])
        if choice == "arithmetic":
            made = self.add(f"arith.{self.r.choice(ARITHMETIC)} {x}, {y} : {kind}")
        elif choice == "division":
            by = self.constant(kind, 1, 9)
            if self.r.random() < 0.5:
                by = self.add(
                    f"arith.ori {self.add(f'arith.andi {y}, {self.constant(kind, 0, 20)} : {kind}')}, {by} : {kind}"
                )
            made = self.add(f"arith.{self.r.choice(DIVISIONS)} {x}, {by} : {kind}")
        elif choice == "shift":
            by = self.add(f"arith.andi {y}, {self.constant(kind, 0, 7)} : {kind}")
            made = self.add(f"arith.{self.r.choice(SHIFTS)} {x}, {by} : {kind}")
        elif choice == "cast":
            old, kind = self.r.choice(list(CASTS))
            made = self.add(f"arith.{self.r.choice(CASTS[old, kind])} {self.one(values, old)} : {old} to {kind}")
        else:
            test = self.add(f"arith.cmpi slt, {x}, {y} : {kind}")
            made = self.add(f"arith.select {test}, {self.one(values, kind)}, {y} : {kind}")
        values.append((made, kind))

    def carried(self, argument, kind, values):
        """A number to pass to the next iteration: often the argument and a sum."""
        if self.r.random() < 0.3:
            return self.one(values, kind)
        term = self.constant(kind) if self.r.random() < 0.5 else self.one(values, kind)
        return self.add(f"arith.{self.r.choice(['addi', 'addi', 'subi'])} {argument}, {term} : {kind}")

    def loop(self, values, depth):
        """Add a loop or branch."""
        kinds = [self.r.choice(["index", "i32"]) for _ in range(self.r.randint(1, 3))]
        inits, types = [self.one(values, kind) for kind in kinds], ", ".join(kinds)
        self.count += 1
        name, inside = f"%v{self.count}", list(values)
        arguments = [f"{name}_{i}" for i in range(len(kinds))]
        passed = ", ".join(f"{a} = {init}" for a, init in zip(arguments, inits))
        form = self.r.choice(["for", "for", "while", "if"])
        if form == "if":
            test = self.add(f"arith.cmpi slt, {self.one(values, 'index')}, {self.constant('index')} : index")
            self.lines.append(f"{name}:{len(kinds)} = scf.if {test} -> ({types}) {{")
            arguments = inits
        elif form == "for":
            bounds = self.constant("index"), self.constant("index"), self.constant("index", 1, 5)
            self.lines.append(f"{name}:{len(kinds)} = scf.for {name}_i = {bounds[0]} to {bounds[1]} step {bounds[2]}"
                              f" iter_args({passed}) -> ({types}) {{")  # fmt: skip
            inside.append((f"{name}_i", "index"))
        else:
            limit = self.constant(kinds[0], 0, 40)
            self.lines.append(f"{name}:{len(kinds)} = scf.while ({passed}) : ({types}) -> ({types}) {{")
            test = self.add(f"arith.cmpi slt, {arguments[0]}, {limit} : {kinds[0]}")
            self.lines.append(f"scf.condition({test}) {', '.join(arguments)} : {types} }} do {{")
            arguments = [f"{name}_a{i}" for i in range(len(kinds))]
            self.lines.append(f"^bb0({', '.join(f'{a}: {kind}' for a, kind in zip(arguments, kinds))}):")
        inside += zip(arguments, kinds)
        self.body(inside, depth)
        yields = [self.carried(a, kind, inside) for a, kind in zip(arguments, kinds)]
        if form == "while":
            yields[0] = self.add(f"arith.addi {arguments[0]}, {self.constant(kinds[0], 1, 9)} : {kinds[0]}")
        self.lines.append(f"scf.yield {', '.join(yields)} : {types} }}")
        if form == "if":
            self.lines[-1] += f" else {{ scf.yield {', '.join(inits)} : {types} }}"
        values += [(f"{name}#{i}", kind) for i, kind in enumerate(kinds)]

    def body(self, values, depth):
        """Add ops."""
        for _ in range(self.r.randint(2, 6)):
            if depth and self.r.random() < 0.3:
                self.loop(values, depth - 1)
            else:
                self.step(values)

    def text(self):
        """The module."""
        self.body([(self.add("gpu.block_id x"), "index")], 2)
        body = "\n".join(self.lines)
        return f"gpu.module @k {{ gpu.func @f() kernel {{\n{body}\ngpu.return }} }}"


def test_numbers_of_random_arithmetic(monkeypatch):
    observed = Observed(monkeypatch)
    for seed in range(examples(1000)):
        module = xegpu_py.parse(Arithmetic(random.Random(seed)).text())
        with module.context:
            reference.run(module, None, [], grid=3)
    assert observed.checked["bounds"] > 1000 and observed.checked["divisor"] > 1000


@pytest.mark.parametrize(
    ("body", "divisors"),
    [
        # One iteration refutes the divisor of %b, and the next one that of %a.
        (
            "%s = arith.addi %b, %c2 : index %t = arith.select %if, %s, %b : index scf.yield %b, %t : index, index",
            [2, 2],
        ),
        (
            "%s = arith.addi %a, %c4 : index %t = arith.select %if, %s, %a : index scf.yield %t, %b : index, index",
            [4, 8],
        ),
        ("%s = arith.muli %a, %c2 : index scf.yield %s, %a : index, index", [8, 8]),
    ],
)
def test_divisors_of_carried_numbers(body, divisors):
    module = xegpu_py.parse(f"""gpu.module @k {{ gpu.func @f(%if: i1, %n: index) kernel {{
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %x:2 = scf.for %i = %c2 to %n step %c8 iter_args(%a = %c8, %b = %c8) -> (index, index) {{ {body} }}
      gpu.return }} }}""")
    (loop,) = [op for op in walk(module.operation) if op.name == "scf.for"]
    counter, *arguments = loop.regions[0].blocks[0].arguments
    for order in (arguments, arguments[::-1]):
        integers = Integers()
        assert {v: integers.divisor(v) for v in order} == dict(zip(arguments, divisors))
    assert [integers.divisor(v) for v in loop.results] == divisors
    assert integers.divisor(counter) == 2


def test_branches_between_blocks():
    """An argument of a block is one of the numbers that branches pass to it, also if it passes itself on."""
    module = xegpu_py.parse("""gpu.module @k { gpu.func @f(%if: i1) kernel {
      %c8 = arith.constant 8 : index
      %c12 = arith.constant 12 : index
      cf.cond_br %if, ^left(%c8 : index), ^right(%c12 : index)
    ^left(%a: index):
      cf.cond_br %if, ^left(%a : index), ^right(%a : index)
    ^right(%b: index):
      %s = arith.addi %b, %c12 : index
      cf.cond_br %if, ^left(%s : index), ^right(%b : index)
    } }""")
    (func,) = [op for op in walk(module.operation) if op.name == "gpu.func"]
    left, right = (block.arguments[0] for block in list(func.regions[0].blocks)[1:])
    integers = Integers()
    assert [integers.divisor(left), integers.divisor(right)] == [4, 4]
    assert integers.bounds(left) == integers.bounds(right) == type_range(64)


def test_masked_ops_vary():
    """What is computed under a `vector.mask` varies if the operands of the op inside do."""
    module = xegpu_py.parse("""gpu.module @k { gpu.func @f(%n: i32) kernel {
      %mask = arith.constant dense<true> : vector<4xi1>
      %i = gpu.lane_id
      %x = arith.index_cast %i : index to i32
      %v = vector.broadcast %x : i32 to vector<4xi32>
      %w = vector.broadcast %n : i32 to vector<4xi32>
      %r = vector.mask %mask { vector.reduction <add>, %v : vector<4xi32> into i32 } : vector<4xi1> -> i32
      %s = vector.mask %mask { vector.reduction <add>, %w : vector<4xi32> into i32 } : vector<4xi1> -> i32
      gpu.return } }""")
    (func,) = [op for op in walk(module.operation) if op.name == "gpu.func"]
    masked = [op for op in walk(func) if op.name == "vector.mask"]
    uniformity = Uniformity(func, 16)
    assert [uniformity.varies(op.results[0]) for op in masked] == [True, False]
