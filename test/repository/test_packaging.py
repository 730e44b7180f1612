"""`pip install .` includes all files."""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The wheel and the source distribution, built from the files that git knows."""
    folder = tmp_path_factory.mktemp("dist")
    copy = folder / "source"
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs git, and a clone")
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("test/", "benchmarks/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
        elif (ROOT / name).is_symlink():
            (copy / name).symlink_to((ROOT / name).readlink())
    environment = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": "1.2.3"}
    # First the source distribution, then the wheel from it: a file that the former lacks, the latter lacks too.
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(copy)]
    built = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert built.returncode == 0, built.stdout
    assert "Warning" not in built.stdout, built.stdout
    return {path.suffix: path for path in folder.iterdir() if path.is_file()}


def test_every_extra_is_on_the_page_of_the_installation():
    extras = set(metadata.metadata("xegpu-py").get_all("Provides-Extra"))
    rows = [line for line in (ROOT / "docs" / "install.md").read_text().splitlines() if line.startswith("| `")]
    shown = {name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    assert shown == extras


def test_names_of_distributions(distributions):
    assert distributions[".whl"].name == "xegpu_py-1.2.3-py3-none-any.whl"
    assert distributions[".gz"].name == "xegpu_py-1.2.3.tar.gz"


def test_the_wheel_has_all_modules(distributions):
    """dialects/, passes/ and tools/ are in the package by symbolic links."""
    modules = {str(f.relative_to(ROOT)) for f in (ROOT / "xegpu_py").rglob("*.py")}
    for top in ("dialects", "passes", "tools"):
        assert (ROOT / "xegpu_py" / top).readlink() == Path("..") / top
        modules |= {f"xegpu_py/{f.relative_to(ROOT)}" for f in (ROOT / top).rglob("*.py")}
    with zipfile.ZipFile(distributions[".whl"]) as archive:
        found = {n for n in archive.namelist() if ".dist-info/" not in n}
    assert {n for n in found if n.endswith(".py")} == modules
    others = {p for pattern in ("py.typed", "*.ll", "report.*s") for p in (ROOT / "xegpu_py").rglob(pattern)}
    others |= {ROOT / "xegpu_py" / p.relative_to(ROOT) for p in (ROOT / "dialects").rglob("*.pyi")}
    assert found - modules == {str(p.relative_to(ROOT)) for p in others}


def dependencies(wheel):
    """The distributions that a wheel needs, directly or not, without extras."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    pending = [line.removeprefix("Requires-Dist: ") for line in text.splitlines() if line.startswith("Requires-Dist: ")]
    found = {}
    while pending:
        need = Requirement(pending.pop())
        if need.name not in found and (need.marker is None or need.marker.evaluate({"extra": ""})):
            found[need.name] = metadata.distribution(need.name)
            pending += found[need.name].requires or []
    return found.values()


def installed_files(distributions):
    """The files and folders of distributions in site-packages."""
    for found in distributions:
        tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
        yield from (Path(found.locate_file(top)) for top in sorted(tops))


def test_the_wheel_works_in_an_empty_environment(distributions, tmp_path):
    """Installed from the wheel alone, with only the dependencies that it declares."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    site = next((home / "lib").glob("python*/site-packages"))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--quiet"]
    done = subprocess.run(
        [*pip, "--disable-pip-version-check", str(distributions[".whl"])], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for path in installed_files(dependencies(distributions[".whl"])):
        if not (site / path.name).exists():
            (site / path.name).symlink_to(path)
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
