"""What `pip install .` takes along is all that there is."""

import sys
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
