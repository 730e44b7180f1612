"""Programs with a mistake each, for this backend beside other ways to run Triton: who reports what, and the times.

`XEGPU_PY_CHECK=races,division python planted_mistakes.py cpu` runs them here, `TRITON_INTERPRET=1` before it in
Triton's interpreter, and `python -m ttsem.sanitize planted_mistakes.py cuda` in ttsem.
"""

import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + column, mask=column < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * n + column, e / tl.sum(e, 0), mask=column < n)


@triton.jit
def unmasked(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n))


@triton.jit
def racing(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out, tl.load(out) + tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0))


@triton.jit
def divided(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, 7 // tl.load(x + i, mask=i < n))


@triton.jit
def unwritten(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1)


def run(device: str) -> None:
    rows, n = torch.randn(256, 781, device=device), 1000
    result = torch.empty_like(rows)
    times = []
    for _ in range(8):
        start = time.perf_counter()
        softmax[(256,)](rows, result, 781, BLOCK=1024)
        times.append(time.perf_counter() - start)
    torch.testing.assert_close(result, torch.softmax(rows, 1))
    print(f"softmax of 256 x 781: {times[0]:.2f} s at first, then at least {min(times) * 1e3:.1f} ms")
    zeros = torch.zeros(n, dtype=torch.int32, device=device)
    for kernel, x in [(racing, rows.view(-1)), (divided, zeros), (unwritten, torch.empty(n, device=device)),
                      (unmasked, rows.view(-1))]:  # fmt: skip
        block = 256 if kernel in (racing, unmasked) else 1024
        out = torch.zeros(1024 if block == 1024 else n, dtype=x.dtype, device=device)
        try:
            kernel[(-(-n // block),)](x, out, n, BLOCK=block)
            print(f"{kernel.__name__}: no error, {out[0].item()}", flush=True)
        except Exception as e:
            print(f"{kernel.__name__}: {str(e)[:200]}", flush=True)


if __name__ == "__main__":
    run(sys.argv[1])
