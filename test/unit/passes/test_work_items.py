"""Kernels of work items in workgroups of any shape compute what numpy computes for each work item, without races."""

from __future__ import annotations

from random import Random

import pytest
from effort import examples
from generators.program import check
from generators.work_items import program


@pytest.mark.parametrize("seed", range(examples(60)))
def test_random_kernels(seed: int) -> None:
    made = program(Random(seed))
    assert check(made) == "ran"
    made.launched(check="races")
