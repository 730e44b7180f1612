"""What `pip install .` takes along is all that there is."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the standard library reads TOML from 3.11 on")
def test_every_package_is_installed():
    import tomllib

    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {}
    for top in ("xegpu_py", "dialects", "passes", "tools"):
        for init in (ROOT / top).rglob("__init__.py"):
            folder = init.parent.relative_to(ROOT)
            name = ".".join(folder.parts) if top == "xegpu_py" else ".".join(("xegpu_py", *folder.parts))
            found[name] = folder.as_posix()
    assert set(setup["packages"]) == set(found)
    for name, folder in setup["package-dir"].items():
        assert found[name] == folder
    assert {n for n, f in found.items() if not f.startswith("xegpu_py")} <= set(setup["package-dir"])


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The wheel and the source distribution, built from the files that git knows."""
    folder = tmp_path_factory.mktemp("dist")
    copy = folder / "source"
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("test/", "benchmarks/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    environment = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": "1.2.3"}
    # First the source distribution, then the wheel from it: what the former lacks, the latter lacks.
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(copy)]
    built = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert built.returncode == 0, built.stdout
    assert "Warning" not in built.stdout, built.stdout
    return {path.suffix: path for path in folder.iterdir() if path.is_file()}


def test_names_of_distributions(distributions):
    assert distributions[".whl"].name == "xegpu_py-1.2.3-py3-none-any.whl"
    assert distributions[".gz"].name == "xegpu_py-1.2.3.tar.gz"


def test_the_wheel_works_in_an_empty_environment(distributions, tmp_path):
    """Installed from the wheel alone; the dependencies are those of this environment, without this checkout."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    site = next((home / "lib").glob("python*/site-packages"))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--quiet"]
    done = subprocess.run(
        [*pip, "--disable-pip-version-check", str(distributions[".whl"])], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # A .pth file adds the folder, but not the .pth files in it, by which an editable checkout would be found.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    ran = subprocess.run(
        [home / "bin" / "xegpu-opt", ROOT / "examples" / "gemm.mlir", "--xegpu-to-visa-pipeline"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0 and "visa.dpas" in ran.stdout, ran.stderr
    report = subprocess.run([python, "-m", "xegpu_py"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "xegpu-py: 1.2.3\n" in report
    code = "import xegpu_py; print(xegpu_py.__file__)"
    found = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).is_relative_to(home)
