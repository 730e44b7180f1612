"""Kernels without maps: their tiles are divided among subgroups, and pointers become tiles where they form blocks."""

import os
import warnings

import ml_dtypes
import numpy as np
import pytest
from effort import some

import xegpu_py
import xegpu_py.language as xl
from xegpu_py.language import Constexpr
from xegpu_py.tiles import scans

COUNTS = (None, 1, 2, 4, 8)


def launch(kernel, grid, *arguments, count=None, **named):
    """Launch a kernel with both engines and the check of races, as `num_warps` subgroups."""
    hints = {} if count is None else {"num_warps": count}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel.with_options(engine="both", check="races", cache="off")[grid](*arguments, **named, **hints)


def messages(kernel, *arguments, **named):
    """The names of the messages of a kernel's program."""
    return {w for line in kernel.compile(*arguments, **named).asm.splitlines() for w in line.split() if w[:4] == "lsc_"}


@xegpu_py.jit
def add(X, Y, Z, n, BLOCK: Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    mask = i < n
    xl.store(Z + i, xl.load(X + i, mask=mask) + xl.load(Y + i, mask=mask), mask=mask)


@pytest.mark.parametrize("count", COUNTS)
def test_addition(count):
    x = np.arange(1000, dtype=np.int32)
    z = np.full(1024, -1, np.int32)
    launch(add, 4, x, x[::-1].copy(), z[:1000], 1000, BLOCK=256, count=count)
    np.testing.assert_array_equal(z, [999] * 1000 + [-1] * 24)
    if count is None:
        assert messages(add, x, x, x, 1000, BLOCK=256) == {"lsc_load_block2d.ugm", "lsc_store_block2d.ugm"}


@xegpu_py.jit
def gemm(A, B, C, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    rows, columns = xl.program_id(0) * BM + xl.arange(0, BM), xl.program_id(1) * BN + xl.arange(0, BN)
    k = xl.arange(0, BK)
    a = A + rows[:, None] * sam + k[None, :] * sak
    b = B + k[:, None] * sbk + columns[None, :] * sbn
    acc = xl.zeros((BM, BN), dtype=xl.int32)
    for i in range(xl.cdiv(K, BK)):
        inside = k < K - i * BK
        left = xl.load(a, mask=(rows[:, None] < M) & inside[None, :], other=0)
        right = xl.load(b, mask=inside[:, None] & (columns[None, :] < N), other=0)
        acc += xl.dot(left, right)
        a += BK * sak
        b += BK * sbk
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    xl.store(C + rows[:, None] * scm + columns[None, :] * scn, acc, mask=mask)


@pytest.mark.each_value
@pytest.mark.parametrize("count", [None, 1, 4])
@pytest.mark.parametrize(
    "m, n, k, transposed", [(64, 64, 64, False), (52, 60, 72, False), (64, 64, 64, True), (33, 17, 21, False)]
)
def test_product(m, n, k, transposed, count):
    rng = np.random.default_rng(1)
    a = rng.integers(-128, 128, (m, k), np.int8)
    b = rng.integers(-128, 128, (k, n), np.int8)
    stored = np.ascontiguousarray(b.T) if transposed else b
    steps = (1, k) if transposed else (n, 1)
    c = np.zeros((m, n), np.int32)
    arguments = (a, stored, c, m, n, k, k, 1, *steps, n, 1)
    launch(gemm, (2, 2), *arguments, BM=32, BN=32, BK=32, count=count)
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b)
    if m == 64 and count is None:
        assert messages(gemm, *arguments, BM=32, BN=32, BK=32) == {"lsc_load_block2d.ugm", "lsc_store_block2d.ugm"}


@xegpu_py.jit
def shifted(X, Y, n, stride, ROWS: Constexpr, SIZE: Constexpr, SHIFT: Constexpr):
    """Each row, shifted: the elements left of a row are those of the row before it."""
    for row in range(ROWS):
        j = xl.arange(0, SIZE)
        value = xl.load(X + (row + 1) * stride + j + SHIFT, mask=j + SHIFT < n, other=7)
        xl.store(Y + row * stride + j, value, mask=j < n)


@pytest.mark.parametrize("shift", [-3, 0, 1, 16])
def test_masks_bound_one_side(shift):
    x = np.arange(3 * 64, dtype=np.float32)
    y = np.zeros(3 * 64, np.float32)
    launch(shifted, 1, x, y, 60, 64, ROWS=2, SIZE=64, SHIFT=shift, count=2)
    wanted = np.zeros((3, 64), np.float32)
    j = np.arange(60)
    for row in range(2):
        wanted[row, :60] = np.where(j + shift < 60, np.take(x, (row + 1) * 64 + j + shift, mode="clip"), 7)
    np.testing.assert_array_equal(y.reshape(3, 64), wanted)


@xegpu_py.jit
def rolled(X, Y, M, stride, ROWS: Constexpr, COLUMNS: Constexpr):
    """The rows of a block modulo their number, as in Triton's products."""
    rows = (xl.program_id(0) * ROWS + xl.arange(0, ROWS)) % M
    columns = xl.arange(0, COLUMNS)
    x = xl.load(X + rows[:, None] * stride + columns[None, :])
    out = xl.program_id(0) * ROWS + xl.arange(0, ROWS)
    xl.store(Y + out[:, None] * COLUMNS + columns[None, :], x)


@pytest.mark.parametrize("rows", [32, 16, 24, 8, 50])
def test_positions_modulo_a_number(rows):
    """A number that is not a multiple of the block gives another version, in which elements are gathered."""
    x = np.arange(rows * 32, dtype=np.int32).reshape(rows, 32)
    y = np.zeros((80, 32), np.int32)
    kernel = rolled.with_options(engine="both", cache="off")
    kernel[5](x, y, rows, 32, ROWS=16, COLUMNS=32)
    np.testing.assert_array_equal(y, x[np.arange(80) % rows])
    compiled = kernel.compile(x, y, rows, 32, ROWS=16, COLUMNS=32)
    assert len(compiled.executable.multiples) == 1
    version = compiled.version_for((x, y, rows, 32), 5)
    assert (version is compiled) == (rows % 16 == 0)
    assert ("lsc_load.ugm" in version.asm) == (rows % 16 != 0)


@xegpu_py.jit
def softmax(X, Y, stride, columns, SIZE: Constexpr):
    row = xl.program_id(0)
    j = xl.arange(0, SIZE)
    x = xl.load(X + row * stride + j, mask=j < columns, other=-float("inf"))
    e = xl.exp(x - xl.max(x, axis=0))
    xl.store(Y + row * stride + j, e / xl.sum(e, axis=0), mask=j < columns)


@pytest.mark.each_value
@pytest.mark.parametrize("columns, stride", [(500, 512), (256, 256), (99, 101)])
@pytest.mark.parametrize("count", [None, 4])
def test_rows(columns, stride, count):
    x = np.random.default_rng(0).standard_normal((3, stride)).astype(np.float32)
    y = np.zeros_like(x)
    launch(softmax, 3, x, y, stride, columns, SIZE=512, count=count)
    e = np.exp(x[:, :columns] - x[:, :columns].max(1, keepdims=True))
    np.testing.assert_allclose(y[:, :columns], e / e.sum(1, keepdims=True), rtol=1e-5)
    assert (y[:, columns:] == 0).all()


@xegpu_py.jit
def moved(X, n, SIZE: Constexpr):
    """Writes what other subgroups read, and reads what others have written."""
    i = xl.arange(0, SIZE)
    for k in range(3):
        value = xl.load(X + i, mask=i < n)
        xl.store(X + i + 1, value + k, mask=i + 1 < n)


@pytest.mark.parametrize("count", COUNTS)
def test_subgroups_wait_for_each_other(count):
    x = np.arange(256, dtype=np.int32)
    wanted = x.copy()
    for k in range(3):
        wanted[1:] = wanted[:-1] + k
    launch(moved, 1, x, 256, SIZE=256, count=count)
    np.testing.assert_array_equal(x, wanted)


@xegpu_py.jit
def columns(X, Y, Z, ROWS: Constexpr, COLUMNS: Constexpr):
    x = X.tile((ROWS, COLUMNS), at=(0, 0)).load()
    Y.tile((1, COLUMNS), at=(0, 0)).store(x.sum(axis=0).reshape((1, COLUMNS)))
    Z.tile((COLUMNS, ROWS), at=(0, 0)).store(x.T)


@pytest.mark.parametrize("count", [3, 8, 32])
def test_transposes_and_reductions(count):
    x = np.random.default_rng(2).integers(-99, 99, (48, 64)).astype(np.int32)
    y, z = np.zeros((1, 64), np.int32), np.zeros((64, 48), np.int32)
    launch(columns, 1, x, y, z, ROWS=48, COLUMNS=64, count=count)
    np.testing.assert_array_equal(y[0], x.sum(0))
    np.testing.assert_array_equal(z, x.T)


def test_maps_and_subgroups_of_the_user_win():
    @xegpu_py.jit
    def mapped(X, Y):
        x = X.tile((32, 64), at=(0, 0), map=xl.WgMap((2, 1), (16, 64))).load()
        Y.tile((32, 64), at=(0, 0)).store(x)

    @xegpu_py.jit
    def numbered(X):
        X[0, xl.subgroup_id()] = 1.0

    x, y = np.ones((32, 64), np.float32), np.zeros((32, 64), np.float32)
    assert mapped.compile(x, y).subgroups == 2
    mapped[1](x, y, num_warps=8)
    assert (y == 1).all()
    assert numbered.compile(y).subgroups is None
    y[:] = 0
    numbered(y, grid=1, block=4)
    assert y.sum() == 4


def test_registers():
    @xegpu_py.jit
    def wide(X, Y, SIZE: Constexpr):
        i = xl.arange(0, SIZE)
        xl.store(Y + i, xl.load(X + i) + xl.load(Y + i))

    x = np.ones(2048, np.float32)
    with pytest.warns(UserWarning, match="'wide' does not fit: .* more subgroups than 1, by num_warps") as found:
        wide[1](x, x.copy(), SIZE=2048, num_warps=1)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide[1](x, x.copy(), SIZE=2048)
    with pytest.raises(ValueError, match="'subgroups', or num_warps, must be 0 to 64"):
        wide[1](x, x, SIZE=64, num_warps=1000)


def test_half_precision_columns_keep_their_alignment():
    """A block of a 2D message begins at a multiple of 4 bytes; others are gathered."""

    @xegpu_py.jit
    def copy(X, Y, first, n, SIZE: Constexpr):
        i = xl.arange(0, SIZE)
        xl.store(Y + i, xl.load(X + i + first, mask=i + first < n, other=0))

    x = np.arange(128).astype(ml_dtypes.bfloat16)
    for first in (0, 1, 2, 3):
        y = np.zeros(64, ml_dtypes.bfloat16)
        launch(copy, 1, x, y, first, 128, SIZE=64)
        np.testing.assert_array_equal(y, x[first : first + 64])


@xegpu_py.jit
def reversed_sum(X, Y, Z, OUT):
    i = xl.arange(0, 1024)
    xl.store(OUT + i, xl.load(X + 1023 - i) + xl.load(Y + i) - xl.load(Z + i))


def test_an_array_given_twice_is_read_before_it_is_changed():
    """Subgroups wait for accesses of one argument, and of all if arguments that the kernel changes share memory."""
    x = np.arange(1024, dtype=np.int32)
    y, z = x * 3, x * 5
    wanted = x[::-1] + y - z
    for count in (None, 4):
        out = x.copy()
        launch(reversed_sum, 1, out, y, z, out, count=count)
        assert (out == wanted).all()
    kernel = reversed_sum.compile(x, y, y, x)
    assert kernel.executable.changed == (3,)
    assert kernel.version_for((x, y, y, np.zeros_like(x))) is kernel, "two that are only read do not count"


class WithInterface:
    """An object with the array protocol of numpy, and nothing else."""

    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__


SHARED_MEMORY = {
    "a view": lambda a: (a.view(), a),
    "an object with the array protocol": lambda a: (WithInterface(a), a),
    "the other way round": lambda a: (a, WithInterface(a)),
}


@pytest.mark.parametrize("kind", SHARED_MEMORY)
def test_memory_is_shared_by_other_objects(kind):
    memory, other = np.arange(1024, dtype=np.int32), np.zeros(1024, np.int32)
    x, out = SHARED_MEMORY[kind](memory)
    reads = np.asarray(x)[::-1].copy()
    launch(reversed_sum, 1, x, other, other, out, count=4)
    np.testing.assert_array_equal(np.asarray(out), reads)


@xegpu_py.jit
def narrow_index(X, Y, factor: xl.int32, HOW: Constexpr):
    block, i = xl.program_id(0), xl.arange(0, 64)
    if HOW == "converted":
        place = (block * factor).to(xl.int8)
    elif HOW == "multiplied":
        place = block.to(xl.int8) * 100
    else:
        place = block.to(xl.int8)
        for _ in range(3):
            place += 100
    xl.store(Y + block * 64 + i, xl.load(X + place.to(xl.int32) + 128 + i))


@xegpu_py.jit
def wrapped(X, Y, least, great):
    i = xl.arange(0, 64).to(xl.int32)
    j = i + least + least
    xl.store(Y + i, xl.load(X + j + least * 2, mask=j < 60, other=-1), mask=i < 62)
    k = xl.arange(0, 64)
    xl.store(Y + 64 + k, xl.load(X + xl.program_id(0) * (great * great) + k))


@pytest.mark.parametrize("engine", ["both", "eager"])
def test_integers_of_32_bits_wrap_around(engine):
    x, y = np.arange(64, dtype=np.int32), np.zeros(128, np.int32)
    wrapped.with_options(engine=engine, cache="off")[2](x, y, -(1 << 31), 1 << 16)
    assert y.tolist() == [*range(60), -1, -1, 0, 0, *range(64)]


@xegpu_py.jit
def sum_of_blocks(X, Y, K, pitch, BK: Constexpr):
    rows, columns = xl.arange(0, BK)[:, None], xl.arange(0, 16)[None, :]
    x, total = X + rows * pitch + columns, xl.zeros((BK, 16), dtype=xl.int32)
    for start in range(0, K, BK):
        total += xl.load(x, mask=rows < K - start, other=0)
        x += BK * pitch
    xl.store(Y + rows * 16 + columns, total)


def test_steps_of_loops_are_those_of_pointers():
    """A loop's step is a factor of a product of 32 bits; a call says whether the product fits."""
    x, y = np.arange(40 * 64, dtype=np.int32).reshape(40, 64), np.zeros((16, 16), np.int32)
    launch(sum_of_blocks, 1, x, y, 40, 64, BK=16)
    np.testing.assert_array_equal(y, x[:16, :16] + x[16:32, :16] + np.pad(x[32:, :16], ((0, 8), (0, 0))))
    kernel = sum_of_blocks.compile(x, y, 40, 64, BK=16)
    fits, wraps = ({i.name for i in kernel.version_for((x, y, 40, n)).program.instructions} for n in (64, 1 << 28))
    assert "lsc_load_block2d" in fits and "lsc_load_block2d" not in wraps


@pytest.mark.parametrize("how", ["converted", "multiplied", "carried"])
def test_narrow_integers_wrap_around(how):
    blocks = np.arange(4)
    places = (blocks * 100 if how != "carried" else blocks + 300).astype(np.int8).astype(int) + 128
    x, y = np.arange(512, dtype=np.int32), np.zeros(256, np.int32)
    launch(narrow_index, 4, x, y, 100, HOW=how)
    assert (y.reshape(4, 64) == places[:, None] + np.arange(64)).all()


@xegpu_py.jit
def applied(X, Y, FUNCTION: Constexpr, SHAPE: Constexpr, SIZE: Constexpr):
    x = xl.load(X + xl.arange(0, SIZE)).reshape(SHAPE)
    y = FUNCTION(x).ravel()
    xl.store(Y + xl.arange(0, y.shape[0]), y)


MOVES = {
    "permuted (1, 0, 2)": ((4, 8, 32), lambda x: x.permute(1, 0, 2), lambda x: x.transpose(1, 0, 2)),
    "permuted (0, 2, 1)": ((4, 8, 32), lambda x: x.permute(0, 2, 1), lambda x: x.transpose(0, 2, 1)),
    "permuted (2, 1, 0)": ((4, 8, 32), lambda x: x.permute(2, 1, 0), lambda x: x.transpose(2, 1, 0)),
    "broadcast": ((2, 1, 64), lambda x: x.broadcast_to((2, 16, 64)), lambda x: np.broadcast_to(x, (2, 16, 64))),
    "sum along the first": ((8, 4, 32), lambda x: x.sum(0), lambda x: x.sum(0)),
    "sum along the middle": ((8, 4, 32), lambda x: x.sum(1), lambda x: x.sum(1)),
    "scan of a line": ((1024,), lambda x: xl.cumsum(x), np.cumsum),
    "scan of rows": ((32, 32), lambda x: xl.cumsum(x, 1), lambda x: x.cumsum(1)),
    "scan of columns": ((32, 64), lambda x: xl.cumsum(x, 0, reverse=True), lambda x: x[::-1].cumsum(0)[::-1]),
    "reduction": ((1024,), lambda x: xl.reduce(x, 0, lambda a, b: xl.maximum(a, b)).reshape((1,)), np.max),
    "sorted line": ((256,), lambda x: xl.sort(x, descending=True), lambda x: np.sort(x)[::-1]),
    "sorted rows": ((32, 16), lambda x: xl.sort(x), lambda x: np.sort(x, 1)),
    "histogram": ((1024,), lambda x: xl.histogram(x, 8), lambda x: np.bincount(x[(x >= 0) & (x < 8)], minlength=8)),
    "histogram of many bins": (
        (1024,),
        lambda x: xl.histogram(x, 256, mask=x != 3),
        lambda x: np.bincount(x[(x >= 0) & (x != 3)], minlength=256),
    ),
    "gathered columns": ((16, 64), lambda x: xl.gather(x, x & 63, 1), lambda x: np.take_along_axis(x, x & 63, 1)),
    "gathered twice": (
        (2, 32, 16),
        lambda x: xl.gather(xl.gather(x, x & 31, 1) > 0, x & 31, 1).to(xl.int32),
        lambda x: np.take_along_axis(np.take_along_axis(x, x & 31, 1) > 0, x & 31, 1),
    ),
    "reversed line": ((1024,), lambda x: xl.flip(x), lambda x: x[::-1]),
    "reversed rows": ((64, 16), lambda x: xl.flip(x, 0), lambda x: x[::-1]),
    "joined lines": ((1024,), lambda x: xl.cat(x, x + 1), lambda x: np.concatenate([x, x + 1])),
    "slice of rows": ((64, 16), lambda x: x[3:51], lambda x: x[3:51]),
    "halves": ((512, 2), lambda x: xl.split(x)[1], lambda x: x[:, 1]),
}


@pytest.mark.parametrize("name", some(MOVES))
def test_what_moves_elements_is_divided(name):
    shape, function, wanted = MOVES[name]
    x = np.random.default_rng(4).integers(-50, 50, shape).astype(np.int32)
    expected = np.ravel(wanted(x))
    for count in (None, 4, 32)[: 3 if os.environ.get("SWEEP") else 1]:
        y = np.zeros(expected.size, np.int32)
        launch(applied, 1, x.ravel(), y, FUNCTION=function, SHAPE=shape, SIZE=x.size, count=count)
        np.testing.assert_array_equal(y, expected)
    kernel = applied.compile(x.ravel(), expected.astype(np.int32), FUNCTION=function, SHAPE=shape, SIZE=x.size)
    assert kernel.subgroups is not None and kernel.subgroups > 1


@xegpu_py.jit
def persistent(X, Y, n, POLLS: Constexpr):
    """Blocks are taken in turn; or until memory, which another workgroup may change, says so."""
    block, more = xl.program_id(0), 1
    while (block < n and more > 0) if POLLS else block < n:
        i = block * 1024 + xl.arange(0, 1024)
        xl.store(Y + i, xl.load(X + i) + 1)
        if POLLS:
            more = xl.load(X + n * 512)
        block += xl.num_programs(0)


@pytest.mark.parametrize("polls", [False, True])
def test_while_loops_are_divided_unless_they_wait_for_memory(polls):
    x = np.arange(3 * 1024 + 1, dtype=np.int32)
    y = np.zeros_like(x)
    launch(persistent, 2, x, y, 3, POLLS=polls)
    np.testing.assert_array_equal(y[:-1], x[:-1] + 1)
    subgroups = persistent.compile(x, y, 3, POLLS=polls).subgroups
    assert subgroups is None if polls else subgroups > 1


@xegpu_py.jit
def each_its_own(X, Y, Z):
    """Subgroups work on values of their own, which must not meet in shared memory."""
    i = xl.subgroup_id() * 32 + xl.arange(0, 32)
    x = xl.load(X + i)
    xl.store(Y + i, xl.gather(x, x & 31, 0))
    xl.store(Z + xl.subgroup_id() * 48 + xl.arange(0, 48), xl.histogram(x, 48))


@xegpu_py.jit
def stacks(A, B, C, M, N, K, matrix_a, row_a, matrix_b, row_b, matrix_c, row_c, COUNT: Constexpr, BLOCK: Constexpr):
    """The products of several matrices, with pointers of three dimensions."""
    i = xl.arange(0, COUNT)[:, None, None]
    m = xl.arange(0, BLOCK)[None, :, None]
    n = xl.arange(0, BLOCK)[None, None, :]
    k = xl.arange(0, 32)
    a = xl.load(A + i * matrix_a + m * row_a + k[None, None, :], mask=(m < M) & (k[None, None, :] < K), other=0)
    b = xl.load(B + i * matrix_b + k[None, :, None] * row_b + n, mask=(k[None, :, None] < K) & (n < N), other=0)
    c = (xl.dot(a.to(xl.float16), b) * 0.5).to(C.dtype)
    xl.store(C + i * matrix_c + m * row_c + n, c, mask=(m < M) & (n < N))


@pytest.mark.parametrize("size", [(32, 32, 32), (20, 24, 17)])
def test_products_of_stacks_by_pointers_are_those_of_matrices(size):
    m, n, k = size
    rng = np.random.default_rng(8)
    a, b = rng.integers(-4, 5, (4, m, k)).astype(np.float32), rng.integers(-4, 5, (4, k, n)).astype(np.float16)
    c = np.full((4, m, n), 99, np.float32)
    strides = [s // x.itemsize for x in (a, b, c) for s in x.strides[:2]]
    launch(stacks, 1, a, b, c, m, n, k, *strides, COUNT=4, BLOCK=32)
    np.testing.assert_array_equal(c, 0.5 * (a @ b.astype(np.float32)))
    if m == 32:
        assert stacks.compile(a, b, c, m, n, k, *strides, COUNT=4, BLOCK=32).executor.allocation.beyond == ()
        used = messages(stacks, a, b, c, m, n, k, *strides, COUNT=4, BLOCK=32)
        assert {u for u in used if "fence" not in u} == {"lsc_load_block2d.ugm", "lsc_store_block2d.ugm"}


@xegpu_py.jit
def counted(X, Y):
    xl.store(Y + xl.arange(0, 48), xl.histogram(xl.load(X + xl.arange(0, 32)), 48))


@xegpu_py.jit
def counted_in_a_loop(X, Y, n, MAP: Constexpr):
    x = X.tile((8, 64), at=(0, 0), map=MAP).load()
    total = xl.zeros((64,), xl.int32)
    for i in range(n):
        total = total * 3 + xl.histogram((x + i) & 63, 64)
    Y.tile((64,), at=(0,)).store(total)


def test_values_in_shared_memory_stay_apart(monkeypatch):
    # By default more than a hundred bins are in shared memory.
    monkeypatch.setattr(scans, "COMPARED", 1024)
    x = np.random.default_rng(6).integers(0, 48, (3, 32)).astype(np.int32)
    y, z = np.zeros_like(x), np.zeros((3, 48), np.int32)
    for kernel in (each_its_own, each_its_own.compile(x, y, z)):
        kernel(x, y, z, grid=1, block=3)
        np.testing.assert_array_equal(y, np.take_along_axis(x, x & 31, 1))
        np.testing.assert_array_equal(z, [np.bincount(row, minlength=48) for row in x])
        y[:], z[:] = 0, 0
    # Several subgroups that each count all elements would count them several times.
    compiled = counted.compile(x[0], z[0])
    with pytest.raises(ValueError, match="'block' must be 1 subgroup"):
        compiled(x[0], z[0], grid=1, block=2)
    (version,) = counted.versions.values()
    for kernel in (counted, version.compile(subgroups=None)):
        kernel(x[0], z[0], grid=1, block=2)
        np.testing.assert_array_equal(z[0], np.bincount(x[0], minlength=48))
        z[0] = 0


def test_shared_memory_is_overwritten_after_all_have_read_it():
    x = np.random.default_rng(7).integers(0, 64, (8, 64)).astype(np.int32)
    y, total = np.zeros(64, np.int32), np.zeros(64, np.int32)
    launch(counted_in_a_loop, 1, x, y, 3, MAP=xl.WgMap((1, 4), (8, 16)))
    for i in range(3):
        total = total * 3 + np.bincount(((x + i) & 63).ravel(), minlength=64)
    np.testing.assert_array_equal(y, total)


def in_pairs(x):
    """The sums up to each element in the order of docs/numerics.md: those of pairs, and one element after them."""
    if x.size == 1:
        return x
    sums = in_pairs(x[0::2] + x[1::2])
    found = np.empty_like(x)
    found[1::2], found[0], found[2::2] = sums, x[0], sums[:-1] + x[2::2]
    return found


@pytest.mark.parametrize("count", [None, 4])
def test_scans_of_floats_do_not_depend_on_the_number_of_subgroups(count):
    x = (np.random.default_rng(5).standard_normal(1024) * 1000).astype(np.float32)
    y = np.zeros_like(x)
    launch(applied, 1, x, y, FUNCTION=xl.cumsum, SHAPE=(1024,), SIZE=1024, count=count)
    np.testing.assert_array_equal(y, in_pairs(x))


@xegpu_py.jit
def from_pointers(X, Y, first, pitch, ALIGNED: Constexpr):
    """A block from an element of an array on, as in kernels that add a batch's offset to an argument."""
    first = xl.program_id(0) * 1024 if ALIGNED else first + xl.program_id(0) * 3
    block = xl.make_block_ptr(X + first, (16, 24), (pitch, 1), (0, 0), (16, 16), (1, 0))
    left = xl.load(block, boundary_check=(0, 1))
    right = xl.load(xl.advance(block, (0, 16)), boundary_check=(0, 1))
    out = xl.make_tensor_descriptor(Y + xl.program_id(0) * 256, [16, 16], [16, 1], [16, 16])
    out.store([0, 0], left + right)


@pytest.mark.parametrize("engine", ["both", "eager"])
@pytest.mark.parametrize("aligned", [True, False])
def test_block_pointers_begin_at_pointers(engine, aligned):
    x, y = np.arange(4096, dtype=np.int32), np.zeros((2, 16, 16), np.int32)
    from_pointers.with_options(engine=engine, cache="off")[2](x, y, 5, 48, ALIGNED=aligned)
    for block in range(2):
        first = block * 1024 if aligned else 5 + block * 3
        rows = x[first + np.arange(16)[:, None] * 48 + np.arange(32)] * (np.arange(32) < 24)
        np.testing.assert_array_equal(y[block], rows[:, :16] + rows[:, 16:])
    if aligned and engine == "both":
        assert messages(from_pointers, x, y, 5, 48, ALIGNED=True) == {"lsc_load_block2d.ugm", "lsc_store_block2d.ugm"}


@xegpu_py.jit
def batches(X, Y, batch, pitch):
    """A block of each matrix of a stack, whose distance is an argument."""
    i, j = xl.arange(0, 16)[:, None], xl.arange(0, 32)[None, :]
    x = xl.load(X + xl.program_id(0) * batch + i * pitch + j)
    xl.store(Y + xl.program_id(0) * 512 + i * 32 + j, x)


@pytest.mark.parametrize("batch", [1024, 1040, 1001, -32])
def test_strides_of_batches_are_multiples(batch):
    x, y = np.arange(4096, dtype=np.int32), np.zeros((3, 16, 32), np.int32)
    kernel = batches.with_options(engine="both", cache="off")
    count = 3 if batch > 0 else 1
    kernel[count](x, y, batch, 48)
    for block in range(count):
        np.testing.assert_array_equal(y[block], x[block * batch + np.arange(16)[:, None] * 48 + np.arange(32)])
    compiled = kernel.compile(x, y, batch, 48)
    version = compiled.version_for((x, y, batch, 48), 3)
    assert (version is compiled) == (batch > 0 and batch % 16 == 0)
    assert ("lsc_load_block2d.ugm" in version.asm) == (batch > 0 and batch % 16 == 0)


@xegpu_py.jit
def histogram(A, H, S):
    numbers = xl.load(A + xl.arange(0, 1024))
    xl.atomic_add(H + numbers, numbers * 0 + 1)
    j = xl.arange(0, 64)
    xl.store(S + j, xl.cumsum(xl.load(H + j), 0))


@pytest.mark.parametrize("count", [None, 1, 4])
def test_what_all_have_updated_is_there_before_it_is_loaded(count):
    numbers = np.random.default_rng(0).integers(0, 64, 1024).astype(np.int32)
    counts, sums = np.zeros((2, 64), np.int32)
    launch(histogram, 1, numbers, counts, sums, count=count)
    np.testing.assert_array_equal(counts, np.bincount(numbers, minlength=64))
    np.testing.assert_array_equal(sums, np.cumsum(counts))
