"""Products of matrices: `dot`, and `dot_scaled` of block-scaled formats."""

from __future__ import annotations

from typing import Any

from xegpu_py.dialects.xegpu.matrix import accumulators
from xegpu_py.language import types
from xegpu_py.language.functions import where
from xegpu_py.language.math import fma, valued
from xegpu_py.language.moves import join
from xegpu_py.language.shapes import concatenate
from xegpu_py.language.types import DType, dtype_of
from xegpu_py.language.values import Product, Value, constant

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
) -> Value:
    """The product of two matrices, or of stacks of them, added to `acc` if there is one.

    Integers of 8 bits, bfloat16, float16, tf32, float64 and both types of 8 bits are multiplied by DPAS, which adds
    exact products in float32, float64 or int32 (docs/numerics.md). Targets without float64 or types of 8 bits refuse
    them: "ieee" multiplies float64 on all, and float16 holds all numbers of 8 bits. float32 is multiplied as
    `input_precision` says.

    Args:
        input: MxK, or of more dimensions, which both operands share.
        other: KxN.
        acc: MxN.
        input_precision: of float32. "tf32", the default as in Triton: both are rounded to tf32. "ieee", also of
            float64: each product is added by one fma, in the order of K. "tf32x3": both are sums of two tf32, and the
            product of the small ones is left out. "bf16x3", "bf16x6": sums of two or three bfloat16, likewise.
        allow_tf32: Triton's older name: True is "tf32", False "ieee".
        max_num_imprecise_acc: Triton's; the accumulator is float32 always.
        out_dtype: the type of the result; by default `acc`'s, or else float32, or int32 of integers.

    Raises:
        TypeError: if the types cannot be multiplied.
        ValueError: if the shapes do not fit, or there is no such precision.
    """
    a, b = valued(input), valued(other)
    if allow_tf32 is not None and input_precision is None:
        input_precision = "tf32" if allow_tf32 else "ieee"
    if input_precision is not None and input_precision not in PRECISIONS:
        names = ", ".join(map(repr, PRECISIONS))
        raise ValueError(f"there is no input_precision {input_precision!r}; there are {names}")
    c = None if acc is None else valued(acc)
    if min(a.ndim, b.ndim) < 2:
        raise TypeError(f"dot multiplies matrices, and not {a.describe()} by {b.describe()}")
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"dot cannot multiply {a.describe()} by {b.describe()}: their extents along K differ")
    if a.ndim > 2 or b.ndim > 2:
        return _stacked(a, b, c, input_precision, out_dtype)
    wanted = dtype_of(out_dtype) if out_dtype is not None else c.dtype if c is not None else None
    if a.dtype == b.dtype and a.dtype in (types.float32, types.float64):
        if input_precision == "ieee":
            made = _by_fma(a, b, c)
            return made if wanted is None else made.to(wanted)
        if a.dtype == types.float32:
            made = _of_float32(a, b, c, input_precision or "tf32")
            return made if wanted is None else made.to(wanted)
    product = Product(a, b)
    if c is None and wanted is None:
        return product.value
    known = accumulators(a.dtype.mlir, b.dtype.mlir)
    kept = c.dtype if c is not None else wanted
    if kept is not None and kept.mlir in known:
        made = product.plus(c) if c is not None else product.multiplied(kept)
    else:
        # The accumulator is one that DPAS has not: it is added once, to the whole product.
        made = product.value if c is None else product.value + c
    return made if wanted is None else made.to(wanted)


def _stacked(a: Value, b: Value, c: Value | None, precision: str | None, out_dtype: Any) -> Value:
    """The products of all matrices of two stacks."""
    if a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2]:
        raise ValueError(f"dot cannot multiply {a.describe()} by {b.describe()}: the leading dimensions differ")
    shape = (*a.shape[:-1], b.shape[-1])
    if c is not None:
        c = c.broadcast(shape)
    left, right = (v.reshape((-1, *v.shape[-2:])) for v in (a, b))
    added = None if c is None else c.reshape((-1, *c.shape[-2:]))
    found = []
    for i in range(left.shape[0]):
        one = dot(left[i], right[i], None if added is None else added[i], precision, out_dtype=out_dtype)
        found.append(one.expand_dims(0))
    return concatenate(found, 0).reshape(shape)


def _by_fma(a: Value, b: Value, c: Value | None) -> Value:
    """A product in the factors' own type, each term of which is added by one fma, in the order of K."""
    shape = (a.shape[0], b.shape[1])
    found: Any = constant(a.dtype, 0.0, shape) if c is None else c.to(a.dtype)
    for k in range(a.shape[1]):
        found = fma(a.along(1, [k]).broadcast(shape), b.along(0, [k]).broadcast(shape), found)
    return found


def _of_float32(a: Value, b: Value, c: Value | None, precision: str) -> Value:
    """A product of float32 by a precision, in float32."""
    total: Any = None if c is None else c.to(types.float32)
    narrow, parts = {
        "tf32": (types.tfloat32, 1),
        "tf32x3": (types.tfloat32, 2),
        "bf16x3": (types.bfloat16, 2),
        "bf16x6": (types.bfloat16, 3),
    }[precision]
    left, right = _parts(a, narrow, parts), _parts(b, narrow, parts)
    # The smallest products first.
    for level in range(parts - 1, -1, -1):
        for i in range(level, -1, -1):
            product = Product(left[i], right[level - i])
            total = product.value if total is None else product.plus(total)
    return total


def _parts(value: Value, narrow: DType, count: int) -> list[Value]:
    """float32 as a sum of so many values of a narrower type, the greatest first."""
    found, rest = [], value
    for _ in range(count):
        found.append(rest.to(narrow))
        rest = rest - found[-1].to(types.float32)
    return found


_SCALED = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")
"""Formats of `dot_scaled`: of OCP's microscaling formats, and two that are not scaled."""

GROUP = 32
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
    out_dtype: Any = types.float32,
) -> Value:
    """The product of two matrices of block-scaled formats, added to `acc` if there is one.

    DPAS has no scales: elements are decoded to bfloat16 and multiplied by their scales there, or to float16 where one
    side is "fp16" and nothing is scaled. A decoded element times its power of two is exact wherever bfloat16 has such a
    number, that is from 2^-133 to 2^128. The products are added in float32.

    Args:
        lhs: MxK; of "e2m1" uint8 of MxK/2, two elements a byte, the first one in the low bits.
        lhs_scale: uint8 of MxK/32: powers of two 2^(s - 127), NaN where s is 255 (E8M0); None for no scale.
        lhs_format: "e2m1", "e4m3", "e5m2", "bf16" or "fp16".
        rhs: KxN; of "e2m1" uint8 of K/2xN.
        rhs_scale: uint8 of NxK/32; None for no scale.
        rhs_format: as `lhs_format`.
        acc: MxN.
        fast_math: Triton's, which may leave out NaN of scales; they are kept.
        lhs_k_pack, rhs_k_pack: whether "e2m1" is packed along K; with False along M, or N.
        out_dtype: the type of the result.

    Raises:
        ValueError: if there is no such format, or the shapes do not fit.
        TypeError: if elements or scales have another type.
    """
    sixteen = "fp16" in (lhs_format, rhs_format)
    wide = types.float16 if sixteen else types.bfloat16
    if sixteen and (lhs_scale is not None or rhs_scale is not None):
        raise ValueError('"fp16" goes with what has no scale: float16 does not hold scaled elements')
    a = _decoded(valued(lhs), lhs_format, 1 if lhs_k_pack else 0, wide, "lhs")
    b = _decoded(valued(rhs), rhs_format, 0 if rhs_k_pack else 1, wide, "rhs")
    if lhs_scale is not None:
        a = a * _scales(valued(lhs_scale), a.shape, "lhs_scale")
    if rhs_scale is not None:
        b = b * _scales(valued(rhs_scale), b.shape[::-1], "rhs_scale").T
    return dot(a, b, acc, out_dtype=out_dtype)


def _decoded(value: Value, form: str, axis: int, wide: DType, name: str) -> Value:
    """Elements of a format as numbers of bfloat16 or float16, exactly."""
    if form not in _SCALED:
        raise ValueError(f"there is no format {form!r}; there are {', '.join(map(repr, _SCALED))}")
    if value.ndim != 2:
        raise ValueError(f"'{name}' must be a matrix, but is {value.describe()}")
    if form == "e2m1":
        if value.dtype not in (types.uint8, types.int8):
            raise TypeError(f"'{name}' must be uint8 of two elements a byte, not {value.dtype}")
        return _of_e2m1(_unpacked(value, axis)).to(wide)
    wanted = {
        "e4m3": types.float8_e4m3fn, "e5m2": types.float8_e5m2, "bf16": types.bfloat16, "fp16": types.float16,
    }[form]  # fmt: skip
    if value.dtype == types.uint8 and wanted.bits == 8:
        value = value.bitcast(wanted)
    if value.dtype != wanted:
        raise TypeError(f"'{name}' of format {form!r} must be {wanted}, not {value.dtype}")
    return value.to(wide)


def _unpacked(value: Value, axis: int) -> Value:
    """The two elements of each byte, side by side along a dimension: uint16."""
    given = value.to(types.uint8).to(types.uint16)
    low, high = given & 15, given >> 4
    if axis == 1:
        return join(low, high).reshape((value.shape[0], 2 * value.shape[1]))
    # Rows in turns: those of both side by side, and then each row as two.
    return concatenate([low, high], 1).reshape((2 * value.shape[0], value.shape[1]))


def _of_e2m1(bits: Value) -> Value:
    """Four bits of E2M1 (0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives), as bfloat16."""
    size: Any = bits & 7
    # One exponent's step of bfloat16 is 1 << 7, and its exponent of 0.5 is 126.
    normal = (size << 6) + (126 << 7)
    number = where(size == 0, 0, where(size == 1, 126 << 7, normal))
    return (number.to(types.uint16) | ((bits >> 3) << 15)).bitcast(types.bfloat16)


def _scales(scale: Value, shape: tuple[int, ...], name: str) -> Value:
    """E8M0 as bfloat16, one for each element."""
    rows, depth = shape
    if scale.dtype not in (types.uint8, types.int8):
        raise TypeError(f"'{name}' must be uint8, not {scale.dtype}")
    if depth % GROUP or scale.shape != (rows, depth // GROUP):
        raise ValueError(f"'{name}' must have the shape {(rows, depth // GROUP)}, but is {scale.describe()}")
    exponent = scale.to(types.uint8).to(types.uint16)
    # 2^-127 is subnormal in bfloat16, and 255 is NaN.
    bits = where(exponent == 0, 0x40, where(exponent == 255, 0x7FC0, exponent << 7)).to(types.uint16)
    numbers = bits.bitcast(types.bfloat16)
    groups = (rows, depth // GROUP, GROUP)
    return numbers.expand_dims(2).broadcast(groups).reshape(shape)
