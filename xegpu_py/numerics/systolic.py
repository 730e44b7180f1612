"""Models of a systolic array: how a dpas of floats groups, orders, aligns and rounds its sums."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Struct

from xegpu_py.argument_types import Range, check_fields
from xegpu_py.numerics.formats import Array, F, flush
from xegpu_py.numerics.rounding import round_integers

# Products of two factors of at most 11 bits are exact in f64 and have at most 22 bits; accumulators of f have 24. A sum
# is an integer times a power of two, and is rounded to f.

_BITS = 24
"""Bits of a term, at most."""

_EXACT = 52
"""Bits of integers whose lengths f64 tells."""


_Group = Literal["product", "stage", "all"]

_Order = Literal["up", "down"]

_Join = Literal["first", "last", "tree"]

_Rounding = Literal["even", "zero"]


_Flushed = Literal["bf", "tf32", "hf", "bf8", "hf8", "e2m1", "bf sums", "f sums"]


class Systolic(Struct, frozen=True):
    """How a dpas adds its products to an accumulator of f.

    Attributes:
        group: the products that are added before a rounding: each "product", those of a "stage", or "all".
        order: whether groups are added in increasing k, "up", or "down".
        join: whether a group is added to the accumulator in one sum, "first"; or its own sum is, which is rounded once,
            "last", or made by a "tree", adjacent products first, each sum rounded.
        rounding: to nearest "even" or toward "zero".
        guard: bits below the last place of a sum's greatest term that other terms keep when they are aligned with it;
            they lose what is below. None if they lose nothing.
        flushed: the subnormal numbers that are zeros: of factors "bf", "tf32", "hf", "bf8", "hf8" and "e2m1"; of
            accumulators and results "bf sums", and, with all sums in between, "f sums".
        nan: the bits of a NaN of f that is a result.
    """

    group: _Group = "product"
    order: _Order = "up"
    join: _Join = "first"
    rounding: _Rounding = "even"
    guard: Annotated[int, Range(0, 64)] | None = None
    flushed: tuple[_Flushed, ...] = ()
    nan: int = F.nan

    def __post_init__(self) -> None:
        check_fields(self)

    def multiply(self, a: Array, b: Array, c: Array, stages: int) -> Array:
        """`c + a x b` of one instruction.

        Args:
            a: [..., M, K], f32 numbers of at most 11 significant bits.
            b: [..., K, N], likewise.
            c: f32 [..., M, N].
            stages: the systolic depth, into which K is divided.

        Returns:
            f32 [..., M, N]. NaNs may have any bits.
        """
        depth = a.shape[-1]
        size = {"product": 1, "stage": depth // stages, "all": depth}[self.group]
        with np.errstate(all="ignore"):
            products = [np.multiply(a[..., :, k, None], b[..., None, k, :], dtype=np.float64) for k in range(depth)]
            groups = [products[k : k + size] for k in range(0, depth, size)]
            total = c.astype(np.float64)
            for group in groups if self.order == "up" else groups[::-1]:
                terms = group if self.join == "first" else [self._own_sum(group)]
                total = self._sum([total, *terms])
            return total.astype(np.float32)

    def _own_sum(self, group: Sequence[Array]) -> Array:
        if self.join == "last":
            return self._sum(group)
        found = list(group)
        while len(found) > 1:
            found = [self._sum(found[n : n + 2]) for n in range(0, len(found), 2)]
        return found[0]

    def _sum(self, terms: Sequence[Array]) -> Array:
        """The sum of terms rounded to f, as f64."""
        found = rounded_sum(np.stack(np.broadcast_arrays(*terms)), self.rounding, self.guard)
        if "f sums" in self.flushed:
            found = flush(found.astype(np.float32), F).astype(np.float64)
        return found


VARIANTS: dict[str, Systolic] = {
    "dot": Systolic("stage", join="last"),
    "stage-zero": Systolic("stage", rounding="zero"),
}
"""Models that have a name, besides those of `dpas.MODELS`; `choices.CHOICES` says what each is."""


class _Measured(Struct):
    """A result of the hardware check: the models that reproduce all bits of a GPU's products."""

    models: list[Systolic]


def read_model(path: str) -> Systolic:
    """The model in a file that `xegpu_py.extensions.hardware_check` has written.

    Raises:
        ValueError: if it cannot be read, or tells no model, or several that no product tells apart.
    """
    try:
        models = msgspec.json.decode(Path(path).read_bytes(), type=_Measured).models
    except OSError as e:
        raise ValueError(f"'{path}' is neither the name of a model nor a file: {e.strerror}") from None
    except msgspec.DecodeError as e:
        raise ValueError(f"'{path}' is not a file of xegpu_py.extensions.hardware_check: {e}") from None
    if len(models) != 1:
        raise ValueError(f"'{path}' tells {len(models)} models of dpas, but one is needed")
    return models[0]


def rounded_sum(terms: Array, rounding: _Rounding, guard: int | None) -> Array:
    """Sums along the first axis, rounded to f. A sum that is exactly zero is positive, unless all terms are -0.

    Args:
        terms: f64 [terms, ...] of at most 24 significant bits.
        rounding, guard: see `Systolic`.
    """
    finite = np.isfinite(terms)
    mantissa, exponent = np.frexp(np.where(finite, terms, 0.0))
    whole, places = np.ldexp(mantissa, _BITS).astype(np.int64), exponent.astype(np.int64) - _BITS
    used = whole != 0
    most = np.where(used, places, -(1 << 20)).max(axis=0)
    least = np.where(used, places, 1 << 20).min(axis=0)
    base = np.where(most < least, 0, least if guard is None else most - guard)
    shift = np.where(used, places - base, 0)
    wide = int(shift.max(initial=0)) + _BITS + len(terms).bit_length() > _EXACT
    magnitude = np.abs(whole).astype(object) if wide else np.abs(whole)
    left, right = np.maximum(shift, 0), np.minimum(np.maximum(-shift, 0), 62)
    aligned = magnitude << left >> right
    total = np.where(whole < 0, -aligned, aligned).sum(axis=0)
    number = round_integers(np.abs(total), base, F, rounding == "even")
    greatest = float(np.finfo(np.float32).max)
    number = np.where(number > greatest, np.inf if rounding == "even" else greatest, number)
    negative = np.where(total == 0, np.signbit(terms).all(axis=0), total < 0)
    special = np.where(finite, 0.0, terms).sum(axis=0)
    return np.where(finite.all(axis=0), np.where(negative, -number, number), special)


_KINDS: tuple[tuple[_Group, tuple[_Order, ...], tuple[_Join, ...]], ...] = (
    ("product", ("up", "down"), ("first",)),
    ("stage", ("up", "down"), ("first", "last")),
    ("all", ("up",), ("first", "last", "tree")),
)

_ROUNDINGS: tuple[_Rounding, ...] = ("even", "zero")


@cache
def candidates() -> tuple[Systolic, ...]:
    """Models that differ in how sums are made, of which a measurement chooses."""
    return tuple(
        Systolic(group, order, join, rounding, guard)
        for rounding in _ROUNDINGS
        for group, orders, joins in _KINDS
        for order in orders
        for join in joins
        for guard in ((None,) if join == "tree" else (None, 0, 1, 2, 3))
    )
