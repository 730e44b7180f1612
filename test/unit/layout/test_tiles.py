"""The tiles of each subgroup under a `wg_map`, against its definition and the nested layouts that can express it."""

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pictures import TILES

from xegpu_py.layout import LayoutError, WgTiles, dealing_problem, from_wg_map
from xegpu_py.layout.maps import listed, tile_picture

GRIDS = st.tuples(st.integers(1, 4), st.integers(1, 4))
SHAPES = st.tuples(st.sampled_from([8, 24, 64]), st.sampled_from([8, 24, 64]))
DATA = st.tuples(st.sampled_from([2, 4, 8]), st.sampled_from([2, 4, 8]))


def defined(size, grid, data, place):
    """The tiles of a dimension that the subgroup at a place of the grid owns, by the rule."""
    count = size // data
    return [i for i in range(count) if i % grid == place] if count >= grid else [place % count]


@given(SHAPES, GRIDS, DATA)
def test_tiles_are_those_of_the_definition(shape, grid, data):
    assume(not any(dealing_problem(*d) for d in zip(shape, grid, data)))
    tiles = WgTiles.of(shape, grid, data)
    for subgroup in range(tiles.subgroups):
        rows, columns = (defined(*d, place) for d, place in zip(zip(shape, grid, data), divmod(subgroup, grid[1])))
        assert tiles.starts(subgroup) == [(r * data[0], c * data[1]) for r in rows for c in columns]
        assert tiles.own_count == len(rows) * len(columns)
    turns = tiles.layout.indices(np.arange(tiles.subgroups), 0, subgroups=tiles.subgroups)
    parts = zip(turns[::2], turns[1::2], grid, data)
    nested = np.stack([(turn * n + place) * size for turn, place, n, size in parts], axis=-1)
    assert nested.tolist() == [[list(start) for start in tiles.starts(i)] for i in range(tiles.subgroups)]
    owners = tiles.by_start()
    assert len(owners) == tiles.counts[0] * tiles.counts[1]
    assert ({len(ids) for ids in owners.values()} == {1}) == (tiles.owners == tiles.grid)


@given(SHAPES, GRIDS, DATA)
def test_other_divisions_keep_the_subgroups(shape, grid, data):
    assume(not any(dealing_problem(*d) for d in zip(shape, grid, data)))
    tiles = WgTiles.of(shape, grid, data)
    turned, shared = tiles.transposed(), tiles.transposed().replaced(0, 1, 1)
    for subgroup in range(tiles.subgroups):
        assert {start[::-1] for start in turned.starts(subgroup)} == set(tiles.starts(subgroup))
        assert {row for row, _ in tiles.starts(subgroup)} == {column for _, column in shared.starts(subgroup)}


@given(SHAPES, GRIDS, DATA)
def test_nested_layouts_say_the_same_where_they_can(shape, grid, data):
    try:
        nested = from_wg_map(grid, data, shape)
    except LayoutError:
        assume(False)
    tiles = WgTiles.of(shape, grid, data)
    owners = nested.owners(subgroups=tiles.subgroups).subgroup
    for start, ids in tiles.by_start().items():
        assert sorted(np.unique(owners[start]).tolist()) == ids


@pytest.mark.parametrize(
    ("shape", "grid", "data", "problem"),
    [
        ((64, 64), (4, 4), (16, 24), "64 elements are not divisible by sg_data = 24"),
        ((64, 64), (4, 3), (16, 16), "4 parts of 16 elements can neither be distributed evenly to sg_layout = 3"),
        ((64,), (4, 4), (16, 16), "a map of 2 dimensions does not fit a shape of 1"),
    ],
)
def test_what_cannot_be_dealt_out(shape, grid, data, problem):
    with pytest.raises(LayoutError, match=problem):
        WgTiles.of(shape, grid, data)


@pytest.mark.parametrize("name", TILES)
def test_each_tile_is_drawn_with_its_owners(name):
    title, shape, grid, data = TILES[name]
    root = ElementTree.fromstring(tile_picture(title, shape, grid, data))
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == title
    expected = [listed(ids) for ids in WgTiles.of(shape, grid, data).by_start().values()]
    assert texts[1:] == expected
    assert len(expected) == (shape[0] // data[0]) * (shape[1] // data[1])


def test_shared_tiles_are_named_as_in_the_picture():
    assert WgTiles.of((256, 32), (8, 4), (32, 32)).by_start()[0, 0] == [0, 1, 2, 3]
    assert [listed(n) for n in ([5], [0, 1, 2, 3], [0, 4], [0, 4, 8], [0, 4, 8, 12])] == [
        "5", "0-3", "0, 4", "0, 4, 8", "0, 4, ... 12"
    ]  # fmt: skip
