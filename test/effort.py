"""How many random cases tests draw: a twentieth of the declared number in `make test`, all in `make sweep`."""

import os
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

SHARE = 1.0 if os.environ.get("SWEEP") else 0.05


def examples(number: int, share: float = SHARE) -> int:
    """The cases to draw of a declared number: examples of Hypothesis, seeds, or random instructions.

    Args:
        share: the share that `make test` draws; a smaller one where each case is a program to compile.
    """
    # The first example of Hypothesis is the simplest one.
    return max(2 if number >= 20 else 1, round(number * (share if SHARE < 1 else 1)))


def some(cases: Iterable[T], share: float = 0.1, first: int = 0) -> list[T]:
    """The cases to run of declared ones: all in `make sweep`, otherwise about a share, those at equal distances.

    Args:
        first: the case with which they begin; another one for each of several lists gives each list other cases.
    """
    distance = round(1 / share) if SHARE < 1 else 1
    return list(cases)[first % distance :: distance]


def with_each_value(cases: Sequence[Mapping[str, Any]], seed: str) -> list[int]:
    """The indices of so many cases that each value of each parameter occurs, which are combined as chance has it."""
    kept, seen = [], set[tuple[str, object]]()
    for i in random.Random(seed).sample(range(len(cases)), len(cases)):
        # What cannot be hashed is one object in all cases.
        values = {(name, v if isinstance(v, str | int) else id(v)) for name, v in cases[i].items()}
        if not values <= seen:
            kept.append(i)
            seen |= values
    return sorted(kept)
