"""Random kernels of workgroups compute the same as numpy, whatever their layouts say."""

import numpy as np
import pytest
from upstream.programs import product, reduction

import xegpu_py
from xegpu_py.upstream import import_upstream


def check(make, seed, **options):
    text, arrays, expected = make(np.random.default_rng(seed))
    compiled = xegpu_py.compile(import_upstream(text, level="workgroup"), **options)
    compiled(*arrays)
    assert np.array_equal(arrays[-1], expected), f"{make.__name__} {seed} gives another result:\n{text}"


@pytest.mark.parametrize("make", [product, reduction])
@pytest.mark.parametrize("part", range(5))
def test_what_is_imported_means_what_upstream_means(make, part):
    for seed in range(part * 22, part * 22 + 22):
        check(make, seed, engine="reference")


@pytest.mark.parametrize("make", [product, reduction])
def test_what_is_imported_lowers(make):
    for seed in range(1000, 1004):
        check(make, seed, cache="off")
