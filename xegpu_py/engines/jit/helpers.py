"""Threads of the operating system that help the caller's thread with a launch, and then wait for the next one."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

_idle: list[Helper] = []
"""Helpers that no launch uses."""

_CAN_PLACE = hasattr(os, "sched_setaffinity")
"""Whether threads can be told which processors to use, as on Linux."""

if hasattr(os, "register_at_fork"):
    # A forked process has only the thread that forked.
    os.register_at_fork(after_in_child=_idle.clear)


class Helper:
    """One thread."""

    def __init__(self) -> None:
        """Start the thread."""
        self._pool = ThreadPoolExecutor(1, "xegpu-py")
        self._id = self._pool.submit(threading.get_native_id).result()
        self._processors: set[int] = set()

    def place(self, processor: int, processors: set[int]) -> None:
        """Let the next task begin on one of the processors. It may move to the others.

        Linux often wakes a thread on the processor that wakes it, even if others are idle, and separates the two only
        after some milliseconds: as long as a GEMM of 1024^3 takes.
        """
        # A processor may have gone since the caller asked which there are.
        with suppress(OSError):
            os.sched_setaffinity(self._id, {processor})
        self._processors = processors

    def submit(self, task: Callable[[], None]) -> Future[None]:
        """Run a task."""
        return self._pool.submit(self._run, task)

    def _run(self, task: Callable[[], None]) -> None:
        # The thread holds the interpreter lock now, and does not sleep again before it runs native code.
        if self._processors:
            with suppress(OSError):
                os.sched_setaffinity(0, self._processors)
        task()

    def rest(self) -> None:
        """Wait for another launch. All tasks must have ended."""
        _idle.append(self)


def take(count: int) -> list[Helper]:
    """Some helpers, each placed on a processor that the caller's thread does not use, as far as there are such."""
    found = []
    for _ in range(count):
        # Another thread may launch at the same time.
        try:
            found.append(_idle.pop())
        except IndexError:
            found.append(Helper())
    if _CAN_PLACE:
        processors = os.sched_getaffinity(0)
        others = sorted(processors - {_processor()})
        for at, helper in enumerate(found if others else ()):
            helper.place(others[at % len(others)], processors)
    return found


def _processor() -> int:
    """The number of the processor that runs this thread; -1 if the C library does not tell."""
    current = getattr(ctypes.PyDLL(None), "sched_getcpu", None)
    return int(current()) if current else -1
