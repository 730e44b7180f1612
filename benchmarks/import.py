"""Import of upstream's XeGPU, in processor time an op: kernels of subgroups, of lanes and of workgroups.

    python benchmarks/import.py [--ops 2000]

The time includes parsing, rebuilding and verifying. The limit is 100 us an op; `ratio` is the slowest kernel's time
divided by it.
"""

import argparse
import time

from xegpu_py import import_upstream
from xegpu_py.ir.module import walk

LIMIT = 100e-6
HEAD = "gpu.module @m {\n  gpu.func @k(%a: memref<64x64xf16>, %b: memref<64x64xf32>) kernel {\n"
TAIL = "    gpu.return\n  }\n}\n"


def subgroup(i: int) -> str:
    """Ops of a kernel of subgroups, with names that end in `i`."""
    hint = "l1_hint = #xegpu.cache_hint<cached>"
    return f"""
    %da{i} = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %db{i} = xegpu.create_nd_tdesc %a[16, {i % 4}] : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
    %va{i} = xegpu.load_nd %da{i}[{i % 8}, 16] <{{{hint}}}> : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    %vb{i} = xegpu.load_nd %db{i} <{{packed}}> : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    %r{i} = xegpu.dpas %va{i}, %vb{i} : vector<8x16xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
    %s{i} = arith.addf %r{i}, %r{i} : vector<8x16xf32>
    %dc{i} = xegpu.create_nd_tdesc %b : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %s{i}, %dc{i}[0, {i % 4}] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
"""


def lane(i: int) -> str:
    """Ops of a kernel of lanes."""
    return f"""
    %da{i} = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<8x16xf16>
    %db{i} = xegpu.create_nd_tdesc %a : memref<64x64xf16> -> !xegpu.tensor_desc<16x16xf16>
    %va{i} = xegpu.load_nd %da{i}[{i % 8}, 16] : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
    %vb{i} = xegpu.load_nd %db{i} <{{packed}}> : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
    %r{i} = xegpu.dpas %va{i}, %vb{i} : vector<8xf16>, vector<16xf16> -> vector<8xf32>
    %s{i} = arith.addf %r{i}, %r{i} : vector<8xf32>
    %dc{i} = xegpu.create_nd_tdesc %b : memref<64x64xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %s{i}, %dc{i}[0, {i % 4}] : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
"""


def workgroup(i: int) -> str:
    """Ops of a kernel of workgroups."""
    layout = "#xegpu.layout<sg_layout = [4, 2], sg_data = [16, 32]>"
    kind = "!xegpu.tensor_desc<64x64xf32>"
    return f"""
    %d{i} = xegpu.create_nd_tdesc %b : memref<64x64xf32> -> {kind}
    %v{i} = xegpu.load_nd %d{i}[0, 0] <{{layout = {layout}}}> : {kind} -> vector<64x64xf32>
    %zero{i} = arith.constant dense<0.0> : vector<64xf32>
    %m{i} = vector.multi_reduction <add>, %v{i}, %zero{i} [1] : vector<64x64xf32> to vector<64xf32>
    %w{i} = vector.broadcast %m{i} : vector<64xf32> to vector<64x64xf32>
    %t{i} = vector.transpose %w{i}, [1, 0] : vector<64x64xf32> to vector<64x64xf32>
    %s{i} = arith.subf %v{i}, %t{i} : vector<64x64xf32>
    xegpu.store_nd %s{i}, %d{i}[0, 0] <{{layout = {layout}}}> : vector<64x64xf32>, {kind}
"""


def seconds(text: str) -> float:
    """The processor time of one import, the shortest of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        import_upstream(text)
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Measure, and print a line for each level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, default=2000)
    args = parser.parse_args()
    worst = 0.0
    for make in (subgroup, lane, workgroup):
        body = "".join(make(i) for i in range(args.ops // 8))
        text = HEAD + body + TAIL
        count = body.count("\n    ")
        took = seconds(text) / count
        made = len(walk(import_upstream(text).outline))
        worst = max(worst, took)
        print(f"{make.__name__:9} {count} ops, {made} after: {took * 1e6:.1f} us an op")
    print(f"ratio {worst / LIMIT:.2f}")


if __name__ == "__main__":
    main()
