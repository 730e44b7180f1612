"""The pipelines: from XeTile to XeGPU, from XeGPU to vISA, and both."""

import dataclasses

from xegpu_py.ir.passes import Pipeline, register_pass, step
from xegpu_py.passes.analysis.ir_queries import CLEANUP
from xegpu_py.target import GRID_LIMIT


@register_pass("xetile-to-xegpu-pipeline")
class XeTileToXeGPUPipeline(Pipeline):
    """All passes from XeTile to XeGPU.

    Kernels of workgroups or of subgroups become XeGPU in vector compute mode.

        xegpu-opt gemm.mlir --xetile-to-xegpu-pipeline='target=pvcxt grf=256 prefetch-distance=2 load-ahead=true'

    is

        xegpu-opt gemm.mlir --xegpu-lift-cf --xegpu-inline --xegpu-lower-loops
          --xetile-split-stacks --xegpu-dce --xetile-scattered-to-tiles='target=pvcxt' --xegpu-dce --xetile-infer-layout
          --xetile-prefetch='target=pvcxt distance=2' --xetile-wg-to-sg='target=pvcxt' --vector-lower-contract CLEAN
          --xetile-to-xegpu='target=pvcxt' CLEAN --xegpu-dce --xegpu-expand-rows='target=pvcxt'
          --xegpu-legalize='target=pvcxt load-ahead=true' CLEAN
          --xegpu-dce --xegpu-load-ahead='target=pvcxt grf=256' CLEAN --xegpu-dce

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
        lower = step("xetile-to-xegpu", target=target)
        ahead = [
            step("xegpu-legalize", target=target, load_ahead=True, marked=marked),
            step("xegpu-load-ahead", target=target, grf=self.grf, marked=marked),
        ]
        steps = [
            "xegpu-lift-cf,xegpu-inline,xegpu-lower-loops,xetile-split-stacks,xegpu-dce",
            f"{step('xetile-scattered-to-tiles', target=target)},xegpu-dce,xetile-infer-layout",
            *([prefetch] if self.prefetch_distance else []),
            f"{step('xetile-wg-to-sg', target=target)},vector-lower-contract,{CLEANUP},{lower},{CLEANUP},xegpu-dce",
            step("xegpu-expand-rows", target=target),
            *(ahead if marked else [f"{pass_},{CLEANUP},xegpu-dce" for pass_ in ahead]),
        ]
        return ",".join(steps)


@register_pass("xegpu-legalize", "xetile-blocking")
class XeGPULegalize(Pipeline):
    """Fit arithmetic and blocks to the target.

    These passes rewrite ops as ops for which the target has one message or instruction.

        xegpu-opt gemm.mlir --xegpu-legalize='target=pvc'

    is

        xegpu-opt gemm.mlir --xegpu-expand-arith='target=pvc' --xegpu-join-blocks='target=pvc'
          --xegpu-lower-unaligned-blocks='target=pvc' --xegpu-unroll='target=pvc'

    An addition of vectors of bf16, for example, becomes conversions and an addition in f32, and then additions of
    vectors that an instruction adds. Kernels with XeTile ops are not changed. With `marked` only kernels that have a
    loop with the attribute `xetile.load_ahead` are changed, and `load-ahead` is that of xegpu-unroll.

    Unknown extents, strides and offsets of tensors are assumed to satisfy the rules of 2D block messages, except for
    the arguments in the kernel's attribute `xegpu.unaligned = array<i64: 0, 2>`; with `unaligned`, for no argument. An
    array spans at most `max-bytes` bytes, which limits the rows of a matrix of known pitch; 0 means no limit.

    The pipeline is also registered as `xetile-blocking`.
    """

    target: str = ""
    kernel: str = ""
    unaligned: bool = False
    load_ahead: bool = False
    marked: bool = False
    max_bytes: int = 0

    def steps(self) -> str:
        options = dataclasses.asdict(self)
        names = ("xegpu-expand-arith", "xegpu-join-blocks", "xegpu-lower-unaligned-blocks", "xegpu-unroll")
        return ",".join(step(name, **options) for name in names)


_CLEAN = f"{CLEANUP},xegpu-dce"

_ABOVE = (
    "xegpu-lift-cf", "xegpu-inline", "xegpu-lower-loops", "vector-lower-contract", "xegpu-emulate-narrow-types",
    "xegpu-simt-to-vc", "vector-to-xegpu",
)  # fmt: skip
"""The passes before xegpu-legalize."""


@register_pass("xegpu-to-visa-pipeline")
class XeGPUToVisaPipeline(Pipeline):
    """All passes from XeGPU to vISA with registers.

    The kernels may be in either mode.

        xegpu-opt gemm.mlir --xegpu-to-visa-pipeline='target=pvcxt grf=256'

    is

        xegpu-opt gemm.mlir --xegpu-lift-cf --xegpu-inline --xegpu-lower-loops --vector-lower-contract
          --xegpu-emulate-narrow-types --xegpu-simt-to-vc --vector-to-xegpu
          --canonicalize='top-down=false' --cse --xegpu-dce --xegpu-strength-reduce='target=pvcxt'
          --xegpu-legalize='target=pvcxt'
          --int-range-optimizations --canonicalize='top-down=false' --cse --xegpu-dce
          --xegpu-to-visa='target=pvcxt' --visa-optimize='grf=256' --visa-allocate='grf=256'

    `max-bytes`, `max-index` and `max-grid` are those of xegpu-simt-to-vc, xegpu-strength-reduce and xegpu-to-visa,
    `unaligned` and `max-bytes` are those of xegpu-legalize. `optimize=false` leaves visa-optimize out. With `kernel`
    only the kernel of that name is lowered.
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
            *(step(name, kernel=self.kernel, **limits) for name in _ABOVE),
            _CLEAN,
            step("xegpu-strength-reduce", **common, **limits),
            step("xegpu-legalize", unaligned=self.unaligned, max_bytes=self.max_bytes, **common),
            f"int-range-optimizations,{_CLEAN}",
            step("xegpu-to-visa", **common, **limits),
            *([step("visa-optimize", grf=self.grf)] if self.optimize else []),
            step("visa-allocate", grf=self.grf, strict=self.strict),
        ]
        return ",".join(passes)


@register_pass("xetile-to-visa-pipeline")
class XeTileToVisaPipeline(Pipeline):
    """All passes from XeTile to vISA with registers.

    These are xetile-to-xegpu-pipeline and xegpu-to-visa-pipeline.

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
        options = dataclasses.asdict(self)
        return ",".join(step(name, **options) for name in ("xetile-to-xegpu-pipeline", "xegpu-to-visa-pipeline"))
