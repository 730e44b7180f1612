"""Kernels of XeTile of any shape, type and map, with whole numbers, so that every bit of the results is known."""

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py.runtime.host_arrays import DTYPES

RNG = np.random.default_rng(0)


def whole(element, *shape):
    return RNG.integers(-8, 9, shape).astype(DTYPES[element])


def run(body, arguments, *arrays, block=1, target="pvcxt"):
    """Run the ops of a kernel; arrays that are given as zeros are its results."""
    text = f"gpu.module @m {{ gpu.func @k({arguments}) kernel {{\n{body}\ngpu.return\n}} }}"
    xegpu_py.compile(text, target=target, check=["uninit", "races"], registers=256)(*arrays, block=block)


def tile(rows, columns, element, order="", wg_map="", space=""):
    settings = [s for s in (f"wg_map = {wg_map}" if wg_map else "", f"order = {order}" if order else "", space) if s]
    attr = f", #xetile.tile_attr<{', '.join(settings)}>" if settings else ""
    return f"!xetile.tile<{rows}x{columns}x{element}{attr}>"


TYPES = ["f32", "f16", "bf16", "i8", "i32"]


@settings(max_examples=examples(8))
@given(
    st.sampled_from(TYPES),
    st.tuples(st.integers(1, 40), st.integers(1, 70)),
    st.tuples(st.integers(1, 40), st.integers(1, 70)),
    st.tuples(st.integers(0, 20), st.integers(0, 20)),
    st.sampled_from(["", "[0, 1]"]),
    st.sampled_from(["pvcxt", "dg2"]),
    st.booleans(),
)
@example("f32", (1, 1), (16, 17), (16, 0), "[0, 1]", "pvcxt", True)
def test_tiles_of_any_shape_in_matrices_of_any_shape(element, shape, matrix, place, order, target, padded):
    """A tile that exceeds one or more edges of its matrix is loaded, and stored to another matrix."""
    (h, w), (rows, columns), (y, x) = shape, matrix, place
    memref, kind, vector = f"memref<{rows}x{columns}x{element}>", tile(h, w, element), f"vector<{h}x{w}x{element}>"
    source, source_kind = memref, kind
    given, out = whole(element, rows, columns), whole(element, rows, columns)
    cast = ""
    if order:
        given = np.ascontiguousarray(given.T)
        flat = f"memref<{columns}x{rows}x{element}>"
        source = f"memref<{rows}x{columns}x{element}, strided<[1, {rows}]>>"
        cast = (
            f"%X = memref.reinterpret_cast %Xt to offset: [0], sizes: [{rows}, {columns}], strides: [1, {rows}]"
            f" : {flat} to {source}"
        )
        source_kind = tile(h, w, element, order)
    fill = (5 if "i" in element else 5.0) if padded else 0
    number = "i32" if element == "i32" else element
    padding = f"{{padding = {fill} : {number}}}" if padded else ""
    body = f"""{cast}
    %s = xetile.init_tile %X[{y}, {x}] : {source} -> {source_kind}
    %t = xetile.init_tile %Y[{x}, {y}] : {memref} -> {kind}
    %v = xetile.load_tile %s {padding} : {source_kind} -> {vector}
    xetile.store_tile %v, %t : {vector}, {kind}"""
    name = "%Xt" if order else "%X"
    argument = f"memref<{columns}x{rows}x{element}>" if order else memref
    expected = out.copy()
    loaded = np.full((h, w), fill, out.dtype)
    inside = (given.T if order else given)[y : y + h, x : x + w]
    loaded[: inside.shape[0], : inside.shape[1]] = inside
    target_part = expected[x : x + h, y : y + w]
    target_part[...] = loaded[: target_part.shape[0], : target_part.shape[1]]
    run(body, f"{name}: {argument}, %Y: {memref}", given, out, target=target)
    np.testing.assert_array_equal(out, expected)


@settings(max_examples=examples(8))
@given(st.sampled_from(["f32", "i32", "f16"]), st.integers(1, 20), st.integers(1, 40), st.sampled_from([1, 2]))
def test_reductions_broadcasts_and_transposes_of_any_shape(element, h, w, group):
    """The sum of each row and of each column, of groups of a row, and all of it transposed."""
    w *= group
    more = "i" if element == "i32" else "f"
    body = f"""
    %s = xetile.init_tile %X[0, 0] : memref<{h}x{w}x{element}> -> {tile(h, w, element)}
    %v = xetile.load_tile %s : {tile(h, w, element)} -> vector<{h}x{w}x{element}>
    %r = xetile.reduction <add>, %v [1] : vector<{h}x{w}x{element}> -> vector<{h}x1x{element}>
    %c = xetile.reduction <add>, %v [0] : vector<{h}x{w}x{element}> -> vector<1x{w}x{element}>
    %g = xetile.reduction <add>, %v [1] {{reduction_size = {group}}}
      : vector<{h}x{w}x{element}> -> vector<{h}x{w // group}x{element}>
    %rb = xetile.broadcast %r [1] : vector<{h}x1x{element}> -> vector<{h}x{w}x{element}>
    %cb = xetile.broadcast %c [0] : vector<1x{w}x{element}> -> vector<{h}x{w}x{element}>
    %gb = xetile.broadcast %g [1] {{broadcast_size = {group}}}
      : vector<{h}x{w // group}x{element}> -> vector<{h}x{w}x{element}>
    %1 = arith.add{more} %rb, %cb : vector<{h}x{w}x{element}>
    %2 = arith.add{more} %1, %gb : vector<{h}x{w}x{element}>
    %3 = xetile.transpose %2, [1, 0] : vector<{h}x{w}x{element}> -> vector<{w}x{h}x{element}>
    %t = xetile.init_tile %Y[0, 0] : memref<{w}x{h}x{element}> -> {tile(w, h, element)}
    xetile.store_tile %3, %t : vector<{w}x{h}x{element}>, {tile(w, h, element)}"""
    x, y = RNG.integers(-2, 3, (h, w)).astype(DTYPES[element]), whole(element, w, h)
    run(body, f"%X: memref<{h}x{w}x{element}>, %Y: memref<{w}x{h}x{element}>", x, y)
    groups = x.reshape(h, w // group, group).sum(2).repeat(group, 1)
    np.testing.assert_array_equal(y, (x.sum(1, keepdims=True) + x.sum(0, keepdims=True) + groups).T)


@settings(max_examples=examples(8))
@given(
    st.sampled_from([("bf16", "f32"), ("f16", "f32"), ("i8", "i32"), ("tf32", "f32")]),
    st.integers(1, 24),
    st.integers(1, 40),
    st.integers(1, 70),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["pvcxt", "dg2"]),
)
def test_products_of_any_shape(elements, m, n, k, added, scaled, target):
    """Edges are filled up with zeros. What is computed before it is multiplied is packed in registers."""
    narrow, out = elements
    if target == "dg2" and narrow == "tf32":
        narrow = "f16"
    held = "f32" if narrow == "tf32" else narrow
    a, b, c = whole(held, m, k), whole(held, k, n), whole(out, m, n)
    va, vb, vc = f"vector<{m}x{k}x{narrow}>", f"vector<{k}x{n}x{narrow}>", f"vector<{m}x{n}x{out}>"
    twice = ""
    factor = "%b"
    if scaled and narrow != "tf32":
        twice = f"%b2 = arith.add{'i' if 'i' in narrow else 'f'} %b, %b : {vb}"
        factor = "%b2"
    body = f"""
    %ta = xetile.init_tile %A[0, 0] : memref<{m}x{k}x{narrow}> -> {tile(m, k, narrow)}
    %tb = xetile.init_tile %B[0, 0] : memref<{k}x{n}x{narrow}> -> {tile(k, n, narrow)}
    %tc = xetile.init_tile %C[0, 0] : memref<{m}x{n}x{out}> -> {tile(m, n, out)}
    %a = xetile.load_tile %ta : {tile(m, k, narrow)} -> {va}
    %b = xetile.load_tile %tb : {tile(k, n, narrow)} -> {vb}
    %c = xetile.load_tile %tc : {tile(m, n, out)} -> {vc}
    {twice}
    %d = xetile.tile_mma %a, {factor}{", %c" if added else ""} : {va}, {vb}{f", {vc}" if added else ""} -> {vc}
    xetile.store_tile %d, %tc : {vc}, {tile(m, n, out)}"""
    expected = a.astype(np.int64) @ b.astype(np.int64) * (2 if twice else 1) + (c.astype(np.int64) if added else 0)
    arguments = f"%A: memref<{m}x{k}x{narrow}>, %B: memref<{k}x{n}x{narrow}>, %C: memref<{m}x{n}x{out}>"
    run(body, arguments, a, b, c, target=target)
    np.testing.assert_array_equal(c, expected)


MAPS = ["<sg_layout = [4, 2], sg_data = [8, 16]>", "<sg_layout = [2, 4], sg_data = [16, 8]>",
        "<sg_layout = [8, 1], sg_data = [4, 64]>", "<sg_layout = [1, 8], sg_data = [32, 4]>",
        "<sg_layout = [2, 4], sg_data = [32, 16]>", "<sg_layout = [4, 2], sg_data = [16, 8]>"]  # fmt: skip


@pytest.mark.each_value
@pytest.mark.parametrize("source", MAPS)
@pytest.mark.parametrize(("result", "element"), list(zip(MAPS, ["f32", "bf16", "i8"] * 2)))
def test_conversion_between_maps(source, result, element):
    """Maps that distribute round robin, share, and do neither; twice, so that the buffer is used again."""
    first, second = tile(32, 64, element, wg_map=source), tile(32, 64, element, wg_map=result)
    vector = f"vector<32x64x{element}>"
    body = f"""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    scf.for %i = %c0 to %c2 step %c1 {{
      %s = xetile.init_tile %X[%i, 0, 0] : memref<2x32x64x{element}> -> {first}
      %t = xetile.init_tile %Y[%i, 0, 0] : memref<2x32x64x{element}> -> {second}
      %v = xetile.load_tile %s : {first} -> {vector}
      %w = xetile.convert_layout %v {{wg_map_result = {result}, wg_map_source = {source}}} : {vector}
      xetile.store_tile %w, %t : {vector}, {second}
    }}"""
    x, y = whole(element, 2, 32, 64), whole(element, 2, 32, 64)
    run(body, f"%X: memref<2x32x64x{element}>, %Y: memref<2x32x64x{element}>", x, y, block=8)
    np.testing.assert_array_equal(y, x)


@pytest.mark.each_value
@pytest.mark.parametrize("source", MAPS[:4])
@pytest.mark.parametrize("result", MAPS[:4])
def test_what_subgroups_need_of_each_other(source, result):
    """A transpose, sums of rows and columns, and their broadcasts, between any maps."""
    turned = result.replace("sg_data = [8, 16]", "sg_data = [16, 16]").replace("[4, 64]", "[8, 32]")
    turned = turned.replace("[32, 4]", "[64, 4]").replace("[32, 16]", "[64, 8]")
    first, second = tile(32, 64, "f32", wg_map=source), tile(64, 32, "f32", wg_map=turned)
    body = f"""
    %s = xetile.init_tile %X[0, 0] : memref<32x64xf32> -> {first}
    %t = xetile.init_tile %Y[0, 0] : memref<64x32xf32> -> {second}
    %v = xetile.load_tile %s : {first} -> vector<32x64xf32>
    %r = xetile.reduction <add>, %v [1] : vector<32x64xf32> -> vector<32x1xf32>
    %c = xetile.reduction <maximumf>, %v [0] : vector<32x64xf32> -> vector<1x64xf32>
    %rb = xetile.broadcast %r [1] : vector<32x1xf32> -> vector<32x64xf32>
    %cb = xetile.broadcast %c [0] : vector<1x64xf32> -> vector<32x64xf32>
    %1 = arith.addf %rb, %cb : vector<32x64xf32>
    %2 = arith.addf %1, %v : vector<32x64xf32>
    %3 = xetile.transpose %2, [1, 0] : vector<32x64xf32> -> vector<64x32xf32>
    xetile.store_tile %3, %t : vector<64x32xf32>, {second}"""
    x, y = whole("f32", 32, 64), whole("f32", 64, 32)
    run(body, "%X: memref<32x64xf32>, %Y: memref<64x32xf32>", x, y, block=8)
    np.testing.assert_array_equal(y, (x + x.sum(1, keepdims=True) + x.max(0, keepdims=True)).T)


@settings(max_examples=examples(8))
@given(st.sampled_from(["f32", "f16", "i8", "i32"]), st.integers(1, 70), st.booleans(), st.booleans())
def test_scattered_tiles_of_any_size(element, count, masked, padded):
    """Elements gathered, moved on, gathered again, and scattered."""
    kind = f"!xetile.tile<{count}x{element}, #xetile.tile_attr<scattered = true>>"
    indices = f"!xetile.tile<{count}xi32, #xetile.tile_attr<scattered = true>>"
    mask_type = f"vector<{count}xi1>"
    masking = (f", %mask {{padding = {3 if 'i' in element else 3.0} : {element}}}" if padded else ", %mask", mask_type)
    with_mask, mask_kind = (masking[0], f", {mask_type}") if masked else ("", "")
    stored = ", %mask" if masked else ""
    body = f"""
    %step = vector.step : vector<{count}xindex>
    %ti = xetile.init_tile %I, %step : memref<{count}xi32>, vector<{count}xindex> -> {indices}
    %i = xetile.load %ti : {indices} -> vector<{count}xi32>
    %at = arith.index_cast %i : vector<{count}xi32> to vector<{count}xindex>
    %zero = arith.constant dense<60> : vector<{count}xi32>
    %mask = arith.cmpi slt, %i, %zero : vector<{count}xi32>
    %one = arith.constant dense<1> : vector<{count}xindex>
    %t0 = xetile.init_tile %X, %at : memref<101x{element}>, vector<{count}xindex> -> {kind}
    %t1 = xetile.update_tile_offset %t0, %one : {kind}, vector<{count}xindex>
    %v = xetile.load %t1{with_mask} : {kind}{mask_kind} -> vector<{count}x{element}>
    %to = xetile.init_tile %Y, %at : memref<101x{element}>, vector<{count}xindex> -> {kind}
    xetile.store %v, %to{stored} : vector<{count}x{element}>, {kind}{mask_kind}"""
    at = RNG.permutation(100)[:count].astype(np.int32)
    x, y = whole(element, 101), whole(element, 101)
    expected = y.copy()
    on = at[at < 60] if masked else at
    expected[on] = x[on + 1]
    arguments = f"%I: memref<{count}xi32>, %X: memref<101x{element}>, %Y: memref<101x{element}>"
    run(body, arguments, at, x, y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.each_value
@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
@pytest.mark.parametrize("in_bounds", [True, False])
@pytest.mark.parametrize("shape", [(8, 16), (16, 32), (5, 12), (8, 1)])
def test_tiles_in_shared_local_memory(element, in_bounds, shape):
    """Data that one subgroup writes and another one reads, row by row where that is known to be correct."""
    h, w = shape
    space = tile(h, w, element, space="memory_space = 3")
    vector, mark = f"vector<{h}x{w}x{element}>", " {in_bounds = true}" if in_bounds else ""
    kind = tile(h, w, element)
    body = f"""
    %buffer = memref.alloc() : memref<2x32x64x{element}, 3>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %id = gpu.subgroup_id : index
    %other = arith.subi %c1, %id : index
    %s = xetile.init_tile %X[%id, 0, 0] : memref<2x32x64x{element}> -> {kind}
    %v = xetile.load_tile %s : {kind} -> {vector}
    %to = xetile.init_tile %buffer[%id, 4, 8]{mark} : memref<2x32x64x{element}, 3> -> {space}
    xetile.store_tile %v, %to : {vector}, {space}
    gpu.barrier
    %from = xetile.init_tile %buffer[%other, 4, 8]{mark} : memref<2x32x64x{element}, 3> -> {space}
    %w = xetile.load_tile %from : {space} -> {vector}
    %t = xetile.init_tile %Y[%id, 0, 0] : memref<2x32x64x{element}> -> {kind}
    xetile.store_tile %w, %t : {vector}, {kind}"""
    x, y = whole(element, 2, 32, 64), np.zeros((2, 32, 64), DTYPES[element])
    run(body, f"%X: memref<2x32x64x{element}>, %Y: memref<2x32x64x{element}>", x, y, block=2)
    np.testing.assert_array_equal(y[:, :h, :w], x[::-1, :h, :w])
    assert not y[:, h:].any()
    assert not y[:, :, w:].any()
