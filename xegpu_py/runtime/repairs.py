"""The warning of a kernel of XeGPU whose 2D blocks are moved right here, though GPUs do not take upstream's messages.

The rules are those of `target.message_rules`. The check `surfaces` makes each of them an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xegpu_py.ir.diagnostics import Diagnostic
from xegpu_py.runtime.executable import Executable
from xegpu_py.runtime.launch import Statistics
from xegpu_py.target import Target

_REPLACED = "in place of 2D block messages"
"""Part of the remark on an access that other messages make."""


def repair_warning(place: str, target: str, problem: str, repair: str = "Other messages move the block here") -> str:
    """The warning of a 2D block that is moved right here: its place, and why no 2D block message of a GPU moves it."""
    return (
        f"{place}: upstream's lowering makes a 2D block message of this, which {target} does not take: the tensor "
        f"{problem}. {repair}; check='surfaces' makes it an error"
    )


class Repairs:
    """Tells once of a kernel, if it is written in XeGPU, which 2D block is the first to be repaired.

    Each method returns the warning, or None if there is none or another one was returned before.
    """

    def __init__(self, executable: Executable, target: Target) -> None:
        self._executable, self._target = executable, target
        self._is_open = executable.repaired is not None and target.block2d is not None

    def _once(self, warning: str) -> str | None:
        is_new = self._is_open and bool(warning)
        self._is_open = self._is_open and not is_new
        return warning if is_new else None

    def of_lowering(self) -> str | None:
        """The warning of a block that breaks a rule whatever the arguments are."""
        return self._once(self._executable.repaired or "")

    def of_arrays(self, arguments: Sequence[Any], remarks: Sequence[Diagnostic]) -> str | None:
        """The warning of a block of arrays for which another version was lowered, with these remarks."""
        limits = self._target.block2d
        moved = next((str(r.position) for r in remarks if _REPLACED in r.message), None)
        if not self._is_open or limits is None or moved is None:
            return None
        misfits = self._executable.unaligned(arguments, limits.executed)
        arrays = [a for i in misfits if isinstance(a := arguments[i], np.ndarray)]
        problems = filter(None, map(limits.executed.array_problem, arrays))
        problem = next(problems, "breaks a rule with the numbers of this call")
        return self._once(repair_warning(moved, self._target.name, problem) if misfits else "")

    def of_launch(self, statistics: Statistics) -> str | None:
        """The warning of a block whose column a launch computed."""
        limits = self._target.block2d
        if statistics.misplaced is None or limits is None:
            return None
        problem = f"is accessed from a column that is not a multiple of {limits.executed.column_granule} bytes"
        where = str(statistics.misplaced.where)
        return self._once(repair_warning(where, self._target.name, problem, "Engines move the block right"))
