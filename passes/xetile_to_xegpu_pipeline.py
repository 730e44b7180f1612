"""`xetile-to-xegpu-pipeline`: all passes from XeTile to XeGPU."""

from dataclasses import dataclass

from xegpu_py.passes.common.kernels import CLEAN

from xegpu_py.ir.passes import Pass, register_pass, step


@register_pass("xetile-to-xegpu-pipeline")
@dataclass
class XeTileToXeGPUPipeline(Pass):
    """Lower kernels of XeTile, of workgroups or of subgroups, to XeGPU in vector compute mode.

        xegpu-opt gemm.mlir --xetile-to-xegpu-pipeline='target=pvcxt grf=256 prefetch-distance=2 load-ahead=true'

    is

        xegpu-opt gemm.mlir --xegpu-lift-cf --xegpu-inline --xegpu-lower-loops --xegpu-dce --xetile-infer-layout
          --xetile-prefetch='target=pvcxt distance=2' --xetile-wg-to-sg='target=pvcxt' CLEAN
          --xetile-to-xegpu CLEAN --xegpu-dce --xegpu-legalize='target=pvcxt load-ahead=true' CLEAN --xegpu-dce
          --xegpu-load-ahead='target=pvcxt grf=256' CLEAN --xegpu-dce

    where CLEAN is --canonicalize='top-down=false' --cse.

    `prefetch-distance` and `load-ahead` are options: without them loads are neither prefetched nor issued ahead, and
    XeGPU keeps the sizes of the tiles, but in kernels with a loop that has the attribute `xetile.load_ahead`.
    """

    target: str = ""
    grf: int = 0
    prefetch_distance: int = 0
    load_ahead: bool = False

    def steps(self) -> str:
        target, marked = self.target, not self.load_ahead
        prefetch = step("xetile-prefetch", target=target, distance=self.prefetch_distance)
        ahead = [
            step("xegpu-legalize", target=target, load_ahead=True, marked=marked),
            step("xegpu-load-ahead", target=target, grf=self.grf, marked=marked),
        ]
        steps = [
            "xegpu-lift-cf,xegpu-inline,xegpu-lower-loops,xegpu-dce,xetile-infer-layout",
            *([prefetch] if self.prefetch_distance else []),
            f"{step('xetile-wg-to-sg', target=target)},{CLEAN},xetile-to-xegpu,{CLEAN},xegpu-dce",
            *(ahead if marked else [f"{pass_},{CLEAN},xegpu-dce" for pass_ in ahead]),
        ]
        return ",".join(steps)
