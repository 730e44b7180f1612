"""Inline MLIR and vISA, for operations without a function in the language."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from mlir import ir as mlir

from xegpu_py.ir.calls import INLINE, TEXT, called
from xegpu_py.ir.context import current
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import parse_source
from xegpu_py.ir.source import Source
from xegpu_py.language.held import BUILDING, matrix_shape
from xegpu_py.language.types import dtype_of
from xegpu_py.language.values import Product, Value, value_of


def inline_mlir(text: str, *operands: Any, dtype: Any = None) -> Any:
    """Build ops of MLIR from text, with values of the kernel as operands.

        angle = inline_mlir("%r = math.atan2 $0, $1 : $t0  return %r : $t0", y, x)

    `$0`, `$1`, ... stand for the operands, and `$t0`, `$t1`, ... for their types: scalars and vectors, in which leading
    dimensions beyond two are one. The text ends with `return`, which names the results and their types.

    Args:
        text: the ops.
        operands: values and numbers.
        dtype: the element type of the results, or a tuple of element types; integers are signed by default.

    Returns:
        The result, a tuple of several results, or None. A result has the shape of the first operand of its MLIR shape.

    Raises:
        ValueError: if the text cannot be parsed.
    """
    BUILDING.check()
    given = [value_of(v) for v in operands]
    body = re.sub(r"\$t(\d+)", lambda m: str(given[int(m[1])].ir.type), text)
    body = re.sub(r"\$(\d+)", lambda m: f"%arg{m[1]}", body)
    ends = re.findall(r"\breturn\b([^\n]*)", body)
    if not ends:
        raise ValueError("the text of inline_mlir ends with 'return', and the types of what it returns")
    results = ends[-1].partition(":")[2].strip()
    arguments = ", ".join(f"%arg{i}: {v.ir.type}" for i, v in enumerate(given))
    whole = f"func.func @inlined({arguments}) -> ({results}) {{\n{body}\n}}"
    try:
        module = parse_source(Source(whole, "<inline_mlir>"), context=current())
    except DiagnosticError as e:
        raise ValueError(f"inline_mlir: {e.diagnostics[0].message}") from e
    return _results(_inlined(module, given), given, dtype)


def _inlined(module: Any, given: list[Value]) -> list[mlir.Value]:
    """Clone the ops of a function at the insertion point; gives the results."""
    (function,) = module.ir.body.operations
    block = function.regions[0].blocks[0]
    values = dict(zip(block.arguments, (v.ir for v in given)))
    *ops, end = block.operations
    for op in ops:
        made = op.operation.clone()
        for i, operand in enumerate(op.operation.operands):
            made.operands[i] = values[operand]
        values |= dict(zip(op.operation.results, made.results))
    return [values[v] for v in end.operation.operands]


def _results(found: list[mlir.Value], given: list[Value], dtype: Any) -> Any:
    wanted = dtype if isinstance(dtype, (tuple, list)) else [dtype] * len(found)
    made = []
    for value, kind in zip(found, wanted, strict=True):
        plain = Value(value, None if kind is None else dtype_of(kind))
        like = next((v for v in given if matrix_shape(v.shape) == plain.shape), None)
        made.append(plain if like is None else plain.reshape(like.shape))
    return None if not made else made[0] if len(made) == 1 else tuple(made)


def inline_visa(text: str, *operands: Any, dtype: Any = None) -> Value:
    """Apply arithmetic instructions of vISA, given as text, to each element.

        high = inline_visa("mulh $0:ud $1:ud $2:ud", a, b)
        y = inline_visa("mul %t:f $1:f 0.5:f  \\n mad.sat $0:f %t:f $1:f $2:f", x, bias)

    `$0` is the result, `$1`, `$2`, ... are the operands, names that begin with `%` are temporaries, and numbers
    are immediates. Each has its type; a minus sign negates. Execution sizes, regions and masks are those of the
    vectors. The reference and the eager engine reject it: they do not execute vISA.

    Args:
        text: an instruction a line: name, with `.sat` or without, destination, sources.
        operands: values, which are broadcast, and numbers of the first value's type.
        dtype: the element type of the result; by default that of the first operand.

    Raises:
        TypeError: if no operand is a value.
    """
    BUILDING.check()
    first = next((value_of(v) for v in operands if isinstance(v, (Value, Product))), None)
    if first is None:
        raise TypeError("inline_visa needs an operand that is a value")
    given = [value_of(v, first.dtype) for v in operands]
    shape = np.broadcast_shapes(*(v.shape for v in given))
    wide = [v.broadcast(shape or (1,)) for v in given]
    to = first.dtype if dtype is None else dtype_of(dtype)
    attributes = {TEXT: mlir.StringAttr.get(text)}
    kind = wide[0]._type(wide[0].shape, to)
    made = wide[0]._made(called(INLINE, kind, *(v.ir for v in wide), attributes=attributes), to)
    return made.reshape(shape)
