"""2D surfaces whose extents a kernel computes from its arguments: whether 2D block messages can address them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from mlir import ir as mlir
from msgspec import Struct

from xegpu_py.dialects.xegpu import TensorDesc
from xegpu_py.ir.diagnostics import position_of
from xegpu_py.ir.verifier import walk
from xegpu_py.passes.common.surfaces import argument_of
from xegpu_py.passes.common.values import constant_of, defining_op
from xegpu_py.target import target as target_of

Expression: TypeAlias = "int | tuple[Any, ...]"
"""A number; ("argument", i); ("extent", i, d), of an array; or an op's name and its operands."""

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: a // b,
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "ceildivsi": lambda a, b: -(-a // b),
    "ceildivui": lambda a, b: -(-a // b),
    "floordivsi": lambda a, b: a // b,
    "maxsi": max,
    "maxui": max,
    "minsi": min,
    "minui": min,
    "shli": lambda a, b: a << b if b < 64 else 0,
    "shrui": lambda a, b: a >> b,
    "andi": lambda a, b: a & b,
}
"""Ops of arith on extents, which are not negative and do not wrap around."""
_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui")
_DEPTH = 16


class Surface(Struct, frozen=True):
    """The surface of a descriptor or tile. It is plain data, as parameters are.

    Attributes:
        argument: the number of the argument whose memory contains the surface.
        size: bytes of an element.
        width, rows, pitch: elements of a row, number of rows, and elements from one row to the next; None if it is not
            computed from arguments alone.
    """

    argument: int
    size: int
    width: Expression | None
    rows: Expression | None
    pitch: Expression | None


def surfaces_of(func: mlir.Operation) -> tuple[Surface, ...]:
    """The surfaces whose extents or strides are given by values, of a kernel of XeGPU or XeTile."""
    found: dict[Surface, None] = {}
    for op in walk(func):
        if op.name not in ("xegpu.create_nd_tdesc", "xetile.init_tile"):
            continue
        view: Any = op.opview
        shape, strides = _extents(view)
        argument = argument_of(view.source)
        if len(shape) < 2 or argument is None or all(isinstance(n, int) for n in (*shape[-2:], *strides[-2:])):
            continue
        if isinstance(view.source.type, mlir.MemRefType) and view.source.type.memory_space is not None:
            continue
        (rows, columns), (pitch, step) = shape[-2:], strides[-2:]
        if constant_of(step) != 1 and constant_of(pitch) == 1:
            rows, columns, pitch = columns, rows, step
        size = _element_bits(op.results[0].type) // 8
        if size:
            found[Surface(argument, size, *map(expression_of, (columns, rows, pitch)))] = None
    return tuple(found)


class Product(Struct, frozen=True):
    """A product of matrices that are loaded from surfaces.

    Attributes:
        where: the product's place in the source.
        columns, rows: the inner sizes of its surfaces: columns of the left one, and rows of the right one.
    """

    where: str
    columns: Expression
    rows: Expression


_PRODUCTS = {"xegpu.dpas": ("lhs", "rhs"), "xetile.tile_mma": ("a", "b")}
_LOADS = ("xegpu.load_nd", "xetile.load_tile")
_PARTS = ("vector.shape_cast", "vector.extract", "vector.extract_strided_slice")
_UPDATES = ("xegpu.update_nd_offset", "xetile.update_tile_offset")


def products_of(func: mlir.Operation) -> tuple[Product, ...]:
    """The products of a kernel whose operands are loaded from row-major surfaces, and not transposed or converted."""
    # One for each pair of sizes: calls compare them.
    found: dict[tuple[Expression, Expression], Product] = {}
    for op in walk(func):
        if op.name in _PRODUCTS:
            left, right = (_surface_of(getattr(op.opview, name)) for name in _PRODUCTS[op.name])
            if left and right and left[1] is not None and right[0] is not None and left[1] != right[0]:
                found.setdefault((left[1], right[0]), Product(str(position_of(op.location)), left[1], right[0]))
    return tuple(found.values())


def _surface_of(value: mlir.Value) -> tuple[Expression | None, Expression | None] | None:
    """The rows and columns of the surface from which a matrix is loaded; None if it is not known."""
    element = str(mlir.VectorType(value.type).element_type)
    for _ in range(_DEPTH):
        op = defining_op(value)
        if op is None:
            argument = mlir.BlockArgument(value)
            loop = argument.owner.owner
            if loop is None or loop.operation.name != "scf.for" or not argument.arg_number:
                return None
            value = loop.operation.operands[2 + argument.arg_number]
        elif op.name in ("xegpu.create_nd_tdesc", "xetile.init_tile"):
            return _rows_and_columns(op.opview, element)
        elif op.name in (*_PARTS, *_UPDATES) or (op.name in _LOADS and "transpose" not in op.attributes):
            value = op.operands[0]
        else:
            return None
    return None


def _rows_and_columns(view: Any, element: str) -> tuple[Expression | None, Expression | None] | None:
    shape, strides = _extents(view)
    kind = view.source.type
    if not isinstance(kind, mlir.MemRefType) or str(kind.element_type) != element:
        return None
    if not shape:
        steps, unknown = kind.get_strides_and_offset()[0], mlir.ShapedType.get_dynamic_size()
        array = expression_of(view.source, 0)
        if len(steps) < 2 or steps[-1] != 1 or (unknown in kind.shape[-2:] and not isinstance(array, tuple)):
            return None
        number, first = array[1] if isinstance(array, tuple) else -1, len(steps) - 2
        rows, columns = (n if n != unknown else ("extent", number, first + d) for d, n in enumerate(kind.shape[-2:]))
        return rows, columns
    if len(shape) < 2 or constant_of(strides[-1]) != 1:
        return None
    return expression_of(shape[-2]), expression_of(shape[-1])


def unlike_products(products: Sequence[Product], arguments: Sequence[Any]) -> str | None:
    """A warning of a product whose inner sizes do not fit in a call; None if there is none.

    Sizes of which one is a multiple of the other are not reported: matrices that are stacked in one array have them.
    """
    for product in products:
        columns, rows = evaluated(product.columns, arguments), evaluated(product.rows, arguments)
        if columns and rows and max(columns, rows) % min(columns, rows):
            return (
                f"{product.where}: the left matrix is loaded from rows of {columns} elements, but the right one from "
                f"{rows} rows; out-of-bounds elements are zero, and check='bounds' finds the first load of them"
            )
    return None


def _extents(view: Any) -> tuple[list[mlir.Value | int], list[mlir.Value | int]]:
    """The shape and the strides of a descriptor or tile: its own, or those of the memory cast that it is made from."""
    made = defining_op(view.source)
    if view.shape or made is None or made.name != "memref.reinterpret_cast":
        return list(view.shape), list(view.strides)
    dynamic, unknown = iter(made.operands[1:]), mlir.ShapedType.get_dynamic_size()
    _, sizes, strides = (
        [next(dynamic) if n == unknown else n for n in mlir.DenseI64ArrayAttr(made.attributes[name])]
        for name in ("static_offsets", "static_sizes", "static_strides")
    )
    return sizes, strides


def _element_bits(kind: mlir.Type) -> int:
    text = str(kind)
    if text.startswith("!xegpu."):
        return TensorDesc.decode(text).bits
    # Imported only when needed, because most kernels have no tiles.
    from xegpu_py.dialects.xetile import Tile

    bits: int = Tile.decode(text).bits
    return bits


def expression_of(value: mlir.Value | int, depth: int = _DEPTH) -> Expression | None:
    """The expression that computes a number from the function's arguments; None if it contains other values or ops."""
    known = constant_of(value)
    if known is not None:
        return known
    assert isinstance(value, mlir.Value)
    op = defining_op(value)
    if op is None:
        argument = mlir.BlockArgument(value)
        parent = argument.owner.owner
        of_kernel = parent is not None and parent.operation.name == "gpu.func"
        return ("argument", argument.arg_number) if of_kernel else None
    if not depth:
        return None
    if op.name in _CASTS:
        return expression_of(op.operands[0], depth - 1)
    if op.name == "memref.dim":
        array, dimension = expression_of(op.operands[0], 0), constant_of(op.operands[1])
        return ("extent", array[1], dimension) if isinstance(array, tuple) and dimension is not None else None
    name = op.name.removeprefix("arith.")
    if name not in _OPERATIONS or not op.name.startswith("arith."):
        return None
    operands = [expression_of(v, depth - 1) for v in op.operands]
    return None if None in operands else (name, *operands)


def evaluated(expression: Expression | None, arguments: Sequence[Any]) -> int | None:
    """The value of an expression for the arguments of a call; None if it is not known."""
    if expression is None or isinstance(expression, int):
        return expression
    kind, *rest = expression
    if kind == "argument":
        given = arguments[rest[0]]
        return int(given) if isinstance(given, (int, np.integer)) else None
    if kind == "extent":
        shape = np.shape(arguments[rest[0]])
        return shape[rest[1]] if rest[1] < len(shape) else None
    numbers = [evaluated(e, arguments) for e in rest]
    if None in numbers or min(n for n in numbers if n is not None) < 0:
        return None
    a, b = (n for n in numbers if n is not None)
    return None if not b and ("div" in kind or "rem" in kind) else _OPERATIONS[kind](a, b)


def unaligned_surfaces(surfaces: Sequence[Surface], arguments: Sequence[Any], target: str) -> tuple[int, ...]:
    """The numbers of the arguments with surfaces that 2D block messages cannot address in a call."""
    limits = target_of(target).block2d
    if limits is None:
        return ()
    found = set()
    for surface in surfaces:
        width, rows, pitch = (evaluated(e, arguments) for e in (surface.width, surface.rows, surface.pitch))
        in_bytes = [None if n is None else n * surface.size for n in (width, pitch)]
        address = arguments[surface.argument]
        start = int(address) if isinstance(address, (int, np.integer)) else None
        if limits.surface_problem(in_bytes[0], rows, in_bytes[1], start) is not None:
            found.add(surface.argument)
    return tuple(sorted(found))
