"""Pages and docstrings use standard terms; CONTRIBUTING.md says which."""

import ast
import re

import pytest
from markdown import ROOT

AVOIDED = {
    r"\bmanners?\b": "behaves like",
    r"\brooms?\b(?! for)": "module, folder",
    r"\bwhat of\b": "a noun: 'out-of-bounds elements'",
    r"\b(?:next|last|first|each|a|some|this|of) turns?\b(?! of)": "iteration",
    r"\bturned\b(?! (?:off|on|into|to)\b|:)": "transposed",
    r"\bneutral element": "identity",
    r"\b(?:dealt|deals?|dealing) out\b": "distribute",
    r"\bparted\b": "divergent",
    r"\bstoreys?\b": "layer",
}
"""What we no longer say, and what in its place."""

PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
SOURCES = [f for top in ("xegpu_py", "dialects", "passes", "tools") for f in sorted((ROOT / top).rglob("*.py"))]


def avoided(text):
    return [(m[0], instead) for pattern, instead in AVOIDED.items() for m in re.finditer(pattern, text, re.IGNORECASE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pages(page):
    assert avoided(page.read_text()) == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_docstrings(source):
    tree = ast.parse(source.read_text())
    strings = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    assert [found for text in strings for found in avoided(text)] == []
