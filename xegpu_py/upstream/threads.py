"""Ids of work items: upstream's launches count lanes, ours count subgroups in kernels of subgroups."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from xegpu_py.passes.common import builders as build
from xegpu_py.passes.common.builders import index
from xegpu_py.passes.common.values import constant_of, defining_op
from xegpu_py.upstream.rebuilding import LANES, PREFIX, refuse

LANES_ATTR = "xegpu.lanes_per_subgroup"
"""An attribute of kernels of subgroups: `gpu.launch_func` counts lanes, this many a subgroup, and x is the fastest."""

COUNTS_SUBGROUPS = "xegpu.counts_subgroups"
"""An attribute of kernels of work items, this many a subgroup: `gpu.launch_func` counts subgroups."""

KNOWN = "known_block_size"

COUNTED = ("gpu.thread_id", "gpu.block_dim", "gpu.global_id")
"""Ids and sizes that launches count in lanes."""

_VARYING = ("gpu.thread_id", "gpu.global_id")
_DIVISIONS = ("arith.divui", "arith.divsi", "arith.floordivsi", "index.divu", "index.divs", "index.floordivs")
_SHIFTS = ("arith.shrui", "arith.shrsi", "index.shru", "index.shrs")
_REMAINDERS = ("arith.remui", "arith.remsi", "index.remu", "index.rems")
_SUMS = ("arith.addi", "index.add")
_KEEPING = ("arith.index_cast", "arith.index_castui", "index.castu", "index.casts", "arith.trunci", "arith.extui")


def count_lanes(ops: Sequence[ir.Operation]) -> None:
    """Make ids and sizes in x, which count lanes, of ours, which count subgroups.

    At subgroup level, values that differ between the lanes of a subgroup have no meaning; such ids are those of lane 0.

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
        if op.name not in COUNTED or not counts_x(op):
            continue
        if op.name in _VARYING:
            _check_uniform(op, op.results[0])
        with ir.InsertionPoint.after(op), op.location:
            scaled = arith.muli(op.results[0], index(LANES))
        op.results[0].replace_all_uses_except(scaled, scaled.owner.operation)


def counts_x(op: ir.Operation) -> bool:
    """Whether an id or size is that along x, where the lanes of a subgroup lie."""
    return str(op.attributes["dimension"]).endswith("x>")


def count_workgroup(func: ir.Operation, ops: Sequence[ir.Operation]) -> None:
    """Replace the sizes and trivial ids of a workgroup kernel, whose maps determine the number of subgroups.

    Raises:
        DiagnosticError: at the use of one that depends on how the launch's block is shaped, which is not known here.
    """
    known = list(ir.DenseI32ArrayAttr(func.attributes[KNOWN])) if KNOWN in func.attributes else None
    for op in ops:
        if op.name not in COUNTED or next(iter(op.results[0].uses), None) is None:
            continue
        dim = "xyz".index(str(op.attributes["dimension"]).rstrip(">")[-1])
        is_row = known is not None and known[1:] == [1, 1]
        if op.name == "gpu.block_dim" and known is not None:
            value = known[dim]
        elif op.name == "gpu.thread_id" and dim and known is not None and known[dim] == 1:
            value = 0
        elif op.name == "gpu.thread_id" and not dim and (is_row or known is None):
            continue
        else:
            refuse(
                op,
                "layouts determine the subgroups of a workgroup, and the shape of the launch's blocks is unknown",
                f"set {KNOWN}, or use gpu.subgroup_id",
            )
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(index(value))


def mark_lanes(func: ir.Operation) -> None:
    """Mark a kernel of subgroups as one whose launches count lanes.

    Raises:
        DiagnosticError: if its known block is not one of whole subgroups.
    """
    mark_workgroup(func)
    if KNOWN in func.attributes:
        x, *rest = ir.DenseI32ArrayAttr(func.attributes[KNOWN])
        if x % LANES:
            refuse(func, f"{KNOWN} has {x} work items in x, which is not a multiple of the subgroup size {LANES}")
        func.attributes[KNOWN] = ir.DenseI32ArrayAttr.get([x // LANES, *rest])


def mark_workgroup(func: ir.Operation) -> None:
    """Mark a kernel of workgroups as one whose launches count lanes; its maps define the number of subgroups."""
    func.attributes[LANES_ATTR] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), LANES)


def _check_uniform(op: ir.Operation, value: ir.Value) -> None:
    """The lanes of a subgroup, which have successive numbers, see the same wherever the number is used."""
    for user in _followed(value)[1]:
        # Block messages take the first lane's value.
        if not user.name.startswith(PREFIX):
            refuse(
                op,
                f"'{user.name}' uses it, which would differ between the lanes of a subgroup",
                f"divide it by a multiple of {LANES}, or use gpu.subgroup_id",
            )


def _followed(value: ir.Value) -> tuple[list[ir.Operation], list[ir.Operation]]:
    """The users of a lane's number by which all lanes of a subgroup compute the same value, and the other users."""
    same: list[ir.Operation] = []
    others: list[ir.Operation] = []
    for use in value.uses:
        user = use.owner.operation
        first = len(user.operands) == 2 and user.operands[0] == value
        constant = constant_of(user.operands[1]) if first else None
        if (user.name in _DIVISIONS and constant and constant % LANES == 0) or (
            user.name in _SHIFTS and constant is not None and 1 << constant >= LANES
        ):
            same.append(user)
        elif (
            user.name in _KEEPING
            or (user.name in _REMAINDERS and constant and constant % LANES == 0)
            or (user.name in _SUMS and any(_is_whole(v) for v in user.operands if v != value))
        ):
            found = _followed(user.results[0])
            same += found[0]
            others += found[1]
        else:
            others.append(user)
    return same, others


def share_divided(ops: Sequence[ir.Operation]) -> None:
    """Mark values as uniform in a subgroup if a division makes them equal.

    That is so where a row of a block of work items is of whole subgroups, or is all of it, as it is of such kernels.
    """
    for op in ops:
        if op.name in _VARYING and counts_x(op):
            for user in _followed(op.results[0])[0]:
                uses = [*user.results[0].uses]
                with ir.InsertionPoint.after(user), user.location:
                    shared = of_first_lane(user.results[0])
                for use in uses:
                    use.owner.operands[use.operand_number] = shared


def of_first_lane(value: ir.Value) -> ir.Value:
    """The first active lane's value."""
    kind = ir.Attribute.parse("#gpu<broadcast first_active_lane>")
    return build.make("gpu.subgroup_broadcast", value.type, value, broadcast_type=kind)


def _is_whole(value: ir.Value) -> bool:
    """Whether a number is known to be a multiple of the lanes."""
    constant = constant_of(value)
    if constant is not None:
        return constant % LANES == 0
    op = defining_op(value)
    if op is None or op.name == "gpu.block_dim":
        return op is not None
    return op.name == "arith.muli" and any(map(_is_whole, op.operands))
