"""Expansions of upstream ops by their definitions in MLIR."""

from __future__ import annotations

from mlir import ir

from xegpu_py.ir.combining import CombiningKind
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.ir.numbers import rounding_problem
from xegpu_py.numerics.formats import E8M0
from xegpu_py.passes.common.builders import create, index, index_type, make, with_element
from xegpu_py.passes.common.values import element_of
from xegpu_py.target import TARGETS

SCALING = ("arith.scaling_extf", "arith.scaling_truncf")


def require_nearest(op: ir.Operation) -> None:
    """Check that an op rounds to nearest even.

    Raises:
        DiagnosticError: if it does not.
    """
    problem = rounding_problem(op)
    if problem:
        emit_error(op, *problem)


def expand_scaling(op: ir.Operation) -> list[ir.Value]:
    """Build the expansion of an op in `SCALING` at the insertion point, and return the results of its ops.

    The scale is rounded to f8E8M0FNU and converted to the wider format, in which the number is multiplied or divided
    by it.

    Raises:
        DiagnosticError: as `require_nearest`.
    """
    require_nearest(op)
    value, scale = op.operands
    widens = op.name == "arith.scaling_extf"
    result = op.results[0].type
    wide = element_of(result if widens else value)
    found = []
    if str(element_of(scale)) != E8M0.mlir:
        scale = make("arith.truncf", with_element(scale.type, ir.Type.parse(E8M0.mlir)), scale)
        found.append(scale)
    factor = make("arith.extf", with_element(scale.type, wide), scale)
    if widens:
        extended = make("arith.extf", result, value)
        found += [factor, extended, make("arith.mulf", result, factor, extended)]
    else:
        quotient = make("arith.divf", value.type, value, factor)
        found += [factor, quotient, make("arith.truncf", result, quotient)]
    return found


MOST_SUBGROUPS = max(t.threads for t in TARGETS.values())
"""The most subgroups of a workgroup on any target."""


def kind_of(op: ir.Operation) -> CombiningKind:
    """The kind by which a `gpu.all_reduce` combines.

    Raises:
        DiagnosticError: if its region is not one op of arith.
    """
    if "op" in op.attributes:
        return CombiningKind.of(op, "op")
    block = op.regions[0].blocks[0]
    inner = [o.operation for o in block.operations]
    element, combines = (
        element_of(block.arguments[0]),
        len(inner) == 2 and set(inner[0].operands) == set(block.arguments),
    )
    kind = next((kind for kind in CombiningKind if kind.scalar_op(element) == inner[0].name), None)
    if kind is None or not combines or list(inner[1].operands) != list(inner[0].results):
        note = "specify the operation, for example gpu.all_reduce add"
        emit_error(op, "region must be a single arith op on both arguments", note)
    return kind


def combine_subgroups(value: ir.Value, kind: CombiningKind, number: ir.Value, count: ir.Value) -> ir.Value:
    """The numbers of all subgroups combined in the order of the subgroups, at the current insertion point.

    Args:
        value: the subgroup's scalar.
        number, count: the subgroup's number, and the number of subgroups.
    """
    buffer = ir.Type.parse(f"memref<{MOST_SUBGROUPS}x{value.type}, 3>")
    shared = make("memref.alloc", buffer, operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]))
    create("memref.store", [], [value, shared, number])
    create("gpu.barrier", [], [])
    one = index(1)
    first = make("memref.load", value.type, shared, index(0))
    loop = create("scf.for", [value.type], [one, count, one, first], regions=1)
    body = ir.Block.create_at_start(loop.regions[0], [index_type(), value.type])
    with ir.InsertionPoint(body):
        other = make("memref.load", value.type, shared, body.arguments[0])
        create("scf.yield", [], [kind.combine(body.arguments[1], other)])
    # The next iteration of an enclosing loop may write the buffer again.
    create("gpu.barrier", [], [])
    return loop.results[0]
