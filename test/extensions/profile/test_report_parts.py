"""The parts of a profile's report, each alone: listings, panes, pictures of layouts, and the plots of memory."""

from __future__ import annotations

import base64
import re
import zlib
from html import escape
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import xegpu_py
from xegpu_py.extensions.profile import report
from xegpu_py.extensions.profile.gpus import gpu
from xegpu_py.extensions.profile.launches import launched
from xegpu_py.extensions.profile.time_model import Prediction
from xegpu_py.highlighting import VisaLexer
from xegpu_py.layout.maps import from_wg_map
from xegpu_py.layout.nested import layout_picture

HoverTool = pytest.importorskip("bokeh.models").HoverTool

LOCATED = """\
#loc = loc(unknown)
#loc1 = loc("/far/a.py":3:7)
#loc12 = loc("x"(#loc1))
module {
  %0 = f(%x) loc("/far/a.py":5:2) : i32 loc(#loc1)
  %1 = f(%x) loc(#loc)
  %2 = f(%x) loc("b.py":9:1)
  %3 = f(%x) loc(unknown)
  %4 = f(%x) loc(#loc12)
  %5 = f(%x)
}
#loc7 = loc("late.py":4:4)


"""


def test_a_level_without_its_locations() -> None:
    """Each line has the place that is written last on it; aliases are defined anywhere, and are not shown."""
    costs: dict[str | None, float] = {"a.py:3": 0.5, "b.py:9": 0.25, "a.py:5": 0.125}
    listing = report._level("xegpu", LOCATED, costs, {"a.py:3": 8, "b.py:9": 0})
    functions = [f"  %{n} = f(%x)" + " : i32" * (n == 0) for n in range(6)]
    assert listing.lines == ["module {", *functions, "}"] and listing.title == "xegpu"
    assert listing.keys == [None, "a.py:3", None, "b.py:9", None, None, None, None]
    assert listing.costs == [0, 0.5, 0, 0.25, 0, 0, 0, 0]
    assert listing.executions == [None, 8, None, 0, None, None, None, None]


def tile(rows: int, columns: int, *rest: int) -> str:
    layout = f"<sg_layout = [{rest[0]}, {rest[1]}], sg_data = [{rest[2]}, {rest[3]}]>"
    return f"%0 = load : !xetile.tile<{rows}x{columns}xf32, #xetile.tile_attr<wg_map = {layout}>>"


def test_pictures_of_layouts() -> None:
    """A layout has one, where it is named first; those of large tiles, and that fit no tile, have none."""
    shapes = [(128, 128, 2, 2, 64, 64), (128, 129, 1, 1, 8, 129), (32, 16, 4, 1, 8, 16), (32, 16, 1, 4, 32, 4)]
    lines = ["module", *(tile(*shape) for shape in shapes), tile(*shapes[2]), tile(32, 16, 3, 1, 8, 16)]
    found = report._pictures(lines)
    assert [*found] == [1, 3, 4]
    for at, (rows, columns, *rest) in ((1, shapes[0]), (3, shapes[2]), (4, shapes[3])):
        layout = from_wg_map((rest[0], rest[1]), (rest[2], rest[3]), (rows, columns))
        assert found[at] == layout_picture(layout, subgroups=rest[0] * rest[1])


def test_a_pane() -> None:
    """Its lines have the numbers of their keys, a colour by the root of their share, and tell what they cost."""
    costs, executions = [0.4, 0.1, 0.0005, 0.0, 0.0], [1234, 3, 0, None, 5]
    listing = report.Listing(
        "a<b", ["ret", "", "ret", "ret", "ret"], ["k:1", "k:2", "k:1", None, "k:3"], VisaLexer(), costs, executions,
        {1: "<svg/>"},
    )  # fmt: skip
    numbers = {"k:2": 0}
    text = report._pane(3, listing, numbers)
    assert numbers == {"k:2": 0, "k:1": 1, "k:3": 2}
    assert f"aria-label='{escape('a<b')}'" in text and "id='pane3'" in text
    lines = re.findall(r"<div class='(line[^']*)'([^>]*)>(.*?)</div>", text)
    assert [name for name, *_ in lines] == ["line", "line", "line idle", "line", "line"]
    assert [attributes for _, attributes, _ in lines] == [
        " data-key=1 style='--heat:0.75' title='40.0% of the cycles; 1,234 instructions executed'",
        # A quarter of the greatest share has half of its colour.
        " data-key=0 style='--heat:0.38' title='10.0% of the cycles; 3 instructions executed'",
        " data-key=1 title='executed by no thread'",
        "",
        " data-key=2 title='5 instructions executed'",
    ]
    shown = [re.sub("<span class=.layout.*", " PICTURE", line) for *_, line in lines]
    assert [re.sub("<.*?>", "", line) for line in shown] == ["ret", "  PICTURE", "ret", "ret", "ret"]


def test_a_pane_without_costs() -> None:
    listing = report.Listing("vISA", ["ret"], [None], VisaLexer(), [0.0], [None])
    assert "heat" not in report._pane(0, listing, {})


def accesses(lines: list[int], groups: list[int], count: int, size: int = 2) -> Any:
    """A launch whose workgroups, of `size` threads, access lines of a buffer, one after the other."""
    threads = np.array(groups, np.int32) * size + size - 1
    counts = SimpleNamespace(trace=SimpleNamespace(lines=np.array(lines), threads=threads), buffers=[])
    return SimpleNamespace(counts=counts, grid=(count, 1, 1), group_size=size, pitches={})


def test_accesses_of_lines() -> None:
    """How often each line is accessed, by how many workgroups, and by which first and last, in so many bytes."""
    rng = np.random.default_rng(0)
    lines, groups = rng.integers(90, 330, 900).tolist(), rng.integers(0, 7, 900).tolist()
    done, whole = accesses(lines, groups, 7), 200
    expected = np.zeros((4, whole), int)
    for line in range(100, 300):
        of = [group for at, group in zip(lines, groups) if at == line]
        expected[:, line - 100] = len(of), len({*of}), min(of, default=0), max(of, default=0)
    for most, count in ((1 << 20, 200), (0, 50)):
        found = report._Lines.of(done, 100, whole, 10, most)
        assert (found.pitch, found.count, found.whole) == (10, count, whole)
        table = np.frombuffer(zlib.decompress(base64.b64decode(found.packed)), np.int32).reshape(4, -1)
        assert (table == expected[:, :count]).all() and (found.times == expected[0, :count]).all()
    size = len(report._Lines.of(done, 100, whole, 10, 1 << 20).packed)
    assert [report._Lines.of(done, 100, whole, 10, size - n).count for n in (0, 1)] == [200, 100]
    assert [report._Lines.of(done, 100, n, 10, 0).count for n in (64, 65, 256)] == [64, 32, 64]
    assert report._Lines.of(done, 100, 1 << 21, 10, 1 << 30).count == 1 << 20


@pytest.mark.parametrize(
    ("count", "each", "parts"), [(1, "workgroup", 1), (64, "workgroup", 64), (96, "1.5 workgroups each", 64)]
)
def test_a_map_of_memory(count: int, each: str, parts: int) -> None:
    """An image with the accesses of each cell, and sliders over slices of time and parts of the workgroups."""
    done = accesses([0, 1, 5, 5, 11, 5], [0] * 6, count)
    found = report._Map.of(done, 0, 12, 4, 64)
    assert found is not None
    figure, time, part = report._memory_map(found).children
    assert (time.title, time.start, time.end, time.value) == ("time (-1: all of it)", -1, 11, -1)
    assert (part.title, part.start, part.end, part.value) == (f"{each} (-1: all of them)", -1, parts - 1, -1)
    [image] = [r for r in figure.renderers if "image" in r.data_source.data]
    assert image.data_source.data["image"][0].tolist() == [[1, 1, 0, 0], [0, 3, 0, 0], [0, 0, 0, 1]]
    assert (image.glyph.dw, image.glyph.dh, image.glyph.x, image.glyph.y) == (4, 3, 0, 0)
    assert (image.glyph.color_mapper.low, image.glyph.color_mapper.high) == (0, 3) and figure.y_range.flipped
    # What the page's script is told.
    [change] = time.js_property_callbacks["change:value"]
    assert change.args["map"] == {"columns": 4, "cells": 12, "parts": parts, "each": count / parts, "steps": (1, 4)}
    assert change.args["time"] is time and change.args["part"] is part
    assert change.args["entries"].data["keys"].tolist() == found.keys.tolist()


def test_a_map_of_lines_tells_the_script_its_windows() -> None:
    lines = report._Lines(130, 129 * 130, 129 * 130, np.arange(129 * 130, dtype=np.int32), "packed")
    figure, window = report._line_map("x", lines).children
    [change] = window.js_property_callbacks["change:value"]
    assert change.args["map"] == {"name": "x", "rows": 64, "columns": 64, "across": 3, "pitch": 130}
    assert change.args["source"].tags == ["packed"]
    [image] = [r for r in figure.renderers if "image" in r.data_source.data]
    assert (image.glyph.color_mapper.low, image.glyph.color_mapper.high) == (0, 129 * 130 - 1)


def test_the_most_cells_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map of each buffer has half as many cells in a row until its accesses are few enough, but at least four."""
    lines = np.arange(1 << 10)
    for touches, rows in ((2048, 32), (2047, 16), (512, 16), (511, 8), (128, 8), (32, 4), (0, 4)):
        done = accesses(lines.tolist(), [0] * len(lines), 1)
        done.counts.buffers = [SimpleNamespace(name=n, address=a, bytes=1 << 16) for n, a in (("a", 0), ("b", 1 << 20))]
        monkeypatch.setattr(report, "TOUCHES", touches)
        monkeypatch.setattr(report, "SLICES", 1)
        [(name, cells, _)] = report._maps(done)
        assert (name, cells.rows, cells.columns) == ("a", rows, rows), touches


PREDICTION = Prediction("b580", 2.0, "float", {}, {}, 1.0, 1, 1, [], {"memory": 0.0}, 0.0)


@pytest.mark.parametrize(
    ("memory", "operations", "x", "ends"),
    [
        (100.0, 1e3, 10, (0.01, 1e4)),
        (0.0, 1e3, 1e3, (0.01, 1e4)),  # without bytes, of one
        (1e6, 1e3, 1e-3, (1e-4, 1e4)),
        (1.0, 5e3, 5e3, (0.01, 5e4)),
        (100.0, 0.0, 0.01, (0.01, 1e4)),
    ],
)
def test_the_ends_of_the_roofline(memory: float, operations: float, x: float, ends: tuple[float, float]) -> None:
    """The roof reaches from a tenth of the kernel's intensity to ten times as much, or farther."""
    drawn = report._roofline(structs.replace(PREDICTION, bytes={"memory": memory}), gpu("b580"), operations)
    *roofs, point = drawn.renderers
    assert (point.data_source.data["x"], point.data_source.data["y"]) == ([x], [max(operations / 2, 1)])
    for roof, peak in zip(roofs, (20 * 8 * 2.85e9 * 256, 20 * 8 * 2.85e9 * 32)):
        xs, ys = roof.data_source.data["x"], roof.data_source.data["y"]
        assert (xs[0], xs[-1]) == pytest.approx(ends) and xs[1] == pytest.approx(peak / 456e9)
        assert ys.tolist() == pytest.approx([xs[0] * 456e9, peak, peak])


COSTLY = """\
.version 3.8
.kernel "costly"
.decl X v_type=G type=d num_elts=16 align=GRF
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    mov (M1, 16) X(0,0)<1> 0x1:d
    mov (M1, 16) X(0,0)<1> 0x2:d
    barrier
    ret (M1, 1)
"""


def test_what_waits_long_is_drawn_as_a_message() -> None:
    """An instruction of more than 40 cycles waits for one."""
    launch = launched(xegpu_py.Kernel.from_assembly(COSTLY), (), 1, 1)
    data = report._timeline(launch, [40.0, 41.0, 5.0, 1.0]).renderers[0].data_source.data
    bars = [*zip(data["left"], data["right"], data["kind"])]
    wait = 81 + report.BARRIER
    assert bars == [(0, 40, "compute"), (40, 81, "messages"), (81, wait, "barrier"), (wait, wait + 1, "compute")]


def test_what_plots_tell_below_the_pointer() -> None:
    done = accesses([0, 1, 5], [0] * 3, 1)
    map_ = report._Map.of(done, 0, 12, 4, 64)
    launch = launched(xegpu_py.Kernel.from_assembly(COSTLY), (), 1, 1)
    lines = report._Lines(4, 12, 12, np.arange(12, dtype=np.int32), "")
    assert map_ is not None
    plots = {
        "instruction": report._pressure([], 64, 128),
        "thread": report._timeline(launch, [1.0] * 4),
        "accesses": report._memory_map(map_).children[0],
        "": report._line_map("x", lines).children[0],
    }
    for name, plot in plots.items():
        [hover] = plot.select(HoverTool)
        assert hover.tooltips[0][0] == name
