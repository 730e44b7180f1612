"""`xegpu-to-visa`: lowers kernels of XeGPU and upstream dialects to vISA."""

from dataclasses import dataclass

from mlir import ir

from xegpu_py.ir.bodies import Bodies
from xegpu_py.ir.passes import BodyPass, register_pass
from xegpu_py.passes.common.kernels import GRID_LIMIT


@register_pass("xegpu-to-visa")
@dataclass
class XeGPUToVisa(BodyPass):
    """Lower kernels in VC mode to vISA.

    Every `gpu.func` with the attribute `kernel` is lowered, for the GPU that `target` names, or else `visa.target` of
    the kernel or of an op around it. Its signature does not change. Its arguments become inputs: a memref becomes its
    address and its dynamic extents and strides. Host functions do not change. With `kernel` only the kernel of that
    name is lowered. An op that the target does not support is an error; the rules are those of xegpu-verify-target.

    `index` has 64 bits. A value takes 32 bits in registers if its range fits. Range analysis starts from limits that
    every launch must satisfy: an array spans at most `max-bytes` bytes, which also limits its extents and strides; an
    argument of type index has an absolute value of at most `max-index`; a grid has at most `max-grid` workgroups in
    each dimension. 0 means no limit. The kernel records them as `visa.limits`.

        gpu.func @double(%m: memref<16xf32>) kernel {
          %d = xegpu.create_nd_tdesc %m[0] {mode = vc} : memref<16xf32> -> !xegpu.tensor_desc<16xf32, ...>
          %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<16xf32, ...> -> vector<16xf32>
          %y = arith.addf %x, %x : vector<16xf32>
          xegpu.store_nd %y, %d {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32, ...>
          gpu.return
        }

    becomes

        gpu.func @double(%m: memref<16xf32>) kernel attributes {visa.attributes = {SimdSize = 16 : i64, ...}} {
          %in0 = visa.decl "in0", uq x 1, align = qword
          %v1 = visa.decl "v1", f x 16, align = GRF
          %v2 = visa.decl "v2", f x 16, align = GRF
          visa.input %in0, offset = 64, size = 8
          visa.lsc_load.ugm (M1_NM, 1) %v1[0]:d32x16t flat[%in0[0]]:a64
          visa.add (M1_NM, 16) %v2(0,0)<1> %v1(0,0)<1;1,0> %v1(0,0)<1;1,0>
          visa.lsc_store.ugm (M1_NM, 1) flat[%in0[0]]:a64 %v2[0]:d32x16t
          visa.ret (M1, 1)
          gpu.return
        }
    """

    target: str = ""
    kernel: str = ""
    max_bytes: int = 0
    max_index: int = 0
    max_grid: int = GRID_LIMIT

    def run_with(self, op: ir.Operation, bodies: Bodies) -> None:
        # The rules are imported here to keep the start of the tools fast.
        from xegpu_py.dialects import visa
        from xegpu_py.passes.common.gpu_functions import target_for
        from xegpu_py.passes.common.ranges import Limits
        from xegpu_py.passes.common.target_rules import verify
        from xegpu_py.passes.xegpu_to_visa.kernel import lower_kernel

        wanted = [
            f for f in visa.kernels(op) if self.kernel in ("", visa.name_of(f)) and not visa.is_lowered(f, bodies)
        ]
        chosen = [(func, target_for(func, self.target, op)) for func in wanted]
        verify(chosen)
        for func, gpu in chosen:
            if self.target:
                func.attributes[visa.TARGET] = ir.StringAttr.get(self.target, func.context)
            limits = {"bytes": self.max_bytes, "index": self.max_index, "grid": self.max_grid}
            text = ", ".join(f"{name} = {n} : i64" for name, n in limits.items())
            func.attributes[visa.LIMITS] = ir.Attribute.parse(f"{{{text}}}", func.context)
            program = lower_kernel(func, gpu, Limits(self.max_bytes, self.max_index, self.max_grid))
            bodies.put(func, visa.KernelBody(program))
