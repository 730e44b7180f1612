"""Elements that memory has."""

from __future__ import annotations

from mlir import ir
from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.passes.common.values import is_desc

from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.verifier import walk

_ACCESSES = (
    "memref.load", "memref.store", "memref.atomic_rmw", "memref.generic_atomic_rmw", "xegpu.create_nd_tdesc",
    "xegpu.create_tdesc",
)  # fmt: skip


def check_elements(func: ir.Operation) -> None:
    """No access is to elements of 2 or 4 bits, which have no addresses; i1 takes a byte.

    Raises:
        DiagnosticError: at the first op that accesses such elements.
    """
    for op in walk(func):
        if op.name not in _ACCESSES:
            continue
        kinds = [v.type for v in (*op.operands, *op.results)]
        elements = [str(k.element_type) for k in kinds if isinstance(k, ir.MemRefType)]
        elements += [TensorDesc.decode(t).element for t in map(str, filter(is_desc, kinds))]
        narrow = next((e for e in elements if e not in ("i1", "index") and bit_width(e) < 8), None)
        if narrow:
            note = "xegpu-emulate-narrow-types makes bytes of them"
            emit_error(op, f"accesses elements of type {narrow}, which have no addresses", note)
