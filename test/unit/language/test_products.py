"""Products of the tile language: `dot` of all types, `dot_scaled`, and random numbers."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import numerics
from xegpu_py.tiles import element_types, products

from .computing import check, computed

BF16, F8, F16, F32 = ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.float16, np.float32
I32, U32 = np.int32, np.uint32
RNG = np.random.default_rng(5)


def whole(shape, dtype):
    return RNG.integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("workgroup", [False, True])
def test_bytes_with_and_without_sign(workgroup):
    a, b = RNG.integers(0, 256, (16, 32)).astype(np.uint8), RNG.integers(0, 256, (32, 16)).astype(np.uint8)
    wide = [m.astype(I32) for m in (a, a.view(np.int8), b, b.view(np.int8))]
    expected = tuple(x @ y for x in wide[:2] for y in wide[2:])

    def function(a, b, c, d):
        return xl.dot(a, c), xl.dot(a, d), xl.dot(b, c), b @ d

    check(function, [a, a.view(np.int8), b, b.view(np.int8)], expected, workgroup)


@pytest.mark.parametrize("dtype", [BF16, F16])
def test_sums_and_accumulators(dtype):
    """Whole numbers, whose sums are exact in every order."""
    a, b, c = whole((8, 32), dtype), whole((32, 16), dtype), whole((8, 16), F32)
    exact = a.astype(F32) @ b.astype(F32)

    def function(a, b, c):
        narrow = c.to(element_types.dtype_of(dtype))
        return (
            xl.dot(a, b),
            xl.dot(a, b, c),
            xl.dot(a, b, out_dtype=element_types.dtype_of(dtype)),
            xl.dot(a, b, narrow),
            xl.dot(a, b, c.to(xl.float64)),
        )

    expected = (exact, exact + c, exact.astype(dtype), (exact + c).astype(dtype), (exact + c).astype(np.float64))
    check(function, [a, b, c], expected)


@pytest.mark.parametrize("dtype", [BF16, F32])
def test_sums_with_a_product_begin_at_the_other_addend(dtype):
    """As if it were the third operand; but those of other types are added to the whole product."""
    a, b, c = (RNG.standard_normal(s).astype(F32) for s in ((8, 32), (32, 16), (8, 16)))

    def function(a, b, c):
        narrow = c.to(xl.float16)
        whole = xl.dot(a, b, out_dtype=xl.float32)
        first = xl.dot(a, b, c), c + xl.dot(a, b), xl.dot(a, b) + c
        return *first, whole + c, narrow + xl.dot(a, b), whole + narrow

    found = computed(function, [a.astype(dtype), b.astype(dtype), c], [c] * 6)
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes() != found[3].tobytes()
    assert found[4].tobytes() == found[5].tobytes() and found[4].dtype == F32


def test_stacks_of_matrices():
    a, b, c = whole((3, 8, 16), F16), whole((3, 16, 16), F16), whole((8, 16), F32)
    exact = a.astype(F32) @ b.astype(F32)
    check(
        lambda a, b, c: (xl.dot(a, b), xl.dot(a, b, c, out_dtype=xl.float16)),
        [a, b, c],
        (exact, (exact + c).astype(F16)),
    )


def test_precisions_of_float32():
    a, b = RNG.standard_normal((2, 16, 16)).astype(F32)
    names = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    found = computed(
        lambda a, b: (*(xl.dot(a, b, input_precision=n) for n in names), xl.dot(a, b)), [a, b], [a] * (len(names) + 1)
    )
    exact = a.astype(np.float64) @ b
    bound = {"ieee": 2e-6, "tf32": 2e-2, "tf32x3": 4e-6, "bf16x3": 4e-4, "bf16x6": 4e-6}
    for name, got in zip(names, found):
        assert 0 < abs(got - exact).max() < bound[name], name
    assert found[0].tobytes() == by_fma(a, b, np.zeros((16, 16), F32)).tobytes(), "ieee is one fma after the other"
    assert found[1].tobytes() == found[-1].tobytes(), "tf32 is the default"


def by_fma(a, b, total):
    for k in range(a.shape[1]):
        left, right = np.broadcast_to(a[:, k, None], total.shape), np.broadcast_to(b[k], total.shape)
        total = numerics.fma(left, right, total, "f")
    return total


@pytest.mark.parametrize("subgroups", [0, 4])
@pytest.mark.parametrize("depth", [8, 20, 64])
def test_sums_by_fma_have_one_order_on_all_subgroups(depth, subgroups):
    """With all of K at once, with loops over parts of it, and with factors that are products of other subgroups."""
    a, b, c = (RNG.standard_normal(s).astype(F32) for s in ((16, depth), (depth, 16), (16, 16)))
    first = by_fma(a, b, c)
    expected = (first, by_fma(first, by_fma(first, first, c), np.zeros_like(c)))

    def function(a, b, c):
        first = xl.dot(a, b, c, "ieee")
        return first, xl.dot(first, xl.dot(first, first, c, "ieee"), input_precision="ieee")

    found = computed(function, [a, b, c], expected, subgroups == 4, check=["races"])
    if subgroups != 4:
        found += computed(function, [a, b, c], expected, subgroups=subgroups, check=["races"])
    assert [f.tobytes() for f in found] == [e.tobytes() for e in expected] * (len(found) // 2)


def test_float64_by_fma():
    """On a target with a DPAS without float64."""
    a, b, c = (RNG.integers(-9, 9, s).astype(np.float64) for s in ((8, 16), (16, 8), (8, 8)))
    check(lambda a, b, c: xl.dot(a, b, c, input_precision="ieee"), [a, b, c], a @ b + c, target="pvc")


def test_eight_bit_floats_and_float64_on_targets_that_multiply_them():
    a, b = whole((8, 64), ml_dtypes.float8_e4m3fn), whole((64, 16), ml_dtypes.float8_e5m2)
    exact = a.astype(F32) @ b.astype(F32)
    check(lambda a, b: (xl.dot(a, b), xl.dot(a, b.to(xl.HF8))), [a, b], (exact, exact), target="any")


@pytest.mark.parametrize(
    ("target", "left", "right"),
    [
        ("pvcxt", ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
        ("pvcxt", np.float64, np.float64),
        ("dg2", ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
        ("dg2", F32, F32),
    ],
)
def test_types_that_the_target_does_not_multiply(target, left, right):
    """Types of 8 bits as float16, the others by fma."""
    a, b = whole((8, 32), left), whole((32, 16), right)
    real = np.float64 if left == np.float64 else F32
    c = np.full((8, 16), 3, real)
    exact = a.astype(real) @ b.astype(real)

    def function(a, b, c):
        a, b = (v.to(xl.tfloat32) if v.dtype == xl.float32 else v for v in (a, b))
        return c + a @ b, xl.dot(a, b, c) * 2 + (a @ b)

    check(function, [a, b, c], (exact + c, 3 * exact + 2 * c), target=target)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
"""The numbers of the format, by their bits (OCP Microscaling Formats 1.0, section 5.3.3)."""


def scaled(elements, scales):
    return elements * np.repeat(2.0 ** (scales.astype(int) - 127), 32, 1)


@pytest.mark.each_value
@pytest.mark.parametrize("target", ["pvcxt", "cri"])
@pytest.mark.parametrize("workgroup", [False, True])
def test_scaled_products(workgroup, target):
    left, right = RNG.integers(0, 16, (8, 64)), RNG.integers(0, 16, (64, 16))
    a, b = (left[:, ::2] | left[:, 1::2] << 4).astype(np.uint8), (right[::2] | right[1::2] << 4).astype(np.uint8)
    s, t = RNG.integers(124, 130, (8, 2)).astype(np.uint8), RNG.integers(124, 130, (16, 2)).astype(np.uint8)
    exact = scaled(E2M1[left], s) @ scaled(E2M1[right].T, t).T
    check(
        lambda a, s, b, t: xl.dot_scaled(a, s, "e2m1", b, t, "e2m1"),
        [a, s, b, t],
        exact.astype(F32),
        workgroup,
        target=target,
    )


@pytest.mark.parametrize("target", ["pvcxt", "cri"])
def test_scaled_products_of_formats_that_differ(target):
    """Each product is exact in a type that holds both formats."""
    e2m1 = RNG.integers(0, 16, (8, 32))
    along_k, along_m = (e2m1[:, ::2] | e2m1[:, 1::2] << 4), (e2m1[::2] | e2m1[1::2] << 4)
    a, b, c = whole((32, 16), ml_dtypes.float8_e4m3fn), whole((32, 16), F16), whole((32, 16), BF16)
    s = RNG.integers(120, 130, (8, 1)).astype(np.uint8)
    left = scaled(E2M1[e2m1], s)

    def function(x, y, s, a, b, c):
        return (
            xl.dot_scaled(x, s, "e2m1", a, None, "e4m3"),
            xl.dot_scaled(y, s, "e2m1", b, None, "fp16", lhs_k_pack=False),
            xl.dot_scaled(b.T, None, "fp16", c, None, "bf16"),
            xl.dot_scaled(y, s, "e2m1", (y.T | 0), None, "e2m1", lhs_k_pack=False, rhs_k_pack=False),
        )

    expected = (left @ a.astype(F32), left @ b.astype(F32), b.T.astype(F32) @ c.astype(F32), left @ E2M1[e2m1].T)
    given = [along_k.astype(np.uint8), along_m.astype(np.uint8), s, a, b, c]
    check(function, given, tuple(e.astype(F32) for e in expected), target=target)


@pytest.mark.parametrize("wide", [BF16, F32, F16, ml_dtypes.float8_e4m3fn], ids=lambda t: np.dtype(t).name)
def test_all_scales_and_all_packed_numbers(wide):
    """All patterns as numbers of each type that holds them."""
    codes = np.arange(16, dtype=np.uint8).reshape(1, 16)
    kind = element_types.dtype_of(np.dtype(wide))
    check(lambda v: products._of_e2m1(v, kind), [codes], E2M1[codes].astype(wide))
    if wide in (BF16, F32):
        scales = np.arange(256, dtype=np.uint8).reshape(16, 16)
        powers = np.where(scales == 255, np.nan, np.ldexp(1.0, scales.astype(int) - 127)).astype(wide)
        check(lambda v: products._powers(v, kind), [scales], powers)


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_scales_that_bfloat16_does_not_hold(engine):
    """bdpas multiplies exactly, whatever the scales are."""

    @xegpu_py.jit(target="cri", engine=engine)
    def product(A, S, B, T, C):
        at = (0, 0)
        a, s, b, t = (M.tile(n, at).load() for M, n in ((A, (8, 32)), (S, (8, 1)), (B, (32, 16)), (T, (16, 1))))
        C.tile((8, 16), at).store(xl.dot_scaled(a, s, "e5m2", b, t, "e5m2"))

    a, b, c = whole((8, 32), F8), whole((32, 16), F8), np.zeros((8, 16), F32)
    product(a, np.full((8, 1), 254, np.uint8), b, np.zeros((16, 1), np.uint8), c)
    np.testing.assert_array_equal(c, a.astype(F32) @ b.astype(F32))
    assert engine == "eager" or "bdpas" in next(iter(product.versions.values())).asm["visa"]


def test_scaled_products_of_other_formats():
    s = RNG.integers(120, 130, (8, 2)).astype(np.uint8)
    a, b, c = whole((8, 64), ml_dtypes.float8_e4m3fn), whole((64, 16), ml_dtypes.float8_e5m2), whole((8, 16), F32)
    exact = scaled(a.astype(float), s) @ b.astype(float) + c
    check(lambda a, s, b, c: xl.dot_scaled(a, s, "e4m3", b, None, "e5m2", c), [a, s, b, c], exact.astype(F32))
    d = whole((64, 16), BF16)
    s[0, 0] = 255
    exact = scaled(a.astype(float), s) @ d.astype(float)
    exact[0] = np.nan
    check(lambda a, s, d: xl.dot_scaled(a, s, "e4m3", d, None, "bf16"), [a, s, d], exact.astype(F32))


# Random numbers.

RANDOM123 = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
"""Known answers of Philox 4x32-10 (Random123 1.14, kat_vectors): counter, key, result."""


def test_philox_gives_the_published_numbers():
    counters = np.array([c for c, _, _ in RANDOM123], U32).T
    keys = np.array([k for _, k, _ in RANDOM123], U32).T
    results = np.array([r for _, _, r in RANDOM123], U32).T
    check(
        lambda c, k: xl.philox_impl(*(c[i] for i in range(4)), k[0], k[1]),
        [counters, keys],
        tuple(np.ascontiguousarray(r) for r in results),
    )


def test_philox_of_64_bits_is_numpys():
    """numpy's Philox counts up before its first block."""
    seed, place = 0x123456789ABCDEF, 41
    generator = np.random.Philox(key=[seed, 0], counter=[place - 1, 0, 0, 0])
    expected = tuple(np.array([n], np.uint64) for n in generator.random_raw(4))
    counter = np.array([[place]], np.uint64)
    check(lambda c: xl.philox(seed, c[0], c[0] * 0, c[0] * 0, c[0] * 0), [counter], expected)


def philox(counter, seed):
    """Philox 4x32-10, in Python's integers (Salmon et al., SC11, section 4.3)."""
    x, key = list(counter), [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        high, low = zip(*(divmod(p, 2**32) for p in (x[0] * 0xD2511F53, x[2] * 0xCD9E8D57)))
        x = [high[1] ^ x[1] ^ key[0], low[1], high[0] ^ x[3] ^ key[1], low[0]]
        key = [(k + step) % 2**32 for k, step in zip(key, (0x9E3779B9, 0xBB67AE85))]
    return x


@pytest.mark.parametrize("workgroup", [False, True])
def test_random_numbers(workgroup):
    seed = 0x12345_6789ABCD
    offsets = (np.arange(64, dtype=I32) * 977).reshape(4, 16)
    words = np.array([philox((int(n), 0, 0, 0), seed) for n in offsets.ravel()], U32)
    four = tuple(np.ascontiguousarray(words[:, i]).view(I32).reshape(4, 16) for i in range(4))
    folded = np.where(four[0] < 0, -four[0] - 1, four[0])
    uniform = folded.astype(F32) * F32(4.6566127342e-10)
    check(
        lambda n: (*xl.randint4x(seed, n), xl.randint(seed, n), xl.rand(seed, n)),
        [offsets],
        (*four, four[0], uniform),
        workgroup,
    )


def test_distributions():
    @xegpu_py.jit(engine="jit")
    def draw(U, N):
        at = xl.program_id(0) * 64 + xl.arange(64)
        xl.store(U + at, xl.rand(7, at))
        xl.store(N + at, xl.randn(7, at))

    u, n = np.zeros((2, 4096), F32)
    draw[64](u, n)
    assert u.min() >= 0 and u.max() < 1
    assert abs(u.mean() - 0.5) < 0.02 and abs(u.var() - 1 / 12) < 0.01
    assert abs(n.mean()) < 0.05 and abs(n.var() - 1) < 0.06
    assert len(np.unique(u)) > 4000


def test_seeds_that_are_known_only_as_the_kernel_runs():
    offsets = np.arange(16, dtype=I32).reshape(1, 16)
    seed = np.array([[5]], np.int64)
    expected = np.array([philox((int(n), 0, 0, 0), 5)[0] for n in offsets.ravel()], U32).view(I32).reshape(1, 16)
    check(lambda n, s: xl.randint(s[0, 0], n), [offsets, seed], expected)
