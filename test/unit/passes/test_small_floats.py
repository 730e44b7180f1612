"""Rounding to bf8 and f16, to nearest and stochastically, against ml_dtypes and the golden srnd."""

from fractions import Fraction
from functools import partial

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.numerics import fcvt, srnd
from xegpu_py.numerics.expansions import evaluate
from xegpu_py.runtime.host_arrays import DTYPES

from .kernels import apply

BF8 = ml_dtypes.float8_e5m2
LANES = 128


def in_pieces(body, types, result, *arrays, **options):
    """Run ops on vectors of 128, piece by piece."""
    made = []
    for at in range(0, len(arrays[0]), LANES):
        given = [(f"vector<{LANES}x{t}>", a[at : at + LANES]) for t, a in zip(types, arrays)]
        made.append(apply(body, f"vector<{LANES}x{result}>", given, **options))
    return np.concatenate(made)


@pytest.mark.parametrize("gpu", ["pvcxt", "dg2"])
def test_f32_to_bf8_is_rounded_once(gpu):
    """Also on dg2, which has no fcvt."""
    ends = np.arange(0x7C, dtype=np.uint8).view(BF8).astype(np.float32)
    halfway = (ends[1:] + ends[:-1]) / 2
    beside = [np.nextafter(halfway, np.float32(to)) for to in (np.inf, -np.inf)]
    # Numbers that f16 would round to a midpoint, and numbers near its greatest number.
    hidden = halfway * np.float32(1 + 2**-20)
    special = np.array([61439.9, 61440, 65519, 65520, 1e9, np.inf, np.nan, 1e-40, 2.0**-17, 2.0**-17 + 2.0**-40], "f4")
    x = np.concatenate([ends, halfway, *beside, hidden, special])
    x = np.concatenate([x, -x])
    x = np.concatenate([x, np.random.default_rng(0).standard_normal(-len(x) % LANES).astype(np.float32)])
    body = f"%r = arith.truncf %a0 : vector<{LANES}xf32> to vector<{LANES}xf8E5M2>"
    found = in_pieces(body, ["f32"], "f8E5M2", x, gpu=gpu)
    with np.errstate(over="ignore"):
        expected = x.astype(BF8)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(found.view("u1")[number], expected.view("u1")[number])
    assert np.isnan(found.astype(np.float32)[~number]).all()


def test_f16_to_bf8_of_all_numbers():
    x = np.arange(1 << 16, dtype=np.uint16)[::16].view(np.float16)
    x = np.concatenate([x, x.view("u2") + np.uint16(7)]).view(np.float16)
    found = in_pieces(f"%r = arith.truncf %a0 : vector<{LANES}xf16> to vector<{LANES}xf8E5M2>", ["f16"], "f8E5M2", x)
    with np.errstate(over="ignore"):
        expected = x.astype(BF8)
    number = ~np.isnan(x)
    np.testing.assert_array_equal(found.view("u1")[number], expected.view("u1")[number])


E4M3 = ml_dtypes.float8_e4m3fn
POSITIVE = np.arange(127, dtype=np.uint8).view(E4M3)


@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_f8e4m3fn(element):
    """Both conversions, of all numbers and around all places at which one of them becomes another."""
    dtype = np.dtype(DTYPES[element])
    every = np.arange(256, dtype=np.uint8).view(E4M3)
    wide = in_pieces(f"%r = arith.extf %a0 : vector<{LANES}xf8E4M3FN> to vector<{LANES}x{element}>", ["f8E4M3FN"],
                     element, every)  # fmt: skip
    np.testing.assert_array_equal(wide.astype(np.float64), every.astype(np.float64))
    ends = every[:127].astype(np.float64)
    ends = np.concatenate(
        [ends, (ends[1:] + ends[:-1]) / 2, [464, 480, 1e4, 65504, np.inf, np.nan, 2.0**-10, 2.0**-11]]
    )
    x = ends.astype(dtype)
    x = np.concatenate([np.nextafter(x, dtype.type(-1)), x, np.nextafter(x, dtype.type(1e4))]).astype(dtype)
    x = np.concatenate([x, -x, np.zeros(-2 * len(x) % LANES, dtype)])
    body = f"%r = arith.truncf %a0 : vector<{LANES}x{element}> to vector<{LANES}xf8E4M3FN>"
    found = in_pieces(body, [element], "f8E4M3FN", x)
    np.testing.assert_array_equal(found.view("u1"), [nearest_e4m3(float(n)) for n in x.astype(np.float64)])


def nearest_e4m3(number):
    """The pattern of the nearest number of f8E4M3FN, of two the even one; of what is nearer to 480 than to 448 NaN."""
    if np.isnan(number) or abs(number) > 464:
        return 0x7F
    size, above = Fraction(abs(number)), int(np.searchsorted(POSITIVE, abs(number)))
    found = min(
        range(max(above - 1, 0), min(above + 1, 127)),
        key=lambda p: (abs(Fraction(float(POSITIVE[p])) - size), p & 1),
    )
    return found | (0x80 if np.signbit(number) else 0)


@pytest.mark.parametrize("target", ["pvc", "pvcxt", "dg2"])
def test_f32_to_tf32(target):
    """fcvt's bits also where there is no such fcvt: around each rounding point, and of special numbers."""
    tops = np.array([0, 1, 0x3F80, 0x3F81, 0x7F7F, 0x007F, 0x0080, 0x7F80, 0x7FC0, 0x7FFF], np.uint32) << 16
    low = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x2FFF, 0x3000, 0x3001, 0xEFFF, 0xF000, 0xF001, 0xFFFF], "u4")
    x = (tops[:, None] | low).ravel()
    x = np.concatenate([x, x | np.uint32(1 << 31)])
    x = np.concatenate([x, np.random.default_rng(0).integers(0, 1 << 32, 9 * LANES - len(x), np.uint32)]).view("f4")
    body = f"""%t = arith.truncf %a0 : vector<{LANES}xf32> to vector<{LANES}xtf32>
%r = arith.extf %t : vector<{LANES}xtf32> to vector<{LANES}xf32>"""
    found = in_pieces(body, ["f32"], "f32", x, gpu=target)
    np.testing.assert_array_equal(found.view("u4"), fcvt(x, "tf32").view("u4"))


CALL = """
%r = func.call @llvm.genx.srnd.some(%a0, %a1) : (vector<128xSOURCE>, vector<128xRANDOM>) -> vector<128xRESULT>"""
DECLARED = "func.func private @llvm.genx.srnd.some(vector<128xSOURCE>, vector<128xRANDOM>) -> vector<128xRESULT>"


@pytest.mark.parametrize(
    ("source", "random", "result", "name"),
    [
        ("f16", "i8", "f8E5M2", "bf8"),
        ("f16", "i16", "f8E5M2", "bf8"),
        ("f16", "f16", "f8E5M2", "bf8"),
        ("f32", "i16", "f16", "hf"),
        ("f32", "i32", "f16", "hf"),
    ],
)
def test_srnd(source, random, result, name):
    rng = np.random.default_rng(1)
    count = 32 * LANES
    with np.errstate(over="ignore"):
        x = (rng.standard_normal(count) * 2.0 ** rng.integers(-26, 18, count)).astype(f"f{int(source[1:]) // 8}")
    x[:4] = np.inf, -np.inf, np.nan, 0
    width = int(random[1:]) // 8
    bits = rng.integers(0, 1 << 8 * width, count, dtype=np.uint64).astype(f"u{width}")

    def typed(text):
        return text.replace("SOURCE", source).replace("RANDOM", random).replace("RESULT", result)

    held = {"i8": "i1", "i16": "i2", "i32": "i4", "f16": "f2"}[random]
    body = typed(CALL)
    found = np.concatenate(
        [
            apply(
                body,
                f"vector<128x{result}>",
                [
                    (f"vector<128x{source}>", x[at : at + 128]),
                    (f"vector<128x{random}>", bits[at : at + 128].view(held)),
                ],
                declared=typed(DECLARED),
            )
            for at in range(0, count, LANES)
        ]
    )
    wide = bits.astype(f"u{x.itemsize}")
    expected = srnd(x, wide, name)
    np.testing.assert_array_equal(found.view(f"u{found.itemsize}"), expected.view(f"u{found.itemsize}"))


BAD = """gpu.module @m {{
  func.func private @{name}({types}) -> {result}
  gpu.func @k() kernel {{
    %x = arith.constant dense<1> : vector<16xi16>
    %f = arith.constant dense<1.0> : vector<16xf16>
    %r = func.call @{name}(%f, %x) : ({types}) -> {result}
    gpu.return
  }}
}}"""


@pytest.mark.parametrize(
    ("name", "result", "target", "message"),
    [
        ("llvm.genx.srnd", "vector<16xf16>", "pvcxt", "cannot round f16 to f16 with random bits of i16"),
        ("llvm.genx.srnd", "vector<8xf8E5M2>", "pvcxt", "must have the same shape"),
        ("llvm.genx.srnd", "vector<16xf8E5M2>", "pvc", "requires srnd, which target 'pvc' does not support"),
        ("srnd", "vector<16xf8E5M2>", "pvcxt", "calls undefined function 'srnd'"),
        ("llvm.genx.srnds", "vector<16xf8E5M2>", "pvcxt", "calls undefined function"),
    ],
)
def test_what_srnd_is_not(name, result, target, message):
    text = BAD.format(name=name, types="vector<16xf16>, vector<16xi16>", result=result)
    with pytest.raises(xegpu_py.DiagnosticError, match=message) as raised:
        xegpu_py.compile(text, target=target)
    assert raised.value.diagnostics[0].position.line == 6


OF_ALL_BF8 = {
    "math.log10": partial(evaluate, "math.log10"),
    "math.log1p": partial(evaluate, "math.log1p"),
    "math.expm1": partial(evaluate, "math.expm1"),
    "math.exp": partial(evaluate, "math.exp"),
    "math.tanh": partial(evaluate, "math.tanh"),
    "arith.negf": None,
    "math.absf": None,
}


@pytest.mark.parametrize("op", OF_ALL_BF8)
def test_functions_of_all_bf8(op):
    """Computed in f32 and rounded; negf and absf change the sign bit alone, that of a NaN too."""
    x = np.arange(256, dtype=np.uint8).view(BF8)
    y = np.zeros(256, BF8)
    text = f"""gpu.module @k {{ gpu.func @f(%x: memref<256xf8E5M2>, %y: memref<256xf8E5M2>) kernel {{
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0] : memref<256xf8E5M2>, vector<256xf8E5M2>
      %r = {op} %v : vector<256xf8E5M2>
      vector.store %r, %y[%c0] : memref<256xf8E5M2>, vector<256xf8E5M2>
      gpu.return }} }}"""
    xegpu_py.compile(text, target="pvcxt", cache="off")(x, y)
    bits = x.view(np.uint8)
    if OF_ALL_BF8[op] is None:
        expected = bits ^ 0x80 if op == "arith.negf" else bits & 0x7F
    else:
        with np.errstate(all="ignore"):
            wide = OF_ALL_BF8[op](x.astype(np.float32))
            expected = np.where(np.isnan(wide), BF8(np.nan), wide.astype(BF8)).view(np.uint8)
        nan = np.isnan(wide)
        assert np.isnan(y.astype(np.float32)[nan]).all()
        y, expected = y[~nan], expected[~nan]
    assert np.array_equal(y.view(np.uint8), expected)
