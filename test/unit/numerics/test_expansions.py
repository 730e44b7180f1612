"""Functions that are formulas, against numpy's f64, within the errors that docs/numerics.md states."""

import math

import numpy as np
import pytest

from xegpu_py.numerics.expansions import EXPANSIONS, evaluate

EXACT = {
    "tan": (np.tan, 2),
    "sinh": (np.sinh, 4),
    "cosh": (np.cosh, 4),
    "asinh": (np.arcsinh, 4),
    "acosh": (np.arccosh, 4),
    "atanh": (np.arctanh, 4),
    "cbrt": (np.cbrt, 1),
    "atan": (np.arctan, 3),
    "atan2": (np.arctan2, 3),
    "asin": (np.arcsin, 3),
    "acos": (np.arccos, 2),
    "erfc": (np.vectorize(math.erfc), 6),
}
"""The function in f64, and the error in units in the last place of f32."""
SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 3e38, -0.5], np.float32)


def numbers(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = [rng.uniform(-n, n, 4000).astype(np.float32) for n in (1, 12, 100)]
    return np.concatenate([SPECIAL, bits, *near])


def test_each_has_a_bound():
    assert set(EXPANSIONS) == {f"math.{name}" for name in EXACT}


@pytest.mark.parametrize("name", EXACT)
def test_errors(name):
    function, bound = EXACT[name]
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
    unit = np.abs(np.spacing(wanted[held])).astype(np.float64)
    assert (np.abs(found[held] - exact[held]) / unit).max() <= bound


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
