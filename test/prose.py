"""`python test/prose.py`: the findings in pages, docstrings, messages and comments, one a line; exit status 1 if any.

- Words for which `AVOIDED` below has standard terms.
- Sentences and headings that begin with "What" or "Which" and are not questions.
- Terms of the glossary that a page uses and does not link to it.
- Links that lead nowhere, and files, modules and names in them that do not exist.
"""

from __future__ import annotations

import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]

PLUGINS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
    "xegpu_py.plugins"
]
"""The names that extensions add to `xegpu_py`, and the objects."""

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
    r"\bleverag\w+": "use",
    r"\butiliz\w+": "use",
    r"\bbasically\b": "nothing",
    r"\bout of the box\b": "without configuration",
    r"\banew\b": "again",
    r"\b(?:taken|take|takes) apart\b": "split",
    r"\blanes part\b|\bparting\b": "diverge",
    r"\bmend(?:s|ed|ing)?\b": "correct, fix",
    r"\bas it stands\b": "unchanged",
    r"\b(?:is|are|be) no multiples?\b": "is not a multiple",
}
"""Patterns that are not used, each with a replacement."""

STATEMENT = re.compile(
    r"(?:^|[.:;!|]\s+|\n\n|(?:^|\n) *(?:#+|-|\d\.) )\**(What|Which)\b(?:[^.?|]|\.(?=\w))*(?:\.(?!\w)|\||\n\n|$)"
)
"""A sentence or heading that begins with a relative clause in place of a noun, and is not a question."""

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

WORDS = re.compile("|".join(f"(?P<n{i}>{pattern})" for i, pattern in enumerate(AVOIDED)), re.IGNORECASE)
SOURCES = (
    "xegpu_py",
    "dialects",
    "passes",
    "tools",
    "test/unit",
    "test/extensions",
    "test/repository",
    "test/generators",
    "benchmarks",
    "examples",
)
LIT_TESTS = ("test/dialects", "test/passes", "test/run", "test/tools", "test/upstream", "test/visa")
PACKAGE = ("xegpu_py", "dialects", "passes", "tools")
"""The folders in which no sentence of a comment or docstring begins with a relative clause."""
TOKENS = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", None))
COMMENT = re.compile(r"(?m)^[^\S\n]*(?://|#)(?! ?[A-Z0-9-]+:)(.*)")

TOPS = "xegpu_py|dialects|passes|tools|test|benchmarks|examples|docs"
FILES = re.compile(rf"`((?:{TOPS})/[\w./-]*\w)/?`|`([\w/-]+\.py)`")
MODULES = re.compile(r"\bxegpu_py((?:\.\w+)+)")

Finding = tuple[int, str]
"""A line, and what is wrong in it."""


def words(text: str, line: int = 1) -> Iterator[Finding]:
    """The avoided words of a text that begins at a line."""
    for m in WORDS.finditer(text):
        instead = [*AVOIDED.values()][int(m.lastgroup[1:])]
        yield line + text.count("\n", 0, m.start()), f"'{m[0]}': write '{instead}'"


def statements(token: tokenize.TokenInfo) -> Iterator[Finding]:
    """The sentences of a comment or docstring that begin with "What" or "Which" and are not questions."""
    is_docstring = token.type == tokenize.STRING and token.string.startswith('"""')
    if is_docstring or token.type == tokenize.COMMENT:
        yield from statements_of(token.string.strip('"# '), token.start[0])


def statements_of(text: str, line: int = 1) -> Iterator[Finding]:
    """The sentences of a text that begin with "What" or "Which" and are not questions."""
    text = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", lambda m: "\n" * m[0].count("\n") or "x", text)
    for m in STATEMENT.finditer(text):
        sentence = " ".join(m[0][m.start(1) - m.start() :].split())
        yield (
            line + text.count("\n", 0, m.start(1)),
            f"'{sentence[:40]}': begin with the noun that the sentence is about",
        )


def terms(page: str) -> Iterator[Finding]:
    """The terms of a page that are nowhere linked to the glossary."""
    prose = re.sub(r"(?ms)^```.*?^```$|^(?:#|    |!\[|- \[).*?$", "", page)
    prose = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", "", prose)
    for term, anchor in TERMS.items():
        found = re.search(rf"(?<![\w-])(?:{term})(?![\w-])", prose)
        if found and f"glossary.md#{anchor})" not in page:
            yield 1, f"'{found[0]}' is not linked to glossary.md#{anchor}"


def links(page: str, folder: Path) -> Iterator[Finding]:
    """The links of a page to files that do not exist. In code, `kernel[grid](x)` is a call."""
    prose = re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`", lambda m: "\n" * m[0].count("\n"), page)
    for m in re.finditer(r"\]\(([^)#]+)\)", prose):
        if "://" not in m[1] and not (folder / m[1]).exists():
            yield 1 + prose.count("\n", 0, m.start()), f"'{m[1]}' does not exist"


def names(page: str) -> Iterator[Finding]:
    """The files and modules that a page names, and that do not exist. Recipes make files, which later ones name."""
    recipes = (f.read_text() for f in sorted(ROOT.glob("docs/recipes/*.md")))
    made = {m.rstrip("+") for text in (page, *recipes) for m in re.findall(r"(?m)^```\w+ (\S+)$", text)}
    for m in FILES.finditer(page):
        path = m[1] or m[2]
        found = (ROOT / path).exists() or (ROOT / f"{path}.py").exists() if "/" in path else any(_called(path))
        if not found and path not in made:
            yield 1 + page.count("\n", 0, m.start()), f"there is no '{path}'"
    for m in MODULES.finditer(page):
        parts = m[1].split(".")[1:]
        if not _defined(parts) and "/".join(parts) + ".py" not in made:
            yield 1 + page.count("\n", 0, m.start()), f"there is no '{m[0]}'"


def _called(name: str) -> Iterator[Path]:
    """The files of a name."""
    for top in TOPS.split("|"):
        yield from (ROOT / top).rglob(name)


def _defined(parts: list[str]) -> bool:
    """Whether a module below xegpu_py exists, and contains the name that follows it."""
    if parts[0] in PLUGINS:
        module, _, name = PLUGINS[parts[0]].removeprefix("xegpu_py.").partition(":")
        parts = [*module.split("."), *([name] if name else parts[1:])]
    at = ROOT / ("" if parts[0] in ("dialects", "passes", "tools") else "xegpu_py")
    for i, part in enumerate(parts):
        if (at / part).is_dir():
            at /= part
        elif (at / f"{part}.py").exists():
            return i + 1 == len(parts) or _contains(at / f"{part}.py", parts[i + 1])
        else:
            return _contains(at / "__init__.py", part)
    return True


def _contains(path: Path, name: str) -> bool:
    return re.search(rf"\b{name}\b", path.read_text()) is not None


def in_page(path: Path) -> Iterator[Finding]:
    """The findings in a Markdown page."""
    page = path.read_text()
    yield from links(page, path.parent)
    if path.name not in ("CHANGELOG.md", "SECURITY.md"):
        yield from words(page)
        yield from names(page)
        yield from statements_of(page)
    if path.parent in (ROOT / "docs", ROOT / "docs/tutorial") and path.name not in ("glossary.md", "map.md"):
        yield from terms(page)


def in_source(path: Path) -> Iterator[Finding]:
    """The findings in strings and comments of Python code."""
    in_package = path.is_relative_to(ROOT) and path.relative_to(ROOT).as_posix().startswith(PACKAGE)
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in TOKENS:
                yield from words(token.string, token.start[0])
            if in_package:
                yield from statements(token)


def in_lit_test(path: Path) -> Iterator[Finding]:
    """The findings in comments of a lit test."""
    text = path.read_text()
    for m in COMMENT.finditer(text):
        yield from words(m[1], 1 + text.count("\n", 0, m.start()))


def findings() -> Iterator[str]:
    """All findings, as `file:line: what`."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    sources = [f for top in SOURCES for f in (ROOT / top).rglob("*.py")]
    tests = [f for top in LIT_TESTS for f in (ROOT / top).rglob("*") if f.suffix in (".mlir", ".visaasm", ".test")]
    for paths, find in ((pages, in_page), (sources, in_source), (tests, in_lit_test)):
        assert len(paths) > 20
        for path in sorted(paths):
            yield from (f"{path.relative_to(ROOT)}:{line}: {what}" for line, what in find(path))


if __name__ == "__main__":
    found = [*findings()]
    print(*found, sep="\n", end="\n" * bool(found))
    sys.exit(bool(found))
