"""`xegpu-bisect`: find the first pass that changes the results of a kernel."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import get_args

from xegpu_py.bisection import bisect
from xegpu_py.bisection.reduction import reduced, repeated
from xegpu_py.bisection.upstream_stages import UpstreamLaunch, check, default_passes, tool_named
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Source
from xegpu_py.ir.pass_plugins import plugin_errors
from xegpu_py.runtime.host_arrays import FORMS
from xegpu_py.tools import driver
from xegpu_py.tools.kernel_arguments import KernelParser
from xegpu_py.upstream import read_kernels
from xegpu_py.upstream.levels import LANES, Level


def argument_parser() -> KernelParser:
    """The parser of the tool's arguments."""
    parser = KernelParser(
        "xegpu-bisect",
        "FILE [ARG...]",
        "Evaluate a kernel before the first pass and after each pass, and report the first pass after which a byte "
        "of the kernel's arrays differs. The exit status is 1 if there is such a pass.",
        [
            "xegpu-bisect gemm.mlir rand:bf16:64x64 rand:bf16:64x64 zeros:f32:64x64",
            "xegpu-bisect add.mlir small:f32:64 zeros:f32:64 --load-ahead",
            "xegpu-bisect --upstream --reduce small.mlir gemm.mlir rand:f16:64x64",
        ],
        FORMS,
    )
    parser.add_launch_arguments()
    add = parser.add_argument
    add("--prefetch", type=int, metavar="N", default=0, help="iterations by which loops of XeTile prefetch (default 0)")
    parser.add_switch("--load-ahead", "let loops of XeTile load one iteration ahead")
    parser.add_switch("--no-optimize", "omit visa-optimize")
    ulps = "units in the last place by which floating-point results may differ (default 0)"
    add("--ulps", type=int, metavar="N", default=0, help=ulps)
    parser.add_pass_plugins()
    add("--pass-pipeline", dest="pipeline", metavar="TEXT", help="passes to run instead, such as 'builtin.module(cse)'")
    theirs = (
        "run passes of mlir-opt, in a process of its own, on a kernel in upstream's XeGPU; --block counts work items"
    )
    parser.add_switch("--upstream", theirs)
    level = "level of the kernel before the first pass; without --pass-pipeline, it chooses mlir-opt's passes"
    add("--level", choices=get_args(Level), help=level)
    add("--mlir-opt", dest="tool", metavar="PATH", help="the mlir-opt to run (default: that of the installation)")
    add("--reduce", metavar="FILE", help="write a smaller kernel with the same outcome of --upstream to this file")
    return parser


def _upstream(parser: KernelParser, source: Source, args: argparse.Namespace) -> int:
    """Bisect the passes of mlir-opt; the exit status."""
    if not args.pipeline and not args.level:
        parser.error("--upstream needs --pass-pipeline, or --level, which chooses the passes")
    launch = UpstreamLaunch(
        source.text,
        parser.kernel_arguments(args.args),
        args.grid or (1,),
        args.block or (LANES,),
        args.kernel,
        args.level,
        source.name,
        args.args,
    )
    passes = args.pipeline or default_passes(args.level)
    with parser.errors_of(source):
        tool = tool_named(args.tool)
        found = check(launch, passes, tool, ulps=args.ulps)
        print(found.report())
        if args.reduce and found.step:
            small, found = reduced(launch, passes, tool, found)
            parser.write(args.reduce, repeated(small, passes, found))
    return 0 if found.outcome == "same" else 1


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    with plugin_errors():
        return _run(parser, parser.parse_intermixed_args(parser.normalized(argv)))


def _run(parser: KernelParser, args: argparse.Namespace) -> int:
    source = parser.read(args.file)
    if args.upstream:
        return _upstream(parser, source, args)
    if given := next((name for name in ("level", "tool", "reduce") if getattr(args, name)), None):
        parser.error(f"--{given.replace('tool', 'mlir-opt')} is for --upstream, which is not given")
    arguments = parser.kernel_arguments(args.args)
    with parser.errors_of(source):
        found = bisect(
            read_kernels(source, Context.from_pool()),
            args.kernel,
            arguments,
            grid=args.grid or 1,
            block=args.block or 1,
            target=args.target,
            model=args.model,
            registers=args.registers,
            optimize=not args.no_optimize,
            prefetch=args.prefetch,
            load_ahead=args.load_ahead,
            pipeline=args.pipeline,
            ulps=args.ulps,
        )
    print(found.report())
    return 0 if found.step is None else 1


def main() -> None:
    """Entry point of the command `xegpu-bisect`."""
    driver.main(run)


if __name__ == "__main__":
    main()
