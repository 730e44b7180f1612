"""The functions that run on a GPU, and their targets."""

from __future__ import annotations

from mlir import ir

from xegpu_py.dialects import visa
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.passes.common.calls import Functions
from xegpu_py.target import Target, target


def target_for(func: ir.Operation, name: str, root: ir.Operation | None = None) -> Target:
    """The GPU of a name; if the name is empty, the GPU in `visa.target` of a kernel or of an enclosing op.

    Raises:
        DiagnosticError: if there is no such GPU, at `root` if one is given.
    """
    if not name:
        return visa.target_of(func)
    try:
        return target(name)
    except ValueError as e:
        emit_error(root or func, str(e))


def functions(op: ir.Operation, name: str, kernel: str = "") -> list[tuple[ir.Operation, Target]]:
    """The kernels in `op` and the functions that they call, each with its GPU.

    Args:
        name: the GPU's name; if it is empty, `visa.target` has it.
        kernel: the name of the only kernel to return; if it is empty, all kernels are returned.

    Raises:
        DiagnosticError: if there is no such GPU.
    """
    found = []
    seen: set[ir.Operation] = set()
    for func in visa.kernels(op):
        if kernel not in ("", visa.name_of(func)):
            continue
        gpu = target_for(func, name, op)
        if any(inner.operation.name.startswith("visa.") for inner in func.regions[0].blocks[0].operations):
            continue
        found.append((func, gpu))
        for callee in Functions(func).reached(func):
            if callee not in seen:
                seen.add(callee)
                found.append((callee, gpu))
    return found
