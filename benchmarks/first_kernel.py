"""Processor time to the first result of a kernel of ten ops in a new process, without caches; printed as JSON."""

import json
import time

START = time.process_time()

import numpy as np  # noqa: E402

import xegpu_py  # noqa: E402

ADD = """
gpu.module @kernels {
  gpu.func @add(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %sum: memref<?x?xf32>) kernel {
    %x = gpu.block_id x
    %y = gpu.block_id y
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %m = arith.muli %x, %c8 : index
    %n = arith.muli %y, %c16 : index
    %a_desc = xegpu.create_nd_tdesc %a[%m, %n] {mode = vc} : memref<?x?xf32> -> !xegpu.tensor_desc<8x16xf32>
    %b_desc = xegpu.create_nd_tdesc %b[%m, %n] {mode = vc} : memref<?x?xf32> -> !xegpu.tensor_desc<8x16xf32>
    %sum_desc = xegpu.create_nd_tdesc %sum[%m, %n] {mode = vc} : memref<?x?xf32> -> !xegpu.tensor_desc<8x16xf32>
    %va = xegpu.load_nd %a_desc {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %vb = xegpu.load_nd %b_desc {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %v = arith.addf %va, %vb : vector<8x16xf32>
    xegpu.store_nd %v, %sum_desc {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""


def main() -> None:
    a, b = np.random.rand(2, 100, 52).astype(np.float32)
    c = np.zeros((100, 52), np.float32)
    imported = time.process_time()
    add = xegpu_py.compile(ADD, target="pvcxt", cache="off")
    compiled = time.process_time()
    add(a, b, c, grid=(13, 4))
    run = time.process_time()
    assert (c == a + b).all()
    found = {"import": imported - START, "compile": compiled - imported, "run": run - compiled}
    print(json.dumps({f"add: {name}": seconds for name, seconds in {**found, "all": sum(found.values())}.items()}))


if __name__ == "__main__":
    main()
