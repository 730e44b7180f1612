"""DPAS against exact arithmetic on Python integers and rationals, from the specification's own loops."""

from fractions import Fraction
from math import inf, isinf, isnan

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from xegpu_py.numerics import dpas

from .exact import FORMATS, nearest, value

INTEGERS = [f"{s}{n}" for n in (1, 2, 4, 8) for s in "us"]
WIDTHS = {"bf": 16, "hf": 16, "tf32": 32, "bf8": 8, "hf8": 8, "e2m1": 4, "f": 32, "df": 64, "d": 32, "ud": 32}
NANS = {"f": 0x7FC00000, "hf": 0x7E00, "bf": 0x7FC0, "df": 0x7FF8 << 48}


def width(precision: str) -> int:
    return WIDTHS.get(precision) or int(precision[1:])


def field(data: bytes, index: int, bits: int) -> int:
    """Element `index` of packed elements, from the lowest bit on."""
    return int.from_bytes(data, "little") >> (index * bits) & ((1 << bits) - 1)


def ops(W: str, A: str) -> int:
    if W in WIDTHS:
        return {"tf32": 1, "df": 1, "bf": 2, "hf": 2, "e2m1": 8}.get(W, 4)
    return 4 if 8 in (width(W), width(A)) else 8


def integer(bits: int, precision: str) -> int:
    n = width(precision)
    return bits - (1 << n) if precision[0] == "s" and bits >> (n - 1) else bits


def operands(W: str, A: str, SD: int, RC: int, N: int, src1: bytes, src2: bytes):
    """Yield (row, column, depth, [(a, b) patterns]) in the order of the specification's pseudo code."""
    per_stage, w, a = ops(W, A), width(W), width(A)
    channel = max(w, 32)
    per_channel = channel // (per_stage * w) if W != "df" else 1
    for r in range(RC):
        for i in range(N):
            for d in range(SD):
                grf, n = d // per_channel, d % per_channel * per_stage
                start = (grf * N + i) * channel // 8
                data = src1[start : start + channel // 8]
                k = (r * SD + d) * per_stage
                yield r, i, d, [(field(src2, k + j, a), field(data, n + j, w)) for j in range(per_stage)]


def size1(W: str, A: str, SD: int, N: int) -> int:
    w = width(W)
    channel = max(w, 32)
    return -(-SD * ops(W, A) * w // channel) * N * channel // 8


def size2(W: str, A: str, SD: int, RC: int) -> int:
    return -(-RC * SD * ops(W, A) * width(A) // 8)


def rounded(terms: list[Fraction | float], name: str) -> int:
    """The pattern of the sum of terms, rounded once."""
    floats = [t for t in terms if isinstance(t, float) and t != 0]
    if any(isnan(t) for t in floats) or (inf in floats and -inf in floats):
        return NANS[name]
    exponent_bits, mantissa_bits, _ = FORMATS[name]
    if floats:
        infinity = ((1 << exponent_bits) - 1) << mantissa_bits
        return infinity | int(floats[0] < 0) << (exponent_bits + mantissa_bits)
    exact = sum((Fraction(t) for t in terms), Fraction(0))
    if exact == 0 and all(isinstance(t, float) for t in terms):
        return 1 << (exponent_bits + mantissa_bits)
    return nearest(exact, name)


def product(x: Fraction | float, y: Fraction | float) -> Fraction | float:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        negative_zero = x * y == 0 and (x < 0 or y < 0)
        return -0.0 if negative_zero else x * y
    if isnan(x) or isnan(y):
        return float("nan")
    for one, other in ((x, y), (y, x)):
        if isinstance(one, float) and isinf(one):
            if other == 0:
                return float("nan")
            return inf if (one > 0) == _positive(other) else -inf
    return Fraction(0) if _positive(x) == _positive(y) else -0.0


def _positive(x: Fraction | float) -> bool:
    return x > 0 or (x == 0 and isinstance(x, Fraction))


def kept(bits: int, name: str, flushed: list[str]) -> int:
    """A pattern; that of a zero of its sign if it is subnormal and its format is flushed."""
    exponent_bits, mantissa_bits, _ = FORMATS[name]
    if name not in flushed or bits >> mantissa_bits & ((1 << exponent_bits) - 1):
        return bits
    return bits >> (exponent_bits + mantissa_bits) << (exponent_bits + mantissa_bits)


def expected_floats(W, A, SD, RC, N, acc, src1, src2, dst_type, src0_type, model, flushed=()) -> list[int]:
    wide = "df" if W == "df" else "f"
    mask = 0xFFFFE000 if W == "tf32" else -1
    form = "f" if W == "tf32" else W
    form_a = "f" if A == "tf32" else A
    size = width(src0_type)
    start = [
        value(kept(field(acc[i * size // 8 :][: size // 8], 0, size), src0_type, flushed), src0_type)
        if acc is not None
        else Fraction(0)
        for i in range(RC * N)
    ]
    sums = [[v] for v in start]
    for r, i, _, pairs in operands(W, A, SD, RC, N, src1, src2):
        terms = sums[r * N + i]
        for a, b in pairs:
            # tf32 has the exponents of f.
            a = kept(a & mask, form_a, ["f"] if A == "tf32" and A in flushed else flushed)
            b = kept(b & mask, form, ["f"] if W == "tf32" and W in flushed else flushed)
            terms.append(product(value(a, form_a), value(b, form)))
            if model == "fma":
                terms[:] = [value(rounded(terms, wide), wide)]
        if model == "stage":
            terms[:] = [value(rounded(terms, wide), wide)]
    out = []
    for terms in sums:
        bits = rounded(terms, wide)
        if dst_type != wide:
            found = value(bits, wide)
            bits = rounded([found], dst_type)
        out.append(kept(bits, dst_type, flushed))
    return out


SPECIAL = {
    "f": [
        0,
        1,
        0x007FFFFF,
        0x00800000,
        0x3F800000,
        0x7F7FFFFF,
        0x7F800000,
        0x7FC00001,
        0x7F800001,
        0x33800000,
        0x4B000001,
    ],
    "hf": [0, 1, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7E01, 0x7C01],
    "bf": [0, 1, 0x7F, 0x80, 0x3F80, 0x7F7F, 0x7F80, 0x7FC1, 0x7F81],
    "bf8": [0, 1, 3, 4, 0x3C, 0x7B, 0x7C, 0x7D],
    "hf8": [0, 1, 7, 8, 0x38, 0x7E, 0x7F],
    "df": [0, 1, 0x3FF << 52, (0x7FE << 52) + 5, 0x7FF << 52, (0x7FF << 52) + 1, (1 << 52) - 1, (0x3FF << 52) + 1],
}
SPECIAL["tf32"] = SPECIAL["f"]


def patterns(rng: np.random.Generator, name: str, count: int, style: str) -> bytes:
    """Packed patterns: of any bits, of ordinary numbers near one, or with many special values."""
    bits = width(name)
    form = {"tf32": "f"}.get(name, name)
    if form not in FORMATS:
        return rng.integers(0, 256, count * bits // 8 + 1, np.uint8).tobytes()
    if bits < 8:
        return rng.integers(0, 256, count * bits // 8, np.uint8).tobytes()
    any_bits = rng.integers(0, 1 << bits, count, np.uint64) if bits < 64 else rng.integers(0, 1 << 64, count, np.uint64)
    exponent_bits, mantissa_bits, _ = FORMATS[form]
    bias = (1 << (exponent_bits - 1)) - 1
    exponents = rng.integers(max(bias - 6, 0), bias + 3, count).astype(np.uint64)
    near = (any_bits & np.uint64((1 << mantissa_bits) - 1)) | exponents << np.uint64(mantissa_bits)
    near |= (any_bits >> np.uint64(bits - 1)) << np.uint64(bits - 1)
    chosen = rng.choice(np.array(SPECIAL[form], np.uint64), count) | (
        rng.integers(0, 2, count).astype(np.uint64) << np.uint64(bits - 1)
    )
    pick = {"any": any_bits, "near": near, "special": np.where(rng.random(count) < 0.3, chosen, near)}[style]
    return pick.astype(f"<u{bits // 8}").tobytes()


def array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


@settings(max_examples=examples(150))
@given(
    W=st.sampled_from(INTEGERS),
    A=st.sampled_from(INTEGERS),
    SD=st.sampled_from([1, 2, 4, 8]),
    RC=st.integers(1, 8),
    N=st.sampled_from([8, 16]),
    seed=st.integers(0, 1 << 32),
    types=st.tuples(st.sampled_from(["d", "ud"]), st.sampled_from(["d", "ud"])),
    null=st.booleans(),
)
def test_integers(W, A, SD, RC, N, seed, types, null) -> None:
    rng = np.random.default_rng(seed)
    src1 = rng.integers(0, 256, size1(W, A, SD, N), np.uint8).tobytes()
    src2 = rng.integers(0, 256, size2(W, A, SD, RC), np.uint8).tobytes()
    acc = None if null else rng.integers(0, 256, RC * N * 4, np.uint8).tobytes()
    sums = [0 if null else int.from_bytes(acc[4 * i : 4 * i + 4], "little") for i in range(RC * N)]
    for r, i, _, pairs in operands(W, A, SD, RC, N, src1, src2):
        sums[r * N + i] += sum(integer(a, A) * integer(b, W) for a, b in pairs)
    found = dpas(
        None if null else array(acc), array(src1), array(src2),
        W=W, A=A, SD=SD, RC=RC, exec_size=N, dst_type=types[0], src0_type=types[1],
    )  # fmt: skip
    assert found.view(np.uint32).tolist() == [s % (1 << 32) for s in sums]


FLOATS = [("bf", "bf"), ("hf", "hf"), ("tf32", "tf32"), ("bf8", "bf8"), ("bf8", "hf8"), ("hf8", "bf8"), ("hf8", "hf8")]
FLOATS += [("e2m1", "e2m1")]
TYPES = {"bf": ["f", "bf"], "hf": ["f", "hf"], "e2m1": ["f", "bf"], "df": ["df"]}
FLUSHED = ("bf", "tf32", "bf8", "hf8", "e2m1")


@settings(max_examples=examples(120))
@given(
    pair=st.sampled_from([*FLOATS, ("df", "df")]),
    SD=st.sampled_from([1, 2, 4, 8]),
    RC=st.integers(1, 4),
    style=st.sampled_from(["any", "near", "special"]),
    model=st.sampled_from(["fma", "stage", "exact"]),
    seed=st.integers(0, 1 << 32),
    data=st.data(),
)
def test_floats(pair, SD, RC, style, model, seed, data) -> None:
    (W, A), N = pair, 8
    legal = TYPES.get(W, ["f"])
    dst_type, src0_type = data.draw(st.sampled_from(legal)), data.draw(st.sampled_from(legal))
    rng = np.random.default_rng(seed)
    k = SD * ops(W, A)
    src1 = patterns(rng, W, k * N, style)
    src2 = patterns(rng, A, RC * k, style)
    acc = data.draw(st.sampled_from([None, patterns(rng, src0_type, RC * N, style)]))
    flushed = data.draw(st.lists(st.sampled_from(FLUSHED), unique=True))
    found = dpas(
        None if acc is None else array(acc), array(src1), array(src2),
        W=W, A=A, SD=SD, RC=RC, exec_size=N, dst_type=dst_type, src0_type=src0_type, model=model, flushed=flushed,
    )  # fmt: skip
    expected = expected_floats(W, A, SD, RC, N, acc, src1, src2, dst_type, src0_type, model, flushed)
    assert [hex(v) for v in found.view(f"u{width(dst_type) // 8}")] == [hex(v) for v in expected]


def one(acc: float, a: list[float], b: list[float], model: str, W: str = "tf32") -> float:
    """A single sum of tf32 products."""
    src1 = np.zeros((8, 16), np.float32)
    src1[: len(b)] = np.array(b, np.float32)[:, None]
    src2 = np.zeros(8, np.float32)
    src2[: len(a)] = a
    start = np.full(16, acc, np.float32)
    out = dpas(
        start.view(np.uint8), src1.reshape(-1).view(np.uint8), src2.view(np.uint8),
        W=W, A=W, SD=8, RC=1, exec_size=16, dst_type="f", src0_type="f", model=model,
    )  # fmt: skip
    return float(out.view(np.float32)[0])


def test_models_differ_where_they_should() -> None:
    # Two halves of the last place: added to 2^24 one by one each is lost; their sum is not.
    assert one(2.0**24, [1, 1], [1, 1], "fma") == 2.0**24
    assert one(2.0**24, [1, 1], [1, 1], "stage") == 2.0**24
    assert one(2.0**24, [1, 1], [1, 1], "exact") == 2.0**24 + 2


def test_no_double_rounding() -> None:
    """2^-30 above a tie of f32, and far below the last bit of f64: rounding twice would round the tie to even."""
    acc, tiny = 1.0 + 2.0**-23, 2.0**-70
    assert one(1.0, [2.0**-24, tiny], [1.0, 1.0], "exact") == acc
    found = one(np.float32(2.0**30), [2.0**6 + 2.0**-4], [2.0**0], "fma")
    exact = Fraction(2) ** 30 + Fraction(2) ** 6 + Fraction(1, 16)
    assert found == float(value(nearest(exact, "f"), "f"))
    # A product whose last bit lies 60 places below the accumulator's first one.
    found = one(float(2.0**60), [2.0**36 * (1 + 2.0**-10)], [1 + 2.0**-10], "fma")
    exact = Fraction(2) ** 60 + Fraction(2) ** 36 * (1 + Fraction(1, 1024)) ** 2
    assert found == float(value(nearest(exact, "f"), "f"))


def test_threads_are_leading_dimensions() -> None:
    rng = np.random.default_rng(3)
    acc = rng.integers(0, 256, (5, 1, 256), np.uint8)
    src1 = rng.integers(0, 256, (1, 3, 512), np.uint8)
    src2 = rng.integers(0, 256, (5, 3, 200), np.uint8)
    kwargs = {"W": "bf", "A": "bf", "SD": 8, "RC": 4, "exec_size": 16, "dst_type": "f", "src0_type": "f"}
    found = dpas(acc, src1, src2, **kwargs)
    assert found.shape == (5, 3, 256)
    for i in range(5):
        for j in range(3):
            np.testing.assert_array_equal(found[i, j], dpas(acc[i, 0], src1[0, j], src2[i, j], **kwargs))


GOOD = {"W": "bf", "A": "bf", "SD": 8, "RC": 8, "exec_size": 16, "dst_type": "f", "src0_type": "f"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"W": "f"}, "'W' must be one of u1, s1"),
        ({"A": "bf16"}, "'A' must be one of"),
        ({"SD": 3}, "'SD' must be one of 1, 2, 4, 8, but got 3"),
        ({"RC": 9}, "'RC' must be one of 1, 2"),
        ({"RC": 0}, "'RC' must be one of"),
        ({"exec_size": 32}, "'exec_size' must be one of 8, 16, but got 32"),
        ({"model": "fast"}, "'model' must be one of fma, stage, exact, but got 'fast'"),
        ({"A": "hf"}, "precisions W = bf and A = hf cannot be multiplied"),
        ({"W": "u8"}, "precisions W = u8 and A = bf cannot be multiplied"),
        ({"dst_type": "hf"}, "'dst_type' must be f or bf with precision bf, but got 'hf'"),
        ({"src0_type": "d"}, "'src0_type' must be f or bf"),
        ({"W": "s4", "A": "u8"}, "'dst_type' must be d or ud with precision s4, but got 'f'"),
    ],
)
def test_illegal_arguments(change: dict[str, object], message: str) -> None:
    data = np.zeros(1024, np.uint8)
    with pytest.raises(ValueError, match=message):
        dpas(data, data, data, **{**GOOD, **change})


def test_illegal_operands() -> None:
    data = np.zeros(512, np.uint8)
    with pytest.raises(ValueError, match="'src1' must have 512 bytes, but has 511"):
        dpas(data, data[:511], data, **GOOD)
    with pytest.raises(ValueError, match="'acc' must have 512 bytes, but has 4"):
        dpas(data[:4], data, data, **GOOD)
    with pytest.raises(TypeError, match="'src2' must be an array of uint8, but got an array of float32"):
        dpas(data, data, data.view(np.float32), **GOOD)
