"""What ops that move elements say by index agrees with what they do to arrays."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xegpu_py.ir.element_movement import View, groups

MANY = settings(max_examples=100)
"""Each case takes less than a millisecond."""

SIZES = st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=3)


@st.composite
def views(draw):
    """A view, and the shape of its operand."""
    shape = draw(SIZES)
    axes = [d for d in draw(st.permutations(range(len(shape)))) if draw(st.booleans())]
    dims = draw(st.permutations(axes + [-1] * draw(st.integers(0, 2))))
    first = [draw(st.integers(0, 4)) for _ in dims]
    given_shape = [f + (1 if d < 0 else shape[d]) + draw(st.integers(0, 2)) for f, d in zip(first, dims)]
    return View(tuple(shape), tuple(dims), tuple(first)), tuple(given_shape)


def numbered(shape):
    return np.arange(math.prod(shape)).reshape(shape)


@MANY
@given(views())
def test_each_element_is_at_the_first_index_plus_its_own(case):
    view, shape = case
    found, source = view.of(numbered(shape)), numbered(shape)
    assert found.shape == view.shape
    for at in np.ndindex(*view.shape):
        assert found[at] == source[tuple(f + (at[d] if d >= 0 else 0) for d, f in zip(view.dims, view.first))]


@MANY
@given(views(), st.data())
def test_a_box_of_the_result_is_a_box_of_the_operand(case, data):
    view, shape = case
    box = [(a := data.draw(st.integers(0, n - 1)), data.draw(st.integers(1, n - a))) for n in view.shape]
    part = view.of(numbered(shape))[tuple(slice(a, a + n) for a, n in box)]
    source = numbered(shape)[tuple(slice(a, a + n) for a, n in view.box(box))]
    assert set(part.ravel()) == set(source.ravel())


@MANY
@given(views(), st.integers(1, 3))
def test_more_inner_dimensions_move_with_the_elements(case, inner):
    view, shape = case
    found = view.around(inner).of(numbered((*shape, inner)))
    np.testing.assert_array_equal(found // inner, np.broadcast_to(view.of(numbered(shape))[..., None], found.shape))


@MANY
@given(views(), st.sampled_from([2, 4]))
@example((View((4,), (0,), (1,)), (6,)), 2)
def test_groups_of_elements_move_if_none_is_divided(case, each):
    view, shape = case
    shape = (*shape[:-1], -(-shape[-1] // each) * each) if shape else shape
    elements, rows = view.of(numbered(shape)), view.grouped(each)
    apart = elements.reshape(-1, each) if elements.shape[-1] % each == 0 else None
    whole = apart is not None and (apart == apart[:, :1] + np.arange(each)).all() and not (apart[:, 0] % each).any()
    if rows is None:
        assert not whole or not view.dims or view.dims[-1] != len(view.shape) - 1
    else:
        assert whole
        moved = rows.of(numbered((*shape[:-1], shape[-1] // each)))
        np.testing.assert_array_equal(apart[:, 0] // each, moved.ravel())


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ((4, 6), (24,), [((0, 2), (0, 1))]),
        ((4, 6), (4, 2, 3), [((0, 1), (0, 1)), ((1, 2), (1, 3))]),
        ((4, 6), (6, 4), [((0, 2), (0, 2))]),
        ((4, 1), (1, 4), [((0, 1), (0, 2)), ((1, 2), (2, 2))]),
        ((), (1,), [((0, 0), (0, 1))]),
        ((4,), (8,), None),
    ],
)
def test_groups_of_dimensions_have_the_same_product(a, b, found):
    ranges = None if found is None else [(range(*left), range(*right)) for left, right in found]
    assert groups(a, b) == ranges
