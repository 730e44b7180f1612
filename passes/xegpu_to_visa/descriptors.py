"""`xegpu`: what lowering asks of an op and its descriptor."""

from __future__ import annotations

from mlir import ir
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.dialects.xegpu.types import MemoryScope
from xegpu_py.passes.xegpu_to_visa.lower import Lowering

from xegpu_py.numerics.formats import TYPES

TYPES_BYTES = {name: fmt.bytes for name, fmt in TYPES.items()}
"""Bytes of a number of each of vISA's types."""


def check_mode(low: Lowering, op: ir.Operation) -> None:
    """Refuse an op of work items."""
    if op.opview.mode != Mode.VC:
        low.fail("in SIMT mode cannot be lowered to vISA", "write mode = vc, or run xegpu-simt-to-vc before")


def in_slm(desc: TensorDesc) -> bool:
    """Whether what a descriptor describes lies in shared local memory."""
    return desc.attr.memory_scope == MemoryScope.SLM
