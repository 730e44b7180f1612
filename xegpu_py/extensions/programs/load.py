"""Programs: modules with host code, whose host functions run in a child process."""

from __future__ import annotations

import functools
import math
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

import numpy as np
from mlir import ir

from xegpu_py.argument_types import checked
from xegpu_py.child_process import module_command
from xegpu_py.dialects import visa
from xegpu_py.extensions.programs.host_lowering import own_module
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source, error_at
from xegpu_py.ir.module import Module, source_of, walk
from xegpu_py.lower_kernel import compile
from xegpu_py.upstream import Imported, Level, read_source
from xegpu_py.visa.program import Dim

# `load_program`: modules with host code, whose host functions and kernels can be called.


class Kernels(Mapping[str, Any]):
    """A program's kernels by name, or by "module::name" if it is ambiguous. Kernels are compiled when first used."""

    def __init__(self, program: Program) -> None:
        self._program = program
        funcs = visa.kernels(program.module.operation)
        names = [visa.name_of(f) for f in funcs]
        self._funcs = {
            name if names.count(name) == 1 else f"{visa.name_of(f.parent)}::{name}": f for name, f in zip(names, funcs)
        }

    def __getitem__(self, name: str) -> Any:
        func = self._funcs[name]
        module = own_module(func.parent.operation, self._program.module)
        return compile(module, visa.name_of(func), **self._program.options)

    def __iter__(self) -> Iterator[str]:
        return iter(self._funcs)

    def __len__(self) -> int:
        return len(self._funcs)


class Program:
    """A program: `program.main()` calls its host function `main`, and `program.kernels["name"]` is one of its kernels.

    Attributes:
        module: its module.
        options: the options of `xegpu_py.compile` for all its kernels.
        kernels: its kernels; see `Kernels`.
        functions: the names of its host functions.
    """

    def __init__(
        self,
        module: Module,
        source: Source,
        imported: Imported,
        seed: int,
        allow_native: bool,
        options: dict[str, Any],
    ) -> None:
        """Make a program of a parsed module; see `load_program`."""
        self.module, self.options = module, options
        self._source, self._imported, self._seed, self._allow_native = source, imported, seed, allow_native
        self.kernels = Kernels(self)
        self.functions = tuple(
            str(ir.StringAttr(op.attributes["sym_name"]).value)
            for op in walk(module.operation)
            if op.name == "func.func" and len(op.regions[0].blocks)
        )

    def __getattr__(self, name: str) -> functools.partial[Any]:
        if name in self.__dict__.get("functions", ()):
            return functools.partial(self.call, name)
        raise AttributeError(f"the program has no host function '{name}'; it has {', '.join(self.functions) or 'none'}")

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a host function, in a new child process, from the program's initial state.

        Its output goes to this process's standard output.

        Args:
            arguments: a numpy array for each memref, which is changed in place when the function returns; otherwise a
                number.

        Returns:
            Its result, or a tuple of its results. Memrefs are returned as arrays.

        Raises:
            TypeError, ValueError: if an argument does not fit.
            DiagnosticError: if the program cannot be lowered, a launch fails, or host code crashes.
        """
        job = Job(
            self._source,
            self._imported,
            name,
            options=self.options,
            seed=self._seed,
            allow_native=self._allow_native,
        )
        results = run(job, arguments)
        return None if not results else results[0] if len(results) == 1 else tuple(results)


@checked
def load_program(
    program: Module | str | Path,
    *,
    import_upstream: bool = False,
    via: Literal["upstream"] | None = None,
    level: Level | None = None,
    seed: int = 0,
    allow_native: bool = False,
    **options: Any,
) -> Program:
    """Read a program: kernels, and host code that launches them.

        program = xegpu_py.load_program("gemm.mlir")
        program.main()
        c = program.test(a, b)
        program.kernels["gemm"](a, b, c, grid=(4, 4))

    Args:
        program: a module, its text, or the path of a file that holds it.
        import_upstream: whether its kernels are in the dialects of upstream MLIR or IMEX.
        via: "upstream" for kernels that upstream's own passes lower first; see `import_upstream`.
        level: the level of all kernels in upstream's dialects; without it each kernel's is found from its ops.
        seed: the seed of the random numbers with which the program fills arrays.
        allow_native: whether host code may call any function of the process, contain inline assembly, and use files,
            the network and other programs: it can then do everything that its user can.
        options: the options of `xegpu_py.compile`.

    Raises:
        DiagnosticError: if it cannot be parsed, or is not valid.
        OSError: if the file cannot be read.
    """
    if isinstance(program, Module):
        name = program.sources[0].name if program.sources else "<module>"
        source = Source(program.text(debuginfo=True), name)
    else:
        source = source_of(program)
    imported: Imported = via or level or import_upstream
    module = read_source(source, imported, Context.from_pool())
    return Program(module, source, imported, seed, allow_native, options)


# The child process in which a program's host code runs, since compiled code can crash.
#
# The parent starts the module `xegpu_py.extensions.programs` with one end of a socket pair, sends a `Job`, and
# receives a tuple for each event: its name and its data.


@dataclass(frozen=True)
class SharedArray:
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


@dataclass
class Job:
    """The description of a run.

    Attributes:
        source: the program.
        imported: see `read_source`.
        entry: the host function.
        arguments: arrays and numbers; `run` sets them.
        shared: descriptor of the file with the arrays; None if there are no arrays.
        options: the options of `xegpu_py.compile`.
        seed: the seed of random numbers.
        allow_native: see `load_program`.
        trace: the workgroup and thread whose instructions are printed on standard error in each launch; None for none.
        statistics: whether to print the statistics of each launch on standard error, as a table or in JSON.
        remarks: whether to print the remarks of the lowering on standard error.
    """

    source: Source
    imported: Imported
    entry: str
    arguments: list[Any] = field(default_factory=list)
    shared: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    allow_native: bool = False
    trace: tuple[Dim, int] | None = None
    statistics: bool | Literal["json"] = False
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
                job.arguments.append(SharedArray(argument.dtype, argument.shape, end))
                end += -(-argument.nbytes // _PAGE) * _PAGE
            else:
                job.arguments.append(argument)
        if not end:
            return _run(job)
        file.truncate(end)
        memory, job.shared = np.memmap(file, np.uint8, "r+", shape=(end,)), file.fileno()
        pairs = [(a, p.of(memory)) for a, p in zip(arguments, job.arguments) if isinstance(p, SharedArray)]
        for array, copy in pairs:
            copy[...] = array
        results = _run(job)
        for array, copy in pairs:
            if array.flags.writeable:
                array[...] = copy
        return results


_PAGE = 4096
"""Alignment of the arrays that parent and child share."""


def _run(job: Job) -> list[Any]:
    ours, childs = Pipe()
    with ours, childs:
        files = [childs.fileno(), *([job.shared] if job.shared is not None else [])]
        command = module_command("xegpu_py.extensions.programs", str(childs.fileno()))
        sys.stdout.flush()
        output = _descriptor(sys.stdout)
        child = subprocess.Popen(command, pass_fds=files, stdin=subprocess.DEVNULL, stdout=output)
        copier = threading.Thread(target=_copy, args=(child.stdout,), daemon=True)
        if output == subprocess.PIPE:
            copier.start()
        try:
            childs.close()
            ours.send(job)
            return _watch(ours, child, job)
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
            message = details[0]
            print(message.render([job.source]) if isinstance(message, Diagnostic) else message, file=sys.stderr)
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
            return details[0]


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
