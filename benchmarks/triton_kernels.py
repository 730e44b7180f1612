"""Triton kernels on this project's backend, on Triton's own interpreter, and the same in PyTorch on the CPU.

    python benchmarks/triton_kernels.py [KERNEL...]

Each time is the least of several runs, by the clock, after a first run that compiles. `TRITON_INTERPRET=1` runs in a
process of its own. The last line is the geometric mean of the interpreter's times over ours.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from support.processes import missing

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as lacking:
    raise missing(lacking.name or "triton", how="pip install torch triton") from None


@triton.jit
def add(X, Y, Z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(Z + i, tl.load(X + i, mask=mask) + tl.load(Y + i, mask=mask), mask=mask)


@triton.jit
def softmax(X, Y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(X + row * stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(Y + row * stride + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def layer_norm(X, Y, W, B, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(X + row * stride + i, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n
    d = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + eps)
    w, b = tl.load(W + i, mask=mask), tl.load(B + i, mask=mask)
    tl.store(Y + row * stride + i, d * scale * w + b, mask=mask)


@triton.jit
def matmul(
    A, B, C, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = A + m[:, None] * sam + k[None, :] * sak
    b = B + k[:, None] * sbk + n[None, :] * sbn
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(tl.cdiv(K, BK)):
        x = tl.load(a, mask=(m[:, None] < M) & (k[None, :] < K - i * BK), other=0.0)
        y = tl.load(b, mask=(k[:, None] < K - i * BK) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK * sak
        b += BK * sbk
    tl.store(C + m[:, None] * scm + n[None, :] * scn, acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def attention(Q, K, V, OUT, stride, count, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    start = tl.program_id(1) * stride
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n, d = tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(Q + start + m[:, None] * D + d[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for first in range(0, count, BN):
        k = tl.load(K + start + (first + n)[None, :] * D + d[:, None])
        s = tl.dot(q, k) * scale
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        old = tl.exp2(most - now)
        total = total * old + tl.sum(p, 1)
        v = tl.load(V + start + (first + n)[:, None] * D + d[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * old[:, None])
        most = now
    tl.store(OUT + start + m[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


Run = Callable[[], Any]


def cases() -> dict[str, tuple[Run, Run, Callable[[], float]]]:
    """The kernels by name: a launch, the same by PyTorch, and the greatest difference of their results."""
    torch.manual_seed(0)
    n = 1 << 20
    x, y, z = torch.rand(n), torch.rand(n), torch.empty(n)
    rows = torch.randn(256, 781)
    out, norm = torch.empty_like(rows), torch.empty_like(rows)
    w, b = torch.rand(781), torch.rand(781)
    left, right = (torch.randn(512, 512).half() for _ in range(2))
    c = torch.empty(512, 512, dtype=torch.float16)
    q, k, v = (torch.randn(4, 256, 64).half() for _ in range(3))
    o = torch.empty_like(q)

    def difference(a: torch.Tensor, other: torch.Tensor) -> float:
        return float((a.float() - other.float()).abs().max())

    return {
        "add": (
            lambda: add[(n // 1024,)](x, y, z, n, BLOCK=1024),
            lambda: torch.add(x, y),
            lambda: difference(z, x + y),
        ),
        "softmax": (
            lambda: softmax[(256,)](rows, out, 781, 781, BLOCK=1024),
            lambda: torch.softmax(rows, 1),
            lambda: difference(out, torch.softmax(rows, 1)),
        ),
        "layer_norm": (
            lambda: layer_norm[(256,)](rows, norm, w, b, 781, 781, 1e-5, BLOCK=1024),
            lambda: torch.nn.functional.layer_norm(rows, (781,), w, b),
            lambda: difference(norm, torch.nn.functional.layer_norm(rows, (781,), w, b)),
        ),
        "matmul": (
            lambda: matmul[(8, 8)](left, right, c, 512, 512, 512, 512, 1, 512, 1, 512, 1, BM=64, BN=64, BK=32),
            lambda: torch.matmul(left.float(), right.float()),
            lambda: difference(c, left.float() @ right.float()),
        ),
        "attention": (
            lambda: attention[(4, 4)](q, k, v, o, 256 * 64, 256, 0.125 * 1.44269504, BM=64, BN=32, D=64),
            lambda: torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float()),
            lambda: difference(o, torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float())),
        ),
    }


def least(run: Run, count: int) -> float:
    """The least time of several runs in milliseconds, after a first one."""
    run()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help="by default all")
    args = parser.parse_args()
    torch.set_num_threads(1)
    found = {name: case for name, case in cases().items() if not args.kernels or name in args.kernels}
    if os.environ.get("TRITON_INTERPRET") == "1":
        print(json.dumps({name: least(run, 1) for name, (run, *_) in found.items()}))
        return
    command = [sys.executable, __file__, *found]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    interpreted = json.loads(text.splitlines()[-1])
    print(f"{'kernel':12} {'ours, ms':>9} {'TRITON_INTERPRET':>17} {'torch':>8} {'difference':>11}")
    factors = []
    for name, (run, other, difference) in found.items():
        ours, torches = least(run, 30), least(other, 30)
        factors.append(interpreted[name] / ours)
        print(f"{name:12} {ours:9.2f} {interpreted[name]:17.1f} {torches:8.2f} {difference():11.2g}")
    print(f"ratio {math.prod(factors) ** (1 / len(factors)):.2f}")


if __name__ == "__main__":
    main()
