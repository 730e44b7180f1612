"""README as a reader follows it: each command in order, in a fresh clone and environment, with nothing else installed.

It installs from the network and takes a minute: only `README_WALK=1 pytest test/repository/test_readme_walk.py` runs
it, as CI does.
"""

import faulthandler
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown import ROOT, blocks, runs

LISTING = {"PYTEST_ADDOPTS": "--collect-only -q", "LIT_OPTS": "--show-tests"}
"""Lets `make test`, which contains this test, install its requirements and list its tests without running them."""


@pytest.mark.skipif("README_WALK" not in os.environ, reason="README_WALK=1 runs it")
def test_readme_from_the_first_command_to_the_last(tmp_path):
    # It has no limit of time.
    faulthandler.cancel_dump_traceback_later()
    clone = tmp_path / "xegpu-py"
    subprocess.run(["git", "clone", "--quiet", "--local", str(ROOT), str(clone)], check=True)
    # The reader's own Python, and not that of the environment of this test.
    python = Path(sys.base_prefix) / "bin"
    system = [p for p in os.environ["PATH"].split(os.pathsep) if not p.startswith(str(ROOT))]
    kept = {k: v for k, v in os.environ.items() if k in ("HOME", "LANG") or k.startswith("PIP_")}
    environment = {**kept, **LISTING, "PATH": os.pathsep.join([str(python), *system]), "XEGPU_PY_CACHE": "off"}
    page = (clone / "README.md").read_text()
    commands = [line.split("#")[0].strip() for b in blocks(page) if b.language == "sh" for line in b.text.splitlines()]
    assert commands[:2] == ["make demo", "make test"]
    for command in filter(None, commands):
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=clone,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout[-3000:]}"
    found = list(runs(page, clone, environment, tools=clone / ".venv" / "bin"))
    assert len(found) >= 6
    for run in found:
        assert run.agrees(), f"{run.command}\nshown:\n{run.shown}\nactual:\n{run.actual}"
    shutil.rmtree(clone)
