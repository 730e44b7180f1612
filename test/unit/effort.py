"""How many random cases tests draw: a quarter of the declared number in `make test`, all in `make sweep`."""

import os

SHARE = 1.0 if os.environ.get("SWEEP") else 0.25


def examples(number: int) -> int:
    """The cases to draw of a declared number: examples of Hypothesis, seeds, or random instructions."""
    return max(1, round(number * SHARE))
