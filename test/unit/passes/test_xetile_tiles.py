"""Where tiles lie: made one by control flow, before their matrix, in views, and in matrices of any strides."""

import numpy as np
import pytest

import xegpu_py
import xegpu_py.reference

RNG = np.random.default_rng(0)


def whole(*shape, dtype=np.float32):
    return RNG.integers(-9, 10, shape).astype(dtype)


def window(matrix, row, column, height, width, fill=0):
    """A part of a matrix; out-of-bounds elements are `fill`."""
    found = np.full((height, width), fill, matrix.dtype)
    for y, x in np.ndindex(height, width):
        if 0 <= row + y < matrix.shape[0] and 0 <= column + x < matrix.shape[1]:
            found[y, x] = matrix[row + y, column + x]
    return found


def compiled(body, target="pvcxt"):
    return xegpu_py.compile(f"gpu.module @m {{ {body} }}", target=target, check=["uninit"], registers=256)


EITHER = """
  gpu.func @either(%X: {x}, %Y: {y}, %Z: memref<2x16x32xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %before = arith.constant -5 : index
    %id = gpu.block_id x
    %first = arith.cmpi eq, %id, %c0 : index
    %t = scf.if %first -> ({tile}) {{
      %x = xetile.init_tile {source} : {x} -> {tile}
      scf.yield %x : {tile}
    }} else {{
      %y = xetile.init_tile %Y[3, 8] : {y} -> {tile}
      scf.yield %y : {tile}
    }}
    %u = xetile.update_tile_offset %t, [1, 4] : {tile}
    %v = xetile.load_tile %u {padding} : {tile} -> vector<{h}x{w}xf32>
    %z = xetile.init_tile %Z[%id, 0, 0] : memref<2x16x32xf32> -> !xetile.tile<{h}x{w}xf32>
    xetile.store_tile %v, %z : vector<{h}x{w}xf32>, !xetile.tile<{h}x{w}xf32>
    gpu.return
  }}
"""
DYNAMIC, STATIC, ODD = "memref<?x?xf32>", "memref<24x48xf32>", "memref<24x47xf32>"
STRIDED = "memref<24x48xf32, strided<[?, 1], offset: ?>>"


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("shape", "other", "padded", "target"),
    [
        ((16, 32), STATIC, True, "pvcxt"),
        ((16, 32), STRIDED, False, "pvcxt"),
        ((5, 3), ODD, True, "pvcxt"),
        ((5, 3), ODD, False, "pvcxt"),
        ((7, 20), DYNAMIC, True, "dg2"),
    ],
)
@pytest.mark.parametrize("source", ["%X[%before, 4]", "%X[18, 40]"])
def test_tiles_of_two_matrices_are_made_one(shape, other, padded, target, source):
    """By block messages and by single elements; one tile is partly before its matrix, or beyond it."""
    h, w = shape
    tile, padding = f"!xetile.tile<{h}x{w}xf32>", "{padding = 5.0 : f32}" if padded else ""
    text = EITHER.format(x=DYNAMIC, y=other, tile=tile, source=source, padding=padding, h=h, w=w)
    x, y, z = whole(20, 44), whole(24, 47 if other == ODD else 48), np.zeros((2, 16, 32), np.float32)
    compiled(text, target)(x, y, z, grid=2)
    fill = 5 if padded else 0
    at = (-4, 8) if "before" in source else (19, 44)
    np.testing.assert_array_equal(z[0, :h, :w], window(x, *at, h, w, fill))
    np.testing.assert_array_equal(z[1, :h, :w], window(y, 4, 12, h, w, fill))


@pytest.mark.parametrize("element", [np.float32, np.float16])
def test_column_major_tiles_may_begin_before_their_matrix(element):
    name = "f32" if element == np.float32 else "f16"
    matrix, tile = (
        f"memref<48x64x{name}, strided<[1, 48]>>",
        f"!xetile.tile<16x32x{name}, #xetile.tile_attr<order = [0, 1]>>",
    )
    text = f"""
  gpu.func @before(%Xt: memref<64x48x{name}>, %Y: memref<16x32x{name}>, %row: index, %column: index) kernel {{
    %X = memref.reinterpret_cast %Xt to offset: [0], sizes: [48, 64], strides: [1, 48]
      : memref<64x48x{name}> to {matrix}
    %t = xetile.init_tile %X[%row, %column] : {matrix} -> {tile}
    %v = xetile.load_tile %t {{padding = 5.0 : {name}}} : {tile} -> vector<16x32x{name}>
    %y = xetile.init_tile %Y[0, 0] : memref<16x32x{name}> -> !xetile.tile<16x32x{name}>
    xetile.store_tile %v, %y : vector<16x32x{name}>, !xetile.tile<16x32x{name}>
    gpu.return
  }}
"""
    x, kernel = whole(64, 48, dtype=element), compiled(text)
    for row, column in ((-4, -3), (36, 40), (-2, 50)):
        y = np.zeros((16, 32), element)
        kernel(x, y, row, column)
        np.testing.assert_array_equal(y, window(x.T, row, column, 16, 32, 5))


def test_tiles_of_an_address_and_of_a_memref_are_made_one():
    kind = "!xetile.tile<3x5xf32>"
    text = f"""
  gpu.func @either(%W: memref<20x43xf32>, %Y: memref<2x24x48xf32>, %Z: memref<2x3x5xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %pointer = memref.extract_aligned_pointer_as_index %W : memref<20x43xf32> -> index
    %X = arith.index_cast %pointer : index to i64
    %id = gpu.block_id x
    %first = arith.cmpi eq, %id, %c0 : index
    %t = scf.if %first -> ({kind}) {{
      %x = xetile.init_tile %X[2, 4], [20, 43], [43, 1] : i64 -> {kind}
      scf.yield %x : {kind}
    }} else {{
      %y = xetile.init_tile %Y[%id, 3, 8] : memref<2x24x48xf32> -> {kind}
      scf.yield %y : {kind}
    }}
    %v = xetile.load_tile %t : {kind} -> vector<3x5xf32>
    %z = xetile.init_tile %Z[%id, 0, 0] : memref<2x3x5xf32> -> {kind}
    xetile.store_tile %v, %z : vector<3x5xf32>, {kind}
    gpu.return
  }}
"""
    x, y, z = whole(20, 43), whole(2, 24, 48), np.zeros((2, 3, 5), np.float32)
    compiled(text)(x, y, z, grid=2)
    np.testing.assert_array_equal(z, [x[2:5, 4:9], y[1, 3:6, 8:13]])


def test_two_buffers_take_turns():
    """Some subgroups read from one buffer the data that others have written, while the other buffer is free."""
    attr = "#xetile.tile_attr<wg_map = <sg_layout = {}, sg_data = {}>{}>"
    shared = ", memory_space = 3"
    square, rows = ("[2, 2]", "[16, 16]"), ("[4, 1]", "[8, 32]")
    t, u = (f"!xetile.tile<32x32xf32, {attr.format(*m, '')}>" for m in (square, rows))
    s, r = (f"!xetile.tile<32x32xf32, {attr.format(*m, shared)}>" for m in (square, rows))
    text = f"""
  gpu.func @copy(%X: memref<32x128xf32>, %Y: memref<32x128xf32>) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %one = memref.alloc() : memref<32x32xf32, 3>
    %two = memref.alloc() : memref<64x64xf32, 3>
    %s0 = xetile.init_tile %one[0, 0] : memref<32x32xf32, 3> -> {s}
    %s1 = xetile.init_tile %two[16, 32] : memref<64x64xf32, 3> -> {s}
    %r0 = xetile.init_tile %one[0, 0] : memref<32x32xf32, 3> -> {r}
    %r1 = xetile.init_tile %two[16, 32] : memref<64x64xf32, 3> -> {r}
    %x = xetile.init_tile %X[0, 0] : memref<32x128xf32> -> {t}
    %y = xetile.init_tile %Y[0, 0] : memref<32x128xf32> -> {u}
    scf.for %i = %c0 to %c4 step %c1 iter_args(%xi = %x, %yi = %y, %a = %s0, %b = %s1, %p = %r0, %q = %r1)
        -> ({t}, {u}, {s}, {s}, {r}, {r}) {{
      %v = xetile.load_tile %xi : {t} -> vector<32x32xf32>
      xetile.store_tile %v, %a : vector<32x32xf32>, {s}
      gpu.barrier
      %w = xetile.load_tile %p : {r} -> vector<32x32xf32>
      xetile.store_tile %w, %yi : vector<32x32xf32>, {u}
      %xn = xetile.update_tile_offset %xi, [0, 32] : {t}
      %yn = xetile.update_tile_offset %yi, [0, 32] : {u}
      scf.yield %xn, %yn, %b, %a, %q, %p : {t}, {u}, {s}, {s}, {r}, {r}
    }}
    gpu.return
  }}
"""
    x, y = whole(32, 128), np.zeros((32, 128), np.float32)
    compiled(text)(x, y, block=4)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("in_bounds", [True, False])
@pytest.mark.parametrize("offset", ["%c4", "4"])
def test_tiles_in_a_part_of_shared_local_memory(offset, in_bounds):
    """Offsets of views count, in messages for rows and for elements."""
    known = "strided<[32, 1], offset: 136>" if offset == "4" else "strided<[32, 1], offset: ?>"
    part = f"memref<8x16xf32, {known}, 3>"
    shared, whole_buffer = (f"!xetile.tile<{n}xf32, #xetile.tile_attr<memory_space = 3>>" for n in ("4x8", "16x32"))
    mark = "{in_bounds = true}" if in_bounds else ""
    text = f"""
  gpu.func @copy(%X: memref<4x16xf32>, %Y: memref<16x32xf32>) kernel {{
    %c4 = arith.constant 4 : index
    %id = gpu.block_id x
    %row = arith.addi %id, %c4 : index
    %buffer = memref.alloc() : memref<16x32xf32, 3>
    %all = xetile.init_tile %buffer[0, 0] {{in_bounds = true}} : memref<16x32xf32, 3> -> {whole_buffer}
    %zero = arith.constant dense<0.0> : vector<16x32xf32>
    xetile.store_tile %zero, %all : vector<16x32xf32>, {whole_buffer}
    %part = memref.subview %buffer[{offset.replace("%c4", "%row")}, 8] [8, 16] [1, 1] : memref<16x32xf32, 3> to {part}
    %x = xetile.init_tile %X[0, 4] : memref<4x16xf32> -> !xetile.tile<4x8xf32>
    %v = xetile.load_tile %x : !xetile.tile<4x8xf32> -> vector<4x8xf32>
    %to = xetile.init_tile %part[2, 4] {mark} : {part} -> {shared}
    xetile.store_tile %v, %to : vector<4x8xf32>, {shared}
    %w = xetile.load_tile %all : {whole_buffer} -> vector<16x32xf32>
    %y = xetile.init_tile %Y[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
    xetile.store_tile %w, %y : vector<16x32xf32>, !xetile.tile<16x32xf32>
    gpu.return
  }}
"""
    x, y = whole(4, 16), np.zeros((16, 32), np.float32)
    compiled(text)(x, y)
    expected = np.zeros_like(y)
    expected[6:10, 12:20] = x[:, 4:12]
    np.testing.assert_array_equal(y, expected)


GEMM = """
  gpu.func @gemm(%A: {a}, %B: {b}, %C: {c}) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %K = memref.dim %B, %c{k} : {b}
    %zero = arith.constant dense<0.0> : vector<64x64xf32>
    %z = gpu.block_id z
    %ta = xetile.init_tile %A[{at}0, 0] : {a} -> !xetile.tile<64x32xf16{order}>
    %tb = xetile.init_tile %B[{at}0, 0] : {b} -> !xetile.tile<32x64xf16{order}>
    %tc = xetile.init_tile %C[{at}0, 0] : {c} -> !xetile.tile<64x64xf32{order}>
    %r:3 = scf.for %k = %c0 to %K step %c32 iter_args(%sum = %zero, %a = %ta, %b = %tb)
        -> (vector<64x64xf32>, !xetile.tile<64x32xf16{order}>, !xetile.tile<32x64xf16{order}>) {{
      %va = xetile.load_tile %a : !xetile.tile<64x32xf16{order}> -> vector<64x32xf16>
      %vb = xetile.load_tile %b : !xetile.tile<32x64xf16{order}> -> vector<32x64xf16>
      %d = xetile.tile_mma %va, %vb, %sum {{wg_map_c = <sg_layout = [2, 2], sg_data = [32, 32]>}}
        : vector<64x32xf16>, vector<32x64xf16>, vector<64x64xf32> -> vector<64x64xf32>
      %na = xetile.update_tile_offset %a, [0, 32] : !xetile.tile<64x32xf16{order}>
      %nb = xetile.update_tile_offset %b, [32, 0] : !xetile.tile<32x64xf16{order}>
      scf.yield %d, %na, %nb : vector<64x64xf32>, !xetile.tile<64x32xf16{order}>, !xetile.tile<32x64xf16{order}>
    }}
    xetile.store_tile %r#0, %tc : vector<64x64xf32>, !xetile.tile<64x64xf32{order}>
    gpu.return
  }}
"""


def test_column_major_matrices_of_any_strides():
    half, full = (f"memref<?x?x{e}, strided<[1, ?], offset: ?>>" for e in ("f16", "f32"))
    text = GEMM.format(a=half, b=half, c=full, k=0, at="", order=", #xetile.tile_attr<order = [0, 1]>")
    a, b, c = whole(96, 64, dtype=np.float16).T, whole(64, 96, dtype=np.float16).T, np.zeros((64, 64), np.float32).T
    compiled(text)(a, b, c, block=4)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_batches_of_any_strides():
    """The matrices of a batch lie apart, and so do their rows."""
    half, full = (f"memref<?x?x?x{e}, strided<[?, ?, 1], offset: ?>>" for e in ("f16", "f32"))
    text = GEMM.format(a=half, b=half, c=full, k=1, at="%z, ", order="")
    a, b = whole(3, 72, 128, dtype=np.float16)[:, :64, :96], whole(3, 128, 96, dtype=np.float16)[:, :96, :64]
    c = np.zeros((3, 80, 96), np.float32)[:, :64, :64]
    compiled(text)(a, b, c, grid=(1, 1, 3), block=4)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


TRANSPOSED_TILE = """
  gpu.func @view(%A: {a}, %B: memref<32x64xf32>) kernel {{
    %T = memref.transpose %A (i, j) -> (j, i) : {a} to {t}
    %t = xetile.init_tile %T[0, 0] : {t} -> !xetile.tile<32x64xf32, #xetile.tile_attr<order = [0, 1]>>
    %v = xetile.load_tile %t : !xetile.tile<32x64xf32, #xetile.tile_attr<order = [0, 1]>> -> vector<32x64xf32>
    %b = xetile.init_tile %B[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
    xetile.store_tile %v, %b : vector<32x64xf32>, !xetile.tile<32x64xf32>
    gpu.return
  }}
"""
TRANSPOSED_ITEMS = """
  gpu.func @view(%A: memref<64x32xf32>, %B: memref<32x64xf32>) kernel {{
    %T = memref.transpose %B (i, j) -> (j, i) : memref<32x64xf32> to memref<64x32xf32, strided<[1, 64]>>
    %i = gpu.thread_id x
    %j = gpu.block_id x
    %x = memref.load %A[%i, %j] : memref<64x32xf32>
    memref.store %x, %T[%i, %j] : memref<64x32xf32, strided<[1, 64]>>
    gpu.return
  }}
"""


@pytest.mark.parametrize(
    ("text", "grid", "block"),
    [
        (TRANSPOSED_TILE.format(a="memref<64x32xf32>", t="memref<32x64xf32, strided<[1, 32]>>"), 1, 1),
        (
            TRANSPOSED_TILE.format(
                a="memref<64x32xf32>", t="memref<32x64xf32, affine_map<(d0, d1) -> (d1 * 32 + d0)>>"
            ),
            1,
            1,
        ),
        (TRANSPOSED_TILE.format(a="memref<?x?xf32>", t="memref<?x?xf32, strided<[1, ?]>>"), 1, 1),
        (TRANSPOSED_ITEMS.format(), 32, 64),
    ],
    ids=["static", "affine", "dynamic", "work items"],
)
def test_transposed_views(text, grid, block):
    a, b, c = whole(64, 32), np.zeros((32, 64), np.float32), np.zeros((32, 64), np.float32)
    compiled(text)(a, b, grid=grid, block=block)
    np.testing.assert_array_equal(b, a.T)
    xegpu_py.reference.run(xegpu_py.parse(f"gpu.module @m {{ {text} }}"), "view", (a, c), grid=grid, block=block)
    np.testing.assert_array_equal(c, a.T)


@pytest.mark.parametrize("fill", [0.0, -0.0, -1.0, 0x7FC00000])
def test_zeros_are_no_padding_unless_they_are_negative(fill):
    """Messages return positive zeros for elements that are out of bounds."""
    kind, number = "!xetile.tile<8x16xf32>", f"0x{fill:08X}" if isinstance(fill, int) else repr(fill)
    text = f"""
  gpu.func @edge(%X: memref<12x20xf32>, %Y: memref<8x16xf32>) kernel {{
    %t = xetile.init_tile %X[8, 8] : memref<12x20xf32> -> {kind}
    %v = xetile.load_tile %t {{padding = {number} : f32}} : {kind} -> vector<8x16xf32>
    %y = xetile.init_tile %Y[0, 0] : memref<8x16xf32> -> {kind}
    xetile.store_tile %v, %y : vector<8x16xf32>, {kind}
    gpu.return
  }}
"""
    x, y = whole(12, 20), np.ones((8, 16), np.float32)
    compiled(text)(x, y)
    filler = np.array(fill, np.uint32).view(np.float32) if isinstance(fill, int) else fill
    expected = window(x, 8, 8, 8, 16, filler)
    np.testing.assert_array_equal(y.view(np.uint32), expected.view(np.uint32))
