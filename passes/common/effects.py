"""What ops do besides giving results."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.operation import Operation

_COMPUTE = ("arith.", "math.", "index.", "ub.", "vector.")
"""Dialects of upstream's whose ops compute, or access memory."""

WRITES = frozenset((
    "vector.transfer_write", "vector.store", "vector.scatter", "vector.maskedstore", "vector.compressstore",
    "vector.print", "memref.store", "memref.copy", "memref.atomic_rmw", "memref.generic_atomic_rmw", "memref.alloc",
    "gpu.barrier", "gpu.printf",
))  # fmt: skip
"""Ops of upstream's that write memory, print, or wait for other threads."""


def only_reads(op: ir.Operation) -> bool:
    """Whether an op does nothing but compute, and read memory, so that loads may change places with it."""
    view = op.opview
    if isinstance(view, Operation):
        return view.effects is not None and view.effects <= {"read"}
    return op.name.startswith(_COMPUTE) and op.name not in WRITES
