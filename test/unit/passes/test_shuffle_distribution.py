"""Shuffles of rows that equal parts of a vector do alone, against the rows of all parts."""

import itertools

import numpy as np
import pytest

import xegpu_py
from xegpu_py.passes.analysis.shuffle_distribution import MOST_RUNS, _local_rows, runs_of


def rows_of_parts(local, first, second, parts):
    """The rows of the whole result if each part shuffles its own rows."""
    a, b = first // parts, second // parts
    return [n * a + row if row < a else first + n * b + row - a for n in range(parts) for row in local]


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_each_shuffle_of_the_parts_is_found(parts):
    for a, b, size in itertools.product(range(1, 4), range(4), range(1, 4)):
        for local in itertools.product(range(a + b), repeat=size):
            rows = tuple(rows_of_parts(local, a * parts, b * parts, parts))
            assert _local_rows(rows, a * parts, b * parts, parts) == local


@pytest.mark.parametrize("parts", [2, 3])
def test_no_other_shuffle_is_local(parts):
    rng = np.random.default_rng(parts)
    found = 0
    for _ in range(3000):
        first, second, size = (int(n) for n in rng.integers((1, 0, 1), 7))
        rows = tuple(rng.integers(0, first + second, size).tolist())
        local = _local_rows(rows, first, second, parts)
        if first % parts or second % parts or size % parts:
            assert local is None
        elif local is not None:
            assert tuple(rows_of_parts(local, first, second, parts)) == rows
            found += 1
    assert found


def runs(rows):
    """The longest runs of equally distant rows, one after the other."""
    found = []
    while rows:
        step = rows[1] - rows[0] if len(rows) > 1 else 0
        count = next((n for n in range(2, len(rows)) if rows[n] - rows[n - 1] != step), len(rows)) if step else 1
        found.append((count, step if count > 1 else 1, rows[0]))
        rows = rows[count:]
    return found


def test_runs_are_the_longest_and_the_same_in_each_part():
    several = 0
    for parts, size in ((1, 1), (1, 5), (2, 2), (2, 3), (3, 2)):
        for rows in itertools.product(range(4), repeat=parts * size):
            expected = [runs(rows[n * size : (n + 1) * size]) for n in range(parts)]
            shapes = [[run[:2] for run in part] for part in expected]
            found = runs_of(rows, parts)
            if shapes != shapes[:1] * parts or len(shapes[0]) > MOST_RUNS:
                assert found is None
                continue
            assert found is not None
            assert [(r.count, r.step) for r in found] == shapes[0]
            assert [r.first for r in found] == [sum(n for n, _ in shapes[0][:k]) for k in range(len(found))]
            assert [r.starts for r in found] == [tuple(run[2] for run in column) for column in zip(*expected)]
            several += parts > 1 and len(found) > 1
    assert several
    assert runs_of((0, 1, 2), 2) is runs_of((-1, 0), 1) is runs_of((0,) * (MOST_RUNS + 1), 1) is None
    assert len(runs_of((0,) * MOST_RUNS, 1)) == MOST_RUNS


N = 512
LINES = {
    "rotated": [*range(64, N), *range(64)],
    "reversed": [*range(N)][::-1],
    "every fourth": [*range(0, N, 4), *range(3, N, 4), *range(1, N, 4), *range(2, N, 4)],
}


@pytest.mark.parametrize("name", LINES)
def test_long_lines_are_shuffled_among_subgroups(name):
    rows, line = LINES[name], f"vector<{N}xi64>"
    tile = f"!xetile.tile<{N}xi64, #xetile.tile_attr<wg_map = <sg_layout = [8], sg_data = [64]>, scattered = true>>"
    layout = "map = #xetile.wg_map<sg_layout = [8], sg_data = [64]>"
    text = f"""gpu.module @m {{ gpu.func @k(%X: memref<{N}xi64>, %Y: memref<{N}xi64>) kernel {{
    %i = vector.step {{{layout}}} : vector<{N}xindex>
    %x = xetile.init_tile %X, %i : memref<{N}xi64>, vector<{N}xindex> -> {tile}
    %y = xetile.init_tile %Y, %i : memref<{N}xi64>, vector<{N}xindex> -> {tile}
    %v = xetile.load %x : {tile} -> {line}
    %s = vector.shuffle %v, %v {rows} {{{layout}}} : {line}, {line}
    xetile.store %s, %y : {line}, {tile}
    gpu.return }} }}"""
    kernel, x, y = xegpu_py.compile(text, check=["races"]), np.arange(N), np.zeros(N, np.int64)
    kernel(x, y)
    np.testing.assert_array_equal(y, x[rows])
    # The line once, instead of once for each subgroup.
    assert kernel.program.slm_bytes == x.nbytes
