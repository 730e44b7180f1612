"""Divisibility of indices by powers of two, and alignment of blocks.

Only powers of two are used, because these also divide indices that have wrapped around.
"""

from __future__ import annotations

import math
from typing import Any

from mlir import ir

from xegpu_py.dialects.xegpu import CreateNdTdescOp, TensorDesc, UpdateNdOffsetOp
from xegpu_py.passes.common.control_flow import sources
from xegpu_py.passes.common.values import constant_of
from xegpu_py.target import Block2DLimits

_UNKNOWN = 1
_SAME = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
_MEETS = ("arith.addi", "arith.subi", "arith.minsi", "arith.minui", "arith.maxsi", "arith.maxui")


def power_of_two(number: int) -> int:
    """The largest power of two that divides a number; 0 for 0."""
    return number & -number


def divisor(value: ir.Value | int) -> int:
    """The largest power of two that is known to divide an index; 0 if the index is known to be 0."""
    return _divisor(value, frozenset())


def _divisor(value: ir.Value | int, seen: frozenset[ir.Value]) -> int:
    """The divisor of an index, or of a descriptor's column. Values in `seen` are cyclic dependences and are ignored."""
    if isinstance(value, int):
        return power_of_two(value)
    if value in seen:
        return 0
    seen = seen | {value}
    try:
        passed_on = sources(value)
    except ValueError:
        # A loop that is being converted has its old arguments beside the new ones.
        return _UNKNOWN
    if passed_on is not None:
        return math.gcd(*(_divisor(v, seen) for v in passed_on))
    if isinstance(value.owner, ir.Block):
        return _of_induction_variable(value, seen)
    return _of_op(value.owner.operation, seen)


def _of_induction_variable(value: ir.BlockArgument, seen: frozenset[ir.Value]) -> int:
    parent = value.owner.owner
    if parent is None or parent.operation.name != "scf.for" or value.arg_number:
        return _UNKNOWN
    lower, _, step = list(parent.operation.operands)[:3]
    return math.gcd(_divisor(lower, seen), _divisor(step, seen))


def _of_op(op: ir.Operation, seen: frozenset[ir.Value]) -> int:
    name, view = op.name, op.opview
    if isinstance(view, CreateNdTdescOp):
        return _divisor(view.offsets[-1], seen)
    if isinstance(view, UpdateNdOffsetOp):
        return math.gcd(_divisor(view.tdesc, seen), _divisor(view.offsets[-1], seen))
    if name in ("arith.constant", "index.constant"):
        number = op.attributes["value"]
        return power_of_two(ir.IntegerAttr(number).value) if isinstance(number, ir.IntegerAttr) else _UNKNOWN
    if name in _SAME:
        return _divisor(op.operands[0], seen)
    if name in _MEETS:
        return math.gcd(*(_divisor(v, seen) for v in op.operands))
    if name == "arith.select":
        return math.gcd(*(_divisor(v, seen) for v in list(op.operands)[1:]))
    if name == "arith.muli":
        return math.prod(_divisor(v, seen) for v in op.operands)
    if name == "arith.shli":
        by = constant_of(op.operands[1])
        return _UNKNOWN if by is None or not 0 <= by < 64 else _divisor(op.operands[0], seen) << by
    if name == "arith.andi":
        mask = constant_of(op.operands[1])
        return _UNKNOWN if mask is None else power_of_two(mask)
    return _UNKNOWN


def column_divisor(desc: ir.Value) -> int:
    """The largest power of two that is known to divide the first column of a descriptor's blocks, in elements."""
    return _divisor(desc, frozenset())


def transposes_in_message(view: Any, desc: TensorDesc, limits: Block2DLimits) -> bool:
    """Whether a message can transpose the blocks of a load: their first column is a multiple of the message's unit."""
    unit = limits.transposed_unit(view.transpose_bit_width or desc.bits)
    first = column_divisor(view.tdesc)
    if desc.attr.array_length > 1:
        first = math.gcd(first, desc.shape[-1])
    return unit is not None and first * desc.bits % unit == 0
