"""Pictures, in SVG, of which subgroup owns what of a tile.

What is drawn is what `Ownership` says. `python -m xegpu_py.dialects.xetile.pictures docs/xetile` writes those of
`docs/xetile.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from xegpu_py.dialects.xetile.ownership import Ownership

PICTURES = {
    "c": ("C: 256x256, sg_layout = [8, 4], sg_data = [32, 64]", (256, 256), (8, 4), (32, 64)),
    "a": (
        "A: 256x32, sg_layout = [8, 4], sg_data = [32, 32]: shared by four",
        (256, 32),
        (8, 4),
        (32, 32),
    ),
    "b": (
        "B: 32x256, sg_layout = [8, 4], sg_data = [32, 64]: shared by eight",
        (32, 256),
        (8, 4),
        (32, 64),
    ),
    "round-robin": (
        "64x128, sg_layout = [2, 2], sg_data = [16, 32]: round robin",
        (64, 128),
        (2, 2),
        (16, 32),
    ),
}
"""The pictures of the documentation: title, shape, sg_layout and sg_data."""

_COLOURS = ("#f6b8ac", "#fbd7a4", "#f4ec9f", "#c6e5a6", "#a4ddcc", "#a9cef2", "#c6bcf0", "#efbbde")
_INK, _GRID = "#1f2328", "#8c959f"
_SCALE, _MARGIN, _TITLE, _LEAST = 2, 12, 28, 26


def owners(own: Ownership) -> dict[tuple[int, int], list[int]]:
    """The subgroups that own each part, by where the part begins."""
    found: dict[tuple[int, int], list[int]] = {}
    for subgroup in range(own.subgroups):
        for row, column in own.starts(subgroup):
            found.setdefault((row, column), []).append(subgroup)
    return found


def listed(numbers: Sequence[int]) -> str:
    """Numbers as in `0-3`, or `0, 4, ... 28` if they are apart."""
    if len(numbers) == 1:
        return str(numbers[0])
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers)) if len(numbers) < 4 else f"{numbers[0]}, {numbers[1]}, ... {numbers[-1]}"


def picture(title: str, shape: Sequence[int], layout: Sequence[int], data: Sequence[int]) -> str:
    """An SVG of a tile divided into parts, each with the numbers of the subgroups that own it."""
    own = Ownership.of(shape, layout, data)
    down, across = (max(_SCALE, _LEAST / n) for n in data)
    label = max(len(listed(o)) for o in owners(own).values()) * 8 + 8
    across = max(across, label / data[1])
    width = max(round(shape[1] * across), 8 * len(title)) + 2 * _MARGIN
    height = round(shape[0] * down) + 2 * _MARGIN + _TITLE
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="13" fill="{_INK}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="{_MARGIN + 12}">{escape(title)}</text>',
    ]
    for (row, column), numbers in owners(own).items():
        x, y = _MARGIN + column * across, _MARGIN + _TITLE + row * down
        w, h = data[1] * across, data[0] * down
        colour = _COLOURS[numbers[0] % len(_COLOURS)]
        out.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="{colour}" stroke="{_GRID}"/>'
            f'<text x="{x + w / 2:g}" y="{y + h / 2 + 4:g}" text-anchor="middle">{listed(numbers)}</text>'
        )
    return "\n".join([*out, "</svg>", ""])


def pictures() -> dict[str, str]:
    """The pictures of the documentation by file name."""
    return {f"{name}.svg": picture(*given) for name, given in PICTURES.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures of the documentation into a folder."""
    parser = argparse.ArgumentParser(prog="python -m xegpu_py.dialects.xetile.pictures", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="where to write them, such as docs/xetile")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in pictures().items():
        (folder / name).write_text(svg, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
