"""xegpu.dpas_mx and xegpu.truncf against numpy's numbers: of subgroups, and of work items."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py import reference
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.numerics import multiply_scaled, truncate

DTYPES = {
    "bf16": ("bf", np.dtype(ml_dtypes.bfloat16)),
    "f16": ("hf", np.dtype(np.float16)),
    "f8E5M2": ("bf8", np.dtype(ml_dtypes.float8_e5m2)),
    "f8E4M3FN": ("hf8", np.dtype(ml_dtypes.float8_e4m3fn)),
    "f4E2M1FN": ("e2m1", np.dtype(ml_dtypes.float4_e2m1fn)),
    "f32": ("f", np.dtype(np.float32)),
}
SCALE = np.dtype(ml_dtypes.float8_e8m0fnu)


def loaded(name, argument, shape, element, packed=False):
    """A load of a whole matrix, whose rows (of the second factor columns) hold two elements of 4 bits in a byte."""
    rows, columns = shape
    value, narrow = element, element == "f4E2M1FN"
    if narrow:
        rows, columns, element = (rows // 2, columns, "i8") if packed else (rows, columns // 2, "i8")
    factor = 4 if element.startswith(("f8", "i8")) else 2
    memory = f"{rows}x{columns}x{element}"
    kind = f"vector<{rows // factor}x{columns}x{factor}x{element}>" if packed else f"vector<{memory}>"
    text = f"""%{name}t = xegpu.create_nd_tdesc %{argument}[0, 0] {{mode = vc}}
        : memref<{memory}> -> !xegpu.tensor_desc<{memory}>
      %{name}{"l" * narrow} = xegpu.load_nd %{name}t {{mode = vc{", vnni_axis = 0" * packed}}}
        : !xegpu.tensor_desc<{memory}> -> {kind}
      """
    if narrow:
        held, kind = (
            kind,
            f"vector<{rows // 4}x{columns}x8x{value}>" if packed else f"vector<{rows}x{shape[1]}x{value}>",
        )
        text += f"%{name} = vector.bitcast %{name}l : {held} to {kind}\n      "
    return text, kind, f"memref<{memory}>"


def kernel(m, n, k, a, b, result, scaled, accumulates):
    """The text of a product, and the types of its arguments."""
    blocks = -(-k // 32)
    parts = {
        "x": loaded("x", "a", (m, k), a),
        "y": loaded("y", "b", (k, n), b, True),
        "sa": loaded("sa", "p", (m, blocks), "f8E8M0FNU"),
        "sb": loaded("sb", "q", (blocks, n), "f8E8M0FNU"),
    }
    block, kind = f"{m}x{n}x{result}", f"vector<{m}x{n}x{result}>"
    types = [parts["x"][1], parts["y"][1], *[kind] * accumulates, *(parts[s][1] for s in scaled)]
    named = "".join(f" {name} = %{s}" for name, s in (("scale_a", "sa"), ("scale_b", "sb")) if s in scaled)
    arguments = ", ".join(f"%{x}: {parts[s][2]}" for x, s in zip("abpq", parts))
    return f"""gpu.module @m {{ gpu.func @k({arguments}, %c: memref<{block}>) kernel {{
      {"".join(text for text, _, _ in parts.values())}%ct = xegpu.create_nd_tdesc %c[0, 0] {{mode = vc}}
        : memref<{block}> -> !xegpu.tensor_desc<{block}>
      %cv = xegpu.load_nd %ct {{mode = vc}} : !xegpu.tensor_desc<{block}> -> {kind}
      %r = xegpu.dpas_mx %x, %y{", %cv" * accumulates}{named} {{mode = vc}} : ({", ".join(types)}) -> {kind}
      xegpu.store_nd %r, %ct {{mode = vc}} : {kind}, !xegpu.tensor_desc<{block}>
      gpu.return
    }} }}"""


def pairs(values, axis):
    """Elements of 4 bits as bytes, the first of two in the lower half."""
    first, second = (np.moveaxis(values.view(np.uint8), axis, 0)[i::2] for i in (0, 1))
    return np.moveaxis(first | second << 4, 0, axis).astype(np.uint8).view(np.int8)


def numbers(rng, shape, dtype):
    return rng.integers(-4, 5, shape).astype(dtype)


def scales(rng, shape):
    return rng.integers(117, 138, shape).astype(np.uint8).view(SCALE)


BOTH = ("sa", "sb")
CASES = [
    (8, 16, 32, "f8E5M2", "f8E4M3FN", "f32", BOTH, True),
    (8, 16, 64, "f4E2M1FN", "f4E2M1FN", "f32", BOTH, True),
    (8, 16, 16, "f16", "f16", "f16", BOTH, True),
    (20, 40, 96, "f8E4M3FN", "f8E4M3FN", "bf16", BOTH, True),
    (16, 32, 192, "f4E2M1FN", "f4E2M1FN", "f32", ("sb",), False),
    # Rows that the instruction has beyond those of the matrix are zero.
    (3, 16, 64, "f4E2M1FN", "f4E2M1FN", "f32", ("sa",), False),
    # One scale is for two steps of K.
    (3, 16, 80, "bf16", "bf16", "bf16", ("sa",), False),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_of_subgroups(case):
    m, n, k, a_type, b_type, result, scaled, accumulates = case
    rng = np.random.default_rng(k)
    a, b = numbers(rng, (m, k), DTYPES[a_type][1]), numbers(rng, (k, n), DTYPES[b_type][1])
    p, q = scales(rng, (m, -(-k // 32))), scales(rng, (-(-k // 32), n))
    c = numbers(rng, (m, n), DTYPES[result][1])
    name = DTYPES[result][0]
    expected = multiply_scaled(
        c if accumulates else None,
        a,
        b,
        p if "sa" in scaled else None,
        q if "sb" in scaled else None,
        W=DTYPES[b_type][0],
        A=DTYPES[a_type][0],
        dst_type=name,
        src0_type=name,
    )
    text = kernel(*case)
    given = [pairs(a, 1) if "f4" in a_type else a, pairs(b, 0) if "f4" in b_type else b, p, q]
    found, evaluated = c.copy(), c.copy()
    xegpu_py.compile(text, target="cri", registers=256, engine="both", cache="off")(*given, found)
    reference.run(xegpu_py.parse(text), "k", [*given, evaluated])
    for got in (found, evaluated):
        np.testing.assert_array_equal(got.view(np.uint8), expected.view(np.uint8))


NARROW = """gpu.module @m { gpu.func @k(%a: memref<8x64xf4E2M1FN>, %b: memref<64x16xf4E2M1FN>,
                                        %c: memref<8x16xf32>, %e: memref<8x64xf4E2M1FN>) kernel {
    %at = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<8x64xf4E2M1FN> -> !xegpu.tensor_desc<8x64xf4E2M1FN>
    %bt = xegpu.create_nd_tdesc %b[0, 0] {mode = vc} : memref<64x16xf4E2M1FN> -> !xegpu.tensor_desc<64x16xf4E2M1FN>
    %ct = xegpu.create_nd_tdesc %c[0, 0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %et = xegpu.create_nd_tdesc %e[0, 0] {mode = vc} : memref<8x64xf4E2M1FN> -> !xegpu.tensor_desc<8x64xf4E2M1FN>
    %x = xegpu.load_nd %at {mode = vc} : !xegpu.tensor_desc<8x64xf4E2M1FN> -> vector<8x64xf4E2M1FN>
    %y = xegpu.load_nd %bt {mode = vc, vnni_axis = 0}
      : !xegpu.tensor_desc<64x16xf4E2M1FN> -> vector<8x16x8xf4E2M1FN>
    %r = xegpu.dpas_mx %x, %y {mode = vc} : (vector<8x64xf4E2M1FN>, vector<8x16x8xf4E2M1FN>) -> vector<8x16xf32>
    xegpu.store_nd %r, %ct {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %x, %et {mode = vc} : vector<8x64xf4E2M1FN>, !xegpu.tensor_desc<8x64xf4E2M1FN>
    gpu.return
  } }"""


@pytest.mark.parametrize("engine", ["both", "reference"])
def test_arrays_of_4_bits(engine):
    """Arrays of ml_dtypes' type, one element to a byte, are packed for the kernel, and blocks of them loaded."""
    rng = np.random.default_rng(6)
    every = np.arange(16, dtype=np.uint8).view(DTYPES["f4E2M1FN"][1])
    a, b = rng.choice(every, (8, 64)), rng.choice(every, (64, 16))
    c, e = np.zeros((8, 16), np.float32), np.zeros_like(a)
    xegpu_py.compile(NARROW, target="cri", engine=engine, cache="off")(a, b, c, e)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_array_equal(e.view(np.uint8), a.view(np.uint8))


@pytest.mark.parametrize("target", ["pvc", "dg2", "bmg"])
def test_other_targets_refuse_it(target):
    with pytest.raises(DiagnosticError, match=f"requires bdpas, which target '{target}' does not support"):
        xegpu_py.compile(kernel(*CASES[0]), target=target)


LANES = """gpu.module @m {
  gpu.func @k(%a: memref<8x32xf16>, %b: memref<32x16xf8E4M3FN>, %p: memref<8x1xf8E8M0FNU>,
              %q: memref<1x16xf8E8M0FNU>, %c: memref<8x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %da = xegpu.create_nd_tdesc %a : memref<8x32xf16> -> !xegpu.tensor_desc<8x16xf16>
    %a0 = xegpu.load_nd %da[0, 0] : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
    %a1 = xegpu.load_nd %da[0, 16] : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
    %both = vector.interleave %a0, %a1 : vector<8xf16> -> vector<16xf16>
    %va = xegpu.truncf %both : vector<16xf16> -> vector<16xf8E5M2>
    %db = xegpu.create_nd_tdesc %b : memref<32x16xf8E4M3FN> -> !xegpu.tensor_desc<32x16xf8E4M3FN>
    %vb = xegpu.load_nd %db[0, 0] <{packed}> : !xegpu.tensor_desc<32x16xf8E4M3FN> -> vector<32xf8E4M3FN>
    %lane = gpu.thread_id x
    %row = arith.remui %lane, %c8 : index
    %own = memref.load %p[%row, %c0] : memref<8x1xf8E8M0FNU>
    %sa = vector.broadcast %own : f8E8M0FNU to vector<1xf8E8M0FNU>
    %sb = memref.load %q[%c0, %lane] : memref<1x16xf8E8M0FNU>
    %d = xegpu.dpas_mx %va, %vb scale_a = %sa scale_b = %sb
      : (vector<16xf8E5M2>, vector<32xf8E4M3FN>, vector<1xf8E8M0FNU>, f8E8M0FNU) -> vector<8xf32>
    %dc = xegpu.create_nd_tdesc %c : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %d, %dc[0, 0] : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}"""


@pytest.mark.parametrize("engine", ["both", "reference"])
def test_of_upstreams_lanes(engine):
    """A lane has two columns of A side by side, the scales of row i modulo 8, and those of its column of B."""
    rng = np.random.default_rng(0)
    a, b = (8 * rng.standard_normal((8, 32))).astype(np.float16), numbers(rng, (32, 16), DTYPES["f8E4M3FN"][1])
    p, q, c = scales(rng, (8, 1)), scales(rng, (1, 16)), np.zeros((8, 16), np.float32)
    xegpu_py.compile(LANES, target="cri", engine=engine, cache="off")(a, b, p, q, c, block=16)
    side_by_side = np.stack([a[:, :16], a[:, 16:]], axis=-1).reshape(8, 32)
    left = truncate(side_by_side, "hf", "bf8")
    types = {"W": "hf8", "A": "bf8", "dst_type": "f", "src0_type": "f"}
    np.testing.assert_array_equal(c, multiply_scaled(None, left, b, p, q, **types))


WORKGROUP = """
#a = #xegpu.layout<sg_layout = [2, 2], sg_data = [32, 64], inst_data = [8, 32]>
#b = #xegpu.layout<sg_layout = [2, 2], sg_data = [64, 32], inst_data = [32, 16]>
#c = #xegpu.layout<sg_layout = [2, 2], sg_data = [32, 32], inst_data = [8, 16]>
#p = #xegpu.layout<sg_layout = [2, 2], sg_data = [32, 2], inst_data = [8, 1]>
#q = #xegpu.layout<sg_layout = [2, 2], sg_data = [2, 32], inst_data = [1, 16]>
gpu.module @m {{
  gpu.func @k(%a: memref<64x128xf16>, %b: memref<128x64xf8E4M3FN>, %p: memref<64x4xf8E8M0FNU>,
              %q: memref<4x64xf8E8M0FNU>, %c: memref<64x64xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %da = xegpu.create_nd_tdesc %a : memref<64x128xf16> -> !xegpu.tensor_desc<64x64xf16>
    %db = xegpu.create_nd_tdesc %b : memref<128x64xf8E4M3FN> -> !xegpu.tensor_desc<64x64xf8E4M3FN>
    %dp = xegpu.create_nd_tdesc %p : memref<64x4xf8E8M0FNU> -> !xegpu.tensor_desc<64x2xf8E8M0FNU>
    %dq = xegpu.create_nd_tdesc %q : memref<4x64xf8E8M0FNU> -> !xegpu.tensor_desc<2x64xf8E8M0FNU>
    %dc = xegpu.create_nd_tdesc %c : memref<64x64xf32> -> !xegpu.tensor_desc<64x64xf32, #c>
    %start = xegpu.load_nd %dc[%c0, %c0] <{{layout = #c}}> : !xegpu.tensor_desc<64x64xf32, #c> -> vector<64x64xf32>
    %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %start) -> (vector<64x64xf32>) {{
      %wide = xegpu.load_nd %da[%c0, %k] <{{layout = #a}}> : !xegpu.tensor_desc<64x64xf16> -> vector<64x64xf16>
      %va = xegpu.truncf %wide : vector<64x64xf16> -> vector<64x64xf8E5M2>
      %vb = xegpu.load_nd %db[%k, %c0] <{{layout = #b}}>
        : !xegpu.tensor_desc<64x64xf8E4M3FN> -> vector<64x64xf8E4M3FN>
      %block = arith.divui %k, %c32 : index
      %vp = xegpu.load_nd %dp[%c0, %block] <{{layout = #p}}>
        : !xegpu.tensor_desc<64x2xf8E8M0FNU> -> vector<64x2xf8E8M0FNU>
      %vq = xegpu.load_nd %dq[%block, %c0] <{{layout = #q}}>
        : !xegpu.tensor_desc<2x64xf8E8M0FNU> -> vector<2x64xf8E8M0FNU>
      %next = xegpu.dpas_mx %va, %vb, %acc{0} <{{layout_a = #a, layout_b = #b, layout_cd = #c}}>
        : (vector<64x64xf8E5M2>, vector<64x64xf8E4M3FN>, vector<64x64xf32>{1}) -> vector<64x64xf32>
      scf.yield %next : vector<64x64xf32>
    }}
    xegpu.store_nd %sum, %dc[%c0, %c0] <{{layout = #c}}> : vector<64x64xf32>, !xegpu.tensor_desc<64x64xf32, #c>
    gpu.return
  }}
}}"""
SCALES = {"scale_a": ("%vp", "vector<64x2xf8E8M0FNU>"), "scale_b": ("%vq", "vector<2x64xf8E8M0FNU>")}


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["both", "reference"])
@pytest.mark.parametrize("names", [("scale_a", "scale_b"), ("scale_b",), ()], ids=str)
def test_of_upstreams_workgroups(names, engine):
    """Each subgroup has the scales of its rows and columns; a product without scales has the scale one."""
    operands = "".join(f" {name} = {SCALES[name][0]}" for name in names)
    text = WORKGROUP.format(operands, "".join(f", {SCALES[name][1]}" for name in names))
    rng = np.random.default_rng(2)
    a, b = (8 * rng.standard_normal((64, 128))).astype(np.float16), numbers(rng, (128, 64), DTYPES["f8E4M3FN"][1])
    p, q, c = scales(rng, (64, 4)), scales(rng, (4, 64)), numbers(rng, (64, 64), DTYPES["f32"][1])
    given = [p if "scale_a" in names else None, q if "scale_b" in names else None]
    types = {"W": "hf8", "A": "bf8", "dst_type": "f", "src0_type": "f"}
    expected = multiply_scaled(c, truncate(a, "hf", "bf8"), b, *given, **types)
    xegpu_py.compile(text, target="cri", engine=engine, cache="off")(a, b, p, q, c)
    np.testing.assert_array_equal(c, expected)


def rounding(source, target, count):
    """A kernel that rounds so many numbers."""
    held, per_byte = ("i8", 2) if target == "f4E2M1FN" else (target, 1)
    bytes_ = f"vector<{count // per_byte}x{held}>"
    out = "%r" if per_byte == 1 else "%o"
    return f"""gpu.module @m {{ gpu.func @k(%x: memref<?x{source}>, %y: memref<?x{held}>) kernel {{
      %id = gpu.block_id x
      %n = arith.constant {count} : index
      %h = arith.constant {count // per_byte} : index
      %i = arith.muli %id, %n : index
      %j = arith.muli %id, %h : index
      %v = vector.load %x[%i] : memref<?x{source}>, vector<{count}x{source}>
      %r = xegpu.truncf %v : vector<{count}x{source}> -> vector<{count}x{target}>
      {"" if per_byte == 1 else f"%o = vector.bitcast %r : vector<{count}x{target}> to {bytes_}"}
      vector.store {out}, %y[%j] : memref<?x{held}>, {bytes_}
      gpu.return
    }} }}"""


@pytest.mark.each_value
@pytest.mark.parametrize("gpu", ["cri", "dg2"])
@pytest.mark.parametrize("target", ["f8E5M2", "f8E4M3FN", "f4E2M1FN"])
@pytest.mark.parametrize("source", ["f16", "bf16", "f32"])
def test_every_number_is_rounded(source, target, gpu):
    """All numbers of 16 bits; for f32 also their neighbours, where ties are broken."""
    name, dtype = DTYPES[source]
    every = np.arange(1 << 16).astype(np.uint16).view(np.float16 if source == "f32" else dtype)
    values = every.astype(dtype)
    if source == "f32":
        beside = values.view(np.uint32) + np.random.default_rng(1).integers(-1, 2, values.shape).astype(np.uint32)
        values = beside.view(np.float32)
    count, per_byte = 256, 2 if target == "f4E2M1FN" else 1
    found = np.zeros(values.size // per_byte, np.int8 if per_byte == 2 else DTYPES[target][1])
    kernel = xegpu_py.compile(rounding(source, target, count), target=gpu, engine="jit", cache="off")
    kernel(values, found, grid=values.size // count)
    expected = truncate(values, name, DTYPES[target][0])
    np.testing.assert_array_equal(
        found.view(np.uint8), (pairs(expected, 0) if per_byte == 2 else expected).view(np.uint8)
    )
    evaluated = np.zeros(count // per_byte, found.dtype)
    reference.run(xegpu_py.parse(rounding(source, target, count)), "k", [values[-count:].copy(), evaluated])
    np.testing.assert_array_equal(evaluated.view(np.uint8), found[-count // per_byte :].view(np.uint8))


SHUFFLE = """gpu.module @m {{
  gpu.func @k(%a: memref<{0}x{1}>, %o: memref<{0}x{1}>) kernel {{
    %lane = gpu.thread_id x
    %n = arith.constant {2} : index
    %at = arith.muli %lane, %n : index
    %v = vector.load %a[%at] : memref<{0}x{1}>, vector<{2}x{1}>
    %s = xegpu.lane_shuffle %v {3} : vector<{2}x{1}>
    vector.store %s, %o[%at] : memref<{0}x{1}>, vector<{2}x{1}>
    gpu.return
  }}
}}"""


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["both", "reference"])
@pytest.mark.parametrize("count", [1, 3, 8])
@pytest.mark.parametrize("mode", ["pack", "unpack"])
def test_lane_shuffle(mode, count, engine):
    """Of `pack` element j of lane i is number j * 16 + i before, and i * count + j after."""
    module = xegpu_py.import_upstream(SHUFFLE.format(16 * count, "i16", count, mode))
    given, found = np.arange(16 * count, dtype=np.int16), np.zeros(16 * count, np.int16)
    xegpu_py.compile(module, engine=engine, cache="off")(given, found, block=16)
    in_lanes, got = given.reshape(16, count), found.reshape(16, count)
    if mode == "unpack":
        in_lanes, got = got, in_lanes
    for lane in range(16):
        for j in range(count):
            number = lane * count + j
            assert got[lane, j] == in_lanes[number % 16, number // 16]
