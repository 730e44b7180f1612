"""docs/xetile.md is true."""

import re

from markdown import ROOT

PAGE = (ROOT / "docs" / "xetile.md").read_text()


def test_passes_of_the_page_exist():
    from xegpu_py.ir.passes import registered

    named = set(re.findall(r"^\| `(xetile-[\w-]+)`", PAGE, re.MULTILINE))
    assert named == {name for name in registered() if name.startswith("xetile-")}
