"""Functions of the tile language against numpy, for subgroups and for workgroups of four; all bytes are compared."""

import math

import ml_dtypes
import numpy as np
import pytest

import xegpu_py.language as xl
from xegpu_py import DiagnosticError, language
from xegpu_py.tiles import functions

from .computing import built, check, computed

F32, I8, I32, U8, U32, I64 = np.float32, np.int8, np.int32, np.uint8, np.uint32, np.int64
RNG = np.random.default_rng(13)
X = RNG.integers(-100, 100, (8, 16)).astype(I32)
Y = RNG.integers(-100, 100, (2, 6, 16)).astype(I32)
L = RNG.integers(-100, 100, 64).astype(I32)
F = RNG.standard_normal((8, 16)).astype(F32)


def take(a, b):
    return np.take_along_axis(a, b, 1)


# Functions of values, their arguments, and what numpy gives.
CASES = {
    "permute": (
        lambda v: (v.permute(2, 0, 1), xl.permute(v, (1, 0, 2)), v.T, xl.trans(v, 2, 1, 0)),
        Y,
        lambda v: (v.transpose(2, 0, 1), v.transpose(1, 0, 2), v.transpose(0, 2, 1), v.transpose(2, 1, 0)),
    ),
    "parts": (
        lambda v: (v[1:3, ::2, 4:12], v[::-1, 3, None], v[..., -1], v[:, None, 2:5, None, 0]),
        Y,
        lambda v: (v[1:3, ::2, 4:12], v[::-1, 3, None], v[..., -1], v[:, None, 2:5, None, 0]),
    ),
    "broadcasting": (
        lambda v: (v[:, None, :] + v[None, :, :4, None][..., 0, :1], xl.broadcast_to(v[:1, :4], 3, 8, 4)),
        X[:4],
        lambda v: (v[:, None, :] + v[None, :, :4, None][..., 0, :1], np.broadcast_to(v[:1, :4], (3, 8, 4))),
    ),
    "middle dimensions": (
        lambda v: (v[:, :1, :] * v[:, :, :1], v[:1] + v, v.expand_dims((0, 2)), v[:, :1].squeeze(1), v.ravel()),
        Y,
        lambda v: (v[:, :1, :] * v[:, :, :1], v[:1] + v, np.expand_dims(v, (0, 2)), v[:, 0], v.ravel()),
    ),
    "sums": (
        lambda v: (v.sum(1, keep_dims=True), v.sum(0), v.sum((0, 2)), v.sum(), xl.sum(v, -1, keep_dims=False)),
        Y,
        lambda v: tuple(
            np.asarray(s, I32) for s in (v.sum(1, keepdims=1), v.sum(0), v.sum((0, 2)), v.sum(), v.sum(-1))
        ),
    ),
    "narrow sums": (
        lambda v: (v.to(xl.int8).sum(1), v.to(xl.uint8).sum(1), (v > 0).sum(), v.to(xl.int8).sum(1, dtype=xl.int64)),
        X,
        lambda v: (
            v.sum(1, dtype=I32),
            v.astype(U8).sum(1, dtype=U32),
            np.asarray((v > 0).sum(), I32),
            v.sum(1, dtype=I64),
        ),
    ),
    "other reductions": (
        lambda v: (xl.prod(v, 0), v.max(1), xl.min(v), xl.xor_sum(v, 0), xl.reduce_or(v, 1), xl.any(v > 99), xl.all(v)),
        X,
        lambda v: (
            np.multiply.reduce(v, 0, dtype=I32),
            v.max(1),
            v.min(),
            np.bitwise_xor.reduce(v, 0),
            np.bitwise_or.reduce(v, 1),
            (v > 99).any(),
            v.all(),
        ),
    ),
    "places of extrema": (
        lambda v: (xl.argmax(v, 1, keep_dims=False), xl.argmin(v, 0), xl.argmax(v), v.max(1, return_indices=True)[1]),
        X // 30,
        lambda v: tuple(
            np.asarray(p, I32)
            for p in (v.argmax(1), v.argmin(0), v.argmax(), v.argmax(1))
        ),
    ),
    "scans": (
        lambda v: (xl.cumsum(v, 1), xl.cumsum(v, 0), xl.cumprod(v, 1), xl.cumsum(v[:7, :5], 0, reverse=True)),
        X,
        lambda v: (
            v.cumsum(1, dtype=I32),
            v.cumsum(0, dtype=I32),
            v.cumprod(1, dtype=I32),
            v[:7, :5][::-1].cumsum(0, dtype=I32)[::-1],
        ),
    ),
    "scans of lines": (
        lambda v: (xl.cumsum(v), v.cumsum(0, True), xl.cumsum(v[:13]), xl.cumsum(v.to(xl.int8))),
        L,
        lambda v: tuple(c.astype(I32) for c in (v.cumsum(), v[::-1].cumsum()[::-1], v[:13].cumsum(), v.cumsum())),
    ),
    "scans of middle dimensions": (
        lambda v: (xl.cumsum(v, 1), xl.cumsum(v, 0), xl.cumsum(v, -1)),
        Y,
        lambda v: (v.cumsum(1, dtype=I32), v.cumsum(0, dtype=I32), v.cumsum(2, dtype=I32)),
    ),
    "sorts": (
        lambda v: (xl.sort(v), xl.sort(v, 0, descending=True), v.sort(), xl.topk(v, 5), xl.sort(v[:, :13])),
        X,
        lambda v: (np.sort(v), -np.sort(-v, 0), np.sort(v), -np.sort(-v)[:, :5], np.sort(v[:, :13])),
    ),
    "sorts of lines": (
        lambda v: (xl.sort(v), xl.sort(v, descending=True), xl.topk(v[:50], 3), xl.sort(v.to(xl.uint8))),
        L,
        lambda v: (np.sort(v), -np.sort(-v), -np.sort(-v[:50])[:3], np.sort(v.astype(U8))),
    ),
    "merges": (
        lambda v: (xl.bitonic_merge(xl.cat(xl.sort(v), xl.sort(v, descending=True), dim=1)), xl.flip(v), xl.flip(v, 0)),
        X[:, :8],
        lambda v: (np.sort(np.concatenate([v, v], 1)), v[:, ::-1], v[::-1]),
    ),
    "joins": (
        lambda v: (xl.join(v, v + 1), xl.interleave(v, -v), *xl.split(v.reshape(8, 8, 2)), xl.join(v[0, 0], 5)),
        X,
        lambda v: (
            np.stack([v, v + 1], -1),
            np.stack([v, -v], -1).reshape(8, 32),
            v[:, ::2],
            v[:, 1::2],
            np.array([v[0, 0], 5], I32),
        ),
    ),
    "concatenations": (
        lambda v: (xl.cat(v, v[:3] + 1), xl.cat(v, v[:, :5], dim=1), xl.cat([v[..., :3], v, v], dim=-1)),
        Y,
        lambda v: (
            np.concatenate([v, v[:3] + 1]),
            np.concatenate([v, v[:, :5]], 1),
            np.concatenate([v[..., :3], v, v], -1),
        ),
    ),
    "gathers": (
        lambda v: (xl.gather(v, v & 15, 1), xl.gather(v, v[:5] & 7, 0), xl.histogram(v & 7, 8)),
        X,
        lambda v: (
            take(v, v & 15),
            np.take_along_axis(v, v[:5] & 7, 0),
            np.bincount((v & 7).ravel(), minlength=8).astype(I32),
        ),
    ),
    "histogram with mask": (
        lambda v: xl.histogram(v, 4, mask=v < 3),
        L,
        lambda v: np.array([(v == k).sum() if k < 3 else 0 for k in range(4)], I32),
    ),
    "histogram of bytes": (
        lambda v: (
            xl.histogram(v.to(xl.int8), 128, mask=v < 90),
            xl.histogram(v.to(xl.uint8), 256),
            xl.histogram(v.to(xl.int64) * ((1 << 32) + 1), 9),
        ),
        np.array([0, 5, 0, 89, 90, 127, -1, -128], I32),
        lambda v: (
            np.bincount(v[(v >= 0) & (v < 90)], minlength=128).astype(I32),
            np.bincount(v.astype(U8), minlength=256).astype(I32),
            np.bincount(v[v == 0], minlength=9).astype(I32),
        ),
    ),
    "packed integers": (
        lambda v: (xl.unpack_int4(v.to(xl.int8)), xl.unpack_int4(v.to(xl.uint8), signed=False), xl.pack_int4(v)),
        X,
        lambda v: (
            np.stack([(v.astype(I8) << 4) >> 4, v.astype(I8) >> 4], -1).reshape(8, 32),
            np.stack([v.astype(U8) & 15, v.astype(U8) >> 4], -1).reshape(8, 32),
            ((v[:, ::2] & 15) | (v[:, 1::2] & 15) << 4).astype(U8),
        ),
    ),
    "places": (
        lambda v: (xl.arange(6)[:, None] * 10 + xl.arange(2, 6), xl.full((2, 3, 4), 7, xl.int16), xl.zeros_like(v)),
        Y,
        lambda v: (np.arange(6)[:, None] * 10 + np.arange(2, 6), np.full((2, 3, 4), 7, np.int16), np.zeros_like(v)),
    ),
    "choices": (
        lambda v: (xl.where(v > 0, 1, v), xl.where(v > 0, v, 2.5), xl.clamp(v, -5, 50), xl.where(v[:, :1] > 0, v, 0)),
        X,
        lambda v: (
            np.where(v > 0, 1, v).astype(I32),
            np.where(v > 0, v, F32(2.5)).astype(F32),
            np.clip(v, -5, 50),
            np.where(v[:, :1] > 0, v, 0),
        ),
    ),
    "upper halves": (
        lambda v: (xl.umulhi(v.to(xl.uint32) * 40503, 0xD2511F53), xl.umulhi(v.to(xl.int64).to(xl.uint64), 2**63 + 5)),
        X,
        lambda v: (
            (v.astype(U32) * U32(40503)).astype(np.uint64) * np.uint64(0xD2511F53) >> np.uint64(32),
            np.array([int(n) * (2**63 + 5) >> 64 for n in v.astype(I64).astype(np.uint64).ravel()], np.uint64),
        ),
    ),
    "rounded": (
        lambda v: (
            *(xl.sqrt_rn(abs(v)), xl.div_rn(v, v + 3), xl.floor(v * 9)),
            *(xl.ceil(v * 9), xl.round(v * 9), xl.abs(v)),
        ),
        F,
        lambda v: (np.sqrt(abs(v)), v / (v + 3), np.floor(v * 9), np.ceil(v * 9), np.rint(v * 9), abs(v)),
    ),
    "broadcast": (lambda v: xl.broadcast(v, v[:, :1]), X, lambda v: (v, np.broadcast_to(v[:, :1], v.shape))),
    "swizzle": (
        lambda v: xl.swizzle2d(v // 6, v % 6, 4, 6, 3),
        np.arange(24, dtype=I32).reshape(4, 6),
        lambda v: tuple(
            np.array([p[k] for p in sorted_by_groups(4, 6, 3)], I32).reshape(4, 6) for k in range(2)
        ),
    ),
}  # fmt: skip


def sorted_by_groups(rows, columns, size):
    """Rows and columns in groups of rows, column by column."""
    groups = [range(first, min(first + size, rows)) for first in range(0, rows, size)]
    return [(i, j) for group in groups for j in range(columns) for i in group]


@pytest.mark.each_value
@pytest.mark.parametrize("workgroup", [False, True], ids=["subgroup", "workgroup"])
@pytest.mark.parametrize("name", CASES)
def test_functions(name, workgroup):
    function, x, model = CASES[name]
    expected = model(x)
    if name == "upper halves":
        expected = (expected[0].astype(U32), expected[1].reshape(x.shape))
    check(function, [x], expected, workgroup)


@pytest.mark.parametrize("name", ["permute", "sums", "scans", "sorts", "gathers", "joins"])
def test_functions_by_the_reference(name):
    function, x, model = CASES[name]
    check(function, [x], model(x), workgroup=True, engine="reference")


def test_numbers_are_sorted_as_numpy_does():
    x = np.array([1.5, np.nan, -np.inf, 0.0, np.inf, -2.5, 1e-40, -1e-40] * 4, F32)
    check(lambda v: (xl.sort(v), xl.sort(v, descending=True)), [x], (np.sort(x), np.sort(x)[::-1]))
    half = RNG.standard_normal((16, 8)).astype(np.float16)
    check(lambda v: xl.sort(v, 0), [half], np.sort(half, 0))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_all_numbers_of_a_small_format_are_sorted(dtype):
    """-0 comes before 0, NaN last."""
    x = RNG.permutation(np.arange(256, dtype=np.uint8)).view(dtype).reshape(32, 8)
    x[0, :3] = 0.0, -0.0, np.nan
    numbers = x.astype(F32)
    expected = np.take_along_axis(x, np.lexsort([~np.signbit(numbers), numbers, np.isnan(numbers)]), 1)
    check(xl.sort, [x], expected)


def test_extrema_of_nan():
    x = F.copy()
    x[1, 5], x[2, 3] = np.nan, np.inf
    expected = (x.argmax(1).astype(I32), x.argmin(1).astype(I32))
    check(lambda v: (xl.argmax(v, 1, keep_dims=False), xl.argmin(v, 1, keep_dims=False)), [x], expected)
    none = xl.PropagateNan.NONE
    check(
        lambda v: (xl.maximum(v, 0.5), xl.maximum(v, 0.5, none), xl.clamp(v, -1.0, 1.0, none)),
        [x],
        (np.maximum(x, F32(0.5)), np.fmax(x, F32(0.5)), np.fmin(np.fmax(x, F32(-1)), F32(1))),
    )


def test_sums_of_floats_are_scanned_as_pairs():
    """The order of combination is that of the docstring, which decides the bits."""

    def scanned(rows):
        if len(rows) == 1:
            return rows
        sums = scanned([a + b for a, b in zip(rows[::2], rows[1::2])])
        return [sums[i // 2] if i % 2 else rows[0] if i == 0 else sums[i // 2 - 1] + rows[i] for i in range(len(rows))]

    x = RNG.standard_normal((8, 21)).astype(F32)
    check(lambda v: xl.cumsum(v, 1), [x], np.stack(scanned(list(x.T)), 1))
    check(lambda v: xl.cumsum(v, 0), [x], np.stack(scanned(list(x))), workgroup=True)


def affine(a, b, c, d):
    """Two maps x -> a x + b one after the other; associative, and not commutative."""
    return a * c, b * c + d


@pytest.mark.parametrize("workgroup", [False, True])
def test_functions_of_pairs(workgroup):
    a, b = RNG.integers(-3, 4, (2, 4, 16)).astype(I32)

    def model(a, b, axis):
        a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
        rows = [(a[0], b[0])]
        for x, y in zip(a[1:], b[1:]):
            rows.append(affine(*rows[-1], x, y))
        return tuple(np.moveaxis(np.stack([r[k] for r in rows]), 0, axis) for k in range(2))

    def function(x, y):
        total = xl.reduce((x, y), 1, affine, keep_dims=False)
        return *xl.associative_scan((x, y), 1, affine), *xl.associative_scan((x, y), 0, affine), *total

    along, across = model(a, b, 1), model(a, b, 0)
    check(function, [a, b], (*along, *across, *(s[:, -1] for s in along)), workgroup)
    flipped = model(a[:, ::-1], b[:, ::-1], 1)
    check(
        lambda x, y: xl.associative_scan((x, y), 1, affine, reverse=True),
        [a, b],
        tuple(s[:, ::-1] for s in flipped),
        workgroup,
    )


def test_the_order_of_combinations():
    """The function is not associative, so that each extent has one result only: neighbours are combined first."""
    extents = (*range(1, 12), 16, 33, 34, 48, 95)

    def combine(a, b):
        return a * 3 - b

    def reduced(v):
        if len(v) == 1:
            return v
        pairs = reduced(combine(v[: len(v) // 2 * 2 : 2], v[1::2]))
        return combine(pairs, v[-1:]) if len(v) % 2 else pairs

    def scanned(v):
        if len(v) == 1:
            return v
        found = v.copy()
        found[1::2] = scanned(combine(v[: len(v) // 2 * 2 : 2], v[1::2]))
        found[2::2] = combine(found[1:-1:2], v[2::2])
        return found

    def function(v):
        parts = [v[:n] for n in extents]
        totals = [xl.reduce(p, 0, combine, keep_dims=True) for p in parts]
        return *totals, *(xl.associative_scan(p, 0, combine) for p in parts)

    line = RNG.integers(-100, 100, max(extents)).astype(I32)
    parts = [line[:n] for n in extents]
    check(function, [line], (*map(reduced, parts), *map(scanned, parts)), engine="interpreter")


def test_functions_of_the_kernel_are_called():
    """Closures and branches in what `reduce`, scans and `map_elementwise` call are compiled at each call."""

    @language.tile_kernel((I32, (8, 16)), (I32, (8, 16)), (I32, (8, 1)), engine="both")
    def kernel(X, Y, Z):
        x = X.tile((8, 16), at=(0, 0)).load()
        bias = 1

        def greater(a, b):
            found = a
            if bias:
                found = xl.where(a > b, a, b)
            return found

        Y.tile((8, 16), at=(0, 0)).store(xl.associative_scan(x, 1, greater))
        total = xl.reduce(xl.map_elementwise(lambda v: v + bias, x), 1, lambda a, b: xl.maximum(a, b), keep_dims=True)
        Z.tile((8, 1), at=(0, 0)).store(total)

    y, z = np.zeros_like(X), np.zeros((8, 1), I32)
    kernel(X, y, z)
    np.testing.assert_array_equal(y, np.maximum.accumulate(X, 1))
    np.testing.assert_array_equal(z, X.max(1, keepdims=True) + 1)


def test_approximate_functions():
    x = (RNG.random((8, 16)) * 4 - 2).astype(F32)
    wide = x.astype(np.float64)
    models = {
        "exp": np.exp, "exp2": np.exp2, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
        "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "erf": np.vectorize(math.erf),
    }  # fmt: skip
    found = computed(lambda v: tuple(getattr(xl, n)(v) for n in models), [x], [x] * len(models))
    for name, got in zip(models, found):
        np.testing.assert_allclose(got, models[name](wide), rtol=2e-6, atol=1e-7, err_msg=name)
    e = np.exp(wide - wide.max(1, keepdims=True))
    (got,) = computed(lambda v: xl.softmax(v, 1), [x], [x], workgroup=True)
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_lambdas_of_one_line_are_told_apart():
    """By their code, and by the constants in it."""
    plus_one, plus_two, times_two = (lambda v: v + 1), (lambda v: v + 2), (lambda v: v * 2)

    @language.tile_kernel((I32, (64,)), (I32, (3, 16)))
    def kernel(A, B):
        a = xl.load(A + xl.arange(16))
        xl.store(B + xl.arange(16), plus_one(a))
        xl.store(B + xl.arange(16, 32), plus_two(a))
        xl.store(B + xl.arange(32, 48), times_two(a))

    found = np.zeros((3, 16), I32)
    kernel(L, found)
    np.testing.assert_array_equal(found, [L[:16] + 1, L[:16] + 2, L[:16] * 2])


def test_pythons_extrema():
    """`max` and `min` of several values, and of those in a list or a tuple."""

    @language.tile_kernel((I32, (64,)), (I32, (64,)), (I32, (16,)), (I32, (16,)))
    def kernel(A, B, C, D):
        at = xl.arange(16)
        a, b = xl.load(A + at), xl.load(B + at)
        xl.store(C + at, max([a, b]) - min((b, a)))
        xl.store(D + at, max(a, b, 5) + min(a, b))

    a, b, c, d = L, L[::-1].copy(), np.zeros(16, I32), np.zeros(16, I32)
    kernel(a, b, c, d)
    least, most = np.minimum(a, b)[:16], np.maximum(a, b)[:16]
    np.testing.assert_array_equal(c, most - least)
    np.testing.assert_array_equal(d, np.maximum(most, 5) + least)


def test_extents_of_tiles():
    """Lines, and tiles of three dimensions that reach over the array's edges."""
    a, line = RNG.integers(0, 99, (5, 9, 20)).astype(I32), RNG.integers(0, 99, 50).astype(I32)

    def kernel(A, B, L, M):
        tile = A.tile((2, 4, 16), at=(4, 6, 8))
        part = tile.load()
        B.tile((2, 4, 16), at=(0, 0, 0)).store(part + 1)
        tile.advance(columns=4)
        B.tile((2, 4, 16), at=(2, 0, 4)).store(tile.load(padding=7))
        row = L.tile((16,), at=(40,))
        M.tile((16,), at=(0,)).store(row.load() * 2)
        row.advance(-32)
        M.tile((16,), at=(42,)).store(row.load())

    b, m = np.zeros((3, 4, 20), I32), np.zeros(50, I32)
    built(kernel, [a, b, line, m])(a, b, line, m)
    padded = np.zeros((6, 10, 28), I32)
    padded[:5, :9, :20] = a
    sevens = np.full((6, 10, 28), 7, I32)
    sevens[:5, :9, :20] = a
    expected = np.zeros_like(b)
    expected[:2, :, :16] = padded[4:6, 6:10, 8:24] + 1
    expected[2:, :, 4:] = sevens[4:5, 6:10, 12:28]
    np.testing.assert_array_equal(b, expected)
    other = np.zeros(50, I32)
    other[:10], other[42:] = line[40:] * 2, line[8:16]
    np.testing.assert_array_equal(m, other)


def test_pointers_of_three_dimensions():
    a = np.arange(200, dtype=I32)

    def kernel(A, B):
        at = xl.arange(4)[:, None, None] * 32 + xl.arange(2)[None, :, None] * 16 + xl.arange(16)
        xl.store(B + at, xl.load(A + at, mask=at < 100, other=-1))

    b = np.zeros(128, I32)
    built(kernel, [a, b])(a, b)
    np.testing.assert_array_equal(b, np.where(np.arange(128) < 100, a[:128], -1))


def test_block_pointers_and_descriptors():
    a = RNG.integers(0, 99, 24 * 40).astype(I32)

    def kernel(A, B, C):
        block = xl.make_block_ptr(A, (24, 40), (40, 1), (16, 32), (16, 16), order=(1, 0))
        xl.store(xl.make_block_ptr(B, (16, 16), (16, 1), (0, 0), (16, 16)), xl.load(block, boundary_check=(0, 1)))
        desc = xl.make_tensor_descriptor(A, shape=[24, 40], strides=[40, 1], block_shape=[8, 16])
        out = xl.make_tensor_descriptor(C, [8, 16], [16, 1], [8, 16])
        out.store([0, 0], desc.load([8, 4]) + 1)

    b, c = np.zeros(256, I32), np.zeros(128, I32)
    built(kernel, [a, b, c])(a, b, c)
    padded = np.zeros((32, 48), I32)
    padded[:24, :40] = a.reshape(24, 40)
    np.testing.assert_array_equal(b.reshape(16, 16), padded[16:, 32:])
    np.testing.assert_array_equal(c.reshape(8, 16), padded[8:16, 4:20] + 1)


# Illegal calls, and the error messages, which are numpy's if numpy has the function.
REFUSED = {
    "axis": (lambda v: v.sum(3), "axis 3 is out of bounds for a value of dimension 2"),
    "axes twice": (lambda v: v.sum((0, 0)), "duplicate value in 'axis'"),
    "permutation": (lambda v: v.permute(0, 0), "repeated axis in transpose"),
    "permutation of another rank": (lambda v: v.permute(0, 1, 2), "axes don't match"),
    "reshape": (lambda v: v.reshape(3, 5), "cannot reshape int32[1, 16] into shape (3, 5)"),
    "permutation and more": (lambda v: v.permute((1, 0), 1), "not (1, 0)"),
    "broadcast to a shape and more": (lambda v: v.broadcast_to((2, 16), 1), "not (2, 16)"),
    "reshape to a shape and more": (lambda v: v.reshape((4, 4), 1), "not (4, 4)"),
    "broadcast": (lambda v: xl.broadcast_to(v, 3, 8), "shape mismatch"),
    "squeeze": (lambda v: xl.squeeze(v, 1), "cannot squeeze axis 1"),
    "empty slice": (lambda v: v[:, 5:5], "a slice of 16 elements by 5:5 is empty"),
    "index": (lambda v: v[3], "index 3 is out of bounds for a dimension of extent 1"),
    "indices": (lambda v: v[0, 0, 0], "too many indices"),
    "concatenation": (lambda v: xl.cat(v, v[:, :3]), "must match exactly, but along dimension 1"),
    "split": (lambda v: xl.split(v), "split needs a last dimension of extent 2"),
    "topk": (lambda v: xl.topk(v, 17), "topk takes 1 to 16 elements"),
    "gather": (lambda v: xl.gather(v, v[:, :3], 0), "cannot take indices"),
    "scan that reduces": (lambda v: xl.associative_scan(v, 1, lambda a, b: a + b.sum(0)), "cannot combine elements"),
    "scan that selects": (lambda v: xl.associative_scan(v, 1, lambda a, b: a + b[:1]), "cannot select elements"),
    "reduction that transposes": (lambda v: xl.reduce(v.reshape(4, 4), 1, lambda a, b: a.T), "not elementwise"),
    "map of a scan": (lambda v: xl.map_elementwise(lambda a: xl.cumsum(a, 1), v), "cannot select elements"),
    "scan of another shape": (
        lambda v: xl.associative_scan(v, 1, lambda a, b: xl.zeros((1, 3), I32)),
        "not elementwise",
    ),
    "reduction of other values": (lambda v: xl.reduce(v, 1, lambda a, b: (a, b)), "must return 1, not 2"),
    "histogram of floats": (lambda v: xl.histogram(v.to(F32), 4), "histogram needs integers"),
    "static assertion": (lambda v: xl.static_assert(v.shape[1] == 3, "three columns"), "three columns"),
    "seed": (lambda v: xl.rand(0.5, v), "a seed is an integer"),
    "umulhi": (lambda v: xl.umulhi(v.to(I8), 3), "umulhi needs integers of 32 or 64 bits"),
    "tile of another rank": (lambda v: xl.shared((4, 16)).tile((2, 2, 2), at=(0, 0)), "does not fit an array of 2"),
    "product of float32": (lambda v: v.to(F32) @ v.to(F32).T, "dot(a, b, input_precision=...) says how"),
    "precision": (lambda v: xl.dot(v.to(F32), v.to(F32).T, input_precision="exact"), "no input_precision 'exact'"),
}


SMALL = np.array([[0, 1, -1, 2, 12, -8, 2**31 - 1, -(2**31)]], I32)
# Functions of libdevice: numbers, the function in float64, and the error in units in the last place of float32.
SIZES = np.array([[-4.5, -1.0, -0.75, -1e-3, -0.0, 0.0, 1e-6, 0.25, 0.5, 0.9, 1.0, 1.5, 2.5, 7.0, 19.5, 60.0]], F32)
PROPER, ABOVE = np.clip(SIZES, -0.99, 0.99), np.abs(SIZES) + F32(1)
LIBDEVICE = {
    **{n: (PROPER, getattr(np, f"arc{n[1:]}"), 4) for n in ("acos", "asin", "atan", "atanh")},
    **{
        n: (SIZES, getattr(np, n), 4)
        for n in ("cbrt", "cosh", "sinh", "expm1", "exp2", "exp", "sin", "cos", "tan", "tanh")
    },
    **{n: (ABOVE, getattr(np, n), 4) for n in ("log10", "log1p", "log", "log2", "sqrt")},
    **{n: (SIZES, getattr(np, n), 0) for n in ("trunc", "rint", "floor", "ceil", "fabs", "isnan", "isinf", "signbit")},
    "asinh": (SIZES, np.arcsinh, 4),
    "acosh": (ABOVE, np.arccosh, 4),
    "erfc": (SIZES, np.vectorize(math.erfc), 6),
    "erf": (np.abs(SIZES) + F32(0.5), np.vectorize(math.erf), 4),
    "rsqrt": (ABOVE, lambda x: 1 / np.sqrt(x), 1),
    "exp10": (PROPER, lambda x: 10**x, 16),
    "nearbyint": (SIZES, np.rint, 0),
    "round": (SIZES, lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), 0),
    "isfinited": (SIZES, np.isfinite, 0),
    "finitef": (SIZES, np.isfinite, 0),
    "saturatef": (SIZES, lambda x: np.clip(x, 0, 1), 0),
    "atan2": (SIZES, lambda x: np.arctan2(x, x[:, ::-1]), 4),
    "copysign": (SIZES, lambda x: np.copysign(x, x[:, ::-1]), 0),
    "fmod": (ABOVE, lambda x: np.fmod(x, x[:, ::-1]), 0),
    "fmin": (SIZES, lambda x: np.fmin(x, x[:, ::-1]), 0),
    "fmax": (SIZES, lambda x: np.fmax(x, x[:, ::-1]), 0),
    "pow": (ABOVE[:, :12], lambda x: x ** x[:, ::-1], 64),
    "popc": (SMALL, np.vectorize(lambda n: (int(n) & 0xFFFFFFFF).bit_count()), 0),
    "clz": (SMALL, np.vectorize(lambda n: 32 - (int(n) & 0xFFFFFFFF).bit_length()), 0),
    "ffs": (SMALL, np.vectorize(lambda n: (int(n) & -int(n)).bit_length()), 0),
    "float2int_rd": (SIZES, np.floor, 0),
    "float2int_rn": (SIZES, np.rint, 0),
}


PAIRED = ("atan2", "copysign", "fmod", "fmin", "fmax", "pow")


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["reference", "both"])
@pytest.mark.parametrize(
    "given", [PROPER, SIZES, ABOVE, ABOVE[:, :12], SMALL], ids=["1", "all", "above", "few", "bits"]
)
def test_libdevice(given, engine):
    names = [name for name, (x, _, _) in LIBDEVICE.items() if x.shape == given.shape and (x == given).all()]
    assert names
    with np.errstate(all="ignore"):
        exact = [LIBDEVICE[name][1](given.astype(np.float64) if given.dtype == F32 else given) for name in names]
    kinds = [
        bool if e.dtype == bool else I32 if given.dtype == I32 or "2int" in n else F32 for n, e in zip(names, exact)
    ]
    wanted = [e.astype(kind) for e, kind in zip(exact, kinds)]

    def functions(x):
        apply = {name: getattr(xl.libdevice, name) for name in names}
        return tuple(f(x, xl.flip(x)) if name in PAIRED else f(x) for name, f in apply.items())

    for name, found, want in zip(names, computed(functions, [given], wanted, engine=engine), wanted):
        bound = LIBDEVICE[name][2] * np.spacing(np.abs(want)) if want.dtype == F32 else 0
        assert (np.abs(found.astype(np.float64) - want) <= bound).all(), f"{name}: {found} instead of {want}"


def test_special_numbers_of_libdevice():
    x = np.array([[np.nan, np.inf, -np.inf, -0.0, 1.0, -2.0]], F32)
    d = xl.libdevice
    check(
        lambda v: (d.isnan(v), d.isinf(v), d.finitef(v), d.signbit(v), d.saturatef(v), d.float_as_int(v)),
        [x],
        (
            np.isnan(x),
            np.isinf(x),
            np.isfinite(x),
            np.signbit(x),
            np.clip(np.nan_to_num(x), 0, 1) + F32(0),
            x.view(I32),
        ),
    )
    for values in (
        np.array([[np.nan, np.inf, -np.inf, -0.0, 65504, -2.0]], np.float16),
        np.array([[0, 1, -1, 65536, 2**31 - 1, -(2**31)]], I32),
        np.array([[0, 1, 127, 128, 254, 255]], U8),
    ):
        check(
            lambda v: (d.isnan(v), d.isinf(v), d.finitef(v), d.signbit(v)),
            [values],
            (np.isnan(values), np.isinf(values), np.isfinite(values), np.signbit(values.astype(np.float64))),
        )


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, message = REFUSED[name]
    with pytest.raises(DiagnosticError) as caught:

        @language.tile_kernel((I32, (1, 16)))
        def kernel(V):
            function(V.tile((1, 16), at=(0, 0)).load())

    first = caught.value.diagnostics[0]
    assert message in first.message
    assert first.position.file == __file__
    assert first.position.line >= function.__code__.co_firstlineno
    assert "^" in str(caught.value)


@pytest.mark.parametrize("values", [(3, 1, 2), ([3, 1, 2],), ((1, 3),), ([3, 3, 1],)])
def test_the_least_and_the_greatest_of_numbers(values):
    """Several ones, or those of a list, as of Python's functions."""
    assert (functions.minimum_of(*values), functions.maximum_of(*values)) == (1, 3)


def test_the_least_of_one_number():
    assert functions.minimum_of([3]) == functions.maximum_of((3,)) == 3
    for function, name in ((functions.minimum_of, "min"), (functions.maximum_of, "max")):
        with pytest.raises(TypeError, match=rf"^{name}\(\) compares several values .* one value have {name}\(\)$"):
            function(3)
