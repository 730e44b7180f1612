"""Warnings at the line of the user that calls this package."""

from __future__ import annotations

import functools
import itertools
import sys
import traceback
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])


def warn_caller(text: str | None, *libraries: str) -> None:
    """Warn at the line that calls this package, if there is a text.

    Args:
        libraries: the folders of other packages between that line and this one.
    """
    if not text:
        return
    # Cached properties call by functools.
    inner = (_PACKAGE, functools.__file__, *libraries)
    frames = (frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe()))
    warnings.warn(text, stacklevel=1 + sum(1 for _ in itertools.takewhile(lambda f: f.startswith(inner), frames)))
