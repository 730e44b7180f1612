"""The choice `reduction-order`: exact sums by halves and in sequence, at each level, on engines and reference."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import xegpu_py
from xegpu_py.numerics.formats import Array

SEQUENTIAL = "reduction-order=sequential"

ENGINES = ("both", "reference")


def in_order(rows: Array, start: Array | None = None, dtype: Any = np.float32) -> Array:
    """The sum of rows by increasing index, each addition rounded to f32."""
    terms = [np.asarray(r, dtype) for r in rows]
    return np.asarray(functools.reduce(lambda a, b: dtype(a + b), terms if start is None else [start, *terms]))


VECTOR = """
gpu.module @kernels {
  gpu.func @sum(%x: memref<16xf32>, %y: memref<1xf32>, %start: f32) kernel {
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
    %s = vector.reduction <add>, %v, %start : vector<16xf32> into f32
    memref.store %s, %y[%c0] : memref<1xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_exact_sums_in_both_orders(engine: str) -> None:
    """2^24 and 15 ones: by halves all but the one beside 2^24 are added to each other first; in order each is lost."""
    x, y = np.ones(16, np.float32), np.zeros(1, np.float32)
    x[0] = 2**24
    for start, halves, sequential in ((0, 2**24 + 14, 2**24), (-(2**24), 14, 15)):
        for choices, wanted in (((), halves), ((SEQUENTIAL,), sequential), (("reduction-order=halves",), halves)):
            xegpu_py.compile(VECTOR, engine=engine, choices=choices)(x, y, np.float32(start))
            assert y[0] == wanted, (start, choices)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_module_says_its_order(engine: str) -> None:
    """The option is an attribute of the module, which lowered modules keep."""
    x, y = np.ones(16, np.float32), np.zeros(1, np.float32)
    x[0] = 2**24
    text = f'module attributes {{xegpu.reduction_order = "sequential"}} {{ {VECTOR} }}'
    xegpu_py.compile(text, engine=engine)(x, y, np.float32(0))
    assert y[0] == 2**24
    assert 'xegpu.reduction_order = "sequential"' in xegpu_py.compile(VECTOR, choices=SEQUENTIAL).ir("visa")


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ValueError, match="choice 'reduction-order' must be one of halves, sequential, but got 'tree'"):
        xegpu_py.compile(VECTOR, choices="reduction-order=tree")


ROWS = np.random.default_rng(45)

DIMENSIONS = """
gpu.module @kernels {
  gpu.func @sum(%x: memref<ROWSxCOLSxTYPE>, %y: memref<LEFTxTYPE>, %z: memref<LEFTxTYPE>) kernel {
    %c0 = arith.constant 0 : index
    %t = xegpu.create_nd_tdesc %x[0, 0] {mode = vc} : memref<ROWSxCOLSxTYPE> -> !xegpu.tensor_desc<ROWSxCOLSxTYPE>
    %v = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<ROWSxCOLSxTYPE> -> vector<ROWSxCOLSxTYPE>
    %a = vector.load %z[%c0] : memref<LEFTxTYPE>, vector<LEFTxTYPE>
    %s = vector.multi_reduction <KIND>, %v, %a [DIM] : vector<ROWSxCOLSxTYPE> to vector<LEFTxTYPE>
    vector.store %s, %y[%c0] : memref<LEFTxTYPE>, vector<LEFTxTYPE>
    gpu.return
  }
}
"""


def reduced(engine: str, x: Array, dim: int, start: Array, kind: str = "add", **options: Any) -> Array:
    values = {"ROWS": x.shape[0], "COLS": x.shape[1], "LEFT": start.size, "DIM": dim, "KIND": kind}
    text = DIMENSIONS.replace("TYPE", "f32" if x.dtype == np.float32 else "bf16")
    for name, value in values.items():
        text = text.replace(name, str(value))
    y = np.zeros_like(start)
    xegpu_py.compile(text, engine=engine, **options)(x, y, start)
    return y


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("shape", "dim"), [((64, 32), 0), ((32, 64), 1), ((6, 16), 0)])
def test_sums_along_dimensions(engine: str, shape: tuple[int, int], dim: int) -> None:
    """Also of vectors that are reduced in several pieces; the accumulator is the first term."""
    x = ROWS.standard_normal(shape).astype(np.float32)
    start = ROWS.standard_normal(shape[1 - dim]).astype(np.float32)
    wanted = in_order(np.moveaxis(x, dim, 0), start)
    assert (reduced(engine, x, dim, start, choices=SEQUENTIAL) == wanted).all()
    assert (reduced(engine, x, dim, start) != wanted).any()


@pytest.mark.parametrize("engine", ENGINES)
def test_narrow_floats_are_rounded_once(engine: str) -> None:
    x = ROWS.standard_normal((16, 32)).astype(bfloat16)
    start = ROWS.standard_normal(32).astype(bfloat16)
    wanted = in_order(x, start.astype(np.float32)).astype(bfloat16)
    assert (reduced(engine, x, 0, start, choices=SEQUENTIAL) == wanted).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_products(engine: str) -> None:
    """In order the product overflows at its second factor; by halves its greatest factors meet the least ones first."""
    x = np.repeat(np.float32([2.0**100, 2.0**-100]), 8)[:, None] * np.ones(32, np.float32)
    start = np.ones(32, np.float32)
    assert (reduced(engine, x, 0, start, "mul", choices=SEQUENTIAL) == np.inf).all()
    assert (reduced(engine, x, 0, start, "mul") == 1).all()


def test_the_cache_on_disk_keeps_both_orders(tmp_path: Path) -> None:
    x, y = np.ones(16, np.float32), np.zeros(1, np.float32)
    x[0] = 2**24
    for choices, wanted in (((), 2**24 + 14), ((SEQUENTIAL,), 2**24), ((), 2**24 + 14)):
        xegpu_py.compile(VECTOR, cache=tmp_path, choices=choices)(x, y, np.float32(0))
        assert y[0] == wanted


@pytest.mark.parametrize("engine", ENGINES)
def test_minima_have_no_order(engine: str) -> None:
    x = ROWS.standard_normal((16, 32)).astype(np.float32)
    start = np.full(32, np.inf, np.float32)
    assert (reduced(engine, x, 0, start, "minimumf", choices=SEQUENTIAL) == x.min(0)).all()


LANES = """
gpu.module @kernels {
  gpu.func @sum(%x: memref<16x5xf32>, %y: memref<16xf32>, %z: memref<16xf32>) kernel
      attributes {xegpu.subgroup_size = 16 : i32} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%t, %c0] : memref<16x5xf32>, vector<5xf32>
    %s = vector.reduction <add>, %v : vector<5xf32> into f32
    memref.store %s, %y[%t] : memref<16xf32>
    %all = gpu.subgroup_reduce add %s : (f32) -> f32
    memref.store %all, %z[%t] : memref<16xf32>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes(engine: str) -> None:
    """The elements of a work item, and the work items of a subgroup."""
    x = ROWS.standard_normal((16, 5)).astype(np.float32)
    y, z, usual = (np.zeros(16, np.float32) for _ in range(3))
    xegpu_py.compile(LANES, engine=engine, choices=SEQUENTIAL)(x, y, z, block=16)
    assert (y == in_order(x.T)).all() and (z == in_order(y)).all()
    xegpu_py.compile(LANES, engine=engine)(x, usual, np.zeros(16, np.float32), block=16)
    assert (y != usual).any()


@xegpu_py.jit
def sums(x: Any, rows: Any, columns: Any, groups: Any) -> None:
    v = x.tile((16, 32), at=(0, 0)).load()
    rows.tile((16, 1), at=(0, 0)).store(v.sum(1, keep_dims=True))
    columns.tile((1, 32), at=(0, 0)).store(v.sum(0, keep_dims=True))
    groups.tile((16, 4), at=(0, 0)).store(v.sum(1, group=8))


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", ["pvcxt", "bmg", "dg2"])
def test_tiles(engine: str, target: str) -> None:
    """All elements of a dimension, for which the usual order is by blocks, and groups of them."""
    x = ROWS.standard_normal((16, 32)).astype(np.float32)
    found = [np.zeros(shape, np.float32) for shape in ((16, 1), (1, 32), (16, 4))]
    sums.with_options(engine=engine, target=target, subgroups=None, choices=SEQUENTIAL)[1](x, *found)
    assert (found[0][:, 0] == in_order(x.T)).all() and (found[1][0] == in_order(x)).all()
    assert (found[2] == in_order(np.moveaxis(x.reshape(16, 4, 8), 2, 0))).all()
    usual = [np.zeros_like(f) for f in found]
    sums.with_options(engine=engine, target=target, subgroups=None)[1](x, *usual)
    assert all((a != b).any() for a, b in zip(found, usual))


PROGRAM = """
module {
  tt.func public @total(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %v = tt.load %q : tensor<64x!tt.ptr<f32>>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64xf32>) -> f32
    tt.store %y, %s : !tt.ptr<f32>
    tt.return
  }
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_programs_of_triton(engine: str) -> None:
    x, y, usual = np.ones(64, np.float32), np.zeros(1, np.float32), np.zeros(1, np.float32)
    x[0] = 2**24
    xegpu_py.compile(PROGRAM, engine=engine, choices=SEQUENTIAL)(x, y)
    xegpu_py.compile(PROGRAM, engine=engine)(x, usual)
    assert y[0] == 2**24 and usual[0] > 2**24 + 50
