"""Scans, sorts, histograms and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xegpu_py.tiles import element_types
from xegpu_py.tiles.arrays import shared
from xegpu_py.tiles.effects import atomic_add, barrier, load, store
from xegpu_py.tiles.element_types import DType
from xegpu_py.tiles.functions import arange, cos, log, maximum, minimum, sin, sqrt, umulhi, where
from xegpu_py.tiles.tile_values import Value, axes_of, constant, reduced_shape, value_of
from xegpu_py.tiles.value_base import BUILDING, around, axis_of, common_shape, concatenate

# Scans, sorts and reductions by functions.
#
# Elements are selected by constant indices along the dimension, so results do not depend on the distribution of
# elements over lanes and subgroups.

Combine = Callable[..., Any]

Values = tuple[Value, ...]

NAME = "associative_scan"


def takes_functions(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function of the language that calls functions of the user; the compiler compiles these at each call."""
    function.__takes_functions__ = True  # type: ignore[attr-defined]
    return function


def _tuple_of(operand: Any) -> tuple[Values, bool]:
    """A value or a tuple of values as a tuple, and whether it was a single value."""
    if isinstance(operand, (tuple, list)):
        return tuple(value_of(v) for v in operand), False
    return (value_of(operand),), True


def _combined(combine: Combine, a: Values, b: Values, name: str) -> Values:
    """Combine both sides; the results are converted to the types of the operands, and numbers to values."""
    with BUILDING.elementwise(name):
        combined = combine(*a, *b)
    results = tuple(combined) if isinstance(combined, (tuple, list)) else (combined,)
    if len(results) != len(a):
        raise TypeError(f"{name}: the function takes {2 * len(a)} values and must return {len(a)}, not {len(results)}")
    for v in results:
        if isinstance(v, Value) and v.shape not in ((), a[0].shape):
            raise TypeError(
                f"{name}: the function of {a[0].describe()} returns {v.describe()}, which is not elementwise"
            )
    return tuple(value_of(v).to(x.dtype).broadcast(x.shape) for v, x in zip(results, a))


def _along(values: Values, axis: int, dim_indices: Sequence[int]) -> Values:
    return tuple(v.along(axis, dim_indices) for v in values)


PARTS, LEAST = 32, 16
"""How many parts of a value are scanned or reduced on their own, and the least extent of a part."""


def _in_parts(values: Values, axis: int) -> Values:
    """The values with the dimension split into parts of a power of two: the same pairs are combined first in each.

    The dimension becomes dimensions 1 and 2. Dimensions 0 and 1 are lines, among which a kernel can be divided.
    """
    before, extent, after = around(values[0].shape, axis)
    lines = before * max(after // LEAST, 1)
    size = extent & -extent
    while size > LEAST and extent // size * lines < PARTS:
        size //= 2
    count = extent // size if size >= LEAST and lines < PARTS else 1
    shape = (before, count, extent // count, *([after] if after > 1 else []))
    return tuple(v.reshape(shape) for v in values)


@takes_functions
def reduce(value: Any, axis: Any, combine_fn: Combine, keep_dims: bool = False) -> Any:
    """Combine the elements along dimensions by a function, in their order: ((a b) (c d)) ((e f) g).

    Args:
        value: a value, or a tuple of values of one shape.
        axis: a dimension, several, or None for all.
        combine_fn: an associative function of two values, parts of `value`; for a tuple of n values it takes 2n and
            returns n. Its results are converted to the types of its operands.
        keep_dims: whether dimensions stay, with extent 1.

    Raises:
        TypeError: if the function returns another number of values.
    """
    operands, single = _tuple_of(value)
    shape = common_shape(*(v.shape for v in operands))
    operands = tuple(v.broadcast(shape) for v in operands)
    dims = sorted(axes_of(axis, len(shape)))
    remaining_values = operands
    if axis is None:
        remaining_values, dims = tuple(v.ravel() for v in operands), [0]
    for dim in reversed(dims):
        old_shape = remaining_values[0].shape
        kept_shape = (*old_shape[:dim], 1, *old_shape[dim + 1 :])
        totals = _reduced(_in_parts(remaining_values, dim), 2, combine_fn)
        remaining_values = tuple(v.reshape(kept_shape) for v in _reduced(totals, 1, combine_fn))
    kept_shape = (1,) * len(shape) if axis is None else remaining_values[0].shape
    results = tuple(reduced_shape(v.reshape(kept_shape), shape, axis, keep_dims) for v in remaining_values)
    return results[0] if single else results


def _reduced(values: Values, axis: int, combine: Combine) -> Values:
    """Combine all elements along a dimension: pairs of neighbours first, and an odd last one at the end."""
    count = values[0].shape[axis]
    if count == 1:
        return values
    paired_count = count // 2 * 2
    even, odd = zip(*(v.halves(axis) for v in _along(values, axis, range(paired_count))))
    pair_results = _reduced(_combined(combine, even, odd, "reduce"), axis, combine)
    return (
        pair_results
        if paired_count == count
        else _combined(combine, pair_results, _along(values, axis, [count - 1]), "reduce")
    )


@takes_functions
def associative_scan(value: Any, axis: int, combine_fn: Combine, reverse: bool = False) -> Any:
    """Combine each element with all earlier ones along a dimension, or with all later ones if `reverse` is set.

    Element i is the combination of elements 0 to i, in their order. The function must be associative: pairs of
    neighbours are combined and scanned; every other result combines one of these with one more element.

    Args:
        value: a value, or a tuple of values of one shape.
        axis: the dimension.
        combine_fn: as of `reduce`.
        reverse: whether the scan begins at the last element.

    Raises:
        TypeError: if the function gives another number of values.
    """
    operands, single = _tuple_of(value)
    shape = common_shape(*(v.shape for v in operands))
    dim = axis_of(axis, len(shape))
    operands = tuple(v.broadcast(shape) for v in operands)
    backward = range(shape[dim])[::-1]
    rows = _along(operands, dim, backward) if reverse else operands
    rows = tuple(v.reshape(shape) for v in _scanned_parts(_in_parts(rows, dim), combine_fn)[0])
    rows = _along(rows, dim, backward) if reverse else rows
    return rows[0] if single else rows


def _scanned(values: Values, axis: int, combine: Combine) -> Values:
    count = values[0].shape[axis]
    if count == 1:
        return values
    pair_count = count // 2
    even, odd = zip(*(v.halves(axis) for v in _along(values, axis, range(2 * pair_count))))
    sums = _scanned(_combined(combine, even, odd, NAME), axis, combine)
    # Elements 2, 4, ... follow the sums of the pairs before them.
    first_even = _along(even, axis, [0])
    if pair_count > 1:
        later_even = _along(even, axis, range(1, pair_count))
        between = _combined(combine, _along(sums, axis, range(pair_count - 1)), later_even, NAME)
        first_even = tuple(concatenate(sides, axis) for sides in zip(first_even, between))
    interleaved_sums = tuple(f.interleaved(s, axis) for f, s in zip(first_even, sums))
    if count % 2 == 0:
        return interleaved_sums
    last_sum = _combined(combine, _along(sums, axis, [pair_count - 1]), _along(values, axis, [count - 1]), NAME)
    return tuple(concatenate(sides, axis) for sides in zip(interleaved_sums, last_sum))


def _scanned_parts(values: Values, combine: Combine) -> tuple[Values, Values]:
    """The scan along dimensions 1 and 2 together, as `_scanned` computes it.

    Each part is scanned on its own between the first steps, which give its total, and the last ones, which begin with
    the scan of all parts before.

    Returns:
        the results, and for each part the last one of the part before.
    """
    before, count, extent, *after = values[0].shape
    if count == 1:
        return _scanned(values, 2, combine), values
    if extent == 1:
        totals = _scanned(tuple(v.reshape((before, count, *after)) for v in values), 1, combine)
        earlier_totals = _along(totals, 1, [0, *range(count - 1)])
        return tuple(v.reshape(values[0].shape) for v in totals), tuple(
            v.reshape(values[0].shape) for v in earlier_totals
        )
    even, odd = zip(*(v.halves(2) for v in values))
    sums, earlier_totals = _scanned_parts(_combined(combine, even, odd, NAME), combine)
    # Elements 2, 4, ... follow the sums of the pairs before them; the first one of a part follows those of other parts.
    first_even = _along(even, 2, [0])
    is_first = (arange(count) == 0).reshape((1, count, 1, *(1 for _ in after))).broadcast(first_even[0].shape)
    firsts = tuple(
        where(is_first, a, b) for a, b in zip(first_even, _combined(combine, earlier_totals, first_even, NAME))
    )
    if extent > 2:
        pair_range = range(extent // 2)
        between = _combined(combine, _along(sums, 2, pair_range[:-1]), _along(even, 2, pair_range[1:]), NAME)
        firsts = tuple(concatenate(sides, 2) for sides in zip(firsts, between))
    return tuple(f.interleaved(s, 2) for f, s in zip(firsts, sums)), earlier_totals


def cumsum(value: Any, axis: int = 0, reverse: bool = False, dtype: Any = None) -> Value:
    """The sums of the elements up to each one along a dimension; with `reverse`, from each one to the last.

    Args:
        value: the numbers.
        axis: the dimension.
        reverse: whether to begin at the last element.
        dtype: the type of the sums; by default int32 or uint32 for narrower integers and bools, as in Triton.
    """
    return associative_scan(value_of(value)._summed(dtype), axis, lambda a, b: a + b, reverse)


def cumprod(value: Any, axis: int = 0, reverse: bool = False, dtype: Any = None) -> Value:
    """The products of the elements up to each one along a dimension; see `cumsum`."""
    return associative_scan(value_of(value)._summed(dtype), axis, lambda a, b: a * b, reverse)


# Sorting.


def _keys(value: Value) -> Value:
    """Integers that sort as the numbers do, with NaN last and -0 before 0."""
    if value.dtype.kind == "bool":
        return value.to(element_types.int32)
    if not value.dtype.is_float:
        return value
    bits = value.bitcast(element_types.integer_of(value.dtype.bits, signed=True))
    low = (1 << value.dtype.bits - 1) - 1
    ordered = where(bits < 0, bits ^ low, bits)
    number = value if value.dtype.bits > 8 else value.to(element_types.float16)
    return where(number != number, low, ordered)


def _numbers(keys: Value, like: Value) -> Value:
    """The numbers of keys that `_keys` made of a value like `like`."""
    if like.dtype.kind == "bool":
        return keys != 0
    if not like.dtype.is_float:
        return keys
    low = (1 << like.dtype.bits - 1) - 1
    return where(keys < 0, keys ^ low, keys).bitcast(like.dtype)


def sort(value: Any, dim: int | None = None, descending: bool = False) -> Value:
    """The elements in order along a dimension, by default the last: a bitonic network.

    NaN is greater than all numbers, as in numpy, and becomes the canonical NaN; -0 comes before 0.

    Args:
        value: the elements; the extent need not be a power of two.
        dim: the dimension.
        descending: whether the greatest comes first.

    Raises:
        ValueError: if there is no such dimension.
    """
    keys = value_of(value)
    axis = axis_of(-1 if dim is None else dim, keys.ndim)
    return _numbers(_sorted(_keys(keys), axis, descending), keys)


def topk(value: Any, k: int, dim: int | None = None, descending: bool = True) -> Value:
    """The k greatest elements along a dimension, by default the last, in descending order.

    Args:
        value: the elements.
        k: how many, at most the dimension's extent.
        dim: the dimension.
        descending: with False the k least in ascending order, as in Triton.

    Raises:
        ValueError: if there are fewer elements.
    """
    keys = value_of(value)
    axis = axis_of(-1 if dim is None else dim, keys.ndim)
    if not 1 <= k <= keys.shape[axis]:
        raise ValueError(f"topk takes 1 to {keys.shape[axis]} elements of {keys.describe()} along axis {axis}, not {k}")
    return sort(keys, axis, descending).along(axis, list(range(k)))


def bitonic_merge(value: Any, dim: int | None = None, descending: bool = False) -> Value:
    """Sort elements along a dimension along which they form a bitonic sequence: rising then falling, or the reverse.

    Raises:
        ValueError: if the extent is not a power of two.
    """
    keys = value_of(value)
    axis = axis_of(-1 if dim is None else dim, keys.ndim)
    extent = keys.shape[axis]
    if extent & (extent - 1):
        raise ValueError(f"bitonic_merge needs an extent that is a power of two, but got {extent}")
    rows = _keys(keys).with_first(axis)
    stride = extent // 2
    while stride:
        rows = _exchanged(rows, stride, _always(descending))
        stride //= 2
    return _numbers(rows.from_first(keys.shape, axis), keys)


ROW_LANES = 16
"""The length of a row from which on whole rows are compared and exchanged."""


def _sorted(keys: Value, axis: int, descending: bool) -> Value:
    shape, extent = keys.shape, keys.shape[axis]
    padded = 1 << (extent - 1).bit_length()
    if padded > extent:
        greatest_key, least = keys.dtype.limits[::-1]
        wide = (*shape[:axis], padded - extent, *shape[axis + 1 :])
        keys = concatenate([keys, constant(keys.dtype, least if descending else greatest_key, wide)], axis)
    lines = keys.size // padded
    if lines >= ROW_LANES or padded <= ROW_LANES:
        rows = keys.with_first(axis)
        size = 2
        while size <= padded:
            rows = _merged(rows, size, size, padded, descending)
            size *= 2
        sorted_keys = rows.from_first(keys.shape, axis)
    else:
        front = (*shape[:axis], *shape[axis + 1 :], padded)
        order = [*range(axis), *range(axis + 1, len(shape)), axis]
        line = _sorted_line(keys.permute(order).ravel(), padded, descending)
        back = [*range(axis), len(shape) - 1, *range(axis, len(shape) - 1)]
        sorted_keys = line.reshape(front).permute(back)
    return sorted_keys.along(axis, list(range(extent)))


def _merged(rows: Value, size: int, first_stride: int, run_size: int, descending: bool) -> Value:
    """Merge rows to sorted runs of `size`, alternately ascending and descending; the last merge in one direction."""
    stride = first_stride // 2
    while stride:
        rows = _exchanged(rows, stride, lambda i: descending if size >= run_size else bool(i & size) != descending)
        stride //= 2
    return rows


def _always(falls: bool) -> Callable[[int], bool]:
    return lambda i: falls


def _exchanged(value: Value, stride: int, falling: Callable[[int], bool], axis: int = 0) -> Value:
    """Compare and exchange elements that are `stride` apart: the lesser comes first unless the run is descending."""
    before, count, after = around(value.shape, axis)
    firsts = [i for i in range(count) if not i & stride]
    a, b = value.along(axis, firsts), value.along(axis, [i + stride for i in firsts])
    low, high = (v.reshape((-1, after)) for v in (minimum(a, b), maximum(a, b)))
    half = len(firsts)
    partner_indices = [0] * count
    for n, i in enumerate(firsts):
        lesser, greater = (i + stride, i) if falling(i) else (i, i + stride)
        partner_indices[lesser], partner_indices[greater] = n, half * before + n
    return low.rows_with(high, [k * half + p for k in range(before) for p in partner_indices]).reshape(value.shape)


def _sorted_line(line: Value, extent: int, descending: bool) -> Value:
    """Sort a line in runs of `extent`, a power of two greater than a row.

    Distances of 16^k to 16^(k + 1) are along a dimension of 16 elements that has 16^k elements after it. The dimensions
    before and after it are lines, among which a kernel can be divided.
    """
    count = line.size
    rows = line.reshape((-1, ROW_LANES)).T
    size = 2
    while size < ROW_LANES:
        rows = _merged(rows, size, size, extent, descending)
        size *= 2
    line = rows.T.ravel()
    while size <= extent:
        mask = None
        if size < extent:
            # Runs are ascending and descending alternately; the descending ones are complemented.
            falls = ((arange(count) & size) != 0) ^ descending
            mask = where(falls, -1, 0).to(element_types.integer_of(line.dtype.bits, signed=True)).to(line.dtype)
        line = line if mask is None else line ^ mask
        row_size, stride = ROW_LANES, size // 2
        while row_size <= stride:
            row_size *= ROW_LANES
        while stride:
            row_size //= ROW_LANES
            extents = (count // min(row_size * ROW_LANES, count), min(ROW_LANES, count // row_size), row_size)
            block = line.reshape(extents[:2]).T if row_size == 1 else line.reshape(extents)
            descends, axis = descending and size == extent, int(row_size > 1)
            while stride >= row_size:
                block = _exchanged(block, stride // row_size, _always(descends), axis)
                stride //= 2
            line = (block.T if row_size == 1 else block).ravel()
        line = line if mask is None else line ^ mask
        size *= 2
    return line


COMPARED = 4096
"""Comparisons that `histogram` makes at a time."""


def histogram(value: Any, num_bins: int, mask: Any = None) -> Value:
    """Count the elements that are 0, 1, ... num_bins - 1: a line of int32. Other elements are ignored.

    Args:
        value: integers.
        num_bins: the number of bins.
        mask: which elements are counted; by default all.

    Raises:
        TypeError: for other types.
    """
    values = value_of(value)
    if not values.dtype.is_integer:
        raise TypeError(f"histogram needs integers, not {values.dtype}")
    if num_bins < 1:
        raise ValueError(f"histogram needs at least one bin, not {num_bins}")
    line = values.ravel()
    line = line.to(element_types.int32) if line.dtype.bits < 32 else line
    if mask is not None:
        counted_mask = value_of(mask).to(element_types.bool_).broadcast(values.shape).ravel()
        line = where(counted_mask, line, line.dtype.limits[1])
    BUILDING.check_together("combine elements")
    if line.size * num_bins > COMPARED and BUILDING.take_shared(4 * num_bins):
        counts = shared(num_bins, element_types.int32)
        store(counts.tile(num_bins, at=(0,)), constant(element_types.int32, 0, (num_bins,)))
        barrier()
        inside = (line >= 0) & (line <= num_bins - 1)
        atomic_add(counts + where(inside, line, 0), 1, mask=inside)
        barrier()
        total = load(counts.tile(num_bins, at=(0,)))
        barrier()
        return total
    # Each part is compared with as many bins as registers hold; the counts of all parts are added at the end.
    (chunks,) = _in_parts((line,), 0)
    bins_at_once = max(COMPARED // line.size, 1)
    counts_by_bin = []
    for first_bin in range(0, num_bins, bins_at_once):
        bins = arange(first_bin, min(first_bin + bins_at_once, num_bins)).to(line.dtype).reshape((1, -1, 1))
        counts_by_bin.append((chunks.reshape((chunks.shape[1], 1, -1)) == bins).to(element_types.int32).sum(2))
    return concatenate(counts_by_bin, 1).sum(0)


@takes_functions
def map_elementwise(function: Combine, *values: Any, pack: int = 1) -> Any:
    """Apply a function to all elements.

    The function is compiled once, for whole values: it must use `where` instead of `if`.

    Args:
        function: the function.
        values: its operands, which are broadcast.
        pack: Triton's number of elements for a call; must be 1.

    Raises:
        ValueError: for another `pack`.
    """
    if pack != 1:
        raise ValueError("map_elementwise calls its function for all elements at once: pack must be 1")
    operands = [value_of(v) for v in values]
    shape = common_shape(*(v.shape for v in operands))
    with BUILDING.elementwise("map_elementwise"):
        return function(*(v.broadcast(shape) for v in operands))


# Random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11), as Triton's.
#
# The numbers depend on the seed and the offsets only, not on shapes and maps.

ROUNDS = 10

_KEYS = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}
"""The increments of the two words of the key after each round."""

_FACTORS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
"""The multipliers of the first and the third word of the counter."""

Four = tuple[Value, Value, Value, Value]


def philox_impl(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: int = ROUNDS) -> Four:
    """Rounds of Philox.

    Args:
        c0, c1, c2, c3: the counter, uint32, or uint64 for Philox 4x64.
        k0, k1: the key, of the same type.
        n_rounds: how many rounds.

    Raises:
        TypeError: for other types.
    """
    dtype = value_of(c0).dtype
    if dtype not in (element_types.uint32, element_types.uint64):
        raise TypeError(f"Philox works on uint32 and uint64, not {dtype}")
    (step0, step1), (a, b) = _KEYS[dtype.bits], _FACTORS[dtype.bits]
    x0, x1, x2, x3 = (value_of(v).to(dtype) for v in (c0, c1, c2, c3))
    key0, key1 = value_of(k0).to(dtype), value_of(k1).to(dtype)
    for _ in range(n_rounds):
        x0, x1, x2, x3 = umulhi(x2, b) ^ x1 ^ key0, x2 * b, umulhi(x0, a) ^ x3 ^ key1, x0 * a
        key0, key1 = key0 + step0, key1 + step1
    return x0, x1, x2, x3


def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = ROUNDS) -> Four:
    """Philox of a counter, with a seed as key: four values of uint32, or of uint64 if `c0` is int64 or uint64.

    Args:
        seed: an integer of up to 64 bits.
        c0, c1, c2, c3: the counter, integers; of type index the lower 32 bits, since Triton's `arange` gives int32.
        n_rounds: how many rounds.

    Raises:
        TypeError: if the seed is not an integer.
    """
    counter_word = value_of(c0, element_types.uint32)
    is_wide = counter_word.dtype.bits == 64 and counter_word.dtype != element_types.index
    dtype = element_types.integer_of(64 if is_wide else 32, signed=False)
    low, high = _key(seed, dtype)
    x0, x1, x2, x3 = (value_of(c, dtype).to(dtype) for c in (counter_word, c1, c2, c3))
    return philox_impl(x0, x1, x2, x3, low, high, n_rounds)


def _key(seed: Any, dtype: DType) -> tuple[Value, Value]:
    """The two words of the key."""
    if isinstance(seed, int):
        seed_bits = seed % (1 << 64)
        if dtype.bits == 64:
            return constant(dtype, seed_bits), constant(dtype, 0)
        return constant(dtype, seed_bits & 0xFFFFFFFF), constant(dtype, seed_bits >> 32)
    seed_value = value_of(seed)
    if not seed_value.dtype.is_integer:
        raise TypeError(f"a seed is an integer, not {seed_value.dtype}")
    wide = seed_value.to(element_types.uint64)
    if dtype.bits == 64:
        return wide, constant(dtype, 0)
    return wide.to(element_types.uint32), (wide >> 32).to(element_types.uint32)


def randint4x(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Four:
    """Four values of random int32 of the offsets' shape: the words of Philox, whose counter is the offset.

    Args:
        seed: an integer.
        offset: integers; different offsets give different numbers.
        n_rounds: how many rounds.
    """
    offsets = value_of(offset)
    low = offsets.to(element_types.uint32)
    high = (offsets >> 32).to(element_types.uint32) if offsets.dtype.bits > 32 else low._number(0)
    zero = low._number(0)
    a, b, c, d = philox(seed, low, high, zero, zero, n_rounds)
    return a.to(element_types.int32), b.to(element_types.int32), c.to(element_types.int32), d.to(element_types.int32)


def randint(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Value:
    """Uniformly distributed random int32: the first value of `randint4x`."""
    return randint4x(seed, offset, n_rounds)[0]


def uint_to_uniform_float(value: Any) -> Value:
    """Integers of 32 or 64 bits as float32 in [0, 1).

    Raises:
        TypeError: for other types.
    """
    integers = value_of(value)
    if integers.dtype.kind not in ("int", "uint") or integers.dtype.bits not in (32, 64):
        raise TypeError(f"uint_to_uniform_float needs integers of 32 or 64 bits, not {integers.dtype}")
    # The largest float32 that keeps the greatest integer's product below 1.
    scale = 4.6566127342e-10 if integers.dtype.bits == 32 else 1.0842020432385337e-19
    bits = integers.to(element_types.integer_of(integers.dtype.bits, signed=True))
    return where(bits < 0, -bits - 1, bits).to(element_types.float32) * scale


def rand(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Value:
    """Uniformly distributed random float32 in [0, 1)."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


def rand4x(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Four:
    """Four values of uniformly distributed random float32 in [0, 1)."""
    a, b, c, d = (uint_to_uniform_float(v) for v in randint4x(seed, offset, n_rounds))
    return a, b, c, d


def pair_uniform_to_normal(u1: Any, u2: Any) -> tuple[Value, Value]:
    """Two uniformly distributed values as two normally distributed ones (Box and Muller)."""
    radius_input = maximum(value_of(u1), 1.0e-7)
    angle = 6.283185307179586 * value_of(u2)
    radius = sqrt(-2.0 * log(radius_input))
    return radius * cos(angle), radius * sin(angle)


def randn(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Value:
    """Random float32 of the normal distribution of mean 0 and variance 1."""
    a, b, _, _ = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(a), uint_to_uniform_float(b))[0]


def randn4x(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> Four:
    """Four values of random float32 of the normal distribution."""
    a, b, c, d = rand4x(seed, offset, n_rounds)
    return (*pair_uniform_to_normal(a, b), *pair_uniform_to_normal(c, d))
