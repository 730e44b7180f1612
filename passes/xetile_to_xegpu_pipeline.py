"""`xetile-to-xegpu-pipeline`: all passes from XeTile to XeGPU."""

from dataclasses import dataclass

from xegpu_py.ir.passes import Pass, register_pass


@register_pass("xetile-to-xegpu-pipeline")
@dataclass
class XeTileToXeGPUPipeline(Pass):
    """Lower kernels of XeTile, of workgroups or of subgroups, to XeGPU in vector compute mode.

        xegpu-opt gemm.mlir --xetile-to-xegpu-pipeline='target=pvcxt prefetch-distance=2'

    is

        xegpu-opt gemm.mlir --xegpu-inline --xetile-infer-layout --xetile-prefetch='distance=2' --xetile-wg-to-sg
          --canonicalize --cse --xetile-blocking='target=pvcxt' --canonicalize --cse --xegpu-dce
          --xetile-to-xegpu='target=pvcxt' --canonicalize --cse --xegpu-dce
    """

    target: str = ""
    prefetch_distance: int = 0

    def steps(self) -> str:
        target = f"{{target={self.target}}}" if self.target else ""
        prefetch = f"xetile-prefetch{{distance={self.prefetch_distance}}}," if self.prefetch_distance else ""
        return (
            f"xegpu-inline,xetile-infer-layout,{prefetch}xetile-wg-to-sg,canonicalize,cse,xetile-blocking{target},"
            f"canonicalize,cse,xegpu-dce,xetile-to-xegpu{target},canonicalize,cse,xegpu-dce"
        )
