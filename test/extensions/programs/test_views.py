"""Views of memory as numpy arrays: they reach from their first to their last element, and no further."""

import re

import numpy as np
import pytest

from xegpu_py.extensions.programs.host_libraries import HostMemRef, multiply

LINES = [(0, (24,), (1,)), (23, (24,), (-1,)), (1, (8,), (3,))]
MATRICES = [(0, (4, 6), (6, 1)), (23, (4, 6), (-6, -1)), (5, (4, 6), (6, -1))]


@pytest.mark.parametrize(("offset", "sizes", "strides"), [*LINES, *MATRICES, (7, (), ())])
def test_elements_of_views(offset, sizes, strides):
    memory = np.arange(24, dtype=np.int32)
    view = HostMemRef(memory.ctypes.data, memory.ctypes.data, offset, sizes, strides).array("i32")
    places = np.array([offset + sum(i * s for i, s in zip(at, strides)) for at in np.ndindex(sizes)])
    assert view.shape == sizes and view.ravel().tolist() == places.tolist()
    # The memory that the view keeps is that of its elements.
    base = view
    while getattr(base, "base", None) is not None:
        base = base.base
    assert memoryview(base).nbytes == (places.max() - places.min() + 1) * 4
    view[...] = 100 + places.reshape(sizes)
    assert memory[places].tolist() == (100 + places).tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64])
def test_strides_of_arrays_are_of_elements(dtype):
    memory = np.arange(24).astype(dtype).reshape(2, 3, 4)
    for array, strides in (
        (memory, (12, 4, 1)),
        (memory.T, (1, 4, 12)),
        (memory[:, ::2, 1:], (12, 8, 1)),
        (memory[0, ::-1], (-4, 1)),
        (memory[0, 0, 0], ()),
    ):
        array = np.asarray(array)
        memref = HostMemRef.of(array)
        assert (memref.sizes, memref.strides, memref.offset) == (array.shape, strides, 0)
        assert memref.aligned == array.ctypes.data


def test_packed_elements_fill_bytes():
    memory = np.arange(64, dtype=np.uint8)
    at = memory.ctypes.data
    assert HostMemRef(at, at, 2, (3, 4), (8, 1)).array("i4").tolist() == [[1, 2], [5, 6], [9, 10]]
    whole = HostMemRef(at, at, 4, (2, 3, 8), (48, 12, 1)).array("i4")
    assert (whole == 2 + np.arange(2)[:, None, None] * 24 + np.arange(3)[:, None] * 6 + np.arange(4)).all()
    assert HostMemRef(at, at, 6, (4,), (1,)).array("i4").tolist() == [3, 4]
    assert HostMemRef(at, at, 8, (8,), (1,)).array("i2").tolist() == [2, 3]
    lines = [(1, (4,), (1,)), (0, (3,), (1,)), (0, (4,), (3,)), (0, (4,), (2,))]
    for offset, sizes, strides in (*lines, (0, (2, 4), (5, 1))):
        message = f"elements of {sizes} with strides {strides} do not fill bytes"
        with pytest.raises(ValueError, match=re.escape(message)):
            HostMemRef(at, at, offset, sizes, strides).array("i4")


@pytest.mark.parametrize("shape", [(2, 3, 0), (0, 3, 2), (2, 0, 3), (1, 1, 65537), (3, 2, 40000), (70, 3, 1000)])
def test_products_of_any_extent(shape):
    """In parts of rows, whose products and sums are rounded in the order of k."""
    m, k, n = shape
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal(size).astype(np.float32) for size in ((m, k), (k, n), (m, n)))
    expected = c.copy()
    for i in range(k):
        expected += a[:, i : i + 1] * b[i]
    multiply(a, b, c)
    np.testing.assert_array_equal(c, expected)
