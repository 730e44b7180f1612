"""Highlighting of MLIR and vISA assembly: Pygments' lexers, HTML for notebooks, and colours of terminals."""

from __future__ import annotations

from typing import ClassVar

from pygments import highlight
from pygments.formatters import HtmlFormatter, TerminalFormatter
from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

# Both lexers are registered as entry points, so that `pygmentize -l xegpu kernel.mlir` and Sphinx find them.

__all__ = ["MlirLexer", "VisaLexer", "colored", "html"]

_SCALARS = r"(?:[su]?i\d+|index|none|bf16|tf32|f(?:16|32|64|80|128)|f(?:4|6|8)E\w+)\b"

_VISA_TYPES = ("ud", "d", "uw", "w", "ub", "b", "uq", "q", "f", "hf", "df", "bf", "bool", "v", "uv", "vf")


class MlirLexer(RegexLexer):
    """MLIR's textual form: ops, SSA values, symbols, blocks, types and attributes of any dialect."""

    name = "MLIR (XeGPU, XeTile, vISA)"
    aliases: ClassVar[list[str]] = ["xegpu", "xetile", "mlir"]
    filenames: ClassVar[list[str]] = ["*.mlir", "*.ttir"]
    url = "https://mlir.llvm.org/docs/LangRef/"

    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            # The RFC's examples have typographic quotes, which are read too.
            (r'"(?:[^"\\\n]|\\.)*"|“[^”\n]*”', String),
            (r"%[\w$.-]+(?:#\d+)?(?::\d+)?", Name.Variable),
            (r'@(?:[\w$.-]+|"[^"]*")', Name.Function),
            (r"\^[\w$.-]+", Name.Label),
            (r"![\w$-]+(?:\.[\w$.-]+)?", Keyword.Type),
            (r"#[\w$-]+(?:\.[\w$.-]+)?", Name.Decorator),
            (r"(?<=dense<)0x[0-9a-fA-F]+\b", Number.Hex),
            # A shape such as `8x16xf32` is one token, although it begins like a number.
            (rf"(?<=<)((?:(?:\d+|\?|\*)x)+)({_SCALARS})?", bygroups(Number.Integer, Keyword.Type)),
            (rf"\b{_SCALARS}", Keyword.Type),
            (r"\b(?:vector|memref|tensor|tuple|complex|tensor_desc|nbarrier|tile)\b(?=<)", Keyword.Type),
            (r"[-+]?\b\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]?\d+\b)", Number.Float),
            (r"\b0x[0-9a-fA-F]+\b", Number.Hex),
            (r"-?\b\d+\b", Number.Integer),
            (r"\b(?:true|false|unit|dense|array|loc|affine_map|affine_set|strided|offset)\b", Keyword.Constant),
            (r"\b[A-Za-z_]\w*(?:\.\w+)+", Name.Builtin),
            (r"\b(?:module|func|return|kernel|attributes|to|step|iter_args|else|do|into|in|case|default)\b", Keyword),
            (r"[A-Za-z_][\w$]*", Name),
            (r"->|::|[=:,<>;?&+*!~/.|-]", Operator),
            (r"[()\[\]{}]", Punctuation),
            (r".", Text),
        ]
    }


class VisaLexer(RegexLexer):
    """vISA assembly, as IGC and `xegpu-translate --mlir-to-visaasm` print it."""

    name = "vISA assembly"
    aliases: ClassVar[list[str]] = ["visaasm", "visa"]
    filenames: ClassVar[list[str]] = ["*.visaasm"]
    url = "https://github.com/intel/intel-graphics-compiler/tree/master/documentation/visa"

    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"/\*[\s\S]*?\*/", Comment.Multiline),
            (r'"(?:[^"\\\n]|\\.)*"', String),
            (r"\.(?!\d)\w+", Keyword.Declaration),
            (r"^([A-Za-z_$][\w$]*)(:)", bygroups(Name.Label, Punctuation)),
            (r"\(\s*!?\s*[A-Za-z]\w*(?:\.(?:any|all)\w*)?\s*\)(?=\s*[a-z])", Name.Decorator),
            (r"\((M[1-8]|M1_NM|M5_NM|NoMask)(\s*,\s*)(\d+)\)", Name.Attribute),
            (r":(?:u?\d+|d\d+\w*)(?:\.[\w]+)*", Keyword.Type),
            (words(_VISA_TYPES, prefix=r":", suffix=r"\b"), Keyword.Type),
            (r"(^|(?<=\s))[a-z][\w]*(?:\.[\w]+)*(?=\s+\()", Name.Builtin),
            (r"%\w+", Name.Variable.Global),
            (r"\b0[xX][0-9a-fA-F]+(?:\.\d+)?", Number.Hex),
            (r"[-+]?\b\d+(?:\.\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+)\b", Number.Float),
            (r"-?\b\d+\b", Number.Integer),
            (r"\b[A-Za-z_$][\w$]*", Name.Variable),
            (r"[=:,<>;~|&+*/!.-]", Operator),
            (r"[()\[\]{}]", Punctuation),
            (r".", Text),
        ]
    }


def html(text: str) -> str:
    """MLIR or vISA assembly as highlighted HTML for notebooks; long text scrolls."""
    lexer = VisaLexer() if text.lstrip().startswith((".version", ".kernel")) else MlirLexer()
    box = "max-height: 32em; overflow: auto"
    # Notebooks wrap the lines of HTML, and some have a proportional font for it.
    lines = "font-family: monospace; white-space: pre; line-height: 1.25"
    return highlight(text, lexer, HtmlFormatter(noclasses=True, cssstyles=box, prestyles=lines))


def colored(text: str) -> str:
    """MLIR or vISA assembly with the colours of a terminal."""
    lexer = VisaLexer if text.lstrip().startswith(".version") else MlirLexer
    formatter = TerminalFormatter()
    formatter.colorscheme = {**formatter.colorscheme, Whitespace: ("", "")}
    return highlight(text, lexer(stripnl=False, ensurenl=False), formatter)
