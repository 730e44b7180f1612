"""`xegpu-lsp`: a language server for MLIR with this project's dialects, and for vISA assembly."""

from collections.abc import Sequence
from importlib.metadata import version

from xegpu_py.tools import driver


def argument_parser() -> driver.Parser:
    """The parser of the tool's arguments."""
    parser = driver.Parser(
        "xegpu-lsp",
        "",
        "A language server for editors: diagnostics, hover, definitions, references, completion, outline, formatting. "
        "It speaks the Language Server Protocol on standard input and output; docs/editors.md says how to start it.",
        ["xegpu-lsp", "xegpu-lsp --tcp 2087"],
    )
    parser.add_argument("--tcp", metavar="PORT", type=driver.positive, help="listen on this local port instead")
    parser.add_switch("--stdio", "accepted for compatibility: this is the default")
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the tool with these arguments; its exit status."""
    parser = argument_parser()
    args = parser.parse_args(parser.normalized(argv))
    try:
        from xegpu_py.extensions.editor.server import make
    except ImportError as e:
        parser.error(f"{e.name} is not installed; install xegpu-py with the extra 'lsp'")
    server = make(version("xegpu-py"))
    if args.tcp is None:
        server.start_io()
        return 0
    try:
        server.start_tcp("127.0.0.1", args.tcp)
    except (OSError, OverflowError) as e:
        parser.error(f"cannot listen on port {args.tcp}: {e}")
    return 0


def main() -> None:
    """Entry point of the command `xegpu-lsp`."""
    driver.main(run)


if __name__ == "__main__":
    main()
