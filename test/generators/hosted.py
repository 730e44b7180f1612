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
_NUMBERS = ("thread_id", "block_id", "block_dim", "global_id")


def program(text: str, grid: int, block: int) -> str:
    """A kernel as a function `body` of a work item, which a function `main` calls for all of them."""
    found = _KERNEL.search(text)
    assert found is not None
    arguments, body = found[1], re.sub(r"gpu\.(\w+) x\n", r"arith.addi %\1, %zero : index\n", found[2])
    names = [argument.partition(":")[0] for argument in arguments.split(", %")]
    names = ", ".join("%" + name.lstrip("%") for name in names if name)
    types = ", ".join(re.findall(r"%\w+: (.*?)(?=, %|$)", arguments))
    numbers = ", ".join(f"%{name}: index" for name in _NUMBERS)
    return f"""
func.func private @body({numbers}, {arguments}) attributes {{no_inline}} {{
  %zero = arith.constant 0 : index
{body}  return
}}
func.func @main({arguments}) attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %grid = arith.constant {grid} : index
  %block = arith.constant {block} : index
  scf.for %b = %c0 to %grid step %c1 {{
    scf.for %t = %c0 to %block step %c1 {{
      %first = arith.muli %b, %block : index
      %id = arith.addi %first, %t : index
      func.call @body(%t, %b, %block, %id, {names}) : ({"index, " * len(_NUMBERS)}{types}) -> ()
    }}
  }}
  return
}}
"""


def run(text: str, arguments: Sequence[Any], grid: int, block: int) -> None:
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
