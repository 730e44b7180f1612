"""Alternatives of the chosen rules of arithmetic: results of less accurate functions, and other NaNs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xegpu_py.numerics.formats import TYPES, Array, Format, bits_of
from xegpu_py.numerics.rounding import two_product


def _is_power(x: Array) -> Array:
    return np.abs(np.frexp(x)[0]) == 0.5


def _is_square(root: Array, of: Array) -> Array:
    product, error = two_product(root, root)
    return (product == of) & (error == 0)


def _is_quotient(found: Array, x: Array, y: Array) -> Array:
    product, error = two_product(found, y)
    return (product == x) & (error == 0)


def _is_zero(found: Array, x: Array) -> Array:
    return x == 0


_EXACT: dict[str, Callable[..., Array]] = {
    "inv": lambda found, x: _is_power(x),
    "sqrt": lambda found, x: _is_square(found, x),
    "rsqrt": lambda found, x: _is_power(x) & (np.frexp(x)[1] % 2 == 1),
    "exp": lambda found, x: x == np.rint(x),
    "log": lambda found, x: _is_power(x),
    "sin": _is_zero,
    "cos": _is_zero,
    "tanh": _is_zero,
    "sigm": _is_zero,
    # As it is computed: by a logarithm, a product and an exponential.
    "pow": lambda found, x, y: (y == 0) | (np.abs(x) == 1) | (_is_power(x) & (y == np.rint(y))),
    "invm": _is_quotient,
}
_EXACT["rsqtm"] = _EXACT["rsqrt"]
"""Whether a function's result is its exact value, from the result and the arguments in f64."""

_AT_MOST_ONE = ("sin", "cos", "tanh", "sigm")


def neighbour(name: str, sources: Sequence[Array], results: Array, fmt: str, which: str) -> Array:
    """Results of an instruction of `choices.FUNCTIONS` that are wrong by one unit in the last place.

    Args:
        name: the instruction.
        sources: its arguments in the storage type of `fmt`.
        results: its correctly rounded results.
        fmt: vISA's name of their type: hf, f or df.
        which: "smaller" or "greater", in magnitude. Zeros, infinities, NaNs and exact results stay; so do the greatest
            finite number, and 1 of functions that are at most 1, where "greater" would exceed them.
    """
    form = TYPES[fmt]
    with np.errstate(all="ignore"):
        exact = _EXACT[name](results.astype(np.float64), *(np.asarray(s).astype(np.float64) for s in sources))
        stays = exact | (results == 0) | ~np.isfinite(results)
        if which == "greater":
            most = 1.0 if name in _AT_MOST_ONE else np.finfo(form.dtype).max
            stays = stays | (np.abs(results) >= most)
    bits = bits_of(np.ascontiguousarray(results))
    step = bits.dtype.type(1)
    moved = bits + step if which == "greater" else bits - step
    return np.where(stays, bits, moved).view(form.dtype)


def negative_nan(fmt: Format) -> int:
    """The bits of the canonical NaN with the sign bit set."""
    return fmt.nan | 1 << (fmt.bits - 1)


def negative_nans(values: Array, fmt: Format) -> Array:
    """The numbers, with the canonical NaN's sign bit set in place of each NaN."""
    bits = bits_of(np.ascontiguousarray(values))
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(values), bits.dtype.type(negative_nan(fmt)), bits).view(values.dtype)
