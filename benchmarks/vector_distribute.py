"""Microseconds per op of vector-distribute, on functions of growing size, against iree-opt's distribution.

Layouts propagate down a chain of elementwise ops from its first op, up a chain from its last op, or alternately in both
directions: each op has an operand with a layout and one without, with which the next op begins.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable

import xegpu_py
from xegpu_py import external_tools

LAYOUT = (
    "#iree_vector_ext.nested_layout<subgroup_tile = [1], batch_tile = [2], outer_tile = [1], thread_tile = [16], "
    "element_tile = [1], subgroup_strides = [0], thread_strides = [1]>"
)
WORKGROUP = (
    "#iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<VectorDistribute> "
    "workgroup_size = [16, 1, 1] subgroup_size = 16>"
)
SIZES = (500, 2000, 8000)
PEER_SIZE = 64000
"""So many ops that their time exceeds the variation of a process's start-up time."""

READ = "vector.transfer_read %m[%c0], %zero {in_bounds = [true]} : memref<32xf32>, vector<32xf32>"


def text(ops: int, attributes: str = "") -> str:
    """Layouts propagate from the first op to the last."""
    lines = [f"%v0 = {_anchor('%v')}"]
    lines += [f"%v{i + 1} = arith.addf %v{i}, %v0 : vector<32xf32>" for i in range(ops)]
    return _function(lines, f"%v{ops}", attributes)


def upward(ops: int) -> str:
    """Layouts propagate from the last op to the first."""
    lines = [f"%v{i} = arith.negf %v{i - 1 if i else ''} : vector<32xf32>" for i in range(ops)]
    return _function([*lines, f"%last = {_anchor(f'%v{ops - 1}')}"], "%last")


def zigzag(ops: int) -> str:
    """Layouts propagate from an operand to the result of its op, and from there to the other operand."""
    lines = [f"%v0 = {_anchor('%v')}"]
    for i in range(ops // 3):
        lines.append(f"%a{i} = arith.negf %v{i} : vector<32xf32>")
        lines.append(f"%v{i + 1} = {READ}")
        lines.append(f"%b{i} = arith.addf %a{i}, %v{i + 1} : vector<32xf32>")
    return _function(lines, f"%b{ops // 3 - 1}")


def _anchor(value: str) -> str:
    return f"iree_vector_ext.to_layout {value} to layout({LAYOUT}) : vector<32xf32>"


def _function(lines: list[str], result: str, attributes: str = "") -> str:
    head = ["%c0 = arith.constant 0 : index", "%zero = arith.constant 0.0 : f32", f"%v = {READ}"]
    write = f"vector.transfer_write {result}, %m[%c0] {{in_bounds = [true]}} : vector<32xf32>, memref<32xf32>"
    return "\n".join([f"func.func @f(%m: memref<32xf32>) {attributes} {{", *head, *lines, write, "return", "}"])


def ours(ops: int, shape: Callable[[int], str] = text) -> float:
    module = xegpu_py.parse(shape(ops))
    start = time.perf_counter()
    xegpu_py.run_pipeline(module, "builtin.module(vector-distribute)")
    return time.perf_counter() - start


def theirs(tool: str, ops: int) -> float:
    """A whole process, with parsing and printing, because IREE does not report these times."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as f:
        f.write(text(ops, f"attributes {{translation_info = {WORKGROUP}}}"))
        f.flush()
        pipeline = "--pass-pipeline=builtin.module(func.func(iree-llvmgpu-vector-distribute))"
        start = time.perf_counter()
        subprocess.run([tool, f.name, pipeline, "-o", "/dev/null"], check=True)
        return time.perf_counter() - start


def main() -> None:
    per_op = {}
    for ops in SIZES:
        per_op[ops] = min(ours(ops) for _ in range(5)) / ops * 1e6
        print(f"vector-distribute, {ops:5} ops {per_op[ops]:10.1f} microseconds per op")
    for shape in (upward, zigzag):
        for ops in SIZES:
            each = min(ours(ops, shape) for _ in range(3)) / ops * 1e6
            print(f"{shape.__name__:17}, {ops:5} ops {each:10.1f} microseconds per op")
    small, large = SIZES[0], SIZES[-1]
    tool = external_tools.find("iree-opt")
    if tool is None:
        print(f"{large} ops against {small}, per op: ratio {per_op[large] / per_op[small]:.2f}")
        return
    few, many = (min(theirs(tool, ops) for _ in range(3)) for ops in (small, PEER_SIZE))
    peer = (many - few) / (PEER_SIZE - small) * 1e6
    print(f"iree-opt, the whole process    {peer:10.1f} microseconds per op")
    print(f"vector-distribute against iree-opt per op: ratio {per_op[large] / peer:.2f}")


if __name__ == "__main__":
    main()
