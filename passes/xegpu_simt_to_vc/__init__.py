"""`xegpu-simt-to-vc`: rewrites kernels of work items as kernels of subgroups; their ids, and what lanes exchange."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mlir import ir

from xegpu_py.deferred import deferred
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.ir.module import functions, walk
from xegpu_py.ir.operation import field_of
from xegpu_py.ir.passes import Contents, Pass, register_pass
from xegpu_py.passes.analysis.integer_analysis import Limits
from xegpu_py.passes.analysis.ir_queries import (
    DEFAULT_SIZE,
    SUBGROUP_SIZE,
    SUBGROUP_SIZES,
    chosen_kernels,
    is_desc,
)
from xegpu_py.target import GRID_LIMIT

if TYPE_CHECKING:
    from xegpu_py.passes.xegpu_simt_to_vc import gpu_ops
else:
    gpu_ops = deferred("xegpu_py.passes.xegpu_simt_to_vc.gpu_ops")


def _is_simt(op: ir.Operation) -> bool:
    return op.name.startswith("xegpu.") and field_of(op, "mode") == Mode.SIMT


@register_pass("xegpu-simt-to-vc")
class XeGPUSimtToVc(Pass):
    """Lower kernels of work items to subgroups.

    Kernels of work items (SIMT mode) become the program of a subgroup (VC mode). A kernel is one of work items if it
    has `xegpu.subgroup_size`, or an op of XeGPU in SIMT mode. The attribute determines the size of subgroups; without
    it an `sg_map` does; otherwise the size is 16 work items.

    Values that are uniform in a subgroup do not change. Other values become vectors of the values of all lanes, with
    the lanes as the innermost dimension. Fragments of blocks keep the order of the block.

        gpu.func @halve(%m: memref<?xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
          %i = gpu.global_id x
          %half = arith.constant 0.5 : f32
          %x = memref.load %m[%i] : memref<?xf32>
          %small = arith.cmpf olt, %x, %half : f32
          scf.if %small {
            %y = arith.mulf %x, %half : f32
            memref.store %y, %m[%i] : memref<?xf32>
          }
          gpu.return
        }

    becomes, with `known_block_size` a multiple of 16,

        gpu.func @halve(%m: memref<?xf32>) kernel attributes {xegpu.work_items = 16 : i32} {
          ...
          %x = xegpu.load_gather %t, %all {mode = vc} : ... -> vector<16xf32>
          %small = arith.cmpf olt, %x, %halves : vector<16xf32>
          %some = vector.reduction <or>, %small : vector<16xi1> into i1
          scf.if %some {
            %y = arith.mulf %x, %halves : vector<16xf32>
            xegpu.store_scatter %y, %u, %small {mode = vc} : ...
          }
          gpu.return
        }

    `max-bytes`, `max-index` and `max-grid` are those of xegpu-to-visa: a loop whose counter may wrap around in its last
    step within these limits takes one more op in each iteration.
    """

    subgroup_size: int = 0
    kernel: str = ""
    max_bytes: int = 0
    max_index: int = 0
    max_grid: int = GRID_LIMIT

    def concerns(self, contents: Contents) -> bool:
        has_size = any(SUBGROUP_SIZE in func.attributes for func in functions(contents.root))
        return self.subgroup_size not in (0, *SUBGROUP_SIZES) or has_size or any(map(_is_simt, contents.ops))

    def run(self, op: ir.Operation) -> None:
        if self.subgroup_size not in (0, *SUBGROUP_SIZES):
            self.fail(op, f"subgroup-size must be 8, 16 or 32, but got {self.subgroup_size}")
        for func in chosen_kernels(op, self.kernel):
            lanes, because = self._lanes(func)
            if lanes:
                limits = Limits(self.max_bytes, self.max_index, self.max_grid, lanes=lanes)
                gpu_ops.widen_kernel(func, lanes, because, limits)

    def _lanes(self, func: ir.Operation) -> tuple[int, ir.Operation]:
        """Work items of a subgroup, 0 if the kernel is not one of work items; and the op that determines this."""

        attribute = func.attributes.get(SUBGROUP_SIZE)
        if attribute is not None:
            size = attribute.value if isinstance(attribute, ir.IntegerAttr) else attribute
            if size not in SUBGROUP_SIZES:
                self.fail(func, f"has {SUBGROUP_SIZE} = {size}, but a subgroup has 8, 16 or 32 work items")
            return self.subgroup_size or size, func
        first: ir.Operation | None = None
        for op in walk(func):
            if not _is_simt(op):
                continue
            first = first or op
            for value in (*op.operands, *op.results):
                sg_map = TensorDesc.of(value).attr.map if is_desc(value) else None
                if sg_map is not None:
                    return self.subgroup_size or math.prod(sg_map.wi_layout), op
        return (self.subgroup_size or DEFAULT_SIZE) if first else 0, first or func
