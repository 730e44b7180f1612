"""Each op that kernels may contain, lowered, run, and compared with numpy."""

import math

import ml_dtypes
import numpy as np
import pytest

from xegpu_py.runtime.host_arrays import DTYPES

from .kernels import apply

CASES = {}


def case(name, body, result, arguments, expected, tolerance=None):
    assert name not in CASES, name
    CASES[name] = (body, result, arguments, np.asarray(expected).ravel(), tolerance)


def _cases():
    bf = ml_dtypes.bfloat16
    rng = np.random.default_rng(0)

    i = rng.integers(-1000, 1000, 48).astype(np.int32)
    j = rng.integers(1, 100, 48).astype(np.int32)
    f = rng.standard_normal(48).astype(np.float32) * 3
    g = rng.standard_normal(48).astype(np.float32)
    V = "vector<48xi32>"
    F = "vector<48xf32>"
    for op, fn in {
        "addi": lambda a, b: a + b,
        "subi": lambda a, b: a - b,
        "muli": lambda a, b: a * b,
        "andi": lambda a, b: a & b,
        "ori": lambda a, b: a | b,
        "xori": lambda a, b: a ^ b,
        "maxsi": np.maximum,
        "minsi": np.minimum,
        "maxui": lambda a, b: np.maximum(a.view("u4"), b.view("u4")).view("i4"),
        "minui": lambda a, b: np.minimum(a.view("u4"), b.view("u4")).view("i4"),
        "divsi": lambda a, b: (a / b).astype(int).astype("i4"),
        "remsi": lambda a, b: (a - (a / b).astype(int) * b).astype("i4"),
        "floordivsi": lambda a, b: a // b,
        "ceildivsi": lambda a, b: -(-a // b),
        "divui": lambda a, b: (a.view("u4") // b.view("u4")).view("i4"),
        "remui": lambda a, b: (a.view("u4") % b.view("u4")).view("i4"),
    }.items():
        case(op, f"%r = arith.{op} %a0, %a1 : {V}", V, [(V, i), (V, j)], fn(i, j))
    sh = (j % 31).astype(np.int32)
    case("shli", f"%r = arith.shli %a0, %a1 : {V}", V, [(V, i), (V, sh)], i << sh)
    case("shrsi", f"%r = arith.shrsi %a0, %a1 : {V}", V, [(V, i), (V, sh)], i >> sh)
    case("shrui", f"%r = arith.shrui %a0, %a1 : {V}", V, [(V, i), (V, sh)], (i.view("u4") >> sh.view("u4")).view("i4"))
    for op, fn in {
        "addf": np.add,
        "subf": np.subtract,
        "mulf": np.multiply,
        "divf": np.divide,
        "maximumf": np.maximum,
        "minimumf": np.minimum,
        "maxnumf": np.fmax,
        "minnumf": np.fmin,
    }.items():
        for T, dt in (("f32", np.float32), ("f16", np.float16), ("bf16", bf), ("f64", np.float64)):
            W = f"vector<48x{T}>"
            if T == "f64" and op in ("x",):
                continue
            a, b = f.astype(dt), g.astype(dt)
            a[3] = np.nan
            b[5] = np.nan
            with np.errstate(all="ignore"):
                ref = fn(a.astype(np.float64), b.astype(np.float64)).astype(dt) if T != "f32" else fn(a, b)
            case(f"{op} {T}", f"%r = arith.{op} %a0, %a1 : {W}", W, [(W, a), (W, b)], ref)
    case("const sub", f"%c = arith.constant dense<5> : {V}\n%r = arith.subi %c, %a0 : {V}", V, [(V, i)], 5 - i)
    case(
        "sub const",
        f"%c = arith.constant dense<5.5> : {F}\n%r = arith.subf %a0, %c : {F}",
        F,
        [(F, f)],
        f - np.float32(5.5),
    )
    case(
        "bf const",
        "%c = arith.constant dense<1.5> : vector<48xbf16>\n%r = arith.addf %c, %a0 : vector<48xbf16>",
        "vector<48xbf16>",
        [("vector<48xbf16>", f.astype(bf))],
        (f.astype(bf).astype(float) + 1.5).astype(bf),
    )
    case(
        "dense",
        "%c = arith.constant dense<[1,2,3,3]> : vector<4xi32>\n%r = arith.addi %a0, %c : vector<4xi32>",
        "vector<4xi32>",
        [("vector<4xi32>", i[:4])],
        i[:4] + np.array([1, 2, 3, 3]),
    )
    for p, fn in {
        "slt": np.less,
        "sge": np.greater_equal,
        "eq": np.equal,
        "ne": np.not_equal,
        "ult": lambda a, b: a.view("u4") < b.view("u4"),
    }.items():
        case(
            "cmpi " + p,
            f"%m = arith.cmpi {p}, %a0, %a1 : {V}\n%r = arith.extui %m : vector<48xi1> to {V}",
            V,
            [(V, i), (V, j)],
            fn(i, j).astype("i4"),
        )
    a = f.copy()
    a[3] = np.nan
    for p, fn in {
        "olt": np.less,
        "oge": np.greater_equal,
        "oeq": np.equal,
        "une": np.not_equal,
        "uno": lambda x, y: np.isnan(x) | np.isnan(y),
        "ord": lambda x, y: ~(np.isnan(x) | np.isnan(y)),
        "ult": lambda x, y: ~(x >= y),
        "ueq": lambda x, y: ~((x < y) | (x > y)),
        "one": lambda x, y: (x < y) | (x > y),
    }.items():
        case(
            "cmpf " + p,
            f"%m = arith.cmpf {p}, %a0, %a1 : {F}\n%r = arith.extui %m : vector<48xi1> to {V}",
            V,
            [(F, a), (F, g)],
            fn(a, g).astype("i4"),
        )
    case(
        "select",
        f"%m = arith.cmpf olt, %a0, %a1 : {F}\n%r = arith.select %m, %a0, %a1 : vector<48xi1>, {F}",
        F,
        [(F, f), (F, g)],
        np.where(f < g, f, g),
    )
    for s, d, op in [
        ("i32", "i64", "extsi"),
        ("i32", "i64", "extui"),
        ("i64", "i32", "trunci"),
        ("i32", "i8", "trunci"),
        ("i8", "i32", "extsi"),
        ("i8", "i32", "extui"),
        ("i32", "f32", "sitofp"),
        ("i32", "bf16", "sitofp"),
        ("i32", "f16", "uitofp"),
        ("f32", "i32", "fptosi"),
        ("f32", "i8", "fptosi"),
        ("bf16", "f32", "extf"),
        ("f16", "f32", "extf"),
        ("f32", "bf16", "truncf"),
        ("f32", "f16", "truncf"),
        ("f64", "f32", "truncf"),
        ("f32", "f64", "extf"),
        ("f16", "f64", "extf"),
        ("f32", "f8E5M2", "truncf"),
        ("f16", "f8E5M2", "truncf"),
        ("f8E5M2", "f32", "extf"),
    ]:
        S, D = f"vector<48x{s}>", f"vector<48x{d}>"
        src = (i % 100).astype(DTYPES[s]) if s[0] == "i" else f.astype(DTYPES[s])
        x = src.view("u" + str(src.itemsize)) if "ui" in op else src
        ref = x.astype(DTYPES[d]) if d != "f8E5M2" else src.astype(np.float16).astype(DTYPES[d])
        case(f"{op} {s}->{d}", f"%r = arith.{op} %a0 : {S} to {D}", D, [(S, src)], ref)
    for op, fn in {
        "exp": np.exp,
        "exp2": np.exp2,
        "sqrt": lambda x: np.sqrt(x),
        "tanh": np.tanh,
        "sin": np.sin,
        "cos": np.cos,
        "floor": np.floor,
        "ceil": np.ceil,
        "roundeven": np.rint,
        "absf": np.abs,
        "expm1": np.expm1,
    }.items():
        x = np.abs(f) if op in ("sqrt",) else f
        case("math." + op, f"%r = math.{op} %a0 : {F}", F, [(F, x)], fn(x.astype(np.float64)).astype(np.float32), 2e-7)
    for op, fn in {
        "log": np.log,
        "log2": np.log2,
        "log10": np.log10,
        "log1p": np.log1p,
        "rsqrt": lambda x: 1 / np.sqrt(x),
    }.items():
        x = np.abs(f)
        case("math." + op, f"%r = math.{op} %a0 : {F}", F, [(F, x)], fn(x.astype(np.float64)).astype(np.float32), 1e-6)
    case("erf", f"%r = math.erf %a0 : {F}", F, [(F, f)], np.array([math.erf(v) for v in f]), 3e-7)
    h = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 3.7, -3.7] * 6, np.float32)
    case("round", f"%r = math.round %a0 : {F}", F, [(F, h)], np.sign(h) * np.floor(np.abs(h.astype(float)) + 0.5))
    case("powf", f"%r = math.powf %a0, %a1 : {F}", F, [(F, np.abs(f)), (F, g)], np.power(np.abs(f), g), 3e-6)
    case("fma", f"%r = math.fma %a0, %a1, %a0 : {F}", F, [(F, f), (F, g)], (f.astype(float) * g + f).astype("f4"))
    for op, fn in {"add": np.sum, "mul": np.prod, "maxnumf": np.max, "minimumf": np.min}.items():
        case(
            "reduction " + op,
            f"%s = vector.reduction <{op}>, %a0 : {F} into f32\n%r = vector.broadcast %s : f32 to vector<1xf32>",
            "vector<1xf32>",
            [(F, f)],
            fn(f),
            1e-5,
        )
    M = "vector<6x8xf32>"
    m = f.reshape(6, 8)
    case("transpose", f"%r = vector.transpose %a0, [1, 0] : {M} to vector<8x6xf32>", "vector<8x6xf32>", [(M, f)], m.T)
    case("extract", f"%r = vector.extract %a0[2] : vector<8xf32> from {M}", "vector<8xf32>", [(M, f)], m[2])
    case(
        "extract1",
        f"%s = vector.extract %a0[2,3] : f32 from {M}\n%r = vector.broadcast %s : f32 to vector<5xf32>",
        "vector<5xf32>",
        [(M, f)],
        np.full(5, m[2, 3]),
    )
    ins = m.copy()
    ins[1] = g[:8]
    case(
        "insert", f"%r = vector.insert %a1, %a0[1] : vector<8xf32> into {M}", M, [(M, f), ("vector<8xf32>", g[:8])], ins
    )
    case(
        "ess",
        f"%r = vector.extract_strided_slice %a0 {{offsets=[1,2],sizes=[3,4],strides=[1,1]}} : {M} to vector<3x4xf32>",
        "vector<3x4xf32>",
        [(M, f)],
        m[1:4, 2:6],
    )
    ins = m.copy()
    ins[2:4, 4:8] = g[:8].reshape(2, 4)
    case(
        "iss",
        f"%r = vector.insert_strided_slice %a1, %a0 {{offsets=[2,4],strides=[1,1]}} : vector<2x4xf32> into {M}",
        M,
        [(M, f), ("vector<2x4xf32>", g[:8])],
        ins,
    )
    case(
        "shuffle",
        "%r = vector.shuffle %a0, %a1 [3,0,9,8] : vector<8xf32>, vector<8xf32>",
        "vector<4xf32>",
        [("vector<8xf32>", f[:8]), ("vector<8xf32>", g[:8])],
        [f[3], f[0], g[1], g[0]],
    )
    case(
        "interleave",
        "%r = vector.interleave %a0, %a1 : vector<24xf16> -> vector<48xf16>",
        "vector<48xf16>",
        [("vector<24xf16>", f[:24].astype("f2")), ("vector<24xf16>", g[:24].astype("f2"))],
        np.stack([f[:24], g[:24]], 1).astype("f2"),
    )
    case(
        "interleave f64",
        "%r = vector.interleave %a0, %a1 : vector<24xf64> -> vector<48xf64>",
        "vector<48xf64>",
        [("vector<24xf64>", f[:24].astype("f8")), ("vector<24xf64>", g[:24].astype("f8"))],
        np.stack([f[:24], g[:24]], 1).astype("f8"),
    )
    case(
        "deinterleave",
        "%r, %q = vector.deinterleave %a0 : vector<48xf32> -> vector<24xf32>",
        "vector<24xf32>",
        [(F, f)],
        f[::2],
    )
    case(
        "broadcast",
        f"%r = vector.broadcast %a0 : vector<8xf32> to {M}",
        M,
        [("vector<8xf32>", f[:8])],
        np.broadcast_to(f[:8], (6, 8)),
    )
    case(
        "broadcast1",
        f"%r = vector.broadcast %a0 : vector<6x1xf32> to {M}",
        M,
        [("vector<6x1xf32>", f[:6])],
        np.broadcast_to(f[:6, None], (6, 8)),
    )
    case(
        "multi_reduction",
        f"%z = arith.constant dense<0.0> : vector<6xf32>\n"
        f"%r = vector.multi_reduction <add>, %a0, %z [1] : {M} to vector<6xf32>",
        "vector<6xf32>",
        [(M, f)],
        m.sum(1),
        1e-5,
    )
    case(
        "multi_reduction0",
        f"%z = arith.constant dense<0.0> : vector<8xf32>\n"
        f"%r = vector.multi_reduction <add>, %a0, %z [0] : {M} to vector<8xf32>",
        "vector<8xf32>",
        [(M, f)],
        m.sum(0),
        1e-5,
    )
    case(
        "create_mask",
        f"%c = arith.constant 3 : index\n"
        f"%c5 = arith.constant 5 : index\n"
        f"%m = vector.create_mask %c, %c5 : vector<6x8xi1>\n"
        f"%z = arith.constant dense<0.0> : {M}\n"
        f"%r = arith.select %m, %a0, %z : vector<6x8xi1>, {M}",
        M,
        [(M, f)],
        np.where((np.arange(6)[:, None] < 3) & (np.arange(8) < 5), m, 0),
    )
    case("bitcast", f"%r = vector.bitcast %a0 : {F} to vector<96xi16>", "vector<96xi16>", [(F, f)], f.view("i2"))
    case(
        "muli i64",
        "%r = arith.muli %a0, %a1 : vector<8xi64>",
        "vector<8xi64>",
        [("vector<8xi64>", np.arange(8) * 123456789012345), ("vector<8xi64>", np.arange(8) * -9876543210)],
        (np.arange(8) * 123456789012345) * (np.arange(8) * -9876543210),
    )
    case(
        "step",
        "%s = vector.step : vector<20xindex>\n%r = arith.index_cast %s : vector<20xindex> to vector<20xi32>",
        "vector<20xi32>",
        [],
        np.arange(20),
    )


_cases()


@pytest.mark.parametrize("name", CASES)
def test_op(name):
    body, result, arguments, expected, tolerance = CASES[name]
    got = apply(body, result, arguments)
    if tolerance is not None:
        np.testing.assert_allclose(got.astype(float), expected.astype(float), rtol=tolerance, atol=tolerance)
    else:
        # numpy compares NaNs of its own types alone.
        wide = got.astype(float) if got.dtype.kind not in "iu" else got
        np.testing.assert_array_equal(wide, expected.astype(wide.dtype))
