"""Arrays of elements of less than a byte, packed for a launch: each element lies where numpy's order says."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.runtime.host_arrays import PackedArrays, packed_shape

SHAPES = [(), (1,), (4,), (7,), (3, 8), (2, 3, 4), (0,), (3, 0)]
VIEWS = {
    "whole": lambda shape: np.zeros(shape, np.uint8),
    "columns": lambda shape: np.zeros((*shape[:-1], shape[-1] + 8), np.uint8)[..., 4 : 4 + shape[-1]],
    "rows": lambda shape: np.zeros((2 * shape[0], *shape[1:-1], -(-shape[-1] // 4) * 4), np.uint8)[
        ::2, ..., : shape[-1]
    ],
}


@pytest.mark.parametrize(("element", "dtype", "bits"), [("i4", "int4", 4), ("ui4", "uint4", 4), ("i2", "int2", 2)])
@pytest.mark.parametrize(("view", "shape"), [("whole", s) for s in SHAPES] + [("columns", (3, 8)), ("rows", (2, 3, 5))])
def test_elements(element, dtype, bits, view, shape):
    rng = np.random.default_rng(len(shape))
    each, dtype = 8 // bits, getattr(ml_dtypes, dtype)
    array = VIEWS[view](shape).view(dtype)
    numbers = rng.integers(0, 2**bits, shape)
    array[...] = numbers.astype(dtype)
    arrays = PackedArrays()
    packed = arrays.pack(array, element, "x")
    assert packed.dtype == np.uint8 and packed.shape == packed_shape(shape, element)
    assert arrays.pack(array, element, "x").ctypes.data == packed.ctypes.data

    def elements(packed):
        found = (packed[..., None] >> bits * np.arange(each)) & 2**bits - 1
        return found.reshape(*packed.shape[:-1], -1)[..., : shape[-1]] if shape else found[0]

    np.testing.assert_array_equal(elements(packed), numbers)
    if view == "whole" and packed.size:
        packed.reshape(-1)[-1] ^= 1
        expected = elements(packed)
        arrays.write_back()
        np.testing.assert_array_equal(array.view(np.uint8) & 2**bits - 1, expected)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 8), np.uint8)[:, ::2], "x has elements that do not lie side by side"),
        (np.zeros((4, 8), np.uint8)[:, ::-1], "x has elements that do not lie side by side"),
        (
            np.zeros((4, 8), np.uint8)[::-1],
            "x has rows that begin within a byte when packed; let them be multiples of 2",
        ),
        (np.zeros((4, 7), np.uint8), "x has rows that begin within a byte when packed; let them be multiples of 2"),
    ],
)
def test_arrays_that_cannot_be_packed(array, message):
    with pytest.raises(ValueError, match=message):
        PackedArrays().pack(array.view(ml_dtypes.int4), "i4", "x")


def test_arrays_that_overlap():
    memory = np.zeros(16, np.uint8).view(ml_dtypes.int4)
    apart = ((0, 8), (8, 16), False), ((8, 16), (0, 8), False), ((12, 16), (0, 8), False)
    for first, second, is_refused in (*apart, ((0, 8), (7, 15), True), ((4, 12), (0, 5), True)):
        arrays = PackedArrays()
        arrays.pack(memory[slice(*first)], "i4", "x")
        if is_refused:
            with pytest.raises(ValueError, match="y overlaps another array of elements of 4 bits; give a copy"):
                arrays.pack(memory[slice(*second)], "i4", "y")
        else:
            arrays.pack(memory[slice(*second)], "i4", "y")


def test_other_arguments_are_themselves():
    arrays = PackedArrays()
    for argument in (3, 2.5, [1], np.zeros(4, np.float32), np.zeros(4, np.uint8), np.zeros(4, ml_dtypes.int2)):
        assert arrays.pack(argument, "i4", "x") is argument
    assert arrays.pack(np.zeros(4, ml_dtypes.int4), "i4", "x").shape == (2,)
    floats = np.zeros(4, np.float32)
    assert arrays.pack(floats, "f32", "x") is floats


def test_strides_of_single_rows_do_not_matter():
    line = np.arange(15, dtype=np.uint8).view(ml_dtypes.int4)[None, :8]
    assert np.lib.stride_tricks.as_strided(line, strides=(3, 1)).strides == (3, 1)
    packed = PackedArrays().pack(np.lib.stride_tricks.as_strided(line, strides=(3, 1)), "i4", "x")
    assert packed.tolist() == [[0x10, 0x32, 0x54, 0x76]]


@pytest.mark.parametrize(
    ("shape", "element", "expected"),
    [((3, 8), "f32", (3, 8)), ((3, 8), "i4", (3, 4)), ((None, 7), "i4", (None, 4)), ((3, None), "i4", (3, None)),
     ((), "i4", ()), ((9,), "i2", (3,)), ((8,), "i8", (8,))],
)  # fmt: skip
def test_shapes(shape, element, expected):
    assert packed_shape(shape, element) == expected


COPY = """gpu.module @m { gpu.func @copy(%x: memref<8x16xi4>, %y: memref<8x16xi4>) kernel {
  %a = xegpu.create_nd_tdesc %x[0, 0] {mode = vc} : memref<8x16xi4> -> !xegpu.tensor_desc<8x16xi4>
  %b = xegpu.create_nd_tdesc %y[0, 0] {mode = vc} : memref<8x16xi4> -> !xegpu.tensor_desc<8x16xi4>
  %v = xegpu.load_nd %a {mode = vc} : !xegpu.tensor_desc<8x16xi4> -> vector<8x16xi4>
  xegpu.store_nd %v, %b {mode = vc} : vector<8x16xi4>, !xegpu.tensor_desc<8x16xi4>
  gpu.return } }"""


def test_a_call_changes_the_array_and_not_its_copy_alone():
    x = np.random.default_rng(0).integers(-8, 8, (8, 16)).astype(ml_dtypes.int4)
    y = np.zeros_like(x)
    xegpu_py.compile(COPY, engine="interpreter")(x, y)
    np.testing.assert_array_equal(y, x)
