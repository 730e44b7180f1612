"""Kernels of a project that checks its types: each `type: ignore` is at a mistake that a checker must find."""

from typing import Annotated, Any

import numpy as np

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr


@xegpu_py.function
def clipped(x: xl.Value, most: Constexpr = 1.0) -> Any:
    return xl.minimum(x, most)


@xegpu_py.jit
def add(X: xl.Array, Y: xl.Array, n: int, weight: Annotated[float, xl.float16], BLOCK: Constexpr = 64) -> None:
    for half in xl.static_range(2):
        i = xl.program_id(0) * BLOCK + half * (BLOCK // 2) + xl.arange(0, BLOCK // 2)
        x = xl.load(X + i, mask=i < n, other=0.0)
        xl.store(Y + i, clipped(x * weight + x.sum(), BLOCK), mask=i < n)


@xegpu_py.jit(target="bmg", check=("races", "bounds"), do_not_specialize=["m"])
def gemm(A: xl.Array, B: xl.Array, C: xl.Array, m: int, SHAPE: Constexpr = (16, 16), MAP: Constexpr = None) -> None:
    row = xl.program_id(0) * SHAPE[0]
    acc = xl.zeros(SHAPE, dtype=xl.float32, map=MAP)
    for k in range(0, A.shape[1], 16):
        acc += A.tile((SHAPE[0], 16), at=(row, k)).load() @ B.tile((16, SHAPE[1]), at=(k, 0)).load()
    C.tile(SHAPE, at=(row, 0)).store(acc)


def run() -> str:
    x = np.full(100, 0.25, np.float32)
    y = np.zeros_like(x)
    add[xegpu_py.cdiv(x.size, 64)](x, y, x.size, 0.5)
    a = np.ones((32, 16)).astype(xl.bfloat16)
    b, c = np.ones((16, 16), xl.bfloat16), np.zeros((32, 16), np.float32)
    statistics = gemm.with_options(target="pvc").compile(a, b, c, 32)(a, b, c, 32, grid=2)
    kernel: xegpu_py.Kernel = xegpu_py.compile(str(gemm.compile(a, b, c, 32).ir("xetile")), engine="interpreter")
    return f"{y[0]} {c[0, 0]} {statistics.threads} {kernel.name}"


def mistakes() -> None:
    xegpu_py.jit(run, trget="bmg")  # type: ignore[call-overload]
    xegpu_py.jit(engine="gpu")  # type: ignore[call-overload]
    gemm.with_options(registers="all")  # type: ignore[arg-type]
    xegpu_py.compile("a.mlir", progres=True)  # type: ignore[call-overload]
    xl.lod(1)  # type: ignore[attr-defined]
    xl.zeros("16")  # type: ignore[arg-type]
    add.profil()  # type: ignore[attr-defined]
