"""`xegpu-bisect`: find the first pass that changes the results of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xegpu_py.bisection import bisect
from xegpu_py.ir.module import Context, parse_source
from xegpu_py.runtime.host_arrays import FORMS
from xegpu_py.tools import driver


def argument_parser() -> driver.Parser:
    """The parser of the tool's arguments."""
    parser = driver.Parser(
        "xegpu-bisect",
        "FILE [ARG...]",
        "Evaluate a kernel before the first pass and after each pass, and report the first pass after which a byte "
        "of the kernel's arrays differs. The exit status is 1 if there is such a pass.",
        [
            "xegpu-bisect gemm.mlir rand:bf16:64x64 rand:bf16:64x64 zeros:f32:64x64",
            "xegpu-bisect add.mlir small:f32:64 zeros:f32:64 --load-ahead",
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
    add("--pass-pipeline", dest="pipeline", metavar="TEXT", help="passes to run instead, such as 'builtin.module(cse)'")
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args = parser.parse_intermixed_args(parser.normalized(argv))
    source = parser.read(args.file)
    arguments = parser.kernel_arguments(args.args)
    with parser.errors_of(source):
        found = bisect(
            parse_source(source, context=Context()),
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
