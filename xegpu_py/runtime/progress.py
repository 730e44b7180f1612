"""A bar that shows how far a long run is, at a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm

PATIENCE = 1.0
"""Seconds for which a run is not yet a long one."""


class Progress:
    """A progress bar of a launch's workgroups, on standard error if that is a terminal.

        with Progress("gemm", 64) as progress:
            progress(12)

    The bar is gone when the run is over. What is piped elsewhere gets nothing.
    """

    def __init__(self, title: str, total: int, wanted: bool = True) -> None:
        """Begin; `wanted` is whether to show anything at all."""
        self._title, self._total = title, total
        self._shown = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._start = time.monotonic()
        self._bar: tqdm[None] | None = None

    def __call__(self, done: int) -> None:
        """Say how many have ended."""
        if not self._shown or (self._bar is None and time.monotonic() - self._start < PATIENCE):
            return
        if self._bar is None:
            # Short runs, and such in pipes, do without the library.
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
