"""BDPAS: the systolic matrix multiply-add of block-scaled matrices, and the conversion of numbers to such blocks.

Blocks are defined by OCP Microscaling Formats (MX) 1.0: 32 consecutive elements of K share a scale of the format E8M0,
a power of two. Element formats: hf8 (E4M3), bf8 (E5M2) and e2m1 (E2M1); the instruction also accepts bf and hf.
Operands and layouts are those of vISA's `bdpas` in Intel Graphics Compiler.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from xegpu_py.numerics.dpas import (
    FLOAT_TYPES,
    Model,
    accumulator,
    check_kinds,
    check_shapes,
    flush_factors,
    matrix_of,
    multiply_stages,
    multiply_steps,
    numbers,
    operand,
    operand_bytes,
    ops_per_channel,
    result_bytes,
    types_problem,
    unpack_a,
    unpack_b,
)
from xegpu_py.numerics.formats import BF, BF8, E2M1, E8M0, HF8, PRECISIONS, TYPES, Array, as_format, canonical, flush

BLOCK = 32
"""Elements of K that share a scale (OCP Microscaling Formats 1.0, section 5.2)."""

DEPTH = ROWS = 8

COLUMNS = 16
"""The only systolic depth, repeat count and execution size of bdpas."""

UNIT_SCALE = 127
"""The scale 1."""

SCALE_GROUP = 32
"""Distance in bytes from the scales of one block to those of the next block."""

SCALED_PRECISIONS = ("bf", "hf", "bf8", "hf8", "e2m1")
"""Precisions of operands of bdpas."""

SCALED_FLOAT_TYPES = FLOAT_TYPES | {"bf8": ("f", "bf"), "hf8": ("f", "bf")}
"""The types of result and accumulator by the precision of src1."""

_ELEMENTS = {f.name: f for f in (HF8, BF8, E2M1)}
"""The formats of scaled elements."""

_NAN_E2M1 = 7


def scaled_types_problem(W: str, A: str, dst_type: str, src0_type: str) -> str | None:
    """Why bdpas does not support these precisions and types; None if it does.

    Args:
        W: precision of src1.
        A: precision of src2.
        dst_type: type of the destination.
        src0_type: type of the accumulator.
    """
    if not {W, A} <= set(SCALED_PRECISIONS):
        return f"precisions W = {W} and A = {A} cannot be multiplied"
    return types_problem(W, A, dst_type, src0_type, SCALED_FLOAT_TYPES)


def scaled_depth(W: str, A: str) -> int:
    """Elements of K of one instruction: 16 for bf and hf, 32 for bf8 and hf8, 64 for e2m1."""
    return DEPTH * ops_per_channel(W, A)


def scale_bytes(W: str, A: str) -> tuple[int, int]:
    """Bytes from the first to the last scale of src1 (in src3) and of src2 (in src4)."""
    before = SCALE_GROUP * (-(-scaled_depth(W, A) // BLOCK) - 1)
    return before + COLUMNS, before + ROWS


def bdpas(
    acc: npt.ArrayLike | None,
    src1: npt.ArrayLike,
    src2: npt.ArrayLike,
    src3: npt.ArrayLike | None,
    src4: npt.ArrayLike | None,
    *,
    W: str,
    A: str,
    dst_type: str,
    src0_type: str,
    model: Model = "fma",
    flushed: Collection[str] = (),
    rounds: bool = False,
) -> Array:
    """Multiply block-scaled matrices that lie in registers, and add: 8 rows, 16 columns, systolic depth 8.

    Operands are the bytes in the registers, after any leading dimensions, which are broadcast. An element of A is
    multiplied by the scale of its row, an element of B by the scale of its column, in the block of its K. Scaled
    products are exact, and are added as in `dpas`. A scale of 255 is NaN.

    Args:
        acc: src0, 8 rows of 16 values of `src0_type`; None for zero.
        src1: B, laid out as for `dpas`.
        src2: A, laid out as for `dpas`.
        src3: scales of B, a byte for each column; those of a second block follow 32 bytes later. None means ones.
        src4: scales of A, a byte for each row, in the same layout.
        W: precision of src1: bf, hf, bf8, hf8 or e2m1.
        A: precision of src2: the same as W, except that bf8 and hf8 may be mixed.
        dst_type: f; or hf if the precision is hf; or bf if it is another one.
        src0_type: as `dst_type`.
        model: how sums are rounded.
        flushed: the formats whose subnormal numbers are zeros of their sign; see `dpas`. Elements are flushed before
            they are scaled.
        rounds: whether scaled elements are rounded to f32, instead of being exact.

    Returns:
        The destination's bytes, 8 rows of 16 values of `dst_type`.

    Raises:
        ValueError: if an argument is not legal, or an operand too short.
        TypeError: if an operand is not of bytes.
    """
    check_kinds(scaled_types_problem(W, A, dst_type, src0_type), model)
    K = scaled_depth(W, A)
    size1, size2 = operand_bytes(W, A, DEPTH, ROWS, COLUMNS)
    size3, size4 = scale_bytes(W, A)
    b, a = unpack_b(operand(src1, size1, "src1"), K, COLUMNS, W), unpack_a(operand(src2, size2, "src2"), ROWS, K, A)
    c = accumulator(acc, ROWS, COLUMNS, TYPES[src0_type])
    c = flush(c, BF) if src0_type == "bf" and "bf" in flushed else c
    b, a = (flush_factors(_wide(x, name), name) if name in flushed else _wide(x, name) for x, name in ((b, W), (a, A)))
    if src3 is not None:
        b = b * np.repeat(_scales(operand(src3, size3, "src3"), COLUMNS), BLOCK, axis=-2)[..., :K, :]
    if src4 is not None:
        rows = np.repeat(_scales(operand(src4, size4, "src4"), ROWS), BLOCK, axis=-2)[..., :K, :]
        a = a * np.swapaxes(rows, -1, -2)
    if rounds:
        with np.errstate(over="ignore", invalid="ignore"):
            a, b = (x.astype(np.float32).astype(np.float64) for x in (a, b))
    found = multiply_stages(a, b, c, DEPTH, TYPES[dst_type], model)
    return result_bytes(flush(found, BF) if dst_type == "bf" and "bf" in flushed else found)


def multiply_scaled(
    acc: npt.ArrayLike | None,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    scale_a: npt.ArrayLike | None,
    scale_b: npt.ArrayLike | None,
    *,
    W: str,
    A: str,
    dst_type: str,
    src0_type: str,
    model: Model = "fma",
) -> Array:
    """`acc + a x b` for block-scaled matrices of any size, with the bits of the BDPAS instructions that compute it.

    K is divided into steps of one instruction each; the last step may be shorter. Accumulators of bf and hf are
    therefore rounded after each step.

    Args:
        acc: [M, N] of the storage type of `src0_type`; None for zero.
        a: [M, K] of the storage type of `A`.
        b: [K, N] of the storage type of `W`.
        scale_a: [M, ceil(K / 32)] of E8M0, as `float8_e8m0fnu` or uint8; None for ones.
        scale_b: [ceil(K / 32), N], likewise.
        W, A, dst_type, src0_type, model: see `bdpas`.

    Returns:
        [M, N] of the storage type of `dst_type`.

    Raises:
        ValueError: if the precisions and types are not a legal combination, or scales have another shape.
        TypeError: if a matrix or scales have another type.
    """
    check_kinds(scaled_types_problem(W, A, dst_type, src0_type), model)
    acc = None if acc is None else as_format(acc, TYPES[src0_type], "acc")
    x, y = _wide(matrix_of(a, PRECISIONS[A], "a"), A), _wide(matrix_of(b, PRECISIONS[W], "b"), W)
    check_shapes(acc, x, y)
    K = x.shape[-1]
    if scale_a is not None:
        x = x * np.repeat(_scale_matrix(scale_a, (len(x), -(-K // BLOCK)), "scale_a"), BLOCK, axis=1)[:, :K]
    if scale_b is not None:
        y = y * np.repeat(_scale_matrix(scale_b, (-(-K // BLOCK), y.shape[1]), "scale_b"), BLOCK, axis=0)[:K]
    return multiply_steps(acc, x, y, ops_per_channel(W, A), TYPES[dst_type], TYPES[src0_type], model)


def pack_scales(scales: npt.ArrayLike) -> Array:
    """Lay out scales for src3 or src4.

    Args:
        scales: [..., blocks, lanes] of E8M0, a row of scales for each block; the scales of A must be transposed.

    Returns:
        uint8 [..., bytes]: each block's scales begin 32 bytes after those of the previous block, with zeros between.

    Raises:
        TypeError: if the scales are neither `float8_e8m0fnu` nor uint8.
    """
    patterns = _patterns(scales, "scales")
    padded = np.zeros((*patterns.shape[:-1], SCALE_GROUP), np.uint8)
    padded[..., : patterns.shape[-1]] = patterns
    flat = padded.reshape(*patterns.shape[:-2], -1)
    return flat[..., : flat.shape[-1] - SCALE_GROUP + patterns.shape[-1]]


def truncate(values: npt.ArrayLike, src: str, dst: str) -> Array:
    """Convert numbers to elements of a block: round to nearest even, and saturate (OCP MX 1.0, section 6.3).

    Numbers beyond the greatest number of the format, infinities included, become that number with their sign. NaN gives
    the canonical NaN, or the greatest number for e2m1, which has no NaN.

    Args:
        values: numbers of any shape of the storage type of `src`, or their unsigned bit patterns.
        src: f, hf or bf.
        dst: hf8, bf8 or e2m1.

    Returns:
        An array of the storage type of `dst`.

    Raises:
        ValueError: if a format is none of these.
        TypeError: if the type of `values` does not match `src`.
    """
    if src not in ("f", "hf", "bf"):
        raise ValueError(f"'src' must be f, hf or bf, but got {src!r}")
    if dst not in _ELEMENTS:
        raise ValueError(f"'dst' must be one of {', '.join(_ELEMENTS)}, but got {dst!r}")
    given, fmt, most = as_format(values, TYPES[src], "values"), _ELEMENTS[dst], _ELEMENTS[dst].finite
    with np.errstate(invalid="ignore"):
        wide = given.astype(np.float32)
        result = np.array(np.clip(wide, -most, most)).astype(fmt.dtype)
    if dst == "e2m1":
        return np.where(np.isnan(wide), np.uint8(_NAN_E2M1), result.view(np.uint8)).view(fmt.dtype)
    return canonical(result, fmt)


def exponents(values: npt.ArrayLike) -> Array:
    """The exponents of numbers as scales: the greatest powers of two that do not exceed their magnitudes.

    This is `arith.truncf` to f8E8M0FNU, as MLIR's pass `arith-expand` defines it. Zero and magnitudes below 2^-127 give
    2^-127; infinities and NaN give NaN.

    Args:
        values: float32 of any shape, or bit patterns in uint32.

    Returns:
        float8_e8m0fnu of this shape.

    Raises:
        TypeError: if the values have another type.
    """
    bits = as_format(values, TYPES["f"], "values").view(np.uint32)
    return (bits >> np.uint32(TYPES["f"].mantissa)).astype(np.uint8).view(E8M0.dtype)


def quantize(values: npt.ArrayLike, dst: str) -> tuple[Array, Array]:
    """Convert numbers to block-scaled elements (OCP MX 1.0, section 6.3).

    A block's scale is the greatest power of two that does not exceed the block's greatest magnitude, divided by the
    greatest power of two of the element format. A block with a NaN or an infinity has the scale NaN.

    Args:
        values: float32 [..., K], K a multiple of 32.
        dst: hf8, bf8 or e2m1.

    Returns:
        The elements [..., K], and the scales [..., K / 32] as `float8_e8m0fnu`.

    Raises:
        ValueError: if K is not a multiple of 32, or there is no such format.
        TypeError: if the values are not float32.
    """
    if dst not in _ELEMENTS:
        raise ValueError(f"'dst' must be one of {', '.join(_ELEMENTS)}, but got {dst!r}")
    given = as_format(values, TYPES["f"], "values")
    if given.shape[-1] % BLOCK:
        raise ValueError(f"'values' must have rows of a multiple of {BLOCK}, not of {given.shape[-1]}")
    blocks = given.reshape(*given.shape[:-1], -1, BLOCK).astype(np.float64)
    most = np.max(np.abs(blocks), axis=-1)
    finite = np.isfinite(most)
    own = np.frexp(_ELEMENTS[dst].finite)[1]
    exponent = np.where(most > 0, np.frexp(np.where(finite, most, 1.0))[1] - own, -UNIT_SCALE)
    scale = np.where(finite, np.clip(exponent + UNIT_SCALE, 0, 254), E8M0.nan).astype(np.uint8)
    shift = np.where(finite, UNIT_SCALE - scale.astype(np.int64), 0)[..., None]
    # A scaled number may be subnormal in f32. Its element is then zero, or most of the block is.
    scaled = np.ldexp(blocks, shift)
    # By way of f32: a number that f32 rounds is far below the least element.
    with np.errstate(over="ignore", under="ignore"):
        elements = truncate(scaled.astype(np.float32), "f", dst)
    return elements.reshape(given.shape), scale.view(E8M0.dtype)


def _wide(elements: Array, precision: str) -> Array:
    """Elements as f64, which represents them with any scale exactly."""
    # Signalling NaNs are legal, and raise no warning.
    with np.errstate(invalid="ignore"):
        return numbers(elements, PRECISIONS[precision]).astype(np.float64)


def _scales(data: Array, lanes: int) -> Array:
    """The scales [..., blocks, lanes] in src3 or src4, as f64."""
    starts = range(0, data.shape[-1], SCALE_GROUP)
    return _powers(np.stack([data[..., start : start + lanes] for start in starts], axis=-2))


def _powers(patterns: Array) -> Array:
    found = np.ldexp(1.0, patterns.astype(np.int64) - UNIT_SCALE)
    return np.where(patterns == E8M0.nan, np.nan, found)


def _patterns(scales: npt.ArrayLike, name: str) -> Array:
    array = np.asarray(scales)
    if array.dtype not in (np.dtype(np.uint8), E8M0.dtype):
        raise TypeError(f"'{name}' must be float8_e8m0fnu or its bit patterns, u8, but got {array.dtype}")
    return array.view(np.uint8)


def _scale_matrix(scales: npt.ArrayLike, shape: tuple[int, int], name: str) -> Array:
    patterns = _patterns(scales, name)
    if patterns.shape != shape:
        raise ValueError(f"'{name}' must have the shape {shape}, not {patterns.shape}")
    return _powers(patterns)
