"""Loops of affine, linalg and parallel scf ops in kernels: each thread, or work item, runs all iterations in order."""

import numpy as np
import pytest

import xegpu_py

CASES = {
    "forall": "scf.forall (%i) = (4) to (32) step (4) { memref.store %x, %m[%i] : memref<64xf32> }",
    "parallel": "scf.parallel (%i) = (%c4) to (%c32) step (%c4) { memref.store %x, %m[%i] : memref<64xf32> }",
    "affine": "affine.for %i = 1 to 8 { affine.store %x, %m[%i * 4] : memref<64xf32> }",
    "affine.if": """affine.for %i = 0 to 32 {
      affine.if affine_set<(d0) : (d0 mod 4 == 0, d0 - 4 >= 0)>(%i) { affine.store %x, %m[%i] : memref<64xf32> }
    }""",
    "affine.parallel": "affine.parallel (%i) = (4) to (32) step (4) { affine.store %x, %m[%i] : memref<64xf32> }",
    "affine.apply": """%word = memref.load %places[%c4] : memref<64xi32>
    %d = arith.index_cast %word : i32 to index
    %p = affine.apply affine_map<(d0) -> (d0 floordiv 4 + 24)>(%d)
    affine.for %i = 1 to 7 { affine.store %x, %m[%i * 4] : memref<64xf32> }
    memref.store %x, %m[%p] : memref<64xf32>""",
    "linalg": """%v = memref.subview %m[4] [7] [4] : memref<64xf32> to memref<7xf32, strided<[4], offset: 4>>
    linalg.fill ins(%x : f32) outs(%v : memref<7xf32, strided<[4], offset: 4>>)""",
    "copy": """%v = memref.subview %m[4] [7] [4] : memref<64xf32> to memref<7xf32, strided<[4], offset: 4>>
    %w = memref.subview %ones[0] [7] [1] : memref<64xf32> to memref<7xf32, strided<[1]>>
    memref.copy %w, %v : memref<7xf32, strided<[1]>> to memref<7xf32, strided<[4], offset: 4>>""",
}


@pytest.mark.parametrize("simt", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_loops(name, simt):
    attributes = "attributes {xegpu.subgroup_size = 16 : i32}" * simt
    text = f"""
gpu.module @k {{
  gpu.func @k(%m: memref<64xf32>, %ones: memref<64xf32>, %places: memref<64xi32>) kernel {attributes} {{
    %x = arith.constant 1.0 : f32
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    {CASES[name]}
    gpu.return
  }}
}}
"""
    m, ones = np.zeros(64, np.float32), np.ones(64, np.float32)
    wanted = m.copy()
    wanted[4:32:4] = 1
    kernel = xegpu_py.compile(text, target="pvc", engine="both")
    places = np.full(64, 16, np.int32)
    kernel(m, ones, places, grid=1, block=16 if simt else 1)
    np.testing.assert_array_equal(m, wanted)


BOUNDS = {
    "i8": [(-100, 101, 7), (-128, 127, 100), (100, 127, 50), (5, 5, 1), (0, -1, 3), (-56, -1, 90), (127, -128, 1)],
    "i32": [(0, 2**31 - 1, 2**30), (5, -(2**30), 2**29), (-(2**31), 2**31 - 1, 2**31 - 1), (-3, -9, 1), (1, -1, 2**30)],
    "index of i32": [(0, 2**31 - 1, 2**30), (7, 2**31 - 1, 2**31 - 1), (-(2**31), -1, 2**30), (-9, 3, 5), (9, 3, 1)],
    "index": [(0, 40, 7), (5, -(2**62), 2**61), (-4, -3, 1), (2**40, 2**40 + 9, 4), (2**63 - 9, 2**63 - 2, 5)],
}
"""Lower and upper bounds, and steps, of loops: at the ends of the types, and of no iterations."""


@pytest.mark.each_value
@pytest.mark.parametrize("simt", [False, True])
@pytest.mark.parametrize("order", ["", "unsigned "])
@pytest.mark.parametrize("case", BOUNDS)
def test_bounds(case, order, simt):
    """Counters are compared as the loop says, and do not wrap around at the ends of their types."""
    rows, (element, _, memory) = BOUNDS[case], case.partition(" of ")
    memory = memory or ("i64" if element == "index" else element)
    cast = "" if element == "i32" else "arith.index_cast" if element == "index" else "arith.extsi"
    load = f"memref.load %bounds[%at, %c{{}}] : memref<{len(rows)}x3x{memory}>"
    lines = []
    for i, name in enumerate(("low", "high", "step")):
        lines.append(f"%{name}{'m' * (element == 'index')} = {load.format(i)}")
        if element == "index":
            lines.append(f"%{name} = arith.index_cast %{name}m : {memory} to index")
    kind = "" if element == "index" else f" : {element}"
    joined = "\n    ".join(lines)
    number = f"%number = {cast} %i : {element} to i32" if cast else "%number = arith.addi %i, %zero : i32"
    text = f"""
gpu.module @k {{
  gpu.func @k(%bounds: memref<{len(rows)}x3x{memory}>, %out: memref<{len(rows)}x2xi32>) kernel
      {"attributes {xegpu.subgroup_size = 16 : i32}" * simt} {{
    %at = gpu.{"thread" if simt else "block"}_id x
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    {joined}
    %found:2 = scf.for {order}%i = %low to %high step %step
        iter_args(%n = %zero, %last = %zero) -> (i32, i32){kind} {{
      %more = arith.addi %n, %one : i32
      {number}
      scf.yield %more, %number : i32, i32
    }}
    memref.store %found#0, %out[%at, %c0] : memref<{len(rows)}x2xi32>
    memref.store %found#1, %out[%at, %c1] : memref<{len(rows)}x2xi32>
    gpu.return
  }}
}}
"""
    bounds = np.array(rows, f"int{64 if element == 'index' else element[1:]}")
    wanted = []
    for row in bounds.astype(bounds.dtype.name.replace("int", "uint") if order else bounds.dtype).tolist():
        counts = range(*row)
        last = np.array(counts[-1] if counts else 0).astype(np.uint64).astype(bounds.dtype).astype(np.int32)
        wanted.append([len(counts), int(last)])
    kernel = xegpu_py.compile(text, target="pvc", engine="both")
    bounds = bounds.astype(f"int{memory[1:]}")
    found, evaluated = (np.zeros((len(bounds), 2), np.int32) for _ in range(2))
    launch = {"grid": 1, "block": len(bounds)} if simt else {"grid": len(bounds)}
    kernel(bounds, found, **launch)
    xegpu_py.compile(text, engine="reference")(bounds, evaluated, **launch)
    assert found.tolist() == wanted
    assert evaluated.tolist() == wanted


SWAPPED = """
gpu.module @k {
  gpu.func @k(%A: KIND, %o: memref<8xindex>, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%m = %A) -> (KIND) {
      %b, %at, %s:2, %t:2 = memref.extract_strided_metadata %m
        : KIND -> memref<index>, index, index, index, index, index
      %q = memref.reinterpret_cast %m to offset: [%at], sizes: [%s#1, %s#0], strides: [%t#1, %t#0] : KIND to KIND
      scf.yield %q : KIND
    }
    %rows = memref.dim %r, %c0 : KIND
    %columns = memref.dim %r, %c1 : KIND
    %x = memref.load %r[%c2, %c3] : KIND
    memref.store %rows, %o[%c0] : memref<8xindex>
    memref.store %columns, %o[%c1] : memref<8xindex>
    memref.store %x, %o[%c2] : memref<8xindex>
    gpu.return
  }
}
""".replace("KIND", "memref<?x?xindex, strided<[?, ?], offset: ?>>")


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_loop_swaps_the_extents_and_strides_of_a_matrix(count):
    """All of them are read before one is written."""
    a, o = np.arange(42).reshape(6, 7), np.zeros(8, np.int64)
    xegpu_py.compile(SWAPPED)(a[:5, :4], o, count)
    view = a[:5, :4].T if count % 2 else a[:5, :4]
    assert o[:2].tolist() == list(view.shape) and o[2] == view[2, 3]


@pytest.mark.parametrize("kind", ["index", "i32"])
@pytest.mark.parametrize(
    ("first", "end", "step"), [(-3, 5, 2), (0, 5, 2), (2, -1, 1 << 30), (-5, -1, 1), (-5, -1, 3), (3, 2, 1)]
)
def test_counters_without_signs(kind, first, end, step):
    text = f"""
gpu.module @k {{
  gpu.func @k(%o: memref<8x{kind}>, %l: {kind}, %h: {kind}, %s: {kind}) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for unsigned %i = %l to %h step %s iter_args(%c = %c0) -> (index) {"" if kind == "index" else ": i32"} {{
      memref.store %i, %o[%c] : memref<8x{kind}>
      %d = arith.addi %c, %c1 : index
      scf.yield %d : index
    }}
    gpu.return
  }}
}}
"""
    bits = 64 if kind == "index" else 32
    step = step << (bits - 32)
    o = np.zeros(8, np.int64 if kind == "index" else np.int32)
    expected = list(range(first % (1 << bits), end % (1 << bits), step))
    assert len(expected) <= 8
    xegpu_py.compile(text)(o, first, end, step)
    assert [int(x) % (1 << bits) for x in o] == expected + [0] * (8 - len(expected))
