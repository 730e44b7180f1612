"""`xegpu-to-visa-pipeline`: all passes from XeGPU to vISA with registers allocated."""

from dataclasses import dataclass

from xegpu_py.passes.common.kernels import CLEAN, GRID_LIMIT

from xegpu_py.ir.passes import Pass, register_pass, step

_CLEAN = f"{CLEAN},xegpu-dce"
_ABOVE = (
    "xegpu-lift-cf", "xegpu-inline", "xegpu-lower-loops", "vector-lower-contract", "xegpu-emulate-narrow-types",
    "xegpu-simt-to-vc", "vector-to-xegpu",
)  # fmt: skip
"""The passes before xegpu-legalize."""


@register_pass("xegpu-to-visa-pipeline")
@dataclass
class XeGPUToVisaPipeline(Pass):
    """Lower kernels of XeGPU to vISA: all passes from XeGPU in either mode to allocated registers.

        xegpu-opt gemm.mlir --xegpu-to-visa-pipeline='target=pvcxt grf=256'

    is

        xegpu-opt gemm.mlir --xegpu-lift-cf --xegpu-inline --xegpu-lower-loops --vector-lower-contract
          --xegpu-emulate-narrow-types --xegpu-simt-to-vc --vector-to-xegpu
          --canonicalize='top-down=false' --cse --xegpu-dce --xegpu-legalize='target=pvcxt'
          --canonicalize='top-down=false' --cse --xegpu-dce
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
        common = {"target": self.target, "kernel": self.kernel}
        limits = {"max_bytes": self.max_bytes, "max_index": self.max_index, "max_grid": self.max_grid}
        passes = [
            *(step(name, kernel=self.kernel) for name in _ABOVE),
            _CLEAN,
            step("xegpu-legalize", unaligned=self.unaligned, **common),
            _CLEAN,
            step("xegpu-to-visa", **common, **limits),
            *([step("visa-optimize", grf=self.grf)] if self.optimize else []),
            step("visa-allocate", grf=self.grf, strict=self.strict),
        ]
        return ",".join(passes)
