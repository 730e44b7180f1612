"""docs/xetile.md is true."""

import re

from markdown import ROOT, runs

PAGE = (ROOT / "docs" / "xetile.md").read_text()


def test_what_the_page_shows(tmp_path):
    found = list(runs(PAGE, tmp_path))
    assert len(found) > 6
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"


def test_passes_of_the_page_exist():
    from xegpu_py.ir.passes import registered

    named = set(re.findall(r"^\| `(xetile-[\w-]+)`", PAGE, re.MULTILINE))
    assert named == {name for name in registered() if name.startswith("xetile-")}
