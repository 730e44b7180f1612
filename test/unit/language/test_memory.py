"""What kernels load and store: conversions on the way, pointers, and lines of any length."""

import random

import ml_dtypes
import numpy as np
import pytest
from effort import examples

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr, DiagnosticError, cdiv

F16, F32, BF16, F8 = np.float16, np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2
I8, I32, U8 = np.int8, np.int32, np.uint8
ENGINES = ["eager", "both"]


def ways_to_store(X, A, B, C, D, E):
    """The same numbers through a tile, pointers, single elements, and two atomic ops."""
    at = xl.arange(0, 16)
    x = X.tile((16,), at=(0,)).load()
    A.tile((16,), at=(0,)).store(x)
    xl.store(B + at, x, mask=at < 15)
    B[15] = X[15]
    xl.atomic_xchg(C + at, x)
    xl.atomic_add(D + at, x)
    E.tile((16,), at=(0,)).store(at)


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("source, to", [(F32, F16), (F32, BF16), (F32, I32), (I32, F32), (np.int64, I32)])
def test_what_is_stored_is_converted(source, to, engine):
    """Values are converted as in numpy's assignments and Triton's stores."""
    x = (np.arange(16) * 77.7 - 600).astype(source)
    out = [np.zeros(16, to) for _ in range(5)]
    xegpu_py.jit(ways_to_store, engine=engine)(x, *out)
    for found in out[:4]:
        np.testing.assert_array_equal(found, x.astype(to))
    np.testing.assert_array_equal(out[4], np.arange(16).astype(to))


@pytest.mark.parametrize("number, dtype", [(0.5, I32), (2**31, I32), (-1, U8), (300, I8), (1e39, F32), (70000.0, F16)])
def test_numbers_must_fit(number, dtype):
    """Numbers that are stored, padding, and numbers where a mask is not set."""

    def stored(X):
        X.tile((16,), at=(0,)).store(number)

    def assigned(X):
        X[0] = number

    def padded(X):
        X.tile((16,), at=(0,)).load(padding=number)

    def masked(X):
        xl.load(X + xl.arange(16), mask=xl.arange(16) < 3, other=number)

    for kernel in (stored, assigned, padded, masked):
        with pytest.raises(DiagnosticError, match=r"test_memory.py:\d+:\d+: error: .* does not fit"):
            xegpu_py.jit(kernel).compile(np.zeros(16, dtype))


@pytest.mark.parametrize("engine", ENGINES)
def test_pointers_are_indexed_and_moved(engine):
    """The padding of a masked load may be a value."""

    @xegpu_py.jit(engine=engine)
    def copy(X, Y, n, m):
        row, column = xl.arange(16), xl.arange(16)
        source, target = (X + row * m)[:, None] + column[None, :], Y + (row[:, None] * m + column) + 16
        for k in range(0, m, 16):
            inside = (row[:, None] < n) & (k + column[None, :] < m)
            x = xl.load(source, mask=inside & (row[:, None] != 3), other=-row[:, None])
            xl.store(target - 16, x, mask=inside)
            source += 16
            target = target + 16

    x = np.random.default_rng(0).standard_normal((13, 45)).astype(F32)
    y, expected = np.zeros_like(x), x.copy()
    expected[3] = -3
    copy(x, y, 13, 45)
    np.testing.assert_array_equal(y, expected)


@xegpu_py.jit(engine="both")
def copy_line(X, Y, B: Constexpr):
    i = xl.program_id(0) * B
    Y.tile((B,), at=(i,)).store(X.tile((B,), at=(i,)).load())


@pytest.mark.each_value
@pytest.mark.parametrize("n", [1, 5, 16, 19, 33, 100])
@pytest.mark.parametrize("dtype", [F32, U8])
def test_lines_of_any_length(n, dtype):
    """Also lines that 2D block messages cannot address."""
    x = (np.arange(n) + 1).astype(dtype)
    y = np.zeros_like(x)
    copy_line[cdiv(n, 16)](x, y, B=16)
    np.testing.assert_array_equal(x, y)


def test_a_line_beside_a_matrix_that_is_not_aligned():
    @xegpu_py.jit(engine="both")
    def sums(X, Y):
        Y.tile((8,), at=(0,)).store(X.tile((8, 16), at=(0, 0)).load().sum(1, keep_dims=False))

    x, y = np.arange(105, dtype=F32).reshape(7, 15), np.zeros(7, F32)
    sums(x, y)
    np.testing.assert_array_equal(y, x.sum(1))


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_of_bools(engine):
    """A byte each, in memory of all kinds: through tiles, pointers, single elements and shared memory."""

    @xegpu_py.jit(engine=engine)
    def masks(X, M, A, B, n):
        i, held = xl.arange(16), xl.shared(16, bool)
        m = M.tile((4, 16), at=(0, 0)).load(padding=True)
        A.tile((4, 16), at=(0, 0)).store(m & (X.tile((4, 16), at=(0, 0)).load() > 0))
        xl.store(held + i, xl.load(M + i, mask=i < 3, other=True))
        xl.barrier()
        xl.store(B + i, xl.load(held + i), mask=i < n)
        B[0] = ~M[1, 2]

    rng = np.random.default_rng(0)
    x, m = rng.standard_normal((3, 13)).astype(F32), rng.integers(0, 2, (3, 13)).astype(bool)
    a, b = np.zeros_like(m), np.zeros(9, bool)
    masks(x, m, a, b, 9)
    np.testing.assert_array_equal(a, m & (x > 0))
    assert b.tolist() == [not m[1, 2], *m[0, 1:3], *[True] * 6]


MISTAKES = {
    "an extent is an integer that is known at compile time, not int32": lambda X, n: xl.zeros((8, n)),
    "an extent is an integer that is known at compile time, not 8.0": lambda X, n: X.tile((8.0,), at=(0,)),
    "a bound of arange is an integer .* not int32": lambda X, n: xl.arange(0, n),
    "a shape has positive extents": lambda X, n: xl.shared(0),
    r"an offset must be an integer, but got slice\(0, 3, None\)": lambda X, n: X[0:3],
    "an offset must be an integer, but got float32": lambda X, n: X[X[0]],
    r"pointers are counted in integers, not in float32\[8\]": lambda X, n: X + xl.zeros(8),
    "tiles and pointers are loaded and stored, not <value": lambda X, n: xl.load(X[0]),
    "the padding of a tile is a number": lambda X, n: X.tile(8, at=0).load(padding=X[0]),
    "'//' by zero": lambda X, n: n // 0,
    "dot multiplies matrices": lambda X, n: xl.dot(X[0], X[1]),
    r"dot cannot multiply float32\[8, 16\] by float32\[8, 16\]": lambda X, n: xl.dot(
        xl.zeros((8, 16)), xl.zeros((8, 16))
    ),
    "print.. shows nothing while a kernel runs": lambda X, n: print(n),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes(message):
    wrong = MISTAKES[message]

    def kernel(X, n):
        wrong(X, n)

    with pytest.raises(DiagnosticError, match=rf"test_memory.py:\d+:\d+: error: {message}"):
        xegpu_py.jit(kernel).compile(np.zeros(16, F32), 7)


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_atomic_updates_of_tiles_of_three_dimensions(engine):
    """Out-of-bounds tiles are not updated, and what they held before is 0."""

    @xegpu_py.jit(engine=engine)
    def kernel(X, V, OLD, SEEN, b):
        tile = X.tile((3, 8, 16), at=(b, 0, 0))
        OLD.tile((3, 8, 16), at=(0, 0, 0)).store(xl.atomic_add(tile, V.tile((3, 8, 16), at=(0, 0, 0)).load()))
        xl.atomic_max(tile, 4)
        SEEN.tile((3, 8, 16), at=(0, 0, 0)).store(xl.atomic_cas(tile, 4, 9))

    v = np.arange(3 * 128, dtype=np.int32).reshape(3, 8, 16) % 3
    for b in (0, 2):
        x = np.arange(4 * 128, dtype=np.int32).reshape(4, 8, 16) % 7
        old, seen, given, inside = np.ones_like(v), np.ones_like(v), x.copy(), min(3, 4 - b)
        kernel(x, v, old, seen, b)
        most = np.maximum(given[b : b + 3] + v[:inside], 4)
        np.testing.assert_array_equal(x, np.concatenate([given[:b], np.where(most == 4, 9, most), given[b + 3 :]]))
        np.testing.assert_array_equal(old, np.concatenate([given[b : b + 3], np.zeros_like(v)[inside:]]))
        np.testing.assert_array_equal(seen, np.concatenate([most, np.zeros_like(v)[inside:]]))


@xegpu_py.jit
def chosen(A, B, OUT, flag, OUTER: Constexpr):
    i = xl.arange(0, 64)
    if flag > 0:
        p = A if OUTER else A + i
        OUT[64] = 1.0
    else:
        p = B if OUTER else B + i
        OUT[64] = 2.0
    if OUTER:
        xl.store(OUT + i, p.tile((64,), at=(0,)).load() + xl.load(p + i, mask=i < p.shape[0]))
    else:
        xl.store(OUT + i, xl.load(p) * 2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("outer", [False, True])
def test_branches_choose_arrays(outer, engine):
    a, b = np.arange(64, dtype=F32), np.arange(100, dtype=F32) * 3
    for flag, found in ((1, a), (-1, b)):
        out = np.zeros(65, F32)
        chosen.with_options(engine=engine)(a, b, out, flag, OUTER=outer)
        np.testing.assert_array_equal(out, [*(found[:64] * 2), 1 if flag > 0 else 2])


@xegpu_py.jit
def through_table(TABLE, X, n):
    for j in range(n):
        i = xl.arange(0, 256)
        p = xl.load(TABLE + j).to(xl.pointer_type(xl.float32))
        xl.store(p + i + 1, xl.load(p + i) + xl.load(X + i))


@pytest.mark.parametrize(
    ("engine", "count", "check"), [("both", 1, "races"), ("both", 4, "races"), ("eager", 1, ()), ("reference", 4, ())]
)
def test_tables_of_pointers(engine, count, check):
    """Subgroups wait for each other, since any array may be at an address."""
    x, (a, b) = np.arange(256, dtype=F32), (np.zeros((257, 1), F32) for _ in range(2))
    table = xegpu_py.PointerTable([a, b, a])
    kernel = through_table.with_options(engine=engine, check=check)
    kernel[1](table, x, 3, num_warps=count)
    np.testing.assert_array_equal(b[:, 0], [0, *x])
    np.testing.assert_array_equal(a[:, 0], [0, 0, *(x[:-1] + x[1:])])


@xegpu_py.jit
def chosen_places(A, B, OUT, n, N: Constexpr):
    i = xl.arange(0, N)
    mirrored = xl.where(i % 2 == 0, A + i, A + (N - 1 - i))
    whole, later = xl.where(n > 3, A, B) + i, xl.where(n > 3, A + 1, B + 2) + i
    xl.store(OUT + i, xl.load(mirrored) + 100 * xl.load(whole) + 10000 * xl.load(later, mask=i < N - 2))


@pytest.mark.parametrize("engine", ENGINES)
def test_where_chooses_pointers(engine):
    a, i = np.arange(64, dtype=I32), np.arange(64)
    b, out = a + 64, np.zeros_like(a)
    for n, found, more in ((2, b, 2), (5, a, 1)):
        chosen_places.with_options(engine=engine)(a, b, out, n, N=64)
        later = np.where(i < 62, found[np.minimum(i + more, 63)], 0)
        np.testing.assert_array_equal(out, np.where(i % 2 == 0, a, a[63 - i]) + 100 * found + 10000 * later)


def of_two_arrays(A, B, OUT):
    i = xl.arange(0, 64)
    xl.store(OUT + i, xl.load(xl.where(i > 3, A + i, B + i)))


def with_a_number(A, B, OUT):
    i = xl.arange(0, 64)
    xl.store(OUT + i, xl.load(xl.where(i > 3, A + i, i)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kernel", "message"),
    [(of_two_arrays, "pointers to two arrays by one condition"), (with_a_number, "two pointers or between two values")],
)
def test_where_refuses_other_pointers(kernel, message, engine):
    a = np.zeros(64, I32)
    with pytest.raises((TypeError, DiagnosticError), match=message):
        xegpu_py.jit(kernel, engine=engine)(a, a + 1, np.zeros_like(a))


@xegpu_py.jit
def steps_of_a_matrix(
    A, C, K, N, stride, first, TRANSPOSED: Constexpr, STORES: Constexpr, STEPS: Constexpr, B: Constexpr
):
    """Copy steps along the contiguous rows of a matrix, of which TRANSPOSED tiles have columns, from A to C or back."""
    k, n = xl.arange(0, B), xl.arange(0, B) + first
    along, across = (k[:, None], n[None, :]) if TRANSPOSED else (k[None, :], n[:, None])
    pointers = A + along + across * stride
    out = C + xl.arange(0, B)[:, None] * B + xl.arange(0, B)[None, :]
    for step in range(STEPS):
        mask = (across < N) & (along + step * B < K)
        if STORES:
            xl.store(pointers, xl.load(out), mask=mask)
        else:
            xl.store(out, xl.load(pointers, mask=mask, other=0))
        pointers += B
        out += B * B


def check_steps_of_a_matrix(dtype, K, N, stride, first, transposed, stores, steps, block):
    """The launch of this call, which gives what numpy gives."""
    a = (np.arange((N + first) * stride + steps * block) % 50).astype(dtype)
    out = (np.arange(steps * block * block) % 37).astype(dtype).reshape(steps, block, block)
    parts, expected, changed = out.swapaxes(1, 2) if transposed else out, out.copy(), a.copy()
    wanted = expected.swapaxes(1, 2) if transposed else expected
    for step, n, k in np.ndindex(parts.shape):
        at, inside = (n + first) * stride + step * block + k, step * block + k < K and n + first < N
        if stores and inside:
            changed[at] = parts[step, n, k]
        elif not stores:
            wanted[step, n, k] = a[at] if inside else 0
    how = {"TRANSPOSED": transposed, "STORES": stores, "STEPS": steps, "B": block}
    steps_of_a_matrix.with_options(engine="both")[1](a, out.reshape(-1), K, N, stride, first, **how)
    np.testing.assert_array_equal(a, changed)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.each_value
@pytest.mark.parametrize(
    "dtype, K, N, stride",
    [(F16, 16, 16, 64), (F16, 16, 16, 16), (F32, 8, 16, 64), (I8, 16, 16, 64), (F16, 64, 2, 65), (F16, 3, 16, 64)],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_matrices_by_pointers_of_any_stride(dtype, K, N, stride, transposed):
    """Also with rows and strides that 2D block messages do not take."""
    check_steps_of_a_matrix(dtype, K, N, stride, 0, transposed, False, 2, 16)


def test_columns_by_pointers_that_messages_address():
    out, how = np.zeros(256, F16), {"TRANSPOSED": True, "STORES": False, "STEPS": 1, "B": 16}
    for a, is_message in ((np.zeros(64 * 16, F16), True), (np.zeros(65 * 16, F16), False)):
        numbers = (64, 16, a.size // 16, 0)
        kernel = steps_of_a_matrix.compile(a, out, *numbers, **how)
        chosen = kernel.version_for([a, out, *numbers])
        assert ("lsc_load_block2d" in chosen.asm) == is_message


@pytest.mark.parametrize("seed", range(examples(16)))
def test_random_matrices_by_pointers(seed):
    r = random.Random(seed)
    K, N, block = r.choice([1, 3, 7, 16, 31, 48, 64]), r.choice([1, 2, 5, 16, 17, 32]), r.choice([8, 16, 32])
    stride = max(K, r.choice([K, K + 1, 52, 64, 65]))
    dtype, first = r.choice([F16, F32, I8, np.float64]), r.choice([0, 0, 1, block])
    check_steps_of_a_matrix(dtype, K, N, stride, first, r.random() < 0.7, r.random() < 0.3, r.randint(1, 3), block)
