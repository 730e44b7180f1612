"""The functions that run on a GPU, and which one."""

from __future__ import annotations

from mlir import ir
from xegpu_py.dialects import visa

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.verifier import position_of, walk
from xegpu_py.target import Target, target


def functions(op: ir.Operation, name: str, kernel: str = "") -> list[tuple[ir.Operation, Target]]:
    """The kernels in `op` and the functions beside them, which their calls inline, each with its GPU.

    Args:
        name: the GPU's name; if it is empty, what `visa.target` says.
        kernel: the one kernel that is meant; if it is empty, all are.

    Raises:
        DiagnosticError: if there is no such GPU.
    """
    found = []
    seen: set[ir.Value | str] = set()
    for func in visa.kernels(op):
        if kernel not in ("", visa.name_of(func)):
            continue
        try:
            gpu = target(name) if name else visa.target_of(func)
        except ValueError as e:
            where = position_of(op.location)
            raise DiagnosticError([Diagnostic("error", f"'{op.name}' op {e}", where)]) from None
        if any(inner.operation.name.startswith("visa.") for inner in func.regions[0].blocks[0].operations):
            continue
        found.append((func, gpu))
        around = func.parent
        if around is None or around.operation.name != "gpu.module":
            continue
        module = around.operation
        key = str(module.attributes["sym_name"])
        if key in seen:
            continue
        seen.add(key)
        beside = [f for f in walk(module) if f.name == "func.func" and len(f.regions[0].blocks) == 1]
        found += [(f, gpu) for f in beside]
    return found
