"""Descriptors of blocks as upstream's: their memory, and the offsets of the accesses."""

import itertools
import re

import numpy as np
import pytest
from mlir import ir

import xegpu_py
from xegpu_py import reference
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import parse, walk
from xegpu_py.upstream import export_upstream, import_upstream
from xegpu_py.upstream.export import _turned

T = "!xegpu.tensor_desc<8x16xf32>"
SOURCES = [
    ("memref<64x64xf32>", "", ""),
    ("memref<64x64xf32>", ", [64, 64], [64, 1]", ", shape : [64, 64], strides : [64, 1]"),
    ("memref<?x?xf32>", "", ", shape : [%dim, %dim_0], strides : [%strides#0, 1]"),
    ("memref<?x64xf32>", "", ", shape : [%dim, 64], strides : [64, 1]"),
    ("memref<?x?xf32>", ", [64, 32], [32, 1]", ", shape : [64, 32], strides : [32, 1]"),
    ("memref<?x?xf32>", ", [%h, %w], [%w, 1]", ", shape : [%arg1, %arg2], strides : [%arg2, 1]"),
    ("memref<64x64xf32, strided<[?, 1]>>", "", ", shape : [64, 64], strides : [%strides#0, 1]"),
    ("ui64", ", [64, 64], [64, 1]", ", shape : [64, 64], strides : [64, 1]"),
    ("ui64", ", [%h, %w], [%w, 1]", ", shape : [%arg1, %arg2], strides : [%arg2, 1]"),
]


def exported(kind, size, offsets, body):
    head = f"gpu.func @k(%a: {kind}, %h: index, %w: index, %x: index, %p: i1) kernel"
    made = f"%d = xegpu.create_nd_tdesc %a[{offsets}]{size} {{mode = vc}} : {kind} -> {T}"
    text = str(export_upstream(parse(f"gpu.module @m {{ {head} {{ {made} {body} gpu.return }} }}")))
    assert "xegpu" in str(import_upstream(text))
    return re.findall(r"xegpu\.(?:create_nd_tdesc|load_nd|store_nd|prefetch_nd|update_nd_offset) .*(?= : )", text)


@pytest.mark.parametrize("source, offsets", zip(SOURCES, itertools.cycle(["0, 0", "8, 16", "%x, 4"])))
def test_accesses_have_the_offsets(source, offsets):
    """A descriptor is of the whole memory, if all its uses are known; what it is moved by is added."""
    kind, size, stated = source
    body = f"""%v = xegpu.load_nd %d {{mode = vc}} : {T} -> vector<8x16xf32>
    %e = xegpu.update_nd_offset %d, [8, 0] {{mode = vc}} : {T} -> {T}
    xegpu.prefetch_nd %e {{mode = vc}} : {T}
    xegpu.store_nd %v, %e {{mode = vc}} : vector<8x16xf32>, {T}"""
    made, load, *others = exported(kind, size, offsets, body)
    first = offsets.replace("%x", "%arg3")
    moved = {"0, 0": "8, 0", "8, 16": "16, 16", "%x, 4": r"%\d+, 4"}[offsets]
    assert made == f"xegpu.create_nd_tdesc %arg0{stated}"
    assert load == f"xegpu.load_nd %{load[15]}[{first}]"
    prefetch, store = others
    assert re.fullmatch(rf"xegpu\.prefetch_nd %\d\[{moved}\]", prefetch)
    assert re.fullmatch(rf"xegpu\.store_nd %\d, %\d\[{moved}\]", store)


@pytest.mark.parametrize("kind, size, stated", SOURCES[1::3])
def test_control_flow_passes_on_offsets(kind, size, stated):
    body = f"""%f = xegpu.update_nd_offset %d, [8, 0] {{mode = vc}} : {T} -> {T}
    %e = scf.if %p -> ({T}) {{ scf.yield %d : {T} }} else {{ scf.yield %f : {T} }}
    %v = xegpu.load_nd %e {{mode = vc}} : {T} -> vector<8x16xf32>
    xegpu.store_nd %v, %d {{mode = vc}} : vector<8x16xf32>, {T}"""
    made, load, store = exported(kind, size, "%x, 4", body)
    assert made == f"xegpu.create_nd_tdesc %arg0{stated}"
    assert re.fullmatch(r"xegpu\.load_nd %\d\[(%\d)#0, \1#1\]", load)
    assert re.fullmatch(r"xegpu\.store_nd %\d, %\d\[%arg3, %c4\]", store)


VC, BLOCK = "{mode = vc}", "!xegpu.tensor_desc<"
LINE = np.random.default_rng(3).integers(-99, 99, (2, 64)).astype(np.int32)
HALVES = np.random.default_rng(4).integers(-9, 9, (64, 64)).astype(np.float16)


def atomic(kind, combine):
    """Every third element of the first array is updated by the second; one lane is off."""
    body = f"""%o = vector.step : vector<16xindex>
    %three = arith.constant dense<3> : vector<16xindex>
    %p = arith.muli %o, %three : vector<16xindex>
    %five = arith.constant dense<5> : vector<16xindex>
    %m = arith.cmpi ne, %o, %five : vector<16xindex>
    %d = xegpu.create_tdesc %a, %p {VC} : memref<64xi32>, vector<16xindex> -> {BLOCK}16xi32, #xegpu.scattered>
    %e = xegpu.create_nd_tdesc %b[7] {VC} : memref<64xi32> -> {BLOCK}16xi32>
    %v = xegpu.load_nd %e {VC} : {BLOCK}16xi32> -> vector<16xi32>
    %r = xegpu.atomic_rmw {kind}, %v, %d, %m {VC}
      : vector<16xi32>, {BLOCK}16xi32, #xegpu.scattered>, vector<16xi1> -> vector<16xi32>
    %z = arith.constant dense<0> : vector<16xi32>
    %w = arith.select %m, %r, %z : vector<16xi1>, vector<16xi32>
    %f = xegpu.create_nd_tdesc %c[8] {VC} : memref<64xi32> -> {BLOCK}16xi32>
    xegpu.store_nd %w, %f {VC} : vector<16xi32>, {BLOCK}16xi32>"""
    a, c, lanes = LINE[0].copy(), np.zeros(64, np.int32), np.arange(16) != 5
    c[8:24] = np.where(lanes, a[:48:3], 0)
    a[:48:3] = np.where(lanes, combine(a[:48:3], LINE[1, 7:23]), a[:48:3])
    return ["64xi32"] * 3, body, [*LINE, np.zeros(64, np.int32)], [a, LINE[1], c]


def unsigned(function):
    return lambda x, y: function(x.view(np.uint32), y.view(np.uint32)).view(np.int32)


def side_by_side():
    body = f"""%d = xegpu.create_nd_tdesc %a[3, 4] {VC} : memref<64x64xf16> -> {BLOCK}8x16xf16, array_length = 2>
    %v = xegpu.load_nd %d {VC} : {BLOCK}8x16xf16, array_length = 2> -> vector<2x8x16xf16>
    %x = vector.extract %v[0] : vector<8x16xf16> from vector<2x8x16xf16>
    %y = vector.extract %v[1] : vector<8x16xf16> from vector<2x8x16xf16>
    %s = arith.subf %x, %y : vector<8x16xf16>
    %e = xegpu.create_nd_tdesc %b[0, 0] {VC} : memref<8x16xf16> -> {BLOCK}8x16xf16>
    xegpu.store_nd %s, %e {VC} : vector<8x16xf16>, {BLOCK}8x16xf16>"""
    expected = HALVES[3:11, 4:20] - HALVES[3:11, 20:36]
    return ["64x64xf16", "8x16xf16"], body, [HALVES, np.zeros((8, 16), np.float16)], [HALVES, expected]


def in_one_matrix(packing):
    """Two blocks, in one vector, in VNNI layout or not."""
    kind, held = f"{BLOCK}16x16xf16, array_length = 2>", "8x32x2" if packing else "16x32"
    body = f"""%d = xegpu.create_nd_tdesc %a[3, 4] {VC} : memref<64x64xf16> -> {kind}
    %v = xegpu.load_nd %d {{mode = vc{packing}}} : {kind} -> vector<{held}xf16>
    %w = vector.shape_cast %v : vector<{held}xf16> to vector<16x32xf16>
    %e = xegpu.create_nd_tdesc %b[0, 0] {VC} : memref<16x32xf16> -> {BLOCK}16x32xf16>
    xegpu.store_nd %w, %e {VC} : vector<16x32xf16>, {BLOCK}16x32xf16>"""
    block = HALVES[3:19, 4:36]
    expected = block.reshape(8, 2, 32).transpose(0, 2, 1).reshape(16, 32) if packing else block
    return ["64x64xf16", "16x32xf16"], body, [HALVES, np.zeros((16, 32), np.float16)], [HALVES, expected]


def moved_elements():
    kind = f"{BLOCK}16xi32, #xegpu.scattered>"
    body = f"""%o = vector.step : vector<16xindex>
    %m = arith.constant dense<true> : vector<16xi1>
    %d = xegpu.create_tdesc %a, %o {VC} : memref<64xi32>, vector<16xindex> -> {kind}
    %u = xegpu.update_offset %d, %o {VC} : {kind}, vector<16xindex> -> {kind}
    %v = xegpu.load %u, %m {VC} : {kind}, vector<16xi1> -> vector<16xi32>
    %e = xegpu.create_tdesc %b, %o {VC} : memref<64xi32>, vector<16xindex> -> {kind}
    xegpu.store %v, %e, %m {VC} : vector<16xi32>, {kind}, vector<16xi1>"""
    expected = np.r_[LINE[0, :32:2], np.zeros(48, np.int32)]
    return ["64xi32"] * 2, body, [LINE[0], np.zeros(64, np.int32)], [LINE[0], expected]


def transposed():
    body = f"""%d = xegpu.create_nd_tdesc %a[3, 4] {VC} : memref<64x64xf32> -> {BLOCK}16x8xf32>
    %u = xegpu.update_nd_offset %d, [8, 8] {VC} : {BLOCK}16x8xf32> -> {BLOCK}16x8xf32>
    %v = xegpu.load_nd %u {{mode = vc, transpose = [1, 0]}} : {BLOCK}16x8xf32> -> vector<8x16xf32>
    %e = xegpu.create_nd_tdesc %b[0, 0] {VC} : memref<8x16xf32> -> {BLOCK}8x16xf32>
    xegpu.store_nd %v, %e {VC} : vector<8x16xf32>, {BLOCK}8x16xf32>"""
    wide = HALVES.astype(np.float32)
    return ["64x64xf32", "8x16xf32"], body, [wide, np.zeros((8, 16), np.float32)], [wide, wide[11:27, 12:20].T]


def multiplied(turned=False):
    shape, how = ("16x8", "{mode = vc, transpose = [1, 0]}") if turned else ("8x16", VC)
    body = f"""%d = xegpu.create_nd_tdesc %a[8, 0] {VC} : memref<64x64xf16> -> {BLOCK}{shape}xf16>
    %v = xegpu.load_nd %d {how} : {BLOCK}{shape}xf16> -> vector<8x16xf16>
    %f = xegpu.create_nd_tdesc %a[0, 16] {VC} : memref<64x64xf16> -> {BLOCK}16x16xf16>
    %w = xegpu.load_nd %f {{mode = vc, vnni_axis = 0}} : {BLOCK}16x16xf16> -> vector<8x16x2xf16>
    %p = xegpu.dpas %v, %w {VC} : vector<8x16xf16>, vector<8x16x2xf16> -> vector<8x16xf32>
    %e = xegpu.create_nd_tdesc %b[0, 0] {VC} : memref<8x16xf32> -> {BLOCK}8x16xf32>
    xegpu.store_nd %p, %e {VC} : vector<8x16xf32>, {BLOCK}8x16xf32>"""
    wide = HALVES.astype(np.float32)
    expected = (wide[8:24, :8].T if turned else wide[8:16, :16]) @ wide[:16, 16:32]
    return ["64x64xf16", "8x16xf32"], body, [HALVES, np.zeros((8, 16), np.float32)], [HALVES, expected]


def chunks():
    kind = f"{BLOCK}16x4xf16, #xegpu.scattered>"
    body = f"""%o = vector.step : vector<16xindex>
    %n = arith.constant dense<16> : vector<16xindex>
    %p = arith.muli %o, %n : vector<16xindex>
    %m = arith.cmpi ult, %p, %n : vector<16xindex>
    %all = arith.constant dense<true> : vector<16xi1>
    %d = xegpu.create_tdesc %a, %p {{chunk_size_per_lane = 4, mode = vc}} : memref<256xf16>, vector<16xindex> -> {kind}
    xegpu.prefetch %d {VC} : {kind}
    %v = xegpu.load %d, %all {{mode = vc, transpose = [1, 0]}} : {kind}, vector<16xi1> -> vector<4x16xf16>
    %e = xegpu.create_tdesc %b, %p {{chunk_size_per_lane = 4, mode = vc}} : memref<256xf16>, vector<16xindex> -> {kind}
    %off = arith.xori %m, %all : vector<16xi1>
    xegpu.store %v, %e, %off {VC} : vector<4x16xf16>, {kind}, vector<16xi1>"""
    source, expected = HALVES.reshape(-1)[:256].copy(), np.zeros((16, 16), np.float16)
    expected[1:, :4] = source.reshape(16, 16)[1:, :4]
    return ["256xf16"] * 2, body, [source, np.zeros(256, np.float16)], [source, expected.ravel()]


def chosen():
    """A descriptor that a condition chooses is moved, in a loop too."""
    kind = f"{BLOCK}8x16xf16>"
    body = f"""%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %n = memref.dim %a, %c0 : memref<64x64xf16>
    %p = arith.cmpi eq, %n, %c3 : index
    %x = xegpu.create_nd_tdesc %a[0, 16] {VC} : memref<64x64xf16> -> {kind}
    %y = xegpu.create_nd_tdesc %a[%c3, 4] {VC} : memref<64x64xf16> -> {kind}
    %s = arith.select %p, %x, %y : {kind}
    %e = xegpu.create_nd_tdesc %b[0, 0] {VC} : memref<8x16xf16> -> {kind}
    %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %s, %q = %e) -> ({kind}, {kind}) {{
      %u = xegpu.update_nd_offset %t, [8, 2] {VC} : {kind} -> {kind}
      scf.yield %u, %q : {kind}, {kind}
    }}
    %v = xegpu.load_nd %r#0 {VC} : {kind} -> vector<8x16xf16>
    xegpu.store_nd %v, %r#1 {VC} : vector<8x16xf16>, {kind}"""
    return ["64x64xf16", "8x16xf16"], body, [HALVES, np.zeros((8, 16), np.float16)], [HALVES, HALVES[27:35, 10:26]]


KERNELS = {
    **{
        f"atomic {kind}": (lambda kind=kind, function=function: atomic(kind, function))
        for kind, function in {
            "addi": np.add, "maxs": np.maximum, "minu": unsigned(np.minimum), "andi": np.bitwise_and,
            "xori": np.bitwise_xor, "muli": np.multiply, "assign": lambda x, y: y,
        }.items()
    },
    "blocks side by side": side_by_side, "blocks in one matrix": lambda: in_one_matrix(""),
    "packed blocks in one matrix": lambda: in_one_matrix(", vnni_axis = 0"), "moved elements": moved_elements,
    "a transposed block": transposed, "a product": multiplied, "chunks": chunks,
    "a product of a transposed block": lambda: multiplied(turned=True),
    "a chosen block": chosen,
}  # fmt: skip


@pytest.mark.parametrize("count_lanes", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_exported_kernels_compute_the_same(name, count_lanes):
    """They are imported again and run; numpy says what they compute."""
    kinds, body, arrays, expected = KERNELS[name]()
    arguments = ", ".join(f"%{x}: memref<{kind}>" for x, kind in zip("abc", kinds))
    module = parse(f"gpu.module @m {{ gpu.func @k({arguments}) kernel {{ {body} gpu.return }} }}")
    exported = str(export_upstream(module, count_lanes=count_lanes))
    # Upstream's passes pack the factors of products themselves.
    assert ("packed" in exported) == ("vnni_axis" in body and not (count_lanes and name.startswith("a product")))
    copies = [a.copy() for a in arrays]
    xegpu_py.compile(import_upstream(exported, level="subgroup"), cache="off")(*copies)
    for found, wanted in zip(copies, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_exported_functions_and_barriers_compute_the_same():
    kind, barrier = f"{BLOCK}8x16xf16>", "!xegpu.nbarrier"
    text = f"""gpu.module @m {{
      func.func @f(%d: {kind}) -> vector<8x16xf16> {{
        %v = xegpu.load_nd %d {VC} : {kind} -> vector<8x16xf16>
        return %v : vector<8x16xf16>
      }}
      gpu.func @k(%a: memref<64x64xf16>, %b: memref<32x16xf16>) kernel {{
        xegpu.alloc_nbarrier 2
        %one = arith.constant 1 : i8
        %four = arith.constant 4 : i8
        %n = xegpu.init_nbarrier %one, %four : i8, i8 -> {barrier}
        %s = gpu.subgroup_id : index
        %c8 = arith.constant 8 : index
        %row = arith.muli %s, %c8 : index
        %d = xegpu.create_nd_tdesc %a[%row, 16] {VC} : memref<64x64xf16> -> {kind}
        %v = func.call @f(%d) : ({kind}) -> vector<8x16xf16>
        xegpu.nbarrier_arrive %n : {barrier}
        xegpu.nbarrier_wait %n : {barrier}
        %e = xegpu.create_nd_tdesc %b[%row, 0] {VC} : memref<32x16xf16> -> {kind}
        xegpu.store_nd %v, %e {VC} : vector<8x16xf16>, {kind}
        gpu.return
      }}
    }}"""
    exported = str(export_upstream(parse(text)))
    b = np.zeros((32, 16), np.float16)
    xegpu_py.compile(import_upstream(exported, level="subgroup"), cache="off")(HALVES, b, block=4)
    np.testing.assert_array_equal(b, HALVES[:32, 16:32])


@pytest.mark.parametrize(
    ("block", "lanes", "attributes", "fragment", "expected"),
    [
        # Units of 16 bits or more of each row; a row of more units is of one element after the other.
        ("8x16xf16", "[1, 16], [1, 1]", "", "8x1xf16", "8xf16"),
        ("8x16xf32", "[1, 16], [1, 1]", "", "8x1xf32", "8xf32"),
        ("8x32xi8", "[1, 16], [1, 2]", "", "8x2xi8", "16xi8"),
        ("8x32xf16", "[1, 16], [1, 1]", "", "8x2xf16", "16xf16"),
        ("64xf32", "[1, 16], [1, 1]", "", "4xf32", "4xf32"),
        ("64xf16", "[1, 16], [1, 1]", "", "4xf16", "4xf16"),
        ("16x8xf32", "[16, 1], [1, 1]", "{transpose = [1, 0]}", "8x1xf32", "8xf32 transpose"),
        ("16x16xf16", "[1, 16], [2, 1]", "{vnni_axis = 0}", "8x1x2xf16", "16xf16 packed"),
        ("32x16xi8", "[1, 16], [4, 1]", "{vnni_axis = 0}", "8x1x4xi8", "32xi8 packed"),
        ("32x16xi8", "[1, 16], [1, 1]", "", "32x1xi8", "32xi8 packed"),
        # Units of fewer or more bits, columns of a lane, and rows of a lane that are not transposed.
        ("8x32xi8", "[1, 16], [1, 1]", "", "8x2xi8", None),
        ("8x64xi8", "[1, 16], [1, 4]", "", "8x4xi8", None),
        ("8x32xf16", "[1, 16], [1, 2]", "", "8x2xf16", None),
        ("8x32xf32", "[1, 16], [1, 2]", "", "8x2xf32", None),
        ("64xf32", "[1, 16], [1, 2]", "", "4xf32", None),
        ("64xi8", "[1, 16], [1, 1]", "", "4xi8", None),
        ("16x8xf32", "[16, 1], [1, 1]", "", "1x8xf32", None),
    ],
)
def test_blocks_that_lanes_load(block, lanes, attributes, fragment, expected):
    layout, data = lanes.split(", [")
    wi_map = f"<wi_layout = {layout}, wi_data = [{data}>"
    one = block.count("x") == 1
    attr = f"#xegpu.tdesc_attr<boundary_check = false, map = {wi_map}>" if one else f"#xegpu.sg_map{wi_map}"
    memory, at = ("64x" + block.split("x")[-1], "0") if one else (f"64x64x{block.split('x')[-1]}", "0, 0")
    desc = f"!xegpu.tensor_desc<{block}, {attr}>"
    head = f"gpu.func @k(%a: memref<{memory}>) kernel attributes {{xegpu.subgroup_size = 16 : i32}}"
    text = f"""gpu.module @m {{ {head} {{
  %d = xegpu.create_nd_tdesc %a[{at}] : memref<{memory}> -> {desc}
  %v = xegpu.load_nd %d {attributes} : {desc} -> vector<{fragment}>
  %w = arith.add{block[-3] if block[-3] in "fi" else block[-2]} %v, %v : vector<{fragment}>
  gpu.return }} }}"""
    if expected is None:
        with pytest.raises(DiagnosticError, match="does not leave elements where upstream's lane level has them"):
            export_upstream(parse(text))
        return
    kind, *words = expected.split()
    text = str(export_upstream(parse(text)))
    casts = [] if kind == fragment else [(f"vector<{kind}>", f"vector<{fragment}>")]
    assert re.findall(r"vector.shape_cast .* : (\S*) to (\S*)", text) == casts
    [line] = [line for line in text.splitlines() if "load_nd" in line]
    assert line.endswith(f"!xegpu.tensor_desc<{block}> -> vector<{kind}>")
    assert [word for word in ("packed", "transpose") if word in line] == words


@pytest.mark.parametrize(
    ("shape", "outer", "unit", "expected"),
    [((4, 16), 0, 1, (16, 4)), ((4, 16), 0, 2, (8, 8)), ((4, 16), 0, 4, (4, 16)), ((3, 4, 16), 1, 2, (3, 8, 8))],
)
def test_turned_blocks_keep_units(shape, outer, unit, expected):
    """Elements of a unit stay side by side."""
    kinds = [f"{'x'.join(map(str, s))}xi16" for s in (shape, expected)]
    zeros = [", ".join(["%c0"] * len(s)) for s in (shape, expected)]
    module = parse(f"""gpu.module @m {{ gpu.func @f(%a: memref<{kinds[0]}>, %o: memref<{kinds[1]}>) kernel {{
  %c0 = arith.constant 0 : index
  %p = arith.constant 0 : i16
  %v = vector.transfer_read %a[{zeros[0]}], %p : memref<{kinds[0]}>, vector<{kinds[0]}>
  %w = arith.constant dense<0> : vector<{kinds[1]}>
  vector.transfer_write %w, %o[{zeros[1]}] : vector<{kinds[1]}>, memref<{kinds[1]}>
  gpu.return }} }}""")
    read, write = (
        next(op for op in walk(module.operation) if op.name == f"vector.transfer_{n}") for n in ("read", "write")
    )
    with module.context, ir.Location.unknown(), ir.InsertionPoint(write):
        write.operands[0] = _turned(read.results[0], outer, (1, 0), unit)
    data, out = np.arange(np.prod(shape), dtype=np.int16).reshape(shape), np.zeros(expected, np.int16)
    reference.run(module, "f", [data, out])
    rows, columns = shape[-2:]
    turned = data.reshape(*shape[:outer], rows, columns // unit, unit).swapaxes(-3, -2)
    assert np.array_equal(out, turned.reshape(expected))
