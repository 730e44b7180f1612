"""Kernels of XeTile built in Python, and the GEMM of 256x256 with 8x4 subgroups in all types."""

from collections import Counter

import ml_dtypes
import numpy as np
import pytest
from mlir import ir as mlir

from xegpu_py import DiagnosticError, language
from xegpu_py.numerics.rounding import fma_f32
from xegpu_py.tiles.value_base import BuildState
from xegpu_py.visa.finalizer import available, finalize

BF16 = ml_dtypes.bfloat16
F32 = np.float32
RNG = np.random.default_rng(0)
MAP = language.WgMap((8, 4), (32, 64))

TYPES = {"bf16": (BF16, F32), "f16": (np.float16, F32), "tf32": ("tf32", F32), "i8": (np.int8, np.int32)}


def gemm(element, step=32):
    narrow, out = TYPES[element]

    @language.tile_kernel((narrow, (None, None)), (narrow, (None, None)), (out, (None, None)))
    def kernel(A, B, C):
        m, n = language.block_id("x") * 256, language.block_id("y") * 256
        a, b = A.tile((256, step), at=(m, 0)), B.tile((step, 256), at=(0, n))
        c = language.zeros((256, 256), out, map=MAP)
        for _ in language.range_(0, A.shape[1], step):
            c += a.load() @ b.load()
            a.advance(columns=step)
            b.advance(rows=step)
        C.tile((256, 256), at=(m, n)).store(c)

    return kernel


def operand(element, *shape):
    if element == "i8":
        return RNG.integers(-128, 128, shape).astype(np.int8)
    if element == "tf32":
        return (RNG.standard_normal(shape).astype(F32).view("u4") & 0xFFFFE000).view("f4")
    return RNG.standard_normal(shape).astype(TYPES[element][0])


def product(a, b):
    if a.dtype == np.int8:
        return a.astype(np.int64) @ b.astype(np.int64)
    total = np.zeros((a.shape[0], b.shape[1]), F32)
    for k in range(a.shape[1]):
        total = fma_f32(np.outer(a[:, k].astype(float), b[k].astype(float)), total)
    return total


@pytest.mark.parametrize("element", TYPES)
def test_gemm(element):
    a, b = operand(element, 256, 96), operand(element, 96, 256)
    c = np.zeros((256, 256), TYPES[element][1])
    gemm(element)(a, b, c, block=32)
    np.testing.assert_array_equal(c, product(a, b))


def loop_of(kernel):
    instructions = kernel.program.instructions
    names = [i.name for i in instructions]
    start = names.index("label")
    return instructions[start : names.index("jmp", start)]


# The dpas of a subgroup's tile of 32x64 in a step of 32 of K, and the messages that load their operands.
WORK = {"bf16": (32, 3), "f16": (32, 3), "tf32": (64, 6), "i8": (16, 2)}


@pytest.mark.parametrize("element", TYPES)
def test_each_byte_is_loaded_once_and_nothing_is_moved(element):
    inside = loop_of(gemm(element).compile(registers=256))
    count = Counter(i.name for i in inside)
    products, messages = WORK[element]
    assert count["dpas"] == products
    assert count["lsc_load_block2d"] == messages
    assert set(count) == {"label", "dpas", "lsc_load_block2d", "add", "cmp"}
    size = {"bf16": 2, "f16": 2, "tf32": 4, "i8": 1}[element]
    shapes = [i["block"] for i in inside if i.name == "lsc_load_block2d"]
    moved = sum(s.size // 8 * s.count * s.width * s.height for s in shapes)
    assert moved == (32 * 32 + 32 * 64) * size
    # All are as large as a message may be: 32 rows, and 64 bytes a row where the step of K has them.
    widths = sorted(s.size // 8 * s.count * s.width for s in shapes)
    assert {s.height for s in shapes} == {32}
    assert widths == ([32, 64] if element == "i8" else [64] * messages)


# Steps of K, and in a loop that loads ahead the dpas between one load and the next.
AHEAD = {"bf16": (32, [8, 8, 0, 8, 8, 0]), "f16": (32, [8, 8, 0, 8, 8, 0]), "tf32": (16, [4, 4, 4, 4, 0] * 2),
         "i8": (64, [16, 0, 16, 0])}  # fmt: skip


@pytest.mark.parametrize("element", TYPES)
def test_loads_of_the_next_step_come_before_products_of_this_one(element):
    """Loads ahead use the registers that are free by then; the bits equal those of a loop that does not load ahead."""
    step, expected = AHEAD[element]
    kernel = gemm(element, step).compile(target="pvc", registers=256, strict_grf=True, prefetch=3, load_ahead=True)
    inside = loop_of(kernel)
    assert {i.name for i in inside} == {"label", "dpas", "lsc_load_block2d", "add", "cmp"}
    between, loaded = [0], 0
    for i in inside:
        if i.name == "dpas":
            between[-1] += 1
        elif i.name == "lsc_load_block2d" and i["dst"].var:
            between.append(0)
            loaded += i["block"].size // 8 * i["block"].count * i["block"].width * i["block"].height
    assert between == [*expected, 0]
    assert loaded == (32 + 64) * step * {"bf16": 2, "f16": 2, "tf32": 4, "i8": 1}[element]
    if available("pvc"):
        native = finalize(kernel.asm, "pvc", registers=256)
        assert (native.spill_bytes, native.total_registers) == (0, 256)
    a, b = operand(element, 256, 3 * step), operand(element, 3 * step, 256)
    c = np.zeros((256, 256), TYPES[element][1])
    kernel(a, b, c, block=32)
    np.testing.assert_array_equal(c, product(a, b))


@pytest.mark.each_value
@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("element", TYPES)
def test_gemms_do_not_spill(element, prefetch, native_of):
    kernel = gemm(element).compile(target="pvc", registers=256, strict_grf=True, prefetch=prefetch)
    native = native_of(kernel.asm, "pvc", registers=256)
    assert (native.spill_bytes, native.total_registers) == (0, 256)


def test_levels_of_ir():
    kernel = gemm("bf16").compile(registers=256)
    assert "xetile.tile_mma" in kernel.ir("xetile")
    assert kernel.ir("xegpu").count("xegpu.dpas") == 1  # The subgroup's tile.
    assert "xetile." not in kernel.ir("xegpu")
    assert "visa.dpas" in kernel.ir("visa")
    with pytest.raises(ValueError, match="unknown level 'llvm'; there are xetile, xegpu, visa"):
        kernel.ir("llvm")


def test_operators():
    @language.tile_kernel((F32, (16, 32)), (F32, (16, 32)), (F32, (32, 16)))
    def kernel(X, Y, Z):
        x = X.tile((16, 32), at=(0, 0)).load()
        top = x.max(1, keep_dims=True)
        powers = language.exp(x - top)
        Y.tile((16, 32), at=(0, 0)).store(1 - powers / powers.sum(axis=1, keep_dims=True) * 2)
        Z.tile((32, 16), at=(0, 0)).store((-x).T + x.sum(0, keep_dims=True).T * x.sum(1, keep_dims=True).T)

    x, y, z = RNG.standard_normal((16, 32)).astype(F32), np.zeros((16, 32), F32), np.zeros((32, 16), F32)
    kernel(x, y, z)
    powers = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, 1 - powers / powers.sum(1, keepdims=True) * 2, rtol=1e-5)
    np.testing.assert_allclose(z, -x.T + x.sum(0)[:, None] * x.sum(1)[None], rtol=1e-4, atol=1e-5)


def test_loops_carry_what_changes_and_only_that():
    @language.tile_kernel((np.int32, (8, 64)), (np.int32, (8, 16)))
    def kernel(X, Y):
        tile = X.tile((8, 16), at=(0, 0))
        total = language.zeros((8, 16), np.int32)
        twice = language.full((8, 16), 2, np.int32)
        for _ in language.range_(0, 2):
            for _ in language.range_(0, 2):
                total += tile.load() * twice
                tile.advance(columns=16)
            total += 1
        Y.tile((8, 16), at=(0, 0)).store(total)

    assert str(kernel).count("iter_args(%arg") == 2
    assert "iter_args(%arg4 = %arg" not in str(kernel) or "vector<8x16xi32>, !xetile" not in str(kernel)
    x, y = RNG.integers(-9, 9, (8, 64)).astype(np.int32), np.zeros((8, 16), np.int32)
    kernel(x, y)
    np.testing.assert_array_equal(y, 2 * x.reshape(8, 4, 16).sum(1) + 2)


def test_conversions():
    @language.tile_kernel((np.int8, (8, 16)), (BF16, (8, 16)), (np.int32, (8, 16)), (F32, (8, 16)))
    def kernel(X, Y, Z, W):
        x = X.tile((8, 16), at=(0, 0)).load()
        real = x.to(F32)
        Y.tile((8, 16), at=(0, 0)).store((real / 3).to(BF16))
        Z.tile((8, 16), at=(0, 0)).store((real / 3).to(np.int32) + x.to(np.int32))
        W.tile((8, 16), at=(0, 0)).add(language.maximum(real.to(BF16).to(F32), 0))

    x = RNG.integers(-128, 128, (8, 16)).astype(np.int8)
    y, z, w = np.zeros((8, 16), BF16), np.zeros((8, 16), np.int32), np.ones((8, 16), F32)
    kernel(x, y, z, w)
    third = x.astype(F32) / F32(3)
    np.testing.assert_array_equal(y, third.astype(BF16))
    np.testing.assert_array_equal(z, np.trunc(third).astype(np.int32) + x)
    np.testing.assert_array_equal(w, 1 + np.maximum(x.astype(F32), 0))


def test_arrays_that_are_not_aligned(tmp_path):
    """A kernel gathers only those arrays of a call that 2D block messages cannot address."""
    small = language.WgMap((2, 2), (8, 16))

    @language.tile_kernel((BF16, (None, None)), (BF16, (None, None)), (F32, (None, None)))
    def kernel(A, B, C):
        m, n = language.block_id("x") * 16, language.block_id("y") * 32
        a, b = A.tile((16, 16), at=(m, 0)), B.tile((16, 32), at=(0, n))
        c = language.zeros((16, 32), map=small)
        for _ in language.range_(0, A.shape[1], 16):
            c += a.load() @ b.load()
            a.advance(columns=16)
            b.advance(rows=16)
        C.tile((16, 32), at=(m, n)).store(c)

    compiled = kernel.compile(registers=256, cache=tmp_path, progress=False)
    versions = set()
    for m, k, n in ((19, 35, 37), (17, 21, 64), (32, 64, 40)):
        a, b = (RNG.integers(-4, 5, shape).astype(BF16) for shape in ((m, k), (k, n)))
        c = np.zeros((m, n), F32)
        version = compiled.version_for([a, b, c])
        assert (version.options.cache, version.options.progress) == (tmp_path, False)
        versions.add((version is compiled, "load_block2d" in version.asm, "lsc_load.ugm" in version.asm))
        compiled(a, b, c, grid=(2, 2), block=4)
        np.testing.assert_array_equal(c, a.astype(F32) @ b.astype(F32))
    # No array is aligned; all but A are; all are.
    assert versions == {(False, False, True), (False, True, True), (True, True, False)}


def test_any_number_is_padding():
    """Infinities, signed zeros, and numbers that are rounded to the tile's type."""

    @language.tile_kernel((BF16, (7, 32)), (BF16, (3, 8, 16)))
    def kernel(X, Y):
        tile = X.tile((8, 16), at=(0, 0))
        for i, number in enumerate((-np.inf, -0.0, 1e-5)):
            Y.tile((8, 16), at=(i, 0, 0)).store(tile.load(padding=number))

    x, y = RNG.standard_normal((7, 32)).astype(BF16), np.zeros((3, 8, 16), BF16)
    kernel(x, y)
    np.testing.assert_array_equal(y[:, :7], np.stack([x[:, :16]] * 3))
    assert [y[i, 7].tobytes() for i in range(3)] == [np.full(16, n, BF16).tobytes() for n in (-np.inf, -0.0, 1e-5)]


def test_scattered_elements():
    @language.tile_kernel((np.int32, (32,)), (F32, (100,)), (F32, (100,)))
    def kernel(where, X, Y):
        places = where.at(language.arange(32)).load()
        some, others = places >= 40, (places < 20) | places.equals(30)
        elements = X.at(places)
        elements.advance(1)
        elements.advance(language.arange(32))
        Y.at(places).store(elements.load(some, padding=-1.5), some | others)

    where = RNG.permutation(60)[:32].astype(np.int32)
    x, y = RNG.standard_normal(100).astype(F32), np.full(100, 7, F32)
    expected = y.copy()
    for i, place in enumerate(where):
        if place >= 40 or place < 20 or place == 30:
            expected[place] = x[place + 1 + i] if place >= 40 else -1.5
    kernel(where, x, y)
    np.testing.assert_array_equal(y, expected)


def test_mistakes():
    with pytest.raises(RuntimeError, match="only in a function that is compiled as a kernel"):
        language.zeros((8, 16))
    with pytest.raises(TypeError, match="kernel takes 1 arrays, but 2 are typed"):
        language.tile_kernel((F32, (8, 8)), (F32, (8, 8)))(_takes_one)
    with pytest.raises(ValueError, match="no element type matches"):
        language.tile_kernel((np.complex64, (8, 8)))(_takes_one)
    with pytest.raises(DiagnosticError, match=r"test_tiles.py:\d+:\d+: error: 0.5 does not fit int32"):

        @language.tile_kernel((np.int32, (8, 16)))
        def half(X):
            X.tile((8, 16), at=(0, 0)).store(0.5)

    with pytest.raises(DiagnosticError, match=r"'x' is float32\[8, 1\] before the loop and float32\[8, 32\] after"):

        @language.tile_kernel((F32, (8, 32)))
        def grows(X):
            x = language.zeros((8, 1))
            for _ in range(4):
                x += X.tile((8, 32), at=(0, 0)).load()

    with pytest.raises(DiagnosticError, match=r"test_tiles.py:\d+:\d+: error: a tile of 2 dimensions at 1 indices"):

        @language.tile_kernel((F32, (8, 32)))
        def places(X):
            X.tile((8, 16), at=(0,)).load()


def _takes_one(kernel):
    pass


_takes_one.__name__ = "kernel"


def test_the_kernels_that_a_thread_builds():
    """Each has its context, its target, and its share of local memory, of which values may take one half."""
    state, outer, inner = BuildState(), mlir.Context(), mlir.Context()
    assert not state.is_active and state.evaluation is None
    with pytest.raises(RuntimeError, match="values of kernels exist only in a function that is compiled as a kernel"):
        state.check()
    with outer:
        state.enter(shares=True)
    state.check()
    state.check(outer)
    with inner:
        state.enter(target="dg2")
    assert state.is_active and state.target.name == "dg2" and not state.take_shared(1)
    state.check(inner)
    with pytest.raises(RuntimeError, match="a value of one kernel is used in another"):
        state.check(outer)
    assert state.leave() is False
    state.check(outer)
    half = state.target.slm_bytes // 2
    assert not state.take_shared(half + 1)
    assert state.take_shared(half - 1) and state.take_shared(1) and not state.take_shared(1)
    assert state.leave() is True and not state.is_active
    with outer:
        state.enter(shares=True)
    assert state.leave() is False
