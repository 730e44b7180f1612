"""Random kernels of workgroups compute the same as numpy with any layouts."""

import numpy as np
import pytest
from effort import examples
from upstream.programs import Layouts, Writer, kernel, product, reduction

import xegpu_py
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
