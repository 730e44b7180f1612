"""Contractions in kernels of subgroups give what numpy's einsum gives."""

from __future__ import annotations

import numpy as np
import pytest

import xegpu_py

CASES = [
    ("mk,kn->mn", (8, 4), (4, 16), "f32", "f32"),
    ("km,nk->mn", (4, 8), (16, 4), "f32", "f32"),
    ("bmk,bkn->bmn", (2, 4, 3), (2, 3, 8), "f16", "f32"),
    ("mk,nk->nm", (8, 4), (16, 4), "i32", "i32"),
    ("mk,k->m", (8, 16), (16,), "f32", "f32"),
    ("ab,ab->", (4, 4), (4, 4), "f32", "f32"),
    ("mk,kn->mn", (8, 4), (4, 16), "i8", "i32"),
]
DTYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "i8": np.int8}


def vector(shape: tuple[int, ...], element: str) -> str:
    return f"vector<{'x'.join(map(str, shape))}x{element}>" if shape else element


@pytest.mark.parametrize("spec,a_shape,b_shape,element,result", CASES)
def test_contractions(spec, a_shape, b_shape, element, result):
    inputs, out = spec.split("->")
    letters = sorted({c for c in inputs if c != ","})
    maps = [f"affine_map<({', '.join(letters)}) -> ({', '.join(m)})>" for m in (*inputs.split(","), out)]
    kinds = ['"parallel"' if c in out else '"reduction"' for c in letters]
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-8, 8, shape).astype(DTYPES[element]) for shape in (a_shape, b_shape))
    expected = np.einsum(spec, a.astype(np.int64), b.astype(np.int64)) + 3
    shape = expected.shape
    count = max(expected.size, 1)
    three = "3" if result == "i32" else "3.0"
    acc = vector(shape, result)
    initial = f"dense<{three}> : {acc}" if shape else f"{three} : {result}"
    flat = f"vector<{count}x{result}>"
    store = f"%f = vector.shape_cast %d : {acc} to {flat}" if shape else f"%f = vector.broadcast %d : {acc} to {flat}"
    zero, va, vb = ["%c0"], vector(a_shape, element), vector(b_shape, element)
    text = f"""gpu.module @k {{
  gpu.func @f(%A: memref<{va[7:]}, %B: memref<{vb[7:]},
              %C: memref<{count}x{result}>) kernel {{
    %c0 = arith.constant 0 : index
    %a = vector.load %A[{", ".join(zero * len(a_shape))}] : memref<{va[7:]}, {vector(a_shape, element)}
    %b = vector.load %B[{", ".join(zero * len(b_shape))}] : memref<{vb[7:]}, {vector(b_shape, element)}
    %z = arith.constant {initial}
    %d = vector.contract {{indexing_maps = [{", ".join(maps)}], iterator_types = [{", ".join(kinds)}],
      kind = #vector.kind<add>}} %a, %b, %z : {va}, {vb} into {acc}
    {store}
    vector.store %f, %C[%c0] : memref<{count}x{result}>, {flat}
    gpu.return
  }}
}}"""
    c = np.zeros(count, DTYPES[result])
    xegpu_py.compile(text)(a, b, c)
    np.testing.assert_array_equal(c, expected.ravel())
