"""Side effects of ops."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.operation import Operation

_COMPUTE = ("arith.", "math.", "index.", "ub.", "vector.")
"""Upstream dialects whose ops compute or access memory."""

WRITES = frozenset((
    "vector.transfer_write", "vector.store", "vector.scatter", "vector.maskedstore", "vector.compressstore",
    "vector.print", "memref.store", "memref.copy", "memref.atomic_rmw", "memref.generic_atomic_rmw", "memref.alloc",
    "gpu.barrier", "gpu.printf",
))  # fmt: skip
"""Upstream ops that write memory, print, or synchronize."""


def only_reads(op: ir.Operation) -> bool:
    """Whether an op only computes and reads memory, so that loads can be moved across it."""
    view = op.opview
    if isinstance(view, Operation):
        return view.effects is not None and view.effects <= {"read"}
    return op.name.startswith(_COMPUTE) and op.name not in WRITES
