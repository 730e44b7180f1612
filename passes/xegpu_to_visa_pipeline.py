"""`xegpu-to-visa-pipeline`: all passes from XeGPU to vISA with registers allocated."""

from dataclasses import dataclass

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xegpu-to-visa-pipeline")
@dataclass
class XeGPUToVisaPipeline(Pass):
    """Lower kernels of XeGPU to vISA: xegpu-simt-to-vc, canonicalize, cse, xegpu-dce, xegpu-to-visa, visa-allocate.

        xegpu-opt gemm.mlir --xegpu-to-visa-pipeline='target=pvcxt grf=256'

    is

        xegpu-opt gemm.mlir --xegpu-simt-to-vc --canonicalize --cse --xegpu-dce --xegpu-to-visa='target=pvcxt'
          --visa-allocate='grf=256'

    With `kernel` only the kernel of that name is lowered.
    """

    target: str = ""
    kernel: str = ""
    grf: int = 0
    strict: bool = False

    def steps(self) -> str:
        given = {"target": self.target, "kernel": self.kernel}
        options = " ".join(f"{name}={value}" for name, value in given.items() if value)
        allocate = f"{{grf={self.grf} strict={str(self.strict).lower()}}}"
        simt = f"{{kernel={self.kernel}}}" if self.kernel else ""
        return f"xegpu-simt-to-vc{simt},canonicalize,cse,xegpu-dce,xegpu-to-visa{{{options}}},visa-allocate{allocate}"
