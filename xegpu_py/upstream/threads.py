"""Which work item a kernel is in: upstream's launches count lanes, ours count subgroups in kernels of subgroups."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from xegpu_py.passes.common.divisors import constant_of
from xegpu_py.upstream.rebuilding import LANES, PREFIX, index, refuse

BLOCK_LANES = "xegpu.block_lanes"
"""An attribute of kernels of subgroups: `gpu.launch_func` counts lanes, this many a subgroup, and x is the fastest."""

SUBGROUPS = "xegpu.workgroup_subgroups"
"""An attribute of kernels of workgroups: the subgroups that run, whatever `gpu.launch_func` says."""

KNOWN = "known_block_size"

_COUNTED = ("gpu.thread_id", "gpu.block_dim", "gpu.global_id")
_VARYING = ("gpu.thread_id", "gpu.global_id")
_DIVISIONS = ("arith.divui", "arith.divsi", "arith.floordivsi", "index.divu", "index.divs", "index.floordivs")
_SHIFTS = ("arith.shrui", "arith.shrsi", "index.shru", "index.shrs")
_KEEPING = ("arith.index_cast", "arith.index_castui", "index.castu", "index.casts", "arith.trunci", "arith.extui")


def count_lanes(ops: Sequence[ir.Operation]) -> None:
    """Make ids and sizes in x, which count lanes, of ours, which count subgroups.

    What differs between the lanes of a subgroup has no meaning at subgroup level; such ids are what lane 0 sees.

    Raises:
        DiagnosticError: at a use of an id by which lanes would differ.
    """
    for op in ops:
        if op.name == "gpu.lane_id":
            refuse(op, "lanes have no number of their own at subgroup level", "is this a kernel of lanes? see --level")
        if op.name == "gpu.subgroup_size":
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(index(LANES))
            continue
        if op.name not in _COUNTED or "x" not in str(op.attributes["dimension"]).split("<")[-1]:
            continue
        if op.name in _VARYING:
            _check_uniform(op, op.results[0])
        with ir.InsertionPoint.after(op), op.location:
            scaled = arith.muli(op.results[0], index(LANES))
        op.results[0].replace_all_uses_except(scaled, scaled.owner.operation)


def mark_lanes(func: ir.Operation) -> None:
    """Say of a kernel of subgroups that its launches count lanes.

    Raises:
        DiagnosticError: if its known block is not one of whole subgroups.
    """
    func.attributes[BLOCK_LANES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LANES)
    if KNOWN in func.attributes:
        x, *rest = ir.DenseI32ArrayAttr(func.attributes[KNOWN])
        if x % LANES:
            refuse(func, f"{KNOWN} has {x} work items in x, which are no whole subgroups of {LANES}")
        func.attributes[KNOWN] = ir.DenseI32ArrayAttr.get([x // LANES, *rest])


def _check_uniform(op: ir.Operation, value: ir.Value) -> None:
    """The lanes of a subgroup, which have successive numbers, see the same wherever the number is used."""
    for use in value.uses:
        user = use.owner.operation if hasattr(use.owner, "operation") else use.owner
        other = [v for v in user.operands if v != value]
        constant = constant_of(other[0]) if len(other) == 1 else None
        if user.name.startswith(PREFIX):
            continue
        if user.name in _DIVISIONS and user.operands[0] == value and constant and constant % LANES == 0:
            continue
        if user.name in _SHIFTS and user.operands[0] == value and constant is not None and 1 << constant >= LANES:
            continue
        if (
            user.name in _KEEPING
            or (user.name == "arith.addi" and len(other) == 1 and _is_whole(other[0]))
            or (
                user.name in ("arith.remui", "arith.remsi")
                and user.operands[0] == value
                and constant
                and constant % LANES == 0
            )
        ):
            _check_uniform(op, user.results[0])
        else:
            refuse(
                op,
                f"'{user.name}' uses it, which would differ between the lanes of a subgroup",
                f"divide it by a multiple of {LANES}, or use gpu.subgroup_id",
            )


def _is_whole(value: ir.Value) -> bool:
    """Whether a number is known to be a multiple of the lanes."""
    constant = constant_of(value)
    if constant is not None:
        return constant % LANES == 0
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "gpu.block_dim":
        return True
    return owner.name == "arith.muli" and any(_is_whole(v) for v in owner.operation.operands)
