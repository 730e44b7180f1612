"""The lint of prose finds each kind of mistake."""

import prose


def test_the_lint_of_prose_finds_each_kind_of_mistake(tmp_path):
    page, source, lit = (tmp_path / name for name in ("page.md", "source.py", "test.mlir"))
    word = "an" + "ew"
    page.write_text(f"One.\nIt is {word} [here](nowhere.md), `f[x](y)`.\n```\n[in code](z.md)\n```\n")
    assert [*prose.in_page(page)] == [(2, "'nowhere.md' does not exist"), (2, f"'{word}': write 'again'")]
    source.write_text(f'{word} = 1\n"""A text\n\nand {word}"""\n# {word}\nx = f"{word} {{x}}"\n')
    assert [*prose.in_source(source)] == [
        (4, f"'{word}': write 'again'"),
        (5, f"'{word}': write 'again'"),
        (6, f"'{word}': write 'again'"),
    ]
    lit.write_text(f"// CHECK: {word}\n// a comment\n  // {word}\n%{word} = f()\n")
    assert [*prose.in_lit_test(lit)] == [(3, f"'{word}': write 'again'")]
    found = [*prose.terms("`DPAS` of lanes, [lanes](glossary.md#simd-lane), and DPAS")]
    assert found == [(1, "'DPAS' is not linked to glossary.md#dpas")]


def test_the_lint_of_prose_finds_names_that_do_not_exist():
    right = "`passes/analysis/`, `xegpu_py/cache.py`, `cache.py`, xegpu_py.cache.Cache, xegpu_py.dialects.xegpu"
    assert [*prose.names(right)] == []
    gone = ["passes/nowhere", "xegpu_py/tiles.py", "tiles.py", "xegpu_py.values", "xegpu_py.cache.Cash"]
    page = "\n".join(f"`{name}`" for name in gone)
    assert [*prose.names(page)] == [(n, f"there is no '{name}'") for n, name in enumerate(gone, 1)]
    assert [*prose.names("```python test/toy.py\n```\n`test/toy.py`")] == []


def test_the_lint_of_prose_finds_sentences_that_begin_with_a_relative_clause(tmp_path):
    message = "': begin with the noun that the sentence is about"
    page = "# What it is\n\nWhat is it for?\n\n| What | `What. it` |\n\nIt is. Which is\nall. | Which of a.b? |\n"
    shown = ["What it is", "What |", "Which is all."]
    assert [*prose.statements_of(page)] == [(n, f"'{text}{message}") for n, text in zip((1, 5, 7), shown)]
    inside = prose.ROOT / "xegpu_py" / "nowhere.py"
    assert not inside.exists() and inside.relative_to(prose.ROOT).as_posix().startswith(prose.PACKAGE)


def test_no_bullet_of_changelog_stands_twice():
    """Merges keep both versions of a bullet that one side has changed."""
    starts = [line[:48] for line in (prose.ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("- ")]
    assert sorted({start for start in starts if starts.count(start) > 1}) == []
