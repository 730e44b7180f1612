"""Random layouts."""

import math

from hypothesis import strategies as st

from xegpu_py.layout import NestedLayout


def strides_for(draw, tile, gaps):
    """Strides for a grid: its dimensions in any order, with gaps between them if `gaps`."""
    strides, step = [0] * len(tile), 1
    for i in draw(st.permutations(range(len(tile)))):
        if gaps:
            step *= draw(st.integers(1, 2))
        if tile[i] > 1:
            strides[i] = step
            step *= tile[i]
        elif draw(st.booleans()):
            strides[i] = draw(st.integers(0, 5))
    return tuple(strides)


@st.composite
def layouts(draw, rank=None, gaps=True, whole=False, most=1024):
    """Layouts of rank 1 to 4. With `whole`, some dimensions of more than one tile are not distributed."""
    rank = rank or draw(st.integers(1, 4))
    budget = most

    def tile():
        nonlocal budget
        sizes = []
        for _ in range(rank):
            n = draw(st.sampled_from([n for n in (1, 1, 2, 3, 4) if n <= budget]))
            budget //= n
            sizes.append(n)
        return tuple(sizes)

    subgroup, thread = tile(), tile()
    strides = [list(strides_for(draw, t, gaps)) for t in (subgroup, thread)]
    if whole:
        for one in strides:
            one[draw(st.integers(0, rank - 1))] = 0
    return NestedLayout(subgroup, tile(), tile(), thread, tile(), *map(tuple, strides))


@st.composite
def counts(draw, layout):
    """Numbers of subgroups and lanes that divide a layout evenly: as many as it needs, fewer or more."""
    found = []
    for ids in (layout.subgroups, layout.threads):
        fewer = [n for n in range(1, ids.period + 1) if ids.period % n == 0]
        found.append(draw(st.sampled_from([*fewer, ids.period, 2 * ids.period])))
    return tuple(found)


def size(layout):
    """The number of elements."""
    return math.prod(layout.shape)
