"""Time of OpenCL kernels here, in pocl or Intel's OpenCL for CPUs (pyopencl), and in Oclgrind.

    python benchmarks/opencl_kernels.py [KERNEL...]

Prints a line for each kernel and engine. The last line is the ratio of Oclgrind's time to ours without checks, of the
kernel with the least ratio; above 1 means that ours is faster. Needs ocloc, and Oclgrind for the ratio. A time is the
best of 5 by the clock, after a first run that compiles; Oclgrind's is of one run of its program, less that of one
workgroup, which it spends on starting.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from support.processes import need_ocloc

from xegpu_py import external_tools, opencl
from xegpu_py.ir.diagnostics import DiagnosticError

SOURCE = """
__kernel void saxpy(__global const float *x, __global float *y, float a) {
  size_t i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}
__kernel void reduce(__global const float *x, __global float *out, __local float *part) {
  int l = get_local_id(0);
  part[l] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int s = get_local_size(0) / 2; s; s >>= 1) {
    if (l < s) part[l] += part[l + s];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (!l) out[get_group_id(0)] = part[0];
}
__kernel void matmul(__global const float *a, __global const float *b, __global float *c, int n) {
  __local float x[16][16], y[16][16];
  int i = get_local_id(0), j = get_local_id(1), col = get_global_id(0), row = get_global_id(1);
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    x[j][i] = a[row * n + k + i];
    y[j][i] = b[(k + j) * n + col];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int m = 0; m < 16; m++) sum += x[j][m] * y[m][i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + col] = sum;
}
__kernel void stencil(__global const float *in, __global float *out, int n) {
  int x = get_global_id(0), y = get_global_id(1), at = y * n + x;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  out[at] = 0.5f * in[at] + 0.125f * (in[at - 1] + in[at + 1] + in[at - n] + in[at + n]);
}
__kernel void race(__global int *out, __local int *held) {
  int l = get_local_id(0);
  held[l] = l;
  out[get_global_id(0)] = held[(l + 1) % get_local_size(0)];
}
"""

N = 1 << 20
F = np.float32
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], list[Any]]] = {
    "saxpy": ((N,), (256,), [np.ones(N, F), np.ones(N, F), F(2)]),
    "reduce": ((1 << 16,), (64,), [np.ones(1 << 16, F), np.zeros(1 << 10, F), opencl.local(256)]),
    "matmul": ((128, 128), (16, 16), [*(np.ones((128, 128), F) for _ in range(3)), np.int32(128)]),
    "stencil": ((256, 256), (16, 16), [np.ones((256, 256), F), np.zeros((256, 256), F), np.int32(256)]),
    "race": ((1 << 14,), (64,), [np.zeros(1 << 14, np.int32), opencl.local(256)]),
}
"""The global and the local size, and the arguments, of each kernel."""


def best(run: Callable[[], Any], times: int = 5) -> float:
    """The least seconds of some runs, after a first one."""
    run()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def ours(name: str, check: tuple[str, ...]) -> float:
    """Our seconds; a race that is reported is part of them."""
    program = opencl.compile(SOURCE, check=check)
    items, block, arguments = CASES[name]

    def run() -> None:
        try:
            program.kernels[name][items, block](*arguments)
        except DiagnosticError:
            assert name == "race" and check

    return best(run)


def on_cpu(name: str) -> None:
    """Print the times of other implementations for CPUs."""
    try:
        import pyopencl as cl

        devices = [d for p in cl.get_platforms() for d in p.get_devices()]
    except Exception as missing:
        print(f"{name:8} no OpenCL for CPUs: {missing}")
        return
    for device in devices:
        print(f"{name:8} {device.platform.name:32} {_on_device(cl, device, name) * 1e3:10.2f} ms")


def _on_device(cl: Any, device: Any, name: str) -> float:
    items, block, arguments = CASES[name]
    context = cl.Context([device])
    queue, flags = cl.CommandQueue(context), cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    kernel = getattr(cl.Program(context, SOURCE).build(), name)
    passed = []
    for a in arguments:
        if isinstance(a, np.ndarray):
            passed.append(cl.Buffer(context, flags, hostbuf=a))
        else:
            passed.append(a if isinstance(a, np.generic) else cl.LocalMemory(a.bytes))
    return best(lambda: (kernel(queue, items, block, *passed), queue.finish()))


def in_oclgrind(name: str, options: list[str]) -> float:
    """Seconds of one run of Oclgrind's program, with its start-up subtracted."""
    items, block, arguments = CASES[name]

    def seconds(items: tuple[int, ...], block: tuple[int, ...]) -> float:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "k.cl").write_text(SOURCE)
            lines = ["k.cl", name, " ".join(map(str, (*items, 1, 1)[:3])), " ".join(map(str, (*block, 1, 1)[:3]))]
            for a in arguments:
                if isinstance(a, np.ndarray):
                    kind = "float" if a.dtype.kind == "f" else "int"
                    lines.append(f"<size={a.nbytes} fill=1 {kind}>")
                elif isinstance(a, np.generic):
                    lines += [f"<size={a.nbytes} {'float' if a.dtype.kind == 'f' else 'int'}>", f"{a}"]
                else:
                    lines.append(f"<size={a.bytes}>")
            (Path(folder) / "k.sim").write_text("\n".join(lines) + "\n")
            start = time.perf_counter()
            subprocess.run(["oclgrind-kernel", *options, "k.sim"], cwd=folder, capture_output=True, check=False)
            return time.perf_counter() - start

    return seconds(items, block) - seconds(block, block)


def main(names: list[str]) -> None:
    """Measure the named kernels, or all."""
    need_ocloc()
    ratios = []
    for name in names or CASES:
        on_cpu(name)
        plain, checked = ours(name, ()), ours(name, ("races",))
        print(f"{name:8} {'xegpu-py':32} {plain * 1e3:10.2f} ms, with races checked {checked * 1e3:.2f} ms")
        if name == "saxpy" or not external_tools.find("oclgrind-kernel"):
            continue
        theirs, races = in_oclgrind(name, []), in_oclgrind(name, ["--data-races"])
        print(
            f"{name:8} {'Oclgrind':32} {theirs * 1e3:10.2f} ms, with races checked {races * 1e3:.2f} ms: "
            f"{theirs / plain:.0f} and {races / checked:.0f} times ours"
        )
        ratios.append(theirs / plain)
    if ratios:
        print(f"ratio {min(ratios):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
