"""The guards against mistakes of MLIR's passes: the installed release still needs each of them."""

import subprocess
from typing import Any

import forked_tools
import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown import ROOT

from xegpu_py.ir.upstream_pass_guards import GUARDS, _Boxes

FOLDER = ROOT / "docs" / "upstream-bugs"

RUN = """
import sys
from mlir import ir
from mlir.passmanager import PassManager
with ir.Context(load_on_create_dialects=[]):
    module = ir.Module.parse(open(sys.argv[1]).read())
    try:
        PassManager.parse(f"builtin.module({sys.argv[2]})").run(module.operation)
    except ir.MLIRError:
        sys.exit(3)
    print(module)
"""
"""Passes without guards, in a process that has imported MLIR's bindings: some end it."""


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.reproducer)
def test_the_installed_release_needs_the_guard(guard, tmp_path):
    file = FOLDER / "folders" / f"{guard.reproducer}.mlir"
    name, mistake, *_ = (line.removeprefix("// ") for line in file.read_text().splitlines())
    script = tmp_path / "run.py"
    script.write_text(RUN)
    command = [forked_tools.folder() / "python", script, file, name]
    done = subprocess.run(command, capture_output=True, text=True)
    kind, _, text = mistake.partition(": ")
    errs = {
        "ends the process": done.returncode not in (0, 1, 3),
        "refuses its own result": done.returncode == 3,
        "has": done.returncode == 0 and text in done.stdout,
        "lacks": done.returncode == 0 and text not in done.stdout,
    }
    assert errs[kind], f"{guard.where} is fixed in this release: remove its guard, or say where it is fixed"


def test_the_page_of_bugs_has_all_guards():
    page = (FOLDER / "README.md").read_text()
    files = {file.stem for file in (FOLDER / "folders").glob("*.mlir")}
    assert files == {guard.reproducer for guard in GUARDS}
    assert all(f"[{name}](folders/{name}.mlir)" in page for name in files)


@settings(max_examples=examples(200))
@given(st.data())
def test_boxes_that_meet_one(data: st.DataObject) -> None:
    """Those among the first ones of a chain, and of the chain before it, found by comparing all."""
    rank = data.draw(st.integers(1, 3))
    box = st.tuples(*[st.tuples(st.integers(0, 9), st.integers(1, 5))] * rank)
    lists = data.draw(st.lists(st.lists(box, max_size=30), min_size=2, max_size=2))
    counts = [data.draw(st.integers(0, len(boxes))) for boxes in lists]
    asked = data.draw(box)
    first, second = _Boxes(), _Boxes()
    second.before = first, counts[0]
    for boxes, added in zip((first, second), lists):
        for each in added:
            boxes.add(each)

    def meets(other: Any) -> bool:
        cells, others = ({*np.ndindex(*(n for _, n in b))} for b in (asked, other))
        at, to = (np.array([x for x, _ in b]) for b in (asked, other))
        return any(tuple(np.array(cell) + at - to) in others for cell in cells)

    # A box that is added again keeps its first number.
    expected = {b for boxes, count in zip(lists, counts) for n, b in enumerate(boxes) if boxes.index(b) < count}
    assert {*second.meeting(asked, counts[1])} == {*filter(meets, expected)}
