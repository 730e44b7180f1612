"""`xetile-to-visa-pipeline`: all passes from XeTile to vISA with registers allocated."""

from dataclasses import dataclass

from xegpu_py.passes.common.kernels import GRID_LIMIT

from xegpu_py.ir.passes import Pass, register_pass


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
        above = f"target={self.target} " if self.target else ""
        above += f"grf={self.grf} "
        ahead = f"prefetch-distance={self.prefetch_distance} load-ahead={str(self.load_ahead).lower()}"
        kernel = f"kernel={self.kernel} " if self.kernel else ""
        most = f"max-bytes={self.max_bytes} max-index={self.max_index} max-grid={self.max_grid}"
        return (
            f"xetile-to-xegpu-pipeline{{{above}{ahead}}},"
            f"xegpu-to-visa-pipeline{{{above}{kernel}optimize={str(self.optimize).lower()} "
            f"strict={str(self.strict).lower()} {most}}}"
        )
