"""Type checkers accept the code that documents show, and a project that checks its types strictly."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown import ROOT, blocks

from xegpu_py.ir.type_stubs import files
from xegpu_py.runtime.options import OPTIONS

PROJECT = Path(__file__).parent / "typed_project"
TUTORIALS = [f"docs/tutorial/{path.name}" for path in (ROOT / "docs" / "tutorial").glob("*.md")]
PAGES = ["README.md", "docs/tile-language.md", "docs/faq.md", *TUTORIALS]
STUBS = list(files())

MYPY = """\
[mypy]
strict = True
follow_imports = silent
# Kernels need no annotations, and pages import what they have shown before, or other people's packages.
disable_error_code = no-untyped-def, no-untyped-call, import-not-found, import-untyped

[mypy-typed_project.*]
enable_error_code = no-untyped-def, no-untyped-call
"""

PYRIGHT = {
    "extraPaths": [str(ROOT)],
    "reportMissingImports": False,
    "reportUnnecessaryTypeIgnoreComment": True,
    # A loop of MLIR's `scf.for_` gives its results in its variables.
    "reportPossiblyUnboundVariable": False,
}


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """A folder with the code of pages, of the gallery and of the project."""
    folder, texts = tmp_path_factory.mktemp("code"), {}
    for page in PAGES:
        for block in blocks((ROOT / page).read_text()):
            if block.language == "python":
                name = f"{page}_{block.start}".replace("/", "_").replace(".", "_").replace("-", "_")
                texts[name] = block.text
    for example in (ROOT / "examples").rglob("*.py"):
        texts[f"{example.parent.name}_{example.stem}"] = example.read_text()
    for name, text in texts.items():
        # Decorators of Triton are Triton's own.
        if "import triton" not in text:
            (folder / f"{name}.py").write_text(text)
    shutil.copytree(PROJECT, folder / "typed_project")
    (folder / "typed_project" / "__init__.py").touch()
    assert len(list(folder.rglob("*.py"))) > 30
    return folder


def test_mypy_accepts_shown_code(code):
    pytest.importorskip("mypy")
    (code / "mypy.ini").write_text(MYPY)
    environment = {"MYPYPATH": str(ROOT), "PATH": ""}
    command = [sys.executable, "-m", "mypy", "."]
    checked = subprocess.run(command, cwd=code, env=environment, capture_output=True, text=True)
    assert checked.stdout.startswith("Success"), checked.stdout + checked.stderr


def test_pyright_accepts_shown_code(code):
    pytest.importorskip("pyright")
    try:
        subprocess.run([sys.executable, "-m", "pyright", "--version"], capture_output=True, check=True, timeout=120)
    except subprocess.SubprocessError:
        pytest.skip("needs pyright, which its package downloads for Node.js")
    (code / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    checked = subprocess.run(command, cwd=code, capture_output=True, text=True)
    assert checked.stdout.startswith("0 errors"), checked.stdout + checked.stderr


@pytest.mark.parametrize(("name", "output"), [("kernels", "8.125 16.0 2 gemm"), ("builders", "1 (8, 16)")])
def test_the_project_runs(name, output):
    spec = importlib.util.spec_from_file_location(name, PROJECT / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.run() == output


@pytest.mark.parametrize(("path", "text"), STUBS, ids=[path.parent.name for path, _ in STUBS])
def test_committed_stubs_are_up_to_date(path, text):
    assert path.read_text() == text, "run `make docs`"


def test_type_checkers_know_all_options():
    """`JitKeywords` is read as text, since only type checkers execute it."""
    text = (ROOT / "xegpu_py" / "runtime" / "options.py").read_text()
    text = text[text.index("class _Keywords") : text.index("DENORMALS =")]
    known = {line.split(":")[0].strip() for line in text.splitlines() if ": " in line and "class" not in line}
    assert known >= OPTIONS and "engine" in known
