"""Ops of the reference evaluator against numpy and exact arithmetic, and the faults that it reports."""

import math
import operator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from numerics import exact

import xegpu_py
from xegpu_py import reference
from xegpu_py.ir.builtin import vector_of
from xegpu_py.numerics.formats import FLOATS
from xegpu_py.runtime.host_arrays import DTYPES

RNG = np.random.default_rng(7)


def evaluate(body, result, *arguments, attributes="", **launch):
    """The value of `%r`, computed from vectors (or memrefs) `%a0`, `%a1`, which are given as (type, array)."""
    shape, element = vector_of(result)
    memrefs = [(f"memref<{'x'.join(map(str, (*a.shape, vector_of(t)[1])))}>", t, a) for t, a in arguments]
    out = f"memref<{'x'.join(map(str, (*shape, element)))}>"
    params = ", ".join([*(f"%m{i}: {m}" for i, (m, _, _) in enumerate(memrefs)), f"%out: {out}"])
    zeros = ", ".join(["%c0"] * len(shape))
    loads = "".join(
        f"%a{i} = vector.load %m{i}[{', '.join(['%c0'] * a.ndim)}] : {m}, {t}\n" for i, (m, t, a) in enumerate(memrefs)
    )
    text = f"""gpu.module @k {{ gpu.func @f({params}) kernel {attributes} {{
      %c0 = arith.constant 0 : index
      {loads}
      {body}
      vector.store %r, %out[{zeros}] : {out}, {result}
      gpu.return }} }}"""
    found = np.zeros(shape, np.bool_ if element == "i1" else np.int64 if element == "index" else DTYPES[element])
    reference.run(xegpu_py.parse(text), None, [*(a for _, _, a in memrefs), found], **launch)
    return found


def integers(count, dtype=np.int32):
    info = np.iinfo(dtype)
    found = RNG.integers(info.min, info.max, count, dtype, endpoint=True)
    found[:4] = (info.min, info.max, 0, 1)
    return found


A, B = integers(64), integers(64)
B[4:8] = (1, -1, 3, -3)
NONZERO = np.where((B == 0) | (B == -1), 7, B)

INTEGER_OPS = {
    "divsi": lambda a, b: int(a / b) if abs(a) < 2**52 else 0,
    "remsi": lambda a, b: math.fmod(a, b),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "divui": lambda a, b: (a % 2**32) // (b % 2**32),
    "remui": lambda a, b: (a % 2**32) % (b % 2**32),
    "ceildivui": lambda a, b: -(-(a % 2**32) // (b % 2**32)),
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "maxui": lambda a, b: max(a % 2**32, b % 2**32),
    "minsi": min,
    "shli": lambda a, b: a << b % 32,
    "shrsi": lambda a, b: a >> b % 32,
    "shrui": lambda a, b: (a % 2**32) >> b % 32,
}


@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integers(name):
    kind = "vector<64xi32>"
    found = evaluate(f"%r = arith.{name} %a0, %a1 : {kind}", kind, (kind, A), (kind, NONZERO))
    expected = [int(INTEGER_OPS[name](int(a), int(b))) % 2**32 for a, b in zip(A, NONZERO)]
    assert found.view(np.uint32).tolist() == expected


# The type, the function of the op's operands, and the same of exact numbers or of numpy's.
F8S = {"f8E5M2": ("bf8", ml_dtypes.float8_e5m2), "f8E4M3FN": ("hf8", ml_dtypes.float8_e4m3fn)}


@pytest.mark.parametrize("element", F8S)
def test_products_and_sums_of_bytes_are_rounded_once(element):
    """Of all pairs of some numbers, each with a third, as exact rationals have it."""
    name, dtype = F8S[element]
    patterns = np.array(
        [0, 1, 3, 0x12, 0x2F, 0x38, 0x3C, 0x45, 0x51, 0x66, 0x7A, 0x81, 0xA2, 0xB9, 0xC4, 0xF7], np.uint8
    )
    a, b = (g.ravel() for g in np.meshgrid(patterns, patterns))
    c = RNG.integers(0, 0x78, 256).astype(np.uint8) | (RNG.integers(0, 2, 256).astype(np.uint8) << 7)
    kind = f"vector<256x{element}>"
    found = evaluate(f"%r = math.fma %a0, %a1, %a2 : {kind}", kind, *((kind, v.view(dtype)) for v in (a, b, c)))
    for x, y, z, got in zip(*([Fraction(exact.value(int(n), name)) for n in v] for v in (a, b, c)), found):
        number = x * y + z
        expected = np.uint8(exact.nearest(number, name)).view(dtype)
        assert got == expected or (np.isnan(got) and np.isnan(expected))


@pytest.mark.parametrize(
    ("name", "function"), [("addf", operator.add), ("mulf", operator.mul), ("divf", operator.truediv)]
)
def test_arithmetic_of_tf32_is_rounded_once(name, function):
    bits = RNG.integers(0x30000000, 0x4F000000, (2, 64)).astype(np.uint32) & 0xFFFFE000
    a, b = bits.view(np.float32)
    kind = "vector<64xtf32>"
    body = "\n".join(f"%b{i} = arith.truncf %a{i} : vector<64xf32> to {kind}" for i in range(2))
    body += f"\n%c = arith.{name} %b0, %b1 : {kind}\n%r = arith.extf %c : {kind} to vector<64xf32>"
    found = evaluate(body, "vector<64xf32>", ("vector<64xf32>", a), ("vector<64xf32>", b))
    expected = [exact.nearest(function(Fraction(float(x)), Fraction(float(y))), "tf32") << 13 for x, y in zip(a, b)]
    assert found.view(np.uint32).tolist() == expected


def test_doubles_round_away_from_zero_at_ties():
    numbers = [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, -0.0, 2.0**52 + 1, -(2.0**53) - 2, np.inf, -np.inf]
    x = np.array([*numbers, np.nan, 4503599627370495.5, -0.3, 1e300, 3.0])
    with np.errstate(invalid="ignore"):
        halves = np.floor(np.abs(x)) + (np.abs(x) - np.floor(np.abs(x)) >= 0.5)
    kind = "vector<16xf64>"
    found = evaluate(f"%r = math.round %a0 : {kind}", kind, (kind, x))
    np.testing.assert_array_equal(found, np.copysign(halves, x))
    assert (np.signbit(found) == np.signbit(x))[~np.isnan(x)].all()


def test_numbers_of_the_launch_and_of_types():
    body = """%rank = memref.rank %out : memref<4xindex>
      %bits = index.sizeof
      %lanes = gpu.subgroup_size : index
      %subgroups = gpu.num_subgroups : index
      %r = vector.from_elements %rank, %bits, %lanes, %subgroups : vector<4xindex>"""
    assert evaluate(body, "vector<4xindex>", attributes=SIMT, block=40).tolist() == [1, 64, 16, 3]
    assert evaluate(body, "vector<4xindex>", block=3).tolist() == [1, 64, 1, 3]


def test_integers_of_odd_widths_wrap():
    kind = "vector<64xi8>"
    a = integers(64, np.int8)
    body = """%x = arith.trunci %a0 : vector<64xi8> to vector<64xi5>
      %y = arith.muli %x, %x : vector<64xi5>
      %r = arith.extsi %y : vector<64xi5> to vector<64xi8>"""
    wrapped = [(int(v) % 32) ** 2 % 32 for v in a]
    assert evaluate(body, kind, (kind, a)).tolist() == [w - 32 if w >= 16 else w for w in wrapped]


def test_index_has_64_bits():
    body = """%big = arith.constant 100000 : index
      %p = arith.muli %big, %big : index
      %v = arith.index_cast %p : index to i64
      %r = vector.broadcast %v : i64 to vector<2xi64>"""
    assert evaluate(body, "vector<2xi64>").tolist() == [10**10] * 2


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN"])
def test_special_floats(kind):
    """Zeros with signs, infinities and NaNs."""
    dtype = DTYPES[kind]
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 3.0]).astype(dtype)
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(values, values))
    vector = f"vector<64x{kind}>"
    with np.errstate(all="ignore"):
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        either = np.isnan(wide_a) | np.isnan(wide_b)
        less = (wide_a < wide_b) | ((wide_a == wide_b) & np.signbit(wide_a))
        low, high = np.where(less, wide_a, wide_b), np.where(less, wide_b, wide_a)
        number = np.where(np.isnan(wide_a), wide_b, wide_a)
        expected = {
            "addf": wide_a + wide_b,
            "mulf": wide_a * wide_b,
            "divf": wide_a / wide_b,
            "minimumf": np.where(either, np.nan, low),
            "maximumf": np.where(either, np.nan, high),
            "minnumf": np.where(either, number, low),
            "maxnumf": np.where(either, number, high),
        }
        for name, wanted in expected.items():
            found = evaluate(f"%r = arith.{name} %a0, %a1 : {vector}", vector, (vector, a), (vector, b))
            rounded = wanted.astype(dtype)
            nan = np.isnan(rounded.astype(np.float64))
            assert np.array_equal(found.view(f"u{dtype.itemsize}")[~nan], rounded.view(f"u{dtype.itemsize}")[~nan])
            assert set(found[nan].view(f"u{dtype.itemsize}").tolist()) == {FLOATS[kind].nan}


def test_conversions_round_once():
    """Numbers next to midpoints of f8E5M2 and bf16, where rounding twice gives wrong results."""
    x = np.array([1.125 + 2.0**-30, 1.125, 1.375 - 2.0**-30, 2.0**-17 * (1 + 2.0**-40), 61440.0, 61439.99, np.nan])
    found = evaluate(
        "%r = arith.truncf %a0 : vector<7xf64> to vector<7xf8E5M2>", "vector<7xf8E5M2>", ("vector<7xf64>", x)
    )
    assert found[:6].astype(np.float64).tolist() == [1.25, 1.0, 1.25, 2.0**-16, np.inf, 57344.0]
    assert found.view(np.uint8)[6] == 0x7E
    z = np.array([0xFD, 0x7D, 0xFC], np.uint8).view(DTYPES["f8E5M2"])
    found = evaluate(
        "%r = arith.extf %a0 : vector<3xf8E5M2> to vector<3xf64>", "vector<3xf64>", ("vector<3xf8E5M2>", z)
    )
    assert found.view(np.uint64).tolist() == [0x7FF8 << 48, 0x7FF8 << 48, 0xFFF0 << 48]
    y = np.array([2**62 + 2**54, 2**62 + 2**54 + 1, -(2**62 + 2**54 + 1), 255])
    found = evaluate("%r = arith.sitofp %a0 : vector<4xi64> to vector<4xbf16>", "vector<4xbf16>", ("vector<4xi64>", y))
    assert found.astype(np.float64).tolist() == [2.0**62, 2.0**62 + 2.0**55, -(2.0**62) - 2.0**55, 255.0]


def test_shapes():
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    kind = "vector<2x3x4xi32>"
    for body, result, expected in (
        (f"vector.transpose %a0, [2, 0, 1] : {kind} to vector<4x2x3xi32>", "vector<4x2x3xi32>", x.transpose(2, 0, 1)),
        (f"vector.shape_cast %a0 : {kind} to vector<6x4xi32>", "vector<6x4xi32>", x.reshape(6, 4)),
        (f"vector.extract %a0[1] : vector<3x4xi32> from {kind}", "vector<3x4xi32>", x[1]),
        (
            "vector.extract_strided_slice %a0 {offsets = [0, 1], sizes = [2, 2], strides = [1, 1]} : "
            f"{kind} to vector<2x2x4xi32>",
            "vector<2x2x4xi32>",
            x[:, 1:],
        ),
        (f"vector.shuffle %a0, %a0 [1, 2, 0] : {kind}, {kind}", "vector<3x3x4xi32>", x[[1, 0, 0]]),
        (f"vector.bitcast %a0 : {kind} to vector<2x3x8xi16>", "vector<2x3x8xi16>", x.view(np.int16)),
    ):
        assert np.array_equal(evaluate(f"%r = {body}", result, (kind, x)), expected), body


def test_bits_below_a_byte():
    x = np.array([0x21, -0x7C, 0x0F, -1], np.int8)
    body = """%n = vector.bitcast %a0 : vector<4xi8> to vector<8xi4>
      %r = arith.extsi %n : vector<8xi4> to vector<8xi8>"""
    assert evaluate(body, "vector<8xi8>", ("vector<4xi8>", x)).tolist() == [1, 2, 4, -8, -1, 0, -1, -1]


def test_reductions_are_by_halves():
    x = RNG.standard_normal(11).astype(np.float32)
    rows = list(x)
    while len(rows) > 1:
        half = len(rows) // 2
        joined = [a + b for a, b in zip(rows, rows[half:])][:half]
        if len(rows) % 2:
            joined[0] = joined[0] + rows[-1]
        rows = joined
    body = """%s = vector.reduction <add>, %a0 : vector<11xf32> into f32
      %r = vector.broadcast %s : f32 to vector<1xf32>"""
    assert evaluate(body, "vector<1xf32>", ("vector<11xf32>", x))[0] == rows[0]


def test_contraction():
    a, b = (RNG.integers(-9, 9, s).astype(np.float32) for s in ((2, 3, 4), (4, 5, 2)))
    body = """%z = arith.constant dense<1.0> : vector<3x5xf32>
      %r = vector.contract {indexing_maps = [affine_map<(m, n, j, k) -> (j, m, k)>,
        affine_map<(m, n, j, k) -> (k, n, j)>, affine_map<(m, n, j, k) -> (m, n)>],
        iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
        %a0, %a1, %z : vector<2x3x4xf32>, vector<4x5x2xf32> into vector<3x5xf32>"""
    found = evaluate(body, "vector<3x5xf32>", ("vector<2x3x4xf32>", a), ("vector<4x5x2xf32>", b))
    assert np.array_equal(found, np.einsum("jmk,knj->mn", a, b) + 1)


def test_transfers_with_a_permutation_a_mask_and_an_edge():
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    body = """%c3 = arith.constant 3 : index
      %pad = arith.constant -1.0 : f32
      %mask = vector.constant_mask [1, 3] : vector<4x4xi1>
      %r = vector.transfer_read %m0[%c3, %c3], %pad, %mask {permutation_map = affine_map<(d0, d1) -> (d1, d0)>,
        in_bounds = [false, false]} : memref<5x6xf32>, vector<4x4xf32>"""
    expected = np.full((4, 4), -1.0, np.float32)
    expected[:3, :1] = x[3:4, 3:6].T
    assert np.array_equal(evaluate(body, "vector<4x4xf32>", ("vector<5x6xf32>", x)), expected)


def test_a_masked_read_that_transposes_passes_values_through():
    """The mask has memory's dimensions, and the pass-through value the vector's."""
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    body = """%pad = arith.constant 0.0 : f32
      %else = arith.constant dense<7.0> : vector<6x5xf32>
      %mask = vector.constant_mask [2, 4] : vector<5x6xi1>
      %r = vector.mask %mask, %else { vector.transfer_read %m0[%c0, %c0], %pad {in_bounds = [true, true],
        permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<5x6xf32>, vector<6x5xf32>
      } : vector<5x6xi1> -> vector<6x5xf32>"""
    expected = np.full((6, 5), 7.0, np.float32)
    expected[:4, :2] = x[:2, :4].T
    assert np.array_equal(evaluate(body, "vector<6x5xf32>", ("vector<5x6xf32>", x)), expected)


def test_masked_ops():
    x = np.arange(8, dtype=np.float32)
    body = """%z = arith.constant 100.0 : f32
      %mask = vector.constant_mask [3] : vector<8xi1>
      %s = vector.mask %mask { vector.reduction <add>, %a0, %z : vector<8xf32> into f32 } : vector<8xi1> -> f32
      %r = vector.broadcast %s : f32 to vector<1xf32>"""
    assert evaluate(body, "vector<1xf32>", ("vector<8xf32>", x)) == 103


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("maximumf", 1.0, np.nan), ("maxnumf", 1.0, 1.0), ("minimumf", 1.0, np.nan), ("addf", 1.0, np.nan),
        ("assign", 2.0, 2.0),
    ],
)  # fmt: skip
def test_atomics_on_a_nan(kind, value, expected):
    x = np.full(2, np.nan, np.float32)
    body = f"""%v = arith.constant {value} : f32
      %old = memref.atomic_rmw {kind} %v, %m0[%c0] : (f32, memref<2xf32>) -> f32
      %r = vector.broadcast %old : f32 to vector<1xf32>"""
    old = evaluate(body, "vector<1xf32>", ("vector<2xf32>", x))
    assert np.isnan(old[0]) and np.array_equal(x[:1], np.array([expected], np.float32), equal_nan=True)


def test_atomics_of_equal_addresses_follow_each_other():
    x = np.zeros(1, np.int32)
    body = """%zero = arith.constant dense<0> : vector<16xindex>
      %all = arith.constant dense<true> : vector<16xi1>
      %one = arith.constant dense<1> : vector<16xi32>
      %d = xegpu.create_tdesc %m0, %zero {mode = vc} : memref<1xi32>, vector<16xindex>
        -> !xegpu.tensor_desc<16xi32, #xegpu.scattered>
      %r = xegpu.atomic_rmw addi, %one, %d, %all {mode = vc}
        : vector<16xi32>, !xegpu.tensor_desc<16xi32, #xegpu.scattered>, vector<16xi1> -> vector<16xi32>"""
    assert evaluate(body, "vector<16xi32>", ("vector<1xi32>", x)).tolist() == list(range(16))
    assert x[0] == 16


def test_three_dimensional_blocks_obey_every_bound():
    x = np.arange(4 * 3 * 16, dtype=np.float32).reshape(4, 3, 16)
    body = """%d = xegpu.create_nd_tdesc %m0[-1, 2, 8] {mode = vc}
        : memref<4x3x16xf32> -> !xegpu.tensor_desc<6x2x16xf32>
      %r = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<6x2x16xf32> -> vector<6x2x16xf32>"""
    expected = np.zeros((6, 2, 16), np.float32)
    expected[1:5, 0, :8] = x[:, 2, 8:]
    assert np.array_equal(evaluate(body, "vector<6x2x16xf32>", ("vector<4x3x16xf32>", x)), expected)


def test_unstructured_control_flow_of_work_items():
    """Collatz: lanes leave the loop at different times, and reconverge after it."""
    text = """gpu.module @k { gpu.func @f(%out: memref<40xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %three = arith.constant 3 : i32
      %i = gpu.global_id x
      %s = arith.index_cast %i : index to i32
      %start = arith.addi %s, %one : i32
      cf.br ^head(%start, %zero : i32, i32)
    ^head(%x: i32, %n: i32):
      %done = arith.cmpi eq, %x, %one : i32
      cf.cond_br %done, ^end(%n : i32), ^step
    ^step:
      %next = arith.addi %n, %one : i32
      %odd = arith.andi %x, %one : i32
      %half = arith.shrui %x, %one : i32
      cf.switch %odd : i32, [default: ^head(%half, %next : i32, i32), 1: ^up]
    ^up:
      %t = arith.muli %x, %three : i32
      %u = arith.addi %t, %one : i32
      cf.br ^head(%u, %next : i32, i32)
    ^end(%r: i32):
      gpu.barrier
      memref.store %r, %out[%i] : memref<40xi32>
      gpu.return } }"""
    out = np.zeros(40, np.int32)
    reference.run(xegpu_py.parse(text), None, [out], block=40)

    def steps(n):
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert out.tolist() == [steps(n) for n in range(1, 41)]


SIMT = "attributes {xegpu.subgroup_size = 16 : i32}"
SG_BLOCK = "!xegpu.tensor_desc<8x16xf32, #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 1]>>"


@pytest.mark.parametrize(
    ("body", "attributes", "block", "message"),
    [
        ("%s = gpu.subgroup_id : index\n%z = arith.cmpi eq, %s, %c0 : index\nscf.if %z { gpu.barrier }", "", 2,
         "'gpu.barrier' op waits forever at a barrier"),
        ("%s = gpu.lane_id\n%z = arith.cmpi eq, %s, %c0 : index\nscf.if %z { gpu.barrier }", SIMT, 16,
         "'gpu.barrier' op must be executed by the whole subgroup, but lanes 1, 2, 3"),
        ("%far = arith.constant -5 : index\n%s = memref.load %out[%far] : memref<4xf32>", "", 1,
         "'memref.load' op reads 4 bytes at 0xfffec of global memory, 20 bytes before '%out', which has 16 bytes"),
        ("%far = arith.constant 4096 : index\n%s = arith.constant 1.0 : f32\n"
         "memref.store %s, %out[%far] : memref<4xf32>", "", 1,
         "'memref.store' op writes 4 bytes at 0x104000 of global memory, reaching"),
        ("%n = arith.constant 3 : i8\n%b = xegpu.init_nbarrier %n, %n : i8, i8 -> !xegpu.nbarrier\n"
         "xegpu.nbarrier_arrive %b", "", 1,
         "'xegpu.nbarrier_arrive' op uses named barrier 3, but the kernel allocates 0"),
        ('"cf.assert"(%no) {msg = "never"} : (i1) -> ()', "", 1, "assertion failed: never"),
        ("%x = arith.constant dense<1> : vector<2xi32>\n%y = xegpu.lane_shuffle %x pack : vector<2xi32>", SIMT, 8,
         "'xegpu.lane_shuffle' op exchanges elements of 16 work items, but the subgroup has 8"),
        ("%x = arith.constant dense<1.0> : vector<8x1xf16>\n%y = arith.constant dense<1.0> : vector<8x1x2xf16>\n"
         "%r = xegpu.dpas %x, %y : vector<8x1xf16>, vector<8x1x2xf16> -> vector<8x1xf32>", SIMT, 8,
         "'xegpu.dpas' op multiplies fragments of 16 work items, but the subgroup has 8"),
        *((f"%a = memref.extract_aligned_pointer_as_index %out : memref<4xf32> -> index\n"
           "%x = arith.index_cast %a : index to i64\n%n = arith.constant 4 : index\n"
           f"%d = xegpu.create_nd_tdesc %x[0, 0], [1, %n], [%n, 1] : i64 -> {SG_BLOCK}\n"
           f"%v = xegpu.load_nd %d : {SG_BLOCK} -> vector<8x1xf32>", SIMT.replace("16", lanes), count, message)
          for lanes, count, message in (
              ("32", 32, "'xegpu.load_nd' op distributes its block to 16 work items, but a subgroup has 32"),
              ("16", 8, "'xegpu.load_nd' op works on a block of 16 work items, but the subgroup has 8"))),
        ("%e = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>", "", 1,
         "'gpu.dynamic_shared_memory' op has no rule in the reference evaluator"),
    ],
)  # fmt: skip
def test_faults(body, attributes, block, message):
    text = f"""gpu.module @k {{ gpu.func @f(%out: memref<4xf32>) kernel {attributes} {{
      %c0 = arith.constant 0 : index
      %no = arith.constant false
      {body}
      gpu.return }} }}"""
    with pytest.raises(xegpu_py.DiagnosticError) as caught:
        reference.run(xegpu_py.parse(text), None, [np.zeros(4, np.float32)], block=block)
    (diagnostic,) = caught.value.diagnostics
    assert message in f"{diagnostic.message}"
    assert diagnostic.position.line > 1
    assert any("in kernel 'f', workgroup (0, 0, 0)" in note.message for note in diagnostic.notes)


def test_arguments():
    module = xegpu_py.parse("""gpu.module @k { gpu.func @f(%a: memref<2x2xf32>, %n: i32) kernel { gpu.return } }""")
    ok = np.zeros((2, 2), np.float32)
    for wrong, kind, message in (
        ([ok], TypeError, "takes 2 arguments"),
        ([np.zeros((2, 2)), 1], TypeError, "must be an array of f32, but got an array of float64"),
        ([np.zeros((2, 3), np.float32), 1], ValueError, "cannot be an array of shape"),
        ([np.zeros((2, 4), np.float32)[:, ::2], 1], ValueError, "row-major"),
        ([1, 1], TypeError, "must be a numpy array, but got int"),
        ([ok, np.zeros(2, np.int32)], TypeError, "must be a number"),
        ([ok, "x"], TypeError, "must be an integer"),
    ):
        with pytest.raises(kind, match=message):
            reference.run(module, None, wrong)
    for options in ({"grid": 0}, {"model": "best"}, {"kernel": "g"}):
        with pytest.raises(ValueError, match="must be|there is no kernel"):
            reference.run(module, options.pop("kernel", None), [ok, 1], **options)


@pytest.mark.parametrize(
    ("attributes", "index", "block", "place"),
    [
        ("", "%c9", 1, "in kernel 'f', workgroup (2, 1, 0), subgroup 0"),
        ("", "%c9", 3, "in kernel 'f', workgroup (2, 1, 0), subgroup 0"),
        ("xegpu.subgroup_size = 16 : i32", "%lane", 16, "in kernel 'f', workgroup (2, 1, 0), subgroup 0, lane 4"),
        ("xegpu.subgroup_size = 16 : i32", "%item", 32, "in kernel 'f', workgroup (2, 1, 0), subgroup 1, lane 0"),
    ],
)
def test_where_a_fault_is(attributes, index, block, place):
    """The first lane that fails is named, of kernels of lanes alone."""
    text = f"""gpu.module @k {{ gpu.func @f(%out: memref<4xf32>) kernel attributes {{{attributes}}} {{
      %c2 = arith.constant 2 : index
      %c9 = arith.constant 9 : index
      %c16 = arith.constant 16 : index
      %x = gpu.block_id x
      %y = gpu.block_id y
      %at = arith.addi %x, %y : index
      %c3 = arith.constant 3 : index
      %last = arith.cmpi eq, %at, %c3 : index
      scf.if %last {{
        %lane = gpu.lane_id
        %thread = gpu.thread_id x
        %second = arith.cmpi uge, %thread, %c16 : index
        %zero = arith.constant 0 : index
        %item = arith.select %second, %c9, %zero : index
        %v = memref.load %out[{index}] : memref<4xf32>
        memref.store %v, %out[%zero] : memref<4xf32>
      }}
      gpu.return }} }}"""
    if not attributes:
        text = "\n".join(line for line in text.splitlines() if "lane_id" not in line)
    with pytest.raises(xegpu_py.DiagnosticError) as caught:
        reference.run(xegpu_py.parse(text), None, [np.zeros(4, np.float32)], grid=(3, 2), block=block)
    assert caught.value.diagnostics[0].notes[-1].message == place


def test_arguments_that_are_vectors():
    module = xegpu_py.parse("""gpu.module @k { gpu.func @f(%a: memref<4xi16>, %v: vector<2x2xi16>) kernel {
      %c0 = arith.constant 0 : index
      %flat = vector.shape_cast %v : vector<2x2xi16> to vector<4xi16>
      vector.store %flat, %a[%c0] : memref<4xi16>, vector<4xi16>
      gpu.return } }""")
    for vector in (np.array([[1, 2], [-3, 32767]], np.int16), np.array([1, 2, -3, 32767]), [[1, 2], [-3, 32767]]):
        out = np.zeros(4, np.int16)
        reference.run(module, None, [out, vector])
        assert out.tolist() == [1, 2, -3, 32767]
    for wrong in (1, np.zeros((2, 3), np.int16), [1, 2, 3]):
        with pytest.raises(TypeError, match="must be an array of numbers, but got"):
            reference.run(module, None, [np.zeros(4, np.int16), wrong])


def test_a_compiled_kernel_knows_its_block():
    text = """gpu.module @k { gpu.func @f(%a: memref<48xi32>) kernel
      attributes {xegpu.subgroup_size = 16 : i32, known_block_size = array<i32: 48, 1, 1>} {
      %i = gpu.thread_id x
      %n = arith.index_cast %i : index to i32
      memref.store %n, %a[%i] : memref<48xi32>
      gpu.return } }"""
    out = np.zeros(48, np.int32)
    xegpu_py.compile(text, engine="reference")(out)
    assert out.tolist() == list(range(48))


def test_missing_lanes_are_neutral_in_a_reduction():
    """A subgroup of 5 lanes of 16. If all numbers are NaN, the greatest number is NaN."""
    text = """gpu.module @k { gpu.func @f(%a: memref<5xf32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
      %i = gpu.lane_id
      %x = memref.load %a[%i] : memref<5xf32>
      %r = gpu.subgroup_reduce maxnumf %x : (f32) -> f32
      memref.store %r, %a[%i] : memref<5xf32>
      gpu.return } }"""
    for given, expected in (([np.nan] * 5, np.nan), ([np.nan, -3, -7, np.nan, -np.inf], -3)):
        x = np.array(given, np.float32)
        reference.run(xegpu_py.parse(text), None, [x], block=5)
        assert np.array_equal(x, np.full(5, expected, np.float32), equal_nan=True)


@pytest.mark.parametrize(
    ("cluster", "size", "stride"),
    [("size = 2", 2, 1), ("size = 4", 4, 1), ("size = 16", 16, 1), ("size = 4, stride = 2", 4, 2),
     ("size = 2, stride = 8", 2, 8), ("size = 1, stride = 4", 1, 4)],
)  # fmt: skip
def test_reductions_of_clusters_of_lanes(cluster, size, stride):
    """A cluster has lanes at a distance of `stride`; a subgroup without its last lanes has zeros there."""
    text = f"""gpu.module @k {{ gpu.func @f(%a: memref<16xi32>) kernel attributes {{xegpu.subgroup_size = 16 : i32}} {{
      %i = gpu.lane_id
      %x = memref.load %a[%i] : memref<16xi32>
      %r = gpu.subgroup_reduce add %x cluster({cluster}) : (i32) -> i32
      memref.store %r, %a[%i] : memref<16xi32>
      gpu.return }} }}"""
    lanes = np.arange(16)
    cluster_of = lanes // (size * stride) * stride + lanes % stride
    for count in (16, 11):
        x = 1 << lanes
        found = x.astype(np.int32)
        reference.run(xegpu_py.parse(text), None, [found], block=count)
        sums = [x[:count][cluster_of[:count] == n].sum() for n in cluster_of]
        assert found.tolist() == [*sums[:count], *x[count:]]


def test_arrays_that_overlap_share_memory_and_read_only_ones_are_not_written():
    text = """gpu.module @k { gpu.func @f(%a: memref<?xf32>, %b: memref<?xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x = arith.constant 5.0 : f32
      memref.store %x, %a[%c1] : memref<?xf32>
      %y = memref.load %b[%c0] : memref<?xf32>
      memref.store %y, %a[%c0] : memref<?xf32>
      gpu.return } }"""
    whole = np.zeros(4, np.float32)
    reference.run(xegpu_py.parse(text), None, [whole[:3], whole[1:]])
    assert whole.tolist() == [5, 5, 0, 0]
    whole.flags.writeable = False
    with pytest.raises(xegpu_py.DiagnosticError, match="writes to '%a', which is read-only"):
        reference.run(xegpu_py.parse(text), None, [whole, np.zeros(4, np.float32)])


def test_matrices_of_any_size():
    """tile_mma of 40x24x72: every product rounded once, in increasing k."""
    a, b = (RNG.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((40, 72), (72, 24)))
    text = """gpu.module @k {
    gpu.func @f(%A: memref<40x72xbf16>, %B: memref<72x24xbf16>, %C: memref<40x24xf32>) kernel {
      %a = xetile.init_tile %A[0, 0] : memref<40x72xbf16> -> !xetile.tile<40x72xbf16>
      %b = xetile.init_tile %B[0, 0] : memref<72x24xbf16> -> !xetile.tile<72x24xbf16>
      %c = xetile.init_tile %C[0, 0] : memref<40x24xf32> -> !xetile.tile<40x24xf32>
      %va = xetile.load_tile %a : !xetile.tile<40x72xbf16> -> vector<40x72xbf16>
      %vb = xetile.load_tile %b : !xetile.tile<72x24xbf16> -> vector<72x24xbf16>
      %d = xetile.tile_mma %va, %vb : vector<40x72xbf16>, vector<72x24xbf16> -> vector<40x24xf32>
      xetile.store_tile %d, %c : vector<40x24xf32>, !xetile.tile<40x24xf32>
      gpu.return } }"""
    c = np.zeros((40, 24), np.float32)
    reference.run(xegpu_py.parse(text), None, [a, b, c])
    expected = np.zeros((40, 24), np.float32)
    for k in range(72):
        # Products of bf16 are exact in f32.
        expected += a[:, k, None].astype(np.float32) * b[None, k].astype(np.float32)
    assert np.array_equal(c, expected)


def test_rounding_modes_are_refused():
    x = np.ones(4, np.float32)
    for body in (
        "%r = arith.truncf %a0 downward : vector<4xf32> to vector<4xf16>",
        "%r = arith.scaling_truncf %a0, %a0 downward : vector<4xf32>, vector<4xf32> to vector<4xf16>",
    ):
        with pytest.raises(xegpu_py.DiagnosticError, match="rounds downward, which is not supported"):
            evaluate(body, "vector<4xf16>", ("vector<4xf32>", x))


@pytest.mark.parametrize("element", ["i8", "i16", "i64"])
def test_powers_of_integers(element):
    """Modulo the width; a negative exponent gives the reciprocal, rounded toward zero, and of 0 gives 0."""
    dtype = DTYPES[element]
    info = np.iinfo(dtype)
    bases = np.array([0, 1, -1, 2, -2, 3, -7, info.max, info.min], dtype)
    exponents = np.array([0, 1, 2, 3, 9, 31, info.max, -1, -2, info.min], dtype)
    a, n = (x.ravel() for x in np.meshgrid(bases, exponents))
    kind = f"vector<{len(a)}x{element}>"
    found = evaluate(f"%r = math.ipowi %a0, %a1 : {kind}", kind, (kind, a), (kind, n))
    reciprocal = {1: lambda e: 1, -1: lambda e: 1 if e % 2 == 0 else -1}
    for base, exponent, power in zip(a.tolist(), n.tolist(), found.tolist()):
        exact = pow(base, exponent, 1 << 64) if exponent >= 0 else reciprocal.get(base, lambda e: 0)(exponent)
        assert (power - exact) % (1 << 8 * dtype.itemsize) == 0, (base, exponent)


@pytest.mark.parametrize(("offset", "width"), [(1, 16), (3, 16), (0, 16), (1, 4), (3, 4), (5, 8)])
def test_rotations_of_lanes(offset, width):
    """Within segments; lanes beyond the first segment have no valid result, and those that are missing give zero."""
    text = f"""gpu.module @k {{ gpu.func @f(%a: memref<16xi32>, %b: memref<16xi1>) kernel
      attributes {{xegpu.subgroup_size = 16 : i32}} {{
      %i = gpu.lane_id
      %x = memref.load %a[%i] : memref<16xi32>
      %r, %valid = gpu.rotate %x, {offset}, {width} : i32
      memref.store %r, %a[%i] : memref<16xi32>
      memref.store %valid, %b[%i] : memref<16xi1>
      gpu.return }} }}"""
    for count in (16, 10):
        x, valid = np.arange(100, 116, dtype=np.int32), np.zeros(16, bool)
        reference.run(xegpu_py.parse(text), None, [x, valid], block=count)
        lanes = np.arange(count)
        source = lanes // width * width + (lanes + offset) % width
        assert x[:count].tolist() == np.where(source < count, 100 + source, 0).tolist()
        assert valid.tolist() == (lanes < width).tolist() + [False] * (16 - count)


def test_nested_parallel_loops_reduce_in_row_major_order():
    """With reductions that do not commute, bounds that are not 0, and steps."""
    text = """gpu.module @k { gpu.func @f(%a: memref<2xi64>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c8 = arith.constant 8 : index
      %one = arith.constant 1 : i64
      %seven = arith.constant 7 : i64
      %r:2 = scf.parallel (%i, %j) = (%c1, %c2) to (%c3, %c8) step (%c1, %c3) init (%one, %seven) -> (i64, i64) {
        %x = arith.index_cast %i : index to i64
        %y = arith.index_cast %j : index to i64
        scf.reduce (%x, %y : i64, i64) {
        ^bb0(%old: i64, %new: i64):
          %ten = arith.constant 10 : i64
          %m = arith.muli %old, %ten : i64
          %s = arith.addi %m, %new : i64
          scf.reduce.return %s : i64
        }, {
        ^bb0(%old: i64, %new: i64):
          %ten = arith.constant 10 : i64
          %m = arith.muli %old, %ten : i64
          %s = arith.addi %m, %new : i64
          scf.reduce.return %s : i64
        }
      }
      memref.store %r#0, %a[%c0] : memref<2xi64>
      memref.store %r#1, %a[%c1] : memref<2xi64>
      gpu.return } }"""
    a = np.zeros(2, np.int64)
    reference.run(xegpu_py.parse(text), None, [a])
    assert a.tolist() == [11122, 72525]


@pytest.mark.parametrize(
    ("flag", "expected"), [(3, [30, 1]), (-1, [20, 2]), (7, [10, 0]), (0, [10, 0]), (255, [10, 0])]
)
def test_the_operands_of_a_switchs_successors(flag, expected):
    text = f"""gpu.module @k {{ gpu.func @f(%a: memref<2xi32>) kernel {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 0 : i32
      %1 = arith.constant 1 : i32
      %2 = arith.constant 2 : i32
      %10 = arith.constant 10 : i32
      %20 = arith.constant 20 : i32
      %30 = arith.constant 30 : i32
      %flag = arith.constant {flag} : i32
      cf.switch %flag : i32, [
        default: ^end(%10, %0 : i32, i32),
        3: ^end(%30, %1 : i32, i32),
        -1: ^twenty(%2 : i32)
      ]
    ^twenty(%x: i32):
      cf.br ^end(%20, %x : i32, i32)
    ^end(%first: i32, %second: i32):
      memref.store %first, %a[%c0] : memref<2xi32>
      memref.store %second, %a[%c1] : memref<2xi32>
      gpu.return }} }}"""
    a = np.zeros(2, np.int32)
    reference.run(xegpu_py.parse(text), None, [a])
    assert a.tolist() == expected


LANES = """gpu.module @m {{
  gpu.func @k(%x: memref<32xf32>, %y: memref<32xf32>) kernel attributes {{xegpu.subgroup_size = 16 : i32}} {{
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<32xf32>
    {}
    memref.store %r, %y[%i] : memref<32xf32>
    gpu.return
  }}
}}"""

OF_LANES = {
    "first lane": ("%r = gpu.subgroup_broadcast %v, first_active_lane : f32", lambda x: np.repeat(x[:, :1], 16, 1)),
    "a lane": (
        "%n = arith.constant 5 : i32 %r = gpu.subgroup_broadcast %v, specific_lane %n : f32",
        lambda x: np.repeat(x[:, 5:6], 16, 1),
    ),
    "rotation": ("%r, %t = gpu.rotate %v, 3, 16 : f32", lambda x: np.roll(x, -3, 1)),
    "rotation of parts": (
        "%w, %t = gpu.rotate %v, 3, 8 : f32 %r = arith.select %t, %w, %v : f32",
        lambda x: np.concatenate([np.roll(x[:, :8], -3, 1), x[:, 8:]], 1),
    ),
    "sum": ("%r = gpu.subgroup_reduce add %v : (f32) -> (f32)", lambda x: np.repeat(x.sum(1, keepdims=True), 16, 1)),
}


@pytest.mark.parametrize("name", OF_LANES)
@pytest.mark.parametrize("engine", ["reference", "interpreter"])
def test_lanes(name, engine):
    body, expected = OF_LANES[name]
    x, y = np.random.default_rng(3).integers(-99, 99, (2, 16)).astype(np.float32), np.zeros((2, 16), np.float32)
    module = xegpu_py.parse(LANES.format(body))
    if engine == "reference":
        reference.run(module, "k", [x.ravel(), y.reshape(-1)], block=32)
    else:
        xegpu_py.compile(module, engine=engine)(x.ravel(), y.reshape(-1), block=32)
    np.testing.assert_array_equal(y, expected(x))


CONDITIONS = {"eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
              "ne": np.not_equal}  # fmt: skip


@pytest.mark.parametrize("element", ["f32", "bf16", "f64"])
def test_conditions_of_floats(element):
    """Of each pair of special numbers: with a NaN the ordered conditions are false, the unordered ones true."""
    special = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan])
    a, b = (v.ravel().astype(DTYPES[element]) for v in np.meshgrid(special, special))
    x, y = a.astype(np.float64), b.astype(np.float64)
    unordered = np.isnan(x) | np.isnan(y)
    expected = {"false": unordered & False, "true": unordered | True, "ord": ~unordered, "uno": unordered}
    for name, compare in CONDITIONS.items():
        expected |= {f"o{name}": compare(x, y) & ~unordered, f"u{name}": compare(x, y) | unordered}
    assert len(expected) == 16
    kind, arguments = f"vector<{a.size}x{element}>", [(f"vector<{a.size}x{element}>", v) for v in (a, b)]
    for name, values in expected.items():
        found = evaluate(f"%r = arith.cmpf {name}, %a0, %a1 : {kind}", f"vector<{a.size}xi1>", *arguments)
        assert found.tolist() == values.tolist(), name


@pytest.mark.parametrize("shape", [(24,), (3, 8), (2, 3, 8)])
@pytest.mark.parametrize("bits", [2, 4])
def test_memrefs_of_packed_elements_as_bytes(shape, bits):
    """The last dimension has fewer elements; the strides of the others are those of bytes."""
    kind, last = "x".join(map(str, shape)), shape[-1] * bits // 8
    held = "x".join(map(str, (*shape[:-1], last)))
    names = ", ".join(f"%{'ijk'[d]}" for d in range(len(shape)))
    loops = " ".join(f"scf.for %{'ijk'[d]} = %c0 to %n{d} step %c1 {{" for d in range(len(shape)))
    ends = " ".join(f"%n{d} = arith.constant {n} : index" for d, n in enumerate((*shape[:-1], last)))
    text = f"""gpu.module @k {{ gpu.func @f(%m: memref<{kind}xi{bits}>, %o: memref<{held}xi8>) kernel {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      {ends}
      %b = builtin.unrealized_conversion_cast %m : memref<{kind}xi{bits}> to memref<{held}xi8>
      {loops}
      %x = memref.load %b[{names}] : memref<{held}xi8>
      memref.store %x, %o[{names}] : memref<{held}xi8>
      {"}" * len(shape)}
      gpu.return }} }}"""
    m = RNG.integers(0, 256, (*shape[:-1], last)).astype(np.uint8)
    out = np.zeros(m.shape, np.int8)
    reference.run(xegpu_py.parse(text), None, [m, out])
    np.testing.assert_array_equal(out.view(np.uint8), m)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (1, 2), (2, 3)])
def test_bounds_of_packed_elements_as_bytes(row, column):
    text = f"""gpu.module @k {{ gpu.func @f(%m: memref<3x8xi4>, %o: memref<4xi8>) kernel {{
      %c0 = arith.constant 0 : index
      %r = arith.constant {row} : index
      %c = arith.constant {column} : index
      %p = arith.constant 77 : i8
      %b = builtin.unrealized_conversion_cast %m : memref<3x8xi4> to memref<3x4xi8>
      %x = vector.transfer_read %b[%r, %c], %p : memref<3x4xi8>, vector<4xi8>
      vector.transfer_write %x, %o[%c0] : vector<4xi8>, memref<4xi8>
      gpu.return }} }}"""
    m, out = RNG.integers(0, 256, (3, 4)).astype(np.uint8), np.zeros(4, np.int8)
    reference.run(xegpu_py.parse(text), None, [m, out])
    expected = np.full((4, 8), 77, np.uint8)
    expected[:3, :4] = m
    np.testing.assert_array_equal(out.view(np.uint8), expected[row, column : column + 4])


def test_lines_have_no_bounds_and_blocks_have():
    """A line goes on where its row ends, as it has no boundary check; a block ends there."""
    text = """gpu.module @k { gpu.func @f(%m: memref<4x20xf32>, %o: memref<32xf32>, %p: memref<1x32xf32>) kernel {
      %row = memref.subview %m[1, 0] [1, 20] [1, 1] : memref<4x20xf32> to memref<20xf32, strided<[1], offset: 20>>
      %d = xegpu.create_nd_tdesc %row[8] {mode = vc} : memref<20xf32, strided<[1], offset: 20>>
        -> !xegpu.tensor_desc<32xf32, #xegpu.tdesc_attr<boundary_check = false>>
      %v = xegpu.load_nd %d {mode = vc}
        : !xegpu.tensor_desc<32xf32, #xegpu.tdesc_attr<boundary_check = false>> -> vector<32xf32>
      %e = xegpu.create_nd_tdesc %m[1, 8] {mode = vc} : memref<4x20xf32> -> !xegpu.tensor_desc<1x32xf32>
      %w = xegpu.load_nd %e {mode = vc} : !xegpu.tensor_desc<1x32xf32> -> vector<1x32xf32>
      %c0 = arith.constant 0 : index
      vector.store %v, %o[%c0] : memref<32xf32>, vector<32xf32>
      vector.store %w, %p[%c0, %c0] : memref<1x32xf32>, vector<1x32xf32>
      gpu.return } }"""
    m, line = np.arange(80, dtype=np.float32).reshape(4, 20), np.zeros(32, np.float32)
    block = np.zeros((1, 32), np.float32)
    reference.run(xegpu_py.parse(text), None, [m, line, block])
    assert line.tolist() == list(range(28, 60))
    assert block[0].tolist() == [*range(28, 40), *[0] * 20]


def test_masked_loads_and_stores_of_consecutive_elements():
    text = """gpu.module @k { gpu.func @f(%m: memref<4x20xf32>, %o: memref<40xf32>) kernel {
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %p = arith.constant dense<[true, true, false, false, true, false, true, true]> : vector<8xi1>
      %rest = arith.constant dense<7.0> : vector<8xf32>
      %v = vector.maskedload %m[%c1, %c5], %p, %rest : memref<4x20xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      vector.store %v, %o[%c1] : memref<40xf32>, vector<8xf32>
      %n = arith.constant dense<[true, false, true, true, false, false, false, true]> : vector<8xi1>
      %twice = arith.addf %v, %v : vector<8xf32>
      %at = arith.constant 20 : index
      vector.maskedstore %o[%at], %n, %twice : memref<40xf32>, vector<8xi1>, vector<8xf32>
      gpu.return } }"""
    m, out = np.arange(80, dtype=np.float32).reshape(4, 20), np.full(40, -1, np.float32)
    reference.run(xegpu_py.parse(text), None, [m, out])
    first = np.where([1, 1, 0, 0, 1, 0, 1, 1], m[1, 5:13], 7)
    expected = np.full(40, -1, np.float32)
    expected[1:9] = first
    expected[20:28] = np.where([1, 0, 1, 1, 0, 0, 0, 1], 2 * first, -1)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("number", "element"), [("i4", "f4E2M1FN"), ("i8", "f8E5M2"), ("i16", "bf16"), ("i64", "f64")])
def test_bits_as_other_numbers(number, element):
    """Integers stay in their range: the code 14 of f4E2M1FN is -2."""
    arguments = f"%m: memref<16x{number}>, %o: memref<16x{element}>, %p: memref<16xi64>"
    text = f"""gpu.module @k {{ gpu.func @f({arguments}) kernel {{
      %c0 = arith.constant 0 : index
      %v = vector.load %m[%c0] : memref<16x{number}>, vector<16x{number}>
      %w = arith.bitcast %v : vector<16x{number}> to vector<16x{element}>
      vector.store %w, %o[%c0] : memref<16x{element}>, vector<16x{element}>
      %b = arith.bitcast %w : vector<16x{element}> to vector<16x{number}>
      %z = arith.constant dense<0> : vector<16x{number}>
      %l = arith.cmpi slt, %b, %z : vector<16x{number}>
      %x = arith.extui %l : vector<16xi1> to vector<16xi64>
      vector.store %x, %p[%c0] : memref<16xi64>, vector<16xi64>
      gpu.return }} }}"""
    bits = int(number[1:])
    codes = np.arange(-8, 8) * (1 << (bits - 4))
    shared = codes.reshape(8, 2) & 15
    m = (shared[:, 0] | shared[:, 1] << 4).astype(np.uint8) if bits == 4 else codes.astype(f"i{bits // 8}")
    out = np.zeros_like(m) if bits == 4 else np.zeros(16, DTYPES[element])
    signs = np.zeros(16, np.int64)
    reference.run(xegpu_py.parse(text), None, [m, out, signs])
    assert out.tobytes() == m.tobytes() and signs.tolist() == [1] * 8 + [0] * 8
