"""The code of the pages about Triton has the shown output."""

import pytest
from markdown import ROOT, runs

pytest.importorskip("triton")


@pytest.mark.parametrize(("page", "count"), [("docs/triton.md", 2), ("docs/tutorial/triton-race.md", 2)])
def test_outputs_are_true(tmp_path, page, count):
    found = list(runs((ROOT / page).read_text(), tmp_path))
    assert len(found) == count
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"
