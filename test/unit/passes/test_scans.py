"""Scans, and accesses that compress, against numpy: on the reference and on both engines."""

import numpy as np
import pytest

import xegpu_py

ENGINES = ("reference", "both")
SCAN = """
gpu.module @m {{
  gpu.func @k(%x: memref<{n}xi32>, %f: memref<{m}xi32>, %out: memref<{n}xi32>, %last: memref<{m}xi32>) kernel {{
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0] : memref<{n}xi32>, vector<{n}xi32>
    %w = vector.load %f[%c0] : memref<{m}xi32>, vector<{m}xi32>
    %a = vector.shape_cast %v : vector<{n}xi32> to vector<{shape}xi32>
    %b = vector.shape_cast %w : vector<{m}xi32> to vector<{rest}i32>
    %r, %s = vector.scan <{kind}>, %a, %b {{inclusive = {inclusive}, reduction_dim = {dim}}}
      : vector<{shape}xi32>, vector<{rest}i32>
    %p = vector.shape_cast %r : vector<{shape}xi32> to vector<{n}xi32>
    %q = vector.shape_cast %s : vector<{rest}i32> to vector<{m}xi32>
    vector.store %p, %out[%c0] : memref<{n}xi32>, vector<{n}xi32>
    vector.store %q, %last[%c0] : memref<{m}xi32>, vector<{m}xi32>
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize(
    ("shape", "dim", "kind"), [((4, 6), 0, "add"), ((3, 5), 1, "maxsi"), ((2, 3, 4), 1, "xor"), ((7,), 0, "add")]
)
def test_scan(shape, dim, kind, inclusive):
    rest = [n for i, n in enumerate(shape) if i != dim]
    n, m = int(np.prod(shape)), int(np.prod(rest))
    text = SCAN.format(n=n, m=m, shape="x".join(map(str, shape)), rest="".join(f"{r}x" for r in rest), kind=kind,
                       inclusive=str(inclusive).lower(), dim=dim)  # fmt: skip
    rng = np.random.default_rng(0)
    x, first = (rng.integers(-9, 9, size).astype(np.int32) for size in (shape, rest))
    function = {"add": np.add, "maxsi": np.maximum, "xor": np.bitwise_xor}[kind]
    lines = np.moveaxis(x, dim, 0)
    if not inclusive:
        lines = np.concatenate([first[None], lines[:-1]])
    wanted = function.accumulate(lines, axis=0)
    for engine in ENGINES:
        out, last = np.zeros(n, np.int32), np.zeros(m, np.int32)
        xegpu_py.compile(text, engine=engine, cache="off")(x.ravel(), first.ravel(), out, last)
        np.testing.assert_array_equal(out.reshape(shape), np.moveaxis(wanted, 0, dim), engine)
        np.testing.assert_array_equal(last.reshape(rest), wanted[-1], engine)


COMPRESS = """
gpu.module @m {
  gpu.func @k(%x: memref<?xf16>, %m: memref<?xi8>, %packed: memref<40xf16>, %spread: memref<?xf16>) kernel ATTRIBUTES {
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    PLACE
    %v = vector.load %x[%at] : memref<?xf16>, vector<21xf16>
    %b = vector.load %m[%at] : memref<?xi8>, vector<21xi8>
    %z = arith.constant dense<0> : vector<21xi8>
    %mask = arith.cmpi ne, %b, %z : vector<21xi8>
    CONDITION vector.compressstore %packed[%c3], %mask, %v : memref<40xf16>, vector<21xi1>, vector<21xf16>
    %w = vector.expandload %x[%at], %mask, %v : memref<?xf16>, vector<21xi1>, vector<21xf16> into vector<21xf16>
    vector.store %w, %spread[%at] : memref<?xf16>, vector<21xf16>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("items", [1, 16])
def test_compress_and_expand(items):
    """In a kernel of one subgroup, and in one of work items, of which the third compresses."""
    text = (
        COMPRESS.replace("ATTRIBUTES", "").replace("PLACE", "%at = arith.constant 0 : index").replace("CONDITION", "")
    )
    if items > 1:
        text = COMPRESS.replace("ATTRIBUTES", "attributes {xegpu.subgroup_size = 16 : i32}")
        place = """%id = gpu.thread_id x
    %c21 = arith.constant 21 : index
    %at = arith.muli %id, %c21 : index
    %third = arith.cmpi eq, %id, %c3 : index"""
        text = text.replace("PLACE", place).replace("CONDITION", "scf.if %third {").replace(
            "vector<21xi1>, vector<21xf16>\n", "vector<21xi1>, vector<21xf16>\n    }\n", 1
        )  # fmt: skip
    rng = np.random.default_rng(1)
    x = rng.standard_normal(21 * items).astype(np.float16)
    mask = rng.integers(0, 2, 21 * items).astype(np.int8)
    chosen = slice(63, 84) if items > 1 else slice(0, 21)
    packed = np.zeros(40, np.float16)
    kept = x[chosen][mask[chosen] != 0]
    packed[3 : 3 + len(kept)] = kept
    spread = x.copy()
    for i in range(items):
        part = slice(21 * i, 21 * i + 21)
        places = np.flatnonzero(mask[part])
        spread[part][places] = x[part][: len(places)]
    for engine in ENGINES:
        outs = np.zeros(40, np.float16), np.zeros_like(x)
        xegpu_py.compile(text, engine=engine, cache="off")(x, mask, *outs, block=items)
        np.testing.assert_array_equal(outs[0], packed, engine)
        np.testing.assert_array_equal(outs[1], spread, engine)
