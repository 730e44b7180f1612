"""Loops, branches, and the function's end."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from xegpu_py.dialects import iree_vector_ext
from xegpu_py.passes.vector_distribute.distributor import Distributor, attributes_of, distributes, element_of


def _types(d: Distributor, values: Sequence[ir.Value]) -> list[ir.Type]:
    return [d.part_type(d.layouts[v], element_of(v)) if v in d.layouts else v.type for v in values]


def _rebuilt(d: Distributor, op: ir.Operation) -> None:
    """The op with parts for vectors, in operands, results and the arguments of its regions."""
    operands = [d.part(v) for v in op.operands]
    made = ir.Operation.create(
        op.name, _types(d, op.results), operands, attributes_of(op), regions=len(list(op.regions))
    )
    # Before what is in it: dead ops are erased from the last on, and those inside use this op's arguments.
    d.replace(op, *made.results)
    for old, new in zip(op.regions, made.regions):
        for block in old:
            arguments = list(block.arguments)
            moved = new.blocks.append(*_types(d, arguments), arg_locs=[op.location] * len(arguments))
            for before, after in zip(arguments, moved.arguments):
                if before in d.layouts:
                    d.set(before, after)
                else:
                    before.replace_all_uses_with(after)
            for inner in list(block.operations):
                moved.append(inner)
            d.block(moved)


@distributes("scf.for", "scf.if", "scf.while", "scf.execute_region", "scf.index_switch")
def control_flow(d: Distributor, op: ir.Operation) -> None:
    """Vectors that are handed on are parts."""
    _rebuilt(d, op)


@distributes("scf.yield", "scf.condition")
def end(d: Distributor, op: ir.Operation) -> None:
    """Hand parts on."""
    for i, value in enumerate(list(op.operands)):
        op.operands[i] = d.part(value)


@distributes("func.return", "gpu.return")
def leave(d: Distributor, op: ir.Operation) -> None:
    """What goes out of the function is whole."""
    for i, value in enumerate(list(op.operands)):
        if value in d.layouts:
            op.operands[i] = iree_vector_ext.ToSimdOp(d.part(value), output=value.type).operation.results[0]
