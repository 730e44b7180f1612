"""`xegpu-to-visa-pipeline`: all passes from XeGPU to vISA with registers allocated."""

from dataclasses import dataclass

from xegpu_py.ir.passes import Pass, register_pass

_CLEAN = "canonicalize,cse,xegpu-dce"


@register_pass("xegpu-to-visa-pipeline")
@dataclass
class XeGPUToVisaPipeline(Pass):
    """Lower kernels of XeGPU to vISA: all passes from XeGPU in either mode to allocated registers.

        xegpu-opt gemm.mlir --xegpu-to-visa-pipeline='target=pvcxt grf=256'

    is

        xegpu-opt gemm.mlir --xegpu-simt-to-vc --vector-to-xegpu --canonicalize --cse --xegpu-dce
          --xegpu-legalize='target=pvcxt' --canonicalize --cse --xegpu-dce --xegpu-verify-target='target=pvcxt'
          --xegpu-to-visa='target=pvcxt' --visa-optimize='grf=256' --visa-allocate='grf=256'

    `optimize=false` leaves visa-optimize out.
    """

    target: str = ""
    grf: int = 0
    optimize: bool = True
    strict: bool = False

    def steps(self) -> str:
        target = f"{{target={self.target}}}" if self.target else ""
        passes = [
            f"xegpu-simt-to-vc,vector-to-xegpu,{_CLEAN}",
            f"xegpu-legalize{target},{_CLEAN},xegpu-verify-target{target}",
            f"xegpu-to-visa{target}",
            *([f"visa-optimize{{grf={self.grf}}}"] if self.optimize else []),
            f"visa-allocate{{grf={self.grf} strict={str(self.strict).lower()}}}",
        ]
        return ",".join(passes)
