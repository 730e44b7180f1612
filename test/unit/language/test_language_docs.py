"""The tables of docs/tile-language.md are true."""

import inspect
import linecache
import re
import runpy
from typing import Any

import numpy as np
import pytest
from markdown import ROOT

import xegpu_py
import xegpu_py.language as xl

PAGE = (ROOT / "docs" / "tile-language.md").read_text()
NAMES_OF_TRITON = 147
"""Names that `triton.language` of Triton 3.9.0 lists in `__all__`, and `advance` of earlier ones."""


def rows() -> list[tuple[list[str], str]]:
    """Triton's names in each row, and what stands for them here."""
    table = PAGE[PAGE.index("## Triton names") :]
    cells = re.findall(r"^\| (`.*?) \| (.*?) ?\| (.*?) ?\|$", table, re.MULTILINE)
    return [(re.findall(r"`(\w+)`", triton), here) for triton, here, _ in cells]


def test_each_of_tritons_names_stands_there_once():
    names = [name for triton, _ in rows() for name in triton]
    assert len(names) == len(set(names)) == NAMES_OF_TRITON


def test_names_that_are_claimed_exist():
    missing = []
    for triton, here in rows():
        claimed = triton if here == "same" else re.findall(r"`(\w+)`", here)
        missing += [name for name in claimed if not hasattr(xl, name)]
    assert not missing


def test_documented_names_of_triton_are_names_here():
    generated = runpy.run_path(str(ROOT / "docs/site/triton_names.py"))
    assert len({*generated["DOCUMENTED"]}) == 94
    assert not [name for name in generated["DOCUMENTED"] if not hasattr(xl, name)]
    assert generated["table"]() in PAGE, "run `make docs`"


def test_nine_of_ten_names_have_a_counterpart():
    counted = sum(len(triton) for triton, here in rows() if here)
    assert counted >= 0.9 * NAMES_OF_TRITON


def test_all_names_have_help():
    functions = [name for name in xl.__all__ if callable(getattr(xl, name)) and not isinstance(getattr(xl, name), type)]
    assert not [name for name in functions if not getattr(xl, name).__doc__]
    assert all(hasattr(xl, name) for name in xl.__all__)


MISTAKES = re.findall(r"^\| `(.+?)` \| `(.+?)` \| `(.+?)` \|$", PAGE[PAGE.index("## Mistakes") :], re.MULTILINE)


@pytest.mark.parametrize(("mistake", "message", "remedy"), MISTAKES, ids=[mistake for mistake, _, _ in MISTAKES])
def test_mistakes_and_their_remedies(mistake: str, message: str, remedy: str) -> None:
    line = np.zeros(64, np.float32)
    with pytest.raises(xegpu_py.DiagnosticError, match=re.escape(message)) as caught:
        kernel_of(mistake).compile(line, line, 5, N=64)
    assert caught.value.diagnostics[0].position.line == 4
    kernel_of(remedy).compile(line, line, 5, N=64)


def kernel_of(statement: str) -> Any:
    """The kernel that the page's table speaks of, with a statement."""
    text = f"def kernel(X, Y, n, N):\n    i = xl.arange(0, N)\n    x = xl.load(X + i)\n    {statement}\n"
    name = f"<{statement}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    found: dict[str, Any] = {"xl": xl, "np": np}
    exec(compile(text, name, "exec"), found)
    found["kernel"].__annotations__["N"] = xegpu_py.Constexpr
    return xegpu_py.jit(found["kernel"])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("where", ("condition", "x", "y")),
        ("full", ("shape", "value", "dtype")),
        ("clamp", ("x", "min", "max", "propagate_nan")),
        ("arange", ("start", "end")),
    ],
)
def test_parameters_have_the_names_of_triton(name: str, parameters: tuple[str, ...]) -> None:
    assert tuple(inspect.signature(getattr(xl, name)).parameters)[: len(parameters)] == parameters
