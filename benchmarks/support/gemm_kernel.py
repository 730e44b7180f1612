"""A GEMM of XeTile: workgroup tiles of 256x256, divided among 8x4 subgroups with 32x64 each."""

from __future__ import annotations

from dataclasses import dataclass

TILE = 256
SUBGROUPS = 32
BITS = {"bf16": 16, "f16": 16, "tf32": 32, "i8": 8, "f8E5M2": 8, "f8E4M3FN": 8}

_TEXT = """\
gpu.module @kernels {{
  gpu.func @gemm(%A: memref<{n}x{n}x{e}>, %B: memref<{n}x{n}x{e}>, %C: memref<{n}x{n}x{r}>) kernel {{
    %c0 = arith.constant 0 : index
    %K = arith.constant {n} : index
    %step = arith.constant {k} : index
    %c256 = arith.constant 256 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %y, %c256 : index
    %n = arith.muli %x, %c256 : index
    %zero = arith.constant {{map = #xetile.wg_map<sg_layout = [8, 4], sg_data = [32, 64]>}} dense<{zero}> : !c
    %a0 = xetile.init_tile %A[%m, 0] : memref<{n}x{n}x{e}> -> !xetile.tile<256x{k}x{e}>
    %b0 = xetile.init_tile %B[0, %n] : memref<{n}x{n}x{e}> -> !xetile.tile<{k}x256x{e}>
    %r:3 = scf.for %at = %c0 to %K step %step iter_args(%sum = %zero, %a = %a0, %b = %b0)
        -> (!c, !xetile.tile<256x{k}x{e}>, !xetile.tile<{k}x256x{e}>) {{
      %va = xetile.load_tile %a : !xetile.tile<256x{k}x{e}> -> vector<256x{k}x{e}>
      %vb = xetile.load_tile %b : !xetile.tile<{k}x256x{e}> -> vector<{k}x256x{e}>
      %next = xetile.tile_mma %va, %vb, %sum : vector<256x{k}x{e}>, vector<{k}x256x{e}>, !c -> !c
      %a1 = xetile.update_tile_offset %a, [0, {k}] : !xetile.tile<256x{k}x{e}>
      %b1 = xetile.update_tile_offset %b, [{k}, 0] : !xetile.tile<{k}x256x{e}>
      scf.yield %next, %a1, %b1 : !c, !xetile.tile<256x{k}x{e}>, !xetile.tile<{k}x256x{e}>
    }}
    %c = xetile.init_tile %C[%m, %n] : memref<{n}x{n}x{r}> -> !xetile.tile<256x256x{r}>
    xetile.store_tile %r#0, %c : !c, !xetile.tile<256x256x{r}>
    gpu.return
  }}
}}
"""


@dataclass(frozen=True)
class GemmKernel:
    """C = A x B, of sizes that the workgroup's tile divides.

    Attributes:
        dtype: MLIR's element type of A and B.
        size: M, N and K.
    """

    dtype: str
    size: int

    @property
    def result(self) -> str:
        """The element type of C."""
        return "i32" if self.dtype == "i8" else "f32"

    @property
    def target(self) -> str:
        """A GPU that multiplies such matrices."""
        return "any" if self.dtype.startswith("f8") else "pvcxt"

    @property
    def grid(self) -> tuple[int, int]:
        """The numbers of workgroups."""
        return self.size // TILE, self.size // TILE

    @property
    def block(self) -> int:
        """The numbers of subgroups of a workgroup."""
        return SUBGROUPS

    def text(self) -> str:
        """The module. A step along K is two depths of DPAS, 64 bytes of each row of A."""
        text = _TEXT.format(
            n=self.size, k=512 // BITS[self.dtype], e=self.dtype, r=self.result, zero=0 if self.dtype == "i8" else "0.0"
        )
        return text.replace("!c", f"vector<256x256x{self.result}>")
