"""Random kernels of workgroups compute the same as numpy, whatever their layouts say."""

import numpy as np
import pytest
from upstream.programs import Layouts, Writer, kernel, product, reduction

import xegpu_py
from xegpu_py.upstream import import_upstream


def check(make, seed, **options):
    text, arrays, expected = make(np.random.default_rng(seed))
    compiled = xegpu_py.compile(import_upstream(text, level="workgroup"), **options)
    compiled(*arrays)
    assert np.array_equal(arrays[-1], expected), f"{make.__name__} {seed} gives another result:\n{text}"


@pytest.mark.parametrize("make", [product, reduction])
@pytest.mark.parametrize("part", range(5))
def test_what_is_imported_means_what_upstream_means(make, part):
    for seed in range(part * 22, part * 22 + 22):
        check(make, seed, engine="reference")


@pytest.mark.parametrize("make", [product, reduction])
def test_what_is_imported_lowers(make):
    for seed in range(1000, 1004):
        check(make, seed, cache="off")


def batch(random):
    """Products of piles of matrices, and blocks of three dimensions that reach over the edges of an array."""
    count, m, n, k = (int(random.choice(c)) for c in ((1, 2, 3), (8, 16), (16, 32), (16, 32)))
    above, below = (int(v) for v in random.integers(0, 3, 2))
    layouts = Layouts(random, int(random.choice([1, 2, 4])))
    shapes = [(count + above, m + below, k), (count + above, k, n), (count, m, n)]
    arrays = [random.integers(-4, 5, s).astype(t) for s, t in zip(shapes, (np.float16, np.float16, np.float32))]
    memrefs = [f"memref<{'x'.join(map(str, s))}x{e}>" for s, e in zip(shapes, ("f16", "f16", "f32"))]
    blocks = [(count, m, k), (count, k, n), (count, m, n)]
    kinds = [f"{'x'.join(map(str, s))}x{e}" for s, e in zip(blocks, ("f16", "f16", "f32"))]
    w = Writer()
    given = [
        w(f"xegpu.create_nd_tdesc %{x} : {t} -> !xegpu.tensor_desc<{d}>") for x, t, d in zip("abc", memrefs, kinds)
    ]
    at = [f"[{above}, {below}, 0]", f"[{above}, 0, 0]", "[0, 0, 0]"]
    a, b, c = (w(f"xegpu.load_nd {t}{o} : !xegpu.tensor_desc<{d}> -> vector<{d}>") for t, o, d in zip(given, at, kinds))
    types = ", ".join(f"vector<{d}>" for d in kinds)
    d = w(f"xegpu.dpas {a}, {b}, {c} : {types} -> vector<{kinds[2]}>")
    # What is beyond the first row of all but the last matrix is written, the rest is dropped.
    where = f"[0, 1, 0] <{{layout = {layouts.of(blocks[2])}}}>"
    w(f"xegpu.store_nd {d}, {given[2]}{where} : vector<{kinds[2]}>, !xegpu.tensor_desc<{kinds[2]}>", named=False)
    x, y, z = (v.astype(np.int64) for v in arrays)
    expected = z.copy()
    expected[:, 1:] = (x[above : above + count, below : below + m] @ y[above : above + count] + z)[:, :-1]
    arguments = ", ".join(f"%{x}: {t}" for x, t in zip("abc", memrefs))
    return kernel(arguments, w.lines), arrays, expected


def test_blocks_of_three_dimensions():
    for seed in range(30):
        check(batch, seed, engine="reference")
