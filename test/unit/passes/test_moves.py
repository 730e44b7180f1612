"""Changes of layout within a subgroup: every lane gets its elements with the fewest possible shuffles."""

import numpy as np
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from xegpu_py.layout import NestedLayout
from xegpu_py.passes.rewriting.lane_layout_conversion import MOST_ROUNDS, plan_layout_moves, plan_moves


def check(how, have, want):
    """Play the rounds; the elements that lanes end up with."""
    lanes = have.shape[1]
    lane = np.arange(lanes)
    for s in range(len(have)):
        offered = [have[s, lane, row] for row in how.sends]
        brought = [x[reads] for x, reads in zip(offered, how.reads)]
        held = np.concatenate([have[s], np.array(brought, int).reshape(-1, lanes).T], axis=1)
        np.testing.assert_array_equal(held[lane[:, None], how.takes], want[s])


def least(have, want):
    """The most elements that one lane must send or receive; each element is in one lane only."""
    where = {int(e): lane for lane, row in enumerate(have[0]) for e in row}
    given, got = np.zeros(len(have[0]), int), np.zeros(len(have[0]), int)
    for lane, row in enumerate(want[0]):
        for e in row:
            if where[int(e)] != lane:
                given[where[int(e)]] += 1
                got[lane] += 1
    return max(given.max(), got.max())


@settings(max_examples=examples(60))
@given(st.integers(0, 1 << 30), st.sampled_from([8, 16, 32]), st.integers(1, 9))
def test_any_permutation_takes_no_more_rounds_than_it_must(seed, lanes, registers):
    rng = np.random.default_rng(seed)
    have, want = (rng.permutation(lanes * registers).reshape(1, lanes, registers) for _ in range(2))
    how = plan_moves(have, want)
    check(how, have, want)
    assert how.rounds == least(have, want)


@settings(max_examples=examples(60))
@given(st.integers(0, 1 << 30), st.integers(1, 6))
def test_copies_are_asked_for_evenly(seed, registers):
    """Lanes of both halves hold the same, and want any of it."""
    rng = np.random.default_rng(seed)
    have = np.tile(rng.permutation(8 * registers).reshape(1, 8, registers), (1, 2, 1))
    want = rng.integers(0, 8 * registers, (1, 16, registers))
    how = plan_moves(have, want)
    check(how, have, want)


def test_what_another_subgroup_has_cannot_be_moved():
    have = np.arange(32).reshape(2, 16, 1)
    assert plan_moves(have, have[:, ::-1]).rounds == 1
    assert plan_moves(have, have[::-1]) is None
    # The same within each subgroup, but by different moves.
    want = have.copy()
    want[1] = want[1, ::-1]
    assert plan_moves(have, want) is None


def nested(batch, thread, element, strides):
    none = (0,) * len(batch)
    one = (1,) * len(batch)
    return NestedLayout(one, batch, one, thread, element, none, strides)


def test_figures():
    rows = nested((1, 16), (16, 1), (1, 1), (1, 0))
    columns = nested((16, 1), (1, 16), (1, 1), (0, 1))
    how = plan_layout_moves(rows, columns, 16)
    # A transposition: each lane keeps one of its 16 elements.
    assert how.rounds == 15
    assert plan_layout_moves(rows, nested((1, 1), (16, 1), (1, 16), (1, 0)), 16).rounds == 0
    pairs = nested((1,), (16,), (2,), (1,))
    apart = nested((2,), (16,), (1,), (1,))
    # Lanes 0 and 15 keep one element and the others none or one; nobody receives more than two.
    assert plan_layout_moves(apart, pairs, 16).rounds == 2
    many = MOST_ROUNDS * 3 // 2
    blocked, cyclic = nested((1,), (16,), (many,), (1,)), nested((many,), (16,), (1,), (1,))
    assert plan_layout_moves(cyclic, blocked, 16) is None
