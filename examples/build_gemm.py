"""Builds the GEMM of gemm.mlir with Python builders, and prints it.

C = A x B for bf16 matrices with f32 accumulation: each subgroup computes one 8x16 tile of C, 16 columns of A and 16
rows of B at a time. Upstream's builders and ours are used together.
"""

from mlir.dialects import arith, gpu, scf
from mlir.extras import types as T

from xegpu_py import build
from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import TensorDesc


def main():
    with build.module() as module, build.gpu_module("kernels"):
        gemm(1024, 1024, 1024)
    print(module, end="")


def gemm(M, N, K):
    with build.kernel("gemm", f"memref<{M}x{K}xbf16>", f"memref<{K}x{N}xbf16>", f"memref<{M}x{N}xf32>") as (A, B, C):
        zero, tile_m, tile_n, end = (arith.constant(T.index(), n) for n in (0, 8, 16, K))
        tile_k = tile_n
        row, column = gpu.block_id(gpu.Dimension.x), gpu.block_id(gpu.Dimension.y)
        m, n = arith.muli(row, tile_m), arith.muli(column, tile_n)

        c_block = xegpu.create_nd_tdesc(C, [m, n], tdesc=TensorDesc((8, 16), "f32"), mode="vc")
        c = xegpu.load_nd(c_block, mode="vc")
        for k, acc, c_sum in scf.for_(zero, end, tile_k, iter_args=[c]):
            a_block = xegpu.create_nd_tdesc(A, [m, k], tdesc=TensorDesc((8, 16), "bf16"), mode="vc")
            b_block = xegpu.create_nd_tdesc(B, [k, n], tdesc=TensorDesc((16, 16), "bf16"), mode="vc")
            a = xegpu.load_nd(a_block, mode="vc", vnni_axis=1)
            b = xegpu.load_nd(b_block, mode="vc", vnni_axis=0)
            scf.yield_([xegpu.dpas(a, b, acc, mode="vc")])
        xegpu.store_nd(c_sum, c_block, mode="vc")


if __name__ == "__main__":
    main()
