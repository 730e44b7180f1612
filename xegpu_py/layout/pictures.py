"""Pictures of layouts: the owner of each element, and of each register byte of a dpas, in SVG."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from xegpu_py.drawing import COLOURS, FAINT, GRID, INK, PLAIN, Canvas, document, number
from xegpu_py.layout.nested import TILES
from xegpu_py.numerics.dpas import dpas, ops_per_channel, pack_a, pack_b, pack_c
from xegpu_py.numerics.formats import PRECISIONS, TYPES, Array, Format

if TYPE_CHECKING:
    from xegpu_py.layout.nested import NestedLayout, Owners

# Pictures, in SVG, of the owner of each element of a vector.
#
# Each cell is a run of elements that one lane holds in consecutive registers. It is coloured by subgroup (or, where
# there is one subgroup only, by batch, which for a `sg_map` is the round), labelled with the lane (or, where there is
# one lane only, the subgroup), and shows its owners and positions when the pointer is over it.

_MARGIN, _LEFT, _TOP = 14.0, 52.0, 86.0

_MOST_WIDTH = 1400.0

_ROW = 15.0

_GAP = 34.0


def draw_layout(layout: NestedLayout, owners: Owners, title: str = "") -> str:
    """The picture of a layout's owners; see `nested.layout_picture`."""
    run = layout.element_tile[-1] if layout.rank else 1
    rows, columns = (1, 1, *layout.shape)[-2:]
    planes = list(itertools.product(*map(range, layout.shape[:-2])))
    widest = 7.0 * len(str(max(owners.thread.max(), owners.subgroup.max()))) + 6
    cell = max(widest, min(run * 12.0, _MOST_WIDTH / max(columns // run, 1)))
    by_batch = layout.subgroups.period == 1

    canvas = Canvas()
    name = title or f"Layout of a vector of {'x'.join(map(str, layout.shape))}"
    canvas.text(_MARGIN, 26, name, font_size=16, font_weight="bold")
    levels = "  ·  ".join(f"{tile.replace('_tile', '')} {list(getattr(layout, tile))}" for tile in TILES)
    canvas.text(_MARGIN, 45, levels, font_size=11)
    legend = _draw_legend(canvas, layout, owners, by_batch)
    width = max(_LEFT + cell * (columns // run), 640.0 - _MARGIN, 10.0 * len(name) + _MARGIN, legend) + _MARGIN
    top = _TOP
    for plane in planes:
        if plane:
            canvas.text(_MARGIN, top - 16, f"[{', '.join(map(str, plane))}, :, :]", font_size=11, font_weight="bold")
        _draw_plane(canvas, layout, owners, plane, (top, cell, run), by_batch)
        top += rows * _ROW + _GAP
    return document(canvas, width, top - _GAP + _MARGIN, name, _description(layout, owners))


def _description(layout: NestedLayout, owners: Owners) -> str:
    first_index = (0,) * layout.rank
    last_index = tuple(n - 1 for n in layout.shape)
    sentences = []
    for index in (first_index, last_index):
        owner_pairs = zip(owners.subgroup[index].tolist(), owners.thread[index].tolist())
        owners_text = " and ".join(f"lane {t} of subgroup {s}" for s, t in owner_pairs)
        sentences.append(f"element {list(index)} is held by {owners_text}")
    return f"Each cell is a run of elements of one lane. {sentences[0][:1].upper()}{sentences[0][1:]}; {sentences[1]}."


def _draw_legend(canvas: Canvas, layout: NestedLayout, owners: Owners, by_batch: bool) -> float:
    """Draw it; return its right edge."""
    canvas.text(_MARGIN, 64, f"Colour: {'batch' if by_batch else 'subgroup'}", font_size=11)
    if by_batch:
        names = {n: str(n) for n in range(math.prod(layout.batch_tile))}
    else:
        all_owners = np.unique(owners.subgroup.reshape(-1, owners.subgroup.shape[-1]), axis=0).tolist()
        names = {owner[0]: ", ".join(map(str, dict.fromkeys(owner))) for owner in all_owners}
    x = 112.0
    for n, name in itertools.islice(names.items(), 24):
        wide = max(24.0, 6.0 * len(name) + 8)
        canvas.rect(x, 53, wide, 15, _colour(n), stroke=GRID)
        canvas.text(x + wide / 2, 64, name, text_anchor="middle")
        x += wide + 2
    ellipsis = "…  " if len(names) > 24 else ""
    text = f"{ellipsis}Numbers in cells are {'lanes' if _has_lanes(layout) else 'subgroups'}."
    canvas.text(x + 4, 64, text, font_size=11)
    return x + 4 + 5.5 * len(text)


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
    batch_number = 0
    for i, x in enumerate(index):
        batch_extent = layout.outer_tile[i] * layout.thread_tile[i] * layout.element_tile[i]
        batch_number = batch_number * layout.batch_tile[i] + x // batch_extent % layout.batch_tile[i]
    return batch_number


def _title(index: tuple[int, ...], run: int, subgroup: list[int], lane: list[int], position: list[int]) -> str:
    range_text = f" to {[*index[:-1], index[-1] + run - 1]}" if run > 1 else ""
    lines = [f"{list(index)}{range_text}"]
    for s, t, p in zip(subgroup, lane, position):
        positions_text = f"positions {p} to {p + run - 1}" if run > 1 else f"position {p}"
        lines.append(f"subgroup {s}, lane {t}, {positions_text}")
    return "\n".join(lines)


def _draw_lines(canvas: Canvas, layout: NestedLayout, scale: tuple[float, float, int]) -> None:
    """Thin lines around cells, stronger ones around batches, and the strongest around the tiles of subgroups."""
    top, cell, run = scale
    rows, columns = (1, 1, *layout.shape)[-2:]
    bottom, right_edge = top + rows * _ROW, _LEFT + columns // run * cell
    batch = [math.prod(getattr(layout, t)[i] for t in TILES[2:]) for i in range(layout.rank)]
    tile = [batch[i] * layout.batch_tile[i] for i in range(layout.rank)]
    styles = (((1, run), GRID, 0.4), ((1, 1, *batch)[-2:], INK, 1.0), ((1, 1, *tile)[-2:], INK, 2.4))
    for (down, columns_step), stroke, thickness in styles:
        if layout.rank < 2:
            down = rows
        ys = "".join(
            f"M{number(_LEFT)} {number(top + r * _ROW)}H{number(right_edge)}" for r in range(0, rows + 1, down)
        )
        xs = "".join(
            f"M{number(_LEFT + c // run * cell)} {number(top)}V{number(bottom)}"
            for c in range(0, columns + 1, columns_step)
        )
        canvas.path(ys + xs, stroke=stroke, stroke_width=thickness, pointer_events="none")


# Pictures, in SVG, of how the matrices of one DPAS lie in GRFs.
#
# The layout is computed by `numerics.pack_a`, `pack_b` and `pack_c`, not stated here a second time, so that a picture
# cannot disagree with the arithmetic.

_DWORD = 32

_UNUSED = "#ffffff"

# Coordinates: logical matrices on the left, from _LEFT on; GRFs on the right.
_WIDTH = 1096

_MATRIX_LEFT = 70

_LABELS = 326

_GRFS = 378

_GRF_WIDTH = 640

_NOTES = _GRFS + _GRF_WIDTH + 8

_DEPTH_WIDTH = 26

_COLUMN = 13

_ELEMENT = 13

_GRF_GAP = 16

_FONT = 9.0

_Index = tuple[int, int] | None
"""Row and column of an element, or nothing."""

_Words = list[tuple[float, float, str]]


@dataclass(frozen=True)
class _Operand:
    """A matrix and the registers that hold it.

    Attributes:
        ops: elements of K to a depth.
        k_axis: which index is k; None for C.
        held: [GRFs, dwords, elements of a dword], the row-major number of the element there, -1 for none.
    """

    name: str
    rows: int
    columns: int
    fmt: Format
    ops: int
    k_axis: int | None
    held: Array

    @property
    def grfs(self) -> int:
        return int(self.held.shape[0])

    @property
    def dwords(self) -> int:
        return int(self.held.shape[1])

    @property
    def per_dword(self) -> int:
        return int(self.held.shape[2])

    @cached_property
    def example(self) -> tuple[int, int]:
        """The outlined GRF and dword: the second of each if it is full, since the first explains least."""
        full = np.argwhere((self.held >= 0).all(axis=-1)).tolist() or [[0, 0]]
        grf, dword = min(full, key=lambda at: (abs(at[0] - 1), abs(at[1] - 1)))
        return grf, dword

    def elements(self, grf: int, dword: int) -> list[_Index]:
        """Names of the elements in a dword, from the lowest bit on."""
        return [None if e < 0 else divmod(int(e), self.columns) for e in self.held[grf, dword]]

    def used(self, grf: int, dword: int | None = None) -> list[tuple[int, int]]:
        """All elements that a dword or a GRF holds."""
        dwords = range(self.dwords) if dword is None else [dword]
        return [e for i in dwords for e in self.elements(grf, i) if e]

    def fill(self, element: _Index) -> str:
        """The colour of an element."""
        if element is None:
            return _UNUSED
        return PLAIN if self.k_axis is None else COLOURS[element[self.k_axis] // self.ops]


def _held(pack: Callable[[Array], Array], fmt: Format, rows: int, columns: int, grf_bytes: int) -> Array:
    """Return the elements of registers, as `_Operand.held`.

    The elements are numbered from 1 on, and the binary digits of the numbers packed one after the other, each as an
    element of zeros or of ones only. Read back across the digits, every bit of the registers names its element.
    """
    numbers = np.arange(1, rows * columns + 1).reshape(rows, columns)
    bit_index = np.arange(int(numbers.max()).bit_length())
    digits = -(numbers >> bit_index[:, None, None] & 1)
    values = digits.astype(f"i{fmt.dtype.itemsize}").view(fmt.dtype)
    if fmt.kind == "u":
        values &= (1 << fmt.bits) - 1
    bits = np.unpackbits(pack(values), axis=-1, bitorder="little").astype(np.int64)
    element_numbers = (bits << bit_index[:, None]).sum(axis=0) - 1
    padded = np.pad(element_numbers, (0, -element_numbers.size % (8 * grf_bytes)), constant_values=-1)
    return padded.reshape(-1, 8 * grf_bytes // _DWORD, _DWORD // fmt.bits, fmt.bits)[..., 0]


def dpas_picture(W: str, A: str, *, SD: int = 8, RC: int = 8, exec_size: int = 16) -> str:
    """Draw the operands of one DPAS: each matrix on the left, the GRFs that hold it on the right.

    Groups of text have attributes that name their position: `data-operand`, `data-grf` and `data-dword`. For B and C,
    `data-dword` is the lane.

    Args:
        W: precision of src1 (B).
        A: precision of src2 (A).
        SD: systolic depth.
        RC: repeat count.
        exec_size: columns; 16 with GRFs of 64 bytes, 8 with GRFs of 32.

    Returns:
        The text of an SVG file.

    Raises:
        ValueError: if there is no such DPAS, its A does not fill bytes, or it is of df, whose channels are no dwords.
    """
    if "df" in (W, A):
        raise ValueError("df has channels of 64 bits, and pictures are of dwords")
    dtype = "f" if W in PRECISIONS and PRECISIONS[W].is_float else "d"
    # The declaration of dpas decides what is legal.
    registers = np.zeros(1024, np.uint8)
    dpas(None, registers, registers, W=W, A=A, SD=SD, RC=RC, exec_size=exec_size, dst_type=dtype, src0_type=dtype)
    ops = ops_per_channel(W, A)
    K, grf = SD * ops, exec_size * _DWORD // 8

    def operand(
        name: str, rows: int, columns: int, fmt: Format, pack: Callable[[Array, str], Array], k_axis: int | None
    ) -> _Operand:
        element_of_bytes = _held(lambda matrix: pack(matrix, fmt.name), fmt, rows, columns, grf)
        return _Operand(name, rows, columns, fmt, ops, k_axis, element_of_bytes)

    a = operand("A", RC, K, PRECISIONS[A], pack_a, 1)
    b = operand("B", K, exec_size, PRECISIONS[W], pack_b, 0)
    c = operand("C", RC, exec_size, TYPES[dtype], pack_c, None)

    title = f"Register layout of dpas.{W}.{A}.{SD}.{RC} ({exec_size})"
    canvas = Canvas()
    y = _draw_header(canvas, title, ops, SD, RC, exec_size)
    y = _draw_a(canvas, y, a, SD)
    y = _draw_b(canvas, y, b, SD)
    y = _draw_c(canvas, y, c)
    return document(canvas, _WIDTH, y, title, _dpas_description(a, b, c))


def _dpas_description(a: _Operand, b: _Operand, c: _Operand) -> str:
    def example(operand: _Operand, column: str) -> str:
        grf, dword = operand.example
        names = ", ".join(_name(operand, e) for e in operand.used(grf, dword))
        return f"{column} {dword} of GRF r{grf} holds {names}"

    return (
        f"D = C + A x B. Each matrix is on the left, and the GRFs of {4 * a.dwords} bytes that hold it on the right; A "
        f"and B are coloured by systolic depth, {a.ops} consecutive k each. "
        f"A, {a.rows} x {a.columns} of {a.fmt.name}, fills {_count(a)} row by row: {example(a, 'dword')}, from the "
        f"lowest bit on. B, {b.rows} x {b.columns} of {b.fmt.name}, fills {_count(b)}, column n in lane n: "
        f"{example(b, 'lane')}, from the lowest bit on. "
        f"C and D, {c.rows} x {c.columns} of {c.fmt.name}, fill {_count(c)} each row by row: {example(c, 'lane')}."
    )


def _draw_header(canvas: Canvas, title: str, ops: int, SD: int, RC: int, exec_size: int) -> float:
    canvas.text(14, 26, f"{title}:  D = C + A × B", font_size=16, font_weight="bold")
    facts = [
        f"OPS_PER_CHAN = {ops} k to a lane and depth",
        f"systolic depth SD = {SD}",
        f"K = SD × OPS_PER_CHAN = {SD * ops}",
        f"repeat count RC = M = {RC}",
        f"N = {exec_size} lanes",
        f"GRF = {exec_size * _DWORD // 8} bytes",
    ]
    canvas.text(14, 46, "  ·  ".join(facts), font_size=11)
    canvas.text(14, 68, "Systolic depth:", font_size=11)
    for depth in range(SD):
        canvas.rect(104 + 24 * depth, 57, 22, 15, COLOURS[depth], stroke=GRID)
        canvas.text(115 + 24 * depth, 68, str(depth), text_anchor="middle")
    canvas.text(
        116 + 24 * SD,
        68,
        "In a GRF, left to right is from the lowest bit up. "
        "Outlined: one dword and its elements; for A and B it is magnified below.",
        font_size=11,
    )
    return 84


def _draw_a(canvas: Canvas, top: float, a: _Operand, SD: int) -> float:
    _draw_band(canvas, top, f"A (src2): {a.rows} × {a.columns} of {a.fmt.name}", f"{_count(a)}, row-major")
    cell, row = _DEPTH_WIDTH / a.ops, 12
    matrix = top + 78
    bottom = matrix + a.rows * row

    canvas.text(_MATRIX_LEFT, top + 34, f"SD = {SD}, K = {a.columns}", fill=FAINT)
    canvas.bracket(_MATRIX_LEFT, top + 38, SD * _DEPTH_WIDTH)
    canvas.text(_MATRIX_LEFT, top + 53, f"OPS_PER_CHAN = {a.ops}", fill=FAINT)
    canvas.bracket(_MATRIX_LEFT, top + 58, _DEPTH_WIDTH)
    canvas.text(_MATRIX_LEFT - 6, matrix - 6, "k", text_anchor="end", fill=FAINT)
    canvas.text(_MATRIX_LEFT - 6, bottom + 12, "depth", text_anchor="end", fill=FAINT, font_size=_FONT)
    for depth in range(SD):
        left_edge = _MATRIX_LEFT + depth * _DEPTH_WIDTH
        canvas.text(left_edge + 1, matrix - 6, str(depth * a.ops), font_size=_FONT)
        canvas.rect(left_edge, matrix, _DEPTH_WIDTH, a.rows * row, COLOURS[depth])
        canvas.text(left_edge + _DEPTH_WIDTH / 2, bottom + 12, str(depth), text_anchor="middle", font_size=_FONT)
    _draw_matrix_rows(canvas, a, matrix, row)
    _draw_grid(canvas, a, matrix, (cell, row), (a.ops, 1))

    width = _GRF_WIDTH / a.dwords

    def words(grf: int, dword: int) -> _Words:
        m, k = zip(*a.used(grf, dword))
        return [(width / 2, -2.5, f"m {_span(m)}"), (width / 2, 9, f"k {_span(k)}")]

    notes = [_plural("row", [m for m, _ in a.used(grf)]) for grf in range(a.grfs)]
    bottom_edge = _draw_registers(canvas, a, (top + 38, width, 28.0), "dword", words, notes)
    return max(_magnify(canvas, bottom_edge + 12, a, "dword"), bottom + 16) + 18


def _draw_b(canvas: Canvas, top: float, b: _Operand, SD: int) -> float:
    vnni = " (VNNI)" if b.per_dword > 1 else ""
    registers = f"{_count(b)}; lane n holds column n, {b.per_dword} k to a dword{vnni}. Numbers are k."
    _draw_band(canvas, top, f"B (src1): {b.rows} × {b.columns} of {b.fmt.name}", registers)
    depths = [[k // b.ops for k, _ in b.used(grf)] for grf in range(b.grfs)]
    channel_limit = max(len(set(d)) for d in depths)
    # A GRF is as high as the rows of the matrix that it holds, so that both sides line up.
    group = {1: 28, 2: 18}.get(channel_limit, 14)
    matrix, row = top + 38, group / b.ops

    canvas.bracket(_MATRIX_LEFT - 44, matrix, SD * group, vertical=True)
    _draw_vertical(canvas, _MATRIX_LEFT - 52, matrix + SD * group / 2, f"K = {b.rows}")
    canvas.text(_MATRIX_LEFT - 40, matrix - 6, "k", fill=FAINT)
    for depth in range(SD):
        y = matrix + depth * group
        k = _span([depth * b.ops, (depth + 1) * b.ops - 1])
        canvas.rect(_MATRIX_LEFT, y, b.columns * _COLUMN, group, COLOURS[depth])
        canvas.text(_MATRIX_LEFT - 6, y + group / 2 + 3, k, text_anchor="end", font_size=_FONT)
        canvas.text(_MATRIX_LEFT + b.columns * _COLUMN + 5, y + group / 2 + 3, f"depth {depth}", font_size=_FONT)
    _draw_matrix_columns(canvas, b, matrix)
    _draw_grid(canvas, b, matrix, (_COLUMN, row), (1, b.ops))

    height = group * channel_limit
    width = min(max(_GRF_WIDTH / b.dwords, _ELEMENT * b.per_dword), (_GRF_WIDTH - _GRF_GAP) / 2)
    element_width = width / b.per_dword
    font = {"font_size": 0.7 * element_width} if element_width < _ELEMENT else {}

    def words(grf: int, lane: int) -> _Words:
        return [((i + 0.5) * element_width, 3, str(e[0])) for i, e in enumerate(b.elements(grf, lane)) if e]

    notes = [_plural("depth", d) for d in depths]
    bottom_edge = _draw_registers(canvas, b, (matrix, width, height), "lane", words, notes, separate=True, **font)
    return _magnify(canvas, bottom_edge + 12, b, "lane") + 18


def _draw_c(canvas: Canvas, top: float, c: _Operand) -> float:
    registers = f"{_count(c)} each, row-major; lane n holds column n. Numbers are m,n."
    _draw_band(canvas, top, f"C (src0), D (dst): {c.rows} × {c.columns} of {c.fmt.name}", registers)
    matrix, height, width = top + 38, 24, _GRF_WIDTH / c.dwords
    canvas.rect(_MATRIX_LEFT, matrix, c.columns * _COLUMN, c.rows * height, PLAIN)
    _draw_matrix_columns(canvas, c, matrix)
    _draw_matrix_rows(canvas, c, matrix, height)
    _draw_grid(canvas, c, matrix, (_COLUMN, height), (1, 1))

    def words(grf: int, lane: int) -> _Words:
        return [(width / 2, 3, f"{m},{n}") for m, n in c.used(grf, lane)]

    notes = [_plural("row", [m for m, _ in c.used(grf)]) for grf in range(c.grfs)]
    _draw_registers(canvas, c, (matrix, width, height), "lane", words, notes)
    return matrix + max(c.rows, c.grfs) * height + 18


def _draw_band(canvas: Canvas, top: float, matrix: str, registers: str) -> None:
    canvas.path(f"M14 {number(top)}H{_WIDTH - 14}", stroke="#d0d7de")
    canvas.text(14, top + 17, matrix, font_size=12, font_weight="bold")
    canvas.text(_LABELS, top + 17, registers, font_size=12, font_weight="bold")


def _draw_vertical(canvas: Canvas, x: float, y: float, content: str) -> None:
    canvas.text(x, y, content, transform=f"rotate(-90 {number(x)} {number(y)})", text_anchor="middle", fill=FAINT)


def _draw_matrix_rows(canvas: Canvas, operand: _Operand, y: float, height: float) -> None:
    """Numbers of rows that are repeats."""
    canvas.bracket(_MATRIX_LEFT - 32, y, operand.rows * height, vertical=True)
    label = "M = RC" if operand.rows * height > 60 else "M"
    _draw_vertical(canvas, _MATRIX_LEFT - 40, y + operand.rows * height / 2, f"{label} = {operand.rows}")
    for m in range(operand.rows):
        canvas.text(_MATRIX_LEFT - 6, y + (m + 0.5) * height + 3.5, str(m), text_anchor="end", font_size=_FONT)


def _draw_matrix_columns(canvas: Canvas, operand: _Operand, y: float) -> None:
    """Numbers of columns that are lanes."""
    canvas.text(_MATRIX_LEFT - 6, y - 6, "n", text_anchor="end", fill=FAINT)
    for n in range(operand.columns):
        canvas.text(_MATRIX_LEFT + (n + 0.5) * _COLUMN, y - 6, str(n), text_anchor="middle", font_size=_FONT)


def _draw_grid(canvas: Canvas, operand: _Operand, y: float, cell: tuple[float, float], depth: tuple[int, int]) -> None:
    """Lines between the elements of a matrix, stronger ones between depths, and an outline around the example."""
    width, height = cell
    right_edge, bottom = _MATRIX_LEFT + operand.columns * width, y + operand.rows * height

    def lines(columns: int, rows: int) -> str:
        down = (
            f"M{number(_MATRIX_LEFT + i * width)} {number(y)}V{number(bottom)}"
            for i in range(0, operand.columns, columns)
        )
        across = (
            f"M{_MATRIX_LEFT} {number(y + i * height)}H{number(right_edge)}" for i in range(0, operand.rows, rows)
        )
        return "".join([*down, *across])

    canvas.path(lines(1, 1), stroke="#ffffff", stroke_width=0.5)
    canvas.path(f"{lines(*depth)}M{number(right_edge)} {number(y)}V{number(bottom)}H{_MATRIX_LEFT}", stroke_width=0.6)
    used_elements = operand.used(*operand.example)
    rows, columns = [e[0] for e in used_elements], [e[1] for e in used_elements]
    x, top = _MATRIX_LEFT + min(columns) * width, y + min(rows) * height
    right_edge, bottom = _MATRIX_LEFT + (max(columns) + 1) * width, y + (max(rows) + 1) * height
    canvas.rect(x, top, right_edge - x, bottom - top, "none", stroke=INK, stroke_width=2)


def _columns(dwords: int, width: float) -> dict[int, float]:
    """Return the dwords that are drawn, and their x: all, or the first ones and the last one."""
    if dwords * width <= _GRF_WIDTH:
        return {dword: _GRFS + dword * width for dword in range(dwords)}
    first_count = int((_GRF_WIDTH - _GRF_GAP) / width) - 1
    return {**{i: _GRFS + i * width for i in range(first_count)}, dwords - 1: _GRFS + _GRF_WIDTH - width}


def _draw_registers(
    canvas: Canvas,
    operand: _Operand,
    scale: tuple[float, float, float],
    column: str,
    words: Callable[[int, int], _Words],
    notes: Sequence[str],
    *,
    separate: bool = False,
    **font: Any,
) -> float:
    """The dwords of all GRFs in the colours of their elements, with numbers around them; returns where they end.

    Args:
        scale: the top, and the width and height of a dword.
        words: labels of a dword of a GRF, with offsets from its left edge and the middle of its height.
        notes: text beside each GRF.
        separate: with lines between the elements of a dword.
        font: properties of the words.
    """
    top, width, height = scale
    columns = _columns(operand.dwords, width)
    canvas.text(_GRFS - 8, top - 6, column, text_anchor="end", fill=FAINT)
    for dword, x in columns.items():
        canvas.text(x + width / 2, top - 6, str(dword), text_anchor="middle")
    *_, previous_column, last_column = columns.values()
    gap = (previous_column + width + last_column) / 2 if len(columns) < operand.dwords else None
    frames, separators = [], []
    for grf in range(operand.grfs):
        y = top + grf * height
        label = {"text_anchor": "end"}
        canvas.text(_GRFS - 8, y + height / 2 - 1, f"GRF r{grf}", font_weight="bold", **label)
        canvas.text(_GRFS - 8, y + height / 2 + 9, f"byte {4 * operand.dwords * grf}", font_size=8, fill=FAINT, **label)
        if gap is not None:
            canvas.text(gap, y + height / 2 + 3, "…", text_anchor="middle")
        for dword, x in columns.items():
            separators += _draw_elements(canvas, x, y, width, height, operand, operand.elements(grf, dword))
            frames.append(_box(x, y, width, height))
    if gap is not None:
        canvas.text(gap, top - 6, "…", text_anchor="middle")
    if separate:
        canvas.path("".join(separators), stroke="#ffffff", stroke_width=0.8)
    canvas.path("".join(frames), stroke=FAINT)
    grf, dword = operand.example
    if dword in columns:
        canvas.rect(columns[dword], top + grf * height, width, height, "none", stroke=INK, stroke_width=2)
    canvas.open(font_size=_FONT, text_anchor="middle")
    for grf, note in enumerate(notes):
        y = top + grf * height + height / 2
        for dword, x in columns.items():
            if operand.used(grf, dword):
                canvas.open(data_operand=operand.name, data_grf=grf, data_dword=dword, **font)
                for text_x, down, text in words(grf, dword):
                    canvas.text(x + text_x, y + down, text)
                canvas.close()
        canvas.text(_NOTES, y + 3, note, text_anchor="start")
    canvas.close()
    return top + operand.grfs * height


def _draw_elements(
    canvas: Canvas, x: float, y: float, width: float, height: float, operand: _Operand, elements: list[_Index]
) -> list[str]:
    """The body of a dword; returns the path of the lines between its elements."""
    element_width = width / len(elements)
    start = 0
    for fill, run in groupby(elements, operand.fill):
        count = len(list(run))
        canvas.rect(x + start * element_width, y, count * element_width, height, fill)
        start += count
    return [f"M{number(x + i * element_width)} {number(y)}v{number(height)}" for i in range(1, len(elements))]


def _box(x: float, y: float, width: float, height: float) -> str:
    return f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"


def _magnify(canvas: Canvas, y: float, operand: _Operand, column: str) -> float:
    """Draw one dword with the full names of its elements, and their bits."""
    grf, dword = operand.example
    elements = operand.elements(grf, dword)
    element_width, bits = _GRF_WIDTH / len(elements), _DWORD // len(elements)
    # Names that do not fit are drawn vertically.
    narrow = element_width < 4 * _FONT
    height = 44 if narrow else 22
    label = {"text_anchor": "end", "font_size": _FONT}
    canvas.text(_GRFS - 8, y + height / 2 - 2, f"GRF r{grf}", font_weight="bold", **label)
    canvas.text(_GRFS - 8, y + height / 2 + 8, f"{column} {dword}", **label)
    canvas.text(_GRFS - 8, y + height + 11, "bits", fill=FAINT, **label)
    separators = _draw_elements(canvas, _GRFS, y, _GRF_WIDTH, height, operand, elements)
    canvas.path("".join(separators) or "M0 0", stroke="#ffffff")
    canvas.rect(_GRFS, y, _GRF_WIDTH, height, "none", stroke=INK, stroke_width=2)
    canvas.open(font_size=_FONT, text_anchor="middle", data_magnified=operand.name, data_grf=grf, data_dword=dword)
    for i, e in enumerate(elements):
        if e:
            at = _GRFS + (i + 0.5) * element_width, y + height / 2
            turn = {"transform": f"rotate(-90 {number(at[0])} {number(at[1])})"} if narrow else {}
            canvas.text(at[0], at[1] + 3.5, _name(operand, e), **turn)
    canvas.close()
    canvas.open(font_size=_FONT, text_anchor="middle", fill=FAINT)
    for i in range(len(elements)):
        canvas.text(_GRFS + (i + 0.5) * element_width, y + height + 11, _span([i * bits, (i + 1) * bits - 1]))
    canvas.close()
    return y + height + 12


def _name(operand: _Operand, element: tuple[int, int]) -> str:
    return f"{operand.name}[{element[0]},{element[1]}]"


def _count(operand: _Operand) -> str:
    used_bytes = int((operand.held >= 0).sum()) * operand.fmt.bits // 8
    return f"{operand.grfs} GRF{'s' if operand.grfs > 1 else ''} ({used_bytes} bytes)"


def _plural(noun: str, numbers: list[int]) -> str:
    return f"{noun}{'s' if len(set(numbers)) > 1 else ''} {_span(numbers)}"


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"
