"""`xegpu-to-visa-pipeline`: all passes from XeGPU to vISA with registers allocated."""

from dataclasses import dataclass

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xegpu-to-visa-pipeline")
@dataclass
class XeGPUToVisaPipeline(Pass):
    """Lower kernels of XeGPU to vISA: legalized for the target and held against its limits, then instructions.

        xegpu-opt gemm.mlir --xegpu-to-visa-pipeline='target=pvcxt grf=256'

    is

        xegpu-opt gemm.mlir --canonicalize --cse --xegpu-dce --xegpu-legalize='target=pvcxt' --canonicalize --cse
          --xegpu-dce --xegpu-verify-target='target=pvcxt' --xegpu-to-visa='target=pvcxt' --visa-allocate='grf=256'
    """

    target: str = ""
    grf: int = 0
    strict: bool = False

    def steps(self) -> str:
        target = f"{{target={self.target}}}" if self.target else ""
        allocate = f"{{grf={self.grf} strict={str(self.strict).lower()}}}"
        clean = "canonicalize,cse,xegpu-dce"
        fit = f"xegpu-legalize{target},{clean},xegpu-verify-target{target}"
        return f"{clean},{fit},xegpu-to-visa{target},visa-allocate{allocate}"
