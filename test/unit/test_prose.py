"""Pages, docstrings and messages use the standard terms that CONTRIBUTING.md lists."""

import re
import tokenize
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
    r"\b(?:is|are|be) no multiples?\b": "is not a multiple",
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
def test_docstrings_messages_and_comments(source):
    words = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", None))
    with source.open("rb") as file:
        texts = [token.string for token in tokenize.tokenize(file.readline) if token.type in words]
    assert [found for text in texts for found in avoided(text)] == []


@pytest.mark.parametrize(
    "folder", ["test/dialects", "test/passes", "test/run", "test/tools", "test/upstream", "test/visa"]
)
def test_comments_of_lit_tests(folder):
    files = [f for f in (ROOT / folder).rglob("*") if f.suffix in (".mlir", ".visaasm", ".test")]
    comments = [c for f in files for c in re.findall(r"(?m)^\s*(?://|#)(?! ?[A-Z0-9-]+:)(.*)", f.read_text())]
    assert len(comments) > 5
    assert [found for text in comments for found in avoided(text)] == []


TERMS = {
    "2D (?:block )?messages?": "2d-block-message", "DPAS(?!\\.md)": "dpas", "GRFs?": "grf", "IGC": "igc",
    "SIMT mode": "simt-mode",
    "SLM|shared local memory": "slm", "VC mode": "vc-mode", "VNNI": "vnni-layout", "finalizer": "finalizer",
    "hardware threads?": "hardware-thread", "named barriers?": "named-barrier", "repeat count": "repeat-count",
    "systolic (?:depth|stages?)": "systolic-depth", "work items?": "work-item", "workgroups?": "workgroup",
    "subgroups?": "subgroup", "lanes?": "simd-lane", "pitch(?:es)?": "pitch", "divergent": "divergent",
    "XVEs?": "eu-xve", "vISA": "visa",
}  # fmt: skip
"""Terms of the glossary, with their anchors there."""


PAGES = [p for p in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorial/*.md")]) if p.name != "glossary.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_terms_are_linked_to_the_glossary(page):
    text = page.read_text()
    prose = re.sub(r"(?ms)^```.*?^```$|^(?:#|    |!\[|- \[).*?$", "", text)
    prose = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", "", prose)
    used = {anchor for term, anchor in TERMS.items() if re.search(rf"(?<![\w-])(?:{term})(?![\w-])", prose)}
    assert {a for a in used if f"glossary.md#{a})" not in text} == set()
