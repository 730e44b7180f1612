"""`xegpu-run`: run a kernel on arrays, or a program with its host code, without a GPU."""

import argparse
import io
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from xegpu_py.tools import driver

from xegpu_py.compiled import compile as compile_kernel
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.source import Source
from xegpu_py.kernel import CHECKS, Kernel, choose
from xegpu_py.numerics.dpas import MODELS
from xegpu_py.programs.program import read, run_source
from xegpu_py.runtime.arguments import FORMS, parse_argument
from xegpu_py.runtime.launch import ENGINES, Grid, Statistics
from xegpu_py.runtime.trace import Tracer, statistics_table, summary
from xegpu_py.target import DEFAULT, TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.program import Program

REFERENCE: Literal["reference"] = "reference"
"""The engine that evaluates a module's ops, and lowers nothing."""

LANES = 16
"""Work items of a subgroup of what upstream's passes make."""

_ASSEMBLY = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*\.(?:version|kernel)\b", re.DOTALL)
"""How vISA assembly begins; all else is MLIR."""


def dimensions(text: str) -> tuple[int, ...]:
    """A grid or block, one to three positive numbers with commas between them."""
    try:
        values = tuple(int(word) for word in text.split(","))
    except ValueError:
        values = ()
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not one to three positive numbers, such as 4,4,1")
    return values


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def _thread(text: str) -> tuple[tuple[int, int, int], int]:
    group, _, thread = text.partition(":")
    try:
        x, y, z = (*map(int, group.split(",")), 0, 0)[:3]
        return (x, y, z), int(thread or 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no thread, such as 0,0,0:0 (workgroup:subgroup)") from None


def _output(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=FILE.npy")
    return name, path


def argument_parser() -> driver.Parser:
    """The parser of the tool's arguments."""
    parser = driver.Parser(
        "xegpu-run",
        "FILE [ARG...]",
        "Run a kernel on arrays, and write what it computes; or run a program with its host code.",
        [
            "xegpu-run gemm.mlir randn:bf16:512x512 randn:bf16:512x512 zeros:f32:512x512 --grid 2,2 --block 32",
            "xegpu-run add.mlir a.npy b.npy zeros:f32:64x64 --grid 8,4 -o 2=sum.npy --check=races",
            "xegpu-run program.mlir -e main",
        ],
        f"An ARG is {FORMS}.\nThey are in the order of the kernel's arguments. NAME is the name of an input of "
        "vISA assembly,\nor the number of an argument of MLIR, from 0.",
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="the kernel: MLIR, which is lowered, or vISA assembly; '-' for standard input")
    add("args", metavar="ARG", nargs="*", default=[], help="the kernel's arguments, see below")
    add("--kernel", metavar="NAME", help="which kernel of the file; not needed where there is one")
    add(
        "-e",
        "--entry",
        metavar="FUNCTION",
        help="run the program that FILE is: call a host function, and print what it prints. It has no arguments; an "
        "integer that it gives is the exit status",
    )
    add("--import-upstream", action="store_true", help="FILE has kernels in the dialects of upstream MLIR or IMEX")
    add(
        "--via",
        choices=("upstream",),
        help="let upstream's own passes lower the kernels of FILE, in its dialect or ours, by stock mlir-opt, and run "
        "what they make of them: kernels of work items, 16 a subgroup (which is the default of --block then)",
    )
    add("--seed", type=int, metavar="N", default=0, help="of a program's random numbers (default 0)")
    add("--grid", metavar="X,Y,Z", type=dimensions, help="workgroups (default 1)")
    add("--block", metavar="X,Y,Z", type=dimensions, help="work items of a workgroup (default 1)")
    add("--target", choices=TARGETS, default=DEFAULT, help=f"the GPU (default {DEFAULT})")
    add("--model", choices=MODELS, default="fma", help="how dpas rounds (default fma)")
    add("--registers", type=int, metavar="N", help="registers of a thread: 128 (default) or 256")
    add("--strict-grf", action="store_true", help="refuse a kernel whose variables do not fit the registers")
    add(
        "--check",
        metavar="WHAT",
        action="append",
        default=[],
        choices=CHECKS,
        help="look for: memory (accesses out of bounds, always on), uninit (reads of registers never written), "
        "races (accesses of one place by two threads that nothing orders)",
    )
    add(
        "--engine",
        choices=(*ENGINES, REFERENCE),
        help="what runs the kernel: jit (native code, the default), interpreter (the golden model, the default with "
        "--check=uninit and --trace), both, compared in every byte, or reference (the ops, before "
        "any pass)",
    )
    add(
        "--threads",
        type=_positive,
        metavar="N",
        help="threads that the JIT runs workgroups on (default one a processor)",
    )
    add(
        "--deterministic", action="store_true", help="run workgroups one after the other, so that atomics have an order"
    )
    add(
        "--cache",
        metavar="FOLDER",
        help="where native code is kept between runs, or 'off' (default $XEGPU_PY_CACHE, or else among the user's "
        "caches)",
    )
    add(
        "-o",
        dest="outputs",
        metavar="NAME=FILE.npy",
        type=_output,
        action="append",
        default=[],
        help="write an argument's array after the run; may be given several times",
    )
    add("--print", dest="shown", metavar="NAME", action="append", default=[], help="print an argument's array")
    add("--remarks", action="store_true", help="print what the lowering says of code that is right, but slow")
    add("--stats", action="store_true", help="print what ran, what was moved, and the register pressure")
    add(
        "--trace",
        metavar="X,Y,Z:T",
        type=_thread,
        nargs="?",
        const=((0, 0, 0), 0),
        help="print each instruction of a thread with the registers that it changes (default 0,0,0:0)",
    )
    return parser


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `xegpu_py.compile`."""
    if args.engine == REFERENCE:
        return {"engine": REFERENCE, "model": args.model}
    return {
        "target": args.target,
        "model": args.model,
        "check": args.check,
        "registers": args.registers,
        "strict_grf": args.strict_grf,
        "engine": "interpreter" if args.trace else args.engine,
        "threads": 1 if args.deterministic else args.threads,
        "cache": args.cache,
    }


def _kernel(
    source: Source, args: argparse.Namespace, arguments: Sequence[Any]
) -> tuple[Kernel | None, Callable[..., Statistics | None], list[str]]:
    """The kernel, None if it is not lowered; what launches it, and the names of its arguments."""
    options = _options(args)
    if args.engine == REFERENCE:
        evaluated = compile_kernel(read(source, args.imported, Context()), args.kernel, **options)
        return None, evaluated, [str(i) for i in range(len(evaluated.types))]
    if _ASSEMBLY.match(source.text):
        kernel = Kernel(choose(assembly.read(source), args.kernel), source=source, **options)
        return kernel, kernel, [i.var.name for i in kernel.program.arguments]
    compiled = compile_kernel(read(source, args.imported, Context()), args.kernel, **options)
    compiled = compiled.version_for(arguments, args.grid)
    if args.remarks:
        driver.print_diagnostics(compiled.remarks, [source])
    return compiled.kernel, compiled, [str(i) for i in range(len(compiled.types))]


def _check_thread(parser: driver.Parser, program: Program, args: argparse.Namespace) -> None:
    group, thread = args.trace
    size = Grid((*args.grid, 1, 1)[:3], (*args.block, 1, 1)[:3])
    threads = size.threads(program)
    if any(not 0 <= n < limit for n, limit in zip((*group, thread), (*size.grid, threads))):
        parser.error(
            f"argument --trace: there is no subgroup {thread} of workgroup {group}; "
            f"the grid is {size.grid}, with {threads} subgroup{'s' * (threads > 1)} in a workgroup"
        )


def _run_program(parser: driver.Parser, source: Source, args: argparse.Namespace) -> int:
    """Call a program's host function; the exit status."""
    given = {
        "ARG": args.args,
        "--kernel": args.kernel,
        "--grid": args.grid,
        "--block": args.block,
        "-o": args.outputs,
        "--print": args.shown,
    }
    for name, value in given.items():
        if value:
            parser.error(f"{name} is for kernels; host code says itself what is launched on what, and --entry runs it")
    if _ASSEMBLY.match(source.text):
        parser.error("vISA assembly has no host code for --entry to run")
    try:
        results = run_source(
            source,
            args.entry,
            import_upstream=args.imported,
            seed=args.seed,
            trace=args.trace,
            statistics=args.stats,
            remarks=args.remarks,
            **_options(args),
        )
    except DiagnosticError as e:
        e.sources = e.sources or [source]
        raise
    except (TypeError, ValueError) as e:
        parser.error(str(e))
    return int(results[0]) & 0xFF if results and isinstance(results[0], np.integer) else 0


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args = parser.parse_intermixed_args(parser.normalized(argv))
    if args.trace and args.engine not in (None, "interpreter"):
        parser.error(f"only the interpreter can trace, not --engine={args.engine}")
    if args.engine == REFERENCE and (args.stats or {"uninit", "races"} & set(args.check)):
        parser.error(f"--{'stats' if args.stats else 'check'} is for programs of vISA, not for --engine=reference")
    source = parser.read(args.file)
    args.imported = args.via or args.import_upstream
    if args.via and _ASSEMBLY.match(source.text):
        parser.error("--via=upstream is for MLIR; vISA assembly has been lowered")
    if args.entry is not None:
        return _run_program(parser, source, args)
    args.grid, args.block = args.grid or (1,), args.block or ((LANES,) if args.via else (1,))
    if args.engine == REFERENCE and _ASSEMBLY.match(source.text):
        parser.error("--engine=reference evaluates MLIR; vISA assembly is run by --engine=interpreter")
    try:
        arguments: list[Any] = [parse_argument(a) for a in args.args]
    except OSError as e:
        parser.error(f"cannot open '{e.filename}': {e.strerror}")
    except ValueError as e:
        parser.error(str(e))
    try:
        kernel, launch, names = _kernel(source, args, arguments)
        given = dict(zip(names, arguments))
        for name in [*args.shown, *(name for name, _ in args.outputs)]:
            if name not in names or (name in given and not isinstance(given[name], np.ndarray)):
                parser.error(f"'{name}' is no array among the kernel's arguments {', '.join(names)}")
        if args.trace and kernel:
            launcher, (group, thread) = kernel.launcher, args.trace
            _check_thread(parser, kernel.program, args)
            launcher.observer = Tracer(kernel.program, launcher.target, launcher.allocation, group, thread, print)
        start = time.perf_counter()
        done = launch(*arguments, grid=args.grid, block=args.block)
        seconds = time.perf_counter() - start
    except DiagnosticError as e:
        e.sources = e.sources or [source]
        raise
    except (TypeError, ValueError) as e:
        parser.error(str(e))
    if kernel and done and sys.stderr.isatty():
        print(summary(kernel.program, done, kernel.launcher.engine, seconds), file=sys.stderr)
    for name in args.shown:
        print(f"{name} =\n{given[name]}")
    if args.stats and kernel and done:
        print(statistics_table(kernel.program, done))
    for name, path in args.outputs:
        file = io.BytesIO()
        np.save(file, given[name])
        parser.write_bytes(path, file.getvalue())
    return 0


def main() -> None:
    """Entry point of the command `xegpu-run`."""
    driver.main(run)


if __name__ == "__main__":
    main()
