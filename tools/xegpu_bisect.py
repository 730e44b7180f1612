"""`xegpu-bisect`: which pass changes what a kernel computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xegpu_py.tools import driver
from xegpu_py.tools.xegpu_run import dimensions

from xegpu_py.bisection import bisect
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import parse_source
from xegpu_py.numerics.dpas import MODELS
from xegpu_py.runtime.arguments import FORMS, parse_argument
from xegpu_py.target import DEFAULT, TARGETS


def argument_parser() -> driver.Parser:
    """The parser of the tool's arguments."""
    parser = driver.Parser(
        "xegpu-bisect",
        "FILE [ARG...]",
        "Evaluate a kernel before the first pass and after each, and name the first pass after which a byte of its\n"
        "arrays differs. The exit status is 1 if there is one.",
        ["xegpu-bisect gemm.mlir rand:bf16:64x64 rand:bf16:64x64 zeros:f32:64x64 --grid 1 --block 4"],
        f"An ARG is {FORMS}.\nThey are in the order of the kernel's arguments.",
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="the module; '-' for standard input")
    add("args", metavar="ARG", nargs="*", default=[], help="the kernel's arguments, see below")
    add("--kernel", metavar="NAME", help="which kernel of the file; not needed where there is one")
    add("--grid", metavar="X,Y,Z", type=dimensions, default=(1,), help="workgroups (default 1)")
    add("--block", metavar="X,Y,Z", type=dimensions, default=(1,), help="work items of a workgroup (default 1)")
    add("--target", choices=TARGETS, default=DEFAULT, help=f"the GPU (default {DEFAULT})")
    add("--model", choices=MODELS, default="fma", help="how dpas rounds (default fma)")
    add("--registers", type=int, metavar="N", help="registers of a thread: 128 (default) or 256")
    add("--prefetch", type=int, metavar="N", default=0, help="of XeTile, how many iterations ahead loops prefetch")
    parser.add_switch("--load-ahead", "of XeTile, load one iteration ahead")
    parser.add_switch("--no-optimize", "leave visa-optimize out")
    add(
        "--ulps",
        type=int,
        metavar="N",
        default=0,
        help="units in the last place by which floats may differ (default 0)",
    )
    add("--pass-pipeline", dest="pipeline", metavar="TEXT", help="other passes, such as 'builtin.module(cse)'")
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args = parser.parse_intermixed_args(parser.normalized(argv))
    source = parser.read(args.file)
    try:
        arguments: list[Any] = [parse_argument(a) for a in args.args]
        found = bisect(
            parse_source(source, context=Context()),
            args.kernel,
            arguments,
            grid=args.grid,
            block=args.block,
            target=args.target,
            model=args.model,
            registers=args.registers,
            optimize=not args.no_optimize,
            prefetch=args.prefetch,
            load_ahead=args.load_ahead,
            pipeline=args.pipeline,
            ulps=args.ulps,
        )
    except DiagnosticError as e:
        e.sources = e.sources or [source]
        raise
    except OSError as e:
        parser.error(f"cannot open '{e.filename}': {e.strerror}")
    except (TypeError, ValueError) as e:
        parser.error(str(e))
    print(found.report())
    return 0 if found.step is None else 1


def main() -> None:
    """Entry point of the command `xegpu-bisect`."""
    driver.main(run)


if __name__ == "__main__":
    main()
