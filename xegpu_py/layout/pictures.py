"""Pictures, in SVG, of the owner of each element of a vector.

Each cell is a run of elements that one lane holds in consecutive registers. It is coloured by subgroup (or, where there
is one subgroup only, by batch, which for a `sg_map` is the round), labelled with the lane (or, where there is one lane
only, the subgroup), and shows its owners and positions when the pointer is over it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from xegpu_py.drawing import COLOURS, FAINT, GRID, INK, Canvas, document, number
from xegpu_py.layout.ids import LayoutError
from xegpu_py.layout.nested import TILES, NestedLayout, Owners

MOST_CELLS = 20_000
"""The most cells of a picture. Larger pictures are rejected, because viewers show them slowly or not at all."""

_MARGIN, _LEFT, _TOP = 14.0, 52.0, 86.0
_MOST_WIDTH = 1400.0
_ROW = 15.0
_GAP = 34.0


def layout_picture(
    layout: NestedLayout, *, subgroups: int | None = None, threads: int | None = None, title: str = ""
) -> str:
    """Draw the owners of a vector's elements.

    A vector of more than two dimensions is drawn as its slices along the last two. Groups carry what they show:
    `data-index` (of their first element), `data-count` (of elements along the last dimension), `data-subgroup`,
    `data-lane` and `data-position` (each a list, over all owners, of the first element).

    Args:
        layout: the layout.
        subgroups: the number of subgroups; by default as many as the layout needs.
        threads: the number of lanes of a subgroup.
        title: the picture's name.

    Returns:
        The text of an SVG file.

    Raises:
        LayoutError: if the layout cannot be distributed evenly, or has more cells than can be shown.
    """
    run = layout.element_tile[-1] if layout.rank else 1
    cells = math.prod(layout.shape) // run
    if cells > MOST_CELLS:
        raise LayoutError(f"a picture of {cells} cells is too large; at most {MOST_CELLS} can be drawn")
    owners = layout.owners(subgroups=subgroups, threads=threads)
    rows, columns = (1, 1, *layout.shape)[-2:]
    planes = list(itertools.product(*map(range, layout.shape[:-2])))
    widest = 7.0 * len(str(max(owners.thread.max(), owners.subgroup.max()))) + 6
    cell = max(widest, min(run * 12.0, _MOST_WIDTH / max(columns // run, 1)))
    by_batch = layout.subgroups.period == 1

    canvas = Canvas()
    name = title or f"Layout of a vector of {'x'.join(map(str, layout.shape))}"
    width = max(_LEFT + cell * (columns // run) + _MARGIN, 640.0, 10.0 * len(name) + 2 * _MARGIN)
    canvas.text(_MARGIN, 26, name, font_size=16, font_weight="bold")
    levels = "  ·  ".join(f"{tile.replace('_tile', '')} {list(getattr(layout, tile))}" for tile in TILES)
    canvas.text(_MARGIN, 45, levels, font_size=11)
    _draw_legend(canvas, layout, owners, by_batch)
    top = _TOP
    for plane in planes:
        if plane:
            canvas.text(_MARGIN, top - 16, f"[{', '.join(map(str, plane))}, :, :]", font_size=11, font_weight="bold")
        _draw_plane(canvas, layout, owners, plane, (top, cell, run), by_batch)
        top += rows * _ROW + _GAP
    return document(canvas, width, top - _GAP + _MARGIN, name, _description(layout, owners))


def _description(layout: NestedLayout, owners: Owners) -> str:
    first = (0,) * layout.rank
    last = tuple(n - 1 for n in layout.shape)
    said = []
    for index in (first, last):
        pairs = zip(owners.subgroup[index].tolist(), owners.thread[index].tolist())
        held = " and ".join(f"lane {t} of subgroup {s}" for s, t in pairs)
        said.append(f"element {list(index)} is held by {held}")
    return f"Each cell is a run of elements of one lane. {said[0][:1].upper()}{said[0][1:]}; {said[1]}."


def _draw_legend(canvas: Canvas, layout: NestedLayout, owners: Owners, by_batch: bool) -> None:
    canvas.text(_MARGIN, 64, f"Colour: {'batch' if by_batch else 'subgroup'}", font_size=11)
    if by_batch:
        names = {n: str(n) for n in range(math.prod(layout.batch_tile))}
    else:
        every = np.unique(owners.subgroup.reshape(-1, owners.subgroup.shape[-1]), axis=0).tolist()
        names = {held[0]: ", ".join(map(str, dict.fromkeys(held))) for held in every}
    x = 112.0
    for n, name in itertools.islice(names.items(), 24):
        wide = max(24.0, 6.0 * len(name) + 8)
        canvas.rect(x, 53, wide, 15, _colour(n), stroke=GRID)
        canvas.text(x + wide / 2, 64, name, text_anchor="middle")
        x += wide + 2
    more = "…  " if len(names) > 24 else ""
    canvas.text(
        x + 4, 64, f"{more}Numbers in cells are {'lanes' if _has_lanes(layout) else 'subgroups'}.", font_size=11
    )


def _has_lanes(layout: NestedLayout) -> bool:
    return layout.threads.period > 1


def _colour(n: int) -> str:
    return COLOURS[n % len(COLOURS)]


def _draw_plane(
    canvas: Canvas,
    layout: NestedLayout,
    owners: Owners,
    plane: tuple[int, ...],
    scale: tuple[float, float, int],
    by_batch: bool,
) -> None:
    top, cell, run = scale
    rows, columns = (1, 1, *layout.shape)[-2:]
    across = columns // run
    step = max(1, math.ceil(24 / cell))
    for c in range(0, across, step):
        canvas.text(_LEFT + (c + 0.5) * cell, top - 5, str(c * run), text_anchor="middle", font_size=8, fill=FAINT)
    for r in range(rows):
        y = top + r * _ROW
        canvas.text(_LEFT - 6, y + 11, str(r), text_anchor="end", font_size=8, fill=FAINT)
        for c in range(across):
            index = (*plane, r, c * run)[len(plane) + 2 - layout.rank :] if layout.rank < 2 else (*plane, r, c * run)
            subgroup, lane, position = (x[index].tolist() for x in owners)
            canvas.open(
                data_index=",".join(map(str, index)),
                data_count=run,
                data_subgroup=",".join(map(str, subgroup)),
                data_lane=",".join(map(str, lane)),
                data_position=",".join(map(str, position)),
            )
            fill = _colour(_batch(layout, index) if by_batch else subgroup[0])
            x = _LEFT + c * cell
            canvas.rect(x, y, cell, _ROW, fill, title=_title(index, run, subgroup, lane, position))
            label = lane[0] if _has_lanes(layout) else subgroup[0]
            canvas.text(x + cell / 2, y + 11, str(label), text_anchor="middle", pointer_events="none")
            canvas.close()
    _draw_lines(canvas, layout, (top, cell, run))


def _batch(layout: NestedLayout, index: tuple[int, ...]) -> int:
    found = 0
    for i, x in enumerate(index):
        inner = layout.outer_tile[i] * layout.thread_tile[i] * layout.element_tile[i]
        found = found * layout.batch_tile[i] + x // inner % layout.batch_tile[i]
    return found


def _title(index: tuple[int, ...], run: int, subgroup: list[int], lane: list[int], position: list[int]) -> str:
    last = f" to {[*index[:-1], index[-1] + run - 1]}" if run > 1 else ""
    lines = [f"{list(index)}{last}"]
    for s, t, p in zip(subgroup, lane, position):
        places = f"positions {p} to {p + run - 1}" if run > 1 else f"position {p}"
        lines.append(f"subgroup {s}, lane {t}, {places}")
    return "\n".join(lines)


def _draw_lines(canvas: Canvas, layout: NestedLayout, scale: tuple[float, float, int]) -> None:
    """Thin lines around cells, stronger ones around batches, and the strongest around the tiles of subgroups."""
    top, cell, run = scale
    rows, columns = (1, 1, *layout.shape)[-2:]
    bottom, right = top + rows * _ROW, _LEFT + columns // run * cell
    batch = [math.prod(getattr(layout, t)[i] for t in TILES[2:]) for i in range(layout.rank)]
    tile = [batch[i] * layout.batch_tile[i] for i in range(layout.rank)]
    styles = (((1, run), GRID, 0.4), ((1, 1, *batch)[-2:], INK, 1.0), ((1, 1, *tile)[-2:], INK, 2.4))
    for (down, along), stroke, thickness in styles:
        if layout.rank < 2:
            down = rows
        ys = "".join(f"M{number(_LEFT)} {number(top + r * _ROW)}H{number(right)}" for r in range(0, rows + 1, down))
        xs = "".join(
            f"M{number(_LEFT + c // run * cell)} {number(top)}V{number(bottom)}" for c in range(0, columns + 1, along)
        )
        canvas.path(ys + xs, stroke=stroke, stroke_width=thickness, pointer_events="none")
