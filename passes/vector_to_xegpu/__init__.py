"""`vector-to-xegpu`: vector's own loads and stores, and memref's atomics, become XeGPU's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.kernels import SUBGROUP_SIZE, chosen_kernels
from xegpu_py.passes.common.ops import replace_op
from xegpu_py.passes.common.patterns import PatternSet

Pattern = Callable[[Pass, ir.Operation], Any]
pattern: PatternSet[Pattern] = PatternSet(__package__, {"accesses": "vector memref.atomic_rmw"})
"""By name of an op, a function that makes the accesses that replace the op, and returns its result, if it has one."""


@register_pass("vector-to-xegpu")
@dataclass
class VectorToXeGPU(Pass):
    """Lower memory accesses of vectors to XeGPU.

    In kernels of subgroups, accesses of the vector dialect and memref.atomic_rmw become blocks, gathers and scatters.
    The pass rewrites load, store, maskedload, maskedstore, gather, scatter, transfer_read and transfer_write. Accesses
    of rows of consecutive elements become 1D blocks. Accesses that have a mask, may reach out of bounds, or have a
    stride become gathers or scatters. An atomic update of an element has a single lane. Kernels of work items are
    lowered by `xegpu-simt-to-vc` instead.

        %v = vector.load %m[%i, %j] : memref<?x64xf32>, vector<16xf32>
        %g = vector.gather %m[%i, %j] [%places], %mask, %v : memref<?x64xf32>, ... into vector<16xf32>

    becomes

        %row = memref.subview %m[%i, %j] [1, 16] [1, 1] : memref<?x64xf32> to memref<16xf32, strided<[1], offset: ?>>
        %block = xegpu.create_nd_tdesc %row[0] {mode = vc} : ... -> !xegpu.tensor_desc<16xf32, ...>
        %v = xegpu.load_nd %block {mode = vc} : !xegpu.tensor_desc<16xf32, ...> -> vector<16xf32>
        %lanes = xegpu.create_tdesc %m, %offsets {mode = vc} : ... -> !xegpu.tensor_desc<16xf32, #xegpu.scattered>
        %h = xegpu.load_gather %lanes, %mask {mode = vc} : ... -> vector<16xf32>
        %g = arith.select %mask, %h, %v : vector<16xi1>, vector<16xf32>
    """

    kernel: str = ""

    def run(self, op: ir.Operation) -> None:
        for func in chosen_kernels(op, self.kernel):
            if SUBGROUP_SIZE in func.attributes:
                continue
            for access, rewrite in [(o, pattern.find(o.name)) for o in walk(func)]:
                if rewrite is None:
                    continue
                with access.location, ir.InsertionPoint(access):
                    found = rewrite(self, access)
                    replace_op(access, *([] if found is None else [found]))
