"""The code of README.md and other pages has the shown output."""

import re
import subprocess

import pytest
from markdown import ROOT, blocks, runs

README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("README.md", 6),
        ("docs/command-line.md", 7),
        ("docs/programs.md", 5),
        ("docs/upstream.md", 5),
        ("docs/python.md", 8),
        ("docs/options.md", 1),
        ("docs/faq.md", 4),
        ("docs/tile-language.md", 1),
        ("docs/tutorial/first-kernel.md", 4),
        ("docs/tutorial/fast-gemm.md", 5),
        ("docs/tutorial/attention.md", 1),
        ("docs/tutorial/finding-a-race.md", 3),
        ("docs/tutorial/reading-the-assembly.md", 3),
        ("docs/numerics.md", 1),
        ("docs/fidelity.md", 1),
        ("docs/model.md", 1),
        pytest.param("docs/opencl.md", 5, marks=pytest.mark.needs("ocloc")),
        ("docs/jit.md", 1),
        ("docs/lowering.md", 7),
        ("docs/file-to-result.md", 6),
        ("docs/reference.md", 3),
        ("docs/simt.md", 2),
        ("docs/targets.md", 2),
        ("docs/xetile.md", 7),
        ("docs/visa.md", 4),
        ("docs/layouts.md", 7),
        ("docs/dpas-layout.md", 1),
    ],
)
def test_outputs_are_true(tmp_path, page, least):
    found = list(runs((ROOT / page).read_text(), tmp_path))
    assert len(found) >= least
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"


def test_the_page_from_file_to_result_shows_the_example():
    shown = blocks((ROOT / "docs/file-to-result.md").read_text())[0]
    assert shown.text == (ROOT / "examples" / shown.file).read_text()


def test_make_targets_exist():
    named = {m[1] for b in blocks(README) if b.language == "sh" for m in re.finditer(r"make (\w+)", b.text)}
    assert {"demo", "test"} <= named
    for target in named:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_the_page_has_at_most_200_lines():
    assert README.count("\n") <= 150
