"""`xegpu-simt-to-vc`: kernels of work items become kernels of subgroups."""

import math
from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.passes import Pass, register_pass
from xegpu_py.ir.verifier import walk

SUBGROUP_SIZE = "xegpu.subgroup_size"
"""Attribute of a kernel of work items: how many are a subgroup."""

WORK_ITEMS = "xegpu.work_items"
"""Attribute of a kernel of subgroups that was one of work items: how many a hardware thread does."""


@register_pass("xegpu-simt-to-vc")
@dataclass
class XeGPUSimtToVc(Pass):
    """Rewrite kernels of work items (SIMT mode) as the program of a subgroup (VC mode).

    A kernel is one of work items if it has `xegpu.subgroup_size`, or an op of XeGPU in SIMT mode on a descriptor with
    an `sg_map`. Values that are the same in all work items of a subgroup stay as they are. Of others a vector holds
    those of all lanes, with the lanes as its innermost dimension; fragments of blocks stay where the block has them.
    With `kernel` only the kernel of that name is rewritten.

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
    """

    subgroup_size: int = 0
    kernel: str = ""

    def run(self, op: ir.Operation) -> None:
        from xegpu_py.passes.xegpu_simt_to_vc.fragments import Placements
        from xegpu_py.passes.xegpu_simt_to_vc.kernel import widen_kernel

        if self.subgroup_size not in (0, 8, 16, 32):
            self.fail(op, f"subgroup-size must be 8, 16 or 32, but is {self.subgroup_size}")
        placements: Placements | None = None
        for func in [f for f in walk(op) if f.name == "gpu.func" and "gpu.kernel" in f.attributes]:
            if self.kernel not in ("", ir.StringAttr(func.attributes["sym_name"]).value):
                continue
            lanes = self._lanes(func)
            if lanes:
                placements = placements or Placements(op)
                widen_kernel(func, lanes, placements)

    def _lanes(self, func: ir.Operation) -> int:
        """Work items of a subgroup; 0 of a kernel that is none of work items."""
        from xegpu_py.dialects.xegpu import TensorDesc
        from xegpu_py.passes.xegpu_simt_to_vc.fragments import mapped

        if SUBGROUP_SIZE in func.attributes:
            size = int(ir.IntegerAttr(func.attributes[SUBGROUP_SIZE]).value)
            if size not in (8, 16, 32):
                self.fail(func, f"has {SUBGROUP_SIZE} = {size}, but a subgroup has 8, 16 or 32 work items")
            return self.subgroup_size or size
        for op in walk(func):
            if op.name in ("xegpu.load_nd", "xegpu.store_nd", "xegpu.prefetch_nd") and mapped(op):
                found = TensorDesc.of(op.opview.tdesc).attr.map
                assert found is not None
                return self.subgroup_size or math.prod(found.wi_layout)
        return 0
