"""The code of docs/triton.md has the shown output."""

import pytest
from markdown import ROOT, runs

pytest.importorskip("triton")


def test_outputs_are_true(tmp_path):
    found = list(runs((ROOT / "docs/triton.md").read_text(), tmp_path))
    assert len(found) == 1
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"
