"""Pictures in SVG, and coloured sources."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import ClassVar

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

_escaped = partial(escape, quote=False)

# Drawing in SVG: the common code of all pictures of this project.

COLOURS = ("#f6b8ac", "#fbd7a4", "#f4ec9f", "#c6e5a6", "#a4ddcc", "#a9cef2", "#c6bcf0", "#efbbde")
"""Fill colours on which text is legible. Adjacent ones are easy to tell apart."""

PLAIN = "#eceff3"

INK = "#1f2328"

FAINT = "#57606a"

GRID = "#8c959f"


def number(value: object) -> str:
    """A coordinate with at most two decimals; anything else as it is."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


class Canvas:
    """SVG text in the making. Attributes are keyword arguments, with `_` for `-`."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def _add(self, tag: str, content: str | None, attributes: dict[str, object], title: str = "") -> None:
        given = _attributes(attributes)
        inner = (f"<title>{_escaped(title)}</title>" if title else "") + ("" if content is None else _escaped(content))
        self._parts.append(f"<{tag}{given}>{inner}</{tag}>" if inner else f"<{tag}{given}/>")

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, title: str = "", **attributes: object
    ) -> None:
        """A rectangle; its title is what hovering over it shows."""
        placed = {"x": x, "y": y, "width": width, "height": height, "fill": fill, **attributes}
        self._add("rect", None, placed, title)

    def path(self, d: str, **attributes: object) -> None:
        """Lines, in SVG's language of paths."""
        self._add("path", None, {"d": d, "fill": "none", "stroke": GRID, **attributes})

    def text(self, x: float, y: float, content: str, **attributes: object) -> None:
        """A line of text, whose base line is at y."""
        self._add("text", content, {"x": x, "y": y, **attributes})

    def open(self, **attributes: object) -> None:
        """Begin a group."""
        self._parts.append(f"<g{_attributes(attributes)}>")

    def close(self) -> None:
        """End a group."""
        self._parts.append("</g>")

    def bracket(self, x: float, y: float, length: float, *, vertical: bool = False) -> None:
        """A bracket that opens to the matrix below it, or to the right of it."""
        ends = f"m0 4v-4h{number(length)}v4" if not vertical else f"m4 0h-4v{number(length)}h4"
        self.path(f"M{number(x)} {number(y)}{ends}", stroke=FAINT)

    def __str__(self) -> str:
        return "\n".join(self._parts)


def _attributes(attributes: dict[str, object]) -> str:
    return "".join(f' {name.replace("_", "-")}="{escape(number(value))}"' for name, value in attributes.items())


def document(canvas: Canvas, width: float, height: float, title: str, description: str) -> str:
    """The text of an SVG file with what is on the canvas.

    Args:
        canvas: what is drawn.
        width: width of the picture in pixels.
        height: height of the picture in pixels.
        title: its name.
        description: a description of the picture for screen readers.
    """
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" '
        f'width="{number(width)}" height="{number(height)}" role="img" aria-labelledby="title desc" '
        f'font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif" font-size="10" fill="{INK}">\n'
        f'<title id="title">{_escaped(title)}</title>\n<desc id="desc">{_escaped(description)}</desc>\n'
        # Its own background, so that the ink is legible on a dark page too.
        f'<rect width="{number(width)}" height="{number(height)}" rx="8" fill="#ffffff"/>\n{canvas}\n</svg>\n'
    )


# Pygments lexers of MLIR with this project's dialects, and of vISA assembly.
#
# Both are registered as entry points, so that `pygmentize -l xegpu kernel.mlir` and Sphinx find them.

__all__ = ["MlirLexer", "VisaLexer", "html"]

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
            (r"->|::|[=:,<>;?+*!~/.|-]", Operator),
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
            (r"/\*.*?\*/", Comment.Multiline),
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
