"""Common code of the command-line programs: LLVM's flag syntax, input, output, split files, diagnostics, colour."""

import argparse
import gc
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from xegpu_py import interrupts
from xegpu_py.deferred import deferred
from xegpu_py.ir.diagnostics import (
    SEPARATOR,
    Diagnostic,
    DiagnosticError,
    Lines,
    Position,
    Source,
    mismatches,
    watch_steps,
)
from xegpu_py.ir.module import decode
from xegpu_py.tools import working_child

if TYPE_CHECKING:
    import tempfile
    from importlib import metadata

    from xegpu_py import highlighting
    from xegpu_py.ir import diagnostic_formats, pass_plugins
else:
    metadata = deferred("importlib.metadata")
    highlighting = deferred("xegpu_py.highlighting")
    tempfile = deferred("tempfile")
    diagnostic_formats = deferred("xegpu_py.ir.diagnostic_formats")
    pass_plugins = deferred("xegpu_py.ir.pass_plugins")

_SPLIT_MARKER = "--input-split-marker"
"""The argument that holds the marker of `--split-input-file=MARKER`, since a switch of argparse has no value."""

_SINGLE_DASH = re.compile(r"-[a-z][\w-]+(?:=.*)?\Z", re.DOTALL)

_BOOLEAN = re.compile(r"(--[\w-]+)=(?:(true|1)|false|0)\Z", re.IGNORECASE)

_COLOR: ContextVar[str] = ContextVar("color", default="auto")
"""The value of `--color`, also for output before and after a tool's run."""

_FORMAT: ContextVar[str] = ContextVar("format", default="text")
"""The value of `--diagnostics-format`."""

_SARIF: list[dict[str, Any]] = []
"""The results of the document that is printed when the tool ends."""

BAD_USAGE = 2
"""The exit status for options, arguments and files that a tool cannot take. It is 1 for input that is wrong."""

Output = str | bytes
"""The output of a tool: text, or a binary file."""

Convert = Callable[[Source, list[Diagnostic]], Output]
"""Returns the output for a source. Warnings and remarks are appended to the list; errors are raised."""


def positive(text: str) -> int:
    """A number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def dimensions(text: str) -> tuple[int, ...]:
    """A grid or block: one to three positive numbers, separated by commas."""
    try:
        values = tuple(int(word) for word in text.split(","))
    except ValueError:
        values = ()
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not one to three positive numbers, such as 4,4,1")
    return values


class Parser(argparse.ArgumentParser):
    """An argument parser with the options that every tool has.

    Args:
        prog: the tool's name.
        synopsis: the positional arguments, as the usage line shows them.
        description: what the tool does.
        examples: command lines, which `--help` shows first.
        epilog: text below the options, or what returns it, which only `--help` calls.
    """

    def __init__(
        self, prog: str, synopsis: str, description: str, examples: Sequence[str], epilog: str | Callable[[], str] = ""
    ) -> None:
        shown = "\n".join(f"  {line}" for line in examples)
        description = textwrap.fill(description, shutil.get_terminal_size().columns - 2)
        super().__init__(
            prog=prog,
            usage=f"{prog} [OPTION...] {synopsis}".rstrip(),
            description=f"{description}\n\nexamples:\n{shown}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._epilog = epilog
        self.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
        _COLOR.set("auto")
        when = "when to colour diagnostics, IR and assembly (default auto: at a terminal, unless NO_COLOR is set)"
        self.add_argument("--color", action=_Color, choices=("auto", "always", "never"), default="auto", help=when)
        _FORMAT.set("text")
        form = "form of diagnostics on standard error: text, json (one object a line), or sarif (one document)"
        formats = ("text", "json", "sarif")
        self.add_argument("--diagnostics-format", action=_Format, choices=formats, default="text", help=form)

    def add_text_arguments(self) -> None:
        """Add the arguments of tools that translate text to text."""
        self.add_argument("file", nargs="?", default="-", help="input file, '-' (default) for standard input")
        output = "output file, '-' (default) for standard output"
        self.add_argument("-o", dest="output", metavar="FILE", default="-", help=output)
        self.add_switch("--split-input-file", "process each piece between '// -----' lines by itself (=MARKER: others)")
        self.add_argument(_SPLIT_MARKER, default=SEPARATOR, help=argparse.SUPPRESS)
        between = f"what is printed between the outputs of the pieces (default '{SEPARATOR}')"
        self.add_argument("--output-split-marker", metavar="MARKER", default=SEPARATOR, help=between)
        self.add_switch("--verify-diagnostics", "compare diagnostics with 'expected-error' and similar comments")

    def add_pass_plugins(self) -> None:
        """Add the option that loads files with passes."""
        self.add_argument(
            "--load-pass-plugin",
            action=_LoadPassPlugin,
            metavar="FILE",
            help="execute a file of Python that registers passes; may be given several times",
        )

    def add_switch(self, name: str, text: str) -> None:
        """Add an option without a value."""
        self.add_argument(name, action="store_true", help=text)

    def arrange(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Show the options of these names under titles in `--help`; the others stay under `options`."""
        for title, names in groups.items():
            group = self.add_argument_group(title)
            actions = [action for name in names for action in self._actions if name in action.option_strings]
            for action in actions:
                for other in self._action_groups:
                    other._group_actions = [a for a in other._group_actions if a is not action]
                group._group_actions.append(action)

    def format_help(self) -> str:
        self.epilog = self._epilog() if callable(self._epilog) else self._epilog
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"{self.prog}: error: {message}\n")

    def normalized(self, argv: Sequence[str]) -> list[str]:
        """Arguments in LLVM's spelling (one dash, switches with `=true` or `=0`) as argparse reads them.

        If a shell asks for completions, print them and exit.
        """
        if completing():
            from argcomplete import autocomplete

            autocomplete(self)
        switches = {s for a in self._actions if a.nargs == 0 for s in a.option_strings}
        out = []
        for word in argv:
            if _SINGLE_DASH.match(word) and not word.startswith("-o"):
                word = "-" + word
            m = _BOOLEAN.match(word)
            if word.startswith("--split-input-file=") and not m:
                out += ["--split-input-file", f"{_SPLIT_MARKER}={word.partition('=')[2]}"]
                continue
            if m and m[1] in switches:
                negated = f"--no-{m[1][2:]}"
                if m[2]:
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
            DiagnosticError: if it is neither UTF-8 text nor MLIR's bytecode.
        """
        try:
            if path == "-":
                data = sys.stdin.buffer.read()
            else:
                with open(path, "rb") as f:
                    data = f.read()
        except OSError as e:
            self.error(f"cannot open input file '{path}': {e.strerror}")
        return decode(data, "<stdin>" if path == "-" else path)

    @contextmanager
    def errors_of(self, source: Source) -> Iterator[None]:
        """Errors in working on a source are the tool's; diagnostics are of that source unless they name another."""
        try:
            yield
        except DiagnosticError as e:
            e.sources = e.sources or [source]
            raise
        except (TypeError, ValueError) as e:
            self.error(str(e))

    def write(self, path: str, text: str) -> None:
        """Write a file atomically, or for `-` to standard output, with colours at a terminal."""
        if path == "-":
            sys.stdout.write(highlighting.colored(text) if in_color(sys.stdout) else text)
            sys.stdout.flush()
        else:
            self.write_bytes(path, text.encode())

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file atomically, or for `-` to standard output."""
        if path == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
            return
        try:
            if os.path.exists(path) and not os.path.isfile(path):
                with open(path, "wb") as device:
                    device.write(data)
                return
            with tempfile.NamedTemporaryFile("wb", dir=os.path.dirname(path) or ".", delete=False) as f:
                f.write(data)
            # A temporary file is readable for its owner only; the output gets the permissions of any new file.
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(f.name, 0o666 & ~umask)
            os.replace(f.name, path)
        except OSError as e:
            self.error(f"cannot write output file '{path}': {e.strerror}")


def completing() -> bool:
    """Whether a shell has started the tool to complete a command line (argcomplete)."""
    return "_ARGCOMPLETE" in os.environ


def completed_word() -> str:
    """The beginning of the word that a shell completes."""
    return os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0"))].rpartition(" ")[2]


def in_color(stream: TextIO) -> bool:
    """Whether to colour output on a stream: as `--color` says, or else at a terminal unless NO_COLOR is set."""
    if _COLOR.get() != "auto":
        return _COLOR.get() == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_diagnostics(diagnostics: Sequence[Diagnostic], sources: Sequence[Lines]) -> None:
    """Print diagnostics with their source lines to standard error, after what standard output has so far."""
    try:
        sys.stdout.flush()
    finally:
        for d in diagnostics:
            if _FORMAT.get() == "sarif":
                _SARIF.append(diagnostic_formats.sarif_result(d))
            else:
                is_text = _FORMAT.get() == "text"
                text = d.render(sources, in_color(sys.stderr)) if is_text else diagnostic_formats.json_line(d)
                print(text, file=sys.stderr)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning that is at no position."""
    if _FORMAT.get() == "text":
        print(f"warning: {message}", file=sys.stderr)
    else:
        print_diagnostics([Diagnostic("warning", str(message), Position(""))], ())


def _end_diagnostics() -> None:
    if _FORMAT.get() == "sarif":
        print(diagnostic_formats.sarif_log(os.path.basename(sys.argv[0]), _SARIF), end="", file=sys.stderr)


class _LoadPassPlugin(argparse.Action):
    """Load a file with passes at once, so that options after it can name them."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, path: Any, *_: object) -> None:
        pass_plugins.load_pass_plugin(path)


class _Color(argparse.Action):
    """Store the value of `--color` at once, so that it applies to errors in later arguments."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: Any, *_: object) -> None:
        _COLOR.set(value)
        setattr(namespace, self.dest, value)


class _Format(argparse.Action):
    """Store the value of `--diagnostics-format`."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: Any, *_: object) -> None:
        _FORMAT.set(value)
        setattr(namespace, self.dest, value)


class _Version(argparse.Action):
    """Print the version. It is looked up only here, because this takes long."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"{parser.prog} {metadata.version('xegpu-py')}")
        parser.exit()


def process(parser: Parser, args: argparse.Namespace, convert: Convert) -> list[Output] | None:
    """Print diagnostics and return the output for each piece of the input; None if one failed."""
    source = parser.read(args.file)
    pieces = list(source.split(args.input_split_marker)) if args.split_input_file else [source]
    outputs = [_process(piece, args.verify_diagnostics, convert) for piece in pieces]
    return None if None in outputs else [output or "" for output in outputs]


def _process(source: Source, expects: bool, convert: Convert) -> Output | None:
    arose: list[Diagnostic] = []
    output: Output = ""
    sources: list[Lines] = [source]
    try:
        output = convert(source, arose)
    except DiagnosticError as e:
        arose += e.diagnostics
        sources += e.sources
    if expects:
        arose = mismatches(source, arose)
    print_diagnostics(arose, sources)
    return None if any(d.severity == "error" for d in arose) else output


def finish(parser: Parser, args: argparse.Namespace, outputs: list[Output] | None) -> int:
    """Write the result of `process`, texts or one binary file, and return the exit status."""
    if outputs is None:
        return 1
    if not args.verify_diagnostics or any(outputs):
        for output in outputs:
            if isinstance(output, bytes):
                parser.write_bytes(args.output, output)
                return 0
        marker = args.output_split_marker
        parser.write(args.output, (f"{marker}\n" if marker else "").join(map(str, outputs)))
    return 0


def _open_missing_streams() -> None:
    """Open the standard streams that the parent process closed, so that reading and writing fail with an OSError."""
    for name, mode, flags in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode))  # noqa: SIM115


def main(run: Callable[[Sequence[str]], int]) -> None:
    """Run a tool with the process's arguments, and exit."""
    watch_steps(working_child.step_of_child())
    _open_missing_streams()
    for word in sys.argv[1:]:
        if word != os.fsencode(word).decode(errors="replace"):
            print(f"error: argument {word!a} is not valid UTF-8", file=sys.stderr)
            sys.exit(BAD_USAGE)
    warnings.showwarning = _show_warning
    try:
        try:
            interrupts.raise_at_interrupt()
            status = run(sys.argv[1:])
            sys.stdout.flush()
        except DiagnosticError as e:
            print_diagnostics(e.diagnostics, e.sources)
            status = 1
        _end_diagnostics()
    except OSError as e:
        # A reader that closes the pipe, as `head` does, needs no more output.
        if not isinstance(e, BrokenPipeError):
            print(f"error: cannot write to {e.filename or 'standard output'}: {e.strerror}", file=sys.stderr)
        # Without this Python reports the error again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except MemoryError as e:
        print(f"error: the memory does not suffice{f': {e}' if str(e) else ''}", file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        status = interrupts.STATUS
    interrupts.end_at_interrupt()
    # The interpreter collects garbage at its end, which would look at all objects several times.
    gc.freeze()
    sys.exit(status)
