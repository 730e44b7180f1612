"""The code of the child process; see `process`."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from mlir import ir

from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, error_at, position_of
from xegpu_py.ir.verifier import walk
from xegpu_py.programs import imex_utils, runner_utils
from xegpu_py.programs.device import Device
from xegpu_py.programs.functions import Host
from xegpu_py.programs.host import Compiled
from xegpu_py.programs.lowering import Launch, lower
from xegpu_py.programs.process import Array, Job
from xegpu_py.programs.program import read


def main(number: int) -> None:
    """Run the job that the parent sends over this file descriptor, and exit."""
    # The parent reports interrupts.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    pipe = Connection(number)
    job: Job = pipe.recv()
    lock = threading.Lock()

    def send(*event: Any) -> None:
        with lock:
            pipe.send(event)

    def end_with_parent() -> None:
        """Exit when the parent exits: it sends nothing more, so the next thing received is the end of the stream."""
        try:
            pipe.recv()
        except EOFError:
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        results = _perform(job, send)
    except BaseException as e:
        _leave(job, send, e)
    send("done", results)
    os._exit(0)


def _leave(job: Job, send: Callable[..., None], error: BaseException) -> None:
    """Send an error to the parent, and exit at once, because compiled code may be on the stack."""
    try:
        if isinstance(error, DiagnosticError):
            send("raise", DiagnosticError(error.diagnostics))
        elif isinstance(error, (TypeError, ValueError, BrokenPipeError, MemoryError)):
            send("raise", type(error)(*error.args))
        else:
            where = Position(job.source.name, job.source.first_line, 1)
            message = f"internal error: {type(error).__name__}: {error}"
            send("raise", error_at(where, message))
    finally:
        os._exit(1)


def _perform(job: Job, send: Callable[..., None]) -> Any:
    module = read(job.source, job.imported, Context())
    for op in walk(module.operation):
        if op.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == job.entry:
            send("place", position_of(op.location))
    library = {**runner_utils.LIBRARY, **imex_utils.LIBRARY}
    code = lower(module, job.entry, library)

    def say(said: str | Diagnostic) -> None:
        send("say", said)

    def reached(launch_number: int, launch: Launch, ended: bool) -> None:
        send("launch", launch_number, launch.kernel, ended)

    device = Device(code.kernels, job, say, reached)
    host = Host(1, np.random.default_rng(job.seed))

    def guard(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except BaseException as e:
            _leave(job, send, e)

    results = Compiled(code, device, host, guard, runner_utils.LIBRARY).call(_arrays(job))
    ctypes.CDLL(None).fflush(None)
    device.close()
    return results


def _arrays(job: Job) -> list[Any]:
    if job.shared is None:
        return list(job.arguments)
    memory = np.frombuffer(mmap.mmap(job.shared, 0), np.uint8)
    return [a.of(memory) if isinstance(a, Array) else a for a in job.arguments]
