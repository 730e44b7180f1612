"""The code of the pages about Triton has the shown output, and the examples agree with numpy."""

import os
import re
import runpy
import subprocess
from importlib.util import find_spec

import forked_tools
import pytest
from markdown import ROOT, runs

pytest.importorskip("triton")

MODULES = [name for name in ("triton", "torch", "xegpu_py.extensions.triton.backend") if find_spec(name)]
"""What the programs import: most of their time."""


@pytest.mark.parametrize(("page", "count"), [("docs/triton.md", 2), ("docs/tutorial/triton-race.md", 2)])
def test_outputs_are_true(tmp_path, page, count):
    found = list(runs((ROOT / page).read_text(), tmp_path, modules=MODULES))
    assert len(found) == count
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"


@pytest.mark.parametrize("name", ["triton-int-annotation", "liger-grpo-luspo"])
def test_bugs_of_programs_of_others_are_found(name, tmp_path):
    """The first command and its output in the text of a program are true."""
    path = ROOT / "docs" / "upstream-bugs" / f"{name}.py"
    shown = re.search(rf"^\$ python {path.name}\n(.*?)\"\"\"", path.read_text(), re.DOTALL | re.MULTILINE)[1]
    # Triton's cache has the kernel of another copy of the file, with that one's path.
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    python = forked_tools.folder(*MODULES) / "python"
    done = subprocess.run([python, path], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (1, shown), done.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "examples/gallery/triton").glob("*.py")), ids=lambda p: p.name)
def test_the_gallery_in_triton_agrees_with_numpy(path, capsys):
    runpy.run_path(str(path))
    text, _, found = capsys.readouterr().out.strip().rpartition(": ")
    assert found == "True" if text.startswith("equal") else float(found) < 1e-3
