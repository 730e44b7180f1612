"""The most that one core adds and multiplies: fused multiply-adds of f32 on vectors of 64 bytes, and nothing else."""

from __future__ import annotations

import ctypes
import time

from mlir import ir
from mlir.execution_engine import ExecutionEngine

_CHAINS = 20
_TURNS = 2_000_000
_LANES = 16


def flops_of_one_core() -> float:
    """FLOP a second, the best of some runs."""
    kind = f"vector<{_LANES}xf32>"
    values = [f"%v{i}" for i in range(_CHAINS)]
    arguments = ", ".join(f"{v}: {kind}" for v in values)
    sums = "\n".join(
        f'%s{i} = "llvm.intr.fma"({v}, %one, %one) : ({kind}, {kind}, {kind}) -> {kind}' for i, v in enumerate(values)
    )
    results, types = ", ".join(f"%s{i}" for i in range(_CHAINS)), ", ".join([kind] * _CHAINS)
    stores = "\n".join(
        f"%p{i} = llvm.getelementptr %to[{4 * _LANES * i}] : (!llvm.ptr) -> !llvm.ptr, i8\n"
        f"llvm.store {v}, %p{i} {{alignment = 4 : i64}} : {kind}, !llvm.ptr"
        for i, v in enumerate(values)
    )
    text = f"""
    llvm.func @peak(%to: !llvm.ptr) attributes {{passthrough = [["prefer-vector-width", "512"]]}} {{
      %zero = llvm.mlir.constant(0 : i64) : i64
      %step = llvm.mlir.constant(1 : i64) : i64
      %turns = llvm.mlir.constant({_TURNS} : i64) : i64
      %first = llvm.load %to {{alignment = 4 : i64}} : !llvm.ptr -> {kind}
      %one = llvm.load %to {{alignment = 4 : i64}} : !llvm.ptr -> {kind}
      llvm.br ^loop(%zero, {", ".join(["%first"] * _CHAINS)} : i64, {types})
    ^loop(%n: i64, {arguments}):
      {sums}
      %next = llvm.add %n, %step : i64
      %more = llvm.icmp "slt" %next, %turns : i64
      llvm.cond_br %more, ^loop(%next, {results} : i64, {types}), ^done({results} : {types})
    ^done({arguments.replace("%v", "%r")}):
      {stores.replace("store %v", "store %r")}
      llvm.return
    }}"""
    with ir.Context(), ir.Location.unknown():
        engine = ExecutionEngine(ir.Module.parse(text), opt_level=2)
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup("peak"))
    memory = (ctypes.c_float * (_LANES * _CHAINS))()
    argument = ctypes.c_void_p(ctypes.addressof(memory))
    arguments_ = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
    best = 0.0
    for _ in range(5):
        start = time.thread_time()
        entry(ctypes.addressof(arguments_))
        best = max(best, 2 * _LANES * _CHAINS * _TURNS / (time.thread_time() - start))
    return best
