"""Ops on i1, as scalars and vectors of any length: true is 1, and signed -1."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py


def wide(value, count):
    return f"""
    %wide = arith.extui {value} : vector<{count}xi1> to vector<{count}xi32>
    vector.transfer_write %wide, %o[%c0] {{in_bounds = [true]}} : vector<{count}xi32>, memref<64xi32>"""


def run(body, n):
    """%x and %y are vectors of `n` truth values; what they are, and what is in %o."""
    text = f"""
gpu.module @m {{
  gpu.func @k(%a: memref<{n}xi32>, %b: memref<{n}xi32>, %o: memref<64xi32>) kernel {{
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i32
    %zeros = arith.constant dense<0> : vector<{n}xi32>
    %av = vector.transfer_read %a[%c0], %z {{in_bounds = [true]}} : memref<{n}xi32>, vector<{n}xi32>
    %bv = vector.transfer_read %b[%c0], %z {{in_bounds = [true]}} : memref<{n}xi32>, vector<{n}xi32>
    %x = arith.cmpi ne, %av, %zeros : vector<{n}xi32>
    %y = arith.cmpi ne, %bv, %zeros : vector<{n}xi32>
    {body}
    gpu.return
  }}
}}
"""
    rng = np.random.default_rng(n)
    a, b = (rng.integers(0, 2, n).astype(np.int32) for _ in range(2))
    out = np.zeros(64, np.int32)
    xegpu_py.compile(text, target="pvc", engine="both")(a, b, out, grid=1)
    return a, b, out


@pytest.mark.parametrize("n", [7, 20, 32, 64])
def test_parts_inserted_anywhere(n):
    body = f"""
    %s = vector.extract_strided_slice %x {{offsets = [1], sizes = [5], strides = [1]}} : vector<{n}xi1> to vector<5xi1>
    %r = vector.insert_strided_slice %s, %y {{offsets = [2], strides = [1]}} : vector<5xi1> into vector<{n}xi1>"""
    a, b, out = run(body + wide("%r", n), n)
    np.testing.assert_array_equal(out[:n], np.r_[b[:2], a[1:6], b[7:]])


EXTRACTS = "%s = vector.extract %x[3] : i1 from vector<32xi1>\n%t = vector.extract %y[4] : i1 from vector<32xi1>\n"
PARTS = {
    "insert": (
        EXTRACTS + "%r = vector.insert %s, %y[17] : i1 into vector<32xi1>",
        lambda a, b: [*b[:17], a[3], *b[18:]],
    ),
    "insert a constant": (
        "%s = arith.constant true\n%r = vector.insert %s, %y[17] : i1 into vector<32xi1>",
        lambda a, b: [*b[:17], 1, *b[18:]],
    ),
    "insert into a constant": (
        EXTRACTS
        + "%f = arith.constant dense<true> : vector<32xi1>\n%r = vector.insert %t, %f[0] : i1 into vector<32xi1>",
        lambda a, b: [b[4], *[1] * 31],
    ),
    "shuffle": (
        "%r = vector.shuffle %x, %y [0, 33, 2, 35, 63, 31] : vector<32xi1>, vector<32xi1>",
        lambda a, b: [a[0], b[1], a[2], b[3], b[31], a[31]],
    ),
    "interleave": ("%r = vector.interleave %x, %y : vector<32xi1> -> vector<64xi1>", lambda a, b: np.stack([a, b], 1)),
    "deinterleave": ("%q, %r = vector.deinterleave %x : vector<32xi1> -> vector<16xi1>", lambda a, b: a[1::2]),
    "elements": (EXTRACTS + "%r = vector.from_elements %t, %s, %t : vector<3xi1>", lambda a, b: [b[4], a[3], b[4]]),
    "to elements": (
        """
        %s = vector.extract_strided_slice %x {offsets = [1], sizes = [3], strides = [1]} : vector<32xi1> to vector<3xi1>
        %t:3 = vector.to_elements %s : vector<3xi1>
        %r = vector.from_elements %t#2, %t#0 : vector<2xi1>""",
        lambda a, b: [a[3], a[1]],
    ),
    "bits": (
        """
        %s = vector.bitcast %x : vector<32xi1> to vector<2xi16>
        %t = vector.extract_strided_slice %s {offsets = [1], sizes = [1], strides = [1]}
          : vector<2xi16> to vector<1xi16>
        %r = vector.bitcast %t : vector<1xi16> to vector<16xi1>""",
        lambda a, b: a[16:],
    ),
    "rows": (
        """%s = vector.shape_cast %x : vector<32xi1> to vector<4x8xi1>
        %f = vector.extract_strided_slice %y {offsets = [3], sizes = [8], strides = [1]}
          : vector<32xi1> to vector<8xi1>
        %r = vector.multi_reduction <or>, %s, %f [0] : vector<4x8xi1> to vector<8xi1>""",
        lambda a, b: a.reshape(4, 8).any(0) | b[3:11],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name):
    body, function = PARTS[name]
    count = np.size(function(*np.zeros((2, 32), int)))
    a, b, out = run(body + wide("%r", count), 32)
    wanted = np.asarray(function(a, b), int).ravel()
    np.testing.assert_array_equal(out[: len(wanted)], wanted)


ARITHMETIC = {
    "addi": np.bitwise_xor,
    "subi": np.bitwise_xor,
    "muli": np.bitwise_and,
    "maxsi": lambda a, b: -np.maximum(-a, -b),
    "minsi": lambda a, b: -np.minimum(-a, -b),
    "maxui": np.maximum,
    "minui": np.minimum,
    "cmpi slt": lambda a, b: -a < -b,
    "cmpi sle": lambda a, b: -a <= -b,
    "cmpi sgt": lambda a, b: -a > -b,
    "cmpi sge": lambda a, b: -a >= -b,
    "cmpi ult": np.less,
    "cmpi ule": np.less_equal,
    "cmpi ugt": np.greater,
    "cmpi uge": np.greater_equal,
}


@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic(op):
    name, _, predicate = op.partition(" ")
    line = f"%r = arith.{name} {predicate + ',' if predicate else ''} %x, %y : vector<32xi1>"
    a, b, out = run(line + wide("%r", 32), 32)
    np.testing.assert_array_equal(out[:32], ARITHMETIC[op](a, b).astype(int))


@pytest.mark.parametrize("op", ["shli", "shrui", "shrsi", "divui", "divsi", "ceildivui", "floordivsi"])
def test_arithmetic_that_is_poison_but_for_one_operand(op):
    """A shift by 0, a quotient of true."""
    second = "arith.constant dense<false>" if op.startswith("sh") else "arith.constant dense<true>"
    # A dynamic operand, as constants are folded.
    line = f"%k = {second} : vector<32xi1>\n%q = arith.{'andi' if 'false' in second else 'ori'} %y, %k : vector<32xi1>"
    if op in ("divsi", "floordivsi"):
        line += "\n%p = arith.constant dense<false> : vector<32xi1>"
    else:
        line += "\n%p = arith.ori %x, %x : vector<32xi1>"
    a, _, out = run(f"{line}\n%r = arith.{op} %p, %q : vector<32xi1>" + wide("%r", 32), 32)
    np.testing.assert_array_equal(out[:32], 0 if op in ("divsi", "floordivsi") else a)


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_floats_to_truth_values(element):
    """Toward zero; what is out of range gives the nearest of 0 and 1, or of 0 and -1, as for other integers."""
    dtype = {"bf16": ml_dtypes.bfloat16}.get(element) or np.dtype(f"f{int(element[1:]) // 8}")
    given = np.array([0, 1, -1, 0.5, -0.5, 1.5, -1.5, 3, -3, np.nan, np.inf, -np.inf, 0.99, -0.99, -0.0, 2], dtype)
    text = f"""
gpu.module @k {{
  gpu.func @f(%a: memref<16x{element}>, %u: memref<16xi8>, %s: memref<16xi8>) kernel {{
    %c0 = arith.constant 0 : index
    %x = vector.load %a[%c0] : memref<16x{element}>, vector<16x{element}>
    %y = arith.fptoui %x : vector<16x{element}> to vector<16xi1>
    %z = arith.fptosi %x : vector<16x{element}> to vector<16xi1>
    %v = arith.extui %y : vector<16xi1> to vector<16xi8>
    %w = arith.extsi %z : vector<16xi1> to vector<16xi8>
    vector.store %v, %u[%c0] : memref<16xi8>, vector<16xi8>
    vector.store %w, %s[%c0] : memref<16xi8>, vector<16xi8>
    gpu.return
  }}
}}
"""
    numbers = given.astype(np.float64)
    for engine in ("both", "reference"):
        u, s = np.zeros(16, np.int8), np.zeros(16, np.int8)
        xegpu_py.compile(text, engine=engine)(given, u, s)
        assert (u.tolist(), s.tolist()) == ((numbers >= 1).tolist(), (-(numbers <= -1).astype(int)).tolist())


@pytest.mark.parametrize("simt", [False, True])
def test_truth_values_in_memory_are_refused(simt):
    text = f"""
gpu.module @k {{
  gpu.func @f(%a: memref<16xi1>, %out: memref<16xi8>) kernel
      {"attributes {xegpu.subgroup_size = 16 : i32}" * simt} {{
    %at = gpu.thread_id x
    %x = memref.load %a[%at] : memref<16xi1>
    %y = arith.extui %x : i1 to i8
    memref.store %y, %out[%at] : memref<16xi8>
    gpu.return
  }}
}}
"""
    with pytest.raises(xegpu_py.DiagnosticError, match=r"6:\d+: error: 'memref.load' op .*elements of type i1"):
        xegpu_py.compile(text)


@pytest.mark.parametrize("name", ["arith.index_cast", "arith.index_castui", "index.casts", "index.castu"])
def test_lowest_bits_of_indices(name):
    """A cast back keeps canonicalization from removing both."""
    text = f"""
gpu.module @m {{
  gpu.func @k(%o: memref<4xi32>) kernel {{
    %x = gpu.block_id x
    %bit = {name} %x : index to i1
    %back = {name} %bit : i1 to index
    %word = arith.index_cast %back : index to i32
    memref.store %word, %o[%x] : memref<4xi32>
    gpu.return
  }}
}}
"""
    out = np.full(4, 7, np.int32)
    xegpu_py.compile(text, engine="both", cache="off")(out, grid=4)
    assert out.tolist() == ([0, -1, 0, -1] if name in ("arith.index_cast", "index.casts") else [0, 1, 0, 1])
