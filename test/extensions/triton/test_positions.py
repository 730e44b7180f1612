"""Ranges of positions contain all results, and no others where the operands determine the ends."""

import itertools
import re

import numpy as np
import pytest

from xegpu_py import parse
from xegpu_py.extensions.triton.lowering import positions
from xegpu_py.extensions.triton.lowering.positions import MOST_PROGRAMS, Assumptions, Positions, evaluated
from xegpu_py.ir.module import walk

SMALL = [(low, high) for low in range(-4, 5) for high in range(low, 5)]


def quotient(x, y):
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


OPERATIONS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": quotient,
    "rem": lambda x, y: x - y * quotient(x, y),
    "min": min,
    "max": max,
}


def numbers(interval):
    return range(interval[0], interval[1] + 1)


def is_tight(name, a, b):
    """Whether the range of results is that of the operands' ends."""
    if name == "rem":
        size = abs(b[0])
        return b[0] == b[1] and (-size < a[0] <= 0 <= a[1] < size or a[0] <= -size < size <= a[1])
    return name != "div" or not b[0] <= 0 <= b[1]


@pytest.mark.parametrize("name", OPERATIONS)
def test_binary(name):
    for a, b in itertools.product(SMALL, SMALL):
        divisors = [y for y in numbers(b) if y or name not in ("div", "rem")]
        results = [OPERATIONS[name](x, y) for x in numbers(a) for y in divisors]
        if results:
            low, high = evaluated([("number", *a), ("number", *b), (name, 0, 1)])[2]
            assert low <= min(results) <= max(results) <= high, (a, b)
            assert (low, high) == (min(results), max(results)) or not is_tight(name, a, b), (a, b)


def test_one_of_two():
    for a, b in itertools.product(SMALL, SMALL):
        assert positions._BINARY["join"](a, b) == (min(*a, *b), max(*a, *b))


@pytest.mark.parametrize("by", [(-3, -3), (0, 0), (2, 2), (-1, 4)])
@pytest.mark.parametrize("last", [0, 1])
def test_numbers_that_a_loop_changes(by, last):
    lowers, uppers, steps, firsts = (
        ((-2, 0), (0, 0), (3, 5)),
        ((-1, 4), (0, 0), (4, 9)),
        ((1, 3), (2, 2)),
        ((-5, 0), (7, 7)),
    )
    for lower, upper, step, first in itertools.product(lowers, uppers, steps, firsts):
        nodes = [("number", *interval) for interval in (first, lower, upper, step)]
        nodes += [("number", *by), ("counter", 1, 2, 3), ("carried", 0, 4, 1, 2, 3, last)]
        *_, counter, carried = evaluated(nodes)
        assert counter == (min(lower[0], upper[0]), max(lower[1], upper[1] - 1))
        most = max(len(range(lower[0], upper[1], step[0])) - 1 + last, 0)
        reached = [start + k * n for start in first for k in range(most + 1) for n in by]
        assert carried == (min(reached), max(reached))


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_arguments_and_programs(bits):
    """An argument has each integer of its type until a launch says which, and so have the programs of a grid."""
    least, greatest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    nodes = [("argument", 3, bits), ("program", 1), ("programs", 1)]
    most = 2**31 - 1
    assert evaluated(nodes) == [(least, greatest), (0, most - 1), (1, most)]
    assert evaluated(nodes, {3: 5}, (2, 7, 1)) == [(5, 5), (0, 6), (7, 7)]
    assert evaluated(nodes, {2: 5}) == evaluated(nodes)
    usual = [positions.range_of(node, [], {3: 5}, None, guess=True) for node in [*nodes, ("number", 3, 4)]]
    assert usual == [(0, 4096), (0, 64), (1, 64), (3, 4)]
    fits = Assumptions((("argument", 3, 64), ("program", 0), ("add", 0, 1)), ((2, bits),))
    again = Assumptions.decode(fits.encode())
    for value, holds in ((greatest - 4, True), (greatest - 3, False), (least, True), (least - 1, False)):
        assert fits.hold([0, 0, 0, value], (5, 1, 1)) == again.hold([0, 0, 0, value], (5, 1, 1)) == holds
    assert Assumptions(fits.nodes).hold([0, 0, 0, greatest + 1], (5, 1, 1))


def test_assumptions_at_both_ends_of_a_width():
    """Each check has its own width; arguments that are no integers fit nothing but their type."""
    assumed = Assumptions((("argument", 0, 64), ("argument", 1, 64)), ((0, 8), (1, 16)))
    for numbers, holds in (
        ((127, 32767), True), ((-128, -32768), True), ((128, 0), False), ((-129, 0), False), ((0, 32768), False),
        ((0, -32769), False), ((np.int64(127), np.int16(-5)), True), ((2.5, 0), False), ((0, None), False),
    ):  # fmt: skip
        assert assumed.hold(numbers, (1, 1, 1)) == holds, numbers
    assert Assumptions(assumed.nodes).hold((1 << 40, 1 << 40), (1, 1, 1))


IF = "%r = scf.if %b -> (i32) {\nscf.yield %c2 : i32\n} else {\n"
HEAD = """tt.func public @k(%p: !tt.ptr<f32>, %n: i32, %m: i64, %s: i16, %b: i1) {
%c2 = arith.constant 2 : i32
%c9 = arith.constant 9 : i32
%x = tt.get_program_id x : i32
%z = tt.get_num_programs z : i32
"""
"""Before the lines of each kernel; `use` makes a value the offset of a pointer."""
MOST, WIDEST = (1 << 31) - 1, (1 << 63) - 1


def use(name, kind="i32"):
    return f"%p{name[1]} = tt.addptr %p, {name} : !tt.ptr<f32>, {kind}\n"


def carried(lines, end="%c9", after="%a"):
    """A loop that carries %e, which becomes `after`."""
    head = f"%r = scf.for %i = %c2 to {end} step %c2 iter_args(%e = %c9) -> (i32) : i32"
    return f"{head} {{\n{lines}\nscf.yield {after} : i32\n}}\n" + use("%r")


def found_in(text):
    """The positions of a kernel, and its values by their names."""
    module = parse(f"module {{ {text}tt.return }} }}")
    func = next(op for op in walk(module.operation) if op.name == "func.func")
    values = dict(zip(("%p", "%n", "%m", "%s", "%b"), func.regions[0].blocks[0].arguments))
    names = re.findall(r"^(%\w+)(?::2)? = ", text, re.MULTILINE)
    values |= {name: op.results[0] for name, op in zip(names, (op for op in walk(func)[1:] if op.results))}
    loops = re.findall(r"(?:for|unsigned) (%\w) = .*?(?:iter_args\((%e) = %\w+(?:, (%f))?|: i32 \{)", text)
    for counters, loop in zip(loops, (op for op in walk(func) if op.name == "scf.for")):
        values |= dict(zip(counters, loop.regions[0].blocks[0].arguments))
    return Positions(func, {values["%n"]: 1, values["%m"]: 2}), Positions(func, {}, exact=True), values


@pytest.mark.parametrize(
    ("lines", "ranges"),
    [
        # Offsets of pointers, and the integers of which they are computed.
        (use("%n"), {"%n": (-MOST - 1, MOST), "%x": None, "%c2": None}),
        (use("%m", "i64"), {"%m": (-WIDEST - 1, WIDEST)}),
        (use("%x") + use("%z"), {"%x": (0, MOST_PROGRAMS - 1), "%z": (1, MOST_PROGRAMS)}),
        (
            "%a = arith.addi %n, %c2 : i32\n" + use("%a"),
            {"%a": (-MOST + 1, MOST + 2), "%n": (-MOST - 1, MOST), "%c2": (2, 2)},
        ),
        ("%a = arith.subi %c2, %c9 : i32\n" + use("%a"), {"%a": (-7, -7)}),
        ("%a = arith.divsi %c9, %c2 : i32\n" + use("%a"), {"%a": (4, 4)}),
        ("%a = arith.remsi %x, %c9 : i32\n" + use("%a"), {"%a": (0, 8)}),
        ("%a = arith.minsi %x, %c9 : i32\n%d = arith.maxsi %a, %c2 : i32\n" + use("%d"), {"%a": (0, 9), "%d": (2, 9)}),
        (
            "%a = arith.select %b, %c2, %c9 : i32\n" + use("%a"),
            {"%a": (2, 9), "%c2": (2, 2), "%c9": (9, 9), "%b": None},
        ),
        # No operation without a range is one: shifts, loads, and what usual launches overflow.
        ("%a = arith.shli %c2, %c9 : i32\n" + use("%a"), {"%a": None, "%c2": None}),
        ("%a = arith.muli %n, %n : i32\n" + use("%a"), {"%a": (-(2**31) * MOST, 2**62), "%n": (-MOST - 1, MOST)}),
        (
            "%a = arith.muli %n, %n : i32\n%d = arith.muli %a, %n : i32\n" + use("%d"),
            {"%d": None, "%n": (-MOST - 1, MOST)},
        ),
        ("%a = arith.addi %n, %c2 : i32\n%d = arith.xori %a, %c2 : i32\n" + use("%d"), {"%d": None, "%a": None}),
        # Views, and conversions to a width of at least 32 bits.
        (
            "%a = arith.extsi %x : i32 to i64\n" + use("%a", "i64"),
            {"%a": (0, MOST_PROGRAMS - 1), "%x": (0, MOST_PROGRAMS - 1)},
        ),
        ("%a = arith.trunci %m : i64 to i32\n" + use("%a"), {"%a": (-WIDEST - 1, WIDEST), "%m": (-WIDEST - 1, WIDEST)}),
        ("%a = arith.extsi %s : i16 to i32\n" + use("%a"), {"%a": None, "%s": None}),
        ("%a = arith.extui %x : i32 to i64\n" + use("%a", "i64"), {"%a": None, "%x": None}),
        # Operands of comparisons as signed integers, and bounds of loops.
        ("%a = arith.cmpi slt, %x, %c9 : i32\n", {"%x": (0, MOST_PROGRAMS - 1), "%c9": (9, 9), "%c2": None}),
        ("%a = arith.cmpi sge, %x, %c9 : i32\n", {"%x": (0, MOST_PROGRAMS - 1)}),
        ("%a = arith.cmpi eq, %x, %c9 : i32\n", {"%x": (0, MOST_PROGRAMS - 1)}),
        ("%a = arith.cmpi ult, %x, %c9 : i32\n", {"%x": None, "%c9": None}),
        ("%a = arith.cmpi slt, %s, %s : i16\n", {"%s": None}),
        (
            "scf.for %i = %x to %c9 step %c2 : i32 {\n}\n",
            {"%x": (0, MOST_PROGRAMS - 1), "%c9": (9, 9), "%c2": (2, 2), "%i": None},
        ),
        # The counter of a loop, and integers to which each iteration adds the same number, in it and behind it.
        (f"scf.for %i = %c2 to %c9 step %c2 : i32 {{\n{use('%i')}}}\n", {"%i": (2, 8)}),
        (carried("%a = arith.addi %e, %c2 : i32"), {"%r": (9, 17), "%e": (9, 15)}),
        (carried("%a = arith.addi %c2, %e : i32"), {"%r": (9, 17), "%e": (9, 15)}),
        (carried("%a = arith.subi %e, %c2 : i32"), {"%r": (1, 9), "%e": (3, 9)}),
        (carried("", after="%e"), {"%r": (9, 9), "%e": (9, 9)}),
        (carried("%a = arith.subi %c2, %e : i32"), {"%r": None, "%e": None}),
        (carried("%a = arith.muli %e, %c2 : i32"), {"%r": None, "%e": None}),
        (carried("%a = arith.addi %e, %i : i32"), {"%r": None, "%e": None}),
        (carried("", after="%i"), {"%r": None, "%e": None}),
        (carried("%d = arith.constant 1 : i32\n%a = arith.addi %e, %d : i32"), {"%r": (9, 13)}),
        (carried("%d = arith.constant -2 : i32\n%a = arith.subi %e, %d : i32"), {"%r": (9, 17), "%e": (9, 15)}),
        (carried("%a = arith.subi %e, %i : i32"), {"%r": None, "%e": None}),
        (carried("%a = arith.addi %x, %c2 : i32"), {"%r": None, "%e": None}),
        (
            carried("%a = arith.addi %e, %x : i32"),
            {"%r": (9, 9 + 4 * (MOST_PROGRAMS - 1)), "%x": (0, MOST_PROGRAMS - 1)},
        ),
        (carried("%d = arith.addi %x, %c2 : i32\n%a = arith.addi %e, %d : i32"), {"%r": None, "%e": None}),
        (
            carried("%d = arith.addi %x, %c2 : i32\n%a = arith.addi %e, %c2 : i32"),
            {"%r": (9, 17), "%d": None},
        ),
        (
            "%u = arith.shli %c2, %c9 : i32\n" + carried("%a = arith.addi %e, %c2 : i32", end="%u"),
            {"%r": None, "%u": None},
        ),
        (
            "%u = arith.shli %c2, %c9 : i32\n" + f"scf.for %i = %c2 to %u step %c2 : i32 {{\n{use('%i')}}}\n",
            {"%i": None},
        ),
        (f"scf.for unsigned %i = %c2 to %c9 step %c2 : i32 {{\n{use('%i')}}}\n", {"%i": None, "%c2": (2, 2)}),
        (
            "%r = scf.for %i = %c2 to %c9 step %c2 iter_args(%e = %z) -> (i32) : i32 {\nscf.yield %e : i32\n}\n",
            {"%z": None},
        ),
        # The second of two integers that a loop carries.
        (
            "%r:2 = scf.for %i = %c2 to %c9 step %c2 iter_args(%e = %x, %f = %c9) -> (i32, i32) : i32 {\n"
            "%a = arith.addi %f, %c2 : i32\nscf.yield %x, %a : i32, i32\n}\n" + use("%r#1"),
            {"%f": (9, 15), "%r": None, "%e": None, "%x": None, "%a": (11, 17)},
        ),
        # A loop in a loop: integers of the outer one are the same in all iterations of the inner one.
        (
            "scf.for %j = %c2 to %c9 step %c2 : i32 {\n" + carried("%a = arith.addi %e, %j : i32") + "}\n",
            {"%r": (9, 41), "%e": (9, 33), "%j": (2, 8)},
        ),
        (
            "%t = tt.splat %c9 : i32 -> tensor<4xi32>\n"
            "%r = scf.for %i = %c2 to %c9 step %c2 iter_args(%e = %t) -> (tensor<4xi32>) : i32 {\n"
            "%d = tt.splat %c2 : i32 -> tensor<4xi32>\n%a = arith.addi %e, %d : tensor<4xi32>\n"
            "scf.yield %a : tensor<4xi32>\n}\n%u = arith.cmpi slt, %r, %r : tensor<4xi32>\n",
            {"%r": (9, 17), "%e": (9, 15)},
        ),
        (
            "%r = scf.while (%e = %c9) : (i32) -> i32 {\nscf.condition(%b) %e : i32\n} do {\n^bb0(%f: i32):\n"
            "%a = arith.addi %f, %c2 : i32\nscf.yield %a : i32\n}\n" + use("%r"),
            {"%r": None, "%c9": None},
        ),
        # Results of branches.
        (IF + "scf.yield %c9 : i32\n}\n" + use("%r"), {"%r": (2, 9), "%c9": (9, 9)}),
        (
            IF + "%a = arith.xori %c2, %c9 : i32\nscf.yield %a : i32\n}\n" + use("%r"),
            {"%r": None, "%c2": (2, 2), "%a": None},
        ),
        # Each element of a tensor has the range.
        (
            "%a = tt.make_range {start = 4 : i32, end = 12 : i32} : tensor<8xi32>\n"
            "%d = arith.cmpi slt, %a, %a : tensor<8xi32>\n",
            {"%a": (4, 11)},
        ),
        (
            "%a = tt.splat %x : i32 -> tensor<4xi32>\n%d = arith.cmpi sle, %a, %a : tensor<4xi32>\n",
            {"%a": (0, MOST_PROGRAMS - 1)},
        ),
        ("%a = arith.constant dense<7> : tensor<4xi32>\n%d = arith.cmpi sgt, %a, %a : tensor<4xi32>\n", {"%a": (7, 7)}),
        (
            "%a = arith.constant dense<[1, 2]> : tensor<2xi32>\n%d = arith.cmpi ne, %a, %a : tensor<2xi32>\n",
            {"%a": None},
        ),
    ],
)
def test_positions_of_a_kernel(lines, ranges):
    """The integers that are positions, with the range of each in all launches; the others are None."""
    found, exact, values = found_in(HEAD + lines)
    nodes = evaluated(found.assumptions.nodes)
    assert {name: nodes[found._node(values[name])] if values[name] in found else None for name in ranges} == ranges
    assert not [value for value in values.values() if value in exact] and not exact.assumptions.nodes


CUBE = "%a = arith.muli %n, %n : i32\n%f = arith.constant 64 : i32\n%d = arith.muli %a, %f : i32\n"
"""As %d 2**30 in the largest of usual launches."""


@pytest.mark.parametrize(
    ("lines", "checks"),
    [
        # What fits in all launches needs no check.
        (use("%n") + use("%m", "i64") + use("%x") + use("%z"), []),
        ("%a = arith.subi %c2, %c9 : i32\n" + use("%a"), []),
        ("%a = arith.addi %n, %c9 : i32\n" + use("%a"), [((-MOST + 8, MOST + 9), 32)]),
        ("%a = arith.subi %n, %c9 : i32\n" + use("%a"), [((-MOST - 10, MOST - 9), 32)]),
        ("%a = arith.trunci %m : i64 to i32\n" + use("%a"), [((-WIDEST - 1, WIDEST), 32)]),
        ("%a = arith.addi %m, %m : i64\n" + use("%a", "i64"), [((-(2**64), 2**64 - 2), 64)]),
        (CUBE + use("%d"), [((-(2**31) * MOST, 2**62), 32), ((-(2**37) * MOST, 2**68), 32)]),
        # One more than usual launches reach, at both ends.
        (CUBE + "%e = arith.addi %d, %d : i32\n" + use("%e"), None),
        (f"{CUBE}%g = arith.constant -2147483647 : i32\n%e = arith.subi %g, %x : i32\n{use('%e')}", None),
    ],
)  # fmt: skip
def test_checks_of_launches(lines, checks):
    found, _, values = found_in(HEAD + lines)
    nodes = evaluated(found.assumptions.nodes)
    if checks is None:
        assert values["%e"] not in found
    else:
        assert [(nodes[number], bits) for number, bits in found.assumptions.checks] == checks


def test_the_least_position_that_usual_launches_reach():
    """The number of a program is at most 64 in them."""
    for start, fits in ((-(2**31) + 64, True), (-(2**31) + 63, False)):
        lines = f"%g = arith.constant {start} : i32\n%e = arith.subi %g, %x : i32\n{use('%e')}"
        found, _, values = found_in(HEAD + lines)
        assert (values["%e"] in found) == fits
    for start, fits in ((2**31 - 65, True), (2**31 - 64, False)):
        found, _, values = found_in(
            f"{HEAD}%g = arith.constant {start} : i32\n%e = arith.addi %g, %x : i32\n{use('%e')}"
        )
        assert (values["%e"] in found) == fits


def test_the_first_op_of_a_kernel_uses_a_position():
    found, _, values = found_in(f"{HEAD.partition('{')[0]}{{\n{use('%n')}")
    assert values["%n"] in found


def test_comparisons_of_signed_integers():
    text = "".join(f"%r{n} = arith.cmpi {p}, %n, %n : i32\n" for n, p in enumerate(["eq", "slt", "sge", "ult", "uge"]))
    module = parse(
        f"module {{ {HEAD}{text}%t = arith.cmpi slt, %b, %b : i1\n%u = arith.addi %n, %n : i32\ntt.return }} }}"
    )
    found = [
        positions.is_signed_comparison(op)
        for op in walk(module.operation)
        if op.name.startswith("arith.c") and "onst" not in op.name
    ]
    assert found == [True, True, True, False, False, False]
    assert not any(positions.is_signed_comparison(op) for op in walk(module.operation) if op.name == "arith.addi")
