"""MLIR's own lowering to LLVM, which runs a kernel on the host: work items one after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ctypes import c_int64, pointer
from typing import Any

import numpy as np
from mlir import ir
from mlir.execution_engine import ExecutionEngine
from mlir.passmanager import PassManager
from mlir.runtime import get_ranked_memref_descriptor

PIPELINE = (
    "builtin.module(func.func(arith-expand),"
    "convert-vector-to-scf,func.func(lower-vector-multi-reduction),convert-vector-to-scf{full-unroll=true},"
    "expand-strided-metadata,lower-affine,convert-math-to-funcs,convert-scf-to-cf,convert-vector-to-llvm,"
    "convert-math-to-llvm,expand-strided-metadata,finalize-memref-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,"
    "convert-cf-to-llvm,convert-func-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts)"
)

_KERNEL = re.compile(r"gpu\.func @\w+\((.*?)\) kernel.*?\{\n(.*)    gpu\.return\n", re.DOTALL)
_NUMBERS = ("thread_id", "block_id", "block_dim", "grid_dim", "global_id")


def program(text: str, grid: tuple[int, ...], block: tuple[int, ...]) -> str:
    """A kernel as a function `body` of a work item, which a function `main` calls for all of them."""
    found = _KERNEL.search(text)
    assert found is not None
    arguments, body = found[1], re.sub(r"gpu\.(\w+) ([xyz])\n", r"arith.addi %\1_\2, %zero : index\n", found[2])
    names = [argument.partition(":")[0] for argument in arguments.split(", %")]
    names = ", ".join("%" + name.lstrip("%") for name in names if name)
    types = ", ".join(re.findall(r"%\w+: (.*?)(?=, %|$)", arguments))
    ids = [f"{name}_{dim}" for name in _NUMBERS for dim in "xyz"]
    numbers = ", ".join(f"%{name}: index" for name in ids)
    sizes = {"grid_dim": (*grid, 1, 1)[:3], "block_dim": (*block, 1, 1)[:3]}
    constants = [
        f"%{name}_{dim} = arith.constant {n} : index" for name, size in sizes.items() for dim, n in zip("xyz", size)
    ]
    loops = [
        f"scf.for %{name}_{dim} = %c0 to %{size}_{dim} step %c1 {{"
        for name, size in (("block_id", "grid_dim"), ("thread_id", "block_dim"))
        for dim in "zyx"
    ]
    places = [
        f"%first_{d} = arith.muli %block_id_{d}, %block_dim_{d} : index\n"
        f"%global_id_{d} = arith.addi %first_{d}, %thread_id_{d} : index"
        for d in "xyz"
    ]
    lines = "\n".join([*constants, *loops, *places])
    return f"""
func.func private @body({numbers}, {arguments}) attributes {{no_inline}} {{
  %zero = arith.constant 0 : index
{body}  return
}}
func.func @main({arguments}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {lines}
  func.call @body({", ".join(f"%{n}" for n in ids)}, {names}) : ({"index, " * len(ids)}{types}) -> ()
  {"}" * len(loops)}
  return
}}
"""


def run(text: str, arguments: Sequence[Any], grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    """Run a kernel without shared local memory on arrays and numbers, which it changes in place."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(program(text, grid, block))
        PassManager.parse(PIPELINE).run(module.operation)
        engine = ExecutionEngine(module, opt_level=0)
        # An integer may be wider in the kernel than in its word.
        kept = [
            pointer(get_ranked_memref_descriptor(a)) if isinstance(a, np.ndarray) else c_int64(int(a))
            for a in arguments
        ]
        engine.invoke("main", *map(pointer, kept))
