"""Functions that are formulas, against numpy's f64, within the errors that docs/numerics.md states."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from xegpu_py.numerics.expansions import ALGORITHMS, EXPANSIONS, evaluate

EXACT = {
    "exp": np.exp,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asin": np.arcsin,
    "acos": np.arccos,
    "erfc": np.vectorize(math.erfc),
}
"""The functions in f64, whose own errors are below a millionth of a unit in the last place of f32."""

TABLE = (Path(__file__).parents[3] / "docs/numerics.md").read_text().partition("## Functions of f64")[0]

BOUNDS = {name: float(bound) for name, bound in re.findall(r"(?m)^\| (\w+)\([xy, ]+\) \|.*\| ([\d.]+) \|$", TABLE)}

WORST = {
    "exp": (0x423A7F13, 0x41FD836D, 0x3F545B09),
    "log": (0x39BDBE16, 0x39C00F98, 0x6D904644),
    "log10": (0x3FE39826, 0x322E7C0D, 0x38D4503A, 0x7497A0DF),
    "log1p": (0x38FC1E46, 0x44FFFAD9, 0x3CFFA49D),
    "expm1": (0xBD01DF79, 0xBD835068, 0x3EB9F1E9),
    "tanh": (0x3E82886E, 0x3E903EE1),
    "erf": (0x3F0062FE, 0x3F10E684),
    "tan": (0x40FF5F9A, 0x446E5638, 0x3FD113BC),
    "sinh": (0x3F536DB3, 0x3CFE38AA),
    "cosh": (0x41D8049E, 0x422EA8A8),
    "asinh": (0x3CFBC65E, 0x3A7BACCD),
    "acosh": (0x3F80EC43, 0x3FB6C353, 0x4183D6B7),
    "atanh": (0x3C7BB723, 0x3AF75F17),
    "cbrt": (0x38B57A05, 0x37357A05),
    "atan": (0x3ED55FAF, 0x3EE3BCCF),
    "asin": (0x3F007691, 0x3F1FA42D),
    "acos": (0xBF00BB08, 0x3F1FA42D),
    "erfc": (0x3F53229A, 0x3FF1BB4D, 0x40579623),
}
"""The arguments with the greatest errors of all that docs/numerics.md names, as bits."""

SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 3e38, -0.5], np.float32)


def numbers(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = [rng.uniform(-n, n, 4000).astype(np.float32) for n in (1, 12, 100)]
    return np.concatenate([SPECIAL, bits, *near])


def errors(name: str, *operands: np.ndarray) -> np.ndarray:
    """The errors in units in the last place of the exact results, where these are numbers."""
    with np.errstate(all="ignore"):
        exact = EXACT[name](*(v.astype(np.float64) for v in operands))
        wanted = exact.astype(np.float32)
    held, found = np.isfinite(wanted), evaluate(f"math.{name}", *operands)
    return np.abs(found[held] - exact[held]) / np.abs(np.spacing(wanted[held])).astype(np.float64)


def test_each_has_a_bound():
    assert {f"math.{name}" for name in EXACT} == {*EXPANSIONS, *ALGORITHMS} - {"math.powf", "math.round"}
    assert set(EXACT) == set(BOUNDS) and set(WORST) == set(EXACT) - {"atan2"}


@pytest.mark.parametrize("name", WORST)
def test_the_greatest_error_is_the_bound(name):
    found = errors(name, np.array(WORST[name], np.uint32).view(np.float32)).max()
    assert BOUNDS[name] - 0.1 < found <= BOUNDS[name]


@pytest.mark.parametrize("name", EXACT)
def test_errors(name):
    function = EXACT[name]
    operands = [numbers(0)]
    if name == "atan2":
        operands.append(np.random.default_rng(1).permutation(numbers(1)))
    with np.errstate(all="ignore"):
        exact = function(*(v.astype(np.float64) for v in operands))
        wanted = exact.astype(np.float32)
    found = evaluate(f"math.{name}", *operands)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    held = np.isfinite(wanted)
    np.testing.assert_array_equal(np.signbit(found[held]), np.signbit(wanted[held]))
    assert errors(name, *operands).max() <= BOUNDS[name]


@pytest.mark.parametrize(
    "name", ["tanh", "erf", "sinh", "asinh", "atanh", "cbrt", "atan", "asin", "tan", "log1p", "expm1"]
)
def test_odd_functions_keep_the_sign_of_zero(name):
    found = evaluate(f"math.{name}", np.array([0.0, -0.0], np.float32))
    assert (found == 0).all() and np.signbit(found).tolist() == [False, True]


def test_special_values_of_atan2():
    y, x = (v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL))
    found, wanted = evaluate("math.atan2", y, x), np.arctan2(y, x)
    np.testing.assert_allclose(found, wanted, rtol=3e-7)
    held = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[held]), np.signbit(wanted[held]))
