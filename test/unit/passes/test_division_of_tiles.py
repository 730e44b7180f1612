"""Among how many subgroups the tiles of a kernel are divided that names none, and which arrays it stores to."""

from types import SimpleNamespace

import pytest
from mlir import ir

from xegpu_py.dialects.xetile.types import WgMap
from xegpu_py.ir.module import parse, walk
from xegpu_py.lower_kernel import subgroups_for
from xegpu_py.passes.analysis import tile_layout_inference
from xegpu_py.passes.analysis.tile_division import (
    PREFERRED_SUBGROUPS,
    can_be_divided,
    stored_arguments,
    suitable_subgroups,
)
from xegpu_py.runtime.options import Options

ARGUMENTS = "%Y: memref<?x?xf32>, %Z: memref<?x?xf32>, %i: index, %p: i1"


def func(body: str, tile: str = "8x16xf32"):
    """A module, and its kernel of a body after a tile of X, `%x`, and what it loads, `%v`."""
    memory = f"memref<?x?x{tile.rpartition('x')[2] or 'f32'}>"
    before = f"""%x = xetile.init_tile %X[0, 0] : {memory} -> !xetile.tile<{tile}>
    %v = xetile.load_tile %x : !xetile.tile<{tile}> -> vector<{tile}>"""
    head = f"gpu.func @k(%X: {memory}, {ARGUMENTS}) kernel"
    module = parse(f"gpu.module @m {{ {head} {{ {before if tile else ''} {body} gpu.return }} }}")
    return module, next(op for op in walk(module.operation) if op.name == "gpu.func")


PRODUCT = """%a{k} = arith.constant dense<1.0> : vector<{m}x16xbf16>
%b{k} = arith.constant dense<1.0> : vector<16x{n}xbf16>
%d{k} = xetile.tile_mma %a{k}, %b{k} : vector<{m}x16xbf16>, vector<16x{n}xbf16> -> vector<{m}x{n}xf32>
"""

CONTRACTION = """%a = arith.constant dense<1.0> : vector<32x{k}xf32>
%b = arith.constant dense<1.0> : vector<{k}x16xf32>
%c = arith.constant dense<1.0> : vector<32x16xf32>
%d = vector.contract {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"],
  kind = #vector.kind<add>}} %a, %b, %c : vector<32x{k}xf32>, vector<{k}x16xf32> into vector<32x16xf32>
%e = arith.negf %d : vector<32x16xf32>
"""
MAPS = ", ".join(f"affine_map<(m, n, k) -> ({dims})>" for dims in ("m, k", "k, n", "m, n"))


def repeated(op: str, times: int, shape: str = "16x32xf32") -> str:
    """Ops that compute of `%v`."""
    return " ".join(f"%o{k} = {op} : vector<{shape}> %u{k} = arith.negf %o{k} : vector<{shape}>" for k in range(times))


SUM, EXPONENTIAL, QUOTIENT = "arith.addf %v, %v", "math.exp %v", "arith.divf %v, %v"
WHILE = """%c1 = arith.constant 1 : index
%r:2 = scf.while (%j = %i, %q = %p) : (index, i1) -> (index, i1) {{ {condition}
  scf.condition(%go) %j, %q : index, i1 }} do {{ ^bb0(%j: index, %q: i1):
  %e = memref.load %Y[%j, %j] : memref<?x?xf32> %z = arith.constant 0.0 : f32
  %read = arith.cmpf olt, %e, %z : f32
  %n = arith.addi %j, %c1 : index scf.yield %n, {carried} : index, i1 }}"""


@pytest.mark.parametrize(
    ("tile", "body", "count"),
    [
        # Vectors of more than 2 KiB are divided, by powers of two, up to 32.
        ("8x16xf32", "", 1), ("16x32xf32", "", 1), ("33x16xf32", "", 2), ("32x32xf32", "", 2), ("65x16xf32", "", 4),
        ("128x32xf32", "", 8), ("512x32xf32", "", 32), ("1024x32xf32", "", 32),
        ("64x16xbf16", "", 1), ("65x16xbf16", "", 2),
        # Products of more than 8 KiB, all of them counted; smaller ones do not, however large other vectors are.
        ("8x16xf32", PRODUCT.format(m=32, n=64, k=0), 1),
        ("8x16xf32", PRODUCT.format(m=32, n=64, k=0) + PRODUCT.format(m=32, n=64, k=1), 2),
        ("8x16xf32", PRODUCT.format(m=64, n=64, k=0), 2), ("8x16xf32", PRODUCT.format(m=8, n=16, k=0), 1),
        ("128x32xf32", PRODUCT.format(m=32, n=64, k=0), 1),
        # More than 256 instructions, counted in registers of results: one for most ops, 16 for functions and divisions.
        ("16x32xf32", repeated(SUM, 7), 1), ("16x32xf32", repeated(SUM, 8), 2),
        ("16x32xf32", repeated(EXPONENTIAL, 1), 4), ("16x32xf32", repeated(QUOTIENT, 1), 4),
        # Neither a constant nor what is not used counts.
        ("16x32xf32", f"%c = arith.constant dense<1.0> : vector<16x32xf32> {repeated('arith.addf %v, %c', 7)}", 1),
        # As long as vectors are not smaller than 512 bytes.
        ("16x32xf32", repeated(EXPONENTIAL, 8), 4), ("8x16xf32", repeated(EXPONENTIAL, 8, "8x16xf32"), 1),
        ("64x64xf32", repeated(EXPONENTIAL, 1, "64x64xf32"), 32),
        # A contraction has an instruction for each index of K.
        ("16x32xf32", CONTRACTION.format(k=8, maps=MAPS), 1), ("16x32xf32", CONTRACTION.format(k=9, maps=MAPS), 2),
        # Code beside products is not counted.
        ("16x32xf32", repeated(EXPONENTIAL, 8) + PRODUCT.format(m=8, n=16, k=0), 1),
        # What cannot be divided.
        ("64x64xf32", "%s = vector.shape_cast %v : vector<64x64xf32> to vector<1x64x64xf32>", 1),
        ("64x64xf32", "%e = vector.extract %v[0, 0] : f32 from vector<64x64xf32> "
         "%s = vector.insert %e, %v [1, 1] : f32 into vector<64x64xf32>", 1),
        # Elements move along a dimension: vectors of more than 512 bytes are divided.
        ("64x64xf32", "%s = vector.extract_strided_slice %v {offsets = [0, 0], sizes = [8, 64], strides = [1, 1]}"
         " : vector<64x64xf32> to vector<8x64xf32>", 32),
        ("64x64xf32", "%s = arith.addf %v, %v : vector<64x64xf32>", 8),
        # Indices and truth values do not count.
        ("8x16xf32", "%s = arith.constant dense<1> : vector<64x64xindex>", 1),
        ("8x16xf32", "%s = arith.constant dense<true> : vector<256x128xi1>", 1),
        ("8x16xf32", "%s = arith.constant dense<1> : vector<64x64xi32>", 8),
        # Loops whose condition depends on memory that they read may end earlier in some subgroups.
        ("64x64xf32", WHILE.format(condition="%go = arith.cmpi ult, %j, %i : index", carried="%q"), 8),
        ("64x64xf32", WHILE.format(condition="%go = arith.cmpi ult, %j, %i : index", carried="%read"), 8),
        ("64x64xf32", WHILE.format(condition="%t = arith.constant true %go = arith.andi %q, %t : i1",
                                   carried="%read"), 1),
        ("64x64xf32", WHILE.format(condition="%t = arith.constant true %go = arith.andi %q, %t : i1",
                                   carried="%p"), 8),
    ],
)  # fmt: skip
def test_suitable_subgroups(tile, body, count):
    _, kernel = func(body, tile)
    assert suitable_subgroups(kernel) == count
    for asked, found in ((0, count), (1, 1), (4, 4), (None, 1)):
        assert subgroups_for(kernel, Options(subgroups=asked)) == (found if found > 1 else None)


@pytest.mark.parametrize(
    ("rows", "columns", "preferred", "count"),
    [(64, 64, 1, 2), (64, 64, 2, 2), (64, 64, 4, 4), (64, 64, 8, 4), (8, 16, 8, 1), (32, 32, 8, 1), (40, 32, 8, 2),
     (128, 64, 2, 4)],
)  # fmt: skip
def test_subgroups_that_are_preferred_for_products(rows, columns, preferred, count):
    _, kernel = func(PRODUCT.format(m=rows, n=columns, k=0))
    with kernel.context:
        kernel.attributes[PREFERRED_SUBGROUPS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), preferred)
    assert suitable_subgroups(kernel) == count


def test_subgroups_are_preferred_for_products_only():
    _, kernel = func("", "32x32xf32")
    with kernel.context:
        kernel.attributes[PREFERRED_SUBGROUPS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 8)
    assert suitable_subgroups(kernel) == 2


MAP = "#xetile.wg_map<sg_layout = [2, 1], sg_data = [4, 16]>"


@pytest.mark.parametrize(
    ("tile", "body", "divided"),
    [
        ("8x16xf32", "", True),
        ("", "%s = arith.constant dense<1.0> : vector<64x64xf32>", False),
        ("8x16xf32", "%s = gpu.subgroup_id : index", False),
        ("8x16xf32", "%s = gpu.thread_id x", False),
        ("8x16xf32", "%s = gpu.lane_id", False),
        ("8x16xf32", "%s = gpu.block_id x", True),
        ("8x16xf32", "xegpu.compile_hint", False),
        ("8x16xf32", "%s = xegpu.truncf %v : vector<8x16xf32> to vector<8x16xf8E5M2>", True),
        ("8x16xf32", f"%s = math.absf %v {{map = {MAP}}} : vector<8x16xf32>", False),
    ],
)
def test_kernels_that_can_be_divided(tile, body, divided):
    _, kernel = func(body, tile)
    assert can_be_divided(kernel) == divided
    assert (subgroups_for(kernel, Options(subgroups=2)) == 2) == divided


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        ("", ()),
        ("xetile.store_tile %v, %x : vector<8x16xf32>, !xetile.tile<8x16xf32>", (0,)),
        ("%e = arith.constant 1.0 : f32 memref.store %e, %Z[%i, %i] : memref<?x?xf32>", (2,)),
        ("%e = memref.load %Z[%i, %i] : memref<?x?xf32>", ()),
        ("%s = memref.subview %Y[0, 0] [8, 16] [1, 1] : memref<?x?xf32> to memref<8x16xf32, strided<[?, 1]>> "
         "%e = arith.constant 1.0 : f32 memref.store %e, %s[%i, %i] : memref<8x16xf32, strided<[?, 1]>>", (1,)),
        ("%y = xetile.init_tile %Y[0, 0] : memref<?x?xf32> -> !xetile.tile<8x16xf32> "
         "%t = scf.if %p -> (!xetile.tile<8x16xf32>) { scf.yield %x : !xetile.tile<8x16xf32> } else "
         "{ scf.yield %y : !xetile.tile<8x16xf32> } "
         "xetile.store_tile %v, %t : vector<8x16xf32>, !xetile.tile<8x16xf32>", (0, 1)),
        ("%c = arith.constant 4096 : i64 %y = xetile.init_tile %c[0, 0], [8, 16], [16, 1] : i64 "
         "-> !xetile.tile<8x16xf32> "
         "xetile.store_tile %v, %y : vector<8x16xf32>, !xetile.tile<8x16xf32>", (0, 1, 2, 3, 4)),
    ],
)  # fmt: skip
def test_arrays_that_a_kernel_stores_to(body, stored):
    _, kernel = func(body)
    assert stored_arguments(kernel) == stored


def test_maps_of_the_factors_and_scales_of_a_product():
    """Each subgroup has its rows of A and columns of B, with all of K, and their scales."""
    module = parse("""gpu.module @m { gpu.func @k(%a: vector<32x64xf8E5M2>, %b: vector<64x48xf8E5M2>,
      %s: vector<32x2xf8E8M0FNU>, %t: vector<2x48xf8E8M0FNU>) kernel { gpu.return } }""")
    func = next(op for op in walk(module.operation) if op.name == "gpu.func")
    a, b, s, t = func.regions[0].blocks[0].arguments
    own = SimpleNamespace(a=a, b=b, wg_map_a=WgMap((2, 3), (16, 64)), wg_map_b=WgMap((2, 3), (64, 16)), wg_map_c=None)
    product = WgMap((2, 3), (16, 16))
    assert tile_layout_inference.factors(product, own) == (own.wg_map_a, own.wg_map_b)
    assert tile_layout_inference.factors(WgMap((1, 1), (8, 24)), own) == (
        WgMap((1, 1), (8, 64)), WgMap((1, 1), (64, 24))
    )  # fmt: skip
    assert tile_layout_inference.factors(None, own) == (own.wg_map_a, own.wg_map_b)
    assert tile_layout_inference.scale_map(product, s, True) == WgMap((2, 3), (16, 2))
    assert tile_layout_inference.scale_map(product, t, False) == WgMap((2, 3), (2, 16))
    assert tile_layout_inference.scale_map(None, s, True) is None
    # The map of the product itself, or what the maps of both factors say if they divide it alike.
    assert tile_layout_inference._product(own) == product
    for changes, expected in (
        ({"wg_map_c": WgMap((1, 1), (32, 48))}, WgMap((1, 1), (32, 48))),
        ({"wg_map_a": None}, None),
        ({"wg_map_b": None}, None),
        ({"wg_map_b": WgMap((3, 2), (64, 16))}, None),
    ):
        assert tile_layout_inference._product(SimpleNamespace(**{**vars(own), **changes})) == expected


def test_inference_visits_ops_that_new_maps_concern(monkeypatch):
    """Each of many vectors gets a map of its own, which concerns the few ops around it."""
    body = "".join(
        f"%t{i} = xetile.init_tile %X[0, {32 * i}] : memref<?x?xf32> -> !xetile.tile<32x32xf32> "
        f"%w{i} = arith.negf %v : vector<32x32xf32> xetile.store_tile %w{i}, %t{i} : vector<32x32xf32>, "
        f"!xetile.tile<32x32xf32> %c{i} = vector.step : vector<{i + 64}xindex> "
        for i in range(32)
    )
    module, kernel = func(body, "32x32xf32")
    visited = []
    forward = tile_layout_inference.Layouts._forward
    monkeypatch.setattr(
        tile_layout_inference.Layouts, "_forward", lambda self, op: visited.append(op) or forward(self, op)
    )
    with module.context, ir.Location.unknown():
        kernel.attributes["xetile.subgroups"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 4)
        layouts = tile_layout_inference.Layouts(kernel)
    assert all(layouts.get(op.results[0]) for op in walk(kernel) if op.name == "vector.step")
    assert len(visited) < 6 * len(walk(kernel))
