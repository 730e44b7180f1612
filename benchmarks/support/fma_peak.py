"""The peak of one core: a loop of nothing but fused multiply-adds of f32 on whole vectors."""

from __future__ import annotations

import ctypes
import time

from xegpu_py.engines.jit.host import Host
from xegpu_py.engines.jit.llvm import Loaded, compiled

_TIMES = 1_000_000

_SPARE = 4
"""The number of registers without a sum: one holds the factor, and the others are left to LLVM."""


def loop(host: Host) -> str:
    """A function `peak` that adds to as many sums as registers hold, and takes an array of a vector for each."""
    lanes, chains = host.lanes(4), host.vector_registers - _SPARE
    kind = f"<{lanes} x float>"
    sums = "\n".join(f"  %v{i} = phi {kind} [%first, %entry], [%s{i}, %loop]" for i in range(chains))
    more = "\n".join(
        f"  %s{i} = call {kind} @llvm.fma.v{lanes}f32({kind} %one, {kind} %first, {kind} %v{i})" for i in range(chains)
    )
    stores = "\n".join(
        f"  %p{i} = getelementptr {kind}, ptr %to, i64 {i}\n  store {kind} %s{i}, ptr %p{i}, align 4"
        for i in range(chains)
    )
    width = 8 * host.vector_bytes
    return f"""
define void @peak(ptr %to) "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" {{
entry:
  %first = load {kind}, ptr %to, align 4
  %second = getelementptr {kind}, ptr %to, i64 1
  %one = load {kind}, ptr %second, align 4
  br label %loop
loop:
  %n = phi i64 [0, %entry], [%next, %loop]
{sums}
{more}
  %next = add i64 %n, 1
  %again = icmp slt i64 %next, {_TIMES}
  br i1 %again, label %loop, label %done
done:
{stores}
  ret void
}}"""


def flops_of_one_core(host: Host) -> float:
    """FLOP per second of code generated for a host: the best of several runs, in processor time."""
    code = Loaded([compiled(loop(host), host.machine, "default<O1>", 2)], ["peak"])
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.addresses[0])
    count = host.lanes(4) * (host.vector_registers - _SPARE)
    memory = (ctypes.c_float * count)()
    best = 0.0
    for _ in range(9):
        start = time.thread_time()
        entry(ctypes.addressof(memory))
        best = max(best, 2 * count * _TIMES / (time.thread_time() - start))
    return best
