"""The reference pages are up to date, and what they show is what is printed."""

import re

import prose
import pytest
from markdown import ROOT

import xegpu_py
from xegpu_py.ir.module import DIALECTS, dialects
from xegpu_py.ir.reference_pages import main, page

PAGES = {name: page(dialect) for name, dialect in zip(DIALECTS, dialects())}


@pytest.mark.parametrize("name", DIALECTS)
def test_committed_page_is_up_to_date(name):
    assert (ROOT / "docs" / "dialects" / f"{name}.md").read_text() == PAGES[name], "run `make docs`"


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


def test_the_lint_of_prose_finds_each_kind_of_mistake(tmp_path):
    page, source, lit = (tmp_path / name for name in ("page.md", "source.py", "test.mlir"))
    word = "an" + "ew"
    page.write_text(f"One.\nIt is {word} [here](nowhere.md), `f[x](y)`.\n```\n[in code](z.md)\n```\n")
    assert [*prose.in_page(page)] == [(2, "'nowhere.md' does not exist"), (2, f"'{word}': again")]
    source.write_text(f'{word} = 1\n"""A text\n\nand {word}"""\n# {word}\nx = f"{word} {{x}}"\n')
    assert [*prose.in_source(source)] == [(4, f"'{word}': again"), (5, f"'{word}': again"), (6, f"'{word}': again")]
    lit.write_text(f"// CHECK: {word}\n// a comment\n  // {word}\n%{word} = f()\n")
    assert [*prose.in_lit_test(lit)] == [(3, f"'{word}': again")]
    found = [*prose.terms("`DPAS` of lanes, [lanes](glossary.md#simd-lane), and DPAS")]
    assert found == [(1, "'DPAS' is not linked to glossary.md#dpas")]


def test_the_lint_of_prose_finds_names_that_do_not_exist():
    right = "`passes/analysis/`, `xegpu_py/cache.py`, `cache.py`, xegpu_py.cache.Cache, xegpu_py.dialects.xegpu"
    assert [*prose.names(right)] == []
    gone = ["passes/nowhere", "xegpu_py/tiles.py", "tiles.py", "xegpu_py.values", "xegpu_py.cache.Cash"]
    page = "\n".join(f"`{name}`" for name in gone)
    assert [*prose.names(page)] == [(n, f"there is no '{name}'") for n, name in enumerate(gone, 1)]
    assert [*prose.names("```python test/toy.py\n```\n`test/toy.py`")] == []
