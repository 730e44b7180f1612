"""What the site has besides the pages in docs/: README as its front page, and reference pages made from the code.

MkDocs calls the functions here; `mkdocs.yml` names this file.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import Counter
from functools import cache
from html import unescape
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType

import gallery
import nbclient
import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from traitlets.config import Config

ROOT = Path(__file__).parents[2]
TOOLS = (
    "xegpu_opt",
    "xegpu_run",
    "xegpu_test",
    "xegpu_translate",
    "xegpu_bisect",
    "xegpu_viz",
    "xegpu_lsp",
)
PUBLIC = (
    "xegpu_py",
    "xegpu_py.language",
    "xegpu_py.build",
    "xegpu_py.extensions.opencl.program",
    "xegpu_py.extensions.opencl.comparison",
    "xegpu_py.lower_kernel",
    "xegpu_py.extensions.programs.load",
    "xegpu_py.runtime.kernel",
    "xegpu_py.runtime.executor",
    "xegpu_py.runtime.executable",
    "xegpu_py.runtime.options",
    "xegpu_py.bisection",
    "xegpu_py.extensions.portability.verdicts",
    "xegpu_py.extensions.profile.profiles",
    "xegpu_py.extensions.tuning.search",
    "xegpu_py.extensions.tuning.space",
    "xegpu_py.reference",
    "xegpu_py.numerics",
    "xegpu_py.layout",
    "xegpu_py.target",
    "xegpu_py.ir.context",
    "xegpu_py.ir.module",
    "xegpu_py.ir.passes",
    "xegpu_py.ir.definition",
    "xegpu_py.ir.diagnostics",
    "xegpu_py.visa.program",
    "xegpu_py.visa.operands",
    "xegpu_py.visa.assembly",
    "xegpu_py.drawing",
)
"""Modules whose public names are the Python API, a page each."""

BOOSTS = {"dialects/": 8, "generated/api/": 4, "generated/diagnostics": 0.1, "CHANGELOG": 0.1, "map": 0.1}
"""How much more a match counts in search in pages whose paths begin so: the entry of a name comes before its uses."""

_FENCE = re.compile(r"^( *```)(\w+) (\S+?)(\+?)$", re.MULTILINE)
_OUTSIDE = re.compile(r"\]\((?:\.\./)*((?:examples/[\w./-]+|(?:CHANGELOG|CONTRIBUTING|SECURITY)\.md)(?:#[\w-]+)?)\)")
_PLAIN = re.compile(r"(?<=<pre><span></span><code>)[^<]+(?=</code></pre>)")
_PICTURE = re.compile(r'<img [^>]*src="([^"]+\.svg)"[^>]*>')
_EXPECTED = re.compile(r"// *expected-error(?:-re)? *@?\S* *(?:\d+ *)?\{\{(.*)\}\}")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let the navigation have a page for each module of the Python API, and the foot of pages the version."""
    config.copyright = f"xegpu-py {version('xegpu-py')}"
    (reference,) = (part["Reference"] for part in config.nav or [] if "Reference" in part)
    reference.insert(0, {"Python API": [{name: _page_of(name)} for name in PUBLIC]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and the examples that pages link to."""
    tour = _executed(ROOT / "examples" / "tour.ipynb")
    made = {
        "index.md": _index(),
        **{_page_of(name): _module(name) for name in PUBLIC},
        "generated/tour.md": _notebook(tour),
        # The notebook to be downloaded shows what it says.
        "examples/tour.ipynb": nbformat.writes(tour),
        "generated/gallery.md": gallery.page(),
        "generated/tools.md": _tools(),
        "generated/passes.md": _passes(),
        "generated/diagnostics.md": _diagnostics(),
    }
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    for path in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        text = re.sub(r"\]\(docs/", "](", (ROOT / path).read_text())
        files.append(File.generated(config, path, content=text))
    for path in sorted((ROOT / "examples").iterdir()):
        if path.is_file() and f"examples/{path.name}" not in made:
            files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the file names of code blocks be titles, and links to files outside of docs/ lead to the site's copies."""
    page.meta["search"] = {"boost": next((b for start, b in BOOSTS.items() if page.file.src_uri.startswith(start)), 1)}
    markdown = _FENCE.sub(lambda m: f'{m[1]}{m[2]} title="{m[3]}{" (appended)" * bool(m[4])}"', markdown)
    up = "../" * page.file.src_uri.count("/")
    return _OUTSIDE.sub(rf"]({up}\1)", markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let a click on a picture open it in full size, and colour the examples of docstrings, which name no language."""
    html = _PICTURE.sub(r'<a href="\1">\g<0></a>', html)
    if not page.file.src_uri.startswith("generated/api/"):
        return html
    return _PLAIN.sub(lambda m: highlight(unescape(m[0]), PythonLexer(), HtmlFormatter(nowrap=True)), html)


def _index() -> str:
    text = (ROOT / "README.md").read_text()
    text = text.replace("[CITATION](CITATION.cff) for papers", "CITATION.cff for papers")
    text = text.replace("(examples/gallery)", "(generated/gallery.md)")
    text = text.replace("; `make site` builds all pages with search", "")
    return re.sub(r"\]\(docs/", "](", text)


def _executed(path: Path) -> nbformat.NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        # Sockets in files, not ports, whose kernels warn of them; not those of another build in the same folder.
        config = Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})
        return nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", config=config).execute()


def _notebook(notebook: nbformat.NotebookNode) -> str:
    """A notebook's cells, each with what it shows."""
    parts = []
    for cell in notebook.cells:
        parts.append(f"```python\n{cell.source}\n```" if cell.cell_type == "code" else cell.source)
        parts += [_output(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts)


def _output(output: nbformat.NotebookNode) -> str:
    """An output of a cell: HTML or a picture where it has one, otherwise text without colours."""
    data = output.get("data", {})
    rich = data.get("text/html") or data.get("image/svg+xml")
    if rich:
        return f'<div class="output">{rich}</div>'
    text = data.get("text/plain") or output.get("text") or "\n".join(output.get("traceback", []))
    return "```text\n" + re.sub(r"\x1b\[[\d;]*m", "", text) + "\n```"


def _page_of(module: str) -> str:
    return f"generated/api/{module.removeprefix('xegpu_py.')}.md"


def _module(name: str) -> str:
    """A module's page: its docstring, a table of its functions and classes, and an entry for each public name."""
    module = importlib.import_module(name)
    parts = [f"# {name}", inspect.getdoc(module) or "", _contents(name, module)]
    first: dict[int, str] = {}
    for public in public_names(module):
        value = getattr(module, public)
        same = first.setdefault(id(value), public)
        entry = _entry(name, same, value)
        if same != public:
            # mkdocstrings names an entry by the definition's module.
            anchor = entry.split()[1] if entry.startswith(":::") else f"{name}.{same}"
            entry = f"The same as [`{same}`](#{anchor})."
        heading = f"## {name}.{public} {{ #{name}.{public} data-toc-label={public} }}"
        parts.append(entry if entry.startswith(":::") else f"{heading}\n\n{entry}")
    return "\n\n".join(parts)


def _contents(name: str, module: ModuleType) -> str:
    """A table of a module's functions and classes, those first that pages, examples and tutorials use most."""
    rows: dict[str, str] = {}
    for public in public_names(module):
        value = getattr(module, public)
        summary = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
        if callable(value) and summary:
            entry = _entry(name, public, value)
            # mkdocstrings names an entry by the definition's module.
            link = f"[{entry.split()[1]}]" if entry.startswith(":::") else f"(#{name}.{public})"
            rows[public] = f"| [`{public}`]{link} | {summary.replace('|', chr(92) + '|')} |"
    if len(rows) < 2:
        return ""
    ordered = sorted(rows, key=lambda public: (-_uses()[public], public))
    return "\n".join(["| Name | Purpose |", "| --- | --- |", *(rows[public] for public in ordered)])


@cache
def _uses() -> Counter[str]:
    """How often each word occurs in code of pages and examples."""
    pages = [path.read_text() for path in sorted((ROOT / "docs").glob("**/*.md")) if "dialects" not in path.parts]
    examples = [path.read_text() for path in sorted((ROOT / "examples").rglob("*.py"))]
    code = [span for page in pages for span in re.findall(r"(?ms)^```.*?^```$|`[^`\n]+`", page)]
    return Counter(word for text in (*code, *examples) for word in re.findall(r"\w+", text))


def _entry(module: str, public: str, value: object) -> str:
    """What mkdocstrings reads a name's documentation from, or that documentation if no source file defines the name."""
    where, name = getattr(value, "__module__", None), getattr(value, "__qualname__", public)
    if isinstance(value, (type, FunctionType)) and where and name in _defined(where):
        options = f"heading: {module}.{public}\n      toc_label: {public}"
        return f"::: {where}.{name}\n    options:\n      {options}"
    if public in _defined(module):
        return f"::: {module}.{public}"
    if callable(value) and not isinstance(value, type):
        signature = str(inspect.signature(value)).replace("'", "")
        return f"```python\n{public}{signature}\n```\n\n{inspect.getdoc(value) or ''}"
    return f"`{value!r}`"


@cache
def _defined(module: str) -> list[str]:
    """The names that a module's own statements define."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    # An `else` holds the definitions that type checkers do not see.
    tree.body += [n for branch in tree.body if isinstance(branch, ast.If) for n in branch.orelse]
    named = [n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))]
    plain = [t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    typed = [n.target.id for n in tree.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    return [*plain, *typed, *named]


def public_names(module: ModuleType) -> list[str]:
    """The public names of a module: those that it defines, or those that it lists in `__all__`."""
    return getattr(module, "__all__", None) or [n for n in _defined(module.__name__) if not n.startswith("_")]


def _tools() -> str:
    out = ["# Command line", "What `--help` prints. [How to use the tools](../command-line.md) shows them at work."]
    for name in TOOLS:
        module = importlib.import_module(f"xegpu_py.tools.{name}")
        text = module.argument_parser().format_help()
        out.append(f"## {name.replace('_', '-')}\n\n```text\n{text.rstrip()}\n```")
    return "\n\n".join(out)


def _passes() -> str:
    from xegpu_py.ir.passes import registered

    out = [
        "# Passes",
        "Each is a flag of `xegpu-opt` and a name in a pipeline; `xegpu-opt --help-pass=NAME` prints the same text. All "
        "passes of MLIR can be used with them, except those for upstream's C++ `xegpu` dialect.",
    ]
    for name, cls in registered().items():
        doc = inspect.cleandoc(cls.__doc__ or "")
        doc = re.sub(r"(?m)(?:^    .*\n?(?:\n(?=    ))?)+", lambda m: f"```mlir\n{inspect.cleandoc(m[0])}\n```\n", doc)
        out.append(f"## `{name}`\n\n{doc}")
        rows = [
            f"| `{option}` | {getattr(f.type, '__name__', f.type)} | `{f.default!r}` |"
            for option, f in cls.options().items()
        ]
        if rows:
            out.append("\n".join(["| Option | Type | Default |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(out)


def _diagnostics() -> str:
    """The diagnostics that tests provoke, each with the line that does."""
    out = [
        "# Diagnostics",
        "A diagnostic has a location, the op, and often a note with the rule and the correction. This page lists the errors "
        "that the tests of the dialects and passes expect, each with the line for which it is reported.",
    ]
    for path in sorted((ROOT / "test").rglob("*.mlir")):
        found = _provoked(path.read_text().splitlines())
        if found:
            rows = [f"| {_cell(message)} | {_cell(line)} |" for message, line in found.items()]
            name = path.relative_to(ROOT / "test").with_suffix("").as_posix().replace("/", ": ", 1)
            out.append(f"## {name}\n\n| Message | Reported for |\n| --- | --- |\n" + "\n".join(rows))
    return "\n\n".join(out)


def _provoked(lines: list[str]) -> dict[str, str]:
    found = {}
    for i, line in enumerate(lines):
        if m := _EXPECTED.search(line):
            where = re.search(r"expected-error(?:-re)? *@([+-]\d+|above|below)", line)
            step = {"above": -1, "below": 1}.get(where[1]) if where else 0
            at = i + (int(where[1]) if where and step is None else step or 0)
            while 0 <= at < len(lines) and at != i and "expected-" in lines[at]:
                at += 1 if at > i else -1
            if 0 <= at < len(lines):
                found[m[1]] = lines[at].split("// expected-")[0].strip()
    return found


def _cell(text: str) -> str:
    text = text if len(text) <= 160 else text[:157] + "..."
    return "`` " + text.replace("|", "\\|") + " ``"
