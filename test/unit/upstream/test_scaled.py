"""Kernels of workgroups that quantize matrices, dequantize them, and multiply elements of 4 bits."""

import ml_dtypes
import numpy as np
import pytest
from upstream.programs import kernel

import xegpu_py
from xegpu_py.dialects.xegpu.upstream_types import Layout, Slice
from xegpu_py.upstream import import_upstream, rank_reduction

E2M1, E8M0, BF16 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e8m0fnu, ml_dtypes.bfloat16

HALF = """%{0} = xegpu.create_nd_tdesc %{0}m : memref<{1}> -> !xegpu.tensor_desc<{1}{3}>
%v{0} = xegpu.load_nd %{0}[{2}] : !xegpu.tensor_desc<{1}{3}> -> vector<{1}>"""

UNPACK = """%pairs = vector.bitcast %vb : vector<32x32xi8> to vector<32x64xf4E2M1FN>
%even, %odd = vector.deinterleave %pairs : vector<32x64xf4E2M1FN> -> vector<32x32xf4E2M1FN>
%eventh = vector.transpose %even, [1, 0] : vector<32x32xf4E2M1FN> to vector<32x32xf4E2M1FN>
%oddth = vector.transpose %odd, [1, 0] : vector<32x32xf4E2M1FN> to vector<32x32xf4E2M1FN>
%across = vector.interleave %eventh, %oddth : vector<32x32xf4E2M1FN> -> vector<32x64xf4E2M1FN>
%b4 = vector.transpose %across, [1, 0] : vector<32x64xf4E2M1FN> to vector<64x32xf4E2M1FN>"""

QUANTIZE = """%size = math.absf %va : vector<16x64xbf16>
%blocks = vector.shape_cast %size : vector<16x64xbf16> to vector<16x2x32xbf16>
%least = arith.constant dense<0.0> : vector<16x2xbf16>
%most = vector.multi_reduction <maximumf>, %blocks, %least [2] : vector<16x2x32xbf16> to vector<16x2xbf16>
%four = arith.constant dense<4.0> : vector<16x2xbf16>
%part = arith.divf %most, %four : vector<16x2xbf16>
%vp = arith.truncf %part : vector<16x2xbf16> to vector<16x2xf8E8M0FNU>
%wide = vector.broadcast %vp : vector<16x2xf8E8M0FNU> to vector<32x16x2xf8E8M0FNU>
%each = vector.transpose %wide, [1, 2, 0] : vector<32x16x2xf8E8M0FNU> to vector<16x2x32xf8E8M0FNU>
%scales = vector.shape_cast %each : vector<16x2x32xf8E8M0FNU> to vector<16x64xf8E8M0FNU>
%a4 = arith.scaling_truncf %va, %scales : vector<16x64xbf16>, vector<16x64xf8E8M0FNU> to vector<16x64xf4E2M1FN>"""

DEQUANTIZE = """%wide = vector.broadcast %vq : vector<2x32xf8E8M0FNU> to vector<32x2x32xf8E8M0FNU>
%each = vector.transpose %wide, [1, 0, 2] : vector<32x2x32xf8E8M0FNU> to vector<2x32x32xf8E8M0FNU>
%scales = vector.shape_cast %each : vector<2x32x32xf8E8M0FNU> to vector<64x32xf8E8M0FNU>
%bw = arith.scaling_extf %b4, %scales : vector<64x32xf4E2M1FN>, vector<64x32xf8E8M0FNU> to vector<64x32xbf16>"""

LAYOUT = "#xegpu.layout<sg_layout = [2, 2], sg_data = [8, 16]>"
SCALED = f"""%d = xegpu.dpas_mx {{a}}, %b4, %vc scale_a = %vp scale_b = %vq {{{{layout_cd = {LAYOUT}}}}}
  : (vector<16x64xf4E2M1FN>, vector<64x32xf4E2M1FN>, vector<16x32xf32>, vector<16x2xf8E8M0FNU>, vector<2x32xf8E8M0FNU>)
  -> vector<16x32xf32>"""
PLAIN = f"""%d = xegpu.dpas %va, %bw, %vc {{layout_cd = {LAYOUT}}}
  : vector<16x64xbf16>, vector<64x32xbf16>, vector<16x32xf32> -> vector<16x32xf32>"""
STORE = f"""xegpu.store_nd %d, %c[0, 0] <{{layout = {LAYOUT}}}>
  : vector<16x32xf32>, !xegpu.tensor_desc<16x32xf32, {LAYOUT}>"""


def matrices(seed):
    """Codes of B and their numbers, numbers of A that its elements hold, scales of both, and what is added."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 16, (64, 32)).astype(np.uint8)
    elements = random.integers(0, 16, (16, 64)).astype(np.uint8)
    elements[:, ::32] = 6
    p = random.integers(126, 129, (16, 2)).astype(np.uint8).view(E8M0)
    q = random.integers(125, 130, (2, 32)).astype(np.uint8).view(E8M0)
    c = random.integers(-9, 9, (16, 32)).astype(np.float32)
    return codes, elements.view(E2M1), p, q, c


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["reference", "interpreter"])
@pytest.mark.parametrize("form", ["product", "transposed", "quantize", "dequantize"])
def test_elements_of_four_bits(form, engine):
    codes, a4, p, q, c = matrices(0)
    b = (codes[::2] | codes[1::2] << 4).view(np.int8)
    scaled_a = a4.astype(np.float64) * p.astype(np.float64).repeat(32, 1)
    scaled_b = codes.view(E2M1).astype(np.float64) * q.astype(np.float64).repeat(32, 0)
    is_product = form in ("product", "transposed")
    a, element = (a4, "f4E2M1FN") if is_product else (scaled_a.astype(BF16), "bf16")
    given = {"a": (a, f"16x64x{element}"), "b": (b, "32x32xi8"), "p": (p, "16x2xf8E8M0FNU"),
             "q": (q, "2x32xf8E8M0FNU"), "c": (c, "16x32xf32")}  # fmt: skip
    unpack = UNPACK
    if form == "transposed":
        given["b"] = (np.ascontiguousarray(codes.T).view(E2M1), "32x64xf4E2M1FN")
        unpack = "%b4 = vector.transpose %vb, [1, 0] : vector<32x64xf4E2M1FN> to vector<64x32xf4E2M1FN>"
    if not is_product:
        del given["p"]
    loads = [HALF.format(n, kind, "0, 0", f", {LAYOUT}" if n == "c" else "") for n, (_, kind) in given.items()]
    product = SCALED.format(a="%va")
    compute = {"product": product, "transposed": product, "quantize": f"{QUANTIZE}\n{SCALED.format(a='%a4')}",
               "dequantize": f"{DEQUANTIZE}\n{PLAIN}"}  # fmt: skip
    body = "\n".join([*loads, unpack, compute[form], STORE]).split("\n")
    text = kernel(", ".join(f"%{n}m: memref<{kind}>" for n, (_, kind) in given.items()), body)
    expected = scaled_a @ scaled_b + c
    xegpu_py.compile(text, target="cri", engine=engine)(*(array for array, _ in given.values()))
    assert np.array_equal(c, expected)


@pytest.mark.parametrize("engine", ["reference", "interpreter"])
def test_elements_by_turns(engine):
    """Bytes that are divided among subgroups and moved along rows; nothing says that they are bytes of elements."""
    body = f"""%v = xegpu.create_nd_tdesc %a : memref<32x64xi16> -> !xegpu.tensor_desc<32x64xi16>
%x = xegpu.load_nd %v[0, 0] : !xegpu.tensor_desc<32x64xi16> -> vector<32x64xi16>
%even, %odd = vector.deinterleave %x : vector<32x64xi16> -> vector<32x32xi16>
%w = vector.interleave %odd, %even : vector<32x32xi16> -> vector<32x64xi16>
%y = vector.bitcast %w : vector<32x64xi16> to vector<32x32xi32>
%o = xegpu.create_nd_tdesc %b : memref<32x32xi32> -> !xegpu.tensor_desc<32x32xi32>
xegpu.store_nd %y, %o[0, 0] <{{layout = {LAYOUT.replace("[8, 16]", "[16, 16]")}}}>
  : vector<32x32xi32>, !xegpu.tensor_desc<32x32xi32>"""
    a = np.random.default_rng(3).integers(-9999, 9999, (32, 64)).astype(np.int16)
    b = np.zeros((32, 32), np.int32)
    text = kernel("%a: memref<32x64xi16>, %b: memref<32x32xi32>", body.split("\n"))
    xegpu_py.compile(text, engine=engine)(a, b)
    swapped = np.ascontiguousarray(a.reshape(32, 32, 2)[..., ::-1]).view(np.int32)
    assert np.array_equal(b, swapped.reshape(32, 32))


WHOLE = "#xegpu.layout<sg_layout = [1, 1], sg_data = [16, 16]>"
OUT = "!xegpu.tensor_desc<16x16xf32>"


def large_product(kinds, op):
    """A kernel that loads operands of these types whole, with `op` between their loads and the store of `%d`."""
    loads = "\n".join(HALF.format(name, kind, "0, 0", "") for name, kind in kinds.items())
    made = f"{loads}\n%out = xegpu.create_nd_tdesc %om : memref<16x16xf32> -> {OUT}\n{op}"
    stored = f"xegpu.store_nd %d, %out[0, 0] <{{layout = {WHOLE}}}> : vector<16x16xf32>, {OUT}"
    arguments = ", ".join(f"%{name}m: memref<{kind}>" for name, kind in kinds.items())
    return kernel(f"{arguments}, %om: memref<16x16xf32>", [*made.splitlines(), stored])


LARGE = f"""%d = xegpu.dpas %va, %vb {{layout_cd = {WHOLE}}}
  : vector<16x192xf16>, vector<192x16xf16> -> vector<16x16xf32>"""
LARGE_SCALED = f"""%one = arith.constant dense<1.0> : vector<16x16xf32>
%d = xegpu.dpas_mx %va, %vb, %one scale_a = %vp scale_b = %vq {{layout_cd = {WHOLE}}} : (vector<16x320xf8E5M2>,
  vector<320x16xf8E5M2>, vector<16x16xf32>, vector<16x10xf8E8M0FNU>, vector<10x16xf8E8M0FNU>) -> vector<16x16xf32>"""


def test_factors_that_registers_do_not_hold_are_loaded_in_parts():
    random = np.random.default_rng(5)
    a, b = (random.integers(-3, 4, shape).astype(np.float16) for shape in ((16, 192), (192, 16)))
    out = np.zeros((16, 16), np.float32)
    text = large_product({"a": "16x192xf16", "b": "192x16xf16"}, LARGE)
    assert "scf.for" in str(xegpu_py.import_upstream(text))
    xegpu_py.compile(text, engine="jit", cache="off")(a, b, out)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    # Memory may change between the loads and the product.
    changed = "xegpu.store_nd %va, %a[0, 0] : vector<16x192xf16>, !xegpu.tensor_desc<16x192xf16>\n" + LARGE
    text = large_product({"a": "16x192xf16", "b": "192x16xf16"}, changed)
    assert "scf.for" not in str(xegpu_py.import_upstream(text))


def test_scaled_factors_are_loaded_in_parts_with_their_scales():
    random = np.random.default_rng(5)
    a, b = (random.integers(-3, 4, shape).astype(ml_dtypes.float8_e5m2) for shape in ((16, 320), (320, 16)))
    p, q = (random.integers(126, 129, shape).astype(np.uint8) for shape in ((16, 10), (10, 16)))
    out = np.zeros((16, 16), np.float32)
    kinds = {"a": "16x320xf8E5M2", "b": "320x16xf8E5M2", "p": "16x10xf8E8M0FNU", "q": "10x16xf8E8M0FNU"}
    text = large_product(kinds, LARGE_SCALED)
    assert "scf.for" in str(xegpu_py.import_upstream(text))
    xegpu_py.compile(text, engine="jit", cache="off", target="cri")(a, b, p.view(E8M0), q.view(E8M0), out)
    # Scales of other blocks than of 32 elements are an error, as without parts.
    wrong = {**kinds, "p": "16x5xf8E8M0FNU", "q": "5x16xf8E8M0FNU"}
    text = large_product(wrong, LARGE_SCALED.replace("16x10x", "16x5x").replace("10x16x", "5x16x"))
    with pytest.raises(xegpu_py.DiagnosticError):
        xegpu_py.import_upstream(text)
    x = a.astype(np.float32) * np.repeat(2.0 ** (p - 127.0), 32, 1)
    y = b.astype(np.float32) * np.repeat(2.0 ** (q - 127.0), 32, 0)
    np.testing.assert_array_equal(out, 1 + x @ y)


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("element", "k", "shared", "given", "packed"),
    [
        ("f8E5M2", 16, 8, "ab", False), ("f8E4M3FN", 32, 4, "b", False), ("f8E5M2", 48, 16, "a", False),
        ("f8E4M3FN", 16, 8, "a", True), ("f8E4M3FN", 16, 16, "ab", False), ("f4E2M1FN", 64, 16, "ab", False),
        ("f4E2M1FN", 64, 8, "a", True), ("f4E2M1FN", 64, 32, "ab", False),
    ],
)  # fmt: skip
def test_scales_of_fewer_elements_than_instructions_have(element, k, shared, given, packed):
    """As of K = 16 with two scales, in LLVM's test of lanes' parts."""
    random = np.random.default_rng(7)
    kind = {"f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f4E2M1FN": E2M1}[element]
    a, b = (random.integers(-3, 4, shape).astype(kind) for shape in ((8, k), (k, 16)))
    p, q = (random.integers(125, 130, shape).astype(np.uint8) for shape in ((8, k // shared), (k // shared, 16)))
    factor = 8 if element.startswith("f4") else 4
    factor_b = np.ascontiguousarray(b.reshape(-1, factor, 16).swapaxes(1, 2)) if packed else b
    shapes = {"a": f"8x{k}x{element}", "b": f"{k // factor}x16x{factor}x{element}" if packed else f"{k}x16x{element}"}
    shapes |= {"p": f"8x{k // shared}xf8E8M0FNU", "q": f"{k // shared}x16xf8E8M0FNU"}
    scales = {"a": "p", "b": "q"}
    values = dict(zip("abpq", (a, factor_b, p.view(E8M0), q.view(E8M0))))
    names = ["a", "b", *(scales[n] for n in given)]
    text = "".join(f"%{n} = arith.constant dense<{_dense(values[n])}> : vector<{shapes[n]}>\n" for n in names)
    operands = "".join(f" scale_{n} = %{scales[n]}" for n in given)
    types = ", ".join(f"vector<{shapes[n]}>" for n in names)
    text += f"%d = xegpu.dpas_mx %a, %b{operands} : ({types}) -> vector<8x16xf32>\n"
    text += "%c = xegpu.create_nd_tdesc %cm : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>\n"
    text += "xegpu.store_nd %d, %c[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>"
    out = np.zeros((8, 16), np.float32)
    made = xegpu_py.compile(kernel("%cm: memref<8x16xf32>", text.splitlines()), engine="both", target="cri")
    made(out)
    said = f"{shared} elements of K share a scale: zeros fill blocks of 32"
    assert [said in remark.message for remark in made.remarks] == [True] * (shared < 32)
    x, y = a.astype(np.float32), b.astype(np.float32)
    x *= np.repeat(2.0 ** (p - 127.0), shared, 1) if "a" in given else 1
    y *= np.repeat(2.0 ** (q - 127.0), shared, 0) if "b" in given else 1
    np.testing.assert_array_equal(out, x @ y)


def _dense(values):
    return str(values.astype(np.float32).tolist())


def chipped(chip):
    """A block-scaled product in a module for a chip."""
    shapes = {"a": "8x32xf8E5M2", "b": "32x16xf8E5M2", "c": "8x16xf32", "s": "8x1xf8E8M0FNU", "t": "1x16xf8E8M0FNU"}
    body = "".join(
        f"%{n} = xegpu.create_nd_tdesc %{n}m : memref<{s}> -> !xegpu.tensor_desc<{s}>\n"
        f"%v{n} = xegpu.load_nd %{n}[0, 0] : !xegpu.tensor_desc<{s}> -> vector<{s}>\n"
        for n, s in shapes.items()
    )
    types = ", ".join(f"vector<{s}>" for s in shapes.values())
    body += f"%d = xegpu.dpas_mx %va, %vb, %vc scale_a = %vs scale_b = %vt : ({types}) -> vector<8x16xf32>\n"
    body += "xegpu.store_nd %d, %c[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>"
    text = kernel(", ".join(f"%{n}m: memref<{s}>" for n, s in shapes.items()), body.splitlines())
    return text.replace("gpu.module @m {", f'gpu.module @m [#xevm.target<chip = "{chip}">] {{')


def test_modules_for_cri_choose_it():
    for source in (chipped("cri"), import_upstream(chipped("cri"))):
        assert xegpu_py.compile(source).options.target == "cri"
    for chip, options in (("bmg", {}), ("cri", {"target": "pvc"})):
        with pytest.raises(xegpu_py.DiagnosticError, match="requires bdpas") as error:
            xegpu_py.compile(chipped(chip), **options)
        assert "--target=cri" in str(error.value)


FOUR_BITS = """
gpu.module @kernels {{
  gpu.func @k(%a: memref<32x64xf4E2M1FN>, %o: memref<32x64xf4E2M1FN>) kernel {{
    %c16 = arith.constant 16 : index
    %da = xegpu.create_nd_tdesc %a : memref<32x64xf4E2M1FN> -> {desc}
    xegpu.prefetch_nd %da[0, %c16] {op}: {desc}
    %v = xegpu.load_nd %da[0, %c16] {op}: {desc} -> vector<16x32xf4E2M1FN>
    %do = xegpu.create_nd_tdesc %o[8, 32] : memref<32x64xf4E2M1FN> -> {desc}
    {store}
    gpu.return
  }}
}}"""

LAYOUTS_OF_BYTES = {
    "": "",
    "halves of rows": "#xegpu.layout<sg_layout = [2, 2], sg_data = [8, 16]>",
    "round robin": "#xegpu.layout<sg_layout = [2, 2], sg_data = [4, 2]>",
    "odd": "#xegpu.layout<sg_layout = [4, 1], sg_data = [4, 1]>",
    "columns first": "#xegpu.layout<sg_layout = [2, 2], sg_data = [8, 16], order = [0, 1]>",
}


@pytest.mark.parametrize("layout", LAYOUTS_OF_BYTES)
@pytest.mark.parametrize("on", ["op", "descriptor"])
def test_blocks_of_four_bits_with_layouts(layout, on):
    own = f", {LAYOUTS_OF_BYTES[layout]}" if layout and on == "descriptor" else ""
    op = f"<{{layout = {LAYOUTS_OF_BYTES[layout]}}}> " if layout and on == "op" else ""
    desc = f"!xegpu.tensor_desc<16x32xf4E2M1FN{own}>"
    stored = f"xegpu.store_nd %v, %do[0, 0] {op}: vector<16x32xf4E2M1FN>, {desc}"
    text = FOUR_BITS.format(desc=desc, op=op, store=stored)
    a = np.random.default_rng(5).integers(0, 16, (32, 64)).astype(np.uint8).view(E2M1)
    o = np.zeros_like(a)
    xegpu_py.compile(text, engine="interpreter")(a, o)
    expected = np.zeros((32, 64), np.uint8)
    expected[8:24, 32:] = a[:16, 16:48].view(np.uint8)
    np.testing.assert_array_equal(o.view(np.uint8), expected)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[0, %c16]", "[0, 3]", "it is not known to begin at a byte"),
        ("16x32x", "16x31x", "the rows of a block of .* end within a byte"),
        ("    %da = xegpu.create_nd_tdesc %a : MEMORY", "%p = arith.constant 0 : i64\n"
         "%da = xegpu.create_nd_tdesc %p, [32, 64], [64, %c16] : i64", "the innermost stride of elements of f4E2M1FN"),
        ("    %v =", "%c = arith.constant true\n%r = scf.if %c -> (DESC) { scf.yield %da : DESC } else {\n"
         "%e = xegpu.create_nd_tdesc %o : MEMORY -> DESC\nscf.yield %e : DESC }\n%v =",
         "it passes on a descriptor of elements of f4E2M1FN"),
    ],
)  # fmt: skip
def test_blocks_of_four_bits_that_bytes_do_not_hold(old, new, message):
    desc, memory = "!xegpu.tensor_desc<16x32xf4E2M1FN>", "memref<32x64xf4E2M1FN>"
    op = f"<{{layout = {LAYOUTS_OF_BYTES['odd']}}}> "
    text = FOUR_BITS.format(
        desc=desc, op=op, store=f"xegpu.store_nd %v, %do[0, 0] {op}: vector<16x32xf4E2M1FN>, {desc}"
    )
    old, new = (part.replace("DESC", desc).replace("MEMORY", memory) for part in (old, new))
    assert old in text
    with pytest.raises(xegpu_py.DiagnosticError, match=message):
        import_upstream(text.replace(old, new))


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (Layout((2, 2), (8, 16), order=(1, 0)), Layout((2, 2), (8, 8), order=(1, 0))),
        (Layout((1, 2, 2), (1, 3, 16)), Layout((1, 2, 2), (1, 3, 8))),
        (Layout((1, 2, 2), (1, 8, 3)), Layout((1, 2, 2))),
        (Layout((2,), (2,)), Layout((2,), (1,))),
        (Layout((2, 2), (8, 3)), Layout((2, 2))),
        (Layout((2, 2)), Layout((2, 2))),
        (Slice(Layout((2, 2), (8, 16)), (0,)), Slice(Layout((2, 2), (8, 16)), (0,))),
    ],
)
def test_parts_of_subgroups_in_bytes(layout, expected):
    assert rank_reduction._byte_layout(layout, 2) == expected
