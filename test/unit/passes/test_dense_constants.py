"""Vectors of constants in registers: each way to store them gives the same bits, and the finalizer accepts it."""

import itertools
import random
import re

import numpy as np
import pytest
from effort import some

import xegpu_py
from xegpu_py.runtime.host_arrays import DTYPES
from xegpu_py.visa.finalizer import GPUS

RANDOM = np.random.default_rng(7)
INTEGERS = {
    "bytes": RANDOM.integers(-128, 128, 24).tolist(),
    "words": [-(2**15), 2**15 - 1, 128, -129, 0, -1, 255, 300],
    "large": RANDOM.integers(-(2**31), 2**31, 12).tolist(),
    "iota": list(range(32)),
    "doubled": [100_000 * i - 1000 for i in range(16)],
    "negative": [-3 * i for i in range(16)],
    "odd": [1, 2, 4, 8, 16],
    "equal": [5, 5, 5, 6, 6, 6, 6, 7],
}
FLOATS = {
    "f64": (0x7FF0000000000001, 0xFFF8000000012345, 0x8000000000000000, 0x3FF0000000000000, 0xFFF0000000000000, 1),
    "f32": (0x7F800001, 0xFFC12345, 0x80000000, 0x3F800000, 0xFF800000, 1, 0x7FC00001, 0x3F800000),
    "f16": (0x7C01, 0xFE55, 0x8000, 0x3C00, 0xFC00, 1, 0x7E01, 0x3C00),
    "bf16": (0x7F81, 0xFFC5, 0x8000, 0x3F80, 0xFF80, 1, 0x7FC1, 0x3F80),
    "f8E5M2": (0x7D, 0xFE, 0x80, 0x3C, 0xFC, 1, 0x7F, 0x3C),
    "f8E4M3FN": (0x7F, 0xFF, 0x80, 0x38, 0x7E, 1, 0x3F, 0x38),
}
"""Bit patterns of numbers and NaNs, of which the first one is signalling if there are such."""


def _text(element, values):
    kind = f"vector<{len(values)}x{element}>"
    memory = f"memref<{len(values)}x{element}>"
    return f"""
gpu.module @m {{
  gpu.func @k(%out: {memory}) kernel {{
    %c0 = arith.constant 0 : index
    %x = arith.constant dense<[{", ".join(map(str, values))}]> : {kind}
    vector.store %x, %out[%c0] : {memory}, {kind}
    gpu.return
  }}
}}
"""


@pytest.mark.each_value
@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("case", INTEGERS)
def test_integers(case, element):
    dtype = np.dtype(f"int{element[1:]}")
    values = np.array(INTEGERS[case]).astype(dtype)
    found = np.zeros(len(values), dtype)
    xegpu_py.compile(_text(element, values.tolist()), target="pvc", engine="both", cache="off")(found)
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("engine", ["both", "reference"])
@pytest.mark.parametrize("element", FLOATS)
def test_floats(element, engine):
    """NaNs keep their bits, in vectors of equal numbers too."""
    patterns = FLOATS[element]
    bits = int(re.match(r"b?f(\d+)", element)[1])
    for values in (patterns, patterns[:1] * 8, patterns[1:2] * 8):
        found = np.zeros(len(values), f"u{bits // 8}")
        text = _text(element, [f"{n:#0{2 + bits // 4}x}" for n in values])
        xegpu_py.compile(text, target="pvc", engine=engine, cache="off")(found.view(DTYPES[element]))
        assert found.tolist() == list(values)


@pytest.mark.each_value
@pytest.mark.parametrize("target", GPUS)
def test_the_finalizer_accepts_them(target, native_of):
    cases = [*itertools.product(("i8", "i16", "i32", "i64"), INTEGERS.values())]
    for element, values in some(random.Random(0).sample(cases, len(cases))):
        wrapped = np.array(values).astype(f"int{element[1:]}").tolist()
        kernel = xegpu_py.compile(_text(element, wrapped), target=target, cache="off")
        native_of(kernel.asm, target)
