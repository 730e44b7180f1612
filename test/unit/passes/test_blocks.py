"""Blocks anywhere in and around their tensors: out-of-bounds elements read as zero and are not written."""

from hypothesis import given, settings
from hypothesis import strategies as st

from .blocks import accesses

WITH_MESSAGES = ("pvc", "pvcxt", "any")
ENGINES = st.sampled_from(("interpreter", "interpreter", "both"))
SEEDS = st.integers(0, 2**31)


@settings(max_examples=60, deadline=None)
@given(accesses(ranks=(3, 4), transforms=("", "transpose")), st.sampled_from(WITH_MESSAGES), ENGINES, SEEDS)
def test_outer_dimensions_are_checked(access, target, engine, seed):
    access.check(target, seed, engine)


@settings(max_examples=60, deadline=None)
@given(
    accesses(ranks=(2,), transforms=("transpose", "units32", "units64"), ops=("load",)),
    st.sampled_from(WITH_MESSAGES),
    ENGINES,
    SEEDS,
)
def test_transposed_loads_begin_at_any_column(access, target, engine, seed):
    access.check(target, seed, engine)
