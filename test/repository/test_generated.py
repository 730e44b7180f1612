"""The reference pages of the documentation are committed as `make docs` makes them."""

import re
import runpy

import pytest
from markdown import ROOT

from xegpu_py.ir.context import DIALECTS, dialects
from xegpu_py.ir.reference_pages import page


@pytest.mark.parametrize(("name", "dialect"), zip(DIALECTS, dialects()), ids=DIALECTS)
def test_committed_pages_are_up_to_date(name, dialect):
    assert (ROOT / "docs" / "dialects" / f"{name}.md").read_text() == page(dialect), "run `make docs`"


OPTIONS = runpy.run_path(str(ROOT / "docs" / "site" / "options.py"))


def test_the_committed_page_of_options_is_up_to_date():
    assert (ROOT / "docs" / "options.md").read_text() == OPTIONS["page"](), "run `make docs`"


CHOICES = runpy.run_path(str(ROOT / "docs" / "site" / "choices.py"))


def test_the_table_of_chosen_rules_is_up_to_date():
    text = (ROOT / "docs" / "numerics.md").read_text()
    assert text == CHOICES["page"](text), "run `make docs`"


def test_the_committed_page_of_message_rules_is_up_to_date():
    made = runpy.run_path(str(ROOT / "docs" / "site" / "message_rules.py"))["page"]()
    assert (ROOT / "docs" / "message-rules.md").read_text() == made, "run `make docs`"


def test_every_environment_variable_is_on_the_page_of_options():
    sources = [f for top in ("xegpu_py", "tools", "passes") for f in (ROOT / top).rglob("*.py")]
    named = {name for f in sources for name in re.findall(r'"(XEGPU_PY_[A-Z_]+)"', f.read_text())}
    assert named == {name for name in OPTIONS["VARIABLES"] if name.startswith("XEGPU_PY_")}
