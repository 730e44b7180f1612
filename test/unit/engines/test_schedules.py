"""Other orders of threads: kernels whose results depend on the order are found, and others are not reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xegpu_py
from xegpu_py import DiagnosticError

RUN = Path(__file__).parents[2] / "run"

LAST = """
gpu.module @kernels {
  gpu.func @last(%out: memref<16xi32>) kernel {
    %c0 = arith.constant 0 : index
    %zeros = arith.constant dense<0> : vector<1xindex>
    %mask = arith.constant dense<true> : vector<1xi1>
    %thread = gpu.thread_id x
    %number = arith.index_cast %thread : index to i32
    %value = vector.broadcast %number : i32 to vector<1xi32>
    %to = xegpu.create_tdesc %out, %zeros {mode = vc}
      : memref<16xi32>, vector<1xindex> -> !xegpu.tensor_desc<1xi32, #xegpu.scattered>
    %old = xegpu.atomic_rmw assign, %value, %to, %mask {mode = vc}
      : vector<1xi32>, !xegpu.tensor_desc<1xi32, #xegpu.scattered>, vector<1xi1> -> vector<1xi32>
    gpu.return
  }
}
"""


def test_the_last_of_several_exchanges_wins() -> None:
    kernel = xegpu_py.compile(LAST, check="races", schedules=20)
    with pytest.raises(DiagnosticError) as error:
        kernel(np.zeros(16, np.int32), block=8)
    (found,) = error.value.diagnostics
    assert "the results of kernel 'last' depend on the order of threads" in found.message
    assert "first byte 0: 0x07 or " in found.message
    assert found.notes[0].message.startswith("in the order of threads of seed ")
    seed = int(found.notes[0].message.split()[-1])
    # The same seeds give the same orders.
    fewer = xegpu_py.compile(LAST, check="races", schedules=seed)
    with pytest.raises(DiagnosticError, match=f"seed {seed}|depend on the order"):
        fewer(np.zeros(16, np.int32), block=8)
    if seed > 1:
        xegpu_py.compile(LAST, check="races", schedules=seed - 1)(np.zeros(16, np.int32), block=8)


def test_without_other_orders_it_is_right_by_luck() -> None:
    out = np.zeros(16, np.int32)
    xegpu_py.compile(LAST, check="races")(out, block=8)
    assert out[0] == 7


def test_ordered_kernels_are_not_reported() -> None:
    sums = xegpu_py.compile(RUN / "slm_sum.mlir", check="races", schedules=3)
    out = np.zeros(8, np.float32)
    sums(np.ones(8192, np.float32), out, grid=8, block=4)
    assert (out == 1024).all()
    counts = xegpu_py.compile(RUN / "histogram.mlir", check="races", schedules=3)
    bins = np.zeros(256, np.int32)
    counts(np.full(100, 7, np.int8), bins, grid=3)
    assert bins[7] == 100


def test_schedules_need_the_check() -> None:
    with pytest.raises(ValueError, match="'schedules' must be a number of orders for the check races, but got 3"):
        xegpu_py.compile(LAST, schedules=3)
