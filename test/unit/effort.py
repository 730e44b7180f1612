"""How many random cases tests draw: a quarter of the declared number in `make test`, all in `make sweep`."""

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

SHARE = 1.0 if os.environ.get("SWEEP") else 0.25


def examples(number: int, share: float = SHARE) -> int:
    """The cases to draw of a declared number: examples of Hypothesis, seeds, or random instructions.

    Args:
        share: the share that `make test` draws; a smaller one where each case is a program to compile.
    """
    return max(1, round(number * (share if SHARE < 1 else 1)))


def some(cases: Iterable[T]) -> list[T]:
    """The cases to run of declared ones: all in `make sweep`, otherwise about a quarter, those at equal distances."""
    listed = list(cases)
    return listed[:: round(1 / SHARE)]
