"""`xetile-to-visa-pipeline`: all passes from XeTile to vISA with registers allocated."""

import dataclasses
from dataclasses import dataclass

from xegpu_py.passes.common.kernels import GRID_LIMIT

from xegpu_py.ir.passes import Pass, register_pass, step


@register_pass("xetile-to-visa-pipeline")
@dataclass
class XeTileToVisaPipeline(Pass):
    """Lower kernels of XeTile to vISA: xetile-to-xegpu-pipeline, then xegpu-to-visa-pipeline.

    xegpu-opt gemm.mlir --xetile-to-visa-pipeline='target=pvcxt grf=256'

    With `kernel` only the kernel of that name is lowered from XeGPU to vISA.
    """

    target: str = ""
    kernel: str = ""
    grf: int = 0
    optimize: bool = True
    strict: bool = False
    prefetch_distance: int = 0
    load_ahead: bool = False
    max_bytes: int = 0
    max_index: int = 0
    max_grid: int = GRID_LIMIT

    def steps(self) -> str:
        given = dataclasses.asdict(self)
        return ",".join(step(name, **given) for name in ("xetile-to-xegpu-pipeline", "xegpu-to-visa-pipeline"))
