"""How arrays differ."""

import ml_dtypes
import numpy as np
import pytest

from xegpu_py.numerics.differences import APART, ulps_apart, unlike


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_units_in_the_last_place(dtype):
    least = np.array([1], f"u{np.dtype(dtype).itemsize}").view(dtype)
    a = np.concatenate([np.array([1, -1, 0, -0.0, np.nan, np.inf, 5]).astype(dtype), least])
    b = np.concatenate([np.nextafter(a[:2], np.array(2, dtype)) if dtype in (np.float32, np.float64) else a[:2], a[2:]])
    b[3], b[4], b[5], b[7] = 0, 1, a[5], -least[0]
    found = [int(n) for n in ulps_apart(a, b)]
    assert found[2:] == [0, 1, APART, 0, 0, 2]
    assert found[:2] == ([1, 1] if dtype in (np.float32, np.float64) else [0, 0])
    assert int(ulps_apart(np.array([1]), np.array([2]))[0]) > 1
    assert not ulps_apart(b, b).any()


def test_formats_of_fewer_bits_than_a_byte_and_without_a_sign():
    numbers = np.array([0.5, -0.5, 6, -6, 1]).astype(ml_dtypes.float4_e2m1fn)
    assert ulps_apart(numbers, numbers[[1, 0, 3, 2, 4]]).tolist() == [2, 2, 14, 14, 0]
    scales = np.array([2.0**-1, 2.0**100]).astype(ml_dtypes.float8_e8m0fnu)
    assert ulps_apart(scales, np.array([2.0, 2.0**99]).astype(scales.dtype)).tolist() == [2, 1]
    wide = np.array([-1.0, np.finfo(np.float64).max])
    assert ulps_apart(wide, -wide).tolist() == [2 * 0x3FF << 52, 2 * 0x7FEFFFFFFFFFFFFF]


def test_elements_that_are_no_floats():
    integers = np.arange(4).astype(ml_dtypes.int4)
    assert ulps_apart(integers, integers[::-1]).tolist() == [APART] * 4
    pairs = np.zeros(3, [("a", np.int32), ("b", np.float64)])
    others = pairs.copy()
    others["b"][1] = 2
    found = unlike(pairs, others)
    assert found and (found.count, found.size, found.index, found.ulps) == (1, 3, (1,), None)


def test_the_extent_of_a_difference():
    before = np.ones((4, 4), np.float32)
    after = before.copy()
    assert unlike(before, after) is None
    after[1, 2], after[3, 0] = np.nextafter(np.float32(1), np.float32(2)), np.float32(1 + 2**-21)
    found = unlike(before, after)
    assert found and found.index == (1, 2) and (found.before, found.after) == (before[1, 2], after[1, 2])
    assert found.extent == "2 of 16 elements differ, by up to 4 units in the last place"
    assert unlike(before, after, ulps=3).count == 1
    assert unlike(before, after, ulps=4) is None
    after[0, 0] = np.nan
    assert unlike(before, after).extent == "3 of 16 elements differ, some are NaN in one only"
    column_major = np.asfortranarray(before)
    assert unlike(column_major, np.asfortranarray(after)).index == (0, 0)
    assert unlike(np.zeros((), np.int32), np.ones((), np.int32)).extent == "1 of 1 elements differ"


def test_nans_of_other_bits():
    before = np.array([1, np.nan, np.nan], np.float32)
    after = before.copy()
    after.view(np.uint32)[1] ^= 1
    found = unlike(before, after)
    assert (found.count, found.nans, found.ulps) == (1, 1, 0)
    assert found.extent == "1 of 3 elements differ, all are NaNs of other bits"
    assert found.values == ("nan (0x7fc00000)", "nan (0x7fc00001)")
    after[0] = np.nextafter(np.float32(1), np.float32(2))
    found = unlike(before, after)
    assert found.extent == "2 of 3 elements differ, by up to 1 units in the last place, 1 are NaNs of other bits"
    assert found.values == ("1.0", "1.0000001")
