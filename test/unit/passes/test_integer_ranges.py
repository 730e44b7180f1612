"""Which integers a value can be: products of a workgroup's extents, and of one and any other number."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.integer_ranges import Limits, Ranges, limits_of
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
    ranges = Ranges(func, limits_of(func, TARGETS["bmg"], Limits(index=5000)))
    products = [op for op in walk(func) if op.name == "arith.muli"]
    assert ranges.of(products[-1].results[0])[1] == greatest


def ranges_of(func, **limits):
    return Ranges(func, limits_of(func, TARGETS["bmg"], Limits(**limits)))


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
    assert ranges_of(func, grid=10).of(inner.results[0]) == expected


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
    ranges = ranges_of(func)
    found = [ranges.of(op.results[0]) for op in walk(func)[1:] if op.name != "gpu.return"]
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
