"""`sg_map` and `wg_map` as nested layouts, against their definitions written out in loops."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xegpu_py.layout import (
    LayoutError,
    NestedLayout,
    from_maps,
    from_sg_map,
    from_wg_map,
    to_maps,
    to_sg_map,
    to_wg_map,
)

from .strategies import layouts

small = st.integers(1, 3)
pairs = st.tuples(small, small)


def dealt(shape, grid, data):
    """For each element, its owner in the grid by round-robin distribution."""
    owner = np.zeros(shape, int)
    for index in itertools.product(*map(range, shape)):
        place = [x // d % n for x, d, n in zip(index, data, grid)]
        owner[index] = place[0] * grid[1] + place[1]
    return owner


def sized(grid, data, rounds):
    return tuple(math.prod(x) for x in zip(grid, data, rounds))


def test_map_of_the_rfc():
    layout = from_sg_map([2, 8], [1, 2], [8, 16])
    assert layout.fragment_shape == (4, 2)
    block = np.arange(8 * 16).reshape(8, 16)
    lane = layout.fragment(layout.distribute(block)[0, 11])
    assert lane.tolist() == [[r * 16 + c for c in (6, 7)] for r in (1, 3, 5, 7)]
    assert to_sg_map(layout) == ((2, 8), (1, 2))


@given(pairs, pairs, pairs)
def test_sg_map_deals_round_robin(lanes, data, rounds):
    shape = sized(lanes, data, rounds)
    layout = from_sg_map(lanes, data, shape)
    assert np.array_equal(layout.owners().thread[..., 0], dealt(shape, lanes, data))
    assert to_sg_map(layout) == (lanes, data)
    block = np.arange(math.prod(shape)).reshape(shape)
    for lane, part in enumerate(layout.distribute(block)[0]):
        # In a fragment, elements are in the order of the block.
        assert layout.fragment(part).ravel().tolist() == block[dealt(shape, lanes, data) == lane].tolist()


@given(small, small, small)
def test_sg_map_of_one_dimension(lanes, data, rounds):
    layout = from_sg_map([1, lanes], [1, data], [lanes * data * rounds])
    assert layout == from_sg_map([lanes], [data], [lanes * data * rounds])
    assert to_sg_map(layout) == ((1, lanes), (1, data))


@given(layouts(rank=2), st.booleans())
def test_a_layout_that_is_a_sg_map_is_that_one(layout, row_major):
    """Maps of `to_sg_map` give the same elements to the same lanes; no map expresses the layouts that it rejects."""
    rows, columns = layout.thread_tile
    strides = (columns, 1) if row_major else layout.thread_strides
    layout = dataclasses.replace(layout, subgroup_tile=(1, 1), thread_strides=strides)
    expected = layout.owners().thread
    data = layout.element_tile
    try:
        found = to_sg_map(layout)
    except LayoutError:
        assert expected.shape[-1] > 1 or not np.array_equal(
            expected[..., 0], dealt(layout.shape, (rows, columns), data)
        )
    else:
        assert found == ((rows, columns), data)
        assert np.array_equal(expected[..., 0], dealt(layout.shape, *found))


@pytest.mark.parametrize(
    ("grid", "strides"), [((1, 16), (0, 1)), ((16, 1), (1, 0)), ((2, 8), (8, 1)), ((1, 1), (0, 0))]
)
def test_dimensions_that_are_not_distributed_have_stride_zero(grid, strides):
    assert from_sg_map(grid, [1, 1], [16, 16]).thread_strides == strides
    assert from_wg_map(grid, [1, 1], [16, grid[1]]).subgroup_strides == strides


@given(pairs, pairs, pairs)
def test_wg_map_deals_round_robin(groups, data, rounds):
    shape, total = sized(groups, data, rounds), math.prod(groups)
    if groups[0] > 1 and groups[1] > 1 and rounds[1] > 1:
        with pytest.raises(LayoutError, match=f"dimension 1 has {rounds[1]} rounds of its {groups[1]} subgroups"):
            from_wg_map(groups, data, shape)
        return
    layout = from_wg_map(groups, data, shape)
    assert np.array_equal(layout.owners(subgroups=total).subgroup[..., 0], dealt(shape, groups, data))
    # Rounds over a single subgroup and a larger tile of it are the same to a nested layout.
    again = from_wg_map(*to_wg_map(layout, subgroups=total), shape)
    assert np.array_equal(again.owners(subgroups=total).subgroup, layout.owners(subgroups=total).subgroup)
    if rounds == (1, 1):
        assert to_wg_map(layout) == (groups, data)


@given(pairs, pairs, pairs, pairs)
def test_both_maps(groups, lanes, data, rounds):
    sg_data = sized(lanes, data, rounds)
    shape = sized(groups, sg_data, (1, 1))
    layout = from_maps(groups, sg_data, lanes, data, shape)
    assert to_maps(layout) == ((groups, sg_data), (lanes, data))
    found = layout.owners()
    assert np.array_equal(found.subgroup[..., 0], dealt(shape, groups, sg_data))
    assert np.array_equal(found.thread[..., 0], np.tile(dealt(sg_data, lanes, data), groups))


ONE, NONE = (1, 1), (0, 0)


@pytest.mark.parametrize(
    "convert, layout, reason",
    [
        (to_sg_map, NestedLayout(*[(1,) * 3] * 5, *[(0,) * 3] * 2), "has one or two dimensions, but the layout has 3"),
        (to_sg_map, NestedLayout((2, 1), ONE, ONE, (1, 16), ONE, (1, 0), (0, 1)), "splits the vector over subgroups"),
        (
            to_sg_map,
            NestedLayout(ONE, ONE, ONE, (2, 8), ONE, NONE, (1, 2)),
            "numbers work items row by row without gaps, with a stride of 8 in dimension 0",
        ),
        (
            to_sg_map,
            NestedLayout(ONE, ONE, ONE, (2, 8), ONE, NONE, (0, 1)),
            "dimension 0 has 2 tiles that are not distributed over threads",
        ),
        (
            to_wg_map,
            NestedLayout((2, 1), ONE, ONE, (1, 16), ONE, (1, 0), (0, 1)),
            "to_maps gives a wg_map and a sg_map",
        ),
        (
            to_wg_map,
            NestedLayout((2, 1), ONE, ONE, ONE, ONE, (2, 0), NONE),
            "a wg_map numbers subgroups row by row without gaps",
        ),
        (
            lambda x: to_wg_map(x, subgroups=2),
            NestedLayout((2, 4), ONE, ONE, ONE, ONE, (4, 1), NONE),
            "2 subgroups are not whole rows of the grid [2, 4]",
        ),
        (to_maps, NestedLayout((2, 2), ONE, ONE, ONE, ONE, (1, 2), NONE), "a wg_map numbers subgroups row by row"),
    ],
)
def test_layouts_that_maps_cannot_say(convert, layout, reason):
    with pytest.raises(LayoutError) as e:
        convert(layout)
    assert reason in str(e.value)


def test_maps_that_do_not_divide():
    with pytest.raises(LayoutError, match="8 in dimension 0 is not divisible by wi_layout x wi_data = 16 x 1"):
        from_sg_map([16, 1], [1, 1], [8, 16])
    with pytest.raises(LayoutError, match=r"wi_layout = \[2, 8\] does not fit a shape of 1 dimensions"):
        from_sg_map([2, 8], [1, 2], [16])
    with pytest.raises(LayoutError, match=r"wi_data must be positive, but got \[0, 1\]"):
        from_sg_map([2, 8], [0, 1], [8, 16])
    with pytest.raises(LayoutError, match="24 in dimension 1 is not divisible by sg_layout x sg_data = 2 x 16"):
        from_wg_map([1, 2], [8, 16], [8, 24])
    with pytest.raises(LayoutError, match="0 in dimension 0 is not divisible by wi_layout x wi_data = 1 x 1"):
        from_sg_map([1, 16], [1, 1], [0, 16])


def test_errors_name_the_parameter_of_the_map():
    with pytest.raises(LayoutError, match=r"sg_data must be positive, but got \[8, 0\]"):
        from_wg_map([1, 2], [8, 0], [8, 16])
    with pytest.raises(LayoutError, match=r"sg_data = \[8, 16\] does not fit a shape of 1 dimensions"):
        from_maps([1, 2], [8, 16], [1, 16], [1, 1], [32])
