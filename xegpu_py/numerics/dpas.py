"""The dpas instruction: what it computes, and how its operands lie in registers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from xegpu_py.argument_types import Range
from xegpu_py.numerics.formats import (
    BF,
    DF,
    PRECISIONS,
    TYPES,
    Array,
    F,
    Format,
    as_format,
    bits_of,
    canonical,
    flush,
    pack_bytes,
    unpack_bytes,
)
from xegpu_py.numerics.rounding import exact_sum, fma, fma_f32, round_float, two_sum
from xegpu_py.numerics.systolic import Systolic

# DPAS: the systolic matrix multiply-add on the bytes of registers (DPAS.md).
#
# D = C + A x B with A of RC rows and K columns in src2, B of K rows and `exec_size` columns in src1. K is the systolic
# depth times the operations per channel.

NamedModel = Literal["fma", "stage", "exact"]

Model: TypeAlias = NamedModel | Systolic
"""How sums are rounded: by a name, or as was measured."""

MODELS: tuple[NamedModel, ...] = get_args(NamedModel)

SYSTOLIC_DEPTHS = (1, 2, 4, 8)

EXEC_SIZES = (8, 16)

FLOAT_TYPES = {
    "bf": ("f", "bf"),
    "hf": ("f", "hf"),
    "tf32": ("f",),
    "bf8": ("f",),
    "hf8": ("f",),
    "e2m1": ("f", "bf"),
    "df": ("df",),
}
"""The types of result and accumulator by the precision of src1."""

FLUSHED = ("bf", "tf32")
"""The formats whose subnormal numbers are zeros to dpas without the bit of `%cr0` that keeps them."""

NARROW = ("bf8", "hf8", "e2m1")
"""The formats whose subnormal numbers are zeros without this bit by a choice only: sources disagree."""

_MIXED = {"bf8", "hf8"}


def ops_per_channel(W: str, A: str) -> int:
    """Elements of K that one systolic stage takes, OPS_PER_CHAN (DPAS.md).

    Args:
        W: precision of src1.
        A: precision of src2.
    """
    w, a = PRECISIONS[W], PRECISIONS[A]
    if w.is_float:
        return max(32 // w.bits, 1)
    return 4 if 8 in (w.bits, a.bits) else 8


def operand_bytes(W: str, A: str, SD: int, RC: int, exec_size: int) -> tuple[int, int]:
    """Bytes of src1 and of src2 that an instruction reads."""
    w, a = PRECISIONS[W], PRECISIONS[A]
    ops = ops_per_channel(W, A)
    channel = max(w.bits, 32)
    rows = -(-SD * ops * w.bits // channel)
    return rows * exec_size * channel // 8, -(-RC * SD * ops * a.bits // 8)


def dpas(
    acc: npt.ArrayLike | None,
    src1: npt.ArrayLike,
    src2: npt.ArrayLike,
    *,
    W: str,
    A: str,
    SD: int,
    RC: int,
    exec_size: int,
    dst_type: str,
    src0_type: str,
    model: Model = "fma",
    flushed: Collection[str] = (),
    rounds_tf32: bool = False,
) -> Array:
    """Multiply and add matrices that lie in registers (DPAS.md, semantics).

    Operands are the bytes in the registers, after any leading dimensions, which are broadcast: one call computes an
    instruction of many threads. Bytes after those that the instruction reads are ignored.

    - Integers: 32-bit wrap-around.
    - Floats: products are exact, accumulation is in f32 (f64 for df) by the model: `fma` adds each product in
      increasing k with one rounding to nearest even; `stage` sums the products of one depth and the accumulator exactly
      and rounds once a depth; `exact` rounds the whole sum once. Accumulators of bf and hf are widened exactly, and
      results are rounded once at the end. NaN results are canonical.
    - tf32: the lowest 13 bits of each 32-bit container are ignored.

    Args:
        acc: src0, `RC` consecutive rows of `exec_size` values of `src0_type`; None for zero.
        src1: B. Each column is in one 32-bit channel (64-bit for df) of consecutive GRFs, elements packed from the
            lowest bit on.
        src2: A in row-major order, elements packed from the lowest bit on.
        W: precision of src1: u1, s1, u2, s2, u4, s4, u8, s8, bf, hf, tf32, bf8, hf8, e2m1 or df.
        A: precision of src2.
        SD: systolic depth, 1, 2, 4 or 8.
        RC: repeat count, 1 to 8.
        exec_size: 8 or 16 columns.
        dst_type: d or ud for integers; df for df; otherwise f, or W's type if W is bf or hf.
        src0_type: as `dst_type`.
        model: how sums are rounded.
        flushed: the formats, of `FLUSHED` and `NARROW`, whose subnormal numbers are zeros of their sign as factors, and
            those of bf as accumulators and results too.
        rounds_tf32: whether tf32 operands are rounded to nearest even, instead of losing their lowest 13 bits.

    Returns:
        The destination's bytes, `RC` rows of `exec_size` values of `dst_type`.

    Raises:
        ValueError: if an argument is not legal, or an operand too short.
        TypeError: if an operand is not of bytes.
    """
    _check(W, A, SD, RC, exec_size, dst_type, src0_type, model)
    size1, size2 = operand_bytes(W, A, SD, RC, exec_size)
    K = SD * ops_per_channel(W, A)
    elements = unpack_b(operand(src1, size1, "src1"), K, exec_size, W), unpack_a(operand(src2, size2, "src2"), RC, K, A)
    if rounds_tf32 and W == "tf32":
        elements = round_tf32(elements[0]), round_tf32(elements[1])
    b, a = (numbers(x, PRECISIONS[name]) for x, name in zip(elements, (W, A)))
    c = accumulator(acc, RC, exec_size, TYPES[src0_type])
    zeros = {*flushed, *(model.flushed if isinstance(model, Systolic) else ())}
    zeros |= {"bf sums"} if "bf" in flushed else set()
    a, b = (flush_factors(x, name) if name in zeros else x for x, name in ((a, A), (b, W)))
    c = flush(c, TYPES[src0_type]) if f"{src0_type} sums" in zeros else c
    found = multiply_stages(a, b, c, SD, TYPES[dst_type], model)
    return result_bytes(flush(found, BF) if dst_type == "bf" and "bf sums" in zeros else found)


def round_tf32(elements: Array) -> Array:
    """Numbers of f rounded to nearest even to the bits of tf32, subnormal numbers too."""
    bits = elements.view(np.uint32)
    rounded = bits + np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
    return np.where(np.isnan(elements), bits, rounded & np.uint32(0xFFFFE000)).view(np.float32)


def flush_factors(factors: Array, name: str) -> Array:
    """Factors of a precision, decoded to f32 or f64, with zeros of their signs in place of subnormal ones."""
    least_normal = 2.0 ** (2 - (1 << (PRECISIONS[name].exponent - 1)))
    return np.where(np.abs(factors) < least_normal, np.copysign(factors.dtype.type(0), factors), factors)


def multiply(
    acc: npt.ArrayLike | None,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    W: str,
    A: str,
    dst_type: str,
    src0_type: str,
    model: Model = "fma",
) -> Array:
    """`acc + a x b` for matrices of any size, with the bits of the DPAS instructions that compute it.

    K is divided into steps of one instruction of systolic depth 8, that is 8 times `ops_per_channel` elements; the last
    step may be shorter, and zeros fill its last stage. Accumulators of bf and hf are therefore rounded after each step.

    Args:
        acc: [M, N] of the storage type of `src0_type`; None for zero.
        a: [M, K] of the storage type of `A`.
        b: [K, N] of the storage type of `W`.
        W, A, dst_type, src0_type, model: see `dpas`.

    Returns:
        [M, N] of the storage type of `dst_type`.

    Raises:
        ValueError: if the precisions and types are not a legal combination, there is no such model, or the shapes do
            not match.
        TypeError: if a matrix has another type.
    """
    check_kinds(types_problem(W, A, dst_type, src0_type), model)
    acc = None if acc is None else as_format(acc, TYPES[src0_type], "acc")
    x, y = (numbers(matrix_of(v, f, name), f) for v, f, name in ((a, PRECISIONS[A], "a"), (b, PRECISIONS[W], "b")))
    return multiply_steps(acc, x, y, ops_per_channel(W, A), TYPES[dst_type], TYPES[src0_type], model)


def matrix_of(given: npt.ArrayLike, fmt: Format, name: str) -> Array:
    """A factor as an array of a precision's storage type.

    Raises:
        TypeError: if it has another type.
        ValueError: if a number is out of the precision's range.
    """
    return as_format(given, fmt, name) if fmt.is_float else _in_range(np.asarray(given), fmt, name)


def check_shapes(acc: npt.ArrayLike | None, a: Array, b: Array) -> None:
    """Check that matrices can be multiplied and added.

    Raises:
        ValueError: if the shapes do not match.
    """
    sizes = [np.shape(matrix) for matrix in (a, b)]
    if not (len(sizes[0]) == len(sizes[1]) == 2 and sizes[0][1] == sizes[1][0]):
        raise ValueError(f"'a' and 'b' must be [M, K] and [K, N], but got {list(sizes[0])} and {list(sizes[1])}")
    wanted = (sizes[0][0], sizes[1][1])
    if acc is not None and np.shape(acc) != wanted:
        raise ValueError(f"'acc' must be {list(wanted)}, but got {list(np.shape(acc))}")


def multiply_steps(
    acc: npt.ArrayLike | None, a: Array, b: Array, ops: int, dst: Format, src0: Format, model: Model
) -> Array:
    """`acc + a x b` of decoded factors, by instructions of the greatest systolic depth.

    Args:
        ops: elements of K of a stage.
        dst, src0: types of result and accumulator.

    Raises:
        ValueError: if the shapes do not match.
    """
    check_shapes(acc, a, b)
    # Fill the last stage with zeros.
    missing = -a.shape[-1] % ops
    x, y = np.pad(a, ((0, 0), (0, missing))), np.pad(b, ((0, missing), (0, 0)))
    total = np.zeros((len(x), y.shape[1]), src0.dtype) if acc is None else np.asarray(acc)
    step = SYSTOLIC_DEPTHS[-1] * ops
    for k in range(0, x.shape[1], step):
        left, right = x[:, k : k + step], y[k : k + step]
        total = multiply_stages(left, right, total, left.shape[1] // ops, dst, model)
    return np.ascontiguousarray(total.astype(dst.dtype, copy=False))


def _check(W: str, A: str, SD: int, RC: int, exec_size: int, dst_type: str, src0_type: str, model: Model) -> None:
    for name, given, legal in (
        ("SD", SD, SYSTOLIC_DEPTHS),
        ("RC", RC, range(1, 9)),
        ("exec_size", exec_size, EXEC_SIZES),
    ):
        if given not in legal:
            raise ValueError(f"'{name}' must be one of {', '.join(map(str, legal))}, but got {given!r}")
    check_kinds(types_problem(W, A, dst_type, src0_type), model)


def check_kinds(problem: str | None, model: Model) -> None:
    """Check the precisions, the types and the model.

    Raises:
        ValueError: if `problem` is not None, or there is no such model.
    """
    if problem:
        raise ValueError(problem)
    if not isinstance(model, Systolic) and not (isinstance(model, str) and model in MODELS):
        raise ValueError(f"'model' must be one of {', '.join(MODELS)}, but got {model!r}")


def types_problem(
    W: str, A: str, dst_type: str, src0_type: str, float_types: Mapping[str, tuple[str, ...]] = FLOAT_TYPES
) -> str | None:
    """Why these precisions and types are not a legal combination (DPAS.md); None if they are.

    Args:
        W: precision of src1.
        A: precision of src2.
        dst_type: type of the destination.
        src0_type: type of the accumulator.
        float_types: the types of result and accumulator by the float precision of src1.
    """
    for name, precision in (("W", W), ("A", A)):
        if precision not in PRECISIONS:
            return f"'{name}' must be one of {', '.join(PRECISIONS)}, but got {precision!r}"
    w, a = PRECISIONS[W], PRECISIONS[A]
    if w.is_float != a.is_float or (w.is_float and W != A and not {W, A} <= _MIXED):
        return f"precisions W = {W} and A = {A} cannot be multiplied"
    legal_types = float_types[W] if w.is_float else ("d", "ud")
    for name, given in (("dst_type", dst_type), ("src0_type", src0_type)):
        if given not in legal_types:
            return f"'{name}' must be {' or '.join(legal_types)} with precision {W}, but got {given!r}"
    return None


def operand(given: npt.ArrayLike, size: int, name: str) -> Array:
    """The bytes of an operand, after any leading dimensions.

    Raises:
        ValueError: if there are fewer than `size`.
        TypeError: if they are not bytes.
    """
    array = np.asarray(given)
    if array.dtype != np.uint8:
        raise TypeError(f"'{name}' must be an array of uint8, but got an array of {array.dtype}")
    if array.ndim == 0 or array.shape[-1] < size:
        found = array.shape[-1] if array.ndim else 0
        raise ValueError(f"'{name}' must have {size} bytes, but has {found}")
    return np.ascontiguousarray(array[..., :size])


def accumulator(given: npt.ArrayLike | None, rows: int, columns: int, fmt: Format) -> Array:
    """The matrix [..., rows, columns] of src0's bytes, zeros for None; see `operand` for errors."""
    if given is None:
        return np.zeros((rows, columns), fmt.dtype)
    return unpack_c(operand(given, rows * columns * fmt.bytes, "acc"), rows, columns, fmt.name)


def result_bytes(result: Array) -> Array:
    """The bytes of a result, after any leading dimensions."""
    return np.ascontiguousarray(result).reshape(*result.shape[:-2], -1).view(np.uint8)


def numbers(elements: Array, fmt: Format) -> Array:
    """Elements of a precision as factors: f64 for df; otherwise f32, which represents all other precisions."""
    if fmt.name == "tf32":
        return (elements.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    with np.errstate(invalid="ignore"):
        return np.ascontiguousarray(elements).astype(np.float64 if fmt is DF else np.float32)


def multiply_stages(a: Array, b: Array, c: Array, SD: int, dst: Format, model: Model) -> Array:
    """`c + a x b`, as one instruction computes it.

    Args:
        a: [..., M, K]: f32; f64 if `c` is df or the factors are scaled. Products are exact in f64.
        b: [..., K, N], of the same type.
        c: [..., M, N] of a storage type.
        SD: the number of stages that K is divided into.
        dst: format of the result.
        model: how sums of floats are rounded.
    """
    if not dst.is_float:
        # The sum of at most 64 products of two bytes is below 2^24, so that f32 matrix multiplication is exact.
        sums = np.matmul(a, b).astype(np.int64) + c.astype(np.int64)
        return sums.astype(np.uint64).astype(np.uint32).view(dst.dtype)
    wide = DF if c.dtype == np.float64 else F
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2]) + c.shape[-2:]
    with np.errstate(invalid="ignore"):
        total = np.broadcast_to(c.astype(wide.dtype), shape)
    depth = a.shape[-1] // SD
    if isinstance(model, Systolic) and wide is F:
        total = model.multiply(a, b, total, SD)
    elif model == "fma" or isinstance(model, Systolic):
        total = _fused(a, b, total)
    else:
        total = _stages(a, b, total, depth if model == "stage" else a.shape[-1])
    if dst is not wide:
        return round_float(total, dst)
    found = canonical(np.array(total), wide)
    if isinstance(model, Systolic) and wide is F:
        bits_of(found)[np.isnan(found)] = model.nan
    return found


def _fused(a: Array, b: Array, total: Array) -> Array:
    """Add each product in increasing k with one rounding."""
    factors = [(a[..., :, k, None], b[..., None, k, :]) for k in range(a.shape[-1])]
    with np.errstate(over="ignore", invalid="ignore"):
        if a.dtype == np.float32 and _products_fit_f32(a, b):
            total, product = np.array(total), np.empty(total.shape, np.float32)
            for x, y in factors:
                np.multiply(x, y, out=product)
                np.add(product, total, out=total)
            return total
        for x, y in factors:
            is_single = total.dtype == np.float32
            total = fma_f32(np.multiply(x, y, dtype=np.float64), total) if is_single else fma(x, y, total, "df")
    return total


def _products_fit_f32(a: Array, b: Array) -> bool:
    """Whether all products are exact in f32: factors have at most 11 bits each, so only the exponents matter."""
    (a_least, a_most), (b_least, b_most) = _exponents(a), _exponents(b)
    return a_most + b_most <= 127 and a_least + b_least >= -124


def _exponents(values: Array) -> tuple[int, int]:
    """Bounds of the exponents of the finite non-zero numbers, as frexp defines exponents."""
    magnitude = np.abs(values)
    usable = magnitude[np.isfinite(magnitude) & (magnitude > 0)]
    if not usable.size:
        return 0, 0
    return int(np.frexp(usable.min())[1]), int(np.frexp(usable.max())[1])


def _stages(a: Array, b: Array, total: Array, terms: int) -> Array:
    """Add `terms` products at a time to the sum exactly, and round once each time."""
    for start in range(0, a.shape[-1], terms):
        products = [(a[..., :, k, None], b[..., None, k, :]) for k in range(start, start + terms)]
        # Signalling NaNs are legal, and raise no warning.
        with np.errstate(invalid="ignore"):
            total = (
                _sum_f32(total, products) if total.dtype == np.float32 else exact_sum([(total, None), *products], DF)
            )
    return total


def _sum_f32(total: Array, products: list[tuple[Array, Array]]) -> Array:
    """Sum in f64, where most sums are exact, and compute the others again in wide integers."""
    terms = [total.astype(np.float64)]
    terms += [np.broadcast_to(np.multiply(x, y, dtype=np.float64), total.shape) for x, y in products]
    found = terms[0]
    inexact = np.zeros(total.shape, bool)
    for term in terms[1:]:
        found, error = two_sum(found, term)
        # The error of infinities and NaNs is a NaN, which is not zero either.
        inexact |= error != 0
    with np.errstate(over="ignore"):
        result = found.astype(np.float32)
    if inexact.any():
        result[inexact] = exact_sum([(term[inexact], None) for term in terms], F)
    return result


# Conversion between matrices and the register layouts of DPAS operands (DPAS.md, semantics).
#
# A and C are row-major. Each column of B is in one channel of 32 bits (64 for df): for every column, a GRF holds the
# consecutive elements of K that fill a channel, for example two bf or hf, four bytes or eight 4-bit elements (VNNI).
# Elements of less than a byte are packed from the lowest bit on.

_CHANNEL = 32

Size = Annotated[int, Range(1)]


def pack_a(matrix: npt.ArrayLike, precision: str) -> Array:
    """Lay out A for src2.

    Args:
        matrix: [..., M, K], of the precision's storage type; integers below 8 bits as int8 or uint8.
        precision: u1 to s8, bf, hf, tf32, bf8, hf8, e2m1 or df.

    Returns:
        uint8 [..., bytes].

    Raises:
        ValueError: if the precision is none of these, a value is out of range, or a row or the whole matrix does not
            fill bytes.
    """
    fmt = _precision(precision)
    values = _values(matrix, fmt, "matrix")
    return _pack(values.reshape(*values.shape[:-2], -1), fmt)


def unpack_a(data: npt.ArrayLike, M: Size, K: Size, precision: str) -> Array:
    """The matrix A [..., M, K] in src2; the inverse of `pack_a`. Errors are those of `operand`."""
    fmt = _precision(precision)
    elements = _unpack(operand(data, -(-M * K * fmt.bits // 8), "data"), fmt)[..., : M * K]
    return elements.reshape(*elements.shape[:-1], M, K)


def pack_b(matrix: npt.ArrayLike, precision: str) -> Array:
    """Lay out B for src1.

    Args:
        matrix: [..., K, N], of the same types. K is padded with zeros to whole channels.
        precision: as for `pack_a`.

    Returns:
        uint8 [..., bytes]: whole GRFs of N channels.

    Raises:
        ValueError: as `pack_a`.
    """
    fmt = _precision(precision)
    values = _values(matrix, fmt, "matrix")
    per_channel = _per_channel(fmt)
    *lead, k, n = values.shape
    missing = -k % per_channel
    filled = np.concatenate([values, np.zeros((*lead, missing, n), values.dtype)], axis=-2) if missing else values
    grfs = filled.reshape(*lead, -1, per_channel, n)
    channels = _pack(np.ascontiguousarray(np.swapaxes(grfs, -1, -2)), fmt)
    return channels.reshape(*lead, -1)


def unpack_b(data: npt.ArrayLike, K: Size, N: Size, precision: str) -> Array:
    """The matrix B [..., K, N] in src1; the inverse of `pack_b`. Errors are those of `operand`."""
    fmt = _precision(precision)
    per_channel = _per_channel(fmt)
    elements = _unpack(operand(data, -(-K // per_channel) * N * per_channel * fmt.bits // 8, "data"), fmt)
    channels = elements.reshape(*elements.shape[:-1], -1, N, per_channel)
    rows = np.swapaxes(channels, -1, -2)
    return np.ascontiguousarray(rows.reshape(*rows.shape[:-3], -1, N)[..., :K, :])


def pack_c(matrix: npt.ArrayLike, dtype: str) -> Array:
    """Lay out C or D [..., M, N] of a vISA type such as "f" for src0 or dst; uint8 [..., bytes].

    Raises:
        TypeError: if the matrix has another storage type.
        ValueError: if there is no such type.
    """
    fmt = _type(dtype)
    values = np.asarray(matrix)
    if values.dtype != fmt.dtype:
        raise TypeError(f"'matrix' must have the dtype {fmt.dtype} for {dtype}, but got {values.dtype}")
    return np.ascontiguousarray(values).reshape(*values.shape[:-2], -1).view(np.uint8)


def unpack_c(data: npt.ArrayLike, M: Size, N: Size, dtype: str) -> Array:
    """The matrix C or D [..., M, N] of a vISA type; the inverse of `pack_c`. Errors are those of `operand`."""
    fmt = _type(dtype)
    flat = operand(data, M * N * fmt.bytes, "data").view(fmt.dtype)
    return flat.reshape(*flat.shape[:-1], M, N)


def _precision(name: str) -> Format:
    if name not in PRECISIONS:
        raise ValueError(f"'precision' must be one of {', '.join(PRECISIONS)}, but got {name!r}")
    return PRECISIONS[name]


def _type(name: str) -> Format:
    if name not in TYPES:
        raise ValueError(f"'dtype' must be one of {', '.join(TYPES)}, but got {name!r}")
    return TYPES[name]


def _per_channel(fmt: Format) -> int:
    return max(_CHANNEL // fmt.bits, 1)


def _values(matrix: npt.ArrayLike, fmt: Format, name: str) -> Array:
    values = np.asarray(matrix)
    if values.ndim < 2:
        raise ValueError(f"'{name}' must have at least two dimensions, not {values.ndim}")
    if fmt.is_float:
        if values.dtype != fmt.dtype:
            raise TypeError(f"'{name}' must have the dtype {fmt.dtype} for {fmt.name}, but got {values.dtype}")
        return values
    return _in_range(values, fmt, name)


def _in_range(values: Array, fmt: Format, name: str) -> Array:
    if values.dtype not in (np.int8, np.uint8):
        raise TypeError(f"'{name}' must have the dtype int8 or uint8 for {fmt.name}, but got {values.dtype}")
    low = -(1 << (fmt.bits - 1)) if fmt.kind == "s" else 0
    high = low + (1 << fmt.bits) - 1
    if values.size and not (low <= int(values.min()) and int(values.max()) <= high):
        raise ValueError(f"'{name}' must be in {low} to {high} for {fmt.name}")
    return values


def _pack(values: Array, fmt: Format) -> Array:
    """Pack along the last axis."""
    if fmt.bits >= 8:
        return np.ascontiguousarray(values).view(np.uint8)
    per_byte = 8 // fmt.bits
    if values.shape[-1] % per_byte:
        raise ValueError(f"{values.shape[-1]} elements of {fmt.name} do not fill bytes")
    return pack_bytes(values.view(np.uint8), fmt.bits)


def _unpack(data: Array, fmt: Format) -> Array:
    """Unpack along the last axis."""
    if fmt.bits >= 8:
        return np.ascontiguousarray(data).view(fmt.dtype)
    fields = unpack_bytes(data, fmt.bits)
    if fmt.kind == "s":
        sign = np.uint8(1 << (fmt.bits - 1))
        fields = (fields ^ sign) - sign
    return fields.view(fmt.dtype)


__all__ = ["pack_a", "pack_b", "pack_c", "unpack_a", "unpack_b", "unpack_c"]
