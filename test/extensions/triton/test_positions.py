"""Ranges of positions contain all results, and no others where the operands determine the ends."""

import itertools

import numpy as np
import pytest

from xegpu_py.extensions.triton.lowering import positions
from xegpu_py.extensions.triton.lowering.positions import Assumptions, evaluated

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
