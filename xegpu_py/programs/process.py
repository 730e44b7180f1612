"""The child process in which a program's host code runs, since compiled code can crash.

The parent starts `python -m xegpu_py.programs` with one end of a socket pair, sends a `Job`, and receives a tuple
for each event: its name and its data.
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from typing import Any, BinaryIO, Literal, TextIO

import numpy as np

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, error_at
from xegpu_py.ir.source import Source
from xegpu_py.visa.program import Dim


@dataclass(frozen=True)
class Array:
    """An array argument in the file that parent and child share.

    Attributes:
        dtype, shape: numpy's dtype and shape.
        start: offset of its first byte in the file.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int

    def of(self, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A numpy view of the array in the file's bytes."""
        size = math.prod(self.shape) * self.dtype.itemsize
        return memory[self.start : self.start + size].view(self.dtype).reshape(self.shape)


Imported = bool | Literal["upstream"]
"""Whether kernels are in upstream's dialects; "upstream" if upstream's own passes lower them first."""


@dataclass
class Job:
    """The description of a run.

    Attributes:
        source: the program.
        imported: whether its kernels are in upstream's dialects; "upstream" if upstream's own passes lower them first.
        entry: the host function.
        arguments: arrays and numbers; `run` sets them.
        shared: descriptor of the file with the arrays; None if there are no arrays.
        options: the options of `xegpu_py.compile`.
        seed: the seed of random numbers.
        trace: the workgroup and thread whose instructions are printed on standard error in each launch; None for none.
        statistics: whether to print the statistics of each launch on standard error.
        remarks: whether to print the remarks of the lowering on standard error.
    """

    source: Source
    imported: Imported
    entry: str
    arguments: list[Any] = field(default_factory=list)
    shared: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    trace: tuple[Dim, int] | None = None
    statistics: bool = False
    remarks: bool = False


def run(job: Job, arguments: Sequence[Any] = ()) -> list[Any]:
    """Run a job in a child process, wait for its end, and return the function's results.

    Messages about launches are printed on standard error while it runs.

    Args:
        job: the job, to which the arguments are added.
        arguments: a numpy array for each memref, which is changed in place; otherwise a number.

    Raises:
        DiagnosticError: if the program cannot be lowered, a launch fails, or the host code crashes.
        TypeError, ValueError: if arguments do not fit.
        BrokenPipeError: if the reader of the program's output has closed the pipe.
    """
    with tempfile.TemporaryFile() as file:
        end = 0
        for argument in arguments:
            if isinstance(argument, np.ndarray) and argument.ndim:
                job.arguments.append(Array(argument.dtype, argument.shape, end))
                end += -(-argument.nbytes // _PAGE) * _PAGE
            else:
                job.arguments.append(argument)
        if not end:
            return _run(job)
        file.truncate(end)
        memory, job.shared = np.memmap(file, np.uint8, "r+", shape=(end,)), file.fileno()
        pairs = [(a, p.of(memory)) for a, p in zip(arguments, job.arguments) if isinstance(p, Array)]
        for array, place in pairs:
            place[...] = array
        results = _run(job)
        for array, place in pairs:
            if array.flags.writeable:
                array[...] = place
        return results


_PAGE = 4096
"""Alignment of the arrays that parent and child share."""


def _run(job: Job) -> list[Any]:
    own, childs = Pipe()
    with own, childs:
        files = [childs.fileno(), *([job.shared] if job.shared is not None else [])]
        command = [sys.executable, "-m", "xegpu_py.programs", str(childs.fileno())]
        sys.stdout.flush()
        output = _descriptor(sys.stdout)
        child = subprocess.Popen(command, pass_fds=files, stdin=subprocess.DEVNULL, stdout=output)
        copier = threading.Thread(target=_copy, args=(child.stdout,), daemon=True)
        if output == subprocess.PIPE:
            copier.start()
        try:
            childs.close()
            own.send(job)
            return _watch(own, child, job)
        finally:
            child.kill()
            child.wait()
            if output == subprocess.PIPE:
                copier.join()


def _descriptor(stream: TextIO) -> int:
    """The file descriptor of a stream. A stream without one, as in notebooks, gets a pipe."""
    try:
        return stream.fileno()
    except (AttributeError, OSError):
        return subprocess.PIPE


def _copy(pipe: BinaryIO) -> None:
    for line in pipe:
        sys.stdout.write(line.decode("utf-8", "replace"))


def _watch(pipe: Connection, child: subprocess.Popen[bytes], job: Job) -> list[Any]:
    last, position = "", Position(job.source.name, job.source.first_line, 1)
    while True:
        try:
            event, *details = pipe.recv()
        except (EOFError, ConnectionResetError):
            raise _crash(child.wait(), last, job, position) from None
        if event == "say":
            said = details[0]
            print(said.render([job.source]) if isinstance(said, Diagnostic) else said, file=sys.stderr)
        elif event == "launch":
            number, kernel, ended = details
            last = (
                f"after launch {number}, of kernel '{kernel}'" if ended else f"in launch {number}, of kernel '{kernel}'"
            )
        elif event == "place":
            position = details[0]
        elif event == "raise":
            raise details[0]
        else:
            results: list[Any] = details[0]
            return results


def _crash(status: int, last: str, job: Job, position: Position) -> DiagnosticError:
    """The error for a child that ended without a result."""
    if status < 0:
        try:
            reason = f"{signal.Signals(-status).name} ({(signal.strsignal(-status) or '').lower()})"
        except ValueError:
            reason = f"signal {-status}"
    else:
        reason = f"exit status {status}"
    message = f"host function '{job.entry}' crashed with {reason}{' ' if last else ''}{last}"
    note = "compiled host code is not checked: look for accesses outside of memrefs, or to freed memory"
    return error_at(position, message, note)
