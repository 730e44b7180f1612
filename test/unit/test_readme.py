"""What README.md shows is what happens."""

import re
import subprocess

from markdown import ROOT, blocks, runs

README = (ROOT / "README.md").read_text()


def test_outputs_are_true(tmp_path):
    found = list(runs(README, tmp_path))
    assert len(found) >= 6
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"


def test_make_targets_exist():
    named = {m[1] for b in blocks(README) if b.language == "sh" for m in re.finditer(r"make (\w+)", b.text)}
    assert {"demo", "test"} <= named
    for target in named:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert "://" in target or (ROOT / target).exists(), target
