"""Which integers a value can be: products of a workgroup's extents, and of one and any other number."""

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
