"""`xegpu-to-visa-pipeline`: all passes from XeGPU to vISA with registers allocated."""

from dataclasses import dataclass

from xegpu_py.passes.common.kernels import CLEAN, GRID_LIMIT

from xegpu_py.ir.passes import Pass, register_pass

_CLEAN = f"{CLEAN},xegpu-dce"


@register_pass("xegpu-to-visa-pipeline")
@dataclass
class XeGPUToVisaPipeline(Pass):
    """Lower kernels of XeGPU to vISA: all passes from XeGPU in either mode to allocated registers.

        xegpu-opt gemm.mlir --xegpu-to-visa-pipeline='target=pvcxt grf=256'

    is

        xegpu-opt gemm.mlir --xegpu-lift-cf --xegpu-inline --xegpu-lower-loops --vector-lower-contract
          --xegpu-emulate-narrow-types --xegpu-simt-to-vc --vector-to-xegpu
          --canonicalize='top-down=false' --cse --xegpu-dce --xegpu-legalize='target=pvcxt'
          --canonicalize='top-down=false' --cse --xegpu-dce --xegpu-verify-target='target=pvcxt'
          --xegpu-to-visa='target=pvcxt' --visa-optimize='grf=256' --visa-allocate='grf=256'

    `max-bytes`, `max-index` and `max-grid` are those of xegpu-to-visa, `unaligned` is that of xegpu-legalize.
    `optimize=false` leaves visa-optimize out. With `kernel` only the kernel of that name is lowered.
    """

    target: str = ""
    kernel: str = ""
    grf: int = 0
    optimize: bool = True
    strict: bool = False
    unaligned: bool = False
    max_bytes: int = 0
    max_index: int = 0
    max_grid: int = GRID_LIMIT

    def steps(self) -> str:
        one = f"{{kernel={self.kernel}}}" if self.kernel else ""
        given = {"target": self.target, "kernel": self.kernel}
        options = " ".join(f"{name}={value}" for name, value in given.items() if value)
        most = {"bytes": (self.max_bytes, 0), "index": (self.max_index, 0), "grid": (self.max_grid, GRID_LIMIT)}
        last = " ".join([options, *(f"max-{what}={n}" for what, (n, usual) in most.items() if n != usual)]).strip()
        legalize = f"xegpu-legalize{{{options} unaligned={str(self.unaligned).lower()}}}"
        passes = [
            f"xegpu-lift-cf{one},xegpu-inline{one},xegpu-lower-loops{one},vector-lower-contract{one}",
            f"xegpu-emulate-narrow-types{one},xegpu-simt-to-vc{one},vector-to-xegpu{one},{_CLEAN}",
            f"{legalize},{_CLEAN},xegpu-verify-target{{{options}}}",
            f"xegpu-to-visa{{{last}}}",
            *([f"visa-optimize{{grf={self.grf}}}"] if self.optimize else []),
            f"visa-allocate{{grf={self.grf} strict={str(self.strict).lower()}}}",
        ]
        return ",".join(passes)
