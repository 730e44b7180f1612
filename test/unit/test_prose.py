"""Pages, docstrings and messages use the standard terms that CONTRIBUTING.md lists."""

import ast
import re
from pathlib import Path

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
    r"\b(?:in|by) turns\b": "alternating, alternately",
    r"\b(?:go|goes|gone|went|going) round\b": "wraps around, round robin",
    r"\bdoes no harm\b": "equals rounding once",
    r"\bwhoever\b|\bwho owns what\b": "a noun: 'the owner', 'the caller'",
    r"\banew\b": "again",
    r"\b(?:taken|take|takes) apart\b": "split",
    r"\blanes part\b|\bparting\b": "diverge",
    r"\bmend(?:s|ed|ing)?\b": "correct, fix",
    r"\bas it stands\b": "unchanged",
}
"""Patterns that are not used, each with a replacement."""

PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
FOLDERS = ("xegpu_py", "dialects", "passes", "tools", "test/unit", "test/generators", "benchmarks", "examples")
SOURCES = [f for top in FOLDERS for f in sorted((ROOT / top).rglob("*.py")) if f != Path(__file__)]


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
