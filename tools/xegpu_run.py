"""`xegpu-run`: run a kernel on arrays, or a program with its host code, without a GPU."""

import argparse
import importlib.util
import io
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from msgspec import Struct

from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Source
from xegpu_py.lower_kernel import compile as compile_kernel
from xegpu_py.lower_kernel import stated_target
from xegpu_py.plugins import MissingExtra, plugin
from xegpu_py.runtime.host_arrays import FORMS
from xegpu_py.runtime.kernel import Kernel
from xegpu_py.runtime.launch import NO_GRID, Grid, Statistics, Tracer, statistics_json, statistics_table, summary
from xegpu_py.runtime.options import ALL_CHECKS, CHECKS, DENORMALS, ENGINES, REFERENCE
from xegpu_py.target import DEFAULT
from xegpu_py.tools import driver
from xegpu_py.tools.kernel_arguments import KernelParser
from xegpu_py.upstream import read_source
from xegpu_py.upstream.levels import LANES, Level
from xegpu_py.visa.program import Program, kernel_index

_ASSEMBLY = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*\.(?:version|kernel)\b", re.DOTALL)
"""The beginning of vISA assembly; any other text is MLIR."""

_TEXTS = ("-", ".mlir", ".mlirbc", ".visaasm")
"""Ends of the names of files of MLIR and vISA assembly."""


def _thread(text: str) -> tuple[tuple[int, int, int], int]:
    group, _, thread = text.partition(":")
    try:
        x, y, z = (*map(int, group.split(",")), 0, 0)[:3]
        return (x, y, z), int(thread or 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a thread, such as 0,0,0:0 (workgroup:subgroup)") from None


def _output(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=FILE.npy")
    return name, path


def _profile(text: str) -> str:
    if not text.endswith((".html", ".json")):
        raise argparse.ArgumentTypeError(f"'{text}' is neither an .html nor a .json file")
    return text


_GROUPS = {
    "launch": ("--kernel", "--grid", "--block", "--entry", "--seed", "--allow-native"),
    "target and lowering": ("--target", "--registers", "--strict-grf", "--remarks"),
    "checks": ("--check", "--schedules"),
    "engine and numerics": (
        "--engine",
        "--threads",
        "--deterministic",
        "--cache",
        "--model",
        "--dpas-denormals",
        "--choice",
    ),
    "output": ("--print", "-o", "--stats", "--json", "--profile", "--fidelity", "--targets", "--trace"),
    "OpenCL": ("--global", "--local", "--ocloc", "--build-options"),
    "upstream": ("--import-upstream", "--via", "--level"),
}
"""The options of each part of `--help`."""


def argument_parser() -> KernelParser:
    """The parser of the tool's arguments."""
    parser = KernelParser(
        "xegpu-run",
        "FILE [ARG...]",
        "Run a kernel on arrays and print or store its results, or run a program with its host code.",
        [
            "xegpu-run gemm.mlir rand:bf16:64x64 rand:bf16:64x64 zeros:f32:64x64 --grid 8,4",
            "xegpu-run add.mlir a.npy b.npy zeros:f32:64x64 -o 2=sum.npy --check=races",
            "xegpu-run program.mlir -e main",
            "xegpu-run saxpy.cl rand:f32:1024 a.npy f32:2 --global 1024 --print y",
        ],
        f"{FORMS}\n  local:BYTES                  local memory, for a __local pointer of OpenCL C\n\n"
        "NAME is an input of vISA assembly, a parameter of OpenCL C, or in MLIR the name\n"
        "of an argument, as in messages, or its number from 0.\n\n"
        "With two --ocloc or two --build-options, OpenCL C is compiled and run twice, and\nthe results are compared. "
        "Without --global, the kernels run that comments state:\n// RUN kernel ARG... global=X,Y,Z local=X,Y,Z",
    )
    parser.add_launch_arguments()
    parser.set_defaults(target=None)
    add = parser.add_argument
    size = "work items of an OpenCL kernel"
    verdict = "lower and run the kernel for each of these targets, or 'all', and print one table of verdicts"
    add("--targets", metavar="NAME,...", help=f"{verdict}; with --json as JSON, with --profile FILE.html also there")
    add("--global", dest="items", metavar="X,Y,Z", type=driver.dimensions, help=f"{size}: FILE is .cl, .spv or .bin")
    add(
        "--local",
        metavar="X,Y,Z",
        type=driver.dimensions,
        help=f"{size} in a workgroup (default: its own, or up to 256)",
    )
    twice = "given twice, compare two compilations"
    compiler = f"compiler of OpenCL C: a path, or a name on PATH; {twice}"
    add("--ocloc", metavar="FILE", action="append", default=[], help=compiler)
    options = f"options for the compiler of OpenCL C, such as '-DN=4'; {twice}"
    add("--build-options", metavar="TEXT", action="append", default=[], help=options)
    add(
        "-e",
        "--entry",
        metavar="FUNCTION",
        help="run FILE as a program: call this host function, which has no arguments. If it returns an integer, this "
        "is the exit status",
    )
    upstream = "kernels must be in the dialects of upstream MLIR, which are recognized without this option too"
    add("--import-upstream", action="store_true", help=upstream)
    add(
        "--via",
        choices=("upstream",),
        help="lower the kernels of FILE by upstream's passes in stock mlir-opt, and run the result: kernels of work "
        "items, 16 in each subgroup (the default of --block is then 16)",
    )
    level = "level of the kernels in upstream's dialects (default: detected from their ops)"
    add("--level", choices=get_args(Level), help=level)
    add(
        "--allow-native",
        action="store_true",
        help="with --entry: host code may call any function of the process, contain inline assembly, and use files, "
        "the network and other programs. It can then do everything that you can",
    )
    add("--seed", type=int, metavar="N", default=0, help="seed of a program's random numbers (default 0)")
    add("--strict-grf", action="store_true", help="refuse a kernel whose variables do not fit the registers")
    add(
        "--check",
        metavar="WHAT",
        action="append",
        default=[],
        choices=(*CHECKS, ALL_CHECKS),
        help="memory: out-of-bounds accesses, always on; uninit: reads of registers that were never written; races: "
        "unordered accesses of two threads to one byte; bounds: 2D blocks that are not within their surface; surfaces: "
        "2D blocks of XeGPU whose messages break a rule of the target; all; may be given several times",
    )
    add(
        "--schedules",
        type=driver.positive,
        metavar="N",
        default=0,
        help="with --check=races: first run the kernel in N other orders of threads, by the seeds 1 to N, and compare "
        "the results",
    )
    add(
        "--engine",
        choices=(*ENGINES, REFERENCE),
        help="jit (native code, the default), interpreter (the definition, the default with --check=uninit and "
        "--trace), both (compare all bytes of their results), or reference (evaluate the ops before any pass)",
    )
    add(
        "--threads",
        type=driver.positive,
        metavar="N",
        help="number of threads on which the JIT runs workgroups (default: one for each processor)",
    )
    add("--deterministic", action="store_true", help="run workgroups one after the other, which orders atomics")
    add(
        "--cache",
        metavar="FOLDER",
        help="folder in which native code is kept between runs, or 'off' (default $XEGPU_PY_CACHE, or else a folder in "
        "the user's cache)",
    )
    add(
        "-o",
        dest="outputs",
        metavar="NAME=FILE.npy",
        type=_output,
        action="append",
        default=[],
        help="write an argument's array to a file after the run; may be given several times",
    )
    add("--print", dest="shown", metavar="NAME", action="append", default=[], help="print an argument's array")
    add("--remarks", action="store_true", help="print remarks on ops for which the lowering generates slow code")
    add("--stats", action="store_true", help="print the executed instructions, bytes moved and register pressure")
    forms = "print the numbers of --stats as one line of JSON for each launch, or the report of --fidelity or --targets"
    add("--json", action="store_true", help=forms)
    add(
        "--dpas-denormals",
        choices=DENORMALS,
        default="keep",
        help="what dpas does with subnormal numbers where no source decides (bf and tf32 on pvc and dg2, f8 and e2m1): "
        "keep (the default), or flush (zeros)",
    )
    add(
        "--choice",
        dest="choices",
        metavar="NAME=ALTERNATIVE",
        action="append",
        default=[],
        help="follow an alternative of a rule that no source decides (docs/numerics.md lists them); may be given "
        "several times",
    )
    add(
        "--profile",
        metavar="FILE",
        type=_profile,
        help="count what each instruction does, and write the profile to FILE.html (a report) or FILE.json",
    )
    add(
        "--fidelity",
        metavar="CHOICES",
        nargs="?",
        const="",
        help="run the kernel again with each alternative of the chosen rules that it exercises, and print whether its "
        "outputs depend on them; CHOICES: names of rules, with commas between",
    )
    add(
        "--trace",
        metavar="X,Y,Z:T",
        type=_thread,
        nargs="?",
        const=((0, 0, 0), 0),
        help="print each instruction of a thread and the registers that it changes (default 0,0,0:0)",
    )
    parser.arrange(_GROUPS)
    return parser


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `xegpu_py.compile`."""
    if args.engine == REFERENCE:
        names = ("model", "dpas_denormals", "choices")
        return {"engine": REFERENCE, **{name: getattr(args, name) for name in names}}
    return {
        "target": args.target,
        "model": args.model,
        "dpas_denormals": args.dpas_denormals,
        "choices": args.choices,
        "check": args.check,
        "schedules": args.schedules,
        "registers": args.registers,
        "strict_grf": args.strict_grf,
        "engine": "interpreter" if args.trace else args.engine,
        "threads": 1 if args.deterministic else args.threads,
        "cache": args.cache,
    }


class _Job(Struct):
    """A launch: the lowered kernel or None, the names of its arguments, how to run it, and how to profile it.

    Attributes:
        own: the names of the arguments in the kernel's text, where there is no lowered kernel that knows them.
        fidelity: runs it for the fidelity report, with the alternatives of some choices.
    """

    kernel: Kernel | None
    names: Sequence[str]
    launch: Callable[[], Statistics | None]
    profile: Callable[[], Any] | None = None
    own: Sequence[str] = ()
    fidelity: Callable[[Sequence[str]], Any] | None = None


def _kernel(source: Source, args: argparse.Namespace, **options: Any) -> Any:
    """A kernel of MLIR or of assembly."""
    if _ASSEMBLY.match(source.text):
        return Kernel.from_assembly(source.text, name=args.kernel, file=source.name, **options)
    return compile_kernel(read_source(source, args.imported, Context.from_pool()), args.kernel, **options)


def _job(source: Source, args: argparse.Namespace, arguments: Sequence[Any]) -> _Job:
    """The launch of a kernel of MLIR or of assembly; sets the default of the block."""
    kernel_object = _kernel(source, args, **_options(args))
    if not isinstance(kernel_object, Kernel):
        args.block = args.block or kernel_object.block
        names = [str(i) for i in range(len(kernel_object.types))]
        launch = lambda: kernel_object(*arguments, grid=args.grid, block=args.block)  # noqa: E731
        return _Job(None, names, launch, own=kernel_object.argument_names)
    if kernel_object.executable.is_assembly:
        kernel, names = kernel_object, [i.var.name for i in kernel_object.program.arguments]
    else:
        kernel = kernel_object.version_for(arguments, args.grid)
        names = [str(i) for i in range(len(kernel.types))]
        if args.remarks:
            driver.print_diagnostics(kernel.remarks, [source])
    if not args.block:
        args.block = (LANES,) if args.via and kernel.block == (1,) else kernel.block
    size = {"grid": args.grid if args.has_grid else NO_GRID, "block": args.block}
    job = _Job(kernel, names, lambda: kernel(*arguments, **size), lambda: kernel.profile(*arguments, **size))
    job.fidelity = lambda only: kernel.fidelity(*arguments, **size, only=only)
    return job


def _opencl_launch(parser: KernelParser, args: argparse.Namespace, **options: Any) -> Any:
    """A kernel of OpenCL C with its sizes."""
    try:
        program = plugin("opencl").compile(Path(args.file), **_compiler(args), **options)
    except OSError as e:
        parser.error(f"cannot open input file '{args.file}': {e.strerror}")
    names = list(program.kernels)
    if not names:
        parser.error(f"'{args.file}' has no kernel")
    return program.kernels[names[kernel_index(names, args.kernel)]][args.items, args.local]


def _opencl_job(parser: KernelParser, args: argparse.Namespace, arguments: Sequence[Any]) -> _Job:
    """The launch of a kernel of OpenCL C; sets grid and block."""
    launch = _opencl_launch(parser, args, **_options(args))
    args.grid, args.block = launch.groups, launch.block
    ready = launch.ready(arguments)
    job = _Job(ready.version, launch.names, lambda: launch.run(ready), lambda: launch.profile(*arguments))
    job.fidelity = lambda only: launch.fidelity(*arguments, only=only)
    return job


def _portability(
    parser: KernelParser, source: Source, args: argparse.Namespace, arguments: Sequence[Any], is_opencl: bool
) -> int:
    """Print the verdicts on a kernel for each target; the exit status is 1 if one refuses it, or has other bytes."""
    options = _options(args)

    def on(target: str) -> Any:
        target_options = {**options, "target": target}
        return _opencl_launch(parser, args, **target_options) if is_opencl else _kernel(source, args, **target_options)

    size = {"grid": args.grid if args.has_grid else NO_GRID, "block": args.block or ((LANES,) if args.via else None)}
    with parser.errors_of(source):
        report = plugin("portability")(on, *arguments, targets=args.targets, **({} if is_opencl else size))
        if args.profile:
            job = _opencl_job(parser, args, arguments) if is_opencl else _job(source, args, arguments)
            assert job.profile
            _write_profile(parser, args.profile, job.profile(), report.views)
    if args.json:
        print(report.json(), end="")
    else:
        print(report.table)
    driver.print_diagnostics(report.diagnostics, [source, *report.sources])
    return int(not all(v.accepted and v.equal for v in report.verdicts))


def _write_profile(parser: KernelParser, path: str, profile: Any, views: Mapping[str, str]) -> None:
    try:
        parser.write(path, profile.text(path, views))
    except MissingExtra as missing:
        parser.error(str(missing))


def _compiler(args: argparse.Namespace) -> dict[str, str]:
    """The compiler of OpenCL C and its options, where they are given once."""
    compiler_options = {"ocloc": args.ocloc, "options": args.build_options}
    return {name: values[0] for name, values in compiler_options.items() if values}


def _compare_compilers(parser: KernelParser, args: argparse.Namespace) -> int:
    """Compare what two compilations of a program of OpenCL C store; the exit status is 1 if they differ."""
    given = {
        "--trace": args.trace,
        "--profile": args.profile,
        "--stats": args.stats,
        "--fidelity": args.fidelity is not None,
        "--targets": args.targets,
        "--print": args.shown,
        "-o": args.outputs,
    }
    for name in (n for n, value in given.items() if value):
        parser.error(f"{name} is for one compilation; two --ocloc or --build-options compare two")
    opencl, calls = plugin("opencl"), None
    if args.items:
        if not args.kernel:
            parser.error("a comparison with --global needs --kernel, the kernel that runs")
        calls = [opencl.Call(args.kernel, tuple(_argument(parser, w) for w in args.args), args.items, args.local)]
    elif args.args or args.local or args.kernel:
        parser.error("a comparison without --global runs the kernels that comments RUN of the program state")
    options = {name: value for name, value in _options(args).items() if value is not None}
    with parser.errors_of(Source("", args.file)):
        try:
            results = opencl.compare(
                Path(args.file), calls, ocloc=args.ocloc, options=args.build_options or "", **options
            )
        except OSError as e:
            parser.error(f"cannot open input file '{args.file}': {e.strerror}")
    for result in results:
        print(f"{result.kernel}: {result.summary}")
        driver.print_diagnostics(result.diagnostics(), [result.source])
    return int(not all(result.equal for result in results))


def _argument(parser: KernelParser, word: str) -> Any:
    """An argument of the command line."""
    kind, _, size = word.partition(":")
    if kind == "local" and size.isdecimal():
        return plugin("opencl").local(int(size))
    return parser.kernel_arguments([word])[0]


def _check_thread(parser: KernelParser, program: Program, args: argparse.Namespace) -> None:
    group, thread = args.trace
    size = Grid((*args.grid, 1, 1)[:3], (*args.block, 1, 1)[:3])
    threads = size.threads(program)
    if any(not 0 <= n < limit for n, limit in zip((*group, thread), (*size.grid, threads))):
        parser.error(
            f"argument --trace: there is no subgroup {thread} of workgroup {group}; "
            f"the grid is {size.grid}, with {threads} subgroup{'s' * (threads > 1)} in a workgroup"
        )


def _run_program(parser: KernelParser, source: Source, args: argparse.Namespace) -> int:
    """Call a program's host function; the exit status."""
    options = {
        "ARG": args.args,
        "--kernel": args.kernel,
        "--grid": args.grid,
        "--block": args.block,
        "-o": args.outputs,
        "--print": args.shown,
        "--profile": args.profile,
        "--fidelity": None if args.fidelity is None else [args.fidelity],
    }
    for name, value in options.items():
        if value:
            parser.error(f"{name} is for kernels; with --entry the host code launches them")
    if _ASSEMBLY.match(source.text):
        parser.error("vISA assembly has no host code for --entry to run")
    with parser.errors_of(source):
        statistics = "json" if args.json else args.stats
        printed = {"trace": args.trace, "statistics": statistics, "remarks": args.remarks}
        programs = plugin("programs")
        job = programs.Job(source, args.imported, args.entry, options=_options(args), seed=args.seed, **printed)
        job.allow_native = args.allow_native
        results = programs.run(job)
    return int(results[0]) & 0xFF if results and isinstance(results[0], np.integer) else 0


def _check_targets(parser: KernelParser, args: argparse.Namespace) -> None:
    """Refuse options that --targets does not go with."""
    options = {
        "--entry": args.entry,
        "--engine=reference": args.engine == REFERENCE,
        "--trace": args.trace,
        "--stats": args.stats,
        "--fidelity": args.fidelity is not None,
        "--print": args.shown,
        "-o": args.outputs,
        "a second --ocloc or --build-options": _compares(args),
        "--profile FILE.json": (args.profile or "").endswith(".json"),
    }
    for name in (n for n, value in options.items() if value):
        parser.error(f"{name} is for one target; --targets judges a kernel on several")


def _compares(args: argparse.Namespace) -> bool:
    """Whether two compilations are asked for."""
    return max(len(args.ocloc), len(args.build_options)) > 1


def _check_sizes(parser: KernelParser, args: argparse.Namespace, is_opencl: bool) -> None:
    """Refuse options that are of the other kind of kernels."""
    sizes = {
        "--global": args.items,
        "--local": args.local,
        "--ocloc": args.ocloc,
        "--build-options": args.build_options,
    }
    others = {
        "--grid": args.grid,
        "--block": args.block,
        "--entry": args.entry,
        "--allow-native": args.allow_native,
        "--import-upstream": args.import_upstream,
        "--via": args.via,
        "--level": args.level,
    }
    for name, value in (others if is_opencl else sizes).items():
        if value:
            kinds = ("MLIR and vISA assembly", "OpenCL kernels: files .cl, .spv and .bin")
            hint = "; OpenCL kernels have --global and --local" if name in ("--grid", "--block") else ""
            parser.error(f"{name} is for {kinds[not is_opencl]}{hint}")
    if is_opencl and not args.items and not _compares(args):
        parser.error("an OpenCL kernel needs --global, the number of its work items")


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args = parser.parse_intermixed_args(parser.normalized(argv))
    if args.trace and args.engine not in (None, "interpreter"):
        parser.error(f"only the interpreter can trace, not --engine={args.engine}")
    if args.profile and args.profile.endswith(".html") and importlib.util.find_spec("bokeh") is None:
        parser.error("--profile FILE.html needs 'bokeh': pip install 'xegpu-py[profile]'; FILE.json needs nothing")
    if args.profile and (args.engine == REFERENCE or args.trace or args.check):
        parser.error("--profile counts what a lowered kernel does, without --check and --trace")
    if args.engine == REFERENCE and (args.stats or {*CHECKS, ALL_CHECKS} - {"memory"} & set(args.check)):
        parser.error(f"--{'stats' if args.stats else 'check'} needs a lowered kernel; --engine=reference lowers none")
    if args.fidelity is not None and (args.engine == REFERENCE or args.trace or args.check or args.profile):
        parser.error("--fidelity compares runs of a lowered kernel, without --check, --trace and --profile")
    if args.json and not args.stats and args.fidelity is None and not args.targets:
        parser.error("--json is the form of --stats, --fidelity and --targets, none of which is given")
    if args.targets:
        _check_targets(parser, args)
    if args.schedules and "races" not in args.check:
        parser.error("--schedules runs other orders of threads for --check=races, which is not given")
    is_opencl = not args.file.endswith(_TEXTS) and plugin("opencl").is_path(args.file)
    _check_sizes(parser, args, is_opencl)
    source = Source("", args.file) if is_opencl else parser.read(args.file)
    args.target = args.target or (plugin("opencl").DEFAULT if is_opencl else stated_target(source.text) or DEFAULT)
    if _compares(args):
        return _compare_compilers(parser, args)
    if args.via and args.level:
        parser.error("--level is for kernels that are imported as they are, not --via=upstream")
    args.imported = args.via or args.level or args.import_upstream
    if args.via and _ASSEMBLY.match(source.text):
        parser.error("--via=upstream is for MLIR; vISA assembly is already lowered")
    if args.entry is not None:
        return _run_program(parser, source, args)
    if args.allow_native:
        parser.error("--allow-native is for host code, which --entry runs")
    args.has_grid, args.grid = args.grid is not None, args.grid or (1,)
    if args.engine == REFERENCE and _ASSEMBLY.match(source.text):
        parser.error("--engine=reference evaluates MLIR; vISA assembly is run by --engine=interpreter")
    arguments = [_argument(parser, word) for word in args.args]
    if args.targets:
        return _portability(parser, source, args, arguments, is_opencl)
    with parser.errors_of(source):
        job = _opencl_job(parser, args, arguments) if is_opencl else _job(source, args, arguments)
        kernel, names = job.kernel, job.names
        named_arguments = dict(zip(names, arguments))
        # An argument can also be named as in the kernel's text.
        memory_names = [kernel.memory_name(i) for i in range(len(names))] if kernel else job.own
        named_arguments |= {name[1:]: value for name, value in zip(memory_names, arguments) if name.startswith("%")}
        args.shown = [name.removeprefix("%") for name in args.shown]
        args.outputs = [(name.removeprefix("%"), path) for name, path in args.outputs]
        for name in [*args.shown, *(name for name, _ in args.outputs)]:
            if name not in {*names, *named_arguments} or (
                name in named_arguments and not isinstance(named_arguments[name], np.ndarray)
            ):
                listed = ", ".join(dict.fromkeys([*names, *named_arguments]))
                parser.error(f"'{name}' is not an array among the kernel's arguments {listed}")
        if args.trace and kernel:
            _check_thread(parser, kernel.program, args)
            kernel.executor.observer = Tracer(
                kernel.program, kernel.executor.layout, args.trace[0], args.trace[1], print
            )
        start = time.perf_counter()
        if args.profile and job.profile:
            _write_profile(parser, args.profile, job.profile(), {})
            statistics = kernel.stats if kernel else None
        elif args.fidelity is not None and job.fidelity:
            report = job.fidelity([name for name in args.fidelity.split(",") if name])
            print(report.json() if args.json else report)
            statistics = report.stats
        else:
            statistics = job.launch()
        seconds = time.perf_counter() - start
    if kernel and statistics and sys.stderr.isatty():
        # The last name of an array is that of the kernel's text, if this has one.
        arrays = [name for name, value in named_arguments.items() if isinstance(value, np.ndarray)]
        hint = "" if args.shown or args.outputs or not arrays else f"; --print {arrays[-1]} prints an array"
        print(f"{summary(kernel.program, statistics, kernel.executor.engine, seconds)}{hint}", file=sys.stderr)
    for name in args.shown:
        print(f"{name} =\n{named_arguments[name]}")
    if args.stats and kernel and statistics:
        print((statistics_json if args.json else statistics_table)(kernel.program, statistics))
    for name, path in args.outputs:
        file = io.BytesIO()
        np.save(file, named_arguments[name])
        parser.write_bytes(path, file.getvalue())
    return 0


def main() -> None:
    """Entry point of the command `xegpu-run`."""
    driver.main(run)


if __name__ == "__main__":
    main()
