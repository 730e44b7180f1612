"""Contractions in kernels of subgroups give what numpy's einsum gives, outer products what exact arithmetic gives."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
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
OUTER_TYPES = {**DTYPES, "i16": np.int16, "f64": np.float64, "bf16": ml_dtypes.bfloat16}


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


def outer_product(element, kind, initial, other, masked):
    """A kernel of one work item: the product of 8 elements and 16, or of 16 and one."""
    a_size = 8 if other == 16 else 16
    shape = (8, 16) if other == 16 else (16,)
    va, vb, out, truth = vector((a_size,), element), vector((16,), element), vector(shape, element), vector(shape, "i1")
    right = vb if other == 16 else element
    at = ", ".join(["%c0"] * len(shape))
    acc = ", %z" if initial else ""
    op = f"vector.outerproduct %a, %b{acc} {{kind = #vector.kind<{kind}>}} : {va}, {right}"
    return f"""gpu.module @k {{
  gpu.func @f(%A: memref<{va[7:]}, %B: memref<16x{element}>, %M: memref<{vector(shape, "i8")[7:]},
              %C: memref<{out[7:]}) kernel {{
    %c0 = arith.constant 0 : index
    %a = vector.load %A[%c0] : memref<{va[7:]}, {va}
    %b = {f"vector.load %B[%c0] : memref<{vb[7:]}, {vb}" if other == 16 else f"memref.load %B[%c0] : memref<{vb[7:]}"}
    %z = vector.load %C[{at}] : memref<{out[7:]}, {out}
    %bytes = vector.load %M[{at}] : memref<{vector(shape, "i8")[7:]}, {vector(shape, "i8")}
    %m = arith.trunci %bytes : {vector(shape, "i8")} to {truth}
    %d = {f"vector.mask %m {{ {op} }} : {truth} -> {out}" if masked else op}
    vector.store %d, %C[{at}] : memref<{out[7:]}, {out}
    gpu.return
  }}
}}"""


OUTER_PRODUCTS = [
    ("f32", "add", True, 16, False),
    ("f32", "add", True, 1, False),
    ("f32", "mul", False, 16, False),
    ("f32", "maxnumf", True, 16, True),
    ("f32", "add", False, 1, False),
    ("f32", "minimumf", True, 1, True),
    ("f16", "add", True, 16, True),
    ("bf16", "add", True, 16, False),
    ("f64", "mul", True, 16, False),
    ("i32", "add", True, 16, True),
    ("i8", "maxsi", True, 16, False),
    ("i8", "minui", True, 16, False),
    ("i16", "xor", True, 1, False),
]
COMBINED = {
    "add": lambda p, c: p + c,
    "mul": lambda p, c: p * c,
    "xor": lambda p, c: p ^ c,
    "maxsi": max,
    "maxnumf": max,
    "minimumf": min,
    "minui": lambda p, c: min(p % 256, c % 256),
}


@pytest.mark.parametrize("element,kind,initial,other,masked", OUTER_PRODUCTS)
def test_outer_products(element, kind, initial, other, masked):
    dtype = np.dtype(OUTER_TYPES[element])
    rng = np.random.default_rng(3)
    text = outer_product(element, kind, initial, other, masked)
    shape = (8, 16) if other == 16 else (16,)
    if dtype.kind == "i":
        a, b, c = (rng.integers(-100, 100, n).astype(dtype) for n in (shape[0], 16, shape))
    else:
        a, b, c = (rng.uniform(0.5, 2, n).astype(dtype) for n in (shape[0], 16, shape))
    mask = rng.integers(0, 2, shape).astype(np.int8)
    expected = c.copy()
    for at in np.ndindex(*shape):
        x, y, z = (Fraction(float(v)) for v in (a[at[0]], b[at[-1] if other == 16 else 0], c[at]))
        if dtype.kind == "i":
            x, y, z = int(x), int(y), int(z)
        product = x * y
        if dtype.kind == "i":
            product = (product + 2 ** (8 * dtype.itemsize - 1)) % 2 ** (8 * dtype.itemsize)
            product -= 2 ** (8 * dtype.itemsize - 1)
        elif kind != "add":
            # Only an fma does not round the product.
            product = Fraction(float(rounded(product, dtype)))
        found = COMBINED[kind](product, z) if initial else product
        if not masked or mask[at]:
            expected[at] = rounded(found, dtype)
    results = []
    for engine in ("reference", "both"):
        out = c.copy()
        xegpu_py.compile(text, engine=engine, cache="off")(a, b, mask, out, block=1)
        results.append(out.tobytes())
    assert results == [expected.tobytes()] * 2


def rounded(number, dtype):
    """An exact number in a format, by one rounding to nearest even; integers wrap."""
    if dtype.kind == "i":
        return np.asarray(int(number) % 2 ** (8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype)
    precision = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    if not number:
        return dtype.type(0)
    unit = Fraction(2) ** (math.frexp(float(number))[1] - precision)
    # Of a fraction Python's `round` is exact, and to nearest even.
    return dtype.type(float(round(number / unit) * unit))
