"""Runs the Python tools of tests in forks of a process that has imported them.

Starting Python and importing a tool's modules takes most of a small test's time. lit imports the tools once. A command
that names one of them is run in a fork of the worker, which calls the tool's `main` with its own streams, working
directory, environment and arguments. The worker runs FileCheck itself. All other commands are executed as usual. If
Python does not start lit's workers by `fork`, all commands are executed as usual.

The process of a program's host code, which a tool starts, is such a fork too.

The documents' commands are run by a shell. `folder()` holds programs with the names of the tools and of Python, each of
which asks a server to run the tool, or the script, in a fork of the server.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import io
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import compiled_objects
import lit.formats
import lit.TestRunner
import ml_dtypes
import numpy as np
import recorder

import xegpu_py
from xegpu_py.extensions.programs import load
from xegpu_py.ir.context import DIALECTS, Context
from xegpu_py.ir.passes import registered

TOOLS = ("xegpu-bisect", "xegpu-opt", "xegpu-run", "xegpu-translate", "xegpu-viz", "filecheck")

MOST_FILES = 1024
"""The largest number of file descriptors that a fork inherits."""


def _imported() -> dict[str, Callable[[], Any]]:
    """The functions of the installed tools."""
    scripts = {s.name: s for s in entry_points(group="console_scripts") if s.name in TOOLS}
    tools = {name: script.load() for name, script in scripts.items()}
    compiled_objects.install()
    load.subprocess = program_processes()  # type: ignore[assignment]
    _launch()
    gc.freeze()
    return tools


def _launch() -> None:
    """Launch a kernel, so that no fork imports, defines and compiles again what the first launch of a process does."""
    # From the third context on, dialects are read from bytecode. Forks use the last one.
    for make in (Context, Context, Context.from_pool):
        make().load(DIALECTS)
    registered()
    kernel = xegpu_py.compile(recorder.ROOT / "examples" / "gemm.mlir", engine="both", threads=1, cache="off")
    a, b, c = (np.zeros((1024, 1024), dtype) for dtype in (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32))
    kernel(a, b, c, grid=(1, 1))


class ShTest(lit.formats.ShTest):
    """Tests whose tools know by which test they are run."""

    def execute(self, test: Any, lit_config: Any) -> Any:
        test.config.environment[recorder.LIT_TEST] = Path(test.getSourcePath()).relative_to(recorder.ROOT).as_posix()
        recorder.read_new_numbers()
        return super().execute(test, lit_config)


def install() -> None:
    """Make lit's shell run the tools in forks of its process."""
    tools = _imported()

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, args: list[str], **options: Any) -> None:
            name = Path(args[0]).name
            if name in tools:
                options["preexec_fn"] = partial(_run, tools[name], args, options["env"])
            super().__init__(args, **options)

    def process(args: list[str], **options: Any) -> Any:
        checks = Path(args[0]).name == "filecheck" and options["stdout"] == options["stderr"] == subprocess.PIPE
        return FileCheck(tools["filecheck"], args, options["stdin"]) if checks else Popen(args, **options)

    lit.TestRunner.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": process})


class FileCheck:
    """FileCheck in this process, as a process that has ended: a fork takes five times as long as its work."""

    pid = 0

    def __init__(self, main: Callable[[], Any], args: list[str], stdin: Any) -> None:
        self.stdin, self.stdout, self.stderr = io.StringIO(), io.StringIO(), io.StringIO()
        before = sys.argv, sys.stdin
        with ExitStack() as stack:
            stack.callback(lambda: [setattr(sys, name, old) for name, old in zip(("argv", "stdin"), before)])
            stack.enter_context(contextlib.redirect_stdout(self.stdout))
            stack.enter_context(contextlib.redirect_stderr(self.stderr))
            fd = os.open(os.devnull, os.O_RDONLY) if stdin == subprocess.PIPE else os.dup(stdin.fileno())
            sys.argv, sys.stdin = args, stack.enter_context(open(fd, encoding="utf-8"))
            self.returncode = _status(main)

    def communicate(self) -> tuple[str, str]:
        return self.stdout.getvalue(), self.stderr.getvalue()

    def wait(self) -> int:
        return self.returncode


def program_processes() -> SimpleNamespace:
    """`subprocess`, whose processes of host code are forks of this one."""
    # Python's module of a process, which is imported by no other.
    main = import_module("xegpu_py.extensions.programs.__main__").main

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, args: list[str], *, pass_fds: tuple[int, ...], **options: Any) -> None:
            use_marks = recorder.marks_of_fork()

            def run() -> None:
                use_marks()
                main(int(args[-1]))

            started = partial(_run, run, args, {**os.environ}, pass_fds)
            super().__init__(args, pass_fds=pass_fds, preexec_fn=started, **options)

    return SimpleNamespace(**{**vars(subprocess), "Popen": Popen})


def _run(main: Callable[[], Any], args: list[str], environment: dict[str, str], files: Iterable[int] = ()) -> None:
    """Run the tool in this process, and exit with its exit status.

    Args:
        files: the inherited descriptors that it uses.
    """
    # Close the other ends of pipes: their readers would wait for this process.
    for first, end in pairwise((2, *sorted(files), MOST_FILES)):
        os.closerange(first + 1, end)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.orig_argv = args, [sys.executable, *args]
    sys.stdin, sys.stdout, sys.stderr = (
        open(fd, mode, encoding="utf-8", closefd=False, errors=errors)  # noqa: SIM115
        for fd, mode, errors in ((0, "r", "strict"), (1, "w", "strict"), (2, "w", "backslashreplace"))
    )
    record = recorder.Recorder()
    test = environment.get(recorder.LIT_TEST) or environment.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if Path(args[0]).name == "filecheck":
        test = ""  # it executes nothing of the package
    with record.test(test):
        status = _status(main)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    record.write()
    os._exit(status)


def _status(main: Callable[[], Any]) -> int:
    """Run a tool; its exit status."""
    status: Any = 1
    try:
        status = main()
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    return int(status or 0)


# The server, which the programs of a folder ask.

PROGRAM = """#!{python} -IS
import _socket, os, sys
if {name!r} == "python" and not "".join(sys.argv[1:2]).endswith(".py"):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
server = _socket.socket(_socket.AF_UNIX)
server.connect({server!r})
asked = repr(([{name!r}, *sys.argv[1:]], os.getcwd(), dict(os.environ))).encode()
streams = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
server.sendmsg([len(asked).to_bytes(8, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(asked)
sys.exit(int(server.recv(16) or 1))
"""


@cache
def folder(*modules: str) -> Path:
    """A folder of programs that run in forks of a server, which ends with this process.

    Args:
        modules: what the server imports besides the tools.
    """
    path = Path(tempfile.mkdtemp(prefix="tools-"))
    command = [sys.executable, __file__, str(path), *modules]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout and server.stdout.readline() == b"ready\n"
    _servers.append(server)
    return path


_servers: list[Any] = []
"""Kept, since a server ends when its standard input is closed."""


def _serve(path: Path, modules: Iterable[str]) -> None:
    for module in modules:
        import_module(module)
    tools = {**_imported(), "python": _script}
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path / "server"))
        listening.listen()
        for name in tools:
            program = PROGRAM.format(python=sys.executable, name=name, server=str(path / "server"))
            (path / name).write_text(program)
            (path / name).chmod(0o755)
        print("ready", flush=True)
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            recorder.read_new_numbers()
            with connection:
                if not os.fork():
                    _answer(connection, tools)
    shutil.rmtree(path)


def _answer(connection: socket.socket, tools: dict[str, Callable[[], Any]]) -> None:
    """Run a tool in a fork of this fork, and send its exit status, as a shell has it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as read:
        args, directory, environment = ast.literal_eval(read.read(int.from_bytes(size, "little")).decode())
    for fd, stream in enumerate(streams):
        os.dup2(stream, fd)
    child = os.fork()
    if not child:
        os.chdir(directory)
        _run(tools[args[0]], args, environment)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.send(str(status if status >= 0 else 128 - status).encode())
    os._exit(0)


def _script() -> None:
    """Run a file of Python."""
    del sys.argv[0]
    sys.path.insert(0, str(Path(sys.argv[0]).parent.resolve()))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2:])
