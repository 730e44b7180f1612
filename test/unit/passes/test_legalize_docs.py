"""docs/targets.md is true."""

from markdown import ROOT, runs


def test_page(tmp_path):
    page = (ROOT / "docs" / "targets.md").read_text()
    found = list(runs(page, tmp_path))
    assert len(found) == 2
    for run in found:
        assert run.agrees(), f"$ {run.command}\n{run.actual}"
