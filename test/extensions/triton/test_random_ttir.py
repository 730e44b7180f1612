"""Random programs of Triton's IR, lowered, leave what numpy computes."""

import random

import numpy as np
import pytest
from effort import examples
from generators import triton

import xegpu_py
from xegpu_py.extensions.triton.lowering.tt_to_xetile import lowered_to_xetile


def test_lowered_programs_compute_as_numpy_does() -> None:
    for seed in range(examples(200)):
        program = triton.program(random.Random(seed))
        arrays = program.arrays()
        # Elements that a mask leaves out are not out of bounds, but those around a descriptor's tensor are.
        check = ("bounds",) if seed % 2 and "tt.descriptor" not in program.text else ()
        module = xegpu_py.parse(program.text)
        # The plugin's first choice is a version which assumes that sums of positions do not wrap around.
        assuming, assumptions = lowered_to_xetile(xegpu_py.parse(program.text), target="bmg", exact=False)
        if seed % 3 and assumptions.hold(arrays, (*program.grid, 1, 1)):
            module = assuming
        kernel = xegpu_py.compile(module, target="bmg", check=check, cache="off", progress=False)
        kernel(*arrays, grid=program.grid)
        assert triton.differences(program, arrays) == [], f"seed {seed}:\n{program.text}"


TRUTH_VALUES = """
tt.func public @k(%x: !tt.ptr<i32>, %y: !tt.ptr<WIDE>, %scalar: i32) {
  %zero = arith.constant 0 : i32
  %zeros = arith.constant dense<0> : tensor<32xi32>
  %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %from = tt.splat %x : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
  %p = tt.addptr %from, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
  %v = tt.load %p : tensor<32x!tt.ptr<i32>>
  %truth = arith.cmpi sgt, %v, %zeros : tensor<32xi32>
  %wide = arith.extsi %truth : tensor<32xi1> to tensor<32xWIDE>
  %one = arith.cmpi sgt, %scalar, %zero : i32
  %more = arith.extsi %one : i1 to WIDE
  %same = tt.splat %more : WIDE -> tensor<32xWIDE>
  %sum = arith.addi %wide, %same : tensor<32xWIDE>
  %to = tt.splat %y : !tt.ptr<WIDE> -> tensor<32x!tt.ptr<WIDE>>
  %q = tt.addptr %to, %i : tensor<32x!tt.ptr<WIDE>>, tensor<32xi32>
  tt.store %q, %sum : tensor<32x!tt.ptr<WIDE>>
  tt.return
}
"""


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_extended_truth_values_are_minus_one(bits: int) -> None:
    x, y = np.arange(-16, 16, dtype=np.int32), np.zeros(32, f"i{bits // 8}")
    kernel = xegpu_py.compile(TRUTH_VALUES.replace("WIDE", f"i{bits}"), cache="off")
    for scalar in (-3, 3):
        kernel(x, y, scalar, grid=1)
        np.testing.assert_array_equal(y, -(x > 0).astype(y.dtype) - (scalar > 0))
