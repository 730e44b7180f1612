"""Elements in another order: moves of strided regions, of wider numbers and to strided results write each of them."""

import random

import numpy as np
import pytest
from effort import examples
from generators.vectors import strided_positions
from hypothesis import given, settings
from hypothesis import strategies as st

import xegpu_py

from .kernels import apply

ELEMENTS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


@pytest.mark.parametrize("element", ELEMENTS)
@settings(max_examples=examples(160))
@given(st.integers(0, 1 << 30), st.booleans())
def test_elements_of_two_vectors(element, seed, one):
    dtype, extent, count = ELEMENTS[element], 64, 192
    kind = f"vector<{extent}x{element}>"
    rows = np.random.default_rng(seed).integers(-100, 100, (2, extent)).astype(dtype)
    order = strided_positions(random.Random(seed), extent if one else 2 * extent, count)
    out = apply(
        f"%r = vector.shuffle %a0, %a1 {order} : {kind}, {kind}",
        f"vector<{count}x{element}>",
        [(kind, rows[0]), (kind, rows[1])],
    )
    np.testing.assert_array_equal(out, rows.ravel()[order])


def swapped(size, count, first=0):
    """Neighbouring groups of a size in each other's place."""
    return [first + (n ^ size) for n in range(count)]


WHOLE = "vector.shuffle %a0, %a1"
PART = "{offsets = [1], sizes = [48], strides = [1]} : vector<64xi32> to vector<48xi32>"
TAIL = f"""%t = vector.extract_strided_slice %a0 {PART}
%r = vector.shuffle %t, %t"""


@pytest.mark.parametrize(
    ("begin", "order", "moves"),
    [
        # Every second number to a strided result: two moves for two registers.
        (WHOLE, swapped(1, 64), 4),
        # Pairs as numbers of 64 bits, likewise.
        (WHOLE, swapped(2, 64), 4),
        # Groups of four and of eight one by one.
        (WHOLE, swapped(4, 64), 16), (WHOLE, swapped(8, 64), 8),
        # Pairs that begin at an odd number of the result or of the source, or are not neighbours, stay as they are.
        (WHOLE, [3, *swapped(2, 62, 64)], None), (TAIL, swapped(2, 48), None),
        (WHOLE, [n for i in range(0, 32, 2) for n in (i ^ 2, (i ^ 2) + 5)], None),
        (WHOLE, [*swapped(2, 32), 40], None),
    ],
)  # fmt: skip
def test_pairs_of_elements(begin, order, moves):
    rows = np.arange(128, dtype=np.int32).reshape(2, 64) * 3 - 7
    kind, given = "vector<64xi32>", "vector<48xi32>" if begin == TAIL else "vector<64xi32>"
    body = f"{begin if begin == TAIL else f'%r = {begin}'} {order} : {given}, {given}"
    source = rows[0, 1:49] if begin == TAIL else rows.ravel()
    out = apply(body, f"vector<{len(order)}xi32>", [(kind, rows[0]), (kind, rows[1])])
    np.testing.assert_array_equal(out, source[order])
    if moves is not None:
        text = f"gpu.module @m {{ gpu.func @k(%m: memref<64xi32>) kernel {{ {LOADED} {body} {STORED} gpu.return }} }}"
        lines = xegpu_py.compile(text, cache="off").asm.splitlines()
        # Scalars are addresses.
        assert sum("    mov " in line and "(M1_NM, 1)" not in line for line in lines) == moves


LINE = "!xegpu.tensor_desc<64xi32>"
LOADED = f"""%d = xegpu.create_nd_tdesc %m[0] {{mode = vc}} : memref<64xi32> -> {LINE}
%a0 = xegpu.load_nd %d {{mode = vc}} : {LINE} -> vector<64xi32>
%a1 = xegpu.load_nd %d {{mode = vc}} : {LINE} -> vector<64xi32>"""
STORED = f"xegpu.store_nd %r, %d {{mode = vc}} : vector<64xi32>, {LINE}"
