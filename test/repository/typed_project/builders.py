"""IR that a project builds with the dialects' builders, whose parameters stubs give."""

from mlir import ir

import xegpu_py
from xegpu_py import build
from xegpu_py.dialects import xegpu, xetile


def copied(rows: int) -> xegpu_py.Module:
    block = xegpu.TensorDesc((rows, 16), "f16")
    with build.module() as module, build.gpu_module("kernels"):
        with build.kernel("copy", "memref<64x64xf16>", "memref<64x64xf16>") as (src, dst):
            src_block = xegpu.create_nd_tdesc(src, [0, 16], tdesc=block, mode=xegpu.Mode.VC)
            dst_block = xegpu.create_nd_tdesc(dst, [0, 16], tdesc=block, mode="vc")
            xegpu.store_nd(xegpu.load_nd(src_block, mode="vc", l1_hint="cached"), dst_block, mode="vc")
    return module


def run() -> str:
    return f"{len(copied(8).ops(xegpu.LoadNdOp))} {xetile.Tile((8, 16), 'f16').shape}"


def mistakes(value: ir.Value) -> None:
    xegpu.load_nd(value, l1_hint="cold")  # type: ignore[arg-type]
    xegpu.load_nd(value, l4_hint="cached")  # type: ignore[call-arg]
    xegpu.dpas(value)  # type: ignore[call-arg]
    xegpu.dpsa(value, value)  # type: ignore[attr-defined]
    xegpu.create_nd_tdesc(value, offsets=3)  # type: ignore[arg-type]
