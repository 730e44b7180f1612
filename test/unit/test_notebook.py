"""The tour notebook runs, and what it shows are IR, assembly, layouts and errors as notebooks show them."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from effort import SHARE
from markdown import ROOT

import xegpu_py
from xegpu_py.layout import from_sg_map

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")


def test_tour_runs():
    if SHARE < 1 and importlib.util.find_spec("mkdocs"):
        pytest.skip("is the same test of the notebook that the site has run")
    notebook = nbformat.read(ROOT / "examples" / "tour.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "is committed without outputs"
    shows_what_it_says(nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute())


def shows_what_it_says(ran):
    outputs = [cell.outputs for cell in ran.cells if cell.cell_type == "code"]
    statistics, tiles, blocks, program, lanes, subgroups, search, mistake = outputs
    assert "hardware threads" in statistics[0].data["text/html"]
    assert "xetile" in tiles[0].data["text/html"] and "tile_mma" in tiles[0].data["text/html"]
    assert "xegpu.dpas" in blocks[0].data["text/html"]
    assert "lsc_load_block2d" in program[0].data["text/html"]
    assert lanes[0].data["image/svg+xml"].startswith("<svg") and subgroups[0].data["image/svg+xml"].startswith("<svg")
    assert search[0].data["text/plain"].count("prefetch=") == 3 and " us" in search[0].data["text/plain"]
    assert "over the end of 'X'" in mistake[0].text and "xl.load(X + i)" in mistake[0].text


def test_representations_are_coloured_and_escaped():
    module = xegpu_py.parse("gpu.module @m { gpu.func @f(%a: memref<4xf32>) kernel { gpu.return } }")
    html = module._repr_html_()
    assert "<span" in html and "&lt;" in html and "memref<4" not in html
    assert "white-space: pre;" in html and "font-family: monospace" in html
    assert from_sg_map((1, 16), (1, 1), (8, 16))._repr_svg_().count("<g data-") >= 128
    kernel = xegpu_py.compile(module)
    assert "ret" in kernel._repr_html_()
    done = kernel(np.zeros(4, np.float32))
    assert "<td>1</td>" in done._repr_html_()


def test_a_program_is_shown_in_a_process_that_has_imported_no_assembly():
    code = """if True:
        import sys
        from xegpu_py.visa.program import Program
        assert "xegpu_py.visa.assembly" not in sys.modules
        print(Program("halve")._repr_html_())"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.returncode == 0 and "halve" in shown.stdout, shown.stderr
