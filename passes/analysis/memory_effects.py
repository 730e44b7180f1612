"""Effects of ops on memory: everything that orders accesses asks here."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.bindings import blocks_in
from xegpu_py.ir.builtin import is_intrinsic, is_print
from xegpu_py.ir.operation import Operation, class_of, implements

_ALL = frozenset(["read", "write", "sync"])

_NONE = ("arith.", "math.", "index.", "ub.", "vector.", "memref.", "gpu.", "scf.", "builtin.")
"""Upstream dialects whose other ops have no effects of their own."""

_EFFECTS = {
    **dict.fromkeys(
        ("vector.transfer_read", "vector.load", "vector.gather", "vector.maskedload", "vector.expandload",
         "memref.load"),
        frozenset(["read"]),
    ),
    **dict.fromkeys(
        ("vector.transfer_write", "vector.store", "vector.scatter", "vector.maskedstore", "vector.compressstore",
         "memref.store"),
        frozenset(["write"]),
    ),
    **dict.fromkeys(
        ("memref.copy", "memref.atomic_rmw", "memref.generic_atomic_rmw"),
        frozenset(["read", "write"]),
    ),
    **dict.fromkeys(
        ("gpu.barrier", "gpu.printf", "vector.print", "memref.alloc", "memref.dealloc"), frozenset(["sync"])
    ),
}  # fmt: skip
"""Upstream ops that access memory, synchronize, print or allocate."""


def effects_of(op: ir.Operation) -> frozenset[str]:
    """The effects of an op and of those in its regions: "read" and "write" (memory), "sync", and others of own ops.

    An op that is not known, and a call of a function with a body, may have all of them.
    """
    name = op.name
    if implements(op, Operation):
        effects: frozenset[str] | None = class_of(op).effects
        return _ALL if effects is None else effects
    if name == "func.call":
        return frozenset() if is_intrinsic(op) else frozenset(["sync"]) if is_print(op) else _ALL
    own = _EFFECTS.get(name)
    if own is None:
        own = frozenset[str]() if name.startswith(_NONE) else _ALL
    if not len(op.regions):
        return own
    return own.union(*(effects_of(inner.operation) for block in blocks_in(op) for inner in block.operations))


def only_reads(op: ir.Operation) -> bool:
    """Whether an op only computes and reads memory, so that loads of its block can be moved across it."""
    return not op.name.startswith("scf.") and effects_of(op) <= {"read"}
