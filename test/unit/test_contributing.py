"""The instructions of CONTRIBUTING.md work in a copy of the repository."""

import shutil

from markdown import ROOT, runs

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def test_worked_examples(tmp_path):
    copy = tmp_path / "copy"
    for folder in ("xegpu_py", "dialects", "passes", "tools"):
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True)
    # lit passes few variables of its environment to commands.
    configuration = (ROOT / "lit.cfg.py").read_text()
    path = f'\nconfig.environment["PYTHONPATH"] = {str(copy)!r}\n'
    (copy / "lit.cfg.py").write_text(configuration + path)
    (copy / "test/unit").mkdir(parents=True)
    for file in ("test/forked_tools.py", "test/unit/conftest.py", "test/unit/effort.py"):
        shutil.copy(ROOT / file, copy / file)

    # pytest's plugins take longer to load than these tests to run.
    environment = {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    found = list(runs(CONTRIBUTING, copy, environment))
    assert len(found) >= 4
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"
