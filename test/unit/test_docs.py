"""The reference pages show what is printed, and link to what they have."""

import re

import pytest

import xegpu_py
from xegpu_py.ir.context import DIALECTS, dialects
from xegpu_py.ir.reference_pages import main, page

PAGES = {name: page(dialect) for name, dialect in zip(DIALECTS, dialects())}


@pytest.mark.parametrize("name", DIALECTS)
def test_examples_of_types_and_attributes_are_printed_as_shown(name):
    examples = re.findall(rf"^[!#]{name}\..*$", PAGES[name], re.MULTILINE)
    (dialect,) = dialects([name])
    assert bool(examples) == bool(dialect.types or dialect.attributes)
    for example in examples:
        value = f"attributes {{test.x = {example}}}"
        printed = str(xegpu_py.parse(f"module {value} {{}}"))
        assert example in printed


@pytest.mark.parametrize("name", DIALECTS)
def test_links_within_the_page(name):
    headings = re.findall(r"^#+ (.*)$", PAGES[name], re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    linked = set(re.findall(r"\]\(#(.*?)\)", PAGES[name]))
    assert linked and linked <= anchors


def test_every_op_has_a_section():
    for name, dialect in zip(DIALECTS, dialects()):
        for op in dialect.operations.values():
            assert f"### `{op.OPERATION_NAME}`" in PAGES[name]


def test_command(tmp_path, capsys):
    main([str(tmp_path / "made")])
    assert (tmp_path / "made" / "xegpu.md").read_text() == PAGES["xegpu"]
    with pytest.raises(SystemExit):
        main([])
    assert "usage" in capsys.readouterr().err
