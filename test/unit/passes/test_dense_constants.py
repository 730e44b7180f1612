"""Vectors of constants in registers: each way to store them gives the same bits, and the finalizer accepts it."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py.target import TARGETS
from xegpu_py.visa.finalizer import available, finalize

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
FLOATS = [0x7FC00001, 0x80000000, 0, 0x3F800000, 0xFF800000, 0xFFC12345, 1, 0x3F800000]


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


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("case", INTEGERS)
def test_integers(case, element):
    dtype = np.dtype(f"int{element[1:]}")
    values = np.array(INTEGERS[case]).astype(dtype)
    found = np.zeros(len(values), dtype)
    xegpu_py.compile(_text(element, values.tolist()), target="pvc", engine="both", cache="off")(found)
    np.testing.assert_array_equal(found, values)


def test_floats():
    found = np.zeros(len(FLOATS), np.float32)
    xegpu_py.compile(_text("f32", [f"{n:#010x}" for n in FLOATS]), target="pvc", engine="both", cache="off")(found)
    assert found.view(np.uint32).tolist() == FLOATS


@pytest.mark.skipif(not available(), reason="the finalizer is not installed")
@pytest.mark.parametrize("target", [name for name, target in TARGETS.items() if target.platform])
def test_the_finalizer_accepts_them(target):
    for element in ("i8", "i16", "i32", "i64"):
        for values in INTEGERS.values():
            wrapped = np.array(values).astype(f"int{element[1:]}").tolist()
            kernel = xegpu_py.compile(_text(element, wrapped), target=target, cache="off")
            finalize(kernel.asm, TARGETS[target].platform)
