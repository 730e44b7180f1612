"""Runs Python tools of lit tests in copies of the process that runs the tests.

Starting Python and importing what a tool imports takes most of a small test's time. The process that runs the tests
imports the tools once. A command that names one of them is then a fork of that process, which calls the tool's `main`
with files, folder, environment and arguments of its own, where any other command would be executed. On hosts whose
Python starts lit's workers in another way than by `fork`, commands are executed as ever.
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
"""File descriptors that a copy may have inherited."""


def install(names: tuple[str, ...]) -> None:
    """Have lit's shell run the installed commands of these names in copies of its process."""
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
    """Be the tool, and end with its exit status."""
    # The other ends of pipes, which would keep whoever reads them waiting.
    os.closerange(3, MOST_FILES)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = args
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
