"""The report of a profile: one HTML file that needs no network, with Bokeh's plots and Pygments' colours."""

from __future__ import annotations

import base64
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import PythonLexer

from xegpu_py.extensions.profile.counts import LINE, SUMMED, Row, by_line
from xegpu_py.extensions.profile.gpus import Gpu
from xegpu_py.extensions.profile.launches import ProfiledLaunch
from xegpu_py.extensions.profile.time_model import BARRIER, Prediction
from xegpu_py.highlighting import MlirLexer, VisaLexer
from xegpu_py.layout.maps import from_wg_map
from xegpu_py.layout.nested import LayoutError, layout_picture
from xegpu_py.numerics.formats import Array
from xegpu_py.plugins import MissingExtra
from xegpu_py.visa.finalizer import FinalizerError, FinalizerMissing, finalize
from xegpu_py.visa.instructions import INSTRUCTIONS

# The listings: lines of text, each with the lines of the source that it belongs to.


class Listing(Struct):
    """A text of the kernel.

    Attributes:
        title: its level.
        lines: its lines.
        keys: for each line the line of the source, or None.
        lexer: what colours it.
        costs: for each line the share of the kernel's cycles, from 0 to 1.
        executions: for each line how often its instructions were executed, or None if it has none.
        pictures: pictures of layouts, by the index of the line.
    """

    title: str
    lines: list[str]
    keys: list[str | None]
    lexer: Lexer
    costs: list[float]
    executions: list[int | None]
    pictures: dict[int, str] = field(default_factory=dict)


_ALIAS = re.compile(r'^(#loc\d*) = loc\((?:"([^"]*)":(\d+):\d+)?.*')

_WHERE = re.compile(r' loc\((?:(#loc\d*)|"([^"]*)":(\d+):\d+|[^()]*)\)')

_MAP = re.compile(r"tile<(\d+)x(\d+)x.*?wg_map\s*=?\s*<sg_layout = \[(\d+), (\d+)\], sg_data = \[(\d+), (\d+)\]>")


_PLAIN = re.compile(r'<span class="k-(?!(?:c1?|nb|k|kd|kt|nd|m[ifh]|s2?|nf)")[^"]*">([^<]*)</span>')
"""Tokens to which report.css gives no colour; native code has thousands."""


def _key(file: str, line: int) -> str | None:
    return f"{Path(file).name}:{line}" if line else None


def _level(title: str, text: str, costs: Mapping[str | None, float], executions: Mapping[Any, int]) -> Listing:
    """A module's text, which was printed with locations, without them."""
    aliases: dict[str, str | None] = {}
    for line in text.split("\n"):
        found = _ALIAS.match(line)
        if found:
            aliases[found[1]] = _key(found[2], int(found[3])) if found[2] else None
    lines, keys = [], []
    for line in text.split("\n"):
        if _ALIAS.match(line):
            continue
        places = _WHERE.findall(line)
        alias, file, number = places[-1] if places else ("", "", "")
        lines.append(_WHERE.sub("", line))
        keys.append(aliases.get(alias) if alias else _key(file, int(number)) if number else None)
    while lines and not lines[-1]:
        lines.pop()
        keys.pop()
    heat, times = [costs.get(key, 0.0) for key in keys], [executions.get(key) for key in keys]
    return Listing(title, lines, keys, MlirLexer(), heat, times, _pictures(lines))


def _pictures(lines: Sequence[str]) -> dict[int, str]:
    """Pictures of the layouts of tiles, by the lines on which these are first named."""
    found: dict[int, str] = {}
    seen: set[tuple[int, ...]] = set()
    for at, line in enumerate(lines):
        match = _MAP.search(line)
        if match is None:
            continue
        rows, columns, *rest = map(int, match.groups())
        if (rows, columns, *rest) in seen or rows * columns > 1 << 14:
            continue
        seen.add((rows, columns, *rest))
        try:
            layout = from_wg_map((rest[0], rest[1]), (rest[2], rest[3]), (rows, columns))
            found[at] = layout_picture(layout, subgroups=rest[0] * rest[1])
        except (LayoutError, ValueError):
            continue
    return found


def _native(
    done: ProfiledLaunch, keys: Mapping[int, str | None], costs: Mapping[int, float], executions: Mapping[Any, int]
) -> Listing | None:
    """The kernel's native code by Intel's finalizer; None without it."""
    kernel = done.kernel
    try:
        text = finalize(kernel.asm, kernel.target.name, kernel.options.registers).text
    except (FinalizerMissing, FinalizerError, ValueError):
        return None
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("//")]
    numbers = [int(found[1]) if (found := re.search(r"// .*?\$(\d+)\s*$", line)) else None for line in lines]
    known = [n for n in numbers if n is not None]
    # The finalizer numbers the instructions as they were written, and counts its own from the first.
    shift = max(known, default=0) - len(done.kernel.program.instructions) + 1
    own = [None if n is None else n - shift for n in numbers]
    shares: dict[int, int] = {}
    for n in own:
        if n is not None:
            shares[n] = shares.get(n, 0) + 1
    return Listing(
        "native",
        [re.sub(r"\s*//.*", "", line) for line in lines],
        [None if n is None else keys.get(n) for n in own],
        VisaLexer(),
        [0.0 if n is None else costs.get(n, 0.0) / shares[n] for n in own],
        [executions.get(n) for n in own],
    )


def listings(done: ProfiledLaunch, rows: Sequence[Row], cycles: Sequence[float]) -> list[Listing]:
    """The source, the levels of MLIR, vISA and, with Intel's finalizer, native code."""
    kernel = done.kernel
    spent = {row.index: cycles[row.index] * row.executions for row in rows}
    total = sum(spent.values()) or 1.0
    costs = {index: cost / total for index, cost in spent.items()}
    keys = {row.index: _key(row.file, row.line) for row in rows}
    executions = {row.index: row.executions for row in rows}
    by_key: dict[str | None, float] = {}
    times_by_key: dict[str | None, int] = {}
    for index, key in keys.items():
        if key is not None:
            by_key[key] = by_key.get(key, 0.0) + costs[index]
            times_by_key[key] = times_by_key.get(key, 0) + executions[index]
    found = []
    files = {row.file for row in rows if row.line}
    for file in sorted(files):
        source = kernel.executable.source
        text = source.text if source is not None and source.name == file else _read(file)
        if text is None:
            continue
        numbers = [row.line for row in rows if row.file == file and row.line]
        lines = text.rstrip().split("\n")
        first = max(min(numbers) - 12, 1) if file.endswith(".py") else 1
        last = max(numbers) + 3 if file.endswith(".py") else len(lines)
        own = [_key(file, n) for n in range(first, min(last, len(lines)) + 1)]
        lexer = PythonLexer() if file.endswith(".py") else MlirLexer()
        title = f"source: {Path(file).name}"
        heat, times = [by_key.get(key, 0.0) for key in own], [times_by_key.get(key) for key in own]
        found.append(Listing(title, lines[first - 1 : last], own, lexer, heat, times, _pictures(lines)))
    for level in kernel.levels:
        if level != "visa":
            found.append(_level(level, kernel.ir(level, debuginfo=True), by_key, times_by_key))
    texts = {row.index: row for row in rows}
    instructions = kernel.program.instructions
    lines = [texts[at].text if at in texts else f"{inst['label']}:" for at, inst in enumerate(instructions)]
    own = [keys.get(at) for at in range(len(instructions))]
    heat, counts = [costs.get(at, 0.0) for at in range(len(lines))], [executions.get(at) for at in range(len(lines))]
    found.append(Listing("vISA", lines, own, VisaLexer(), heat, counts))
    native = _native(done, keys, costs, executions)
    return [*found, native] if native else found


def _read(file: str) -> str | None:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError:
        return None


def _pane(number: int, listing: Listing, numbers: dict[str, int]) -> str:
    """A listing as HTML; lines of the source have numbers, which are shorter than their names."""
    made = highlight("\n".join(listing.lines), listing.lexer, HtmlFormatter(nowrap=True, classprefix="k-"))
    made = _PLAIN.sub(r"\1", made)
    hottest = max(listing.costs, default=0.0) or 1.0
    rows = []
    for at, text in enumerate(made.rstrip("\n").split("\n")[: len(listing.lines)]):
        key, cost, times = listing.keys[at], listing.costs[at], listing.executions[at]
        heat = f" style='--heat:{0.75 * math.sqrt(cost / hottest):.2f}'" if cost > 0.0005 else ""
        tips = [f"{cost:.1%} of the cycles"] if cost > 0.0005 else []
        tips += [f"{times:,} instructions executed" if times else "executed by no thread"] if times is not None else []
        title = f" title='{'; '.join(tips)}'" if tips else ""
        idle = " idle" if times == 0 else ""
        mark = f" data-key={numbers.setdefault(key, len(numbers))}" if key else ""
        picture = listing.pictures.get(at)
        hover = f"<span class='layout'>▦<span class='popup'>{picture}</span></span>" if picture else ""
        rows.append(f"<div class='line{idle}'{mark}{heat}{title}>{text or ' '}{hover}</div>")
    return (
        f"<section class='pane' aria-label='{escape(listing.title)}'><h3>{escape(listing.title)}</h3>"
        f"<div class='code' tabindex='0' id='pane{number}'>{''.join(rows)}</div></section>"
    )


# The plots.

_GREY = "#888888"


def _figure(**options: Any) -> Any:
    from bokeh.plotting import figure

    made = figure(
        height=380, sizing_mode="stretch_width", background_fill_alpha=0, border_fill_alpha=0, outline_line_color=_GREY,
        tools="pan,wheel_zoom,box_zoom,reset", **options,
    )  # fmt: skip
    made.toolbar.logo = None
    for axis in made.axis:
        axis.axis_label_text_color = axis.major_label_text_color = axis.axis_line_color = _GREY
        axis.major_tick_line_color = axis.minor_tick_line_color = _GREY
    made.grid.grid_line_color, made.grid.grid_line_alpha = _GREY, 0.2
    return made


def _pressure(rows: Sequence[Row], grf_bytes: int, registers: int) -> Any:
    """Registers in use along the program."""
    made = _figure(x_axis_label="instruction", y_axis_label="registers that hold needed values")
    found = [row.live / grf_bytes for row in rows]
    data: dict[str, list[Any]] = {"x": [row.index for row in rows], "y": found, "text": [row.text[:80] for row in rows]}
    made.varea(x=data["x"], y1=[0] * len(rows), y2=found, fill_alpha=0.3)
    made.line("x", "y", source=data, line_width=2)
    made.line([0, max(data["x"], default=1)], [registers, registers], line_dash="dashed", line_color="crimson")
    _hover(made, [("instruction", "@x"), ("registers", "@y{0.0}"), ("", "@text")])
    return made


def _hover(made: Any, tips: list[tuple[str, str]], **options: Any) -> None:
    from bokeh.models import HoverTool

    made.add_tools(HoverTool(tooltips=tips, **options))


def _roofline(found: Prediction, on: Gpu, lane_operations: float) -> Any:
    """The kernel between the memory's rate and the peaks, at its time by the model."""
    made = _figure(
        x_axis_type="log",
        y_axis_type="log",
        x_axis_label="operations for each byte of memory",
        y_axis_label="operations a second",
    )
    vector = on.cores * on.engines * on.lanes * 2 * on.clock
    operations = found.operations or lane_operations
    intensity = operations / max(found.bytes["memory"], 1.0)
    ends = np.array([min(0.01, intensity / 10 or 0.01), max(1e4, intensity * 10)])
    for name, peak, colour in (("products", on.dpas_peak, "#4477aa"), ("vectors", vector, "#ee6677")):
        xs = np.array([ends[0], peak / on.memory_rate, ends[1]])
        made.line(xs, np.minimum(xs * on.memory_rate, peak), legend_label=name, line_width=2, line_color=colour)
    rate = max(operations / found.seconds, 1.0)
    made.scatter(
        [max(intensity, ends[0])], [rate], size=14, fill_color="#228833", legend_label="this kernel, by the model"
    )
    made.legend.background_fill_alpha, made.legend.label_text_color = 0, _GREY
    made.legend.location = "bottom_right"
    return made


SLICES, PARTS = 12, 64
"""The slices of time, and the most parts of the workgroups, into which a memory map divides accesses."""

TOUCHES = 40_000
"""The number of accesses, of the same kind, of all maps: a report has less than 3 MB."""


class _Map(Struct):
    """How often workgroups accessed the parts of a buffer.

    Attributes:
        rows, columns: the cells into which it is divided.
        parts, each: the parts of the workgroups, and the workgroups of a part.
        line: the lines from one cell to the next, along a row and down.
        keys: int32[n], the slice of time, the part of the workgroups and the cell of accesses, as one number.
        times: int32[n], how many there were.
    """

    rows: int
    columns: int
    parts: int
    each: float
    steps: tuple[float, float]
    keys: Array
    times: Array

    @classmethod
    def of(cls, done: ProfiledLaunch, first: int, count: int, pitch: int, cells: int) -> _Map | None:
        """The map of `count` lines from a line on, with at most so many cells in a row; None without accesses."""
        trace, groups = done.counts.trace, math.prod(done.grid)
        places = trace.lines - first
        own = (places >= 0) & (places < count)
        if not own.any():
            return None
        parts, high = min(groups, PARTS), -(-count // pitch)
        rows, columns = min(cells, high), min(cells, pitch)
        when = np.flatnonzero(own) * SLICES // len(own)
        part = (trace.threads[own] // done.group_size).astype(np.int64) * parts // groups
        row, column = places[own] // pitch * rows // high, places[own] % pitch * columns // pitch
        keys, times = np.unique(((when * parts + part) * rows + row) * columns + column, return_counts=True)
        steps = pitch / columns, pitch * high / rows
        return cls(rows, columns, parts, groups / parts, steps, keys.astype(np.int32), times.astype(np.int32))


PACKED = 600_000
"""The most compressed bytes of the lines of all buffers."""


class _Lines(Struct):
    """Accesses of the lines of a buffer, by workgroup.

    Attributes:
        pitch: the lines of a row of the array.
        count: the lines that are described; those of larger buffers end early.
        whole: the lines of the buffer.
        times: int32[count], how often each line was accessed.
        packed: int32[4, count] in zlib's format and base64: these, by how many workgroups, and the first and last one.
    """

    pitch: int
    count: int
    whole: int
    times: Array
    packed: str

    @classmethod
    def of(cls, done: ProfiledLaunch, first: int, whole: int, pitch: int, most: int) -> _Lines:
        """The lines of a buffer from a line on, in at most so many bytes."""
        trace, count = done.counts.trace, min(whole, 1 << 20)
        while True:
            places = trace.lines - first
            own = (places >= 0) & (places < count)
            lines, groups = places[own], trace.threads[own] // done.group_size
            table = np.zeros((4, count), np.int32)
            table[0] = np.bincount(lines, minlength=count)
            pairs = np.unique(lines * math.prod(done.grid) + groups)
            touched, starts, each = np.unique(pairs // math.prod(done.grid), return_index=True, return_counts=True)
            table[1, touched] = each
            table[2, touched], table[3, touched] = (
                pairs[at] % math.prod(done.grid) for at in (starts, starts + each - 1)
            )
            packed = base64.b64encode(zlib.compress(table.tobytes(), 6)).decode()
            if len(packed) <= most or count <= 64:
                return cls(pitch, count, whole, table[0], packed)
            count //= 2


def _maps(done: ProfiledLaunch) -> Iterator[tuple[str, _Map, _Lines]]:
    """The map of each buffer, by cells and by lines; the lines of a buffer take what those before it have left."""
    left = PACKED
    for buffer in done.counts.buffers:
        first, last = buffer.address // LINE, (buffer.address + max(buffer.bytes, 1) - 1) // LINE
        count = last - first + 1
        pitch = done.pitches.get(buffer.name, 0) // LINE or max(math.isqrt(count), 1)
        for cells in (64, 32, 16, 8, 4):
            found = _Map.of(done, first, count, pitch, cells)
            if found is None:
                break
            if len(found.keys) <= TOUCHES // len(done.counts.buffers) or cells == 4:
                lines = _Lines.of(done, first, count, pitch, left)
                left = max(left - len(lines.packed), PACKED // 16)
                yield buffer.name, found, lines
                break


def _image(name: str, unit: str, image: Array, highest: float, across: str, down: str) -> tuple[Any, Any]:
    """A figure of how often the cells of a grid were accessed, with its scale, and the source of its image."""
    from bokeh.models import BasicTicker, ColorBar, ColumnDataSource, LinearColorMapper, NumeralTickFormatter

    made, source = _figure(x_axis_label=across, y_axis_label=down), ColumnDataSource({"image": [image]}, name=name)
    made.y_range.flipped = True
    rows, columns = image.shape
    colours = LinearColorMapper("Viridis256", low=0, high=highest)
    made.image("image", source=source, x=0, y=0, dw=columns, dh=rows, color_mapper=colours)
    bar = ColorBar(
        color_mapper=colours, ticker=BasicTicker(min_interval=1), formatter=NumeralTickFormatter(format="0,0"),
        title=f"accesses of a {unit}", width=12, background_fill_alpha=0, title_text_color=_GREY,
        major_label_text_color=_GREY,
    )  # fmt: skip
    made.add_layout(bar, "right")
    return made, source


def _slider(title: str, start: int, end: int) -> Any:
    from bokeh.models import Slider

    return Slider(start=start, end=end, value=start, step=1, title=title, sizing_mode="stretch_width")


WINDOW = 64
"""The most rows, and lines of a row, that are shown at once."""


def _line_map(name: str, found: _Lines) -> Any:
    """A window of a buffer in which each cell is a line, and a slider that moves it."""
    from bokeh.layouts import column
    from bokeh.models import CustomJS, CustomJSHover

    high = -(-found.count // found.pitch)
    rows, columns = min(high, WINDOW), min(found.pitch, WINDOW)
    across, down = -(-found.pitch // columns), -(-high // rows)
    shown = np.zeros(high * found.pitch, np.float32)
    shown[: found.count] = found.times
    image = shown.reshape(high, found.pitch)[:rows, :columns].copy()
    made, source = _image("lines", "line", image, float(found.times.max()), "64-byte lines of a row", "rows")
    window = _slider(f"window of {rows} rows of {columns} lines", 0, max(across * down - 1, 1))
    # Models are written once, other arguments with each of their uses.
    source.tags = [found.packed]
    map_ = {"name": name, "rows": rows, "columns": columns, "across": across, "pitch": found.pitch}
    given = {"source": source, "window": window, "map": map_}
    window.js_on_change("value", CustomJS(args=given, code="showLines(map, window, source);"))
    where = CustomJSHover(args=given, code="return describeLine(map, window, source, special_vars);")
    _hover(made, [("", "@image{custom}")], formatters={"@image": where})
    return column(made, window, sizing_mode="stretch_width")


def _memory_map(found: _Map) -> Any:
    """An image of a buffer, with sliders over time and over workgroups; their first positions show all."""
    from bokeh.layouts import column
    from bokeh.models import ColumnDataSource, CustomJS, CustomJSHover

    cells = found.rows * found.columns
    image = np.bincount(found.keys % cells, found.times, cells).astype(np.float32).reshape(found.rows, found.columns)
    entries = ColumnDataSource({"keys": found.keys, "times": found.times})
    made, source = _image("cells", "cell", image, float(image.max()), "64-byte lines of a row (cells)", "rows (cells)")
    each = "workgroup" if found.each == 1 else f"{found.each:.4g} workgroups each"
    time = _slider("time (-1: all of it)", -1, SLICES - 1)
    part = _slider(f"{each} (-1: all of them)", -1, found.parts - 1)
    map_ = {"columns": found.columns, "cells": cells, "parts": found.parts, "each": found.each, "steps": found.steps}
    given = {"source": source, "entries": entries, "time": time, "part": part, "map": map_}
    for one in (time, part):
        one.js_on_change("value", CustomJS(args=given, code="showTouches(map, entries, time, part, source);"))
    where = CustomJSHover(args=given, code="return describeCell(map, special_vars, entries, time);")
    _hover(made, [("accesses", "@image"), ("", "@image{custom}")], formatters={"@image": where})
    return column(made, time, part, sizing_mode="stretch_width")


def _timeline(done: ProfiledLaunch, cycles: Sequence[float]) -> Any:
    """When each thread of the first workgroup computes, sends messages, and waits at barriers, by the model."""
    from bokeh.models import SingleIntervalTicker

    kinds = {"compute": "#4477aa", "messages": "#ccbb44", "barrier": "#ee6677"}
    clock = np.zeros(done.group_size)
    bars: dict[str, list[Any]] = {name: [] for name in ("y", "left", "right", "kind", "colour")}
    current: dict[int, list[Any]] = {}

    def add(thread: int, start: float, end: float, kind: str) -> None:
        last = current.get(thread)
        if last and last[2] == kind and abs(last[1] - start) < 1e-9:
            last[1] = end
            return
        if last:
            close(thread, last)
        current[thread] = [start, end, kind]

    def close(thread: int, last: list[Any]) -> None:
        if last[1] > last[0]:
            for name, value in zip(bars, (thread, last[0], last[1], last[2], kinds[last[2]])):
                bars[name].append(value)

    paths: dict[int, list[int]] = {}
    for run, thread in done.counts.steps:
        paths.setdefault(thread, []).extend(run)
    waits = [INSTRUCTIONS[inst.name].barrier in ("wait", "both") for inst in done.kernel.program.instructions]
    messages = [INSTRUCTIONS[inst.name].is_message for inst in done.kernel.program.instructions]
    left = {thread: iter(path) for thread, path in paths.items()}
    while left:
        arrived = []
        for thread, path in list(left.items()):
            for index in path:
                if waits[index]:
                    arrived.append(thread)
                    break
                kind = "messages" if messages[index] or cycles[index] > 40 else "compute"
                add(thread, clock[thread], clock[thread] + cycles[index], kind)
                clock[thread] += cycles[index]
            else:
                del left[thread]
        last = max((clock[thread] for thread in arrived), default=0.0) + BARRIER
        for thread in arrived:
            add(thread, clock[thread], last, "barrier")
            clock[thread] = last
    for thread, last_bar in current.items():
        close(thread, last_bar)
    made = _figure(x_axis_label="cycles, by the model", y_axis_label="thread of the first workgroup")
    made.yaxis.ticker = SingleIntervalTicker(interval=max(1, done.group_size // 8), num_minor_ticks=0)
    made.hbar(y="y", left="left", right="right", height=0.8, color="colour", legend_field="kind", source=bars)
    _hover(made, [("thread", "@y"), ("", "@kind"), ("cycles", "@left{0} to @right{0}")])
    made.legend.background_fill_alpha, made.legend.label_text_color = 0, _GREY
    made.legend.orientation = "horizontal"
    made.add_layout(made.legend[0], "above")
    return made


# The page.

_FOLDER = Path(__file__).parent


def page(
    title: str, done: ProfiledLaunch, rows: Sequence[Row], found: Prediction, on: Gpu, further: Mapping[str, str] = {}
) -> str:
    """The report as HTML.

    Args:
        title: the kernel's name.
        done: the launch.
        rows: its counts.
        found: its predicted time.
        on: the GPU of the prediction.
        further: further views, in HTML by their titles.

    Raises:
        MissingExtra: if Bokeh is not installed.
    """
    try:
        from bokeh.embed import components
        from bokeh.resources import Resources
    except ImportError:
        raise MissingExtra("the report needs 'bokeh': pip install 'xegpu-py[profile]'") from None
    program = done.kernel.program
    scale = on.lanes and 2.0
    lanes = sum(row.lanes for row in rows if row.category in ("alu", "math")) * scale
    plots: dict[str, Any] = {
        "registers": _pressure(rows, done.kernel.target.grf_bytes, done.kernel.executor.allocation.registers),
        "roofline": _roofline(found, on, lanes),
        "timeline": _timeline(done, found.cycles),
    }
    maps = list(_maps(done))
    for n, (name, cells, lines) in enumerate(maps):
        plots[f"map{n}"], plots[f"lines{n}"] = _memory_map(cells), _line_map(name, lines)
    script, parts = components(plots)
    numbers: dict[str, int] = {}
    panes = "".join(_pane(n, listing, numbers) for n, listing in enumerate(listings(done, rows, found.cycles)))
    model = (
        f"By a model, and not a measurement: {found.seconds * 1e6:.4g} us on {on.name} = {found.sum_text()}; "
        f"bound by {found.bound}."
    )
    memory = ""
    for n, (name, _, lines) in enumerate(maps):
        part = "" if lines.count == lines.whole else f": the first {lines.count} of {lines.whole}"
        memory += f"<h3>{escape(name)}</h3>{parts[f'map{n}']}<h3>{escape(name)} by line{part}</h3>{parts[f'lines{n}']}"
    complete = "" if done.counts.trace.complete else "<p class='note'>Only the first accesses are shown.</p>"
    hint = (
        "Orange: share of the cycles by the model, of a line of the source in the listings of MLIR. "
        "<span class='idle'>Grey with a dotted edge</span>: executed by no thread. Click a line to see its partners."
    )
    views = {
        "Code": f"<p class='note'>{hint}</p><div class='panes'>{panes}</div>",
        "Registers": parts["registers"],
        "Roofline": f"<p class='note'>{escape(model)}</p>{parts['roofline']}",
        "Memory": complete + memory,
        "Timeline": parts["timeline"],
        "Counts": f"<div class='scroll'>{_tables(done, rows)}</div>",
        **{escape(name): f"<div class='scroll'>{view}</div>" for name, view in further.items()},
    }
    tabs = "".join(
        f"<button role='tab' id='tab{n}' aria-controls='view{n}'>{name}</button>" for n, name in enumerate(views)
    )
    bodies = "".join(
        f"<div role='tabpanel' id='view{n}' aria-labelledby='tab{n}'>{body}</div>"
        for n, body in enumerate(views.values())
    )
    resources = Resources(mode="inline", components=["bokeh", "bokeh-widgets"]).render_js()
    x, y, z = done.grid
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}: profile</title>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><link rel='icon' href='data:,'>"
        f"<style>{(_FOLDER / 'report.css').read_text()}</style>{resources}</head><body><header><h1>{escape(title)}</h1>"
        f"<div>{x} x {y} x {z} workgroups of {done.group_size} thread{'s' * (done.group_size > 1)}, "
        f"{len(program.instructions)} instructions, {sum(row.executions for row in rows):,} executed. "
        f"{escape(model)}</div><nav role='tablist'>{tabs}<button id='theme'>dark / light</button></nav></header>"
        f"<main>{bodies}</main>{script}<script>{(_FOLDER / 'report.js').read_text()}"
        f"</script></body></html>"
    )


def _tables(done: ProfiledLaunch, rows: Sequence[Row]) -> str:
    """The counts by line of the source, and by buffer."""
    found = []
    names = [name for name in SUMMED if any(getattr(row, name) for row in rows)]
    cells = "".join(f"<th>{name}</th>" for name in names)
    found.append(f"<h3>By line</h3><table><tr><th>line</th>{cells}</tr>")
    for file, line, sums in by_line(rows):
        values = "".join(f"<td>{sums[name]:,}</td>" for name in names)
        found.append(f"<tr><td>{escape(_key(file, line) or '-')}</td>{values}</tr>")
    fields = ("messages", "bytes", "lines", "unique")
    head = "".join(f"<th>{name}</th>" for name in ("kind", *fields, "coalescing"))
    found.append(f"</table><h3>By buffer</h3><table><tr><th>buffer</th>{head}</tr>")
    for entry in done.counts.moved():
        values = "".join(f"<td>{getattr(entry, name):,}</td>" for name in fields)
        found.append(
            f"<tr><td>{escape(entry.buffer)}</td><td>{entry.kind}</td>{values}<td>{entry.coalescing:.2f}</td></tr>"
        )
    return "".join(found) + "</table>"
