"""Facts about ops on vectors, and small ops that the passes build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir
from mlir.dialects import arith, vector
from xegpu_py.passes.common.combining import combining_op

from xegpu_py.ir.builtin import is_float, vector_of, vector_text
from xegpu_py.ir.calls import is_intrinsic, recalled

_ALSO_ELEMENTWISE = ("vector.fma",)


def is_vector(value: ir.Value | ir.Type) -> bool:
    """Whether this is, or has the type of, a vector of fixed size."""
    text = str(value if isinstance(value, ir.Type) else value.type)
    return text.startswith("vector<") and "[" not in text


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """The shape of a vector."""
    return vector_of(str(value.type))[0]


def element_of(value: ir.Value) -> str:
    """The element type of a vector."""
    return vector_of(str(value.type))[1]


def vector_type(shape: Sequence[int], element: str) -> ir.Type:
    """A vector type."""
    return ir.Type.parse(vector_text(tuple(shape), element))


def reshaped(kind: ir.Type, shape: Sequence[int]) -> ir.Type:
    """A vector type with the same elements and another shape."""
    return vector_type(shape, vector_of(str(kind))[1])


def is_elementwise(op: ir.Operation) -> bool:
    """Whether each element of the results comes from the elements of the operands at the same place, or scalars."""
    named = op.name.startswith(("arith.", "math.")) or op.name in _ALSO_ELEMENTWISE
    if not (named or is_intrinsic(op)) or op.name == "arith.constant":
        return False
    shapes = {shape_of(v) for v in (*op.operands, *op.results) if is_vector(v)}
    return len(shapes) == 1


def is_splat(op: ir.Operation) -> bool:
    """Whether each element of the op's vector is the same: a constant, a scalar that is repeated, or poison."""
    if op.name == "arith.constant" and is_vector(op.results[0]):
        value = op.attributes["value"]
        return isinstance(value, ir.DenseElementsAttr) and value.is_splat
    if op.name == "ub.poison":
        return is_vector(op.results[0])
    return op.name in ("vector.broadcast", "vector.splat") and not is_vector(op.operands[0])


def splat_of(op: ir.Operation, operands: Sequence[ir.Value], shape: Sequence[int]) -> ir.Value:
    """A splat in another shape, of new operands."""
    if op.name != "arith.constant":
        return resized(op, operands, shape)[0]
    kind = reshaped(op.results[0].type, shape)
    value = ir.DenseElementsAttr(op.attributes["value"])
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, value.get_splat_value()))


def constant(kind: ir.Type, number: str) -> ir.Value:
    """A constant of this type, of which all elements are the number of this text."""
    text = f"dense<{number}> : {kind}" if is_vector(kind) else f"{number} : {kind}"
    return arith.constant(kind, ir.Attribute.parse(text))


def splat(kind: ir.Type, value: ir.Attribute) -> ir.Value:
    """A constant vector of this type, of which all elements are the same."""
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, value))


def zero(kind: ir.Type) -> ir.Value:
    """The vector of zeros."""
    element = vector_of(str(kind))[1]
    return constant(kind, "false" if element == "i1" else "0.0" if is_float(element) else "0")


def combine(kind: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """Two vectors combined element by element, as a reduction of this kind does."""
    name = combining_op(kind, ir.VectorType(a.type).element_type)
    found: ir.Value = ir.Operation.create(name, results=[a.type], operands=[a, b]).result
    return found


def cut(value: ir.Value, offsets: Sequence[int], sizes: Sequence[int]) -> ir.Value:
    """A part of a vector; itself if that is all of it."""
    if tuple(sizes) == shape_of(value):
        return value
    return vector.extract_strided_slice(
        reshaped(value.type, sizes), value, list(offsets), list(sizes), [1] * len(sizes)
    )


def put(value: ir.Value, into: ir.Value, offsets: Sequence[int]) -> ir.Value:
    """A vector with a part replaced."""
    if shape_of(value) == shape_of(into):
        return value
    return vector.insert_strided_slice(value, into, list(offsets), [1] * len(shape_of(value)))


def resized(op: ir.Operation, operands: Sequence[ir.Value], shape: Sequence[int]) -> list[ir.Value]:
    """An elementwise op on vectors of another shape."""
    results = [reshaped(r.type, shape) if is_vector(r) else r.type for r in op.results]
    if is_intrinsic(op):
        return [recalled(op, list(operands), results[0])]
    attributes = {name: op.attributes[name] for name in op.attributes if name != "map"}
    made: Any = ir.Operation.create(op.name, results=results, operands=list(operands), attributes=attributes)
    return list(made.results)
