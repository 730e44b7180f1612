"""Random kernels of workgroups compute the same as numpy with any layouts."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from effort import examples
from upstream.programs import Layouts, Writer, kernel, product, reduction

import xegpu_py
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.upstream import import_upstream


def check(make, seed, **options):
    text, arrays, expected, *numbers = make(np.random.default_rng(seed))
    compiled = xegpu_py.compile(import_upstream(text, level="workgroup"), **options)
    compiled(*arrays, *numbers)
    assert np.array_equal(arrays[-1], expected), f"{make.__name__} {seed} gives another result:\n{text}"


@pytest.mark.parametrize("make", [product, reduction])
@pytest.mark.parametrize("part", range(examples(5)))
def test_what_is_imported_means_what_upstream_means(make, part):
    for seed in range(part * 22, part * 22 + 22):
        check(make, seed, engine="reference")


@pytest.mark.parametrize("make", [product, reduction])
def test_what_is_imported_lowers(make):
    for seed in range(1000, 1004):
        check(make, seed, cache="off")


def batch(random):
    """Products of batches of matrices, in a loop, and blocks that exceed the edges of an array."""
    count, m, n, k = (int(random.choice(c)) for c in ((1, 2, 3), (8, 16), (16, 32), (16, 32)))
    above, below = (int(v) for v in random.integers(0, 3, 2))
    beyond, steps = (int(v) for v in random.integers(0, 3, 2))
    steps = max(steps, 1)
    layouts = Layouts(random, int(random.choice([1, 2, 4])))
    shapes = [(count + above - beyond, m + below, k * steps), (count + above, k * steps, n), (count, m, n)]
    if shapes[0][0] < 1:
        return batch(random)
    arrays = [random.integers(-4, 5, s).astype(t) for s, t in zip(shapes, (np.float16, np.float16, np.float32))]
    memrefs = [f"memref<{'x'.join(map(str, s))}x{e}>" for s, e in zip(shapes, ("f16", "f16", "f32"))]
    blocks = [(count, m, k), (count, k, n), (count, m, n)]
    kinds = [f"{'x'.join(map(str, s))}x{e}" for s, e in zip(blocks, ("f16", "f16", "f32"))]
    types = ", ".join(f"vector<{d}>" for d in kinds)
    flat = f"vector<{count * m}x{n}xf32>"
    w = Writer()
    given = [
        w(f"xegpu.create_nd_tdesc %{x} : {t} -> !xegpu.tensor_desc<{d}>") for x, t, d in zip("abc", memrefs, kinds)
    ]
    # A static or a dynamic offset.
    row = above if random.random() < 0.5 else "%above"
    zero, end, step = (w(f"arith.constant {i} : index") for i in (0, k * steps, k))
    c = w(f"xegpu.load_nd {given[2]}[0, 0, 0] : !xegpu.tensor_desc<{kinds[2]}> -> vector<{kinds[2]}>")
    done = w(f"scf.for %i = {zero} to {end} step {step} iter_args(%sum = {c}) -> (vector<{kinds[2]}>) {{")
    a, b = (
        w(f"xegpu.load_nd {t}[{o}] : !xegpu.tensor_desc<{d}> -> vector<{d}>")
        for t, o, d in zip(given, (f"{row}, {below}, %i", f"{row}, %i, 0"), kinds)
    )
    d = w(f"xegpu.dpas {a}, {b}, %sum : {types} -> vector<{kinds[2]}>")
    w(f"scf.yield {d} : vector<{kinds[2]}>", named=False)
    w("}", named=False)
    twice = w(f"arith.addf {done}, {done} : vector<{kinds[2]}>")
    if random.random() < 0.5:
        # An op on whole vectors.
        matrix = w(f"vector.shape_cast {twice} : vector<{kinds[2]}> to {flat}")
        more = w(f"arith.addf {matrix}, {matrix} : {flat}")
        back = w(f"vector.shape_cast {more} : {flat} to vector<{kinds[2]}>")
        twice = w(f"arith.subf {back}, {twice} : vector<{kinds[2]}>")
    # Rows after the first one are written in all but the last matrix; the others are dropped.
    where = f"[0, 1, 0] <{{layout = {layouts.of(blocks[2])}}}>"
    w(f"xegpu.store_nd {twice}, {given[2]}{where} : vector<{kinds[2]}>, !xegpu.tensor_desc<{kinds[2]}>", named=False)
    x, y, z = (v.astype(np.int64) for v in arrays)
    # Matrices that are out of bounds are zeros.
    x = np.concatenate([x, np.zeros((beyond, *x.shape[1:]), np.int64)])
    expected = z.copy()
    expected[:, 1:] = 2 * (x[above : above + count, below : below + m] @ y[above : above + count] + z)[:, :-1]
    arguments = ", ".join([*(f"%{x}: {t}" for x, t in zip("abc", memrefs)), "%above: index"])
    return kernel(arguments, w.lines), arrays, expected, above


def test_blocks_of_three_dimensions():
    for seed in range(examples(30)):
        check(batch, seed, engine="reference")


BATCH = """
#c = #xegpu.layout<sg_layout = [1, 8, 4], sg_data = [4, 8, 16]>
gpu.module @m {
  gpu.func @k(%a: memref<4x64x64xf16>, %b: memref<4x64x64xf16>, %c: memref<4x64x64xf32>) kernel {
    %z = gpu.block_id z
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %0 = xegpu.create_nd_tdesc %a : memref<4x64x64xf16> -> !xegpu.tensor_desc<4x64x32xf16>
    %1 = xegpu.create_nd_tdesc %b : memref<4x64x64xf16> -> !xegpu.tensor_desc<4x32x64xf16>
    %2 = xegpu.create_nd_tdesc %c : memref<4x64x64xf32> -> !xegpu.tensor_desc<4x64x64xf32, #c>
    %init = arith.constant dense<1.0> : vector<4x64x64xf32>
    %sum = scf.for %i = %c0 to %c64 step %c32 iter_args(%old = %init) -> (vector<4x64x64xf32>) {
      %x = xegpu.load_nd %0[%z, 0, %i] : !xegpu.tensor_desc<4x64x32xf16> -> vector<4x64x32xf16>
      %y = xegpu.load_nd %1[%z, %i, 0] : !xegpu.tensor_desc<4x32x64xf16> -> vector<4x32x64xf16>
      %new = xegpu.dpas %x, %y, %old {layout_cd = #c}
        : vector<4x64x32xf16>, vector<4x32x64xf16>, vector<4x64x64xf32> -> vector<4x64x64xf32>
      scf.yield %new : vector<4x64x64xf32>
    }
    xegpu.store_nd %sum, %2[%z, 0, 0] <{layout = #c}> : vector<4x64x64xf32>, !xegpu.tensor_desc<4x64x64xf32, #c>
    gpu.return
  }
}
"""


def test_batches_need_neither_gathers_nor_shared_memory():
    random = np.random.default_rng(7)
    a, b = (random.integers(-4, 5, (4, 64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((4, 64, 64), np.float32)
    k = xegpu_py.compile(import_upstream(BATCH))
    k(a, b, c)
    assert (c == 1 + a.astype(np.float32) @ b.astype(np.float32)).all()
    assert "block2d" in k.asm
    assert not any(message in k.asm for message in ("lsc_load.", "lsc_store.", ".slm"))


def of_matrix(body, columns=32):
    """The result of a kernel of a matrix %v that computes the matrix %r."""
    layout = "#xegpu.layout<sg_layout = [4, 1], sg_data = [8, 32]>"
    kind, desc = f"vector<32x{columns}xf32>", f"!xegpu.tensor_desc<32x{columns}xf32>"
    text = f"""
gpu.module @kernels {{
  gpu.func @k(%a: memref<32x{columns}xf32>, %o: memref<32x{columns}xf32>) kernel {{
    %d = xegpu.create_nd_tdesc %a : memref<32x{columns}xf32> -> {desc}
    %v = xegpu.load_nd %d[0, 0] : {desc} -> {kind}
{body}
    %e = xegpu.create_nd_tdesc %o : memref<32x{columns}xf32> -> {desc}
    xegpu.store_nd %r, %e[0, 0] <{{layout = {layout}}}> : {kind}, {desc}
    gpu.return
  }}
}}"""
    a = np.random.default_rng(3).integers(-9, 10, (32, columns)).astype(np.float32)
    out = np.zeros_like(a)
    xegpu_py.compile(text, engine="both", cache="off")(a, out)
    return a, out


CAST = "vector.shape_cast %v : vector<32x32xf32> to vector<1x32x32xf32>"
WIDER = "vector.broadcast %v : vector<32x32xf32> to vector<1x32x32xf32>"


@pytest.mark.parametrize("other", ["", CAST, WIDER])
@pytest.mark.parametrize("first", [True, False])
def test_a_cast_leaves_its_operand_as_it_is(other, first):
    """A vector has its own shape also if one with the same elements has another, before and after it is used."""
    used = ["%r = vector.transpose %v, [1, 0] : vector<32x32xf32> to vector<32x32xf32>"]
    made = [f"%u = {other}"] if other else []
    a, out = of_matrix("\n".join(made + used if first else used + made))
    np.testing.assert_array_equal(out, a.T)


@pytest.mark.parametrize("cast", [CAST, WIDER])
def test_casts_and_what_they_cast_in_one_op(cast):
    body = f"""
    %u = {cast}
    %t = vector.transpose %v, [1, 0] : vector<32x32xf32> to vector<32x32xf32>
    %w = vector.transpose %u, [0, 2, 1] : vector<1x32x32xf32> to vector<1x32x32xf32>
    %x = vector.transpose %u, [1, 0, 2] : vector<1x32x32xf32> to vector<32x1x32xf32>
    %y = vector.shape_cast %x : vector<32x1x32xf32> to vector<32x32xf32>
    %z = vector.shape_cast %w : vector<1x32x32xf32> to vector<32x32xf32>
    %s = arith.subf %z, %t : vector<32x32xf32>
    %r = arith.addf %s, %y : vector<32x32xf32>"""
    a, out = of_matrix(body)
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize("swapped", [False, True])
def test_rows_and_columns_of_one_vector(swapped):
    column = "%cc = vector.broadcast %c : vector<32x1xf32> to vector<32x32xf32>"
    row = "%rr = vector.broadcast %s : vector<32xf32> to vector<32x32xf32>"
    wide = [row, column] if swapped else [column, row]
    body = "\n".join([
        "%z = arith.constant dense<0.0> : vector<32xf32>",
        "%s = vector.multi_reduction <add>, %v, %z [1] : vector<32x32xf32> to vector<32xf32>",
        "%c = vector.shape_cast %s : vector<32xf32> to vector<32x1xf32>",
        *wide,
        "%r = arith.subf %cc, %rr : vector<32x32xf32>",
    ])  # fmt: skip
    a, out = of_matrix(body)
    np.testing.assert_array_equal(out, a.sum(1)[:, None] - a.sum(1))


def test_a_reduction_after_a_cast_reduces_what_was_cast():
    body = """
    %u = vector.shape_cast %v : vector<32x32xf32> to vector<2x16x32xf32>
    %z = arith.constant dense<0.0> : vector<32xf32>
    %s = vector.multi_reduction <add>, %v, %z [0] : vector<32x32xf32> to vector<32xf32>
    %r = vector.broadcast %s : vector<32xf32> to vector<32x32xf32>"""
    a, out = of_matrix(body)
    np.testing.assert_array_equal(out, np.broadcast_to(a.sum(0), a.shape))


def test_a_reduction_of_the_first_of_three_dimensions_is_stored_as_a_matrix():
    body = """
    %b = vector.broadcast %v : vector<32x32xf32> to vector<4x32x32xf32>
    %z = arith.constant dense<1.0> : vector<32x32xf32>
    %r = vector.multi_reduction <add>, %b, %z [0] : vector<4x32x32xf32> to vector<32x32xf32>"""
    a, out = of_matrix(body)
    np.testing.assert_array_equal(out, 4 * a + 1)


def test_constants_that_only_whole_vectors_are_made_of_need_no_layout():
    body = """
    %c = arith.constant dense<2.0> : vector<2x16x32xf32>
    %t = vector.transpose %c, [1, 0, 2] : vector<2x16x32xf32> to vector<16x2x32xf32>
    %w = vector.extract %t[3] : vector<2x32xf32> from vector<16x2x32xf32>
    %x = vector.extract %w[0] : vector<32xf32> from vector<2x32xf32>
    %y = vector.broadcast %x : vector<32xf32> to vector<32x32xf32>
    %r = arith.addf %v, %y : vector<32x32xf32>"""
    a, out = of_matrix(body)
    np.testing.assert_array_equal(out, a + 2)


LAYOUTS = [
    "sg_layout = [4, 1], sg_data = [8, 32]",
    "sg_layout = [1, 4], sg_data = [32, 8]",
    "sg_layout = [2, 2], sg_data = [16, 16]",
]


def test_large_matrices_need_no_shared_memory_for_the_places_of_their_elements():
    matrix = "!xegpu.mem_desc<64x128xf32, #xegpu.mem_layout<stride = [1, 64], block = [16, 16]>>"
    by_rows = "<{layout = #xegpu.layout<sg_layout = [2, 2], sg_data = [32, 64]>}>"
    by_columns = "<{layout = #xegpu.layout<sg_layout = [1, 4], sg_data = [32, 16]>}>"
    text = f"""
gpu.module @kernels {{
  gpu.func @k(%a: memref<64x128xf32>, %o: memref<64x128xf32>) kernel {{
    %d = xegpu.create_nd_tdesc %a : memref<64x128xf32> -> !xegpu.tensor_desc<64x128xf32>
    %v = xegpu.load_nd %d[0, 0] {by_rows} : !xegpu.tensor_desc<64x128xf32> -> vector<64x128xf32>
    %buffer = memref.alloca() : memref<32768xi8, 3>
    %m = xegpu.create_mem_desc %buffer : memref<32768xi8, 3> -> {matrix}
    xegpu.store_matrix %v, %m[0, 0] {by_rows} : vector<64x128xf32>, {matrix}
    gpu.barrier
    %w = xegpu.load_matrix %m[32, 64] {by_columns} : {matrix} -> vector<32x64xf32>
    %e = xegpu.create_nd_tdesc %o : memref<64x128xf32> -> !xegpu.tensor_desc<32x64xf32>
    xegpu.store_nd %w, %e[0, 0] {by_columns} : vector<32x64xf32>, !xegpu.tensor_desc<32x64xf32>
    gpu.return
  }}
}}"""
    a = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    out = np.zeros_like(a)
    kernel = xegpu_py.compile(text, engine="jit", cache="off")
    kernel(a, out)
    expected = np.zeros_like(a)
    expected[:32, :64] = a[32:, 64:]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.each_value
@pytest.mark.parametrize("loaded, stored", list(itertools.permutations(LAYOUTS, 2)))
@pytest.mark.parametrize("said", [True, False])
def test_values_are_stored_in_another_layout_than_they_are_loaded_in(loaded, stored, said):
    """With and without convert_layout, also if a value is stored in both layouts."""
    kind = "vector<32x32xf32>"
    a_desc, o_desc = (f"!xegpu.tensor_desc<32x32xf32, #xegpu.layout<{x}>>" for x in (loaded, stored))
    text = f"""
#l = #xegpu.layout<{loaded}>
#m = #xegpu.layout<{stored}>
gpu.module @kernels {{
  gpu.func @k(%a: memref<32x32xf32>, %o: memref<32x32xf32>, %p: memref<32x32xf32>) kernel {{
    %d = xegpu.create_nd_tdesc %a : memref<32x32xf32> -> {a_desc}
    %v = xegpu.load_nd %d[0, 0] <{{layout = #l}}> : {a_desc} -> {kind}
    %w = {"xegpu.convert_layout %v <{input_layout = #l, target_layout = #m}>" if said else "arith.negf %v"} : {kind}
    %e = xegpu.create_nd_tdesc %o : memref<32x32xf32> -> {o_desc}
    xegpu.store_nd %v, %e[0, 0] <{{layout = #m}}> : {kind}, {o_desc}
    %f = xegpu.create_nd_tdesc %p : memref<32x32xf32> -> {a_desc}
    xegpu.store_nd %w, %f[0, 0] <{{layout = #l}}> : {kind}, {a_desc}
    gpu.return
  }}
}}"""
    a = np.random.default_rng(3).integers(-9, 10, (32, 32)).astype(np.float32)
    o, p = np.zeros_like(a), np.zeros_like(a)
    xegpu_py.compile(text, engine="both", cache="off")(a, o, p)
    np.testing.assert_array_equal(o, a)
    np.testing.assert_array_equal(p, a if said else -a)


@pytest.mark.parametrize("memory", ["memref<128xf32>", "memref<?xf32>", "memref<128xf32, strided<[1], offset: 64>>"])
def test_blocks_of_one_dimension(memory):
    desc, first = "!xegpu.tensor_desc<128xf32>", 64 if "offset" in memory else 0
    argument = "memref<256xf32>" if first else "memref<128xf32>"
    given = ", shape : [128], strides : [1]" if "?" in memory else ""
    cast = f"subview %a[{first}] [128] [1]" if first else "cast %a"
    text = f"""
gpu.module @kernels {{
  gpu.func @k(%a: {argument}, %o: memref<128xf32>) kernel {{
    %s = memref.{cast} : {argument} to {memory}
    %d = xegpu.create_nd_tdesc %s{given} : {memory} -> {desc}
    %v = xegpu.load_nd %d[0] : {desc} -> vector<128xf32>
    %w = arith.addf %v, %v : vector<128xf32>
    %e = xegpu.create_nd_tdesc %o : memref<128xf32> -> {desc}
    xegpu.store_nd %w, %e[0] <{{layout = #xegpu.layout<sg_layout = [2], sg_data = [64]>}}> : vector<128xf32>, {desc}
    gpu.return
  }}
}}"""
    a, o = np.arange(256 if first else 128, dtype=np.float32), np.zeros(128, np.float32)
    xegpu_py.compile(text, engine="both", cache="off")(a, o)
    np.testing.assert_array_equal(o, 2 * a[first : first + 128])


@pytest.mark.each_value
@pytest.mark.parametrize(
    "shape, layout", [("32", "sg_layout = [2], sg_data = [16]"), ("8x32", "sg_layout = [2, 2], sg_data = [4, 16]")]
)
@pytest.mark.parametrize("space", ["", ", 3"])
def test_atomic_updates(shape, layout, space):
    """In global and in shared memory, with the layout of the values."""
    layout = f"<{{layout = #xegpu.layout<{layout}>}}>"
    count = int(np.prod([int(n) for n in shape.split("x")]))
    i, i1, i32 = (f"vector<{shape}x{e}>" for e in ("index", "i1", "i32"))
    line, here = f"memref<{count}xi32>", f"memref<{count}xi32{space}>"
    text = f"""
gpu.module @kernels {{
  gpu.func @update(%a: {line}, %sums: {line}, %old: {line}) kernel {{
    %all = arith.constant dense<true> : {i1}
    %line = vector.step : vector<{count}xindex>
    %each = vector.shape_cast %line : vector<{count}xindex> to {i}
    %c3 = arith.constant dense<3> : {i}
    %low = arith.andi %each, %c3 : {i}
    %some = arith.cmpi ne, %low, %c3 : {i}
    %at = arith.subi %each, %low : {i}
    %x = xegpu.load %a[%each], %all {layout} : {line}, {i}, {i1} -> {i32}
    %memory = {"memref.alloca() : " + here if space else f"memref.cast %sums : {line} to {here}"}
    %zero = arith.constant dense<0> : {i32}
    xegpu.store %zero, %memory[%each], %all {layout} : {i32}, {here}, {i}, {i1}
    gpu.barrier
    %old_x = xegpu.atomic_rmw addi %memory[%at], %some, %x : {here}, {i}, {i1}, {i32} -> {i32}
    xegpu.store %old_x, %old[%each], %some {layout} : {i32}, {line}, {i}, {i1}
    gpu.barrier
    %sum = xegpu.load %memory[%each], %all {layout} : {here}, {i}, {i1} -> {i32}
    xegpu.store %sum, %sums[%each], %all {layout} : {i32}, {line}, {i}, {i1}
    gpu.return
  }}
}}
"""
    a, sums, old = np.arange(1, count + 1, dtype=np.int32), *(np.zeros(count, np.int32) for _ in range(2))
    xegpu_py.compile(import_upstream(text), engine="both", cache="off")(a, sums, old)
    groups = a.reshape(-1, 4)[:, :3]
    assert sums.reshape(-1, 4).tolist() == [[s, 0, 0, 0] for s in groups.sum(1)]
    # The updates of a group come in any order: each reads zero or the sum of some others.
    for group, found in zip(groups, old.reshape(-1, 4)):
        assert found[3] == 0 and sorted(found[:3])[0] == 0
        last = int(np.argmax(found[:3]))
        assert found[last] + group[last] == group.sum()


def test_products_of_f32_are_those_of_tf32():
    """The instruction multiplies no f32: both factors are rounded, and a remark says so."""
    kind, desc = "vector<32x32xf32>", "!xegpu.tensor_desc<32x32xf32>"
    memory, layout = "memref<32x32xf32>", "#xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16]>"
    text = f"""
gpu.module @kernels {{
  gpu.func @k(%a: {memory}, %b: {memory}, %o: {memory}) kernel {{
    %d = xegpu.create_nd_tdesc %a : {memory} -> {desc}
    %v = xegpu.load_nd %d[0, 0] : {desc} -> {kind}
    %e = xegpu.create_nd_tdesc %b : {memory} -> {desc}
    %w = xegpu.load_nd %e[0, 0] : {desc} -> {kind}
    %r = xegpu.dpas %v, %w {{layout_cd = {layout}}} : {kind}, {kind} -> {kind}
    %f = xegpu.create_nd_tdesc %o : {memory} -> {desc}
    xegpu.store_nd %r, %f[0, 0] <{{layout = {layout}}}> : {kind}, {desc}
    gpu.return
  }}
}}"""
    a, b = (np.random.default_rng(3).integers(-9, 10, (32, 32)).astype(np.float32) for _ in range(2))
    # Numbers that tf32 rounds to integers; it would keep 2**-20 itself.
    a = np.where(a == 0, 1, a) + np.float32(2**-20)
    o = np.zeros_like(a)
    kernel = xegpu_py.compile(text, engine="both", cache="off")
    said = [f"'xegpu.dpas' op multiplies f32 as tf32: '{side}' is rounded" for side in ("lhs", "rhs")]
    assert [remark.message for remark in kernel.remarks] == said
    kernel(a, b, o)
    np.testing.assert_array_equal(o, np.rint(a) @ b)


@pytest.mark.each_value
@pytest.mark.parametrize("element", ["f32", "f16", "i8", "f4E2M1FN"])
@pytest.mark.parametrize("shape", ["32x32", "2x16x32", "1024"])
def test_vectors_are_arguments(shape, element):
    """They are passed as arrays, of which each subgroup loads its part."""
    layout = "#xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16]>"
    kind = f"vector<{shape}x{element}>"
    result = f"vector<32x32x{element}>"
    widened = {"f16": "arith.extf", "i8": "arith.sitofp", "f4E2M1FN": "arith.extf"}.get(element)
    converted = f"%w = {widened} %v : {result} to vector<32x32xf32>" if widened else "%w = math.absf %v : " + result
    text = f"""
gpu.module @kernels {{
  gpu.func @k(%x: {kind}, %o: memref<32x32xf32>) kernel {{
    %v = vector.shape_cast %x : {kind} to {result}
    {converted}
    %d = xegpu.create_nd_tdesc %o : memref<32x32xf32> -> !xegpu.tensor_desc<32x32xf32>
    xegpu.store_nd %w, %d[0, 0] <{{layout = {layout}}}> : vector<32x32xf32>, !xegpu.tensor_desc<32x32xf32>
    gpu.return
  }}
}}"""
    types = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "f4E2M1FN": ml_dtypes.float4_e2m1fn}
    x = np.random.default_rng(4).integers(0, 7, [int(n) for n in shape.split("x")]).astype(types[element])
    out = np.zeros((32, 32), np.float32)
    xegpu_py.compile(text, engine="both")(x, out)
    np.testing.assert_array_equal(out, x.reshape(32, 32).astype(np.float32))


def test_a_layout_conversion_and_a_softmax_of_arguments():
    """As functions of LLVM 23.1's tests are."""
    first, second = (
        f"#xegpu.layout<sg_layout = [{n}], sg_data = [{m}]>" for n, m in (("2, 4", "16, 16"), ("4, 2", "8, 32"))
    )
    columns = f"#xegpu.slice<{first}, dims = [0]>"
    text = f"""
gpu.module @kernels {{
  gpu.func @k(%x: vector<32x64xf32>, %o: memref<32x64xf32>) kernel {{
    %v = xegpu.convert_layout %x <{{input_layout = {second}, target_layout = {first}}}> : vector<32x64xf32>
    %zero = arith.constant {{layout_result_0 = {columns}}} dense<0.0> : vector<64xf32>
    %e = math.exp %v {{layout_result_0 = {first}}} : vector<32x64xf32>
    %s = vector.multi_reduction <add>, %e, %zero {{layout_result_0 = {columns}}} [0]
      : vector<32x64xf32> to vector<64xf32>
    %b = vector.broadcast %s {{layout_result_0 = {first}}} : vector<64xf32> to vector<32x64xf32>
    %r = arith.divf %e, %b {{layout_result_0 = {first}}} : vector<32x64xf32>
    %d = xegpu.create_nd_tdesc %o : memref<32x64xf32> -> !xegpu.tensor_desc<32x64xf32>
    xegpu.store_nd %r, %d[0, 0] <{{layout = {first}}}> : vector<32x64xf32>, !xegpu.tensor_desc<32x64xf32>
    gpu.return
  }}
}}"""
    x = np.random.default_rng(4).normal(size=(32, 64)).astype(np.float32)
    out = np.zeros_like(x)
    xegpu_py.compile(text, engine="both")(x, out)
    np.testing.assert_allclose(out, np.exp(x) / np.exp(x).sum(0), rtol=1e-5)


@pytest.mark.parametrize("layout", ["#xegpu.layout<sg_layout = [2, 2], sg_data = [8, 16]>", None])
def test_truth_values_in_memory_are_bytes(layout):
    """As those that an `arith.select` takes in `ternary_ops` of LLVM's tests."""
    hint = f" <{{layout = {layout}}}>" if layout else ""
    kinds = {n: f"16x32x{'i1' if n in 'co' else 'f32'}" for n in "abcdo"}
    names = ", ".join(f"%{n}: memref<{k}>" for n, k in kinds.items())
    loads = "".join(
        f"%d{n} = xegpu.create_nd_tdesc %{n} : memref<{k}> -> !xegpu.tensor_desc<{k}>\n"
        + f"%v{n} = xegpu.load_nd %d{n}[0, 0]{hint} : !xegpu.tensor_desc<{k}> -> vector<{k}>\n" * (n in "abc")
        for n, k in kinds.items()
    )
    stores = "".join(
        f"xegpu.store_nd %v{n}, %d{n}[0, 0]{hint} : vector<{kinds[n]}>, !xegpu.tensor_desc<{kinds[n]}>\n" for n in "do"
    )
    text = f"""
gpu.module @kernels {{
  gpu.func @k({names}) kernel {{
    {loads}
    %vd = arith.select %vc, %va, %vb : vector<16x32xi1>, vector<16x32xf32>
    %vo = arith.cmpf olt, %va, %vb : vector<16x32xf32>
    {stores}
    gpu.return
  }}
}}"""
    random = np.random.default_rng(4)
    a, b = (random.normal(size=(16, 32)).astype(np.float32) for _ in range(2))
    c, d, o = random.integers(0, 2, (16, 32)).astype(np.int8), np.zeros_like(a), np.full((16, 32), 7, np.int8)
    xegpu_py.compile(text, engine="both")(a, b, c, d, o)
    np.testing.assert_array_equal(d, np.where(c, a, b))
    np.testing.assert_array_equal(o, a < b)


def test_vectors_of_host_code_are_no_arguments():
    text = """
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: vector<32x32xf32>, %o: memref<32x32xf32>) kernel {
      %d = xegpu.create_nd_tdesc %o : memref<32x32xf32> -> !xegpu.tensor_desc<32x32xf32>
      xegpu.store_nd %x, %d[0, 0] <{layout = #xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16]>}>
        : vector<32x32xf32>, !xegpu.tensor_desc<32x32xf32>
      gpu.return
    }
  }
  func.func @main(%x: vector<32x32xf32>, %o: memref<32x32xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%x : vector<32x32xf32>, %o : memref<32x32xf32>)
    return
  }
}"""
    with pytest.raises(DiagnosticError, match=r":4:5: .*host code passes its argument of type vector<32x32xf32>"):
        import_upstream(text)


@pytest.mark.parametrize("element", ["index", "i1"])
def test_vectors_that_are_no_arguments(element):
    kind = f"vector<32x32x{element}>"
    text = f"""
gpu.module @kernels {{
  gpu.func @k(%x: {kind}, %o: memref<32x32xf32>) kernel {{
    %d = xegpu.create_nd_tdesc %o : memref<32x32xf32> -> !xegpu.tensor_desc<32x32xf32>
    %v = xegpu.load_nd %d[0, 0] <{{layout = #xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16]>}}> :
      !xegpu.tensor_desc<32x32xf32> -> vector<32x32xf32>
    gpu.return
  }}
}}"""
    with pytest.raises(DiagnosticError) as e:
        import_upstream(text)
    (found,) = e.value.diagnostics
    assert found.message.endswith(f"its argument of type {kind} has elements that are not loaded from memory")
    assert found.position.line == 3


@pytest.mark.each_value
@pytest.mark.parametrize("shape", [(16, 32), (32,), (2, 8, 16)], ids=str)
@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_truncf(shape, engine):
    """Blocks of any rank are rounded to f8E5M2, to nearest even."""
    kind, zeros = "x".join(map(str, shape)), ", ".join("0" * len(shape))
    layout = f"#xegpu.layout<sg_layout = {[1] * len(shape)}, sg_data = {list(shape)}>"
    text = f"""gpu.module @m {{ gpu.func @k(%a: memref<{kind}xf16>, %b: memref<{kind}xf8E5M2>) kernel {{
      %s = xegpu.create_nd_tdesc %a : memref<{kind}xf16> -> !xegpu.tensor_desc<{kind}xf16, {layout}>
      %x = xegpu.load_nd %s[{zeros}] : !xegpu.tensor_desc<{kind}xf16, {layout}> -> vector<{kind}xf16>
      %y = xegpu.truncf %x : vector<{kind}xf16> -> vector<{kind}xf8E5M2>
      %d = xegpu.create_nd_tdesc %b : memref<{kind}xf8E5M2> -> !xegpu.tensor_desc<{kind}xf8E5M2, {layout}>
      xegpu.store_nd %y, %d[{zeros}] : vector<{kind}xf8E5M2>, !xegpu.tensor_desc<{kind}xf8E5M2, {layout}>
      gpu.return
    }} }}"""
    a = np.random.default_rng(0).normal(size=shape).astype(np.float16)
    b = np.zeros(shape, ml_dtypes.float8_e5m2)
    xegpu_py.compile(import_upstream(text, level="workgroup"), engine=engine, cache="off")(a, b)
    np.testing.assert_array_equal(b.view(np.uint8), a.astype(b.dtype).view(np.uint8))
    assert b.view(np.uint8).any()


@pytest.mark.parametrize(
    ("shape", "at_creation", "at_use"),
    [
        ((5, 6, 40), "", "2, 1, 16"),
        ((5, 6, 40), "[1, 2, 8]", "2, 0, 16"),
        ((5, 6, 40), "[1, 2, 8]", ""),
        ((5, 6, 40), "", "%c4, %c4, 32"),
        ((5, 6, 40), "", "3, 4, %c4"),
        ((2, 5, 6, 40), "[1, 0, 0, 0]", "%c1, 2, 3"),
        ((2, 5, 6, 40), "[1, 1, 0, 8]", "2, 1, 8"),
        ((2, 5, 6, 40), "", "%c1, 3, 24"),
    ],
)
def test_places_of_blocks_of_three_dimensions(shape, at_creation, at_use):
    """Offsets of outer dimensions may be left out where the block is used; elements outside of the array are zero."""
    memory, kind = f"memref<{'x'.join(map(str, shape))}xf32>", "vector<2x4x16xf32>"
    desc, layout = "!xegpu.tensor_desc<2x4x16xf32>", "#xegpu.layout<sg_layout = [1, 2, 1], sg_data = [2, 2, 16]>"
    use = f"[{at_use}]" if at_use else ""
    text = f"""
gpu.module @kernels {{
  gpu.func @k(%a: {memory}, %o: memref<2x4x16xf32>) kernel {{
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %d = xegpu.create_nd_tdesc %a{at_creation} : {memory} -> {desc}
    %v = xegpu.load_nd %d{use} <{{layout = {layout}}}> : {desc} -> {kind}
    %e = xegpu.create_nd_tdesc %o : memref<2x4x16xf32> -> {desc}
    xegpu.store_nd %v, %e[0, 0, 0] <{{layout = {layout}}}> : {kind}, {desc}
    gpu.return
  }}
}}"""
    a = np.random.default_rng(5).integers(1, 1000, shape).astype(np.float32)
    parts = [
        [int(n.strip().removeprefix("%c")) for n in text.strip("[]").split(",") if n] for text in (at_creation, at_use)
    ]
    start = sum(np.array([0] * (len(shape) - len(part)) + part) for part in parts)
    padded = np.pad(a, [(0, 16)] * len(shape))
    block = padded[tuple(slice(s, s + n) for s, n in zip(start, (1,) * (len(shape) - 3) + (2, 4, 16)))]
    out = np.zeros((2, 4, 16), np.float32)
    xegpu_py.compile(text, engine="reference")(a, out)
    np.testing.assert_array_equal(out, block.reshape(out.shape))


def long_product(depth=192, between="", properties="{layout_cd = #c}", **replaced):
    """The product of 32 rows of `depth` and as many columns in a workgroup of 2x2 subgroups."""
    d = "!xegpu.tensor_desc"
    text = f"""
#c = #xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16]>
gpu.module @m {{
  gpu.func @k(%a: memref<32x{depth}xf16>, %b: memref<{depth}x32xf16>, %c: memref<32x32xf32>) kernel {{
    %0 = xegpu.create_nd_tdesc %a : memref<32x{depth}xf16> -> {d}<32x{depth}xf16>
    %1 = xegpu.create_nd_tdesc %b : memref<{depth}x32xf16> -> {d}<{depth}x32xf16>
    %2 = xegpu.create_nd_tdesc %c : memref<32x32xf32> -> {d}<32x32xf32>
    %z = xegpu.load_nd %2[0, 0] : {d}<32x32xf32> -> vector<32x32xf32>
    %x = xegpu.load_nd %0[0, 0] : {d}<32x{depth}xf16> -> vector<32x{depth}xf16>
    %y = xegpu.load_nd %1[0, 0] : {d}<{depth}x32xf16> -> vector<{depth}x32xf16>
    {between}
    %r = xegpu.dpas %x, %y, %z {properties}
      : vector<32x{depth}xf16>, vector<{depth}x32xf16>, vector<32x32xf32> -> vector<32x32xf32>
    xegpu.store_nd %r, %2[0, 0] <{{layout = #c}}> : vector<32x32xf32>, {d}<32x32xf32>
    gpu.return
  }}
}}
"""
    for old, new in replaced.values():
        assert old in text
        text = text.replace(old, new)
    return text


ROW, TALL = "!xegpu.tensor_desc<32x192xf16>", "!xegpu.tensor_desc<192x32xf16>"
SUM = "vector<32x32xf32>"
ONES = "%one = arith.constant dense<1.0> : vector<32x192xf16>"
LONG = {
    "larger than the registers": (long_product(), True),
    "as large as the registers": (long_product(128), False),
    "no multiple of a part": (long_product(160), False),
    "without layout": (long_product(properties=""), False),
    "without subgroups": (long_product(properties="{layout_cd = #xegpu.layout<inst_data = [8, 16]>}"), False),
    "a read between": (
        long_product(between=f"%u = xegpu.load_nd %0[0, 0] : {ROW} -> vector<32x192xf16>"), True
    ),
    "a write between": (
        long_product(between=f"{ONES}\nxegpu.store_nd %one, %0[0, 0] : vector<32x192xf16>, {ROW}"), False
    ),
    "a write of an element between": (
        long_product(between="%i = arith.constant 5 : index %h = arith.constant 3.0 : f16 "
                             "memref.store %h, %a[%i, %i] : memref<32x192xf16>"), False
    ),
    "two uses": (
        long_product(between=f"{ONES}\n%two = arith.addf %one, %x : vector<32x192xf16>"), False
    ),
    "transposed": (
        long_product(load=(f"[0, 0] : {ROW} ->", f"[0, 0] <{{transpose = array<i64: 1, 0>}}> : {TALL} ->"),
                     desc=(f"-> {ROW}", f"-> {TALL}"), memory=("%a : memref<32x192xf16>", "%a : memref<192x32xf16>"),
                     argument=("%a: memref<32x192xf16>", "%a: memref<192x32xf16>")),
        False,
    ),
    "of another block": (
        long_product(begin=("%r = xegpu.dpas",
                            f"%t = arith.constant true %s = scf.if %t -> ({SUM}) {{ %r = xegpu.dpas"),
                     end=("%r, %2[0, 0]", "%s, %2[0, 0]"),
                     close=(f", {SUM} -> {SUM}\n",
                            f", {SUM} -> {SUM}\nscf.yield %r : {SUM} }} else {{ scf.yield %z : {SUM} }}\n")),
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_products_whose_factors_are_larger_than_the_registers(name):
    """They become loops over parts of the factors, if these are loaded for them alone and memory does not change."""
    text, splits = LONG[name]
    module = import_upstream(text, level="workgroup")
    assert ("scf.for" in str(module)) == splits
    random = np.random.default_rng(3)
    depth = next(n for n in (192, 160, 128) if f"{n}x32xf16" in text)
    a, b = (random.integers(-4, 5, s).astype(np.float16) for s in ((32, depth), (depth, 32)))
    c = random.integers(-4, 5, (32, 32)).astype(np.float32)
    expected = c + a.astype(np.float32) @ b.astype(np.float32)
    first = np.ascontiguousarray(a.T) if name == "transposed" else a.copy()
    xegpu_py.compile(module, engine="reference")(first, b, c)
    assert np.array_equal(c, expected)


def run_workgroup(body, arguments, *arrays):
    text = f"gpu.module @m {{ gpu.func @k({arguments}) kernel {{ {body} gpu.return }} }}"
    module = import_upstream(text, level="workgroup")
    results = []
    for options in ({"engine": "reference"}, {"engine": "interpreter", "cache": "off"}):
        copies = [a.copy() for a in arrays]
        xegpu_py.compile(module, **options)(*copies)
        results.append(copies[-1])
    np.testing.assert_array_equal(*results)
    return results[0]


GROUPS = "#xegpu.layout<sg_layout = [2, 2], sg_data = [8, 16]>"


def test_descriptors_that_are_moved():
    """The moves of a descriptor, in a loop too, add up."""
    d = "!xegpu.tensor_desc<16x32xf32>"
    body = f"""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant dense<0.0> : vector<16x32xf32>
    %0 = xegpu.create_nd_tdesc %a : memref<64x128xf32> -> {d}
    %1 = xegpu.update_nd_offset %0, [8, 16] : {d}
    %s:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %zero, %t = %1) -> (vector<16x32xf32>, {d}) {{
      %v = xegpu.load_nd %t : {d} -> vector<16x32xf32>
      %y = arith.addf %x, %v : vector<16x32xf32>
      %u = xegpu.update_nd_offset %t, [16, 32] : {d}
      scf.yield %y, %u : vector<16x32xf32>, {d}
    }}
    %e = xegpu.create_nd_tdesc %o : memref<16x32xf32> -> {d}
    xegpu.store_nd %s#0, %e[0, 0] <{{layout = {GROUPS}}}> : vector<16x32xf32>, {d}"""
    a = np.random.default_rng(5).integers(-99, 100, (64, 128)).astype(np.float32)
    out = run_workgroup(body, "%a: memref<64x128xf32>, %o: memref<16x32xf32>", a, np.zeros((16, 32), np.float32))
    np.testing.assert_array_equal(out, sum(a[8 + k : 24 + k, 16 + 2 * k : 48 + 2 * k] for k in (0, 16, 32)))


@pytest.mark.parametrize(("kind", "of"), [("add", np.sum), ("maxnumf", np.max), ("minimumf", np.min), ("mul", np.prod)])
@pytest.mark.parametrize("acc", [False, True])
def test_reductions_of_lines(kind, of, acc):
    line, d = "!xegpu.tensor_desc<64xf32>", "!xegpu.tensor_desc<16x32xf32>"
    body = f"""
    %0 = xegpu.create_nd_tdesc %a : memref<64xf32> -> {line}
    %v = xegpu.load_nd %0[0] : {line} -> vector<64xf32>
    %start = arith.constant 3.0 : f32
    %r = vector.reduction <{kind}>, %v{", %start" if acc else ""} : vector<64xf32> into f32
    %w = vector.broadcast %r : f32 to vector<16x32xf32>
    %e = xegpu.create_nd_tdesc %o : memref<16x32xf32> -> {d}
    xegpu.store_nd %w, %e[0, 0] <{{layout = {GROUPS}}}> : vector<16x32xf32>, {d}"""
    a = np.random.default_rng(6).choice([-1, 1, 2, -0.5, 1], 64).astype(np.float32)
    out = run_workgroup(body, "%a: memref<64xf32>, %o: memref<16x32xf32>", a, np.zeros((16, 32), np.float32))
    assert (out == of([*a, 3.0] if acc else a)).all()


def test_chunks_under_a_mask():
    """All elements of a chunk are left out, or none."""
    body = """
    %o = vector.step : vector<16xindex>
    %five = arith.constant dense<5> : vector<16xindex>
    %at = arith.muli %o, %five : vector<16xindex>
    %limit = arith.constant dense<9> : vector<16xindex>
    %m = arith.cmpi ult, %o, %limit : vector<16xindex>
    %v = xegpu.load %a[%at], %m <{chunk_size = 4 : i64}>
      : memref<128xf32>, vector<16xindex>, vector<16xi1> -> vector<16x4xf32>
    %w = arith.addf %v, %v : vector<16x4xf32>
    xegpu.store %w, %b[%at], %m <{chunk_size = 4 : i64}>
      : vector<16x4xf32>, memref<128xf32>, vector<16xindex>, vector<16xi1>"""
    a, b = np.random.default_rng(7).integers(-9, 10, (2, 128)).astype(np.float32)
    expected = b.copy()
    for lane in range(9):
        expected[5 * lane : 5 * lane + 4] = 2 * a[5 * lane : 5 * lane + 4]
    np.testing.assert_array_equal(run_workgroup(body, "%a: memref<128xf32>, %b: memref<128xf32>", a, b), expected)
