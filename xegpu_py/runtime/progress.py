"""The progress bar of long runs at a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm

PATIENCE = 1.0
"""The bar appears after this many seconds."""


class Progress:
    """A progress bar of a launch's workgroups, on standard error if that is a terminal.

        with Progress("gemm", 64) as progress:
            progress(12)

    The bar disappears at the end of the run. Nothing is written to pipes and files.
    """

    def __init__(self, title: str, total: int, wanted: bool = True) -> None:
        """Start the measurement of time. The bar is shown only if `wanted` is true."""
        self._title, self._total = title, total
        self._shown = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._start = time.monotonic()
        self._bar: tqdm[None] | None = None

    def __call__(self, done: int) -> None:
        """Set the number of workgroups that have ended."""
        if not self._shown or (self._bar is None and time.monotonic() - self._start < PATIENCE):
            return
        if self._bar is None:
            # Short runs, and runs without a terminal, do not import the library.
            from tqdm import tqdm

            self._bar = tqdm(total=self._total, desc=self._title, unit=" workgroups", leave=False, dynamic_ncols=True)
            self._bar.start_t -= time.monotonic() - self._start
            self._bar.n = done
            self._bar.refresh()
        self._bar.update(max(done - self._bar.n, 0))

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
