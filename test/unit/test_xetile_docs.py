"""docs/xetile.md and its pictures are true."""

import re

from markdown import ROOT, runs

from xegpu_py.layout.tile_pictures import main, pictures

PAGE = (ROOT / "docs" / "xetile.md").read_text()


def test_what_the_page_shows(tmp_path):
    found = list(runs(PAGE, tmp_path))
    assert len(found) > 6
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"


def test_committed_pictures_are_up_to_date(tmp_path):
    main([str(tmp_path)])
    for name, svg in pictures().items():
        assert (tmp_path / name).read_text() == svg
        assert (ROOT / "docs" / "xetile" / name).read_text() == svg, "run `make docs`"
    assert {p.name for p in (ROOT / "docs" / "xetile").iterdir()} == set(pictures())


def test_passes_of_the_page_exist():
    from xegpu_py.ir.passes import registered

    named = set(re.findall(r"^\| `(xetile-[\w-]+)`", PAGE, re.MULTILINE))
    assert named == {name for name in registered() if name.startswith("xetile-")}
