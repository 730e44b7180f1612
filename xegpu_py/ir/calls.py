"""Calls of functions without a body, which stand for single instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlir import ir

INLINE = "visa.inline"
"""The name of calls that are instructions of vISA."""

PRINT = "visa.print"
"""The name of calls that print for each lane of a mask, their first operand; `TEXT` is the format of the others."""

TEXT = "visa.text"
"""The attribute of a call that has the instructions, as `inline_visa` takes them, or a format."""

INTRINSICS = ("llvm.genx.", f"{INLINE}.")
"""Prefixes of the names of such functions. Their calls work element by element, and have no effect."""


def is_intrinsic(op: ir.Operation) -> bool:
    """Whether an op is such a call."""
    return bool(op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value.startswith(INTRINSICS))


def is_print(op: ir.Operation) -> bool:
    """Whether an op is a call that prints for each lane."""
    return bool(op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value.startswith(PRINT))


def called(
    name: str, result: ir.Type | None, *operands: ir.Value, attributes: Mapping[str, ir.Attribute] | None = None
) -> Any:
    """A call of a function without a body, which is declared for these types if it is not.

    Args:
        name: the function's name, to which a suffix for the types is added.
        result: the type of what it gives; None if it gives nothing.
        operands: what it takes.
        attributes: further attributes of the call.
    """
    # The module registers the classes of its ops, which takes 0.6 ms.
    from mlir.dialects import func

    kinds = [v.type for v in operands]
    results = [] if result is None else [result]
    symbol = f"{name}.{_suffix(*results, *kinds)}"
    table = _table()
    with ir.Location.unknown():
        for op in table.operations:
            if op.operation.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == symbol:
                break
        else:
            with ir.InsertionPoint.at_block_begin(table):
                func.FuncOp(symbol, (kinds, results), visibility="private")
    made = func.CallOp(results, symbol, list(operands))
    for key, attribute in (attributes or {}).items():
        made.operation.attributes[key] = attribute
    return made.results[0] if results else None


def recalled(op: ir.Operation, operands: list[ir.Value], result: ir.Type) -> ir.Value:
    """The call of the same function with operands of other types."""
    symbol: str = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
    suffix = _suffix(op.results[0].type, *(v.type for v in op.operands))
    kept = {n: op.attributes[n] for n in op.attributes if n not in ("callee", "map")}
    found: ir.Value = called(symbol.removesuffix(f".{suffix}"), result, *operands, attributes=kept)
    return found


def _suffix(*kinds: ir.Type) -> str:
    return "_".join("".join(c for c in str(kind) if c.isalnum()) for kind in kinds)


def _table() -> ir.Block:
    """The body of the module around the current insertion point."""
    owner: Any = ir.InsertionPoint.current.block.owner
    while owner.operation.name not in ("gpu.module", "builtin.module"):
        owner = owner.operation.parent
    block: ir.Block = owner.operation.regions[0].blocks[0]
    return block
