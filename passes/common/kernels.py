"""Attributes of kernels, and their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.verifier import kernels, walk

if TYPE_CHECKING:
    from xegpu_py.target import Target

SUBGROUP_SIZE = "xegpu.subgroup_size"
"""Attribute of a kernel of work items: the size of a subgroup."""

SUBGROUP_SIZES = (8, 16, 32)
"""The supported sizes of subgroups in work items."""

DEFAULT_SIZE = 16
"""The default size of a subgroup in work items: the lanes of dpas on Xe-HPC."""

WORK_ITEMS = "xegpu.work_items"
"""Attribute of a kernel of subgroups that was one of work items: the work items of a hardware thread."""


def work_items(func: ir.Operation) -> int:
    """Work items of a hardware thread if the kernel was written for work items; otherwise 0."""
    return int(ir.IntegerAttr(func.attributes[WORK_ITEMS]).value) if WORK_ITEMS in func.attributes else 0


CLEAN = "canonicalize{top-down=false},cse"
"""MLIR's passes that simplify what ours leave. From the bottom up: the other way `canonicalize` looks at a loop again
for each op in it that changes, which takes the square of the number of values that the loop carries."""

GRID_LIMIT = 1 << 20
"""Workgroups in each dimension of a launch, unless a kernel is lowered for more."""


def symbol_of(op: ir.Operation) -> str:
    """The name of a function, module or global."""
    name: str = ir.StringAttr(op.attributes["sym_name"]).value
    return name


def chosen_kernels(root: ir.Operation, name: str) -> list[ir.Operation]:
    """The kernels in an op: all, or those of a name if one is given."""
    return [func for func in kernels(root) if name in ("", symbol_of(func))]


def registers_of(func: ir.Operation, gpu: Target, grf: int) -> int | None:
    """The registers of a thread that a pass's option `grf` asks for; None for the target's usual number.

    Raises:
        DiagnosticError: if the target has no such number.
    """
    if grf and grf not in gpu.grf_counts:
        emit_error(func, f"target {gpu.name} has {' or '.join(map(str, gpu.grf_counts))} registers, not {grf}")
    return grf or None


MARK = "xetile.load_ahead"
"""The attribute of loops that load ahead regardless of the options."""


def is_marked(func: ir.Operation) -> bool:
    """Whether a kernel has a loop with this attribute."""
    return any(op.name == "scf.for" and MARK in op.attributes for op in walk(func))
