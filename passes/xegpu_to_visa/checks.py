"""`cf.assert` and `gpu.printf`: what kernels check and print."""

from __future__ import annotations

from mlir import ir
from xegpu_py.passes.xegpu_to_visa.emit import const
from xegpu_py.passes.xegpu_to_visa.lower import Lowering, pattern
from xegpu_py.passes.xegpu_to_visa.values import KnownMask

from xegpu_py.ir.diagnostics import remark
from xegpu_py.visa.operands import Address, Guard
from xegpu_py.visa.spec import DataShape

_NOWHERE = 0
"""An address at which no array lies: who accesses it is stopped there."""


@pattern("cf.assert")
def assert_(low: Lowering, op: ir.Operation) -> None:
    """A store to an address at which nothing lies, unless the condition holds: the error is at the op's line."""
    condition = low.value(op.operands[0])
    if isinstance(condition, KnownMask) and condition.value:
        return
    emit = low.emit
    place, number = emit.whole("uq", 1), emit.whole("ud", 1)
    for register in (place, number):
        emit.apply("mov", register.type, 1, const(_NOWHERE, register.type), into=register)
    holds = None if isinstance(condition, KnownMask) else low.mask(op.operands[0]).predicates[0]
    emit.emit(
        "lsc_store",
        guard=None if holds is None else Guard(holds, True),
        address=Address(place.var, 0),
        src0=emit.raw(number),
        sfid="ugm",
        caches="",
        data=DataShape("d32"),
        address_size="a64",
    )


@pattern("gpu.printf")
def printf(low: Lowering, op: ir.Operation) -> None:
    """Nothing: a GPU has nowhere to print to."""
    remark(op, "prints nothing on this engine; the eager engine and the reference print")
