"""The code of README.md and other pages has the shown output."""

import importlib.util
import re
import shlex
import subprocess
import sys

import pytest
from markdown import ROOT, blocks, runs

README = (ROOT / "README.md").read_text()


PAGES = [
    ("README.md", 6),
    ("docs/command-line.md", 7),
    ("docs/programs.md", 5),
    ("docs/upstream.md", 5),
    ("docs/python.md", 8),
    ("docs/options.md", 1),
    ("docs/faq.md", 4),
    ("docs/tile-language.md", 1),
    ("docs/tutorial/first-kernel.md", 4),
    ("docs/tutorial/fast-gemm.md", 5),
    ("docs/tutorial/attention.md", 1),
    ("docs/tutorial/finding-a-race.md", 3),
    ("docs/tutorial/reading-the-assembly.md", 3),
    ("docs/numerics.md", 1),
    ("docs/fidelity.md", 1),
    ("docs/model.md", 1),
    pytest.param("docs/opencl.md", 5, marks=pytest.mark.needs("ocloc")),
    ("docs/portability.md", 2),
    ("docs/jit.md", 1),
    ("docs/lowering.md", 7),
    ("docs/file-to-result.md", 6),
    ("docs/reference.md", 3),
    ("docs/simt.md", 2),
    ("docs/targets.md", 2),
    ("docs/xetile.md", 7),
    ("docs/visa.md", 4),
    ("docs/layouts.md", 7),
    ("docs/dpas-layout.md", 1),
    pytest.param("docs/hardware.md", 3, marks=pytest.mark.needs("ocloc")),
]
"""The pages whose code runs, and the least number of commands and blocks of each."""

ELSEWHERE = {
    "docs/triton.md": "test/extensions/triton",
    "docs/tutorial/triton-race.md": "test/extensions/triton",
    "docs/recipes": "test/repository/test_contributing.py",
    # Signatures of builders, which are made from the classes.
    "docs/dialects": "test/unit/test_docs.py",
}
"""The tests of other pages' code."""

NOT_RUN = {"launch.py", "launch_ze.py", "saxpy_cl.py", "lit.cfg.py"}
"""Files that need a GPU or `ocloc`, or that lit reads; other tests have them."""


@pytest.mark.parametrize(("page", "least"), PAGES)
def test_outputs_are_true(tmp_path, page, least):
    found = list(runs((ROOT / page).read_text(), tmp_path))
    assert len(found) >= least
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"


def test_code_of_every_page_runs():
    """A page whose code no test runs, and a file that no command of its page runs, are named here."""
    run_here = {getattr(page, "values", page)[0] for page in PAGES}
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        page = str(path.relative_to(ROOT))
        code = [b for b in blocks(path.read_text()) if b.language in ("python", "console")]
        if any(page.startswith(other) for other in ELSEWHERE) or not code:
            continue
        assert page in run_here, f"no test runs the code of {page}"
        commands = "".join(b.text for b in code if b.language == "console")
        imported = "".join(b.text for b in code if b.language == "python")
        for block in code:
            if block.file and block.file not in NOT_RUN:
                stem = block.file.removesuffix(".py")
                used = block.file in commands or re.search(rf"(?:import|from) {re.escape(stem)}\b", imported)
                assert used, f"{page}: nothing runs {block.file}"


def shell_commands():
    """The command lines of our tools in blocks that are not run, since they take long or install something."""
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for block in blocks(path.read_text()):
            for line in block.text.splitlines() if block.language == "sh" else ():
                if line.startswith("xegpu-"):
                    yield pytest.param(line, id=f"{path.name}-{line[:40]}")


@pytest.mark.parametrize("line", list(shell_commands()))
def test_commands_that_are_not_run_have_options_that_exist(line):
    tool, *words = shlex.split(line, comments=True)
    module = importlib.import_module(f"xegpu_py.tools.{tool.replace('-', '_')}")
    parser = module.argument_parser()
    parser.parse_intermixed_args(parser.normalized(words))


@pytest.mark.needs("ocloc")
def test_the_opencl_program_of_readme(tmp_path):
    (block,) = [b for b in blocks(README) if b.file == "saxpy_cl.py"]
    (tmp_path / block.file).write_text(f"{block.text}assert (y == 3).all()\n")
    subprocess.run([sys.executable, block.file], cwd=tmp_path, check=True)


@pytest.mark.parametrize(("file", "message"), [("launch.py", "no GPU of Intel's"), ("launch_ze.py", "libze")])
def test_programs_for_a_gpu_say_that_there_is_none(tmp_path, file, message):
    (block,) = [b for b in blocks((ROOT / "docs" / "hardware.md").read_text()) if b.file == file]
    (tmp_path / file).write_text(block.text)
    (tmp_path / "gemm.bin").touch()
    (tmp_path / "scale.bin").touch()
    done = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True)
    if not re.search("numpy|doubled|Level Zero returned|CL_", done.stdout + done.stderr):
        assert done.returncode == 1 and message in done.stderr


def test_the_page_from_file_to_result_shows_the_example():
    shown = blocks((ROOT / "docs/file-to-result.md").read_text())[0]
    assert shown.text == (ROOT / "examples" / shown.file).read_text()


def test_modules_that_pages_run_can_be_run():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"python3? -m (xegpu_py[\w.]*\w)", page.read_text())}
    assert "xegpu_py.extensions.hardware_check" in named
    for name in named:
        found = importlib.util.find_spec(name)
        assert found, name
        if found.submodule_search_locations is not None:
            assert importlib.util.find_spec(f"{name}.__main__"), name


def test_make_targets_exist():
    named = {m[1] for b in blocks(README) if b.language == "sh" for m in re.finditer(r"make (\w+)", b.text)}
    assert {"demo", "test"} <= named
    for target in named:
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def test_the_page_has_at_most_200_lines():
    assert README.count("\n") <= 150
