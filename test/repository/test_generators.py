"""The generators of random programs reach all that they should, and the planted mistakes are of today's code."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from generators import coverage
from generators.mistakes import MISTAKES, ROOT, Mistake


def test_every_cell_can_be_reached() -> None:
    """Some generator writes each op, attribute value and element type of the dialects."""
    found = Counter[str]()
    for seed in range(1, 4):
        found += coverage.survey(random.Random(seed), rounds=120, length=18)
        if not coverage.missing(found):
            break
    assert coverage.missing(found) == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.what)
def test_planted_mistakes_are_of_the_code_as_it_is(mistake: Mistake) -> None:
    """Each rule that `generators.mistakes` breaks occurs once in the code."""
    assert (ROOT / mistake.file).read_text().count(mistake.old) == 1
