"""Compilation of an autotuner's configurations in processes of their own, on all processors."""

from __future__ import annotations

import multiprocessing
import os
import threading
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


def compile_ahead(launches: Sequence[Callable[[], Any]]) -> None:
    """Compile the kernels of launches in forked processes, as many at a time as there are processors.

    The kernels are in the caches on disk afterwards. Nothing is done without a cache, for a single launch or processor,
    or if the program has other threads, whose locks a forked process would hold for ever. Errors are ignored: the
    launches themselves raise them.
    """
    if min(processors(), len(launches)) < 2 or folder_of(None) is None or other_threads():
        return
    context = multiprocessing.get_context("fork")
    running: list[Any] = []
    try:
        for launch in launches:
            if len(running) == processors():
                connection.wait([p.sentinel for p in running])
                running = [p for p in running if p.is_alive()]
            running.append(context.Process(target=_compile, args=(launch,), daemon=True))
            running[-1].start()
        for process in running:
            process.join()
    finally:
        for process in running:
            process.terminate()


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
