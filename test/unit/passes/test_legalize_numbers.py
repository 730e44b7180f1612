"""Arithmetic on elements without instructions for it: each result is the exact one, rounded once."""

import operator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from numerics.exact import FORMATS, nearest, value

import xegpu_py
from xegpu_py.numerics import log, sqrt
from xegpu_py.runtime.host_arrays import DTYPES

LANES = 64
PRECISIONS = {"bf16": "bf", "f8E5M2": "bf8", "f8E4M3FN": "hf8"}
BINARY = {"addf": operator.add, "subf": operator.sub, "mulf": operator.mul, "divf": operator.truediv}


def elementwise(body, kinds, result, target="pvcxt"):
    """A kernel that makes `%r` of vectors `%a0`, `%a1` and so on, 64 elements a workgroup."""
    settings = "#xegpu.tdesc_attr<boundary_check = false>"
    kinds = [*kinds, result]
    names = ", ".join(f"%m{i}: memref<?x{t}>" for i, t in enumerate(kinds))
    lines = [f"gpu.module @m {{ gpu.func @k({names}) kernel {{", "%x = gpu.block_id x"]
    lines += [f"%lanes = arith.constant {LANES} : index", "%at = arith.muli %x, %lanes : index"]
    for i, t in enumerate(kinds):
        desc = f"!xegpu.tensor_desc<{LANES}x{t}, {settings}>"
        lines.append(f"%d{i} = xegpu.create_nd_tdesc %m{i}[%at] {{mode = vc}} : memref<?x{t}> -> {desc}")
        vector = f"vector<{LANES}x{t}>"
        if i < len(kinds) - 1:
            lines.append(f"%a{i} = xegpu.load_nd %d{i} {{mode = vc}} : {desc} -> {vector}")
        else:
            lines += [body, f"xegpu.store_nd %r, %d{i} {{mode = vc}} : {vector}, {desc}"]
    return xegpu_py.compile("\n".join([*lines, "gpu.return", "} }"]), target=target)


def apply(body, arrays, kinds, result, target="pvcxt"):
    out = np.zeros(len(arrays[0]), DTYPES[result])
    elementwise(body, kinds, result, target)(*arrays, out, grid=len(out) // LANES)
    return out


def patterns(kind, rows):
    """Bit patterns for `rows` operands: all pairs of a byte's, else random ones and near ones."""
    if kind.startswith("f8") and rows == 2:
        a, b = np.divmod(np.arange(65536), 256)
        return a.astype(np.uint8), b.astype(np.uint8)
    rng = np.random.default_rng(3)
    bits = 8 * np.dtype(DTYPES[kind]).itemsize
    exponent, mantissa, _ = FORMATS[PRECISIONS[kind]]
    first = rng.integers(0, 1 << bits, 8192)
    near = first ^ rng.integers(0, 1 << (mantissa + 3), 8192) ^ (rng.integers(0, 2, 8192) << (exponent + mantissa))
    others = [np.where(rng.integers(0, 2, 8192), near, rng.integers(0, 1 << bits, 8192)) for _ in range(rows - 1)]
    return tuple(v.astype(f"u{bits // 8}") for v in (first, *others))


def finite(bits, precision):
    """A finite number as a fraction and the sign of its zero, or None."""
    found = value(int(bits), precision)
    if isinstance(found, Fraction):
        return found
    return Fraction(0) if found == 0 else None


def check(found, operands, precision, exact):
    """Every result of finite operands that is not zero is the exact one, rounded once."""
    seen = 0
    for bits, *given in zip(found.tolist(), *(o.tolist() for o in operands)):
        numbers = [finite(g, precision) for g in given]
        if None in numbers:
            continue
        try:
            wanted = exact(*numbers)
        except ZeroDivisionError:
            continue
        if wanted != 0:
            assert bits == nearest(wanted, precision), (given, bits)
            seen += 1
        else:
            assert value(bits, precision) == 0
    assert seen > 1000


@pytest.mark.each_value
@pytest.mark.parametrize("kind", PRECISIONS)
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(kind, name):
    operands = patterns(kind, 2)
    dtype = np.dtype(DTYPES[kind])
    body = f"%r = arith.{name} %a0, %a1 : vector<{LANES}x{kind}>"
    found = apply(body, [o.view(dtype) for o in operands], [kind, kind], kind)
    check(found.view(operands[0].dtype), operands, PRECISIONS[kind], BINARY[name])


@pytest.mark.each_value
@pytest.mark.parametrize("kind", PRECISIONS)
@pytest.mark.parametrize("name", ["vector.fma", "math.fma"])
def test_fma(kind, name):
    operands = patterns(kind, 3)
    dtype = np.dtype(DTYPES[kind])
    body = f"%r = {name} %a0, %a1, %a2 : vector<{LANES}x{kind}>"
    found = apply(body, [o.view(dtype) for o in operands], [kind] * 3, kind)
    check(found.view(operands[0].dtype), operands, PRECISIONS[kind], lambda a, b, c: a * b + c)


def test_fma_of_a_tie_and_a_little_more():
    # 1.0078125 * 1.5 = 1.51171875, halfway between two bf16; rounded to f32 first, a sum with 2^-40 would stay there.
    a, b, c = (np.full(LANES, v, ml_dtypes.bfloat16) for v in (1.0078125, 1.5, 2.0**-40))
    for little in (c, -c):
        found = apply("%r = vector.fma %a0, %a1, %a2 : vector<64xbf16>", [a, b, little], ["bf16"] * 3, "bf16")
        wanted = nearest(Fraction(1.51171875) + Fraction(float(little[0])), "bf")
        assert (found.view("u2") == wanted).all()


NARROWED = [("bf16", "f64"), ("f8E5M2", "f32"), ("f8E5M2", "f64"), ("f8E4M3FN", "f64")]


@pytest.mark.parametrize(("kind", "source"), NARROWED)
def test_truncation_rounds_once(kind, source):
    precision = PRECISIONS[kind]
    rng = np.random.default_rng(5)
    width = np.dtype(DTYPES[kind]).itemsize
    bits = rng.integers(0, 1 << (8 * width - 1), 4096)
    # Ties, and numbers just beside them.
    middles = []
    for b in bits.tolist():
        low, high = value(b, precision), value(b + 1, precision)
        fine = isinstance(low, Fraction) and isinstance(high, Fraction)
        middle = float((low + high) / 2) if fine else 0.0
        by = np.float32(2.0**-20) if source == "f32" else 2.0**-50
        middles.append(middle * (1 + by * rng.integers(-1, 2)))
    numbers = np.array(middles, source.replace("f", "float"))
    body = f"%r = arith.truncf %a0 : vector<{LANES}x{source}> to vector<{LANES}x{kind}>"
    found = apply(body, [numbers], [source], kind).view(f"u{width}")
    wanted = [nearest(Fraction(float(n)), precision) for n in numbers]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.each_value
@pytest.mark.parametrize(("kind", "target"), [("i32", "pvcxt"), ("i64", "pvcxt"), ("i64", "dg2")])
@pytest.mark.parametrize("name", ["sitofp", "uitofp"])
@pytest.mark.parametrize("result", ["bf16", "tf32"])
def test_integers_round_once(kind, target, name, result):
    """Numbers half-way between two results, and those near them."""
    rng, bits = np.random.default_rng(5), int(kind[1:])
    mantissa = {"bf16": 7, "tf32": 10}[result]
    at = rng.integers(mantissa + 1, bits - mantissa - 2, 8192)
    numbers = ((rng.integers(1 << mantissa, 2 << mantissa, 8192) * 2 + 1) << (at - 1)) + rng.integers(-1, 2, 8192)
    numbers += rng.integers(-1, 2, 8192) << (at * rng.random(8192) / 2).astype(np.int64)
    numbers = np.where(rng.integers(0, 2, 8192), numbers, -numbers).astype(f"i{bits // 8}")
    meant = numbers if name == "sitofp" else numbers.view(f"u{bits // 8}")
    v = f"vector<{LANES}x{{}}>".format
    if result == "bf16":
        body = f"%r = arith.{name} %a0 : {v(kind)} to {v(result)}"
        found = apply(body, [numbers], [kind], result, target).view("u2")
        wanted = [nearest(Fraction(int(n)), "bf") for n in meant]
    else:
        body = f"%n = arith.{name} %a0 : {v(kind)} to {v(result)}\n%r = arith.extf %n : {v(result)} to {v('f32')}"
        found = apply(body, [numbers], [kind], "f32", target).view("u4")
        wanted = [nearest(Fraction(int(n)), "tf32") << 13 for n in meant]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("op", ["addf", "subf", "mulf", "divf", "fma", "sqrt", "log2"])
def test_results_of_tf32_are_rounded(op):
    """Once; those of sqrt and log2 are rounded to f32 before."""
    rng = np.random.default_rng(7)
    a, b, c = ((rng.standard_normal(1024) * 4).astype(np.float32).view("u4") & ~np.uint32(0x1FFF) for _ in range(3))
    a &= 0x7FFFFFFF
    x, y, z = ([value(int(n) >> 13, "tf32") for n in bits] for bits in (a, b, c))
    operands = "%t0, %t1"
    if op in BINARY:
        wanted = [BINARY[op](*pair) for pair in zip(x, y)]
    elif op == "fma":
        operands, wanted = "%t0, %t1, %t2", [p * q + r for p, q, r in zip(x, y, z)]
    else:
        operands, function = "%t0", {"sqrt": sqrt, "log2": log}[op]
        wanted = [Fraction(float(n)) for n in function(a.view("f4"), "f")]
    single, narrow = f"vector<{LANES}xf32>", f"vector<{LANES}xtf32>"
    lines = [f"%t{i} = arith.truncf %a{i} : {single} to {narrow}" for i in range(3)]
    lines.append(f"%t = {'arith' if op in BINARY else 'math'}.{op} {operands} : {narrow}")
    found = apply(
        "\n".join([*lines, f"%r = arith.extf %t : {narrow} to {single}"]),
        [v.view("f4") for v in (a, b, c)],
        ["f32"] * 3,
        "f32",
    ).view("u4")
    np.testing.assert_array_equal(found, [nearest(n, "tf32") << 13 for n in wanted])


@pytest.mark.parametrize("kind", PRECISIONS)
def test_comparisons_and_signs(kind):
    a, b = patterns(kind, 2)
    dtype = np.dtype(DTYPES[kind])
    x, y = a.view(dtype).astype(np.float32), b.view(dtype).astype(np.float32)
    body = (
        f"%m = arith.cmpf olt, %a0, %a1 : vector<{LANES}x{kind}>\n"
        f"%r = arith.extui %m : vector<{LANES}xi1> to vector<{LANES}xi8>"
    )
    found = apply(body, [a.view(dtype), b.view(dtype)], [kind, kind], "i8")
    np.testing.assert_array_equal(found, x < y)
    found = apply(f"%r = arith.negf %a0 : vector<{LANES}x{kind}>", [a.view(dtype)], [kind], kind)
    with np.errstate(invalid="ignore"):
        number = ~np.isnan(x)
    np.testing.assert_array_equal(found.view(a.dtype)[number], (-a.view(dtype)).view(a.dtype)[number])


DIVISIONS = {
    "divsi": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "remsi": lambda a, b: a - abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) * b,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
    "ceildivui": lambda a, b: -(-a // b),
}


@pytest.mark.each_value
@pytest.mark.parametrize(("kind", "target"), [("i64", "pvcxt"), ("i32", "dg2"), ("i16", "dg2")])
@pytest.mark.parametrize("name", DIVISIONS)
def test_division(kind, target, name):
    bits = int(kind[1:])
    rng = np.random.default_rng(9)
    shift = rng.integers(0, bits, (2, 256))
    a, b = (rng.integers(0, 1 << 63, (2, 256), dtype=np.uint64) * 2 >> (64 - bits)) >> shift.astype(np.uint64)
    a, b = (v.astype(f"u{bits // 8}") for v in (a, np.maximum(b, 1)))
    if "u" not in name:
        a[:128], b[64:192] = -a[:128], -b[64:192]
        a, b = a.view(f"i{bits // 8}"), b.view(f"i{bits // 8}")
    held = [v.view(f"i{bits // 8}") for v in (a, b)]
    found = apply(f"%r = arith.{name} %a0, %a1 : vector<{LANES}x{kind}>", held, [kind, kind], kind, target)
    wanted = [DIVISIONS[name](int(x), int(y)) & ((1 << bits) - 1) for x, y in zip(a, b)]
    np.testing.assert_array_equal(found.view(f"u{bits // 8}"), np.array(wanted, np.uint64).astype(f"u{bits // 8}"))


@pytest.mark.parametrize("kind", PRECISIONS)
def test_reductions_round_once(kind):
    rng = np.random.default_rng(2)
    numbers = rng.integers(-8, 9, 256).astype(DTYPES[kind])
    body = f"""%s = vector.reduction <add>, %a0 : vector<{LANES}x{kind}> into {kind}
      %r = vector.broadcast %s : {kind} to vector<{LANES}x{kind}>"""
    found = apply(body, [numbers], [kind], kind).reshape(-1, LANES)
    # The sums are exact in f32.
    sums = numbers.astype(np.float64).reshape(-1, LANES).sum(1)
    np.testing.assert_array_equal(found, np.repeat(sums.astype(DTYPES[kind])[:, None], LANES, 1))


INTEGERS = (0, 1, -1, 2, 3, 5, 100, -100, 127, -128, 1000, 40000, 61439, 61440, -61440, 70000, 2**31 - 1, -(2**31))


@pytest.mark.parametrize("source", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("name", ["sitofp", "uitofp"])
def test_integers_to_bf8(source, name):
    """Through f64, which represents all of them."""
    x = np.resize(np.array(INTEGERS), LANES).astype(DTYPES[source])
    body = f"%r = arith.{name} %a0 : vector<{LANES}x{source}> to vector<{LANES}xf8E5M2>"
    held = x if name == "sitofp" else x.view(f"u{x.itemsize}")
    with np.errstate(over="ignore"):
        wanted = held.astype(np.float64).astype(ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(apply(body, [x], [source], "f8E5M2").view("u1"), wanted.view("u1"))


@pytest.mark.parametrize("to", ["i8", "i16", "i32", "i64"])
def test_bf8_to_integers(to):
    x = np.resize(np.array([0, -0.0, 0.75, 1, -1, 1.75, -2.5, 3, 48, -96, 112]), LANES).astype(ml_dtypes.float8_e5m2)
    found = apply(f"%r = arith.fptosi %a0 : vector<{LANES}xf8E5M2> to vector<{LANES}x{to}>", [x], ["f8E5M2"], to)
    np.testing.assert_array_equal(found, np.trunc(x.astype(np.float64)).astype(found.dtype))


@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log2", "log10", "log1p"])
def test_functions_of_bf8(name):
    """Functions of all numbers, computed in f32 and rounded."""
    x = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2)
    kind = f"vector<{LANES}xf8E5M2>"
    found = apply(f"%r = math.{name} %a0 : {kind}", [x], ["f8E5M2"], "f8E5M2")
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x.astype(np.float64)).astype(ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))
