"""Time to the first result of examples/gemm_xetile.py's GEMM, without caches: lowering, and native compilation."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import pkgutil
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np

import xegpu_py

sys.path.append(str(Path(__file__).parent.parent / "examples"))

SIZES = ("256x256x256", "250x246x100")
"""M, N and K. Rows of the second are too short, or not aligned, for 2D block messages: the kernel is compiled twice."""

RUNS = 3


def seconds(m: int, n: int, k: int) -> dict[str, float]:
    """The processor time of each step that follows the construction of the module, in a new process."""
    for found in pkgutil.walk_packages(xegpu_py.__path__, "xegpu_py."):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(found.name)
    from gemm_xetile import gemm

    a, b = np.ones((m, k), ml_dtypes.bfloat16), np.ones((k, n), ml_dtypes.bfloat16)
    c = np.zeros((m, n), np.float32)
    start = time.process_time()
    version = gemm.compile(registers=256, cache="off").version_for((a, b, c))
    lowered = time.process_time()
    version(a, b, c, grid=1, block=32)
    first = time.process_time()
    version(a, b, c, grid=1, block=32)
    again = time.process_time()
    assert (c == k).all()
    return {"lowering": lowered - start, "native": (first - lowered) - (again - first)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="MxNxK", help="print the seconds of a size in this process, as JSON")
    args = parser.parse_args()
    if args.json:
        m, n, k = map(int, args.json.split("x"))
        print(json.dumps({f"{args.json} {part}": taken for part, taken in seconds(m, n, k).items()}))
        return
    for size in SIZES:
        command = [sys.executable, __file__, "--json", size]
        runs = [json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) for _ in range(RUNS)]
        for name in runs[0]:
            print(f"{name:24}{min(run[name] for run in runs):8.3f} s")


if __name__ == "__main__":
    main()
