"""Pictures in SVG, and coloured sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xegpu_py.deferred import deferred

if TYPE_CHECKING:
    import html as _html
else:
    # Its table of entities takes 2 ms, and each kernel imports this module.
    _html = deferred("html")


def _escaped(text: str) -> str:
    return _html.escape(text, quote=False)


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
    return "".join(f' {name.replace("_", "-")}="{_html.escape(number(value))}"' for name, value in attributes.items())


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
