"""The child process in which a command-line program works: its parent tells which step of MLIR ended it."""

import contextlib
import mmap
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from xegpu_py import interrupts
from xegpu_py.deferred import deferred

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = deferred("ctypes")

_CRASHES = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)

_step: mmap.mmap | None = None


def step_of_child() -> mmap.mmap:
    """The memory that this process shares with its parent, in which it writes each step of MLIR; see `begin`."""
    return begin() if _step is None else _step


def begin() -> mmap.mmap:
    """Return in a fork of this process. This one waits for it, ends as it does, and reports if MLIR has ended it.

    Unexpected input of MLIR ends the process. Signals sent to this process are passed on. A child that an interrupt
    ends in the middle of C++ code crashes: that is an interrupt too.
    """
    global _step
    if sys.getfilesystemencoding() != "utf-8":
        # In a locale of another encoding. Arguments, file names and output are UTF-8, as in LLVM's tools.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    interrupted = False
    _step = step = mmap.mmap(-1, 1024)
    passed_on = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    awaited = {*passed_on, signal.SIGCHLD}
    # Without a handler, systems may drop a signal that ignores by default.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # A handler would miss a signal between its last statement and a wait for the child: signals are waited for instead.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if sys.platform == "linux":
            # Its number is PR_SET_PDEATHSIG: the child does not outlive this process.
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        return step
    while (end := os.waitpid(child, os.WNOHANG)) == (0, 0):
        number = signal.sigwait(awaited)
        if number == signal.SIGINT:
            interrupted = True
            # A terminal interrupts both processes, another process only this one.
            time.sleep(0.1)
        if number in passed_on:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)
    _, status = end
    if not os.WIFSIGNALED(status):
        os._exit(os.waitstatus_to_exitcode(status))
    ended = signal.Signals(os.WTERMSIG(status))
    if interrupted and ended != signal.SIGKILL:
        os._exit(interrupts.STATUS)
    if ended in _CRASHES:
        doing = step[:].rstrip(b"\0").decode(errors="replace") or "error: the process was ended"
        os.write(2, f"{doing} ({ended.name})\n".encode())
        os._exit(1)
    signal.signal(ended, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [ended])
    os.kill(os.getpid(), ended)
    raise SystemExit(1)
