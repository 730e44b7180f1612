"""Compilation of an autotuner's configurations in processes of their own, on all processors."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from multiprocessing import connection
from typing import Any

from xegpu_py.cache import folder_of
from xegpu_py.engines.jit.host import THREADS
from xegpu_py.engines.jit.native_code import processors

AHEAD: ContextVar[bool] = ContextVar("xegpu_py.triton.ahead", default=False)
"""Whether launches only compile their kernels."""


LIMIT = 60.0
"""Seconds after which a process is ended: a lock that a thread of another library held in its parent is never free."""


def compile_ahead(launches: Sequence[Callable[[], Any]], limit: float = LIMIT) -> None:
    """Compile the kernels of launches in forked processes, as many at a time as there are processors.

    The kernels are in the caches on disk afterwards. Nothing is done without a cache, for a single launch or processor,
    or if the program has other threads, whose locks a forked process would hold for ever. Errors are ignored: the
    launches themselves raise them.

    Args:
        limit: the seconds after which a process is ended.
    """
    if min(processors(), len(launches)) < 2 or folder_of(None) is None or other_threads():
        return
    context = multiprocessing.get_context("fork")
    running: dict[Any, float] = {}
    try:
        for launch in launches:
            _wait(running, processors() - 1)
            process = context.Process(target=_compile, args=(launch,), daemon=True)
            process.start()
            running[process] = time.monotonic() + limit
        _wait(running, 0)
    finally:
        for process in running:
            process.kill()


def _wait(running: dict[Any, float], most: int) -> None:
    """Wait until at most some processes run, and end those whose time is over."""
    while len(running) > most:
        left = max(min(running.values()) - time.monotonic(), 0)
        connection.wait([process.sentinel for process in running], left)
        for process, end in list(running.items()):
            if time.monotonic() >= end:
                process.kill()
                process.join()
            if not process.is_alive():
                del running[process]


def other_threads() -> bool:
    """Whether there are threads of Python besides this one and those that help launches."""
    return any(t is not threading.current_thread() and not t.name.startswith(THREADS) for t in threading.enumerate())


def _compile(launch: Callable[[], Any]) -> None:
    """Run a launch that only compiles its kernels, silently, and end the process."""
    with open(os.devnull, "wb") as nothing:
        for stream in (1, 2):
            os.dup2(nothing.fileno(), stream)
    AHEAD.set(True)
    with suppress(BaseException):
        launch()
    # The handlers of the parent's exit are not run.
    os._exit(0)
