"""What the command-line programs share: LLVM's spellings of flags, files in and out, pieces of files, diagnostics."""

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.expected import mismatches
from xegpu_py.ir.source import Source, decode_utf8

SEPARATOR = "// -----\n"

_SINGLE_DASH = re.compile(r"-[a-z][\w-]+(?:=.*)?\Z", re.DOTALL)
_BOOLEAN = re.compile(r"(--[\w-]+)=(true|false)\Z")

Convert = Callable[[Source, list[Diagnostic]], str]
"""Makes the output of a source. Diagnostics that are no errors are added to the list; errors are raised."""


class Parser(argparse.ArgumentParser):
    """An argument parser with what every tool has. Every error exits with status 1, as in MLIR's tools."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")

    def add_text_arguments(self) -> None:
        """Add the arguments of tools that make a text of a text."""
        self.add_argument("file", nargs="?", default="-", help="input file, '-' (default) for standard input")
        output = "output file, '-' (default) for standard output"
        self.add_argument("-o", dest="output", metavar="FILE", default="-", help=output)
        self.add_switch("--split-input-file", "process the pieces between '// -----' lines one by one")
        self.add_switch("--verify-diagnostics", "check diagnostics against 'expected-error' and like comments")

    def add_switch(self, name: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=text)

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: error: {message}\n")

    def normalized(self, argv: Sequence[str]) -> list[str]:
        """LLVM's spellings in those of argparse: one dash for two, and switches with `=true` or `=false`."""
        switches = {s for a in self._actions if a.nargs == 0 for s in a.option_strings}
        out = []
        for word in argv:
            if _SINGLE_DASH.match(word) and not word.startswith("-o"):
                word = "-" + word
            m = _BOOLEAN.match(word)
            if m and m[1] in switches:
                negated = f"--no-{m[1][2:]}"
                if m[2] == "true":
                    out.append(m[1])
                elif negated in switches:
                    out.append(negated)
                continue
            out.append(word.removeprefix("-o=") if word.startswith("-o=") else word)
            if word.startswith("-o="):
                out.insert(-1, "-o")
        return out

    def read(self, path: str) -> Source:
        """The source in a file, or in standard input for `-`.

        Raises:
            DiagnosticError: if it is no text.
        """
        try:
            if path == "-":
                data = sys.stdin.buffer.read()
            else:
                with open(path, "rb") as f:
                    data = f.read()
        except OSError as e:
            self.error(f"cannot open input file '{path}': {e.strerror}")
        return decode_utf8(data, "<stdin>" if path == "-" else path)

    def write(self, path: str, text: str) -> None:
        """Write a file, whole or not at all, or standard output for `-`."""
        if path == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            self.write_bytes(path, text.encode())

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file, whole or not at all."""
        from tempfile import NamedTemporaryFile

        try:
            if os.path.exists(path) and not os.path.isfile(path):
                with open(path, "wb") as device:
                    device.write(data)
                return
            with NamedTemporaryFile("wb", dir=os.path.dirname(path) or ".", delete=False) as f:
                f.write(data)
            # A temporary file is for its owner only; the output is as readable as any new file.
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(f.name, 0o666 & ~umask)
            os.replace(f.name, path)
        except OSError as e:
            self.error(f"cannot write output file '{path}': {e.strerror}")


class _Version(argparse.Action):
    """Prints the version. Looking it up takes longer than all other imports of a tool."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"{parser.prog} {version('xegpu-py')}")
        parser.exit()


def process(parser: Parser, args: argparse.Namespace, convert: Convert) -> list[str] | None:
    """The output of each piece of the input, diagnostics printed; None if one failed."""
    source = parser.read(args.file)
    pieces = list(source.split()) if args.split_input_file else [source]
    texts = [_process(piece, args.verify_diagnostics, convert) for piece in pieces]
    return None if None in texts else [text or "" for text in texts]


def _process(source: Source, expects: bool, convert: Convert) -> str | None:
    arose: list[Diagnostic] = []
    text = ""
    try:
        text = convert(source, arose)
    except DiagnosticError as e:
        arose += e.diagnostics
    if expects:
        arose = mismatches(source, arose)
    for d in arose:
        print(d.render([source]), file=sys.stderr)
    return None if any(d.severity == "error" for d in arose) else text


def finish(parser: Parser, args: argparse.Namespace, texts: list[str] | None) -> int:
    """Write what `process` gave; the exit status."""
    if texts is None:
        return 1
    if not args.verify_diagnostics or any(texts):
        parser.write(args.output, SEPARATOR.join(texts))
    return 0


def main(run: Callable[[Sequence[str]], int]) -> None:
    """Run a tool with the process's arguments, and exit."""
    # Nearly all that a tool makes lives until its end, so that looking for garbage as often as usual finds none.
    gc.set_threshold(100_000)
    try:
        status = run(sys.argv[1:])
    except DiagnosticError as e:
        print(e, file=sys.stderr)
        status = 1
    except BrokenPipeError:
        # The reader has gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)
