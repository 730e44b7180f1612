"""Rewrites of single ops into other ops, before values are split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mlir import ir

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu import Mode, TensorDesc
from xegpu_py.ir.diagnostics import remark
from xegpu_py.passes.common.builders import if_, index_type, like, make, shape_cast, with_shape
from xegpu_py.passes.common.conversion import PatternDriver
from xegpu_py.passes.common.divisors import transposes_in_message
from xegpu_py.passes.common.expansions import combine_subgroups, kind_of
from xegpu_py.passes.common.messages import hints_of
from xegpu_py.passes.common.ops import replace_op
from xegpu_py.passes.common.patterns import PatternSet
from xegpu_py.passes.common.transforms import plain_shape, transformed
from xegpu_py.passes.common.values import is_desc, shape_of
from xegpu_py.passes.xegpu_legalize.surfaces import Surfaces
from xegpu_py.target import Target

Form = Callable[["Forms", ir.Operation], None]
form: PatternSet[Form] = PatternSet(__package__, {"doubles": "math", "numbers": "arith math vector xegpu"})
"""The rewrite patterns, by op name."""


def branch_among_descriptors(ops: Sequence[ir.Operation]) -> bool:
    """Rewrite `arith.select` of descriptors as `scf.if`, which can carry the several values of a split descriptor.

    Returns whether there were any.
    """
    selects = [op for op in ops if op.name == "arith.select" and is_desc(op.results[0])]
    for op in selects:
        condition, *values = op.operands
        with op.location, ir.InsertionPoint(op):
            replace_op(op, *if_(condition, [op.results[0].type], *(partial(list, [value]) for value in values)))
    return bool(selects)


def combine_subgroups_through_memory(ops: Sequence[ir.Operation]) -> bool:
    """Rewrite `gpu.all_reduce` with shared local memory; in VC mode a work item is a subgroup.

    Returns whether there were any.

    Raises:
        DiagnosticError: at an op whose region is not one op of arith.
    """
    reductions = [op for op in ops if op.name == "gpu.all_reduce"]
    for op in reductions:
        kind = kind_of(op)
        with op.location, ir.InsertionPoint(op):
            number, count = (make(name, index_type()) for name in ("gpu.subgroup_id", "gpu.num_subgroups"))
            replace_op(op, combine_subgroups(op.operands[0], kind, number, count))
    return bool(reductions)


class Forms(PatternDriver):
    """Replaces ops of a function that have no message or instruction for any size of their operands.

    A pattern takes an op, with the insertion point before it, and either leaves it or calls `replace`.

    Attributes:
        replaced_loads: whether descriptors have other users than `surfaces` knows.
    """

    patterns = form

    def __init__(self, target: Target, surfaces: Surfaces) -> None:
        self.target, self.surfaces = target, surfaces
        self.replaced_loads = False

    def run(self, ops: Sequence[ir.Operation]) -> None:
        """Apply the patterns to ops."""
        for op in ops:
            self.op(op)

    def op(self, op: ir.Operation) -> None:
        """Apply an op's pattern, if there is one."""
        pattern = self.patterns.find(op.name)
        if pattern:
            self._op = op
            with op.location, ir.InsertionPoint(op):
                pattern(self, op)

    def replace(self, op: ir.Operation, *values: ir.Value, made: Sequence[ir.Value] = ()) -> None:
        """Replace an op's results by values, and then apply the patterns of ops whose results are `made`."""
        replace_op(op, *values)
        for value in made:
            self.op(value.owner)


@form("xegpu.load_nd")
def transform_in_registers(forms: Forms, op: ir.Operation) -> None:
    """Split a load whose transform no message does into a plain load and a transform in registers.

    Messages transpose blocks of two dimensions, in units of at least 32 bits that begin at a multiple of their size.
    """
    given, op = op, _with_units_side_by_side(op)
    forms.replaced_loads |= op is not given
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    if view.mode != Mode.VC or len(desc.shape) < 2:
        return
    gathered = forms.surfaces.problem(view.tdesc) is not None
    transposes = view.transpose is not None and tuple(view.transpose) != tuple(range(len(desc.shape)))
    limits = forms.target.block2d
    if transposes and limits and not gathered and len(desc.shape) == 2:
        if transposes_in_message(view, desc, limits):
            return
        remark(op, "transposes its block in registers: it is not known to begin at a multiple of a message's unit")
    if (gathered and view.vnni_axis is not None) or (transposes and (gathered or limits)):
        with op.location, ir.InsertionPoint(op):
            kind = with_shape(view.value.type, plain_shape(view))
            loaded = xegpu.load_nd(view.tdesc, value=kind, mode=view.mode, **hints_of(view))
            replace_op(op, transformed(view, loaded))
        forms.replaced_loads = True


def _with_units_side_by_side(op: ir.Operation) -> ir.Operation:
    """Rewrite a load whose result has a dimension for the elements of a transposed unit as one without it."""
    view: Any = op.opview
    desc = TensorDesc.of(view.tdesc)
    shape = shape_of(view.value)
    if view.transpose_bit_width is None or len(shape) == len(desc.shape) or desc.attr.array_length > 1:
        return op
    with op.location, ir.InsertionPoint(op):
        made = like(op, [with_shape(view.value.type, (*shape[:-2], shape[-2] * shape[-1]))], op.operands)
        replace_op(op, shape_cast(made.results[0], shape))
    return made
