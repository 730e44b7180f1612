"""Layouts of the same elements in another shape, compared by the elements of each lane."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xegpu_py.layout import LayoutError, NestedLayout, reshape

from .strategies import layouts


def held(layout):
    """The row-major numbers of the elements of each lane, in order of their size."""
    s, t = np.ogrid[: layout.subgroups.period, : layout.threads.period]
    return np.sort(np.ravel_multi_index(layout.indices(s, t), layout.shape), axis=-1)


@given(layouts(), st.data())
def test_every_lane_holds_the_same(layout, data):
    shape = [math.prod(layout.shape)]
    for _ in range(data.draw(st.integers(0, 4))):
        i = data.draw(st.integers(0, len(shape) - 1))
        n = data.draw(st.sampled_from([n for n in range(1, shape[i] + 1) if shape[i] % n == 0]))
        shape[i : i + 1] = [n, shape[i] // n]
    try:
        found = reshape(layout, shape)
    except LayoutError:
        return
    assert found.shape == tuple(shape)
    np.testing.assert_array_equal(held(found), held(layout))


@given(layouts(most=256), st.data())
def test_dimensions_that_are_cut_between_levels_have_a_layout_and_so_has_the_way_back(layout, data):
    cut = []
    for tiles in zip(
        layout.subgroup_tile, layout.batch_tile, layout.outer_tile, layout.thread_tile, layout.element_tile
    ):
        at = sorted(data.draw(st.lists(st.integers(0, 5), max_size=3)))
        cut += [math.prod(tiles[a:b]) for a, b in zip([0, *at], [*at, 5])]
    there = reshape(layout, cut)
    assert there.shape == tuple(cut)
    np.testing.assert_array_equal(held(there), held(layout))
    back = reshape(there, layout.shape)
    np.testing.assert_array_equal(held(back), held(layout))


@given(layouts(whole=True))
def test_the_same_shape_keeps_the_layout(layout):
    found = reshape(layout, layout.shape)
    s, t = np.ogrid[: layout.subgroups.period, : layout.threads.period]
    np.testing.assert_array_equal(found.indices(s, t), layout.indices(s, t))
    assert reshape(layout, [1, *layout.shape, 1]).shape == (1, *layout.shape, 1)


def test_a_row_of_lanes_becomes_a_grid():
    row = NestedLayout((2,), (3,), (1,), (16,), (4,), (1,), (1,))
    assert reshape(row, (6, 64)) == NestedLayout((2, 1), (3, 1), (1, 1), (1, 16), (1, 4), (1, 0), (0, 1))
    assert reshape(row, (24, 16)) == NestedLayout((2, 1), (3, 1), (1, 1), (4, 4), (1, 4), (1, 0), (4, 1))
    assert reshape(row, (192, 2)) == NestedLayout((2, 1), (3, 1), (1, 1), (16, 1), (2, 2), (1, 0), (1, 0))


@pytest.mark.parametrize(
    ("layout", "shape", "message"),
    [
        (NestedLayout((1,), (1,), (1,), (16,), (1,), (0,), (1,)), (4, 5), "does not have as many elements as [4, 5]"),
        (NestedLayout((1,), (2,), (1,), (6,), (1,), (0,), (1,)), (3, 4), "ends within 6 tiles of thread_tile"),
        (
            NestedLayout((1, 1), (1, 1), (1, 1), (2, 4), (2, 1), (0, 0), (4, 1)),
            (16,),
            "dimension 0 of [16] would be 2 of thread_tile, 2 of element_tile, 4 of thread_tile",
        ),
        (
            NestedLayout((1, 2), (2, 1), (1, 1), (1, 1), (1, 1), (0, 1), (0, 0)),
            (4,),
            "dimension 0 of [4] would be 2 of batch_tile, 2 of subgroup_tile",
        ),
    ],
)
def test_what_no_layout_says(layout, shape, message):
    with pytest.raises(LayoutError) as e:
        reshape(layout, shape)
    assert message in str(e.value)
