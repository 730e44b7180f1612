"""CONTRIBUTING.md, its recipes and the map are true: recipes work in a copy of the repository."""

import ast
import re
import runpy
import shutil
import subprocess
import sys

from markdown import ROOT, runs

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = re.findall(r"\]\((docs/recipes/.*?)\)", CONTRIBUTING)


def test_recipes(tmp_path):
    """One after the other, since most extend the dialect of the first one."""
    copy = tmp_path / "copy"
    for folder in ("xegpu_py", "dialects", "passes", "tools", "examples"):
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True)
    # lit passes few variables of its environment to commands.
    configuration = (ROOT / "lit.cfg.py").read_text()
    path = f'\nconfig.environment["PYTHONPATH"] = "{copy}"\n'
    (copy / "lit.cfg.py").write_text(configuration + path)
    (copy / "test/unit").mkdir(parents=True)
    for name in ("compiled_objects", "conftest", "effort", "forked_tools", "recorder", "unexecuted"):
        shutil.copy(ROOT / "test" / f"{name}.py", copy / "test" / f"{name}.py")

    # pytest's plugins take longer to load than these tests to run.
    environment = {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    for recipe in RECIPES:
        found = list(runs((ROOT / recipe).read_text(), copy, environment))
        for run in found:
            assert run.agrees(), f"{recipe}: {run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"
            if run.command.startswith("sed -i"):
                assert _changed(copy, run.command.split()[-1]), f"{recipe}: {run.command} changes nothing"
    # As `make lint` does.
    for command in ("check", "format --diff"):
        lint = [sys.executable, "-m", "ruff", *command.split(), "--config", str(ROOT / "pyproject.toml"), str(copy)]
        found = subprocess.run(lint, cwd=copy, capture_output=True, text=True)
        assert found.returncode == 0, found.stdout + found.stderr


def _changed(copy, file):
    return (copy / file).read_text() != (ROOT / file).read_text()


def test_every_recipe_is_linked():
    assert sorted(RECIPES) == sorted(f.relative_to(ROOT).as_posix() for f in ROOT.glob("docs/recipes/*.md"))


def test_every_recipe_has_code_that_runs():
    assert all("\n```console\n$ " in (ROOT / recipe).read_text() for recipe in RECIPES)


def test_answers_to_questions():
    rows = re.findall(r"^\| .*\? \| `(.*)` \| `(.*)` \|$", CONTRIBUTING, re.MULTILINE)
    assert len(rows) == 11
    for file, name in rows:
        tree = ast.parse((ROOT / file).read_text())
        defined = [n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        assert name in defined, f"{file} does not define {name}"


def test_the_map_is_up_to_date():
    made = runpy.run_path(str(ROOT / "docs/site/map.py"))["page"]()
    assert (ROOT / "docs/map.md").read_text() == made, "run `make docs`"
    assert re.findall(r"^- .*: *$", made, re.MULTILINE) == []
