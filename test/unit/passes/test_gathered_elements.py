"""Elements in another order: moves of strided regions, of wider numbers and to strided results write each of them."""

import random

import numpy as np
import pytest
from effort import examples
from generators.vectors import strided_positions
from hypothesis import given, settings
from hypothesis import strategies as st

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
