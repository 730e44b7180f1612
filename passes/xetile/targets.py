"""The GPU that a kernel is lowered for."""

from __future__ import annotations

from mlir import ir
from xegpu_py.dialects import visa

from xegpu_py.ir.passes import Pass
from xegpu_py.target import Target, target


def target_for(step: Pass, func: ir.Operation, name: str) -> Target:
    """The target of this name, or without one that of the kernel or of an op around it.

    Raises:
        DiagnosticError: if there is none of this name.
    """
    if not name:
        return visa.target_of(func)
    try:
        return target(name)
    except ValueError as e:
        step.fail(func, str(e))
