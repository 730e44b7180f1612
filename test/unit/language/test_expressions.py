"""Random programs of the language: each computes, bit by bit, what the same program computes with numpy.

A program is a list of steps, each on results of earlier ones. A step is one function for the language and one for
numpy; the rules for types are written here once more, in terms of numpy's. Many programs share a kernel, so that they
are fast.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from effort import examples

import xegpu_py.language as xl
from xegpu_py.language.expressions import conjunction

from .computing import check

KERNELS, PROGRAMS = 15, 20
MOST = 128
"""Elements of a value."""

INTEGERS = [np.dtype(t) for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]
NARROW = [np.dtype(t) for t in (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn)]
REALS = [np.dtype(t) for t in (np.float16, np.float32, ml_dtypes.bfloat16, np.float64)] + NARROW
Array = np.ndarray


def is_real(a: Array) -> bool:
    return a.dtype in REALS


def promoted(a: Array, b: Array) -> tuple[Array, Array]:
    """Two arrays in the type in which the language combines them."""
    if a.dtype == b.dtype:
        kind = np.dtype(np.int32) if a.dtype == bool else a.dtype
    elif bool in (a.dtype, b.dtype):
        kind = b.dtype if a.dtype == bool else a.dtype
    elif is_real(a) != is_real(b):
        kind = a.dtype if is_real(a) else b.dtype
    elif is_real(a):
        kind = max(a.dtype, b.dtype, key=lambda t: t.itemsize)
        if a.dtype.itemsize == b.dtype.itemsize:
            kind = np.dtype(np.float32)
    else:
        kind = np.result_type(a, b)
    return converted(a, kind), converted(b, kind)


def converted(a: Array, kind: Any) -> Array:
    """An array in another type; integers are rounded once on their way to a narrow one."""
    kind = np.dtype(kind)
    if kind in REALS and not is_real(a) and kind != np.float32:
        return a.astype(np.float64).astype(kind)
    return a.astype(kind)


def with_number(a: Array, number: float) -> tuple[Array, Array]:
    """An array and a Python number in the type in which the language combines them: numbers are weak."""
    kind = a.dtype
    if isinstance(number, float) and not is_real(a):
        kind = np.dtype(np.float32)
    elif a.dtype == bool:
        kind = np.dtype(np.int32)
    return converted(a, kind), np.asarray(number).astype(kind)


def quotient(a: Array, b: Array) -> Array:
    """True division, in float32 for integers."""
    a, b = (x if is_real(x) else x.astype(np.float32) for x in (a, b))
    return np.asarray(np.divide(a, b)).astype(a.dtype)


def saturated(a: Array, kind: Any) -> Array:
    """Floating-point numbers as integers of a type, toward zero and clamped to its range; NaN becomes 0."""
    limits, wide = np.iinfo(kind), np.trunc(a.astype(np.float64))
    inside = np.where(np.isnan(wide) | (wide >= limits.max) | (wide <= limits.min), 0, wide).astype(kind)
    return np.where(wide >= limits.max, limits.max, np.where(wide <= limits.min, limits.min, inside)).astype(kind)


def of_promoted(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.asarray(function(*promoted(a, b)))


def lesser(a: Array, b: Array) -> Array:
    """The minimum, NaN where one is NaN, and -0 less than 0."""
    if not is_real(a):
        return np.minimum(a, b)
    found = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, found)).astype(a.dtype)


def greater(a: Array, b: Array) -> Array:
    if not is_real(a):
        return np.maximum(a, b)
    found = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, found)).astype(a.dtype)


def narrow_sum(a: Array) -> Array:
    """An array in the type in which it is summed."""
    if a.dtype == bool or a.dtype in (np.dtype(np.int8), np.dtype(np.int16)):
        return a.astype(np.int32)
    return a.astype(np.uint32) if a.dtype in (np.uint8, np.uint16) else a


Step = tuple[Callable[..., Any], Callable[..., Any], tuple[int, ...]]
"""A function of the language, the same of numpy, and the numbers of the results that they take."""


class Program:
    """Random steps. Each is tried with numpy as it is chosen, so that shapes and types fit."""

    def __init__(self, seed: int, inputs: list[Array]) -> None:
        self.random = random.Random(seed)
        self.steps: list[Step] = []
        self.values = list(inputs)
        self.inputs = len(inputs)
        while len(self.steps) < 6:
            self.step()
        self.result = self.values[-1]

    def step(self) -> None:
        # Later results are taken more often, so that chains become long.
        at = max(self.random.randrange(len(self.values)), self.random.randrange(len(self.values)))
        other = self.random.randrange(len(self.values))
        kind = self.random.choice(("arithmetic",) * 3 + ("shape",) * 3 + ("reduction", "choice", "conversion", "order"))
        made = getattr(self, kind)(self.values[at], self.values[other])
        if made is None:
            return
        ours, numpys, count = made
        places = (at, other)[:count]
        found = np.asarray(numpys(*(self.values[p] for p in places)))
        if 1 <= found.size <= MOST and found.ndim <= 4:
            self.steps.append((ours, numpys, places))
            self.values.append(found)

    def run(self, values: list[Any]) -> Any:
        """The result in the language."""
        held = list(values)
        for ours, _, places in self.steps:
            held.append(ours(*(held[p] for p in places)))
        return held[-1]

    def arithmetic(self, a: Array, b: Array) -> Any:
        pick = self.random.random()
        if pick < 0.15:
            if is_real(a):
                return self.random.choice(
                    [(lambda v: -v, lambda v: -v, 1), (xl.abs, np.abs, 1), (xl.floor, np.floor, 1)]
                )
            if a.dtype != bool:
                return self.random.choice([(lambda v: -v, lambda v: -v, 1), (lambda v: ~v, lambda v: ~v, 1)])
            return lambda v: ~v, lambda v: ~v, 1
        if pick < 0.35 and not is_real(a) and a.dtype != bool:
            n = self.random.choice((3, 7, 10))
            shift = self.random.randrange(a.dtype.itemsize * 8)
            return self.random.choice(
                [
                    (lambda v: v // n, lambda v: v // v.dtype.type(n), 1),
                    (lambda v: v % n, lambda v: v % v.dtype.type(n), 1),
                    (lambda v: v << shift, lambda v: v << v.dtype.type(shift), 1),
                    (lambda v: v >> shift, lambda v: v >> v.dtype.type(shift), 1),
                    (lambda v: n - v * 5, lambda v: v.dtype.type(n) - v * v.dtype.type(5), 1),
                ]
            )
        if pick < 0.45:
            return self._with_number()
        if not _broadcast(a, b):
            return None
        if pick < 0.55 and a.dtype == b.dtype and a.dtype in INTEGERS:
            bits = a.dtype.itemsize * 8 - 1
            return lambda x, y: x << (y & bits), lambda x, y: x << (y & y.dtype.type(bits)), 2
        if pick < 0.65 and not is_real(a) and not is_real(b):
            both_truth = a.dtype == b.dtype == bool
            name = self.random.choice(("and", "or", "xor"))
            ours = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}[name]
            function = getattr(np, f"bitwise_{name}")
            return ours, function if both_truth else of_promoted(function), 2
        ours, numpys = self.random.choice(
            [
                (lambda x, y: x + y, np.add),
                (lambda x, y: x - y, np.subtract),
                (lambda x, y: x * y, np.multiply),
                (lambda x, y: x / y, quotient),
                (xl.minimum, lesser),
                (xl.maximum, greater),
            ]
        )
        if a.dtype == b.dtype == bool and numpys in (lesser, greater):
            return None
        return ours, of_promoted(numpys), 2

    def _with_number(self) -> Any:
        """An operator with a Python number."""
        number = self.random.choice((1, 3, 100, 0.5, -1.5))
        ours, numpys = self.random.choice(
            [
                (lambda v: v + number, np.add),
                (lambda v: number - v, lambda x, n: n - x),
                (lambda v: v * number, np.multiply),
                (lambda v: v / number, quotient),
                (lambda v: xl.maximum(v, number), greater),
                (lambda v: v > number, np.greater),
                (lambda v: number == v, np.equal),
                (lambda v: xl.where(v > number, v, number), lambda x, n: np.where(x > n, x, n)),
            ]
        )
        return ours, lambda v: np.asarray(numpys(*with_number(v, number))), 1

    def choice(self, a: Array, b: Array) -> Any:
        if not _broadcast(a, b):
            return None
        sign = self.random.choice(("less", "equal", "where"))
        if sign == "where":
            return (
                lambda x, y: xl.where(x > 0, x, y) if a.dtype != bool else xl.where(x, x, y),
                lambda x, y: _where(x, y),
                2,
            )
        if a.dtype == b.dtype == bool:
            return None
        if sign == "less":
            return lambda x, y: x < y, of_promoted(np.less), 2
        return lambda x, y: x == y, of_promoted(np.equal), 2

    def conversion(self, a: Array, b: Array) -> Any:
        if is_real(a) and self.random.random() < 0.3:
            kind = self.random.choice(INTEGERS)
            return lambda v: v.to(kind, saturate=True), lambda v: saturated(v, kind), 1
        if is_real(a):
            kind = self.random.choice(REALS)
            return lambda v: v.to(kind), lambda v: v.astype(kind), 1
        kind = self.random.choice([*INTEGERS, *REALS, np.dtype(bool)])
        return lambda v: v.to(kind), lambda v: converted(v, kind), 1

    def shape(self, a: Array, b: Array) -> Any:
        pick = self.random.choice(("reshape", "permute", "part", "axis", "repeat", "flip", "cat", "join", "split"))
        if pick == "reshape":
            shape = self._shape(a.size)
            return lambda v: v.reshape(shape), lambda v: v.reshape(shape), 1
        if pick == "axis":
            key = self.random.choice(
                ((None, ..., None), (..., None), (None, None), *[(slice(None), None)] * (a.ndim > 0))
            )
            return lambda v: v[key], lambda v: v[key], 1
        if a.ndim == 0:
            return None
        axis = self.random.randrange(a.ndim)
        if pick == "permute":
            dims = self.random.sample(range(a.ndim), a.ndim)
            return lambda v: v.permute(dims), lambda v: v.transpose(dims), 1
        if pick == "part":
            key = self._key(a)
            return lambda v: v[key], lambda v: v[key], 1
        if pick == "repeat":
            shape = tuple(self.random.choice((2, 3)) if n == 1 else n for n in (1, *a.shape))
            return lambda v: xl.broadcast_to(v, shape), lambda v: np.broadcast_to(v, shape), 1
        if pick == "flip":
            return lambda v: xl.flip(v, axis), lambda v: np.flip(v, axis), 1
        if pick == "cat":
            return (
                lambda v: xl.cat(
                    v, v[tuple(slice(0, 1) if d == axis else slice(None) for d in range(a.ndim))], dim=axis
                ),
                lambda v: np.concatenate([v, v.take([0], axis)], axis),
                1,
            )
        if pick == "join":
            return lambda v: xl.interleave(v, v[..., ::-1]), lambda v: _interleaved(v, v[..., ::-1]), 1
        if a.shape[-1] != 2:
            return None
        return lambda v: xl.split(v)[1], lambda v: v[..., 1], 1

    def reduction(self, a: Array, b: Array) -> Any:
        axis = self.random.choice([None, *range(a.ndim)])
        keep = self.random.random() < 0.5
        name = self.random.choice(("sum", "prod", "max", "min", "any", "all", "xor_sum", "argmax", "argmin"))
        if is_real(a) and (name in ("sum", "prod", "xor_sum") or np.isnan(a.astype(np.float32)).any()):
            return None
        if a.dtype == bool and name in ("max", "min", "argmax", "argmin"):
            return None
        if name in ("max", "min") and is_real(a):
            function: Any = {"max": greater, "min": lesser}[name]
            return (
                lambda v: getattr(xl, name)(v, axis, keep_dims=keep),
                lambda v: _folded(function, v, axis, keep),
                1,
            )
        if name in ("argmax", "argmin") and axis is None and keep:
            return None
        models: dict[str, Callable[[Array], Any]] = {
            "sum": lambda v: narrow_sum(v).sum(axis, keepdims=keep, dtype=narrow_sum(v).dtype),
            "prod": lambda v: narrow_sum(v).prod(axis, keepdims=keep, dtype=narrow_sum(v).dtype),
            "max": lambda v: v.max(axis, keepdims=keep),
            "min": lambda v: v.min(axis, keepdims=keep),
            "any": lambda v: (v != 0).any(axis, keepdims=keep),
            "all": lambda v: (v != 0).all(axis, keepdims=keep),
            "xor_sum": lambda v: np.bitwise_xor.reduce(v, axis, keepdims=keep),
            "argmax": lambda v: np.asarray(v.argmax(axis, keepdims=keep), np.int32),
            "argmin": lambda v: np.asarray(v.argmin(axis, keepdims=keep), np.int32),
        }
        return lambda v: getattr(xl, name)(v, axis, keep_dims=keep), models[name], 1

    def order(self, a: Array, b: Array) -> Any:
        if a.ndim == 0 or is_real(a) or a.dtype == bool:
            return None
        axis = self.random.randrange(a.ndim)
        extent = a.shape[axis]
        back = self.random.random() < 0.5
        return self.random.choice(
            [
                (lambda v: xl.cumsum(v, axis, reverse=back), lambda v: _summed(v, axis, back), 1),
                (
                    lambda v: xl.associative_scan(v, axis, xl.maximum),
                    lambda v: np.maximum.accumulate(v, axis),
                    1,
                ),
                (
                    lambda v: xl.sort(v, axis, descending=back),
                    lambda v: np.flip(np.sort(v, axis), axis) if back else np.sort(v, axis),
                    1,
                ),
                (
                    lambda v: xl.gather(v, (v & 63) % extent, axis),
                    lambda v: np.take_along_axis(v, ((v & v.dtype.type(63)) % v.dtype.type(extent)).astype(int), axis),
                    1,
                ),
            ]
        )

    def _shape(self, size: int) -> tuple[int, ...]:
        """A random shape of so many elements."""
        shape = []
        while size > 1 and len(shape) < 3 and self.random.random() < 0.8:
            divisor = self.random.choice([d for d in range(1, size + 1) if size % d == 0])
            shape.append(divisor)
            size //= divisor
        return (*shape, size)

    def _key(self, a: Array) -> tuple[Any, ...]:
        """A random part of an array."""
        key: list[Any] = []
        for extent in a.shape:
            start = self.random.randrange(extent)
            stop = self.random.randint(start + 1, extent)
            key.append(
                self.random.choice(
                    (slice(None), slice(None), start, slice(start, stop), slice(None, None, 2), slice(None, None, -1))
                )
            )
        return tuple(key)


def _broadcast(a: Array, b: Array) -> bool:
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    # No type holds uint64 and a signed type.
    kinds = {x.dtype for x in (a, b)}
    return np.dtype(np.uint64) not in kinds or not any(np.issubdtype(k, np.signedinteger) for k in kinds)


def _where(x: Array, y: Array) -> Array:
    mask = x if x.dtype == bool else x > 0
    if x.dtype == y.dtype == bool:
        return np.where(mask, x, y)
    one, other = promoted(x, y)
    return np.where(mask, one, other)


def _interleaved(a: Array, b: Array) -> Array:
    return np.stack([a, b], -1).reshape(*a.shape[:-1], -1)


def _folded(function: Any, v: Array, axis: int | None, keep: bool) -> Array:
    """An array reduced by a function of two."""
    rows = v.reshape(-1) if axis is None else np.moveaxis(v, axis, 0)
    found = rows[0]
    for row in rows[1:]:
        found = function(found, row)
    if keep:
        return np.asarray(found).reshape((1,) * v.ndim) if axis is None else np.expand_dims(found, axis)
    return np.asarray(found)


def _summed(v: Array, axis: int, back: bool) -> Array:
    wide = narrow_sum(v)
    wide = np.flip(wide, axis) if back else wide
    found = np.cumsum(wide, axis, dtype=wide.dtype)
    return np.flip(found, axis) if back else found


def inputs(seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    kinds = rng.choice(len(INTEGERS), 2, replace=False)
    found = [rng.integers(-100 * (INTEGERS[k].kind == "i"), 100, (4, 8)).astype(INTEGERS[k]) for k in kinds]
    real = REALS[seed % len(REALS)]
    return [*found, (rng.integers(-64, 64, (4, 8)) / 8).astype(real)]


@pytest.mark.parametrize("seed", range(examples(KERNELS)))
def test_programs(seed):
    given = inputs(seed)
    with np.errstate(all="ignore"):
        programs = [Program(seed * PROGRAMS + n, given) for n in range(PROGRAMS)]
    expected = tuple(np.asarray(p.result) for p in programs)
    check(lambda *values: tuple(p.run(list(values)) for p in programs), given, expected, workgroup=seed % 3 == 2)


def test_there_are_three_hundred():
    assert KERNELS * PROGRAMS >= 300


def test_chains_of_comparisons_known_at_compile_time():
    """They give what Python's `and` gives, also for numpy's truth values, and end at the first that is false."""
    for chain in itertools.product((True, False, np.True_, np.False_), repeat=3):
        pending = iter(chain)
        assert conjunction(pending) is functools.reduce(lambda a, b: a and b, chain)
        assert len([*pending]) == (0 if all(chain) else 2 - [*map(bool, chain)].index(False))
    assert conjunction(iter((1, 0, True))) == 0 and conjunction(iter(())) is True
