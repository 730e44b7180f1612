"""Pictures, in SVG, of which subgroups own which tiles under a `wg_map`."""

from __future__ import annotations

from collections.abc import Sequence

from xegpu_py.drawing import COLOURS, GRID, Canvas, document
from xegpu_py.layout.tiles import WgTiles

_SCALE, _MARGIN, _TOP, _LEAST = 2.0, 14.0, 44.0, 26.0


def listed(numbers: Sequence[int]) -> str:
    """Numbers as in `0-3`, or `0, 4, ... 28` if they are not consecutive."""
    if len(numbers) == 1:
        return str(numbers[0])
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers)) if len(numbers) < 4 else f"{numbers[0]}, {numbers[1]}, ... {numbers[-1]}"


def tile_picture(title: str, shape: Sequence[int], sg_layout: Sequence[int], sg_data: Sequence[int]) -> str:
    """The text of an SVG file: a matrix in tiles, each with the ids of the subgroups that own it.

    Raises:
        LayoutError: if the map does not divide the shape.
    """
    owners = WgTiles.of(shape, sg_layout, sg_data).by_start()
    label = max(len(listed(ids)) for ids in owners.values()) * 8.0 + 8
    down = max(_SCALE, _LEAST / sg_data[0])
    across = max(_SCALE, _LEAST / sg_data[1], label / sg_data[1])
    canvas = Canvas()
    canvas.text(_MARGIN, 26, title, font_size=15, font_weight="bold")
    for (row, column), ids in owners.items():
        x, y, w, h = _MARGIN + column * across, _TOP + row * down, sg_data[1] * across, sg_data[0] * down
        place = f"rows {row} to {row + sg_data[0] - 1}, columns {column} to {column + sg_data[1] - 1}"
        canvas.rect(x, y, w, h, COLOURS[ids[0] % len(COLOURS)], title=place, stroke=GRID)
        canvas.text(x + w / 2, y + h / 2 + 4, listed(ids), text_anchor="middle", font_size=13, pointer_events="none")
    width = max(shape[1] * across, 9.0 * len(title)) + 2 * _MARGIN
    said = "; ".join(f"{listed(ids)} from row {row}, column {column}" for (row, column), ids in owners.items())
    return document(canvas, width, _TOP + shape[0] * down + _MARGIN, title, f"Subgroups of each tile: {said}.")
