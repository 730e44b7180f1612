"""Products of matrices: `dot`, and `dot_scaled` of block-scaled formats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlir import ir as mlir
from mlir.dialects import arith, vector

from xegpu_py.dialects import xetile
from xegpu_py.dialects.xegpu.matrix_ops import SCALE, SCALE_BLOCK, accumulators, scaled_accumulators
from xegpu_py.ir.builtin import vector_text
from xegpu_py.tiles import element_types
from xegpu_py.tiles.element_types import DType, dtype_of
from xegpu_py.tiles.functions import join, where
from xegpu_py.tiles.tile_values import Product, Value, by_fma, result_of, value_of
from xegpu_py.tiles.value_base import BUILDING, concatenate

PRECISIONS = ("tf32", "ieee", "tf32x3", "bf16x3", "bf16x6")
"""How `dot` multiplies float32."""


def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: Any = None,
) -> Value | Product:
    """The product of two matrices, or of stacks of them, added to `acc` if there is one.

    `acc += dot(a, b)` is `acc = dot(a, b, acc)` if `acc` has the product's type and the sum stands in the same block:
    Triton's compiler joins the two as well.

    Integers of 8 bits, bfloat16, float16, tf32, float64 and both types of 8 bits are multiplied by DPAS, which adds
    exact products in float32, float64 or int32 (docs/numerics.md). If the target's DPAS lacks a type, numbers of 8 bits
    are multiplied as float16, which holds them, and one fma adds each product of float64 and tf32. float32 is
    multiplied as `input_precision` says.

    Args:
        input: MxK, or of more dimensions, which both operands share.
        other: KxN.
        acc: MxN.
        input_precision: of float32. "tf32", the default as in Triton: both are rounded to tf32. "ieee", also of
            float64: each product is added by one fma, in the order of K. "tf32x3": both are sums of two tf32, and the
            product of the small ones is left out. "bf16x3", "bf16x6": sums of two or three bfloat16, likewise.
        allow_tf32: Triton's older name: True is "tf32", False "ieee".
        max_num_imprecise_acc: Triton's, without effect: the accumulator is always float32.
        out_dtype: the type of the result; by default `acc`'s, or else float32, or int32 of integers.

    Raises:
        TypeError: if the types cannot be multiplied.
        ValueError: if the shapes do not fit, or for another precision.
    """
    a, b = value_of(input), value_of(other)
    if allow_tf32 is not None and input_precision is None:
        input_precision = "tf32" if allow_tf32 else "ieee"
    if input_precision is not None and input_precision not in PRECISIONS:
        names = ", ".join(map(repr, PRECISIONS))
        raise ValueError(f"there is no input_precision {input_precision!r}; there are {names}")
    c = None if acc is None else value_of(acc)
    if min(a.ndim, b.ndim) < 2:
        raise TypeError(f"dot multiplies matrices, and not {a.describe()} by {b.describe()}")
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"dot cannot multiply {a.describe()} by {b.describe()}: their extents along K differ")
    if a.ndim > 2 or b.ndim > 2:
        added = None if c is None else c.broadcast((*a.shape[:-1], b.shape[-1]))
        return _stacked([a, b, added], lambda a, b, c: dot(a, b, c, input_precision, out_dtype=out_dtype))
    result_dtype = dtype_of(out_dtype) if out_dtype is not None else c.dtype if c is not None else None
    if a.dtype == b.dtype and a.dtype in (element_types.float32, element_types.float64):
        if input_precision == "ieee":
            dot_product = by_fma(a, b, c, a.dtype)
            return dot_product if result_dtype is None else dot_product.to(result_dtype)
        if a.dtype == element_types.float32 and (c, result_dtype, input_precision or "tf32") == (None, None, "tf32"):
            a, b = a.to(element_types.tfloat32), b.to(element_types.tfloat32)
        elif a.dtype == element_types.float32:
            dot_product = _of_float32(a, b, c, input_precision or "tf32")
            return dot_product if result_dtype is None else dot_product.to(result_dtype)
    if c is None and result_dtype is None:
        return Product(a, b, adds=result_of(a.dtype))
    product = Product(a, b)
    accumulator_names = accumulators(a.dtype.mlir, b.dtype.mlir)
    return _accumulated(lambda c, dtype: product.multiplied(dtype, c), accumulator_names, c, result_dtype)


def _accumulated(
    multiplied: Callable[[Value | None, DType], Value],
    accumulator_names: Sequence[str],
    c: Value | None,
    result_dtype: DType | None,
) -> Value:
    """A product added to an accumulator, in a type.

    Args:
        multiplied: the product added to an accumulator of a type, if there is one.
        accumulator_names: MLIR's names of the types that the instruction adds in.
    """
    accumulator_dtype = c.dtype if c is not None else result_dtype
    if accumulator_dtype is not None and accumulator_dtype.mlir in accumulator_names:
        product = multiplied(c, accumulator_dtype)
    else:
        # The instruction has no such accumulator: it is added once, to the whole product.
        product = multiplied(None, dtype_of(accumulator_names[0]))
        product = product if c is None else product + c
    return product if result_dtype is None else product.to(result_dtype)


def _stacked(operands: Sequence[Value | None], multiply: Callable[..., Value | Product]) -> Value:
    """The products of all matrices of stacks: the two factors, and further operands of each product."""
    a, b = operands[:2]
    assert a is not None and b is not None
    if a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2]:
        raise ValueError(f"dot cannot multiply {a.describe()} by {b.describe()}: the leading dimensions differ")
    stack, matrices = a.shape[:-2], []
    for i in range(math.prod(stack)):
        # Matrix i is rows of the matrix that holds the stack.
        parts = [
            None if v is None else v.reshape((-1, v.shape[-1])).rows(range(i * v.shape[-2], (i + 1) * v.shape[-2]))
            for v in operands
        ]
        matrices.append(value_of(multiply(*parts)))
    return concatenate(matrices, 0).reshape((*stack, *matrices[0].shape))


def _of_float32(a: Value, b: Value, c: Value | None, precision: str) -> Value:
    """A product of float32 by a precision, in float32."""
    total: Any = None if c is None else c.to(element_types.float32)
    narrow, part_count = {
        "tf32": (element_types.tfloat32, 1),
        "tf32x3": (element_types.tfloat32, 2),
        "bf16x3": (element_types.bfloat16, 2),
        "bf16x6": (element_types.bfloat16, 3),
    }[precision]
    lhs_parts, rhs_parts = _parts(a, narrow, part_count), _parts(b, narrow, part_count)
    # The smallest products first.
    for level in range(part_count - 1, -1, -1):
        for i in range(level, -1, -1):
            product = Product(lhs_parts[i], rhs_parts[level - i])
            total = product.value if total is None else product.plus(total)
    return total


def _parts(value: Value, narrow: DType, count: int) -> list[Value]:
    """Split float32 into a sum of `count` values of a narrower type, the greatest first."""
    terms, residual = [], value
    for _ in range(count):
        terms.append(residual.to(narrow))
        residual = residual - terms[-1].to(element_types.float32)
    return terms


_SCALED = {
    "e2m1": element_types.uint8,
    "e4m3": element_types.float8_e4m3fn,
    "e5m2": element_types.float8_e5m2,
    "bf16": element_types.bfloat16,
    "fp16": element_types.float16,
}
"""The formats of `dot_scaled` and their types: OCP's microscaling formats (e2m1: two a byte), and bf16 and fp16."""

GROUP = SCALE_BLOCK
"""Elements of K that have one scale (OCP Microscaling Formats 1.0, section 5)."""


def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: str,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: str,
    acc: Any = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: Any = element_types.float32,
) -> Value:
    """The product of two matrices of block-scaled formats, added to `acc` if there is one.

    Targets with `bdpas` (cri) multiply scaled elements exactly (docs/numerics.md, BDPAS). On others elements are
    multiplied by their scales first, in bfloat16, or in tf32 where one side is "fp16", and then by DPAS. The result is
    the same where that type holds the scaled elements: from 2^-133 up to 2^128, or from 2^-126. The products are added
    in float32.

    Args:
        lhs: MxK, or of more dimensions, which all operands share; of "e2m1" uint8 of MxK/2, two elements a byte, the
            first one in the low bits.
        lhs_scale: uint8 of MxK/32 or MxK/16: powers of two 2^(s - 127), NaN where s is 255 (E8M0); or numbers in
            float8_e4m3fn, as NVFP4 has one for 16 elements; None for no scale.
        lhs_format: "e2m1", "e4m3", "e5m2", "bf16" or "fp16".
        rhs: KxN; of "e2m1" uint8 of K/2xN.
        rhs_scale: NxK/32 or NxK/16, as `lhs_scale`; None for no scale.
        rhs_format: as `lhs_format`.
        acc: MxN.
        fast_math: Triton's, without effect: a NaN scale always gives NaN.
        lhs_k_pack, rhs_k_pack: whether "e2m1" is packed along K; with False along M, or N.
        out_dtype: the type of the result.

    Raises:
        ValueError: for another format, or if the shapes do not fit.
        TypeError: if elements or scales have another type.
    """
    operands = [None if v is None else value_of(v) for v in (lhs, rhs, lhs_scale, rhs_scale, acc)]
    if any(v is not None and v.ndim > 2 for v in operands[:2]):

        def of_matrices(a: Value, b: Value, a_scale: Value | None, b_scale: Value | None, c: Value | None) -> Value:
            packed = (fast_math, lhs_k_pack, rhs_k_pack)
            return dot_scaled(a, a_scale, lhs_format, b, b_scale, rhs_format, c, *packed, out_dtype)

        return _stacked(operands, of_matrices)
    forms = {lhs_format, rhs_format}
    a = _Factor(value_of(lhs), lhs_format, 1 if lhs_k_pack else 0, "lhs")
    b = _Factor(value_of(rhs), rhs_format, 0 if rhs_k_pack else 1, "rhs")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"dot_scaled cannot multiply {a.shape[0]}x{a.shape[1]} by {b.shape[0]}x{b.shape[1]} elements")
    lhs_scales = None if lhs_scale is None else _checked_scale(value_of(lhs_scale), a.shape, "lhs_scale")
    rhs_scales = None if rhs_scale is None else _checked_scale(value_of(rhs_scale), b.shape[::-1], "rhs_scale").T
    scaled = lhs_scales is not None or rhs_scales is not None
    blocks = (lhs_scales is None or _is_of_blocks(lhs_scales, a.shape[1], 1)) and (
        rhs_scales is None or _is_of_blocks(rhs_scales, a.shape[1], 0)
    )
    if scaled and blocks and "bdpas" not in BUILDING.target.absent and forms != {"bf16", "fp16"}:
        return _by_bdpas(a, b, lhs_scales, rhs_scales, None if acc is None else value_of(acc), dtype_of(out_dtype))
    if "fp16" in forms and (scaled or "bf16" in forms):
        wide = element_types.float32
    else:
        wide = element_types.float16 if "fp16" in forms else element_types.bfloat16
    lhs_numbers, rhs_numbers = a.numbers(wide), b.numbers(wide)
    lhs_numbers = lhs_numbers if lhs_scales is None else lhs_numbers * _factors(lhs_scales, 1, a.shape[1], wide)
    rhs_numbers = rhs_numbers if rhs_scales is None else rhs_numbers * _factors(rhs_scales, 0, a.shape[1], wide)
    return value_of(dot(lhs_numbers, rhs_numbers, acc, input_precision="tf32", out_dtype=out_dtype))


class _Factor:
    """A matrix whose elements are of a format.

    Attributes:
        shape: its rows and columns, in elements.
    """

    def __init__(self, value: Value, form: str, packed: int, name: str) -> None:
        """Make one.

        Args:
            value: the matrix.
            form: the format of its elements.
            packed: the dimension along which two elements of e2m1 share a byte.
            name: its name in error messages.

        Raises:
            ValueError: for another format, or if the value is not a matrix.
            TypeError: if the value's type is not that of the format.
        """
        if form not in _SCALED:
            raise ValueError(f"there is no format {form!r}; there are {', '.join(map(repr, _SCALED))}")
        if value.ndim != 2:
            raise ValueError(f"'{name}' must be a matrix, but got {value.describe()}")
        storage_dtype = _SCALED[form]
        if storage_dtype.bits == 8 and value.dtype in (element_types.uint8, element_types.int8):
            value = value.bitcast(storage_dtype)
        if value.dtype != storage_dtype:
            requirement = "uint8 of two elements a byte" if form == "e2m1" else f"{storage_dtype}"
            raise TypeError(f"'{name}' of format {form!r} must be {requirement}, but got {value.dtype}")
        self._value, self.form, self._packed = value, form, packed
        rows, columns = value.shape
        self.shape = (rows, columns)
        if form == "e2m1":
            self.shape = (rows, 2 * columns) if packed else (2 * rows, columns)

    def numbers(self, wide: DType) -> Value:
        """The elements as numbers of a type that holds them."""
        if self.form != "e2m1":
            return self._value.to(wide)
        low, high = self._value & 15, self._value >> 4
        # Packed along rows: put the low and the high rows side by side, and split each row in two.
        nibbles = join(low, high) if self._packed else concatenate([low, high], 1)
        return _of_e2m1(nibbles.reshape(self.shape), wide)

    def four_bits(self) -> mlir.Value:
        """The elements of e2m1, of four bits each."""
        if self._packed:
            return vector.bitcast(_matrix(self.shape, _E2M1), self._value.ir)
        columns = vector.bitcast(_matrix(self.shape[::-1], _E2M1), self._value.T.ir)
        return xetile.transpose(columns, (1, 0), result=_matrix(self.shape, _E2M1))


def _checked_scale(scale: Value, shape: tuple[int, ...], name: str) -> Value:
    """Scales of a matrix of this shape.

    Raises:
        TypeError: if they are neither bytes nor float8_e4m3fn.
        ValueError: if they have another shape.
    """
    rows, depth = shape
    if scale.dtype == element_types.int8:
        scale = scale.to(element_types.uint8)
    if scale.dtype not in (element_types.uint8, element_types.float8_e4m3fn):
        raise TypeError(f"'{name}' must be uint8 or float8_e4m3fn, but got {scale.dtype}")
    shapes = [(rows, depth // group) for group in (GROUP, GROUP // 2) if depth % group == 0]
    if scale.shape not in shapes:
        known = " or ".join(map(str, shapes)) or str((rows, f"{depth}/{GROUP}"))
        raise ValueError(f"'{name}' must have the shape {known}, but got {scale.describe()}")
    return scale


def _is_of_blocks(scale: Value, depth: int, axis: int) -> bool:
    """Whether scales are those of `bdpas`: powers of two, one for each 32 elements."""
    return scale.dtype == element_types.uint8 and scale.shape[axis] * GROUP == depth


_LAYOUTS = {
    element_types.float8_e4m3fn: (3, 7),
    element_types.float16: (10, 15),
    element_types.bfloat16: (7, 127),
    element_types.float32: (23, 127),
}
"""Bits of the fraction, and the exponent's bias, of types that hold all e2m1."""


def _of_e2m1(bits: Value, wide: DType) -> Value:
    """Four bits of E2M1 (0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives) as numbers."""
    fraction, bias = _LAYOUTS[wide]
    wide_bits = bits.to(element_types.integer_of(wide.bits, signed=False))
    size = wide_bits & 7
    half = bias - 1 << fraction
    # 0.5 is subnormal in E2M1, and normal elsewhere.
    number = where(size == 0, 0, where(size == 1, half, (size << fraction - 1) + half))
    return (number | ((wide_bits >> 3) << wide.bits - 1)).bitcast(wide)


def _factors(scale: Value, axis: int, depth: int, wide: DType) -> Value:
    """Scales as numbers, one for each of so many elements along a dimension."""
    numbers = (_powers(scale, wide) if scale.dtype == element_types.uint8 else scale.to(wide)).expand_dims(axis + 1)
    shape = list(scale.shape)
    shape.insert(axis + 1, depth // scale.shape[axis])
    return numbers.broadcast(shape).reshape([depth if d == axis else n for d, n in enumerate(scale.shape)])


def _powers(scale: Value, wide: DType) -> Value:
    """E8M0 as powers of two."""
    fraction, bias = _LAYOUTS[wide]
    assert bias == 127
    exponent = scale.to(element_types.integer_of(wide.bits, signed=False))
    # 2^-127 is subnormal, and 255 is NaN.
    nan = (511 << fraction) >> 1
    return where(exponent == 0, 1 << fraction - 1, where(exponent == 255, nan, exponent << fraction)).bitcast(wide)


_E2M1 = "f4E2M1FN"


def _by_bdpas(
    a: _Factor, b: _Factor, lhs_scales: Value | None, rhs_scales: Value | None, c: Value | None, result_dtype: DType
) -> Value:
    """The product by `bdpas`, which applies the scales; different formats are converted to a type that holds both.

    Args:
        lhs_scales, rhs_scales: the scales, MxK/32 and K/32xN.
        c: the accumulator.
        result_dtype: the type of the result.
    """
    forms = [a.form, b.form]
    if forms == ["e2m1", "e2m1"]:
        names = [_E2M1, _E2M1]
        factors = [a.four_bits(), b.four_bits()]
    else:
        sixteen = next((_SCALED[f] for f in forms if f in ("bf16", "fp16")), None)
        operand_dtypes = [sixteen or (element_types.float8_e4m3fn if f == "e2m1" else _SCALED[f]) for f in forms]
        names = [t.mlir for t in operand_dtypes]
        factors = [v.numbers(t).ir for v, t in zip((a, b), operand_dtypes)]
    lhs, rhs = factors
    powers = [None if s is None else arith.bitcast(_matrix(s.shape, SCALE), s.ir) for s in (lhs_scales, rhs_scales)]
    shape = (a.shape[0], b.shape[1])

    def multiplied(c: Value | None, dtype: DType) -> Value:
        tile_product = xetile.tile_mma(lhs, rhs, None if c is None else c.ir, *powers, d=dtype.vector(shape))
        return Value(tile_product, dtype, shape)

    return _accumulated(
        multiplied, scaled_accumulators(*names), None if c is None else c.broadcast(shape), result_dtype
    )


def _matrix(shape: Sequence[int], element: str) -> mlir.Type:
    return mlir.Type.parse(vector_text(shape, element))
