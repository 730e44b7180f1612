"""Facts about values, types and attributes."""

from __future__ import annotations

from itertools import islice

from mlir import ir

from xegpu_py.ir.builtin import bit_width
from xegpu_py.ir.decoded import Decoded

_CONSTANTS = ("arith.constant", "index.constant")


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The op that defines a value; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def block_of(value: ir.Value) -> ir.Block:
    """The block in which a value is defined."""
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def is_vector(value: ir.Value | ir.Type) -> bool:
    """Whether this is, or has the type of, a vector of fixed size."""
    kind = value if isinstance(value, ir.Type) else value.type
    return isinstance(kind, ir.VectorType) and not kind.scalable


_SHAPES: Decoded[tuple[int, ...]] = Decoded(lambda kind: tuple(kind.shape) if isinstance(kind, ir.VectorType) else ())


def shape_of(value: ir.Value | ir.Type) -> tuple[int, ...]:
    """The shape of a vector or vector type; () for others."""
    return _SHAPES[value.type if isinstance(value, ir.Value) else value]


def element_of(value: ir.Value | ir.Type) -> ir.Type:
    """The element type of a vector or vector type; for others the type itself."""
    kind = value if isinstance(value, ir.Type) else value.type
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


_BITS = Decoded(lambda element: bit_width(str(element)))


def bits_of(element: ir.Type) -> int:
    """The bits of an integer or float type.

    Raises:
        ValueError: if it is neither, such as index.
    """
    return _BITS[element]


_IS_DESC = Decoded(lambda kind: str(kind).startswith("!xegpu.tensor_desc<"))


def is_desc(value: ir.Value | ir.Type) -> bool:
    """Whether this is, or has the type of, a tensor descriptor."""
    return _IS_DESC[value.type if isinstance(value, ir.Value) else value]


def has_one_shape(op: ir.Operation) -> bool:
    """Whether an op has vectors, all of one shape, besides scalars."""
    return len({shape_of(v) for v in (*op.operands, *op.results)} - {()}) == 1


def is_elementwise(op: ir.Operation) -> bool:
    """Whether an upstream op computes each element from elements at the same position and scalars."""
    named = op.name.startswith(("arith.", "math.")) or op.name == "vector.fma"
    return named and op.name != "arith.constant" and has_one_shape(op)


def attributes_of(op: ir.Operation) -> dict[str, ir.Attribute]:
    """An op's attributes by name."""
    return {name: op.attributes[name] for name in op.attributes}


def integers(attribute: ir.Attribute) -> list[int]:
    """The integers of an array attribute."""
    if isinstance(attribute, ir.ArrayAttr):
        return [a.value for a in attribute]
    return list(attribute)


def segments(op: ir.Operation) -> list[list[ir.Value]]:
    """The groups of an op's operands, as `operandSegmentSizes` divides them."""
    rest = iter(op.operands)
    return [list(islice(rest, n)) for n in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])]


def is_used(value: ir.Value) -> bool:
    """Whether a value has uses."""
    return next(iter(value.uses), None) is not None


def constant_of(value: ir.Value | int) -> int | None:
    """The value of a constant integer; None for other values."""
    if isinstance(value, int):
        return value
    op = defining_op(value)
    if op is None or op.name not in _CONSTANTS:
        return None
    number = op.attributes["value"]
    return int(number.value) if isinstance(number, ir.IntegerAttr) else None


def splat_of(value: ir.Value) -> ir.Attribute | None:
    """The element of a splat constant; None for other values."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    found = op.attributes["value"]
    return found.get_splat_value() if isinstance(found, ir.DenseElementsAttr) and found.is_splat else None
