"""Tiered compilation: code that is compiled quickly runs first, and is optimized once it has run for long."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from xegpu_py.engines.jit.llvm import LLVMError, Loaded

QUICK_SECONDS = 0.02
"""Until launches have kept the calling thread busy for so long, they run unoptimized code, if no disk cache keeps the
code; the first launch until it takes as long as the optimization: most programs are launched once. It is less than the
25 ms for which Triton's `do_bench` warms up. A product of 512x512 f16 matrices is compiled 200 ms of processor time
faster, and takes 10 ms instead of 4. At 0 all code is optimized.
"""


class TieredCode:
    """The code of a program.

    Attributes:
        loaded: what launches run.
    """

    def __init__(
        self, loaded: Loaded, compile_optimized: Callable[[], Loaded] | None = None, seconds: float = 0
    ) -> None:
        """Begin with code that is optimized already, or with code that was compiled quickly.

        Args:
            compile_optimized: compiles the optimized code.
            seconds: how long that takes.
        """
        self.loaded = loaded
        self._compile_optimized, self._optimization_seconds = compile_optimized, seconds
        self._busy_seconds, self._is_launched = 0.0, False

    @property
    def is_quick(self) -> bool:
        """Whether the code was compiled quickly, and may be optimized."""
        return self._compile_optimized is not None

    def count(self, seconds: float, ends_launch: bool = False) -> None:
        """Count the processor time for which a launch has kept the calling thread busy."""
        self._busy_seconds += seconds
        self._is_launched |= ends_launch

    def optimize_if_hot(self, seconds_left: float = 0) -> bool:
        """Optimize the code if it runs for long; return whether `loaded` is new.

        Args:
            seconds_left: how long the calling thread will be busy with the rest of a launch.
        """
        limit = QUICK_SECONDS if self._is_launched else max(QUICK_SECONDS, self._optimization_seconds)
        return self._busy_seconds + seconds_left > limit and self.optimize()

    def optimize(self) -> bool:
        """Optimize the code; return whether `loaded` is new. Code that LLVM fails to optimize is kept."""
        compile_optimized, self._compile_optimized = self._compile_optimized, None
        if compile_optimized is not None:
            with suppress(LLVMError):
                self.loaded = compile_optimized()
                return True
        return False
