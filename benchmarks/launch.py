"""A call of a kernel that is ready: 8 workgroups of one thread, each of which stores a number.

    python benchmarks/launch.py [OLD_CHECKOUT]

Times are processor times. With an old checkout, both are measured alternately, and the last line is the ratio to it;
without one, the last line is the ratio to numpy's sort of the same 8 numbers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import timeit
from pathlib import Path

import numpy as np
from compare import HERE, installed, run

TEXT = """
gpu.module @m {
  gpu.func @store(%out: memref<8xi32>) kernel {
    %group = gpu.block_id x
    %value = arith.index_cast %group : index to i32
    memref.store %value, %out[%group] : memref<8xi32>
    gpu.return
  }
}
"""
CALLS, BLOCKS = 100, 15


def microseconds() -> float:
    """The time of one call: the median of several measurements of many calls."""
    import xegpu_py

    kernel, out = xegpu_py.compile(TEXT, cache="off"), np.zeros(8, np.int32)
    taken = []
    for _ in range(BLOCKS):
        start = time.process_time()
        for _ in range(CALLS):
            kernel(out, grid=8)
        taken.append((time.process_time() - start) / CALLS * 1e6)
    assert out.tolist() == list(range(8))
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, nargs="?", help="a checkout of an earlier state")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the time in this process, as JSON")
    args = parser.parse_args()
    if args.json:
        print(json.dumps({"call": microseconds()}))
        return
    if args.before is None:
        numbers = np.arange(8, dtype=np.int32)
        peer = timeit.timeit(lambda: np.sort(numbers), number=10000) * 100
        taken = microseconds()
        print(f"a call of 8 workgroups {taken:8.1f} us, numpy's sort of 8 numbers {peer:8.1f} us")
        print(f"a call against numpy's: ratio {taken / peer:.2f}")
        return
    times: list[list[float]] = [[], []]
    with tempfile.TemporaryDirectory() as folder:
        sides = [installed(c, Path(folder) / side) for side, c in (("0", args.before), ("1", HERE.parent))]
        for _ in range(args.rounds):
            for own, side in zip(times, sides):
                own.append(run(side, ["launch.py", "--json"])["call"])
    before, now = map(statistics.median, times)
    print(f"a call of 8 workgroups {now:8.1f} us, before {before:8.1f} us")
    print(f"a call now against before: ratio {now / before:.3f}")


if __name__ == "__main__":
    main()
