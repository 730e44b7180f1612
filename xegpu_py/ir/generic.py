"""Ops of any dialect, made from their names and the text of their types and attributes."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir


def make(name: str, result: ir.Type | str, *operands: ir.Value, **attributes: str) -> ir.Value:
    """The result of a new op that has one.

    Args:
        result: its type, or the text of it.
        attributes: the text of each.
    """
    kind = ir.Type.parse(result) if isinstance(result, str) else result
    parsed = {k: ir.Attribute.parse(v) for k, v in attributes.items()}
    made: ir.Value = ir.Operation.create(name, [kind], list(operands), parsed).results[0]
    return made


def integers(values: Sequence[int]) -> str:
    """The text of an array of integers of 64 bits."""
    return f"array<i64: {', '.join(map(str, values))}>"
