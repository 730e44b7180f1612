"""Kernels of XeTile with maps of any kind store the results that numpy computes."""

from fractions import Fraction
from random import Random

import ml_dtypes
import numpy as np
import pytest
from effort import examples
from generators.program import check
from generators.xetile import whole_tiles

import xegpu_py

BF16 = ml_dtypes.bfloat16


@pytest.mark.parametrize("seed", range(examples(160)))
def test_random_kernels(seed):
    """Ops of other dialects on whole tiles, and conversions of maps, compute what the reference evaluator does."""
    check(whole_tiles(Random(seed)))


@pytest.mark.parametrize("optimize", [True, False])
def test_accumulators_in_narrow_parts_are_stored_in_broad_ones(optimize):
    """Sums of 16 columns, rounded to f16, in the place of blocks of 32."""
    tile = "!xetile.tile<128x64xf16, #xetile.tile_attr<wg_map = <sg_layout = [8, 1], sg_data = [16, 64]>>>"
    kernel = xegpu_py.compile(
        f"""gpu.module @m {{
  gpu.func @gemm(%A: memref<128x64xf16>, %B: memref<64x64xf16>, %C: memref<128x64xf16>) kernel {{
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant dense<0.0> : vector<128x64xf32>
    %r = scf.for %k = %c0 to %c64 step %c16 iter_args(%sum = %zero) -> (vector<128x64xf32>) {{
      %a = xetile.init_tile %A[0, %k] : memref<128x64xf16> -> !xetile.tile<128x16xf16>
      %b = xetile.init_tile %B[%k, 0] : memref<64x64xf16> -> !xetile.tile<16x64xf16>
      %va = xetile.load_tile %a : !xetile.tile<128x16xf16> -> vector<128x16xf16>
      %vb = xetile.load_tile %b : !xetile.tile<16x64xf16> -> vector<16x64xf16>
      %d = xetile.tile_mma %va, %vb, %sum {{wg_map_c = #xetile.wg_map<sg_layout = [8, 1], sg_data = [16, 16]>}}
        : vector<128x16xf16>, vector<16x64xf16>, vector<128x64xf32> -> vector<128x64xf32>
      scf.yield %d : vector<128x64xf32>
    }}
    %h = arith.truncf %r : vector<128x64xf32> to vector<128x64xf16>
    %c = xetile.init_tile %C[0, 0] : memref<128x64xf16> -> {tile}
    xetile.store_tile %h, %c : vector<128x64xf16>, {tile}
    gpu.return
  }}
}}""",
        target="pvcxt",
        engine="both",
        optimize=optimize,
    )
    a = np.random.default_rng(0).integers(-8, 8, (128, 64)).astype(np.float16)
    c = np.zeros_like(a)
    kernel(a, np.eye(64, dtype=np.float16), c, block=8)
    np.testing.assert_array_equal(c, a)


def test_a_loop_yields_one_value_for_two_maps():
    """Parts of the same shape that lie elsewhere."""
    square, rows = (f"<sg_layout = {grid}, sg_data = [16, 16]>" for grid in ([2, 2], [4, 1]))
    one, two = (f"!xetile.tile<64x32xf32, #xetile.tile_attr<wg_map = {m}>>" for m in (square, rows))
    kernel = xegpu_py.compile(
        f"""gpu.module @m {{
  gpu.func @twice(%A: memref<64x32xf32>, %B: memref<64x32xf32>, %C: memref<64x32xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %a = xetile.init_tile %A[0, 0] : memref<64x32xf32> -> {one}
    %v = xetile.load_tile %a : {one} -> vector<64x32xf32>
    %w = arith.addf %v, %v {{map = #xetile.wg_map{rows}}} : vector<64x32xf32>
    %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %v, %y = %w) -> (vector<64x32xf32>, vector<64x32xf32>) {{
      %z = arith.addf %x, %y : vector<64x32xf32>
      scf.yield %z, %z : vector<64x32xf32>, vector<64x32xf32>
    }}
    %b = xetile.init_tile %B[0, 0] : memref<64x32xf32> -> {one}
    xetile.store_tile %r#0, %b : vector<64x32xf32>, {one}
    %c = xetile.init_tile %C[0, 0] : memref<64x32xf32> -> {two}
    xetile.store_tile %r#1, %c : vector<64x32xf32>, {two}
    gpu.return
  }}
}}""",
        target="pvcxt",
    )
    a = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    b, c = np.zeros_like(a), np.zeros_like(a)
    kernel(a, b, c, block=4)
    np.testing.assert_array_equal(b, 12 * a)
    np.testing.assert_array_equal(c, 12 * a)


def test_groups_that_lie_in_several_parts():
    """Reductions and broadcasts of groups of 16 and 8 elements, where a subgroup has 8 and 4 of them."""
    narrow, sums, out = (
        f"!xetile.tile<{n}xf32, #xetile.tile_attr<wg_map = <sg_layout = [1, 8], sg_data = [32, {data}]>>>"
        for n, data in (("32x64", 8), ("32x4", 1), ("32x32", 4))
    )
    kernel = xegpu_py.compile(
        f"""gpu.module @m {{
  gpu.func @groups(%X: memref<32x64xf32>, %Y: memref<32x4xf32>, %Z: memref<32x32xf32>) kernel {{
    %x = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> {narrow}
    %v = xetile.load_tile %x : {narrow} -> vector<32x64xf32>
    %r = xetile.reduction <add>, %v [1] {{reduction_size = 16}} : vector<32x64xf32> -> vector<32x4xf32>
    %y = xetile.init_tile %Y[0, 0] : memref<32x4xf32> -> {sums}
    xetile.store_tile %r, %y : vector<32x4xf32>, {sums}
    %b = xetile.broadcast %r [1] {{broadcast_size = 8}} : vector<32x4xf32> -> vector<32x32xf32>
    %z = xetile.init_tile %Z[0, 0] : memref<32x32xf32> -> {out}
    xetile.store_tile %b, %z : vector<32x32xf32>, {out}
    gpu.return
  }}
}}""",
        target="pvcxt",
        engine="both",
    )
    x = np.random.default_rng(0).integers(-9, 10, (32, 64)).astype(np.float32)
    y, z = np.zeros((32, 4), np.float32), np.zeros((32, 32), np.float32)
    kernel(x, y, z, block=8)
    wanted = x.reshape(32, 4, 16).sum(2)
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(z, np.repeat(wanted, 8, 1))


def test_a_product_whose_factors_are_divided_along_k():
    """The product has no map; any division among subgroups gives the same numbers."""
    a_tile, b_tile, c_tile = (
        f"!xetile.tile<{shape}, #xetile.tile_attr<wg_map = <sg_layout = {list(layout)}, sg_data = {list(data)}>>>"
        for shape, layout, data in (
            ("16x32xbf16", (1, 4), (16, 8)),
            ("32x16xbf16", (4, 1), (8, 16)),
            ("16x16xf32", (2, 2), (8, 8)),
        )
    )
    kernel = xegpu_py.compile(
        f"""gpu.module @m {{
  gpu.func @k(%A: memref<16x32xbf16>, %B: memref<32x16xbf16>, %C: memref<16x16xf32>) kernel {{
    %a = xetile.init_tile %A[0, 0] : memref<16x32xbf16> -> {a_tile}
    %b = xetile.init_tile %B[0, 0] : memref<32x16xbf16> -> {b_tile}
    %c = xetile.init_tile %C[0, 0] : memref<16x16xf32> -> {c_tile}
    %x = xetile.load_tile %a : {a_tile} -> vector<16x32xbf16>
    %y = xetile.load_tile %b : {b_tile} -> vector<32x16xbf16>
    %p = xetile.tile_mma %x, %y : vector<16x32xbf16>, vector<32x16xbf16> -> vector<16x16xf32>
    %q = xetile.convert_layout %p {{wg_map_result = #xetile.wg_map<sg_layout = [2, 2], sg_data = [8, 8]>}}
      : vector<16x16xf32>
    xetile.store_tile %q, %c : vector<16x16xf32>, {c_tile}
    gpu.return
  }}
}}""",
        engine="both",
    )
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (16, 32)).astype(BF16), rng.integers(-4, 5, (32, 16)).astype(BF16)
    c = np.zeros((16, 16), np.float32)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.each_value
@pytest.mark.parametrize("product", ["", ", wg_map_c = <sg_layout = [2, 4], sg_data = [32, 16]>"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("<sg_layout = [8, 1], sg_data = [8, 32]>", "<sg_layout = [2, 4], sg_data = [16, 16]>"),
        ("<sg_layout = [2, 4], sg_data = [8, 8]>", "<sg_layout = [2, 4], sg_data = [8, 16]>"),
        ("<sg_layout = [1, 8], sg_data = [64, 4]>", "<sg_layout = [8, 1], sg_data = [4, 64]>"),
    ],
)
def test_the_factors_of_a_product_have_any_maps(first, second, product):
    """Other layouts than the product's, and parts of K: they are exchanged, and no value changes."""
    a, b = (f"!xetile.tile<{s}xf16, #xetile.tile_attr<wg_map = {m}>>" for s, m in (("64x32", first), ("32x64", second)))
    c = "!xetile.tile<64x64xf32>"
    text = f"""
    gpu.module @m {{ gpu.func @k(%a: memref<64x32xf16>, %b: memref<32x64xf16>, %c: memref<64x64xf32>) kernel {{
      %ta = xetile.init_tile %a[0, 0] : memref<64x32xf16> -> {a}
      %tb = xetile.init_tile %b[0, 0] : memref<32x64xf16> -> {b}
      %tc = xetile.init_tile %c[0, 0] : memref<64x64xf32> -> {c}
      %x = xetile.load_tile %ta : {a} -> vector<64x32xf16>
      %y = xetile.load_tile %tb : {b} -> vector<32x64xf16>
      %d = xetile.tile_mma %x, %y {{wg_map_a = {first}, wg_map_b = {second}{product}}}
        : vector<64x32xf16>, vector<32x64xf16> -> vector<64x64xf32>
      xetile.store_tile %d, %tc : vector<64x64xf32>, {c}
      gpu.return
    }} }}"""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((64, 32), (32, 64)))
    found = np.zeros((64, 64), np.float32)
    xegpu_py.compile(text, engine="both")(x, y, found, block=8)
    np.testing.assert_array_equal(found, x.astype(np.float32) @ y.astype(np.float32))


REDUCED = """
gpu.module @m {{ gpu.func @k(%a: memref<16x64x{t}>, %b: memref<16x1x{t}>) kernel {{
  %from = xetile.init_tile %a[0, 0] : memref<16x64x{t}> -> !xetile.tile<16x64x{t}, #xetile.tile_attr<wg_map = {m}>>
  %to = xetile.init_tile %b[0, 0] : memref<16x1x{t}> -> !xetile.tile<16x1x{t}>
  %x = xetile.load_tile %from : !xetile.tile<16x64x{t}, #xetile.tile_attr<wg_map = {m}>> -> vector<16x64x{t}>
  %y = xetile.reduction <{kind}>, %x [1] : vector<16x64x{t}> -> vector<16x1x{t}>
  xetile.store_tile %y, %to : vector<16x1x{t}>, !xetile.tile<16x1x{t}>
  gpu.return
}} }}"""
LAYOUTS = [
    f"<sg_layout = [{a}, {b}], sg_data = [{c}, {d}]>"
    for a, b, c, d in ((4, 1, 4, 64), (1, 4, 16, 16), (1, 4, 16, 8), (2, 2, 8, 32), (2, 2, 4, 16))
]


def reduced(kind, element, values, layout):
    found = np.zeros((16, 1), values.dtype)
    text = REDUCED.format(t=element, m=layout, kind=kind)
    xegpu_py.compile(text, engine="both")(values, found, block=4)
    return found[:, 0]


@pytest.mark.each_value
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("element", "dtype", "digits"), [("f32", np.float32, 24), ("f16", np.float16, 11)])
def test_a_sum_in_any_order_is_within_its_bound(layout, element, dtype, digits):
    """docs/numerics.md, reductions: the bound holds for every binary tree."""
    rng = np.random.default_rng(7)
    values = (rng.standard_normal((16, 64)) * 2.0 ** rng.integers(-6, 6, (16, 64))).astype(dtype)
    values[3, 5], values[4, 9], values[4, 50], values[5, 33] = np.nan, np.inf, -np.inf, np.inf
    found = reduced("add", element, values, layout)
    assert np.isnan(found[3]) and np.isnan(found[4]) and found[5] == np.inf
    bound = (1 + Fraction(1, 2**digits)) ** 63 - 1
    for row in (n for n in range(16) if n not in (3, 4, 5)):
        exact = [Fraction(float(v)) for v in values[row]]
        assert abs(Fraction(float(found[row])) - sum(exact)) <= bound * sum(map(abs, exact))


@pytest.mark.parametrize("kind", ["maximumf", "minimumf", "maxnumf", "minnumf"])
def test_extremes_do_not_depend_on_the_layout(kind):
    rng = np.random.default_rng(8)
    values = rng.standard_normal((16, 64)).astype(np.float32)
    values[2, 40], values[7] = np.nan, -0.0
    values[7, 21] = 0.0
    function = {"maximumf": np.max, "minimumf": np.min, "maxnumf": np.nanmax, "minnumf": np.nanmin}[kind]
    wanted = function(values, axis=1)
    wanted[7] = 0.0 if "max" in kind else -0.0
    for layout in LAYOUTS[1::2]:
        found = reduced(kind, "f32", values, layout)
        np.testing.assert_array_equal(found, wanted)
        assert np.signbit(found[7]) == np.signbit(wanted[7])
