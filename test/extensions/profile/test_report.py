"""The report of a profile in a browser: every view is there, and a click shows the partners of a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import xegpu_py
from xegpu_py import Constexpr, external_tools
from xegpu_py import language as xl
from xegpu_py.extensions.profile import report as report_module
from xegpu_py.extensions.profile.gpus import gpu
from xegpu_py.extensions.profile.profiles import Profile
from xegpu_py.extensions.profile.time_model import predict

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
