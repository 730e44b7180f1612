"""Kernels of upstream's XeGPU compute the right results with any layouts."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.dialects.xegpu.spelling import Spelling, spelling_of
from xegpu_py.ir import assembly_format, reader
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.upstream import import_upstream


def run(text, *arrays, level=None, **launch):
    xegpu_py.compile(import_upstream(text, level=level))(*arrays, **launch)


def kernel(arguments, body, attributes=""):
    return f"gpu.module @m {{\n  gpu.func @k({arguments}) kernel {attributes} {{\n{body}\n    gpu.return\n  }}\n}}\n"


MATRIX = """
    %s = gpu.subgroup_id : index
    %c8 = arith.constant 8 : index
    %row = arith.muli %s, %c8 : index
    %da = xegpu.create_nd_tdesc %a[%row, 0] : memref<32x16xf16> -> !xegpu.tensor_desc<8x16xf16>
    %v = xegpu.load_nd %da : !xegpu.tensor_desc<8x16xf16> -> vector<8x16xf16>
    %slm = memref.alloc() : memref<1024xi8, 3>
    %m = xegpu.create_mem_desc %slm : memref<1024xi8, 3> -> !xegpu.mem_desc<32x16xf16{0}>
    xegpu.store_matrix %v, %m[%row, 0] : vector<8x16xf16>, !xegpu.mem_desc<32x16xf16{0}>, index
    gpu.barrier
    %n = xegpu.create_mem_desc %slm : memref<1024xi8, 3> -> !xegpu.mem_desc<32x16xf16{1}>
    %w = xegpu.load_matrix %n[%row, 0] : !xegpu.mem_desc<32x16xf16{1}>, index -> vector<8x16xf16>
    %do = xegpu.create_nd_tdesc %o[%row, 0] : memref<32x16xf16> -> !xegpu.tensor_desc<8x16xf16>
    xegpu.store_nd %w, %do : vector<8x16xf16>, !xegpu.tensor_desc<8x16xf16>"""

PLACES = {
    "": lambda r, c: r * 16 + c,
    ", #xegpu.mem_layout<stride = [1, 32]>": lambda r, c: r + 32 * c,
    ", #xegpu.mem_layout<block = [8, 8]>": lambda r, c: r // 8 * 128 + c // 8 * 64 + r % 8 * 8 + c % 8,
    ", #xegpu.mem_layout<stride = [1, 32], block = [16, 8]>": lambda r, c: (
        r // 16 * 128 + c // 8 * 256 + r % 16 + c % 8 * 16
    ),
}


@pytest.mark.each_value
@pytest.mark.parametrize(("stored", "loaded"), list(itertools.product(PLACES, PLACES)))
def test_a_matrix_in_shared_local_memory_lies_as_its_layout_says(stored, loaded):
    a = np.arange(512, dtype=np.float16).reshape(32, 16)
    memory = np.zeros(512, np.float16)
    rows, columns = np.indices(a.shape)
    memory[PLACES[stored](rows, columns)] = a
    o = np.zeros_like(a)
    run(kernel("%a: memref<32x16xf16>, %o: memref<32x16xf16>", MATRIX.format(stored, loaded)), a, o, block=4)
    assert (o == memory[PLACES[loaded](rows, columns)]).all()


LINES = """
    %slm = memref.alloc() : memref<2048xi8, 3>
    %lane = gpu.lane_id
    %all = arith.constant true
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %m = xegpu.create_mem_desc %slm : memref<2048xi8, 3> -> !xegpu.mem_desc<1024xf16>
    %base = arith.muli %lane, %c64 : index
    scf.for %j = %c0 to %c64 step %c1 {{
      %at = arith.addi %base, %j : index
      %v = xegpu.load %a[%at], %all : memref<1024xf16>, index, i1 -> f16
      xegpu.store_matrix %v, %m[%at] : f16, !xegpu.mem_desc<1024xf16>, index
    }}
    gpu.barrier
    %n = xegpu.create_mem_desc %slm : memref<2048xi8, 3> -> !xegpu.mem_desc<16x64xf16{0}>
    %w = xegpu.load_matrix %n[{1}] : !xegpu.mem_desc<16x64xf16{0}>, index, index -> vector<8xf16>
    %to = arith.muli %lane, %c8 : index
    xegpu.store %w, %o[%to], %all : vector<8xf16>, memref<128xf16>, index, i1"""


@pytest.mark.parametrize("placed", PLACES)
def test_a_lane_loads_what_follows_in_memory(placed):
    """The same as upstream's lowering does, whatever the strides and the blocks of the matrix are."""
    first = "%c8, %lane" if "stride" in placed else "%lane, %c8"
    block = (8, 8) if placed.endswith("<block = [8, 8]>") else (16, 8) if "block" in placed else ()
    placed = placed.replace("32", "16")
    a, o = np.random.default_rng(1).permutation(1024).astype(np.float16), np.zeros((16, 8), np.float16)
    run(kernel("%a: memref<1024xf16>, %o: memref<128xf16>", LINES.format(placed, first)), a, o.reshape(-1), block=16)
    lanes = np.arange(16)
    row, column = (8, lanes) if "stride" in placed else (lanes, 8)
    if not block:
        start = row + 16 * column if "stride" in placed else 64 * row + column
    elif block == (8, 8):
        start = row // 8 * 512 + column // 8 * 64 + row % 8 * 8 + column % 8
    else:
        start = column // 8 * 128 + row + column % 8 * 16
    assert (o == a[start[:, None] + np.arange(8)]).all()


@pytest.mark.each_value
@pytest.mark.parametrize("level", ["subgroup", "workgroup"])
@pytest.mark.parametrize(("memory", "first", "of"), [("32x16xf16", "16, 0", "16, 16"), ("1024xi8", "512", "512")])
def test_a_matrix_in_a_view_begins_where_the_view_does(memory, first, of, level):
    layout = " <{layout = #xegpu.layout<sg_layout = [2, 1], sg_data = [16, 16]>}>" if level == "workgroup" else ""
    half = layout.replace("16, 16", "8, 16")
    strides, start = ("16, 1", 256) if "x16" in memory else ("1", 512)
    shape = memory.replace("32", "16") if "x16" in memory else "512xi8"
    view = f"memref<{shape}, strided<[{strides}], offset: {start}>, 3>"
    ones = ", ".join("1" for _ in first.split(","))
    body = f"""
    %da = xegpu.create_nd_tdesc %a : memref<32x16xf16> -> !xegpu.tensor_desc<32x16xf16>
    %v = xegpu.load_nd %da[0, 0]{layout} : !xegpu.tensor_desc<32x16xf16> -> vector<32x16xf16>
    %slm = memref.alloc() : memref<{memory}, 3>
    %m = xegpu.create_mem_desc %slm : memref<{memory}, 3> -> !xegpu.mem_desc<32x16xf16>
    xegpu.store_matrix %v, %m[0, 0]{layout} : vector<32x16xf16>, !xegpu.mem_desc<32x16xf16>
    gpu.barrier
    %s = memref.subview %slm[{first}] [{of}] [{ones}] : memref<{memory}, 3> to {view}
    %n = xegpu.create_mem_desc %s : {view} -> !xegpu.mem_desc<16x16xf16>
    %w = xegpu.load_matrix %n[0, 0]{half} : !xegpu.mem_desc<16x16xf16> -> vector<16x16xf16>
    %do = xegpu.create_nd_tdesc %o : memref<16x16xf16> -> !xegpu.tensor_desc<16x16xf16>
    xegpu.store_nd %w, %do[0, 0]{half} : vector<16x16xf16>, !xegpu.tensor_desc<16x16xf16>"""
    a, o = np.arange(512, dtype=np.float16).reshape(32, 16), np.zeros((16, 16), np.float16)
    module = import_upstream(kernel("%a: memref<32x16xf16>, %o: memref<16x16xf16>", body), level=level)
    # Accesses of scattered elements take no notice of the strides of a buffer.
    assert "x16" not in memory or "memref<256xf16, strided<[1], offset: 256>, 3>" in str(module)
    xegpu_py.compile(module)(a, o, block=2 if level == "workgroup" else 1)
    assert (o == a[16:]).all()


def test_products_of_batches_of_a_subgroup():
    body = """
    %da = xegpu.create_nd_tdesc %a : memref<2x8x16xf16> -> !xegpu.tensor_desc<2x8x16xf16>
    %db = xegpu.create_nd_tdesc %b : memref<2x16x16xf16> -> !xegpu.tensor_desc<2x16x16xf16>
    %dc = xegpu.create_nd_tdesc %c : memref<2x8x16xf32> -> !xegpu.tensor_desc<2x8x16xf32>
    %va = xegpu.load_nd %da[0, 0, 0] : !xegpu.tensor_desc<2x8x16xf16> -> vector<2x8x16xf16>
    %vb = xegpu.load_nd %db[0, 0, 0] : !xegpu.tensor_desc<2x16x16xf16> -> vector<2x16x16xf16>
    %vc = xegpu.load_nd %dc[0, 0, 0] : !xegpu.tensor_desc<2x8x16xf32> -> vector<2x8x16xf32>
    %r = xegpu.dpas %va, %vb, %vc : vector<2x8x16xf16>, vector<2x16x16xf16>, vector<2x8x16xf32> -> vector<2x8x16xf32>
    xegpu.store_nd %r, %dc[0, 0, 0] : vector<2x8x16xf32>, !xegpu.tensor_desc<2x8x16xf32>"""
    random = np.random.default_rng(2)
    a, b, c = (random.integers(-4, 5, (2, m, 16)).astype(np.float16) for m in (8, 16, 8))
    c = c.astype(np.float32)
    expected = c + a.astype(np.float32) @ b.astype(np.float32)
    run(kernel("%a: memref<2x8x16xf16>, %b: memref<2x16x16xf16>, %c: memref<2x8x16xf32>", body), a, b, c)
    assert (c == expected).all()


@pytest.mark.parametrize("size", ["", " <{chunk_size = 2 : i64}>"])
@pytest.mark.parametrize("level", ["subgroup", "workgroup"])
def test_a_value_says_how_many_elements_follow_an_offset(size, level):
    """LLVM's main branch gives chunk_size also for values that have an offset for each element."""
    layout = "layout = #xegpu.layout<sg_layout = [2, 1], sg_data = [8, 2]>" if level == "workgroup" else ""
    row = layout.replace("2, 1", "2").replace("8, 2", "8")
    size = size or " <{}>"
    of_chunks, of_each = (size.replace("}>", f"{', ' * bool(s and 'chunk' in size)}{s}}}>") for s in (layout, row))
    body = f"""
    %m = arith.constant dense<true> : vector<16xi1>
    %at = arith.constant dense<{[i // 2 * 7 + i % 2 for i in range(16)]}> : vector<16xindex>
    %starts = arith.constant dense<{[i * 2 for i in range(16)]}> : vector<16xindex>
    %v = xegpu.load %a[%at], %m{of_each} : memref<64xf32>, vector<16xindex>, vector<16xi1> -> vector<16xf32>
    xegpu.store %v, %o[%at], %m{of_each} : vector<16xf32>, memref<64xf32>, vector<16xindex>, vector<16xi1>
    %w = xegpu.load %a[%starts], %m{of_chunks} : memref<64xf32>, vector<16xindex>, vector<16xi1> -> vector<16x2xf32>
    xegpu.store %w, %p[%starts], %m{of_chunks}
      : vector<16x2xf32>, memref<64xf32>, vector<16xindex>, vector<16xi1>""".replace(" <{}>", "")
    a, o, p = np.arange(1, 65, dtype=np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    text = kernel("%a: memref<64xf32>, %o: memref<64xf32>, %p: memref<64xf32>", body)
    run(text, a, o, p, level=level, block=2 if level == "workgroup" else 1)
    at = [i // 2 * 7 + i % 2 for i in range(16)]
    assert (np.flatnonzero(o) == at).all() and (o[at] == a[at]).all() and (p[:32] == a[:32]).all() and not p[32:].any()


def test_gathers_give_a_row_of_the_chunk_for_each_lane():
    body = """
    %at = arith.constant dense<[0, 9, 18, 27, 36, 45, 54, 63, 72, 81, 90, 99, 108, 117, 126, 135, 144, 153, 162, 171]>
      : vector<20xindex>
    %m = arith.constant dense<[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1]> : vector<20xi1>
    %v = xegpu.load %a[%at], %m <{chunk_size = 2 : i64}>
      : memref<256xi32>, vector<20xindex>, vector<20xi1> -> vector<20x2xi32>
    xegpu.store %v, %o[%at], %m <{chunk_size = 2 : i64}>
      : vector<20x2xi32>, memref<256xi32>, vector<20xindex>, vector<20xi1>"""
    a, o = np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    run(kernel("%a: memref<256xi32>, %o: memref<256xi32>", body), a, o, level="subgroup")
    at = [9 * i + j for i in range(20) for j in (0, 1) if i != 17]
    expected = np.zeros_like(o)
    expected[at] = a[at]
    assert (o == expected).all()


def test_a_line_of_a_matrix_of_dynamic_strides():
    body = """
    %i = gpu.subgroup_id : index
    %d = xegpu.create_nd_tdesc %a[%i, 32], shape : [%h, %w], strides : [%w, 1]
      : memref<?x?xf32, strided<[?, ?], offset: ?>> -> !xegpu.tensor_desc<16xf32>
    %v = xegpu.load_nd %d : !xegpu.tensor_desc<16xf32> -> vector<16xf32>
    %e = xegpu.create_nd_tdesc %o[%i, 0] : memref<4x16xf32> -> !xegpu.tensor_desc<16xf32>
    xegpu.store_nd %v, %e : vector<16xf32>, !xegpu.tensor_desc<16xf32>"""
    arguments = "%a: memref<?x?xf32, strided<[?, ?], offset: ?>>, %h: index, %w: index, %o: memref<4x16xf32>"
    a, o = np.arange(4 * 64, dtype=np.float32).reshape(4, 64), np.zeros((4, 16), np.float32)
    run(kernel(arguments, body), a, 4, 64, o, block=4)
    assert (o == a[:, 32:48]).all()


def test_compile_takes_texts_of_upstream():
    body = """
    %d = xegpu.create_nd_tdesc %a : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d[0, 0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %w = arith.addf %v, %v : vector<8x16xf32>
    xegpu.store_nd %w, %d[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>"""
    text = kernel("%a: memref<8x16xf32>", body)
    assert spelling_of(text) == Spelling.UPSTREAM
    a = np.ones((8, 16), np.float32)
    xegpu_py.compile(text)(a)
    assert (a == 2).all()
    with pytest.raises(xegpu_py.DiagnosticError, match="cannot be imported|differ"):
        xegpu_py.compile(text.replace("memref<8x16xf32>", "memref<8x16xf16>"))


LANE_PRODUCT = """
    %c16 = arith.constant 16 : index
    %x = gpu.thread_id x
    %s = arith.divui %x, %c16 : index
    %c8 = arith.constant 8 : index
    %row = arith.muli %s, %c8 : index
    %da = xegpu.create_nd_tdesc %a : memref<32x16xf16> -> !xegpu.tensor_desc<8x16xf16>
    %db = xegpu.create_nd_tdesc %b : memref<16x16xf16> -> !xegpu.tensor_desc<16x16xf16>
    %dc = xegpu.create_nd_tdesc %c : memref<32x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    %dt = xegpu.create_nd_tdesc %t : memref<16x32xf32> -> !xegpu.tensor_desc<16x8xf32>
    %va = xegpu.load_nd %da[%row, 0] : !xegpu.tensor_desc<8x16xf16> -> vector<8xf16>
    %vb = xegpu.load_nd %db[0, 0] {0} : !xegpu.tensor_desc<16x16xf16> -> vector<16xf16>
    %vt = xegpu.load_nd %dt[0, %row] <{{transpose = array<i64: 1, 0>}}>
      : !xegpu.tensor_desc<16x8xf32> -> vector<8xf32>
    %r = xegpu.dpas %va, %vb, %vt : vector<8xf16>, vector<16xf16>, vector<8xf32> -> vector<8xf32>
    xegpu.store_nd %r, %dc[%row, 0] : vector<8xf32>, !xegpu.tensor_desc<8x16xf32>"""


@pytest.mark.parametrize("packing", ["", "<{packed}>"])
def test_lanes_hold_columns_of_blocks(packing):
    arguments = "%a: memref<32x16xf16>, %b: memref<16x16xf16>, %t: memref<16x32xf32>, %c: memref<32x16xf32>"
    random = np.random.default_rng(1)
    a, b = (random.integers(-8, 8, s).astype(np.float16) for s in ((32, 16), (16, 16)))
    t, c = random.integers(-99, 99, (16, 32)).astype(np.float32), np.zeros((32, 16), np.float32)
    run(kernel(arguments, LANE_PRODUCT.format(packing)), a, b, t, c, block=64)
    assert (c == a.astype(np.float32) @ b.astype(np.float32) + t.T).all()


def test_lanes_access_memory_under_masks():
    body = """
    %x = gpu.thread_id x
    %c3 = arith.constant 3 : index
    %c20 = arith.constant 20 : index
    %at = arith.muli %x, %c3 : index
    %m = arith.cmpi ult, %x, %c20 : index
    %v = xegpu.load %a[%at], %m <{chunk_size = 2 : i64}> : memref<96xf32>, index, i1 -> vector<2xf32>
    %p = memref.extract_aligned_pointer_as_index %o : memref<96xf32> -> index
    %q = arith.index_cast %p : index to i64
    xegpu.store %v, %q[%at], %m <{chunk_size = 2 : i64}> : vector<2xf32>, i64, index, i1
    %off = vector.broadcast %at : index to vector<1xindex>
    %one = arith.constant dense<true> : vector<1xi1>
    %w = xegpu.load %a[%off], %one : memref<96xf32>, vector<1xindex>, vector<1xi1> -> vector<1xf32>
    %d = arith.addf %w, %w : vector<1xf32>
    xegpu.store %d, %o[%off], %one : vector<1xf32>, memref<96xf32>, vector<1xindex>, vector<1xi1>"""
    a, o = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    run(kernel("%a: memref<96xf32>, %o: memref<96xf32>", body), a, o, level="lane", block=32)
    expected = np.zeros(96, np.float32)
    expected[0:60:3], expected[1:60:3] = a[0:60:3], a[1:60:3]
    expected[::3] = 2 * a[::3]
    assert (o == expected).all()


def test_lanes_share_matrices():
    body = """
    %x = gpu.lane_id
    %slm = memref.alloc() : memref<512xf32, 3>
    %m = xegpu.create_mem_desc %slm : memref<512xf32, 3> -> !xegpu.mem_desc<32x16xf32>
    %da = xegpu.create_nd_tdesc %a : memref<16x16xf32> -> !xegpu.tensor_desc<4x16xf32>
    %v = xegpu.load_nd %da[4, 0] : !xegpu.tensor_desc<4x16xf32> -> vector<4xf32>
    xegpu.store_matrix %v, %m[2, 0] <{subgroup_block_io}> : vector<4xf32>, !xegpu.mem_desc<32x16xf32>
    gpu.barrier
    %c2 = arith.constant 2 : index
    %w = xegpu.load_matrix %m[%c2, %x] : !xegpu.mem_desc<32x16xf32>, index, index -> f32
    memref.store %w, %o[%x] : memref<16xf32>"""
    a, o = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros(16, np.float32)
    run(kernel("%a: memref<16x16xf32>, %o: memref<16xf32>", body), a, o, level="lane", block=16)
    assert (o == a[4]).all()


LANES = """gpu.module @kernels {
  gpu.func @gemm(%a: memref<8x64xi8>, %b: memref<64x16xi8>, %c: memref<8x16xi32>) kernel {
    %da = xegpu.create_nd_tdesc %a : memref<8x64xi8> -> !xegpu.tensor_desc<8x32xi8>
    %db = xegpu.create_nd_tdesc %b : memref<64x16xi8> -> !xegpu.tensor_desc<32x16xi8>
    %dc = xegpu.create_nd_tdesc %c : memref<8x16xi32> -> !xegpu.tensor_desc<8x16xi32>
    %vc = xegpu.load_nd %dc[0, 0] : !xegpu.tensor_desc<8x16xi32> -> vector<8xi32>
    %va = xegpu.load_nd %da[0, 32] : !xegpu.tensor_desc<8x32xi8> -> vector<16xi8>
    %vb = xegpu.load_nd %db[32, 0] <{packed}> : !xegpu.tensor_desc<32x16xi8> -> vector<32xi8>
    %d = xegpu.dpas %va, %vb, %vc : vector<16xi8>, vector<32xi8>, vector<8xi32> -> vector<8xi32>
    xegpu.store_nd %d, %dc[0, 0] : vector<8xi32>, !xegpu.tensor_desc<8x16xi32>
    gpu.return
  }
}"""


@pytest.mark.parametrize("engine", ["both", "reference"])
def test_lanes_have_two_bytes_of_a_row_side_by_side(engine):
    """A lane has 16 consecutive bits of the first factor's columns."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(-9, 10, (8, 64)).astype(np.int8), rng.integers(-9, 10, (64, 16)).astype(np.int8)
    c = np.ones((8, 16), np.int32)
    xegpu_py.compile(LANES, engine=engine)(a, b, c, block=16)
    np.testing.assert_array_equal(c, a[:, 32:].astype(np.int32) @ b[32:].astype(np.int32) + 1)


def test_a_lane_has_a_column_of_sixteen_columns_of_bytes():
    """A load without VNNI gives the same as one with it, also for rows that VNNI cannot pack."""
    body = """
    %db = xegpu.create_nd_tdesc %b : memref<40x16xi8> -> !xegpu.tensor_desc<32x16xi8>
    %v = xegpu.load_nd %db[8, 0] : !xegpu.tensor_desc<32x16xi8> -> vector<32xi8>
    %dr = xegpu.create_nd_tdesc %b : memref<40x16xi8> -> !xegpu.tensor_desc<2x16xi8>
    %r = xegpu.load_nd %dr[5, 0] : !xegpu.tensor_desc<2x16xi8> -> vector<2xi8>
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    vector.store %v, %o[%lane, %c0] : memref<16x34xi8>, vector<32xi8>
    vector.store %r, %o[%lane, %c32] : memref<16x34xi8>, vector<2xi8>"""
    b = np.random.default_rng(2).integers(-128, 128, (40, 16)).astype(np.int8)
    o = np.zeros((16, 34), np.int8)
    run(kernel("%b: memref<40x16xi8>, %o: memref<16x34xi8>", body), b, o, level="lane", block=16)
    np.testing.assert_array_equal(o, np.hstack([b[8:].T, b[5:7].T]))


def test_a_lane_has_two_columns_of_pairs_of_rows():
    """Pairs of rows that VNNI packs follow each other, of a lane's first column and of its second in turn."""
    body = """
    %db = xegpu.create_nd_tdesc %b : memref<32x32xf16> -> !xegpu.tensor_desc<16x32xf16>
    %v = xegpu.load_nd %db[2, 0] <{packed}> : !xegpu.tensor_desc<16x32xf16> -> vector<32xf16>
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    vector.store %v, %o[%lane, %c0] : memref<16x32xf16>, vector<32xf16>"""
    b, o = np.random.default_rng(1).integers(-8, 8, (32, 32)).astype(np.float16), np.zeros((16, 32), np.float16)
    run(kernel("%b: memref<32x32xf16>, %o: memref<16x32xf16>", body), b, o, level="lane", block=16)
    pairs = b[2:18].reshape(8, 2, 2, 16)  # [pair, row of the pair, column of the lane, lane]
    np.testing.assert_array_equal(o, pairs.transpose(3, 0, 2, 1).reshape(16, 32))


def of_address(desc, offsets, shape, strides, value):
    """A kernel that copies a block of memory at an address, whose offsets the first argument multiplies."""
    held, places = f"vector<{desc}>", ", ".join(f"%i{i}" for i in range(len(offsets)))
    numbers = (
        f"%k{i} = arith.constant {n} : index %i{i} = arith.muli %one, %k{i} : index" for i, n in enumerate(offsets)
    )
    cast = "" if desc == value else f"%w = vector.bitcast %v : {held} to vector<{value}>"
    return kernel(
        f"%one: index, %m: memref<1024xi8>, %o: memref<{value}>",
        f"""
    %p = memref.extract_aligned_pointer_as_index %m : memref<1024xi8> -> index
    %a = arith.index_cast %p : index to i64
    {" ".join(numbers)}
    %d = xegpu.create_nd_tdesc %a[{places}], shape: {shape}, strides: {strides}
      : i64 -> !xegpu.tensor_desc<{desc}>
    %v = xegpu.load_nd %d : !xegpu.tensor_desc<{desc}> -> {held} {cast}
    %e = xegpu.create_nd_tdesc %o : memref<{value}> -> !xegpu.tensor_desc<{value}>
    xegpu.store_nd {"%w" if cast else "%v"}, %e : vector<{value}>, !xegpu.tensor_desc<{value}>""",
    )


@pytest.mark.parametrize("level", ["subgroup", "workgroup"])
@pytest.mark.parametrize("element", ["i4", "i8", "i32"])
@pytest.mark.parametrize("rank", [1, 2])
def test_the_outer_dimensions_of_a_tensor_at_an_address(level, element, rank):
    """Their offsets count elements, of which two may share a byte."""
    bits = int(element[1:])
    columns, count = (1024 * 8 // bits // 8, 128 // bits)
    row = columns * bits // 8
    data = np.random.default_rng(rank).integers(0, 256, 1024).astype(np.uint8)
    if rank == 1:
        block, offsets, shape, strides = f"{count}x{element}", (3, count), [8, columns], [columns, 1]
        value = f"{count}x{element}" if bits > 4 else "16xi8"
        expected = data.reshape(8, row)[3, 16:32]
    else:
        block, offsets, shape, strides = (
            f"4x{count}x{element}", (1, 0, count), [2, 4, columns], [4 * columns, columns, 1]
        )  # fmt: skip
        value = f"4x{count}x{element}" if bits > 4 else "4x16xi8"
        expected = data.reshape(2, 4, row)[1, :, 16:32]
    out = np.zeros(expected.shape, np.uint8).view(f"i{max(bits // 8, 1)}")
    run(of_address(block, offsets, shape, strides, value), 1, data.view(np.int8), out, level=level)
    np.testing.assert_array_equal(out.view(np.uint8), expected)


def test_elements_at_an_address_that_may_lie_within_a_byte():
    text = of_address("32xi4", (1, 1), [8, 64], [64, 1], "16xi8")
    with pytest.raises(xegpu_py.DiagnosticError, match="it is not known to begin at a byte"):
        import_upstream(text, level="subgroup")


def test_a_lane_has_a_row_of_the_first_factors_scales():
    """So narrow a block has fewer columns than lanes. Lanes without a row, and out-of-bounds elements, are zero."""
    body = """
    %ds = xegpu.create_nd_tdesc %s : memref<6x3xf8E8M0FNU> -> !xegpu.tensor_desc<8x2xf8E8M0FNU>
    %c1 = arith.constant 1 : index
    %v = xegpu.load_nd %ds[%c1, 0] : !xegpu.tensor_desc<8x2xf8E8M0FNU> -> vector<2xf8E8M0FNU>
    %w = xegpu.load_nd %ds[0, 2] : !xegpu.tensor_desc<8x2xf8E8M0FNU> -> vector<2xf8E8M0FNU>
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %p = vector.bitcast %v : vector<2xf8E8M0FNU> to vector<2xi8>
    %q = vector.bitcast %w : vector<2xf8E8M0FNU> to vector<2xi8>
    vector.store %p, %o[%lane, %c0] : memref<16x4xi8>, vector<2xi8>
    vector.store %q, %o[%lane, %c2] : memref<16x4xi8>, vector<2xi8>"""
    s = np.arange(101, 119, dtype=np.uint8).reshape(6, 3)
    o = np.full((16, 4), -1, np.int8)
    arguments = "%s: memref<6x3xf8E8M0FNU>, %o: memref<16x4xi8>"
    run(kernel(arguments, body), s.view(ml_dtypes.float8_e8m0fnu), o, level="lane", block=16)
    expected = np.zeros((16, 4), np.int8)
    expected[:5, :2], expected[:6, 2] = s[1:, :2], s[:, 2]
    np.testing.assert_array_equal(o, expected)


@pytest.mark.parametrize("engine", ["jit", "reference"])
def test_lanes_access_addresses_that_they_compute(engine):
    body = """
    %lane = gpu.lane_id
    %c4 = arith.constant 4 : i64
    %true = arith.constant dense<true> : vector<1xi1>
    %c15 = arith.constant 15 : index
    %below = arith.cmpi slt, %lane, %c15 : index
    %mask = vector.broadcast %below : i1 to vector<1xi1>
    %p = memref.extract_aligned_pointer_as_index %a : memref<64xf32> -> index
    %i = arith.index_cast %p : index to i64
    %l = arith.index_cast %lane : index to i64
    %by = arith.muli %l, %c4 : i64
    %at = arith.addi %i, %by : i64
    %off = vector.broadcast %lane : index to vector<1xindex>
    %v = xegpu.load %at[%off], %true : i64, vector<1xindex>, vector<1xi1> -> vector<1xf32>
    %q = memref.extract_aligned_pointer_as_index %o : memref<16xf32> -> index
    %j = arith.index_cast %q : index to i64
    %to = arith.addi %j, %c4 : i64
    xegpu.store %v, %to[%off], %mask : vector<1xf32>, i64, vector<1xindex>, vector<1xi1>"""
    a, o = np.arange(64, dtype=np.float32), np.zeros(16, np.float32)
    text = kernel("%a: memref<64xf32>, %o: memref<16xf32>", body)
    xegpu_py.compile(import_upstream(text, level="lane"), engine=engine)(a, o, block=16)
    np.testing.assert_array_equal(o[1:], 2 * np.arange(15))
    assert o[0] == 0


def test_lines_that_differ_in_names_and_offsets_are_read_once(monkeypatch):
    """Attributes in properties also have numbers in brackets, which are not offsets."""
    read = []
    own = assembly_format.read_op
    monkeypatch.setattr(reader, "read_op", lambda op, *given: read.append(op.OPERATION_NAME) or own(op, *given))
    layout = "#xegpu.layout<sg_layout = [2, 1], sg_data = [8, 16]>"
    kind = "!xegpu.tensor_desc<16x16xf32>"
    lines = [f"%d = xegpu.create_nd_tdesc %a : memref<64x64xf32> -> {kind}"]
    for i in range(9):
        at = f"%d[{16 * i}, 0] <{{layout = {layout}}}>"
        lines += [f"%v{i} = xegpu.load_nd {at} : {kind} -> vector<16x16xf32>"]
        lines += [f"xegpu.store_nd %v{i}, {at} : vector<16x16xf32>, {kind}"]
    import_upstream(kernel("%a: memref<64x64xf32>", "\n".join(lines)))
    assert len(read) == 3


def test_layouts_without_offset_are_those_of_views():
    body = """
    %x = gpu.thread_id x
    %one = arith.constant true
    %p = memref.subview %a[3, 8] [16, 32] [1, 1] : memref<20x64xf32>
      to memref<16x32xf32, strided<[64, 1]>>
    %q = memref.subview %p[0, 5] [1, 20] [1, 1]
      : memref<16x32xf32, strided<[64, 1]>> to memref<20xf32, strided<[1]>>
    %r = memref.reinterpret_cast %o to offset: [7], sizes: [9, 2], strides: [2, 1]
      : memref<64xf32> to memref<9x2xf32, strided<[2, 1]>>
    %s = memref.subview %r[%i, 0] [4, 2] [1, 1] : memref<9x2xf32, strided<[2, 1]>> to memref<4x2xf32, strided<[2, 1]>>
    %c0 = arith.constant 0 : index
    %v = xegpu.load %q[%x], %one : memref<20xf32, strided<[1]>>, index, i1 -> f32
    memref.store %v, %s[%x, %c0] : memref<4x2xf32, strided<[2, 1]>>"""
    text = kernel("%a: memref<20x64xf32>, %o: memref<64xf32>, %i: index", body)
    a, o = np.arange(20 * 64, dtype=np.float32).reshape(20, 64), np.zeros(64, np.float32)
    run(text, a, o, 5, block=4)
    expected = np.zeros(64, np.float32)
    expected[17:25:2] = a[3, 13:17]
    assert (o == expected).all()
    with pytest.raises(xegpu_py.DiagnosticError) as e:
        import_upstream(text.replace("memref.store", "memref.stor"))
    assert "memref.store" in text.splitlines()[e.value.diagnostics[0].position.line - 1]


def test_lanes_divide_the_last_two_dimensions_of_a_block():
    """As LLVM's main branch loads them: a transposition, and packing, are of these two alone."""
    a, b, x = "1x1x16x8xf32", "1x1x16x16xf16", "8x16xf16"
    body = f"""
    %da = xegpu.create_nd_tdesc %a : memref<2x3x32x16xf32> -> !xegpu.tensor_desc<{a}>
    %va = xegpu.load_nd %da[1, 2, 16, 8] <{{transpose = array<i64: 1, 0>}}> : !xegpu.tensor_desc<{a}> -> vector<8xf32>
    %db = xegpu.create_nd_tdesc %b : memref<{b}> -> !xegpu.tensor_desc<{b}>
    %vb = xegpu.load_nd %db[0, 0, 0, 0] <{{packed}}> : !xegpu.tensor_desc<{b}> -> vector<16xf16>
    %dx = xegpu.create_nd_tdesc %x : memref<{x}> -> !xegpu.tensor_desc<{x}>
    %vx = xegpu.load_nd %dx[0, 0] : !xegpu.tensor_desc<{x}> -> vector<8xf16>
    %r = xegpu.dpas %vx, %vb, %va : vector<8xf16>, vector<16xf16>, vector<8xf32> -> vector<8xf32>
    %do = xegpu.create_nd_tdesc %o : memref<1x8x16xf32> -> !xegpu.tensor_desc<1x8x16xf32>
    xegpu.store_nd %r, %do[0, 0, 0] : vector<8xf32>, !xegpu.tensor_desc<1x8x16xf32>"""
    rng = np.random.default_rng(7)
    a, b, x = (rng.integers(-4, 5, s).astype(t) for s, t in (
        ((2, 3, 32, 16), np.float32), ((1, 1, 16, 16), np.float16), ((8, 16), np.float16)))  # fmt: skip
    o = np.zeros((1, 8, 16), np.float32)
    arguments = "%a: memref<2x3x32x16xf32>, %b: memref<1x1x16x16xf16>, %x: memref<8x16xf16>, %o: memref<1x8x16xf32>"
    run(kernel(arguments, body), a, b, x, o, level="lane", block=16)
    expected = x.astype(np.float32) @ b[0, 0].astype(np.float32) + a[1, 2, 16:, 8:].T
    np.testing.assert_array_equal(o[0], expected)


def test_a_reshape_to_a_known_shape_reads_no_shape():
    """Neither that of a constant, which two reshapes use, nor that of an argument."""
    reshapes = [
        ("%b", "%a", "%shape", "2x16", "4x8"),
        ("%c", "%b", "%n", "4x8", "2x16"),
        ("%d", "%c", "%shape", "2x16", "4x8"),
    ]
    body = """
    %x = gpu.thread_id x
    %shape = arith.constant dense<[4, 8]> : memref<2xi32>"""
    for name, source, shape, before, after in reshapes:
        types = f"(memref<{before}xf32>, memref<2xi32>) -> memref<{after}xf32>"
        body += f"\n    {name} = memref.reshape {source}({shape}) : {types}"
    body += """
    %c3 = arith.constant 3 : index
    %v = memref.load %d[%c3, %x] : memref<4x8xf32>
    memref.store %v, %o[%x] : memref<8xf32>"""
    a, o = np.arange(32, dtype=np.float32).reshape(2, 16), np.zeros(8, np.float32)
    arguments = "%a: memref<2x16xf32>, %n: memref<2xi32>, %o: memref<8xf32>"
    run(kernel(arguments, body), a, np.zeros(2, np.int32), o, level="lane", block=8)
    assert (o == a.reshape(4, 8)[3]).all()


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_lanes_access_views_of_two_dimensions_from_their_first_element_on(kind):
    """Loads, stores and atomic updates by one offset."""
    view = f"memref<8x16xi32, strided<[32, 1], offset: {136 if kind == 'static' else '?'}>>"
    at = "4, 8" if kind == "static" else "%i, %j"
    body = f"""
    %x = gpu.thread_id x
    %true = arith.constant true
    %s = memref.subview %a[{at}][8, 16][1, 1] : memref<32x32xi32> to {view}
    %t = memref.subview %o[{at}][8, 16][1, 1] : memref<32x32xi32> to {view}
    %v = xegpu.load %s[%x], %true : {view}, index, i1 -> i32
    xegpu.store %v, %t[%x], %true : i32, {view}, index, i1
    %old = xegpu.atomic_rmw addi %t[%x], %true, %v : {view}, index, i1, i32 -> i32"""
    a, o = np.arange(1024, dtype=np.int32).reshape(32, 32), np.zeros((32, 32), np.int32)
    arguments = "%a: memref<32x32xi32>, %o: memref<32x32xi32>, %i: index, %j: index"
    run(kernel(arguments, body), a, o, 4, 8, level="lane", block=16)
    expected = np.zeros_like(o)
    expected[4, 8:24] = 2 * a[4, 8:24]
    np.testing.assert_array_equal(o, expected)


@pytest.mark.parametrize(
    "op",
    [
        "xegpu.store %v, %a[%x], %true : f32, memref<16xf32>, index, i1",
        "%o = xegpu.atomic_rmw addf %a[%x], %true, %v : memref<16xf32>, index, i1, f32 -> f32",
        "xegpu.store_nd %w, %d[0, 0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>",
    ],
)
def test_a_text_whose_only_access_is_a_write_is_recognized(op):
    assert spelling_of(kernel("%a: memref<16xf32>", f"    {op}")) == Spelling.UPSTREAM


def test_conversions_of_layouts_are_printed_as_mlir_opt_reads_them():
    """The main branch's result type is read, and not printed."""
    layout = "#xegpu.layout<lane_layout = [1, 16], lane_data = [1, 1]>"
    kind, desc = "vector<8x16xf32>", "!xegpu.tensor_desc<8x16xf32>"
    converted = f"xegpu.convert_layout %v <{{input_layout = {layout}, target_layout = {layout}}}> : {kind}"
    for more in ("", f" -> {kind}"):
        body = f"""
    %d = xegpu.create_nd_tdesc %a : memref<8x16xf32> -> {desc}
    %v = xegpu.load_nd %d[0, 0] : {desc} -> {kind}
    %w = {converted}{more}
    xegpu.store_nd %w, %d[0, 0] : {kind}, {desc}"""
        assert str(xegpu_py.parse(kernel("%a: memref<8x16xf32>", body))).count(f"> : {kind}\n") == 1


@pytest.mark.parametrize("engine", ["both", "reference"])
@pytest.mark.parametrize("level", ["subgroup", "workgroup", "lane"])
def test_unsigned_numbers_are_updated(level, engine):
    """The result is unsigned too, and so is a comparison of the largest numbers."""
    many = level != "lane"
    types = {e: f"vector<16x{e}>" if many else e for e in ("index", "i1", "ui64")}
    i, i1, ui64 = types.values()
    memory = "memref<16xui64>"
    body = f"""
    %o = {"vector.step : vector<16xindex>" if many else "gpu.lane_id"}
    %m = arith.constant {"dense<true> : vector<16xi1>" if many else "true"}
    %v = xegpu.load %b[%o], %m : {memory}, {i}, {i1} -> {ui64}
    %r = xegpu.atomic_rmw maxu %a[%o], %m, %v : {memory}, {i}, {i1}, {ui64} -> {ui64}
    xegpu.store %r, %c[%o], %m : {ui64}, {memory}, {i}, {i1}"""
    text = kernel(", ".join(f"%{x}: {memory}" for x in "abc"), body)
    a, b, c = np.arange(16, dtype=np.uint64), np.full(16, 2**63 + 1, np.uint64), np.zeros(16, np.uint64)
    b[8:] = 3
    kwargs = {"block": 1 if many else 16}
    xegpu_py.compile(import_upstream(text, level=level), engine=engine)(a, b, c, **kwargs)
    np.testing.assert_array_equal(c, np.arange(16))
    np.testing.assert_array_equal(a, np.maximum(np.arange(16, dtype=np.uint64), b))


def test_a_lane_has_its_own_chunk_of_a_descriptor_of_all_lanes():
    """And its own element of the mask."""
    desc = "!xegpu.tensor_desc<16x4xf32, #xegpu.scatter_tdesc_attr<chunk_size = 4 : i64>>"
    body = f"""
    %s = vector.step : vector<16xindex>
    %c4 = arith.constant dense<4> : vector<16xindex>
    %at = arith.muli %s, %c4 : vector<16xindex>
    %all = arith.constant dense<true> : vector<16xi1>
    %c9 = arith.constant dense<9> : vector<16xindex>
    %some = arith.cmpi ult, %s, %c9 : vector<16xindex>
    %d = xegpu.create_tdesc %a, %at : memref<128xf32>, vector<16xindex> -> {desc}
    %v = xegpu.load %d, %all : {desc}, vector<16xi1> -> vector<4xf32>
    %w = arith.addf %v, %v : vector<4xf32>
    %e = xegpu.create_tdesc %o, %at : memref<128xf32>, vector<16xindex> -> {desc}
    %f = xegpu.update_offset %e, %c4 : {desc}, vector<16xindex>
    xegpu.store %w, %f, %some : vector<4xf32>, {desc}, vector<16xi1>"""
    a, o = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    run(kernel("%a: memref<128xf32>, %o: memref<128xf32>", body), a, o, block=16)
    expected = np.zeros(128, np.float32)
    expected[4:40] = 2 * a[:36]
    np.testing.assert_array_equal(o, expected)


def test_descriptors_with_offsets_of_two_dimensions():
    desc = "!xegpu.tensor_desc<2x4xf32, #xegpu.scatter_tdesc_attr<>>"
    body = f"""
    %at = arith.constant dense<[[0, 1, 2, 3], [4, 5, 6, 9]]> : vector<2x4xindex>
    %m = arith.constant dense<[[1, 1, 0, 1], [1, 1, 1, 1]]> : vector<2x4xi1>
    %d = xegpu.create_tdesc %a, %at : memref<64xf32>, vector<2x4xindex> -> {desc}
    %v = xegpu.load %d, %m : {desc}, vector<2x4xi1> -> vector<2x4xf32>
    %e = xegpu.create_tdesc %o, %at : memref<64xf32>, vector<2x4xindex> -> {desc}
    %f = xegpu.update_offset %e, %at : {desc}, vector<2x4xindex>
    xegpu.store %v, %f, %m : vector<2x4xf32>, {desc}, vector<2x4xi1>"""
    a, o = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    run(kernel("%a: memref<64xf32>, %o: memref<64xf32>", body), a, o, level="subgroup")
    expected = np.zeros(64, np.float32)
    at = np.array([0, 1, 3, 4, 5, 6, 9])
    expected[2 * at] = a[at]
    np.testing.assert_array_equal(o, expected)


def test_lanes_access_unsigned_addresses():
    body = """
    %x = gpu.lane_id
    %true = arith.constant true
    %p = memref.extract_aligned_pointer_as_index %a : memref<16xi32> -> index
    %i = arith.index_cast %p : index to i64
    %q = builtin.unrealized_conversion_cast %i : i64 to ui64
    %v = xegpu.load %q[%x], %true : ui64, index, i1 -> i32
    %r = xegpu.atomic_rmw addi %q[%x], %true, %v : ui64, index, i1, i32 -> i32"""
    a = np.arange(16, dtype=np.int32)
    run(kernel("%a: memref<16xi32>", body), a, level="lane", block=16)
    np.testing.assert_array_equal(a, 2 * np.arange(16))


@pytest.mark.parametrize("level", ["subgroup", "lane"])
def test_functions_take_descriptors_and_barriers(level):
    """Kernels have what they call in them: a function's ops mean what they mean at the kernel's level."""
    held = "vector<8x16xf32>" if level == "subgroup" else "vector<8xf32>"
    desc = "!xegpu.tensor_desc<8x16xf32>"
    text = f"""
gpu.module @m {{
  func.func private @doubled(%d: {desc}, %b: !xegpu.nbarrier) -> {held} {{
    xegpu.nbarrier_arrive %b : !xegpu.nbarrier
    xegpu.nbarrier_wait %b : !xegpu.nbarrier
    %v = xegpu.load_nd %d[0, 0] : {desc} -> {held}
    %w = arith.addf %v, %v : {held}
    return %w : {held}
  }}
  gpu.func @k(%a: memref<8x16xf32>, %o: memref<8x16xf32>) kernel {{
    %one = arith.constant 1 : i8
    %two = arith.constant 2 : i8
    xegpu.alloc_nbarrier 2
    %b = xegpu.init_nbarrier %one, %two : i8, i8 -> !xegpu.nbarrier
    %d = xegpu.create_nd_tdesc %a : memref<8x16xf32> -> {desc}
    %w = func.call @doubled(%d, %b) : ({desc}, !xegpu.nbarrier) -> {held}
    %e = xegpu.create_nd_tdesc %o : memref<8x16xf32> -> {desc}
    xegpu.store_nd %w, %e[0, 0] : {held}, {desc}
    gpu.return
  }}
}}"""
    a = np.arange(128, dtype=np.float32).reshape(8, 16)
    o = np.zeros_like(a)
    run(text, a, o, block=2 if level == "subgroup" else 32)
    np.testing.assert_array_equal(o, 2 * a)


@pytest.mark.parametrize("kind", ["!xegpu.nbarrier", "!xegpu.tensor_desc<8x16xf32>"])
@pytest.mark.parametrize("level", ["subgroup", "lane"])
def test_arguments_of_a_function_have_our_types(kind, level):
    text = f"gpu.module @m {{\n  gpu.func @f(%x: {kind}, %n: index) {{\n    gpu.return\n  }}\n}}\n"
    assert f"gpu.func @f(%arg0: {kind.rstrip('>')}" in str(import_upstream(text, level=level))


BLOCK = "!xegpu.tensor_desc<16x16xf32>"
LOADED_TWICE = """
    %v = xegpu.load_nd %d{0} : {1} -> vector<16xf32>
    %w = xegpu.load_nd %d{0} <{{transpose = array<i64: 1, 0>}}> : {1} -> vector<16xf32>
    %x = xegpu.load_nd %d{0} <{{transpose = array<i64: 1, 0>}}> : {1} -> vector<16xf32>
    %sum = arith.addf %w, %x : vector<16xf32>
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    vector.store %v, %o[%lane, %c0] : memref<16x32xf32>, vector<16xf32>
    vector.store %sum, %o[%lane, %c16] : memref<16x32xf32>, vector<16xf32>"""


@pytest.mark.parametrize("made", ["%a[8, 16]", "%a"])
def test_lanes_load_a_block_by_columns_and_by_rows(made):
    """Of one descriptor, which each way needs with another map."""
    body = f"%d = xegpu.create_nd_tdesc {made} : memref<64x64xf32> -> {BLOCK}"
    body += LOADED_TWICE.format("" if "[" in made else "[8, 16]", BLOCK)
    a, o = np.arange(4096, dtype=np.float32).reshape(64, 64), np.zeros((16, 32), np.float32)
    run(kernel("%a: memref<64x64xf32>, %o: memref<16x32xf32>", body), a, o, level="lane", block=16)
    block = a[8:24, 16:32]
    np.testing.assert_array_equal(o, np.hstack([block.T, 2 * block]))


def test_a_moved_block_is_loaded_in_one_way():
    body = f"""
    %first = xegpu.create_nd_tdesc %a[8, 8] : memref<64x64xf32> -> {BLOCK}
    %d = xegpu.update_nd_offset %first, [0, 8] : {BLOCK}{LOADED_TWICE.format("", BLOCK)}"""
    with pytest.raises(DiagnosticError, match="blocks of one descriptor are loaded in two ways, and it is not made wh"):
        import_upstream(kernel("%a: memref<64x64xf32>, %o: memref<16x32xf32>", body), level="lane")


@pytest.mark.parametrize("engine", ["both", "reference"])
def test_a_lane_has_a_part_of_a_matrix_in_shared_memory(engine):
    body = """
    %lane = gpu.lane_id
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %slm = memref.alloc() : memref<1024xf32, 3>
    %m = xegpu.create_mem_desc %slm : memref<1024xf32, 3> -> !xegpu.mem_desc<32x32xf32>
    %n = xegpu.create_mem_desc %slm : memref<1024xf32, 3>
      -> !xegpu.mem_desc<32x32xf32, #xegpu.mem_layout<stride = [1, 32]>>
    %column = arith.muli %lane, %c2 : index
    %x = vector.load %a[%lane, %c0] : memref<16x8xf32>, vector<8xf32>
    %v = vector.shape_cast %x : vector<8xf32> to vector<4x2xf32>
    xegpu.store_matrix %v, %m[2, %column] : vector<4x2xf32>, !xegpu.mem_desc<32x32xf32>, index
    gpu.barrier
    %w = xegpu.load_matrix %n[%column, 2]
      : !xegpu.mem_desc<32x32xf32, #xegpu.mem_layout<stride = [1, 32]>>, index -> vector<2x4xf32>
    %y = vector.shape_cast %w : vector<2x4xf32> to vector<8xf32>
    vector.store %y, %o[%lane, %c0] : memref<16x8xf32>, vector<8xf32>
    %size = gpu.subgroup_size : index
    memref.store %size, %s[%c0] : memref<1xindex>"""
    a, o = np.arange(128, dtype=np.float32).reshape(16, 8), np.zeros((16, 8), np.float32)
    size = np.zeros(1, np.int64)
    text = kernel("%a: memref<16x8xf32>, %o: memref<16x8xf32>, %s: memref<1xindex>", body)
    xegpu_py.compile(import_upstream(text, level="lane"), engine=engine)(a, o, size, block=16)
    np.testing.assert_array_equal(o, a.reshape(16, 4, 2).transpose(0, 2, 1).reshape(16, 8))
    assert size[0] == 16


@pytest.mark.parametrize("level", ["lane", "subgroup"])
@pytest.mark.parametrize("engine", ["both", "reference"])
def test_one_number_is_rounded_to_eight_bits(level, engine):
    body = """
    %c0 = arith.constant 0 : index
    %v = memref.load %a[%c0] : memref<4xbf16>
    %w = xegpu.truncf %v : bf16 -> f8E5M2
    memref.store %w, %o[%c0] : memref<4xf8E5M2>"""
    a, o = np.full(4, 3.3, ml_dtypes.bfloat16), np.zeros(4, ml_dtypes.float8_e5m2)
    text = kernel("%a: memref<4xbf16>, %o: memref<4xf8E5M2>", body)
    xegpu_py.compile(import_upstream(text, level=level), engine=engine)(a, o, block=16)
    assert o[0] == a[0].astype(ml_dtypes.float8_e5m2) and not o[1:].any()
