"""Runs the code blocks of a Markdown page, so that what the page shows stays true.

- A block whose fence names a file (```mlir kernel.mlir) is that file; with a `+` after the name it is added to it.
- A `console` block holds commands after `$`, each followed by its output.
- A `python` block is run; a `text` block right after it is its output.
- `sh` blocks are not run.

In an output a line `...` stands for any lines, and `...` within a line for any text.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import forked_tools

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A code block: its language, the file that it is, and its text."""

    language: str
    file: str | None
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Run:
    """A command of a page, with the output that the page shows and the one that there is."""

    command: str
    shown: str
    actual: str

    def agrees(self) -> bool:
        """Whether the output equals the shown one."""
        pattern = "".join(
            r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
            for line in self.shown.splitlines()
        )
        return re.fullmatch(pattern, self.actual) is not None


def blocks(page: str) -> list[Block]:
    """The code blocks of a page."""
    return [Block(m[1], m[2], m[3], m.start(), m.end()) for m in _BLOCK.finditer(page)]


def runs(
    page: str,
    folder: Path,
    environment: Mapping[str, str] = MappingProxyType({}),
    tools: Path | None = None,
    modules: Sequence[str] = (),
) -> Iterator[Run]:
    """Run a page's code in a folder, one block after the other.

    Args:
        environment: variables besides those of this process; with `tools` there are no others.
        tools: the folder with Python and the tools; by default those that run this, in forks of a process that has
            imported them unless a variable may change what is imported.
        modules: what that process has imported besides.
    """
    if not tools:
        environment = {**os.environ, **environment}
        own = Path(sys.executable).parent
        environment["PATH"] = os.pathsep.join([str(own), environment["PATH"]])
        tools = own if "PYTHONPATH" in environment else forked_tools.folder(*modules)
    run = partial(_run_with, tools, environment)
    found = blocks(page)
    for i, block in enumerate(found):
        if block.file:
            path = folder / block.file.removesuffix("+")
            path.parent.mkdir(parents=True, exist_ok=True)
            appends = block.file.endswith("+")
            with path.open("a" if appends else "w") as f:
                # Two blank lines come before a function or class.
                f.write(block.text if not appends or block.language != "python" else f"\n\n{block.text}")
        elif block.language == "console":
            for m in _COMMAND.finditer(block.text):
                yield Run(m[1], m[2], run(["bash", "-c", m[1]], folder))
        elif block.language == "python":
            after = found[i + 1] if i + 1 < len(found) else None
            is_output = after and after.language == "text" and not page[block.end : after.start].strip()
            # A file, since kernels are compiled from their source.
            (folder / "block.py").write_text(block.text)
            yield Run(block.text, after.text if is_output else "", run(["python", "block.py"], folder))


def _run_with(tools: Path, environment: Mapping[str, str], command: list[str], folder: Path) -> str:
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**environment, "PATH": os.pathsep.join([str(tools), environment["PATH"]])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return ran.stdout
