"""Reductions of the elements of one work item, of even and odd numbers of them."""

import numpy as np
import pytest

import xegpu_py

TEXT = """
gpu.module @m {
  gpu.func @k(%m: memref<16xNxi32>, %o: memref<16xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %x = vector.load %m[%t, %c0] : memref<16xNxi32>, vector<Nxi32>
    %y = vector.reduction <HOW>, %x : vector<Nxi32> into i32
    memref.store %y, %o[%t] : memref<16xi32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7])
@pytest.mark.parametrize(("kind", "function"), [("add", np.add), ("maxsi", np.maximum)])
def test_each_element_counts_once(n, kind, function):
    kernel = xegpu_py.compile(TEXT.replace("N", str(n)).replace("HOW", kind), engine="both")
    # The greatest is in each row at another position; powers of two tell which elements were added.
    data = np.stack([np.roll(1 << np.arange(n), i) for i in range(16)]).astype(np.int32)
    found = np.zeros(16, np.int32)
    kernel(data, found, block=16)
    assert found.tolist() == function.reduce(data, axis=1).tolist()
