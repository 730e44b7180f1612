"""`xegpu-opt`: read a module, run passes on it, print it. The manners are mlir-opt's."""

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from mlir import ir

from xegpu_py.ir.context import DIALECTS, UPSTREAM, Context, dialects
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError
from xegpu_py.ir.expected import mismatches
from xegpu_py.ir.irdl import dump
from xegpu_py.ir.module import Module, parse_source, print_op
from xegpu_py.ir.passes import (
    ROOT,
    Listener,
    Nest,
    Runner,
    Step,
    flag_step,
    parse_pipeline,
    registered,
)
from xegpu_py.ir.source import Source, decode_utf8

SEPARATOR = "// -----\n"


class _Parser(argparse.ArgumentParser):
    """An argument parser in which every error exits with status 1, as in MLIR's tools."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: error: {message}\n")


class _Version(argparse.Action):
    """Prints the version. Looking it up takes longer than all other imports of this file."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"{parser.prog} {version('xegpu-py')}")
        parser.exit()


def _arguments() -> _Parser:
    parser = _Parser(
        prog="xegpu-opt",
        description="Read an MLIR module, verify it, run passes on it, and print it.",
        epilog=_passes_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", default="-", help="input file, '-' (default) for standard input")
    add("-o", dest="output", metavar="FILE", default="-", help="output file, '-' (default) for standard output")
    add("--pass-pipeline", metavar="TEXT", help="textual pipeline, such as 'builtin.module(cse,xegpu-dce)'")
    switch = argparse.BooleanOptionalAction
    _switch(parser, "--split-input-file", "process the pieces between '// -----' lines one by one")
    _switch(parser, "--verify-diagnostics", "check diagnostics against 'expected-error' and like comments")
    add("--verify-each", action=switch, default=True, help="verify the IR after each pass")
    _switch(parser, "--allow-unregistered-dialect", "accept ops of unknown dialects in generic form")
    _switch(parser, "--mlir-print-op-generic", "print generic form, as stock mlir-opt --irdl-file reads it")
    _switch(parser, "--xegpu-print-defaults", "print attributes that have their default value too")
    _switch(parser, "--mlir-print-debuginfo", "print locations")
    _switch(parser, "--mlir-print-ir-before-all", "print the IR before each pass")
    _switch(parser, "--mlir-print-ir-after-all", "print the IR after each pass")
    add("--mlir-print-ir-before", metavar="PASS[,PASS]", default="", help="print the IR before these passes")
    add("--mlir-print-ir-after", metavar="PASS[,PASS]", default="", help="print the IR after these passes")
    _switch(parser, "--mlir-print-ir-after-failure", "print the IR on which a pass failed")
    _switch(parser, "--mlir-print-ir-module-scope", "print the whole module where IR is printed")
    _switch(parser, "--mlir-timing", "print how long each step took")
    _switch(parser, "--mlir-disable-threading", "accepted and without effect: passes run on one thread")
    _switch(parser, "--dump-pass-pipeline", "print the pipeline that runs")
    add("--dump-irdl", metavar="DIALECT", choices=DIALECTS, help="print a dialect's IRDL definition and exit")
    _switch(parser, "--show-dialects", "print the dialects known and exit")
    add("--version", action=_Version, nargs=0, help="print the version and exit")
    return parser


def _switch(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="store_true", help=text)


def _passes_help() -> str:
    out = ["passes, each also a flag '--NAME' or '--NAME=\"OPTION=VALUE ...\"':"]
    for name, cls in registered().items():
        lines = (cls.__doc__ or "").strip().split("\n")
        out += ["", f"  --{name}", *(f"    {line.removeprefix('    ')}".rstrip() for line in lines)]
        for option, f in cls.options().items():
            out.append(f"    {option}: {getattr(f.type, '__name__', f.type)} = {f.default}")
    out += ["", "Every pass of upstream MLIR is available too, but those for its C++ xegpu dialect."]
    return "\n".join(out)


_SINGLE_DASH = re.compile(r"-[a-z][\w-]+(?:=.*)?\Z", re.DOTALL)
_BOOLEAN = re.compile(r"(--[\w-]+)=(true|false)\Z")


def _normalize(argv: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """LLVM's spellings in those of argparse: one dash for two, and switches with `=true` or `=false`."""
    switches = {s for a in parser._actions if a.nargs == 0 for s in a.option_strings}
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


def _pipeline(flags: Sequence[str], text: str | None, parser: argparse.ArgumentParser) -> Nest:
    if text is not None:
        if flags:
            parser.error(f"--pass-pipeline cannot be used with single pass flags such as {flags[0]}")
        return parse_pipeline(text)
    items: list[Step | Nest] = []
    for flag in flags:
        name, _, options = flag.partition("=")
        if not name.startswith("--"):
            parser.error(f"unexpected argument '{flag}'")
        try:
            items.append(flag_step(name[2:], options.strip("'\"")))
        except ValueError as e:
            parser.error(str(e))
    return Nest(ROOT, tuple(items))


@dataclass
class _IrPrinter(Listener):
    """Prints IR around passes to standard error, as mlir-opt does."""

    before_all: bool
    after_all: bool
    before_passes: frozenset[str]
    after_passes: frozenset[str]
    after_failure: bool
    module_scope: bool
    debuginfo: bool

    def before(self, step: Step, op: ir.Operation) -> None:
        if self.before_all or step.name in self.before_passes:
            self._print(f"Before {step.name}", op)

    def after(self, step: Step, op: ir.Operation, seconds: float) -> None:
        if self.after_all or step.name in self.after_passes:
            self._print(f"After {step.name}", op)

    def failed(self, step: Step, op: ir.Operation) -> None:
        if self.after_failure:
            self._print(f"After {step.name} Failed", op)

    def _print(self, when: str, op: ir.Operation) -> None:
        where = ""
        if op.name != ROOT:
            symbol = op.attributes["sym_name"].value if "sym_name" in op.attributes else ""
            where = f" ('{op.name}' operation{f': @{symbol}' if symbol else ''})"
        shown = op
        while self.module_scope and shown.parent is not None:
            shown = shown.parent.operation
        text = print_op(shown, debuginfo=self.debuginfo)
        print(f"// -----// IR Dump {when}{where} //----- //\n{text}\n", file=sys.stderr)


@dataclass
class _Timer(Listener):
    """Adds up the time of each step."""

    rows: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, seconds: float) -> None:
        """Count `seconds` for the row `name`."""
        self.rows[name] = self.rows.get(name, 0.0) + seconds

    def after(self, step: Step, op: ir.Operation, seconds: float) -> None:
        self.add(step.name, seconds)

    def report(self) -> str:
        """The table."""
        total = sum(self.rows.values())
        line = f"===-{'-' * 73}-==="
        title = "... Execution time report ...".center(len(line)).rstrip()
        out = [
            line,
            title,
            line,
            f"  Total Execution Time: {total:.4f} seconds",
            "",
            "  ----Wall Time----  ----Name----",
        ]
        for name, seconds in [*self.rows.items(), ("Total", total)]:
            out.append(f"  {seconds:8.4f} ({100 * seconds / (total or 1):5.1f}%)  {name}")
        return "\n".join(out)


@dataclass
class _Session:
    """One run of the tool: processes sources, and collects texts and diagnostics."""

    args: argparse.Namespace
    pipeline: Nest
    printer: _IrPrinter
    timer: _Timer
    failed: bool = False

    def process(self, source: Source) -> str:
        """The text that a source gives; empty if it failed."""
        arose: list[Diagnostic] = []
        sources = [source]
        text = ""
        runner = Runner(self.args.verify_each, (self.printer, self.timer))
        try:
            module = self._parse(source)
            runner.run(self.pipeline, module)
            text = self._print(module)
        except DiagnosticError as e:
            arose += e.diagnostics
        arose = [*runner.warnings, *arose]
        if self.args.verify_diagnostics:
            arose = mismatches(source, arose)
        for d in arose:
            print(d.render(sources), file=sys.stderr)
        self.failed |= any(d.severity == "error" for d in arose)
        return text

    def _parse(self, source: Source) -> Module:
        start = time.perf_counter()
        context = Context()
        context.allow_unregistered_dialects = self.args.allow_unregistered_dialect
        try:
            return parse_source(source, context=context)
        finally:
            self.timer.add("Parser", time.perf_counter() - start)

    def _print(self, module: Module) -> str:
        start = time.perf_counter()
        text = module.text(
            generic=self.args.mlir_print_op_generic,
            debuginfo=self.args.mlir_print_debuginfo,
            print_defaults=self.args.xegpu_print_defaults,
        )
        self.timer.add("Output", time.perf_counter() - start)
        return text if text.endswith("\n") else text + "\n"


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split(",")))


def _read(path: str, parser: argparse.ArgumentParser) -> Source:
    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as f:
                data = f.read()
    except OSError as e:
        parser.error(f"cannot open input file '{path}': {e.strerror}")
    return decode_utf8(data, "<stdin>" if path == "-" else path)


def _write(path: str, text: str, parser: argparse.ArgumentParser) -> None:
    if path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    from tempfile import NamedTemporaryFile

    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "w", encoding="utf-8") as device:
                device.write(text)
            return
        with NamedTemporaryFile("w", encoding="utf-8", dir=os.path.dirname(path) or ".", delete=False) as f:
            f.write(text)
        # A temporary file is for its owner only; the output is as readable as any new file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(f.name, 0o666 & ~umask)
        os.replace(f.name, path)
    except OSError as e:
        parser.error(f"cannot write output file '{path}': {e.strerror}")


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = _arguments()
    args, flags = parser.parse_known_args(_normalize(argv, parser))
    if args.dump_irdl:
        _write(args.output, "".join(dump(d) for d in dialects([args.dump_irdl])), parser)
        return 0
    if args.show_dialects:
        _write(args.output, f"Available Dialects: {', '.join(sorted({*UPSTREAM, *DIALECTS}))}\n", parser)
        return 0
    pipeline = _pipeline(flags, args.pass_pipeline, parser)
    if args.dump_pass_pipeline:
        print(f"Pass Manager with {len(pipeline.items)} passes:\n{pipeline}", file=sys.stderr)
    printer = _IrPrinter(
        args.mlir_print_ir_before_all,
        args.mlir_print_ir_after_all,
        _names(args.mlir_print_ir_before),
        _names(args.mlir_print_ir_after),
        args.mlir_print_ir_after_failure,
        args.mlir_print_ir_module_scope,
        args.mlir_print_debuginfo,
    )
    session = _Session(args, pipeline, printer, _Timer())
    source = _read(args.file, parser)
    pieces = source.split() if args.split_input_file else [source]
    texts = [session.process(piece) for piece in pieces]
    if args.mlir_timing:
        print(session.timer.report(), file=sys.stderr)
    if session.failed:
        return 1
    if not args.verify_diagnostics or any(texts):
        _write(args.output, SEPARATOR.join(texts), parser)
    return 0


def main() -> None:
    """Entry point of the command `xegpu-opt`."""
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


if __name__ == "__main__":
    main()
