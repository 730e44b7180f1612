"""The report of a profile in a browser: every view is there, and a click shows the partners of a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import xegpu_py
from xegpu_py import Constexpr, external_tools
from xegpu_py import language as xl
from xegpu_py.extensions.profile import profiles
from xegpu_py.extensions.profile import report as report_module
from xegpu_py.extensions.profile.counts import live_bytes
from xegpu_py.extensions.profile.gpus import gpu
from xegpu_py.extensions.profile.launches import launched
from xegpu_py.extensions.profile.profiles import Profile
from xegpu_py.extensions.profile.time_model import BARRIER, predict
from xegpu_py.visa.dataflow import liveness_of

pytest.importorskip("bokeh")
ROOT = Path(__file__).parents[3]
SCREENSHOTS = ROOT / "docs" / "site" / "screenshots"
MAP = xl.WgMap(sg_layout=(2, 2), sg_data=(16, 16))


@xegpu_py.jit(target="bmg")
def copied(X, Y, ROWS: Constexpr, COLUMNS: Constexpr):
    m, n = xl.program_id(0) * ROWS, xl.program_id(1) * COLUMNS
    Y.tile((ROWS, COLUMNS), at=(m, n)).store(X.tile((ROWS, COLUMNS), at=(m, n)).load())


@xegpu_py.jit(target="bmg")
def scaled_sums(X, Y, TURNS: Constexpr):
    total = xl.zeros((32, 32), map=MAP)
    for n in range(TURNS):
        total += X.tile((32, 32), at=(xl.program_id(0) * 32, n * 32), map=MAP).load()
    Y.tile((32, 1), at=(xl.program_id(0) * 32, 0)).store(total.sum(axis=1, keep_dims=True))


@pytest.fixture(scope="module")
def found() -> Profile:
    x, y = np.ones((128, 256), np.float32), np.zeros((128, 16), np.float32)
    profile: Profile = scaled_sums[4].profile(x, y, TURNS=8)
    assert (y[:, 0] == 256).all()
    return profile


@pytest.fixture(scope="module")
def report(found: Profile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("report") / "p.html"
    found.save(path)
    return path


def test_one_small_file(report: Path) -> None:
    text = report.read_text()
    assert len(text) < 3 << 20
    for outside in ("<script src", '<link rel="stylesheet"'):
        assert outside not in text
    for level in ("source: test_report.py", "xetile", "xegpu", "vISA"):
        assert f"aria-label='{level}'" in text
    assert "By a model, and not a measurement" in text
    total, parts = re.search(r"measurement: ([\d.]+) us on \w+ = (.*?);", text).groups()
    assert sum(float(part.split()[1]) for part in parts.split(" + ")) == pytest.approx(float(total), rel=0.02)
    assert re.search(r"\d+ instructions, [\d,]+ executed", text)
    # Only tokens that have a colour are marked: the native code of a layer norm made a report of 3.3 MB.
    coloured = re.findall(r"\.k-(\w+)", Path(report_module.__file__).with_suffix(".css").read_text())
    assert set(re.findall(r'class="k-(\w+)"', text)) <= set(coloured)


@pytest.fixture
def without_plots() -> Iterator[None]:
    """Reports have empty plots: to write their data takes half the time of a report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bokeh.embed.components", lambda plots: ("", dict.fromkeys(plots, "")))
        yield


@pytest.mark.usefixtures("without_plots")
def test_lines_take_what_other_buffers_leave(found: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    def lines() -> dict[str, Any]:
        return {name: lines for name, _, lines in report_module._maps(found.__dict__["launched"])}

    whole = lines()
    assert (whole["X"].count, whole["X"].times.sum(), whole["Y"].count) == (128 * 16, 128 * 16, 128)
    monkeypatch.setattr(report_module, "PACKED", len(whole["X"].packed))
    assert lines()["X"].count == 128 * 16
    monkeypatch.setattr(report_module, "PACKED", len(whole["X"].packed) - 1)
    assert lines()["X"].count == 128 * 8
    assert "<h3>X by line: the first 1024 of 2048</h3>" in found.html()
    monkeypatch.undo()
    assert "<h3>X by line</h3>" in found.html()


@xegpu_py.jit(target="bmg")
def with_a_branch(X, Y, n):
    total = xl.sum(X.tile((32, 32), at=(0, 0)).load())
    if n > 3:
        total = total * 7.0
    Y[0] = total


@pytest.mark.parametrize("products", [0.0, 3e9])
def test_the_kernel_in_the_roofline(products: float) -> None:
    """Its operations are those of products, or of lanes if it has none."""
    x = np.empty((512, 4096), np.float32)
    kernel = copied.compile(x, x.copy(), ROWS=32, COLUMNS=64)
    prediction = structs.replace(predict(kernel, (x, np.empty_like(x)), (16, 64), "b580"), operations=products)
    drawn = report_module._roofline(prediction, gpu("b580"), 2e9)
    operations = products or 2e9
    point = drawn.renderers[-1].data_source.data
    assert point["y"] == [pytest.approx(operations / prediction.seconds)]
    assert point["x"] == [pytest.approx(operations / prediction.bytes["memory"])]
    for line, peak in zip(drawn.renderers, (gpu("b580").dpas_peak, 14.6e12)):
        values = line.data_source.data
        assert max(values["y"]) == pytest.approx(peak, rel=1e-3)
        assert values["y"][0] == pytest.approx(values["x"][0] * 456e9)


def test_registers_along_the_program(found: Profile) -> None:
    """The plot has a filled area and a line of the registers in use, and a dashed line at all that there are."""
    drawn = report_module._pressure(found.rows, 64, 128)
    area, line, limit = ({name: list(v) for name, v in r.data_source.data.items()} for r in drawn.renderers)
    used = [row.live / 64 for row in found.rows]
    assert line["y"] == area["y2"] == used and set(area["y1"]) == {0} and max(used) < 128
    assert line["x"] == area["x"] == [row.index for row in found.rows]
    assert line["text"] == [row.text[:80] for row in found.rows]
    assert (limit["x"], limit["y"]) == ([0, line["x"][-1]], [128, 128])
    assert [*report_module._pressure([], 64, 256).renderers[2].data_source.data["x"]] == [0, 1]


def test_live_bytes_are_those_of_the_variables_in_use() -> None:
    compiled = scaled_sums.compile(np.empty((128, 256), np.float32), np.empty((128, 16), np.float32), TURNS=8)
    program, target = compiled.program, compiled.target
    ranges = liveness_of(program, target).ranges.items()
    used = [
        sum(var.bytes for var, (first, last) in ranges if first <= at <= last)
        for at in range(len(program.instructions))
    ]
    assert live_bytes(program, target).tolist() == used and max(used) > 0


@pytest.mark.usefixtures("without_plots")
def test_operations_of_lanes_and_lines_of_the_source(found: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page counts two operations for each lane of arithmetic; the source begins 12 lines before the kernel."""
    given = []
    roofline = report_module._roofline
    monkeypatch.setattr(report_module, "_roofline", lambda *of: given.append(of[2]) or roofline(*of))
    found.html()
    assert given == [2 * sum(row.lanes for row in found.rows if row.category in ("alu", "math"))] and given[0] > 0
    done = found.__dict__["launched"]
    source, *levels = report_module.listings(done, found.rows, [1.0] * len(done.kernel.program.instructions))
    assert isinstance(source.lexer, report_module.PythonLexer)
    numbers = [row.line for row in found.rows if row.line]
    text = Path(__file__).read_text().split("\n")
    assert source.lines == text[min(numbers) - 13 : max(numbers) + 3]
    assert source.keys == [f"test_report.py:{n}" for n in range(min(numbers) - 12, max(numbers) + 4)]
    for listing in (source, *levels):
        assert len(listing.lines) == len(listing.keys) == len(listing.costs) == len(listing.executions)
    executed = sum(row.executions for row in found.rows)
    [visa] = (listing for listing in levels if listing.title == "vISA")
    assert sum(visa.costs) == pytest.approx(1) and sum(n or 0 for n in visa.executions) == executed
    shares = {key: cost for key, cost in zip(source.keys, source.costs) if cost}
    by_line = {f"test_report.py:{n}": sum(r.executions for r in found.rows if r.line == n) / executed for n in numbers}
    assert shares == pytest.approx(by_line)


MODULE = """\
gpu.module @kernels {
  gpu.func @k(%out: memref<16xi32>) kernel {
    %one = arith.constant 1 : i32
    %thread = gpu.thread_id x
    memref.store %one, %out[%thread] : memref<16xi32>
    gpu.return
  }
}
"""


def test_listings_of_modules(tmp_path: Path) -> None:
    """Source in MLIR is shown as a whole; each level has the colours of its language."""
    file = tmp_path / "k.mlir"
    file.write_text(MODULE)
    for kernel in (xegpu_py.compile(file), xegpu_py.compile(MODULE)):
        profile = kernel.profile(np.zeros(16, np.int32))
        done = profile.__dict__["launched"]
        listed = report_module.listings(done, profile.rows, [1.0] * len(done.kernel.program.instructions))
        [source] = (listing for listing in listed if listing.title.startswith("source: "))
        assert source.lines == MODULE.rstrip().split("\n") and isinstance(source.lexer, report_module.MlirLexer)
        store = next(at for at, line in enumerate(source.lines) if "memref.store" in line)
        assert source.executions[store] and source.costs[store] > 0


def test_the_tables_of_counts(found: Profile) -> None:
    """The sums of each line of the source, and what messages moved of each buffer."""
    done = found.__dict__["launched"]
    lines, buffers = (
        [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
        for table in report_module._tables(done, found.rows).split("<h3>")[1:]
    )
    names = lines[0][1:]
    assert lines[0][0] == "line" and {"executions", "bytes"} <= set(names) and "conflicts" not in names
    wanted = [[f"test_report.py:{line}" if line else "-", *(f"{sums[n]:,}" for n in names)]
              for _, line, sums in found.lines]  # fmt: skip
    assert lines[1:] == wanted and len(wanted) > 3
    for _, line, sums in found.lines:
        assert sums == {name: sum(getattr(row, name) for row in found.rows if row.line == line) for name in sums}
    assert buffers[0] == ["buffer", "kind", "messages", "bytes", "lines", "unique", "coalescing"]
    assert buffers[1:] == [
        [t.buffer, t.kind, f"{t.messages:,}", f"{t.bytes:,}", f"{t.lines:,}", f"{t.unique:,}", f"{t.coalescing:.2f}"]
        for t in found.traffic
    ]
    assert {"X", "Y"} <= {row[0] for row in buffers[1:]}


def test_a_layout_has_one_picture_in_each_listing(found: Profile) -> None:
    done = found.__dict__["launched"]
    drawn = {}
    for listing in report_module.listings(done, found.rows, [1.0] * len(done.kernel.program.instructions)):
        maps: dict[str, int] = {}
        for at, line in enumerate(listing.lines):
            if of := report_module._MAP.search(line):
                maps.setdefault(of.groups(), at)
        assert [*listing.pictures] == [*maps.values()]
        drawn[listing.title] = len(maps), sum(bool(report_module._MAP.search(line)) for line in listing.lines)
    # The tiles of X have one map, which several lines name.
    assert drawn["xetile"][0] >= 1 and drawn["xetile"][1] > drawn["xetile"][0]


BARRIERS = """\
.version 3.8
.kernel "barriers"
.decl X v_type=G type=d num_elts=16 align=GRF
.decl Id v_type=G type=ud num_elts=3 align=dword
.decl P v_type=P num_elts=1
.decl In v_type=G type=uq num_elts=1 align=qword
.input In offset=64 size=8
.implicit_LOCAL_ID Id offset=80 size=12
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    cmp.eq (M1_NM, 1) P Id(0,0)<0;1,0> 0x0:ud
    (P) jmp (M1, 1) First
    mov (M1, 16) X(0,0)<1> 0x1:d
    mov (M1, 16) X(0,0)<1> 0x2:d
First:
    mov (M1, 16) X(0,0)<1> 0x3:d
    lsc_load.ugm (M1_NM, 1) X:d32x16t flat[In]:a64
    barrier
    mov (M1, 16) X(0,0)<1> 0x4:d
    ret (M1, 1)
"""


def test_when_each_thread_computes_sends_and_waits() -> None:
    """The bars of a thread follow each other; the thread that comes first waits for the last one."""
    kernel = xegpu_py.Kernel.from_assembly(BARRIERS)
    launch = launched(kernel, (np.zeros(16, np.int32),), 1, 3)
    names = [inst.name for inst in kernel.program.instructions]
    cycles = [{"mov": 7.0, "lsc_load": 30.0, "label": 0.0}.get(name, 2.0) for name in names]
    drawn = report_module._timeline(launch, cycles)
    data = drawn.renderers[0].data_source.data
    assert drawn.yaxis.ticker.interval == 1
    many = launched(kernel, (np.zeros(16, np.int32),), 1, 24)
    assert report_module._timeline(many, cycles).yaxis.ticker.interval == 3
    bars: dict[int, list[tuple[float, float, str]]] = {}
    for thread, left, right, kind, colour in sorted(zip(*(data[n] for n in ("y", "left", "right", "kind", "colour")))):
        bars.setdefault(thread, []).append((left, right, kind))
        assert (kind == "barrier") == (colour == "#ee6677") and (kind == "messages") == (colour == "#ccbb44")
    assert sorted(bars) == [0, 1, 2]
    for thread, own in bars.items():
        computed = 18.0 if thread else 4.0
        starts = [0, computed + 7, computed + 37, 18 + 37 + BARRIER, 18 + 37 + BARRIER + 9]
        assert own == [*zip(starts, starts[1:], ("compute", "messages", "barrier", "compute"))]


def test_native_code_beside_its_lines(found: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finalizers number what they add before a program's instructions."""
    done = found.__dict__["launched"]
    count = len(done.kernel.program.instructions)
    last = count - 1
    lines = ("mov r1 r2 // $2", "add r3 r4 // ... $7", "add r3 r5 // $7", "sync.nop // none", f"eot // $ 4 ${last + 5}")
    text = "//.kernel k\n\n" + "".join(f" {line}\n" for line in lines)
    monkeypatch.setattr(report_module, "finalize", lambda *of: SimpleNamespace(text=text))
    keys, costs, times = {2: "a.py:3", last: "a.py:9"}, {2: 0.5, last: 0.25}, {2: 8, last: 4}
    listing = report_module._native(done, keys, costs, times)
    assert listing.lines == [" mov r1 r2", " add r3 r4", " add r3 r5", " sync.nop", " eot"]
    assert listing.keys == [None, "a.py:3", "a.py:3", None, "a.py:9"]
    assert listing.costs == [0, 0.25, 0.25, 0, 0.25] and listing.executions == [None, 8, 8, None, 4]
    monkeypatch.setattr(report_module, "finalize", lambda *of: SimpleNamespace(text=" ret // none"))
    assert report_module._native(done, keys, costs, times).costs == [0]


@pytest.mark.usefixtures("without_plots")
def test_lines_that_no_thread_executes_look_different() -> None:
    def idle(n: int) -> dict[str, list[str]]:
        text = with_a_branch.profile(np.ones((32, 32), np.float32), np.zeros(1, np.float32), n).html()
        panes = re.findall(r"aria-label='([^']+)'><h3>.*?</h3>(.*?)</section>", text, re.DOTALL)
        lines = r"<div class='line idle'[^>]*title='executed by no thread'>(.*?)</div>"
        return {title: re.findall(lines, pane) for title, pane in panes}

    never, always = idle(3), idle(4)
    assert [re.sub("<.*?>", "", line).strip() for line in never["source: test_report.py"]] == ["total = total * 7.0"]
    assert len(never["vISA"]) >= 1 and "mul" in "".join(never["vISA"])
    assert any("arith.mulf" in re.sub("<.*?>", "", line) for line in never["xegpu"])
    assert not any(lines for lines in always.values())


def test_the_gpu_of_the_model(found: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the named one, or the usual one of the target; that of Xe2 for targets that no GPU has."""

    def modelled(on: str | None = None) -> set[str]:
        *_, prediction, model, views = found.html(on, {"a": "view"})  # type: ignore[misc]
        assert views == {"a": "view"}
        return {prediction.gpu, model.name}

    monkeypatch.setattr(profiles, "page", lambda *of: of)
    assert (modelled(), modelled("b70"), modelled("max1100")) == ({"b580"}, {"b70"}, {"max1100"})
    for target, usual in (("a770", "a770"), ("dg2", "a770"), ("pvc", "max1100"), ("ptl", "b580")):
        monkeypatch.setattr(found, "target", target)
        assert modelled() == {usual} and modelled("b60") == {"b60"}
    with pytest.raises(ValueError, match="there is no model of 'none'"):
        found.html("none")


@pytest.mark.usefixtures("without_plots")
def test_a_trace_that_ends_early_is_told(found: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    done, note = found.__dict__["launched"], "Only the first accesses are shown."
    assert done.counts.trace.complete and note not in found.html()
    monkeypatch.setitem(done.counts.__dict__, "trace", structs.replace(done.counts.trace, complete=False))
    assert note in found.html()


def test_rows_of_arrays() -> None:
    """The bytes from one row to the next of arrays that have rows, also of parts of wider arrays."""
    x = np.ones((32, 96), np.float32)[:, :64]
    for y in (np.zeros(1, np.float32), np.zeros((1, 8), np.float32)[0]):
        profile = with_a_branch.profile(x, y, 3)
        assert profile.__dict__["launched"].pitches == {"X": 96 * 4}


def test_in_notebooks_it_has_a_frame(found: Profile) -> None:
    assert found._repr_html_().startswith("<iframe srcdoc='&lt;!doctype html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=external_tools.find("chromium"), args=["--no-sandbox"])
        yield made
        made.close()


CHOOSE = """async ([name, title, value]) => {
  const models = [...Bokeh.documents[0]._all_models.values()];
  models.filter(model => model.type === "Slider" && model.title === title).forEach(model => model.value = value);
  // Callbacks run later.
  await new Promise(done => setTimeout(done, 200));
  const images = models.filter(model => model.type === "ColumnDataSource" && model.name === name);
  return [...images.map(model => model.data.image[0]).find(image => image.length === 64 * 16)];
}"""
"""Moves the sliders of a title in all memory maps, and gives the accesses of the cells, or lines, of `X`."""


WIDER = """[...document.querySelectorAll('body *')].filter(element =>
  element.getBoundingClientRect().right > innerWidth + 1 && !element.closest('.code, .scroll'))"""
"""The elements that are wider than the window, but those in panes that scroll."""


@pytest.mark.needs("chromium")
def test_every_view_in_a_browser(report: Path, browser: Any, request: pytest.FixtureRequest) -> None:
    folder = SCREENSHOTS if request.config.getoption("--save-screenshots") else report.parent
    page, wrong = browser.new_page(viewport={"width": 1280, "height": 900}), []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda r: wrong.append(r.url) if r.url.startswith("http") else None)
    page.goto(report.as_uri())
    page.wait_for_selector("#tab0[aria-selected=true]")
    views = page.locator("[role=tab]").all_inner_texts()
    assert views == ["Code", "Registers", "Roofline", "Memory", "Timeline", "Counts"]
    # A click on the load in the source shows its ops and instructions.
    line = page.locator("#pane0 .line", has_text="X.tile((32, 32)").first
    line.click()
    for pane in range(page.locator(".code").count()):
        assert page.locator(f"#pane{pane} .line.on").count() > 0, pane
    assert "lsc_load" in "".join(page.locator(".line.on").all_inner_texts())
    page.locator("#pane0").focus()
    page.keyboard.press("ArrowDown")
    assert "store" in page.locator("#pane0 .line.on").inner_text()
    assert page.locator(".layout").count() > 0
    page.screenshot(path=folder / "profile-code-wide.png")
    page.locator("#tab0").focus()
    for name in views[1:]:
        page.keyboard.press("ArrowRight")
        view = page.locator("[role=tabpanel]:not([hidden])")
        assert view.count() == 1
        assert view.locator("table" if name == "Counts" else ".bk-Figure").count() > 0, name
        page.screenshot(path=folder / f"profile-{name.lower()}-wide.png")
    page.locator("#tab3").click()
    # Workgroup 2 loads rows 64 to 95 of 128, two in a cell, from 16 lines of each.
    cells = page.evaluate(CHOOSE, ["cells", "workgroup (-1: all of them)", 2])
    assert [n for n, times in enumerate(cells) if times] == list(range(32 * 16, 48 * 16)) and set(cells) == {0, 2}
    later = page.evaluate(CHOOSE, ["cells", "time (-1: all of it)", 0])
    assert 0 < sum(later) < sum(cells)
    page.evaluate(CHOOSE, ["cells", "time (-1: all of it)", -1])
    box = page.locator("[role=tabpanel]:not([hidden]) .bk-Figure").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.5)
    page.get_by_text("by workgroup 2: 2 times").wait_for(timeout=10_000)
    bars = "[...Bokeh.documents[0]._all_models.values()].filter(model => model.type === 'ColorBar')"
    assert (
        page.evaluate(f"{bars}.map(bar => bar.title).sort()") == ["accesses of a cell"] * 2 + ["accesses of a line"] * 2
    )
    assert page.evaluate(f"{bars}.map(bar => bar.color_mapper.high)[0]") == 2
    # By line: the second window has rows 64 to 127, of which workgroups 2 and 3 load each line once.
    lines = page.evaluate(CHOOSE, ["lines", "window of 64 rows of 16 lines", 1])
    assert set(lines) == {1}
    figure = page.locator("[role=tabpanel]:not([hidden]) .bk-Figure").nth(1)
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    for share, text in ((0.3, "1 times by workgroup 2"), (0.65, "1 times by workgroup 3")):
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * share)
        page.get_by_text(re.compile(rf"line \d+, from byte \d+: {text}")).wait_for(timeout=10_000)
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.locator("#theme").click()
    assert page.evaluate(colour) != light
    # Below 700 px the panes are one below the other, and only what scrolls is wider than the window.
    lefts = "[...document.querySelectorAll('.pane')].map(pane => pane.getBoundingClientRect().left)"
    page.locator("#tab0").click()
    assert len(set(page.evaluate(lefts))) > 1
    page.set_viewport_size({"width": 690, "height": 844})
    assert len(set(page.evaluate(lefts))) == 1
    # Short listings leave no empty space there.
    heights = page.evaluate("[...document.querySelectorAll('.code')].map(code => code.clientHeight)")
    assert min(heights) < 0.55 * 844 < max(heights)
    page.set_viewport_size({"width": 400, "height": 844})
    for tab in range(len(views)):
        page.locator(f"#tab{tab}").click()
        page.wait_for_function(f"{WIDER}.length === 0", timeout=10_000)
    page.set_viewport_size({"width": 390, "height": 844})
    for tab in range(len(views)):
        page.locator(f"#tab{tab}").click()
        # Figures are laid out again after the page.
        page.wait_for_function("document.documentElement.scrollWidth <= 390", timeout=10_000)
    page.locator("#tab0").click()
    page.screenshot(path=folder / "profile-code-narrow.png")
    page.close()
    assert wrong == []


@pytest.mark.parametrize(("groups", "group_size", "cells", "pitch"), [(8, 4, 16, 8), (100, 2, 3, 5), (70, 1, 40, 40)])
def test_accesses_of_a_map(groups: int, group_size: int, cells: int, pitch: int) -> None:
    """Each access counts in the slice of its turn, the part of its workgroup, and the cell of its line."""
    rng = np.random.default_rng(groups)
    first, count, accesses = 1000, 37, 300
    lines, threads = rng.integers(990, 1050, accesses), rng.integers(0, groups * group_size, accesses)
    trace = SimpleNamespace(lines=lines, threads=threads.astype(np.int32))
    done = SimpleNamespace(counts=SimpleNamespace(trace=trace), grid=(groups, 1, 1), group_size=group_size)
    found = report_module._Map.of(done, first, count, pitch, cells)
    high = -(-count // pitch)
    parts, rows, columns = min(groups, report_module.PARTS), min(cells, high), min(cells, pitch)
    assert (found.parts, found.rows, found.columns) == (parts, rows, columns)
    assert found.each == groups / parts and found.steps == (pitch / columns, pitch * high / rows)
    expected: dict[int, int] = {}
    for turn, (line, thread) in enumerate(zip(lines.tolist(), threads.tolist())):
        if first <= line < first + count:
            part = thread // group_size * parts // groups
            row, column = (line - first) // pitch * rows // high, (line - first) % pitch * columns // pitch
            key = ((turn * report_module.SLICES // accesses * parts + part) * rows + row) * columns + column
            expected[key] = expected.get(key, 0) + 1
    assert dict(zip(found.keys.tolist(), found.times.tolist())) == expected
    assert report_module._Map.of(done, 2000, count, pitch, cells) is None


@pytest.mark.parametrize(
    ("address", "size", "lines", "pitch"),
    [(0, 64, 1, 1), (0, 65, 2, 1), (63, 1, 1, 1), (63, 2, 2, 1), (64, 640, 10, 3), (100, 0, 1, 1)],
)
def test_the_lines_of_buffers(address: int, size: int, lines: int, pitch: int) -> None:
    """Those of its bytes, whole ones; rows of a buffer without a pitch make it about square."""
    touched = np.arange(1 << 8)
    counts = SimpleNamespace(
        trace=SimpleNamespace(lines=touched, threads=touched.astype(np.int32)),
        buffers=[SimpleNamespace(name="x", address=address, bytes=size)],
    )
    done: Any = SimpleNamespace(counts=counts, pitches={}, grid=(len(touched), 1, 1), group_size=1)
    [(_, cells, found)] = report_module._maps(done)
    assert (found.count, found.whole, found.pitch, cells.times.sum()) == (lines, lines, pitch, lines)
    done.pitches = {"x": 128}
    assert next(report_module._maps(done))[2].pitch == 2


@pytest.mark.parametrize(
    ("count", "pitch", "window", "last"),
    [(1, 1, "1 rows of 1", 1), (64 * 64, 64, "64 rows of 64", 1), (65 * 64, 64, "64 rows of 64", 1),
     (129 * 65 - 64, 65, "64 rows of 64", 5), (300, 300, "1 rows of 64", 4), (300, 1, "64 rows of 1", 4)],
)  # fmt: skip
def test_windows_of_lines(count: int, pitch: int, window: str, last: int) -> None:
    """The slider has a position for each window of 64 rows of 64 lines; one that would have a single one has two."""
    lines = report_module._Lines(pitch, count, count, np.arange(count, dtype=np.int32), "")
    image, slider = report_module._line_map("x", lines).children
    assert (slider.title, slider.start, slider.end, slider.value) == (f"window of {window} lines", 0, last, 0)
    [source] = {id(r.data_source): r.data_source for r in image.renderers}.values()
    [shown] = source.data["image"]
    rows, columns = (int(n) for n in window.split(" rows of "))
    assert shown.tolist() == [[row * pitch + column for column in range(columns)] for row in range(rows)]
