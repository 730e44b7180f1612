"""Quotients, means, random numbers and descriptors of tiles compute the same as numpy."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr

from .computing import check

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.75, 3.0, -7.0, 1e-3, -6e4, np.inf, -np.inf, np.nan]


@xegpu_py.jit
def quotients(X, Y, Q, R, N: Constexpr):
    i = xl.arange(0, N)
    x, y = xl.load(X + i), xl.load(Y + i)
    xl.store(Q + i, x // y)
    xl.store(R + i, x % y)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_quotients_and_remainders_of_floats(dtype):
    """Of all pairs of special numbers, and of random ones."""
    pairs = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    random = np.random.default_rng(2).standard_normal((2, 256 - pairs.shape[1])) * 8
    x, y = np.concatenate([pairs, random], 1).astype(dtype)
    found = np.zeros((2, 256), dtype)
    quotients(x, y, *found, N=256)
    with np.errstate(all="ignore"):
        expected = np.floor_divide(x, y), np.remainder(x, y)
    for actual, wanted in zip(found, expected):
        np.testing.assert_array_equal(actual, wanted)
        number = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(actual[number]), np.signbit(wanted[number]))


@xegpu_py.jit
def statistics(X, Y, Z, W, V):
    x = X.tile((8, 16), at=(0, 0)).load()
    Y.tile((8, 1), at=(0, 0)).store(x.mean(1, keep_dims=True))
    Z.tile((1, 16), at=(0, 0)).store(x.mean(0).reshape((1, 16)))
    W[0, 0] = x.mean()
    if (y := x.max()) > 100:
        y = y + 1
    V[0, 0] = +y


@pytest.mark.parametrize("most", [50, 200])
def test_means_and_assigned_expressions(most):
    x = np.random.default_rng(1).integers(-64, 50, (8, 16)).astype(np.float32)
    x[3, 5] = most
    y, z, w, v = (np.zeros(s, np.float32) for s in ((8, 1), (1, 16), (1, 1), (1, 1)))
    statistics(x, y, z, w, v)
    np.testing.assert_array_equal(y, x.mean(1, keepdims=True))
    np.testing.assert_array_equal(z, x.mean(0, keepdims=True))
    assert w[0, 0] == x.mean() and v[0, 0] == (most + 1 if most > 100 else most)


@xegpu_py.jit
def drawn(U, N, seed):
    i = xl.arange(0, 64)
    uniform, normal = xl.rand4x(seed, i), xl.randn4x(seed, i)
    first, second = xl.rand(seed, i), xl.randn(seed, i)
    for k in xl.static_range(4):
        xl.store(U + k * 64 + i, uniform[k])
        xl.store(N + k * 64 + i, normal[k])
    xl.store(U + 256 + i, first)
    xl.store(N + 256 + i, second)


def test_four_random_numbers_at_a_time():
    """The first ones are those of `rand` and `randn`; normal ones are those of Box and Muller."""
    uniform, normal = np.zeros((5, 64), np.float32), np.zeros((5, 64), np.float32)
    drawn(uniform, normal, 11)
    assert (uniform[0] == uniform[4]).all() and (normal[0] == normal[4]).all()
    assert (uniform >= 0).all() and (uniform < 1).all() and len(np.unique(uniform[:4])) > 250
    for a, b in ((0, 1), (2, 3)):
        radius = np.sqrt(-2 * np.log(np.maximum(uniform[a], 1e-7).astype(np.float64)))
        angle = 2 * np.pi * uniform[b].astype(np.float64)
        np.testing.assert_allclose(normal[a], radius * np.cos(angle), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(normal[b], radius * np.sin(angle), rtol=1e-4, atol=1e-5)


@xegpu_py.jit
def moved(X, Y, rows, columns):
    source = xl.make_tensor_descriptor(X, (rows, columns), (columns, 1), (8, 16))
    target = xl.make_tensor_descriptor(Y, (rows, columns), (columns, 1), (8, 16))
    xl.static_assert(source.dtype == xl.int32 and len(source.shape) == len(source.strides) == 2)
    x = xl.load_tensor_descriptor(source, (4, 8))
    target.atomic_add((4, 8), x * 2)
    xl.store_tensor_descriptor(target, (0, 0), source.load((0, 0)) + source.shape[1] + source.strides[0])


def test_functions_of_descriptors():
    """Blocks that reach over the end are cut there."""
    x, y = (np.random.default_rng(n).integers(-99, 99, (10, 20)).astype(np.int32) for n in (0, 1))
    expected = y.copy()
    expected[4:, 8:] += 2 * x[4:, 8:]
    expected[:8, :16] = x[:8, :16] + 40
    moved(x, y, 10, 20)
    np.testing.assert_array_equal(y, expected)


@xegpu_py.jit
def viewed(X, Y, Z, first, row):
    view = xl.make_tensor_descriptor(X + first, shape=[4, 8], strides=[12, 1], block_shape=[4, 8]).array
    Y.tile((8, 4), at=(0, 0)).store(view.T.tile((8, 4), at=(0, 0)).load())
    Z[0, 0] = view[row, 2] + view[3, row]
    Z[0, 1] = view.view((24,), (2,))[row + 3]
    view[row, 4] = -1.0
    view[0, row] = view[0, row] + 1000


@pytest.mark.parametrize("engine", ["both", "eager"])
def test_elements_of_what_follows_a_pointer(engine):
    """They count from the element to which the pointer points, as those of the view's transpose do."""
    x = np.arange(96, dtype=np.float32).reshape(8, 12)
    y, z, follow = np.zeros((8, 4), np.float32), np.zeros((1, 2), np.float32), x.reshape(-1).copy()[17:]
    viewed.with_options(engine=engine)(x, y, z, 17, 1)
    np.testing.assert_array_equal(y, follow[:48].reshape(4, 12)[:, :8].T)
    assert z.tolist() == [[follow[14] + follow[37], follow[8]]]
    follow[16], follow[1] = -1, follow[1] + 1000
    np.testing.assert_array_equal(x.reshape(-1), [*range(17), *follow])


@xegpu_py.jit
def summed_matrices(X, Y, count, is_copied: Constexpr):
    block = xl.make_block_ptr(X + 8, (4, 8, 24), (256, 32, 1), (1, 0, 0), (2, 8, 8))
    total = xl.zeros((2, 8, 8), xl.float32)
    for _ in range(count):
        total += block.load()
        block.prefetch()
        block.advance(0, 8)
    block = block.copy() if is_copied else block
    block.advance(0, -8)
    xl.make_block_ptr(Y, (2, 8, 8), (64, 8, 1), (0, 0, 0), (2, 8, 8)).store(total - block.load())


@pytest.mark.parametrize("is_copied", [False, True])
def test_tiles_of_several_matrices_move(is_copied):
    x, y = np.random.default_rng(5).integers(-99, 99, (4, 8, 32)).astype(np.float32), np.zeros((2, 8, 8), np.float32)
    summed_matrices(x.reshape(-1), y.reshape(-1), 3, is_copied)
    parts = x[1:3, :, 8:].reshape(2, 8, 3, 8)
    np.testing.assert_array_equal(y, parts[:, :, :2].sum(2))


WHOLE, REALS = np.arange(-8, 8, dtype=np.int32), np.linspace(-3, 3, 16)
BYTES, WIDE = REALS.astype(ml_dtypes.float8_e5m2), WHOLE.astype(np.int64) * 123456789123
SINGLE = REALS.astype(np.float32)

# A function of a line, the line, and numpy's results.
FUNCTIONS = {
    "quotients of doubles": (lambda v: (v // 0.3, v % 0.3), REALS, (REALS // 0.3, REALS % 0.3)),
    "quotients of a number": (lambda v: (2 // v, 2.5 % v), REALS, (2 // REALS, 2.5 % REALS)),
    "quotients of bytes": (
        lambda v: (v // 0.75, v % 0.75),
        BYTES,
        tuple(f(BYTES.astype(np.float32), np.float32(0.75)).astype(BYTES.dtype) for f in (np.floor_divide, np.mod)),
    ),
    "powers of a number": (lambda v: 2.0**v, WHOLE.astype(np.float32), np.float32(2) ** WHOLE.astype(np.float32)),
    "a product of truth values": (
        lambda v: (v > 0) * (v < 5) + (v > 2),
        WHOLE,
        (((WHOLE > 0) & (WHOLE < 5)) + 1 * (WHOLE > 2)).astype(np.int32),
    ),
    "truth values and a constant": (
        lambda v: (xl.maximum(v > 0, False), xl.minimum(v > 0, True)),
        WHOLE,
        (WHOLE > 0,) * 2,
    ),
    "truth values in order": (
        lambda v: (xl.sort((v & 1) != 0), xl.sort(v > 3, descending=True)),
        WHOLE,
        (np.sort(WHOLE % 2 != 0), np.sort(WHOLE > 3)[::-1]),
    ),
    "truth values as indices": (lambda v: (v > 0).to(xl.index).to(xl.int64), WHOLE, (WHOLE > 0).astype(np.int64)),
    "indices as truth values": (lambda v: v.to(xl.index).to(xl.bool_), WHOLE, WHOLE != 0),
    "Triton's names": (
        lambda v: (xl.add(v, 3), xl.sub(v, 2 * v), xl.mul(v, v)),
        WHOLE,
        (WHOLE + 3, -WHOLE, WHOLE * WHOLE),
    ),
    "between 16 bits": (
        lambda v: v.to(xl.bfloat16).to(xl.float16),
        SINGLE,
        SINGLE.astype(ml_dtypes.bfloat16).astype(np.float16),
    ),
    "upper halves": (
        lambda v: xl.umulhi(v, v * 7),
        WIDE,
        np.array([(int(v) % 2**64) * (int(v) * 7 % 2**64) >> 64 for v in WIDE], np.uint64).astype(np.int64),
    ),
    "parity of truth values": (lambda v: (v > 1).xor_sum(), WHOLE, np.bool_((WHOLE > 1).sum() % 2)),
    "an unsigned number in fewer bits": (
        lambda v: v.to(xl.int8, saturate=True),
        WHOLE.astype(np.uint32) * 100,
        np.minimum(WHOLE.astype(np.uint32) * 100, 127).astype(np.int8),
    ),
    "elements of the middle dimension": (
        lambda v: xl.gather(v.reshape((2, 4, 2)), v.reshape((2, 4, 2)) & 3, 1),
        WHOLE,
        np.take_along_axis(WHOLE.reshape(2, 4, 2), WHOLE.reshape(2, 4, 2) & 3, 1),
    ),
    "a function of pairs of all": (
        lambda v: xl.reduce((v, v * 2), None, lambda p, q, r, s: (p + r, q * s + 1)),
        WHOLE[:4],
        (np.int32(-26), np.int32((16 * 14 + 1) * (12 * 10 + 1) + 1)),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_lines(name):
    function, line, expected = FUNCTIONS[name]
    check(function, [line], tuple(map(np.asarray, expected)) if isinstance(expected, tuple) else expected)


@xegpu_py.jit
def masked(X, Y, rows, columns, B: Constexpr):
    r, c = xl.arange(0, 16), xl.arange(0, B)
    places = r[:, None] * 64 + c[None, :]
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    x = xl.load(X + places, mask=mask, other=5.0)
    xl.store(Y + places, x)
    xl.store(Y + places + 1024, x + 1, mask=mask)


@pytest.mark.parametrize(("rows", "columns"), [(-5, 7), (3, -4), (-16, -64), (0, 5), (5, 0), (9, 40), (20, 70)])
def test_masks_of_numbers_that_may_be_negative(rows, columns):
    """A matrix of fewer than no rows or columns has no elements."""
    x, y = np.arange(1024, dtype=np.float32).reshape(16, 64), np.zeros((2, 16, 64), np.float32)
    masked(x, y.reshape(-1), rows, columns, B=64)
    r, c = np.indices(x.shape)
    mask = (r < rows) & (c < columns)
    np.testing.assert_array_equal(y[0], np.where(mask, x, 5))
    np.testing.assert_array_equal(y[1], np.where(mask, x + 1, 0))


@xegpu_py.jit
def from_the_first_column(X, Y, moved, B: Constexpr):
    r, c = xl.arange(0, 16), xl.arange(0, B) + moved * 16
    places = r[:, None] * 64 + c[None, :]
    mask = c[None, :] >= 0
    xl.store(Y + places, xl.load(X + places, mask=mask, other=0.0) + 1, mask=mask)


@pytest.mark.parametrize("moved", [-1, 0, 1, 2])
def test_masks_that_are_bounded_below_alone(moved):
    """No element after the first column is left out, wherever the block begins."""
    x, y = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    from_the_first_column(x, y, moved, B=32)
    column = np.arange(1024) % 64
    inside = (column >= 16 * moved) & (column < 16 * moved + 32)
    np.testing.assert_array_equal(y, np.where(inside, x + 1, 0))


@xegpu_py.jit
def of_known_rows(X, Y, pitch, ROWS: Constexpr):
    rows, columns = xl.arange(0, 16)[:, None], xl.arange(0, 16)[None, :]
    places, mask = rows * pitch + columns, rows < ROWS
    xl.store(Y + places, xl.load(X + places, mask=mask, other=5) + 1, mask=mask)


@pytest.mark.parametrize("rows", [-1, 5, 16])
@pytest.mark.parametrize("pitch", [33, 64])
def test_masks_of_known_rows(rows, pitch):
    """Messages cannot address rows of 33 elements: calls see it though the number of rows is in the matrix's type."""
    x, y = np.arange(1024, dtype=np.int32), np.zeros(1024, np.int32)
    of_known_rows(x, y, pitch, ROWS=rows)
    wanted = np.zeros(1024, np.int32)
    for row in range(rows):
        wanted[row * pitch : row * pitch + 16] = x[row * pitch : row * pitch + 16] + 1
    np.testing.assert_array_equal(y, wanted)


@xegpu_py.jit
def from_a_row_of_the_program(X, Y, first):
    rows, columns = xl.arange(0, 16)[:, None], xl.arange(0, 16)[None, :]
    places, mask = rows * 16 + columns, rows >= xl.program_id(0) * first
    x = xl.load(X + places, mask=mask, other=5)
    xl.store(Y + xl.program_id(0) * 256 + places, x)


@pytest.mark.parametrize("first", [0, 3, 16, 40])
def test_masks_by_a_row_of_the_program(first):
    """Programs whose first row lies behind the block load nothing; messages have surfaces of at least one row."""
    x, y = np.arange(256, dtype=np.int32).reshape(16, 16), np.zeros((3, 16, 16), np.int32)
    from_a_row_of_the_program[3](x.reshape(-1), y.reshape(-1), first)
    for program in range(3):
        np.testing.assert_array_equal(y[program], np.where(np.arange(16)[:, None] >= program * first, x, 5))


def product_by_masks(X, Y, Z, rows, columns, depth, start_row, first):
    m, n, k = xl.arange(0, 16) + (xl.program_id(0) + start_row) * 16, xl.arange(0, 16), xl.arange(0, 32)
    total = xl.zeros((16, 16), xl.float32)
    for step in range(0, 64, 32):
        deep = step + k
        x_mask = (m[:, None] < rows) & (deep[None, :] < depth)
        y_mask = (deep[:, None] < depth) & (n[None, :] < columns)
        x = xl.load(X + (m[:, None] + first) * 64 + deep[None, :], mask=x_mask, other=0)
        total += xl.dot(x, xl.load(Y + deep[:, None] * 16 + n[None, :], mask=y_mask, other=0))
    xl.store(Z + m[:, None] * 16 + n[None, :], total, mask=(m[:, None] < rows) & (n[None, :] < columns))


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_bounds_of_masks_beyond_the_arrays(engine):
    """The bounds of masks may be greater than the arrays: only what a program accesses of them counts."""
    kernel = xegpu_py.jit(engine=engine)(product_by_masks)
    random = np.random.default_rng(4)
    x, y = (random.integers(-3, 4, shape).astype(np.float16) for shape in ((32, 64), (64, 16)))
    for rows, columns, depth in ((32, 16, 64), (1000, 16, 64), (40, 900, 80), (7, 16, 200), (0, 100, 100)):
        z, wanted = np.zeros((32, 16), np.float32), np.zeros((32, 16), np.float32)
        kernel[2](x.reshape(-1), y.reshape(-1), z.reshape(-1), rows, columns, depth, 0, 0)
        wanted[:rows, :columns] = x[:rows, :depth].astype(np.float32) @ y[:depth, :columns].astype(np.float32)
        np.testing.assert_array_equal(z, wanted)
    z = np.zeros(512, np.float32)
    with pytest.raises(
        xegpu_py.DiagnosticError, match=r"reads a block of 1984 bytes at .*, reaching 960 bytes over the end of 'X'"
    ):
        kernel[2](x.reshape(-1), y.reshape(-1), z, 40, 16, 64, 0, 8)
    kernel[2](x.reshape(-1), y.reshape(-1), z, 24, 16, 64, 0, 8)
    np.testing.assert_array_equal(z.reshape(32, 16)[:24], x[8:].astype(np.float32) @ y.astype(np.float32))
    # The matrix, whose first row no program accesses, begins before the array.
    z = np.zeros(1024, np.float32)
    kernel[2](x.reshape(-1), y.reshape(-1), z, 40, 16, 64, 1, -16)
    wanted = np.zeros((64, 16), np.float32)
    wanted[16:40] = x[:24].astype(np.float32) @ y.astype(np.float32)
    np.testing.assert_array_equal(z.reshape(64, 16), wanted)
