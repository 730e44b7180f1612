"""`xegpu-opt`: read a module, run passes on it, print it. Behaves like mlir-opt."""

import argparse
import functools
import inspect
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlir import ir

from xegpu_py import upstream
from xegpu_py.dialects.xegpu.spelling import Spelling
from xegpu_py.did_you_mean import closest
from xegpu_py.ir.context import DIALECTS, UPSTREAM, Context, dialects, dump
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Source
from xegpu_py.ir.module import Module, parse_source, print_op
from xegpu_py.ir.pass_plugins import plugin_errors
from xegpu_py.ir.passes import (
    ROOT,
    Listener,
    Nest,
    Registered,
    Runner,
    Step,
    expanded,
    flag_step,
    near,
    parse_pipeline,
    pass_named,
    pass_names,
    registered,
    step_problem,
    upstream_options,
    upstream_pass_names,
)
from xegpu_py.ir.pending_functions import PendingFunctions
from xegpu_py.ir.upstream_pass_names import UPSTREAM_PASSES
from xegpu_py.tools import driver
from xegpu_py.upstream import import_upstream, read_kernels, recognized

LEVELS = ("subgroup", "lane", "workgroup")
"""The levels of upstream's kernels."""


def argument_parser() -> driver.Parser:
    """The parser of the tool's arguments."""
    description = "Read an MLIR module, verify it, run passes on it, and print it."
    examples = [
        "xegpu-opt kernel.mlir",
        "xegpu-opt gemm.mlir --xetile-to-visa-pipeline -o gemm.visa.mlir",
        "xegpu-opt kernel.mlir --pass-pipeline='builtin.module(cse,xegpu-dce)'",
    ]
    parser = driver.Parser("xegpu-opt", "[FILE]", description, examples, _passes_help)
    parser.add_text_arguments()
    add, switch = parser.add_argument, parser.add_switch
    add("--pass-pipeline", metavar="TEXT", help="textual pipeline, such as 'builtin.module(cse,xegpu-dce)'")
    parser.add_pass_plugins()
    add("--verify-each", action=argparse.BooleanOptionalAction, default=True, help="verify the IR after each pass")
    add(
        "--xegpu-spelling",
        dest="spelling",
        choices=[s.value for s in Spelling],
        help="print kernels of XeGPU in the RFC's spelling, or in upstream MLIR's of LLVM 22.1.8 (default: that of the "
        "input; after passes of this project, the RFC's)",
    )
    switch("--import-upstream", "read upstream MLIR's XeGPU or XeVM, and translate its kernels to xegpu and xetile")
    switch("--export-upstream", "the same as --xegpu-spelling=upstream")
    add(
        "--via",
        choices=("upstream",),
        help="lower kernels by upstream's passes in stock mlir-opt, and import the result",
    )
    add("--level", choices=LEVELS, help="level of imported kernels (default: detected from their ops)")
    switch("--allow-unregistered-dialect", "accept ops of unknown dialects in generic form")
    switch("--mlir-print-op-generic", "print generic form, which stock mlir-opt --irdl-file reads")
    switch("--xegpu-print-defaults", "also print attributes that have their default value")
    switch("--mlir-print-debuginfo", "print locations")
    switch("--mlir-print-local-scope", "print attributes, types and locations where they are used, without aliases")
    add(
        "--mlir-elide-elementsattrs-if-larger",
        metavar="N",
        type=int,
        help="print constants of more than N elements as __elided__",
    )
    switch("--mlir-print-ir-before-all", "print the IR before each pass")
    switch("--mlir-print-ir-after-all", "print the IR after each pass")
    names: dict[str, Any] = {"metavar": "PASS[,PASS]", "type": _passes, "default": frozenset()}
    add("--mlir-print-ir-before", help="print the IR before these passes", **names)
    add("--mlir-print-ir-after", help="print the IR after these passes", **names)
    switch("--mlir-print-ir-after-change", "after passes print the IR only if it changed")
    switch("--mlir-print-ir-after-failure", "print the IR on which a pass failed")
    switch("--mlir-print-ir-module-scope", "print the whole module whenever IR is printed")
    switch("--remarks", "print remarks on ops for which passes generate slow code")
    switch("--mlir-timing", "print the time of each step")
    switch("--mlir-disable-threading", "accepted for compatibility: passes always run on one thread")
    switch("--dump-pass-pipeline", "print the pipeline before it runs")
    switch("--emit-bytecode", "write MLIR's bytecode, which all tools read")
    switch("--verify-roundtrip", "check that the module reads back the same from its text and from bytecode")
    reproducer: dict[str, Any] = {"metavar": "FILE", "default": None}
    add(
        "--mlir-pass-pipeline-crash-reproducer",
        help="if a pass fails or ends the process, leave the module and the pipeline in FILE",
        **reproducer,
    )
    switch("--mlir-pass-pipeline-local-reproducer", "leave the module before the pass that fails, and this pass only")
    switch("--run-reproducer", "run the pipeline that a reproducer holds")
    switch("--list-passes", "print the names of all passes, then of those of MLIR, and exit")
    add("--dump-irdl", metavar="DIALECT", choices=DIALECTS, help="print a dialect's IRDL definition and exit")
    switch("--show-dialects", "print the known dialects and exit")
    add("--help-pass", action=_HelpPass, metavar="NAME", help="print the documentation and options of a pass and exit")
    if driver.completing():
        _complete_passes(parser)
    return parser


def _complete_passes(parser: driver.Parser) -> None:
    """Add what a shell completes: the passes, their options after `=`, and their names as values of other options."""
    from argcomplete.completers import ChoicesCompleter

    flag, given, _ = driver.completed_word().partition("=")
    summaries = {name: _summary(cls) for name, cls in registered().items()}
    for name, cls in registered().items():
        if given and flag == f"--{name}":
            parser.add_argument(flag, choices=[f"{option}=" for option in cls.options()])
        else:
            parser.add_switch(f"--{name}", summaries[name])
    for action in parser._actions:
        if action.dest in ("help_pass", "mlir_print_ir_before", "mlir_print_ir_after"):
            action.completer = ChoicesCompleter(summaries)  # type: ignore[attr-defined]


def _summary(cls: type[Registered]) -> str:
    """The first sentence of a pass's documentation."""
    return " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())


def _passes_help() -> str:
    """The summary of each pass, one line each at a terminal of 80 columns."""
    classes = registered()
    width = max(map(len, classes)) + 2
    out = ["passes ('--NAME' or '--NAME=\"OPTION=VALUE ...\"'; --help-pass=NAME explains one):"]
    out += [f"  {name:{width}}{_summary(cls)}" for name, cls in classes.items()]
    out += ["", "Passes of upstream MLIR are flags too, except those for its C++ xegpu dialect."]
    return "\n".join(out)


class _HelpPass(argparse.Action):
    """Print the documentation and options of a pass, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, name: Any, *_: object) -> None:
        name = name.removeprefix("--")
        cls = pass_named(name)
        if cls is None:
            options_text = upstream_options(name)
            if options_text is None:
                parser.error(f"there is no pass '{name}'{near(name)}")
            print(f"--{name}\n\nA pass of MLIR: https://mlir.llvm.org/docs/Passes/#-{name}")
            print("\noptions and defaults:\n  " + options_text if options_text else "\nIt has no options.")
            parser.exit()
        print(f"--{name}\n\n{inspect.cleandoc(cls.__doc__ or '')}")
        options = cls.options().items()
        if options:
            print("\noptions:")
        for option, f in options:
            print(f"  {option}={getattr(f.type, '__name__', f.type)} (default {f.default!r})")
        parser.exit()


def _pipeline(flags: Sequence[str], text: str | None, parser: driver.Parser) -> Nest:
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
            known = [option for action in parser._actions for option in action.option_strings]
            passes = [f"--{pass_name}" for pass_name in (*pass_names(), *UPSTREAM_PASSES)]
            similar = "" if pass_named(name[2:]) else closest(name, [*known, *passes], 0.8)
            if similar in known:
                parser.error(f"unknown pass '{name[2:]}'; there is an option {similar}")
            unknown = str(e) == f"unknown pass '{name[2:]}'"
            parser.error(f"{e}{'; --load-pass-plugin=FILE.py loads passes of your own' if unknown else ''}")
    return Nest(ROOT, tuple(items))


@dataclass
class _IrPrinter(Listener):
    """Prints IR around passes to standard error, as mlir-opt does."""

    before_all: bool
    after_all: bool
    before_passes: frozenset[str]
    after_passes: frozenset[str]
    after_change: bool
    after_failure: bool
    module_scope: bool
    flags: dict[str, Any]
    bodies: PendingFunctions = field(default_factory=PendingFunctions)
    was: str = ""

    def before(self, step: Step, op: ir.Operation) -> None:
        if self.before_all or step.name in self.before_passes:
            self._print(f"Before {step.name}", op)
        if self.after_change and self._is_shown_after(step):
            self.was = self._text(op)

    def after(self, step: Step, op: ir.Operation, seconds: float) -> None:
        if self._is_shown_after(step) and not (self.after_change and self._text(op) == self.was):
            self._print(f"After {step.name}", op)

    def _is_shown_after(self, step: Step) -> bool:
        return self.after_all or step.name in self.after_passes

    def _text(self, op: ir.Operation) -> str:
        self.bodies.build()
        return print_op(op, **self.flags)

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
        print(f"// -----// IR Dump {when}{where} //----- //\n{self._text(shown)}\n", file=sys.stderr)


_REPRODUCER = """{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "{pipeline}",
      disable_threading: true,
      verify_each: {verify_each}
    }}
  }}
#-}}
"""
"""The end of a reproducer, in the form of mlir-opt (MLIR's Pass Infrastructure, "Crash and Failure Reproduction")."""

_REPRODUCED = re.compile(r'mlir_reproducer\s*:\s*\{\s*pipeline\s*:\s*"([^"]*)"')


@dataclass
class _Reproducer(Listener):
    """Keeps a file with the module and the pipeline that is run on it, until the pipeline has ended well.

    The file is written before passes run, since what MLIR does not expect ends the process.
    """

    parser: driver.Parser
    path: str
    local: bool
    verify_each: bool
    bodies: PendingFunctions = field(default_factory=PendingFunctions)

    def before(self, step: Step, op: ir.Operation) -> None:
        if self.local:
            anchors, root = [op.name], op
            while root.parent is not None:
                root = root.parent.operation
                anchors.append(root.name)
            pipeline = functools.reduce(lambda text, anchor: f"{anchor}({text})", anchors, str(step))
            self.bodies.build()
            self.write(root, pipeline)

    def write(self, root: ir.Operation, pipeline: str) -> None:
        """Write the file."""
        metadata = _REPRODUCER.format(pipeline=pipeline, verify_each=str(self.verify_each).lower())
        self.parser.write(self.path, print_op(root, debuginfo=True) + metadata)


@dataclass
class _Timer(Listener):
    """Adds up the time of each step."""

    rows: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, seconds: float) -> None:
        """Count `seconds` for the row `name`."""
        self.rows[name] = self.rows.get(name, 0.0) + seconds

    def after(self, step: Step, op: ir.Operation, seconds: float) -> None:
        self.add(step.name, seconds)

    def verified(self, seconds: float) -> None:
        self.add("Verifier", seconds)

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
    """One run of the tool."""

    args: argparse.Namespace
    pipeline: Nest
    printer: _IrPrinter
    timer: _Timer
    reproducer: _Reproducer | None

    def convert(self, source: Source, arose: list[Diagnostic]) -> driver.Output:
        """The text or bytecode that a source gives."""
        module = self._parse(source)
        if self.args.verify_roundtrip:
            module.check_roundtrip()
        pipeline = self.pipeline
        if self.args.run_reproducer:
            found = _REPRODUCED.search(source.text)
            if found is None:
                raise source.error(0, "is not a reproducer: it has no resource 'mlir_reproducer' with a pipeline")
            pipeline = parse_pipeline(found[1])
        if self._changes_kernels(pipeline):
            module = recognized(module)
        if self.args.remarks:
            arose += module.remarks
        listeners = [self.printer, self.timer, *([self.reproducer] if self.reproducer else [])]
        self.printer.bodies = module.bodies
        if self.reproducer:
            self.reproducer.bodies = module.bodies
            self.reproducer.write(module.outline, str(pipeline))
        runner = Runner(self.args.verify_each, listeners, arose, arose if self.args.remarks else None)
        try:
            with plugin_errors():
                runner.run(pipeline, module)
        except DiagnosticError as e:
            if self.reproducer:
                note = Diagnostic(
                    "note", f"reproducer generated at '{self.reproducer.path}'", e.diagnostics[-1].position
                )
                e.diagnostics.append(note)
            raise
        if self.reproducer:
            os.unlink(self.reproducer.path)
        return module.bytecode() if self.args.emit_bytecode else self._print(module)

    def _changes_kernels(self, pipeline: Nest) -> bool:
        """Whether kernels in upstream's dialects become kernels in those of this project."""
        return self.args.spelling == Spelling.RFC or _has_own_passes(pipeline)

    def _parse(self, source: Source) -> Module:
        start = time.perf_counter()
        imports = self.args.import_upstream or self.args.via or self.args.level
        context = Context.from_pool()
        context.allow_unregistered_dialects = self.args.allow_unregistered_dialect
        try:
            if imports:
                return import_upstream(source, level=self.args.level, via=self.args.via, context=context)
            if self._changes_kernels(self.pipeline):
                return read_kernels(source, context)
            return parse_source(source, context=context)
        finally:
            self.timer.add("Parser", time.perf_counter() - start)

    def _print(self, module: Module) -> str:
        start = time.perf_counter()
        module.bodies.build()
        self.timer.add("Ops of vISA", time.perf_counter() - start)
        start = time.perf_counter()
        if self.args.spelling == Spelling.UPSTREAM:
            return upstream.export_upstream(module)
        text = module.text(**self.printer.flags)
        self.timer.add("Output", time.perf_counter() - start)
        return text if text.endswith("\n") else text + "\n"


def _has_own_passes(pipeline: Nest) -> bool:
    """Whether a pipeline has passes of this project, which are written for kernels in its dialects."""
    return any(_has_own_passes(p) if isinstance(p, Nest) else pass_named(p.name) is not None for p in pipeline.items)


def _passes(text: str) -> frozenset[str]:
    """The names of passes in a list."""
    names = frozenset(filter(None, text.split(",")))
    problems = filter(None, map(step_problem, map(Step, sorted(names))))
    for problem in problems:
        raise argparse.ArgumentTypeError(problem)
    return names


def _parse(parser: driver.Parser, argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The tool's arguments, and the flags of passes."""
    known = {option for action in parser._actions for option in action.option_strings}
    # Argparse takes an unknown flag for a file if there are spaces in it, such as those between a pass's options.
    words = [
        word.replace(" ", "\0") if word.startswith("--") and word.partition("=")[0] not in known else word
        for word in parser.normalized(argv)
    ]
    args, flags = parser.parse_known_args(words)
    return args, [flag.replace("\0", " ") for flag in flags]


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args, flags = _parse(parser, argv)
    if args.dump_irdl:
        parser.write(args.output, "".join(dump(d) for d in dialects([args.dump_irdl])))
        return 0
    if args.show_dialects:
        parser.write(args.output, f"Available Dialects: {', '.join(sorted({*UPSTREAM, *DIALECTS}))}\n")
        return 0
    if args.list_passes:
        parser.write(args.output, "".join(f"{name}\n" for name in (*registered(), *upstream_pass_names())))
        return 0
    if args.export_upstream:
        args.spelling = Spelling.UPSTREAM
    pipeline = _pipeline(flags, args.pass_pipeline, parser)
    if args.dump_pass_pipeline:
        whole = expanded(pipeline)
        print(f"Pass Manager with {len(whole.items)} passes:\n{whole}", file=sys.stderr)
    printer = _IrPrinter(
        args.mlir_print_ir_before_all,
        args.mlir_print_ir_after_all,
        args.mlir_print_ir_before,
        args.mlir_print_ir_after,
        args.mlir_print_ir_after_change,
        args.mlir_print_ir_after_failure,
        args.mlir_print_ir_module_scope,
        {
            "generic": args.mlir_print_op_generic,
            "debuginfo": args.mlir_print_debuginfo,
            "local_scope": args.mlir_print_local_scope,
            "elide": args.mlir_elide_elementsattrs_if_larger,
            "print_defaults": args.xegpu_print_defaults,
        },
    )
    if args.run_reproducer and pipeline.items:
        parser.error("--run-reproducer runs the pipeline of its input; no other passes can be given")
    if args.emit_bytecode and args.split_input_file:
        parser.error("--emit-bytecode writes one module; --split-input-file reads several")
    if args.emit_bytecode and args.output == "-" and sys.stdout.isatty():
        parser.error("bytecode is not written to a terminal; name a file with -o")
    reproducer = None
    if args.mlir_pass_pipeline_crash_reproducer:
        local = args.mlir_pass_pipeline_local_reproducer
        reproducer = _Reproducer(parser, args.mlir_pass_pipeline_crash_reproducer, local, args.verify_each)
    session = _Session(args, pipeline, printer, _Timer(), reproducer)
    texts = driver.process(parser, args, session.convert)
    if args.mlir_timing:
        print(session.timer.report(), file=sys.stderr)
    return driver.finish(parser, args, texts)


def main() -> None:
    """Entry point of the command `xegpu-opt`."""
    driver.main(run)


if __name__ == "__main__":
    main()
