"""The guards against mistakes of MLIR's passes: the installed release still needs each of them."""

import subprocess
import sys

import pytest
from markdown import ROOT

from xegpu_py.ir.upstream_pass_guards import GUARDS

FOLDER = ROOT / "docs" / "upstream-bugs"

RUN = """
import sys
from mlir import ir
from mlir.passmanager import PassManager
with ir.Context(load_on_create_dialects=[]):
    module = ir.Module.parse(open(sys.argv[1]).read())
    try:
        PassManager.parse(f"builtin.module({sys.argv[2]})").run(module.operation)
    except ir.MLIRError:
        sys.exit(3)
    print(module)
"""
"""Passes without guards, in a process of its own: some end it."""


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.reproducer)
def test_the_installed_release_needs_the_guard(guard):
    file = FOLDER / "folders" / f"{guard.reproducer}.mlir"
    name, mistake, *_ = (line.removeprefix("// ") for line in file.read_text().splitlines())
    done = subprocess.run([sys.executable, "-c", RUN, file, name], capture_output=True, text=True)
    kind, _, text = mistake.partition(": ")
    errs = {
        "ends the process": done.returncode not in (0, 1, 3),
        "refuses its own result": done.returncode == 3,
        "has": done.returncode == 0 and text in done.stdout,
        "lacks": done.returncode == 0 and text not in done.stdout,
    }
    assert errs[kind], f"{guard.where} is fixed in this release: remove its guard, or say where it is fixed"


def test_the_page_of_bugs_has_all_guards():
    page = (FOLDER / "README.md").read_text()
    files = {file.stem for file in (FOLDER / "folders").glob("*.mlir")}
    assert files == {guard.reproducer for guard in GUARDS}
    assert all(f"[{name}](folders/{name}.mlir)" in page for name in files)
