"""The splits into rows and columns by which reductions of more dimensions are done."""

import pytest

from xegpu_py.upstream.rank_reduction import reduced_runs


@pytest.mark.parametrize(
    "shape, dims, split, runs",
    [
        ((2, 3, 4), (0,), None, [(1, 0)]),
        ((2, 3, 4), (1,), None, [(2, 1)]),
        ((2, 3, 4), (2,), None, [(2, 2)]),
        ((2, 3, 4), (1, 2), None, [(1, 1)]),
        ((2, 3, 4), (0, 1, 2), None, [(0, 0)]),
        # The last run first. The dimensions before a run that are reduced later are still there.
        ((2, 3, 4), (0, 2), None, [(2, 1), (1, 0)]),
        ((2, 3, 4, 5), (0, 2), None, [(3, 1), (1, 0)]),
        ((2, 3, 4, 5), (1, 3), None, [(3, 2), (2, 1)]),
        # Dimensions of one element do not end a run.
        ((2, 1, 4), (0, 2), None, [(0, 0)]),
        ((2, 3, 1), (1,), None, [(1, 1)]),
        ((1, 1), (0, 1), None, [(0, 0)]),
        ((2, 1, 4, 5), (0, 1, 2), None, [(3, 0)]),
        # Rows and columns of the vector's own split.
        ((2, 3, 4), (0, 1, 2), 2, [(2, 0), (2, 0)]),
        ((2, 3, 4), (0, 1, 2), 3, [(0, 0)]),
        ((2, 3, 4), (1, 2), 2, [(2, 1), (2, 1)]),
        ((2, 3, 4), (1, 2), 1, [(1, 1)]),
        ((2, 3, 4), (0, 1), 1, [(2, 0)]),
        ((2, 3, 4, 5), (0, 2), 1, [(3, 1), (1, 0)]),
    ],
)
def test_runs_of_reduced_dimensions(shape, dims, split, runs):
    assert reduced_runs(shape, dims, split) == runs
