"""Positions that loops and branches carry wrap around as 32 bits do, where a launch's numbers make them."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py.extensions.triton.lowering.tt_to_xetile import lowered_to_xetile

LANES = 16

# Each form changes a number %o of 32 bits in a loop, or before it, from %start and %step.
STEPS = {
    "a sum": "%next = arith.addi %o, %step : i32",
    "a sum in the other order": "%next = arith.addi %step, %o : i32",
    "a difference": "%next = arith.subi %o, %step : i32",
    "a number less it": "%next = arith.subi %step, %o : i32",
    "a sum with the counter": "%next = arith.addi %o, %i : i32",
    "a sum that a branch chooses": (
        "%big = arith.addi %o, %step : i32\n%odd = arith.andi %i, %one : i32\n%is = arith.cmpi eq, %odd, %one : i32\n"
        "%next = scf.if %is -> i32 { scf.yield %big : i32 } else { scf.yield %o : i32 }"
    ),
    "a sum that is chosen": (
        "%big = arith.addi %o, %step : i32\n%odd = arith.andi %i, %one : i32\n%is = arith.cmpi eq, %odd, %one : i32\n"
        "%next = arith.select %is, %big, %o : i32"
    ),
    "itself": "%next = arith.addi %o, %zero : i32",
    "a product": "%next = arith.muli %o, %step : i32",
}

ORACLES = {
    "a sum": lambda o, step, i: o + step,
    "a sum in the other order": lambda o, step, i: o + step,
    "a difference": lambda o, step, i: o - step,
    "a number less it": lambda o, step, i: step - o,
    "a sum with the counter": lambda o, step, i: o + i,
    "a sum that a branch chooses": lambda o, step, i: o + step if i & 1 else o,
    "a sum that is chosen": lambda o, step, i: o + step if i & 1 else o,
    "itself": lambda o, step, i: o,
    "a product": lambda o, step, i: o * step,
}

KERNEL = """
module {{
  tt.func public @k(
      %out: !tt.ptr<i32>, %after: !tt.ptr<i32>, %start: i32, %step: i32, %low: i32, %high: i32, %by: i32) {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %lanes = arith.constant {lanes} : i32
    %least = arith.constant dense<100> : tensor<{lanes}xi32>
    %lane = tt.make_range {{end = {lanes} : i32, start = 0 : i32}} : tensor<{lanes}xi32>
    %last:2 = scf.for %i = %low to %high step %by iter_args(%o = %start, %row = %zero) -> (i32, i32) : i32 {{
      %so = tt.splat %o : i32 -> tensor<{lanes}xi32>
      %at = arith.addi %so, %lane : tensor<{lanes}xi32>
      %below = arith.cmpi slt, %at, %least : tensor<{lanes}xi32>
      %bit = arith.extui %below : tensor<{lanes}xi1> to tensor<{lanes}xi32>
      %first = arith.muli %row, %lanes : i32
      %p = tt.addptr %out, %first : !tt.ptr<i32>, i32
      %ps = tt.splat %p : !tt.ptr<i32> -> tensor<{lanes}x!tt.ptr<i32>>
      %q = tt.addptr %ps, %lane : tensor<{lanes}x!tt.ptr<i32>>, tensor<{lanes}xi32>
      tt.store %q, %bit : tensor<{lanes}x!tt.ptr<i32>>
      {step}
      %following = arith.addi %row, %one : i32
      scf.yield %next, %following : i32, i32
    }}
    %sl = tt.splat %last#0 : i32 -> tensor<{lanes}xi32>
    %atl = arith.addi %sl, %lane : tensor<{lanes}xi32>
    %belowl = arith.cmpi slt, %atl, %least : tensor<{lanes}xi32>
    %bitl = arith.extui %belowl : tensor<{lanes}xi1> to tensor<{lanes}xi32>
    %pa = tt.splat %after : !tt.ptr<i32> -> tensor<{lanes}x!tt.ptr<i32>>
    %qa = tt.addptr %pa, %lane : tensor<{lanes}x!tt.ptr<i32>>, tensor<{lanes}xi32>
    tt.store %qa, %bitl : tensor<{lanes}x!tt.ptr<i32>>
    tt.return
  }}
}}
"""

MOST = 2**31 - 1
LAUNCHES = [
    (0, 16, 0, 5, 1),
    (90, 4, 1, 6, 1),
    (MOST - 20, 7, 0, 5, 1),
    (-MOST - 1 + 20, 7, 0, 6, 1),
    (MOST - 3, 1, 0, 3, 1),
    # Only what is left behind the loop is too large, and only what is subtracted from a constant.
    (MOST - 15 - 7 * 4, 7, 0, 5, 1),
    (-MOST - 1 + 5, 0, 0, 3, 1),
    (95, MOST // 2, 0, 5, 1),
    (95, -MOST // 2, 0, 5, 1),
    (0, MOST, 1, 4, 1),
    (MOST - 40, 20, MOST - 9, MOST, 2),
    (2**29 - 1, 4, 0, 2, 1),
    (7, 3, 5, 5, 1),
    (7, 3, 6, 5, 1),
]
"""Arguments: the first number and what is added, and the bounds and the step of the loop."""


def wrapped(n: int) -> int:
    return (n + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("name", STEPS)
def test_numbers_that_loops_carry(name: str) -> None:
    """The version for numbers that fit runs where a launch's numbers do, as in Triton's launches."""
    text = KERNEL.format(lanes=LANES, step=STEPS[name])
    module, assumptions = lowered_to_xetile(xegpu_py.parse(text), target="pvc", exact=False)
    kernels = {True: xegpu_py.compile(module, cache="off"), False: xegpu_py.compile(text, cache="off")}
    held = []
    for start, step, low, high, by in LAUNCHES:
        out, after = np.full((8, LANES), -1, np.int32), np.full(LANES, -1, np.int32)
        arguments = [out.reshape(-1), after, start, step, low, high, by]
        held.append(assumptions.hold(arguments, (1, 1, 1)))
        kernels[held[-1]](*arguments)
        o, rows = start, []
        for i in range(low, high, by):
            rows.append([int(wrapped(o + n) < 100) for n in range(LANES)])
            o = wrapped(ORACLES[name](o, step, i))
        wanted = np.full((8, LANES), -1, np.int32)
        if rows:
            wanted[: len(rows)] = rows
        np.testing.assert_array_equal(out, wanted, f"{name} {(start, step, low, high, by)}")
        np.testing.assert_array_equal(after, [int(wrapped(o + n) < 100) for n in range(LANES)])
    assert held[0] and held[1]
    assert assumptions.checks or all(held)
