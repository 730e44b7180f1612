"""Runs the Python tools of lit tests in forks of lit's worker processes.

Starting Python and importing a tool's modules takes most of a small test's time. lit imports the tools once. A command
that names one of them is run in a fork of the worker, which calls the tool's `main` with its own streams, working
directory, environment and arguments. All other commands are executed as usual. If Python does not start lit's workers
by `fork`, all commands are executed as usual.
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lit.TestRunner

MOST_FILES = 1024
"""The largest number of file descriptors that a fork inherits."""


def install(names: tuple[str, ...]) -> None:
    """Make lit's shell run the installed commands of these names in forks of its process."""
    scripts = {s.name: s for s in entry_points(group="console_scripts") if s.name in names}
    tools = {name: script.load() for name, script in scripts.items()}
    gc.freeze()

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, args: list[str], **options: Any) -> None:
            name = Path(args[0]).name
            if name in tools:
                options["preexec_fn"] = partial(_run, tools[name], args, options["env"])
            super().__init__(args, **options)

    lit.TestRunner.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": Popen})


def _run(main: Callable[[], Any], args: list[str], environment: dict[str, str]) -> None:
    """Run the tool in this process, and exit with its exit status."""
    # Close the inherited ends of pipes: their readers would wait for this process.
    os.closerange(3, MOST_FILES)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.orig_argv = args, [sys.executable, *args]
    sys.stdin, sys.stdout, sys.stderr = (
        open(fd, mode, encoding="utf-8", closefd=False, errors=errors)  # noqa: SIM115
        for fd, mode, errors in ((0, "r", "strict"), (1, "w", "strict"), (2, "w", "backslashreplace"))
    )
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
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(int(status or 0))
