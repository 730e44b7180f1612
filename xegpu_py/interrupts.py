"""Ctrl-C in the command-line programs: they end with status 130, and print nothing.

Python turns the signal into a KeyboardInterrupt wherever it is. In imports this prints a traceback, and in the
middle of C++ code it ends the process by SIGSEGV. The package imports this module first, so that an interrupt ends a
program at once until its own work begins.
"""

import os
import re
import signal
import sys
from contextlib import suppress

STATUS = 130
"""The exit status of an interrupted program, as shells have it."""


def _end(*_: object) -> None:
    os._exit(STATUS)


def end_at_interrupt() -> None:
    """End the process at an interrupt, unless interrupts are ignored or somebody else handles them."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, _end)


def raise_at_interrupt() -> None:
    """Raise KeyboardInterrupt at an interrupt from now on, as Python does: work that began has files to remove."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def is_tool() -> bool:
    """Whether this process is one of the command-line programs."""
    module = next((word for flag, word in zip(sys.orig_argv, sys.orig_argv[1:]) if flag == "-m"), "")
    return bool(re.fullmatch(r"xegpu-[a-z-]+", os.path.basename(sys.argv[0] if sys.argv else ""))) or bool(
        re.fullmatch(r"xegpu_py(\.tools\.\w+)?", module)
    )


if is_tool():
    end_at_interrupt()
