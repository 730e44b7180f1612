"""Nested layouts, against the specification's formulas written out in loops."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xegpu_py.layout import LayoutError, NestedLayout

from .strategies import counts, layouts, size

SPEC = NestedLayout((2, 1), (2, 4), (1, 1), (16, 4), (1, 4), (1, 0), (1, 16))
"""The specification's example, of vector<64x64xf16>."""


def by_formula(layout, index):
    """The parts of an element's index (by level, then dimension), by taking remainders one by one."""
    parts = [[], [], [], [], []]
    tiles = (layout.subgroup_tile, layout.batch_tile, layout.outer_tile, layout.thread_tile, layout.element_tile)
    for i, x in enumerate(index):
        for level in reversed(range(5)):
            parts[level].append(x % tiles[level][i])
            x //= tiles[level][i]
    return parts


def owners_by_formula(layout, index, subgroups, threads):
    """(subgroup, lane) pairs that hold an element, found by computing the virtual ids of every logical id."""

    def holders(tile, strides, wanted, present):
        period = max([s * n for n, s in zip(tile, strides) if n > 1 and s], default=1)
        found = []
        for logical in range(max(period, present)):
            virtual = [(logical // s) % n if s else w for n, s, w in zip(tile, strides, wanted)]
            if virtual == wanted:
                found.append(logical % present)
        return found

    s, _, _, t, _ = by_formula(layout, index)
    return sorted(
        itertools.product(
            holders(layout.subgroup_tile, layout.subgroup_strides, s, subgroups),
            holders(layout.thread_tile, layout.thread_strides, t, threads),
        )
    )


def test_example_of_the_specification_element_by_element():
    assert SPEC.shape == (64, 64)
    assert SPEC.distributed_shape == (2, 4, 1, 1, 1, 4)
    assert SPEC.fragment_shape == (2, 16)
    whole = np.arange(64 * 64, dtype=np.int16).view(np.float16).reshape(64, 64)
    parts = SPEC.distribute(whole, subgroups=4, threads=64)
    assert parts.shape == (4, 64, 2, 4, 1, 1, 1, 4)
    # The conceptual view of the specification: vector<[2x1]x[2x4]x[1x1]x[16x4]x[1x4]>.
    view = whole.reshape(2, 2, 1, 16, 1, 1, 4, 1, 4, 4).transpose(0, 5, 1, 6, 2, 7, 3, 8, 4, 9)
    assert view.shape == (2, 1, 2, 4, 1, 1, 16, 4, 1, 4)
    for subgroup, thread in itertools.product(range(4), range(64)):
        expected = view[subgroup % 2, 0, :, :, :, :, thread % 16, thread // 16]
        assert parts[subgroup, thread].tobytes() == expected.tobytes()
        assert SPEC.fragment(parts[subgroup, thread]).shape == (2, 16)
    # All rows and columns within each tile, of which there are 16 rows and 4 columns.
    for row, column in itertools.product(range(0, 64, 3), repeat=2):
        found = SPEC.owners((row, column), subgroups=4)
        s, t = row // 32, row % 16 + 16 * (column // 4 % 4)
        position = (row // 16 % 2) * 16 + column // 16 * 4 + column % 4
        assert found.subgroup.tolist() == [s, s + 2]
        assert set(found.thread.tolist()) == {t} and set(found.position.tolist()) == {position}


def test_subgroup_ids_of_the_specification():
    layout = NestedLayout((4, 2), (1, 1), (1, 1), (1, 1), (1, 1), (1, 4), (0, 0))
    grid = np.indices((4, 2))
    assert layout.subgroups.ids(grid).ravel().tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert layout.owners().subgroup.ravel().tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert layout.owners(subgroups=4).subgroup.ravel().tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert layout.part_shape(subgroups=4) == (2, 1, 1, 1, 1, 1, 1)
    rows, columns = layout.indices(1, 0, subgroups=4)
    assert list(zip(rows, columns)) == [(1, 0), (1, 1)]


def test_outers_repeat_the_grid_of_threads():
    """The specification's 2x5 threads, duplicated to 4x5."""
    layout = NestedLayout((1, 1), (1, 1), (2, 1), (2, 5), (1, 1), (0, 0), (5, 1))
    expected = [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    found = layout.owners()
    assert found.thread[..., 0].tolist() == expected
    assert found.position[..., 0].tolist() == [[0] * 5, [0] * 5, [1] * 5, [1] * 5]


@given(st.data())
def test_owners_are_those_of_the_formulas(data):
    layout = data.draw(layouts(whole=data.draw(st.booleans())))
    subgroups, threads = data.draw(counts(layout))
    index = tuple(data.draw(st.integers(0, n - 1)) for n in layout.shape)
    found = layout.owners(index, subgroups=subgroups, threads=threads)
    pairs = list(zip(found.subgroup.tolist(), found.thread.tolist()))
    assert sorted(pairs) == owners_by_formula(layout, index, subgroups, threads)
    # Each copy has a place of its own.
    assert len(set(zip(pairs, found.position.tolist()))) == len(pairs)
    for s, t, position in zip(*(x.tolist() for x in found)):
        held = layout.indices(s, t, subgroups=subgroups, threads=threads)
        assert tuple(int(x[position]) for x in held) == index


@given(layouts(gaps=False))
def test_without_gaps_each_element_is_owned_once(layout):
    found = layout.owners()
    assert found.subgroup.shape == (*layout.shape, 1)
    places = np.ravel_multi_index(
        (found.subgroup, found.thread, found.position),
        (layout.subgroups.period, layout.threads.period, math.prod(layout.distributed_shape)),
    )
    assert sorted(places.ravel().tolist()) == list(range(size(layout)))


@given(layouts())
def test_position_is_row_major_over_batches_outers_and_elements(layout):
    grid = np.stack(np.unravel_index(np.arange(size(layout)), layout.shape), axis=-1).tolist()
    found = layout.owners().position[..., 0].reshape(-1).tolist()
    for index, position in list(zip(grid, found))[:: max(1, size(layout) // 50)]:
        _, batch, outer, _, element = by_formula(layout, index)
        assert np.unravel_index(position, layout.distributed_shape) == (*batch, *outer, *element)


@given(layouts())
def test_virtual_ids_and_ids_are_inverse(layout):
    for ids in (layout.subgroups, layout.threads):
        grid = np.indices(ids.tile)
        assert all(np.array_equal(a, b) for a, b in zip(ids.virtual(ids.ids(grid)), grid))
        every = np.arange(ids.period)
        again = ids.ids(ids.virtual(every))
        assert (again <= every).all()
        if ids.period == math.prod(ids.tile):
            assert np.array_equal(again, every)


@given(st.data())
def test_collect_undoes_distribute(data):
    layout = data.draw(layouts(whole=data.draw(st.booleans())))
    subgroups, threads = data.draw(counts(layout))
    whole = np.random.default_rng(0).permutation(size(layout)).reshape(layout.shape)
    parts = layout.distribute(whole, subgroups=subgroups, threads=threads)
    assert parts.shape == (subgroups, threads, *layout.part_shape(subgroups, threads))
    assert np.array_equal(layout.collect(parts), whole)
    s, t = data.draw(st.integers(0, subgroups - 1)), data.draw(st.integers(0, threads - 1))
    held = whole[layout.indices(s, t, subgroups=subgroups, threads=threads)]
    assert np.array_equal(parts[s, t].ravel(), held)


def test_copies_that_differ_are_found():
    parts = SPEC.distribute(np.zeros((64, 64)), subgroups=4)
    parts[2, 17, 0, 1, 0, 0, 0, 3] = 1
    with pytest.raises(LayoutError, match=r"element \(1, 23\) differ: lane 17 of subgroup 2"):
        SPEC.collect(parts)
    assert np.array_equal(SPEC.collect(parts, check=False), np.zeros((64, 64)))
    # NaNs are compared by their bits.
    assert np.isnan(SPEC.collect(SPEC.distribute(np.full((64, 64), np.nan), subgroups=4))).all()


@given(st.data())
def test_permute_is_the_layout_of_the_transpose(data):
    layout = data.draw(layouts())
    permutation = data.draw(st.permutations(range(layout.rank)))
    whole = np.arange(size(layout)).reshape(layout.shape)
    turned = layout.permute(permutation)
    assert turned.shape == tuple(layout.shape[i] for i in permutation)
    there, here = turned.owners(), layout.owners()
    assert np.array_equal(there.thread, here.thread.transpose(*permutation, layout.rank))
    assert np.array_equal(there.subgroup, here.subgroup.transpose(*permutation, layout.rank))
    parts = turned.distribute(whole.transpose(permutation))
    orders = [level * layout.rank + i for level in range(3) for i in permutation]
    original = layout.distribute(whole)
    assert np.array_equal(parts, original.transpose(0, 1, *(2 + i for i in orders)))
    assert turned.permute(np.argsort(permutation).tolist()) == layout


@given(st.data())
def test_project_is_the_layout_of_a_reduction(data):
    """The owners of parts of a row own the row's result after the reduction, all with the same bits."""
    layout = data.draw(layouts())
    dims = data.draw(st.lists(st.integers(0, layout.rank - 1), unique=True))
    small = layout.project(dims)
    subgroups, threads = layout.subgroups.period, layout.threads.period
    result = np.arange(math.prod(small.shape)).reshape(small.shape)
    grid = np.indices(layout.shape)
    broadcast = result[tuple(grid[i] for i in dims)] if dims else np.full(layout.shape, result)
    parts = layout.distribute(broadcast)
    kept = small.distribute(result, subgroups=subgroups, threads=threads)
    for one, other in zip(parts.reshape(subgroups * threads, -1), kept.reshape(subgroups * threads, -1)):
        assert np.array_equal(np.unique(one), np.unique(other))


@given(layouts(whole=True))
def test_text_round_trip(layout):
    assert NestedLayout.parse(str(layout)) == layout
    assert NestedLayout.parse(str(layout).partition("<")[2][:-1]) == layout


def test_a_dimension_that_is_not_distributed_is_held_whole():
    layout = NestedLayout((1, 1), (1, 1), (1, 1), (4, 2), (1, 1), (0, 0), (1, 0))
    assert layout.threads.period == 4
    assert layout.part_shape() == (2, 1, 1, 1, 1, 1, 1)
    assert [x.tolist() for x in layout.indices(0, 3)] == [[3, 3], [0, 1]]
    assert layout.owners((3, 1)).thread.tolist() == [3] and layout.owners((3, 1)).position.tolist() == [1]


def test_rank_zero():
    layout = NestedLayout(*[()] * 7)
    assert layout.shape == layout.distributed_shape == ()
    assert layout.collect(layout.distribute(np.array(5), subgroups=2, threads=3)) == 5


GOOD = dict(zip(NestedLayout.__dataclass_fields__, ((2, 1), (2, 4), (1, 1), (16, 4), (1, 4), (1, 0), (1, 16))))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"batch_tile": (2,)}, "batch_tile has 1 dimensions, but subgroup_tile has 2"),
        ({"outer_tile": (1, 0)}, "outer_tile must be positive, but got [1, 0]"),
        ({"thread_tile": (-16, 4)}, "thread_tile must be positive, but got [-16, 4]"),
        ({"element_tile": (1, 2.5)}, "element_tile must be a list of integers, but got (1, 2.5)"),
        ({"element_tile": 4}, "element_tile must be a list of integers, but got 4"),
        ({"subgroup_strides": (-1, 0)}, "subgroup_strides must not be negative, but dimension 0 has -1"),
        (
            {"thread_strides": (1, 8)},
            "thread_strides [1, 8] mix dimensions 0 and 1: the stride 8 must be a multiple of 1 x 16 = 16",
        ),
        (
            {"thread_strides": (1, 1)},
            "mix dimensions 1 and 0: the stride 1 must be a multiple of 1 x 4 = 4",
        ),
    ],
)
def test_what_is_no_layout(change, message):
    with pytest.raises(LayoutError) as e:
        NestedLayout(**{**GOOD, **change})
    assert message in str(e.value)


@pytest.mark.parametrize(
    "text, message",
    [
        ("#iree.layout<>", "expected #iree_vector_ext.nested_layout<...>"),
        ("subgroup_tile = [1]", "a nested layout needs batch_tile, outer_tile"),
        ("subgroup_tile = [1], subgroup_tile = [1]", "expected one of batch_tile"),
        ("subgroup_tile = [1-]", "subgroup_tile must be a list of integers"),
        ("subgroup_tile = 1", "at 'subgroup_tile = 1'"),
    ],
)
def test_text_that_is_no_layout(text, message):
    with pytest.raises(LayoutError) as e:
        NestedLayout.parse(text)
    assert message in str(e.value)


def test_bad_arguments():
    with pytest.raises(IndexError, match="dimension 1 is outside 0 to 63"):
        SPEC.owners((0, 64))
    with pytest.raises(IndexError, match="dimension 0 is outside 0 to 63"):
        SPEC.owners((np.array([3, -1]), 0))
    assert SPEC.owners((np.zeros(0, int), 63)).thread.size == 0
    for permutation in ((0, 0), (1,), (1, 2), (0, 1, 2)):
        with pytest.raises(LayoutError, match="is no permutation of 2 dimensions"):
            SPEC.permute(permutation)
    with pytest.raises(IndexError, match="expected 2 indices, but got 1"):
        SPEC.owners((0,))
    with pytest.raises(IndexError, match="lane is outside 0 to 63"):
        SPEC.indices(0, 64)
    with pytest.raises(LayoutError, match="over 64 threads cannot be spread evenly over 48"):
        SPEC.indices(0, 0, threads=48)
    with pytest.raises(LayoutError, match=r"expected an array of shape \(64, 64\), but got \(64, 32\)"):
        SPEC.distribute(np.zeros((64, 32)))
    with pytest.raises(
        LayoutError, match=r"expected an array of shape \(2, 64, 2, 4, 1, 1, 1, 4\), but got \(2, 64, 32\)"
    ):
        SPEC.collect(np.zeros((2, 64, 32)))
    for few in (np.zeros(64), np.array(0)):
        with pytest.raises(LayoutError, match=r"of shape \(subgroups, threads, ...\), but got \((64,)?\)"):
            SPEC.collect(few)
    with pytest.raises(LayoutError, match="no permutation of 2 dimensions"):
        SPEC.permute([0, 0])
    with pytest.raises(LayoutError, match="not different dimensions of 2"):
        SPEC.project([2])
