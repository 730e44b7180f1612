"""Ops that move elements: which element of an operand each element of a result is.

Each op is declared once. `moved` applies it to arrays: the reference evaluator to values, lowerings to the positions of
elements. Ops that take elements of one operand along its dimensions are also a `View`, which says the same of indices:
for layouts, affine forms, cutting and distribution.

Source: MLIR's documentation of the dialect `vector`. Strides of slices are 1, as its verifier requires.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from mlir import ir
from msgspec import Struct

from xegpu_py.ir.builtin import Decoded, integers, shape_of
from xegpu_py.ir.definition import DYNAMIC

Array = npt.NDArray[Any]
Shape = tuple[int, ...]


class Reading(Protocol):
    """The properties of an op that a rule reads."""

    @property
    def shape(self) -> Shape:
        """The shape of the first result; () of a scalar."""

    def attribute(self, name: str) -> Any:
        """An attribute that is a list of integers."""


class View(Struct, frozen=True):
    """The elements of an operand that a result has.

    Attributes:
        shape: the result's shape.
        dims: for each dimension of the operand, the dimension of the result that runs along it; -1 if its index is
            fixed. The result repeats elements along its other dimensions.
        first: for each dimension of the operand, its first or its fixed index.
    """

    shape: Shape
    dims: tuple[int, ...]
    first: tuple[int, ...]

    @property
    def order(self) -> list[int]:
        """The operand's dimensions that are not fixed, counted among each other, in the order of the result's."""
        free_dims = [d for d in self.dims if d >= 0]
        return sorted(range(len(free_dims)), key=free_dims.__getitem__)

    def of(self, a: Array) -> Array:
        """The elements of an array of the operand's shape."""
        selected = a[tuple(f if d < 0 else slice(f, f + self.shape[d]) for d, f in zip(self.dims, self.first))]
        unit = [n if d in self.dims else 1 for d, n in enumerate(self.shape)]
        return np.broadcast_to(np.transpose(selected, self.order).reshape(unit), self.shape)

    def box(self, box: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """The part of the operand that a part of the result has: (first, count) along each dimension."""
        return tuple((f, 1) if d < 0 else (f + box[d][0], box[d][1]) for d, f in zip(self.dims, self.first))

    def around(self, *inner_sizes: int) -> View:
        """The view of vectors that have more dimensions of these sizes, the innermost ones."""
        inner_dims = range(len(self.shape), len(self.shape) + len(inner_sizes))
        return View((*self.shape, *inner_sizes), (*self.dims, *inner_dims), (*self.first, *[0] * len(inner_sizes)))

    def grouped(self, group_size: int) -> View | None:
        """The view of rows in groups of so many elements; None if it divides groups."""
        last_dim = len(self.shape) - 1
        if (
            not self.dims
            or self.dims[-1] != last_dim
            or self.shape[last_dim] % group_size
            or self.first[-1] % group_size
        ):
            return None
        return View(
            (*self.shape[:-1], self.shape[-1] // group_size),
            self.dims,
            (*self.first[:-1], self.first[-1] // group_size),
        )


# Views, given the shape of the operand.


def _broadcast(op: Reading, shape: Shape) -> View:
    """Elements repeated along new outer dimensions, and along those of size 1."""
    lead = len(op.shape) - len(shape)
    dims = tuple(lead + i if n == op.shape[lead + i] else -1 for i, n in enumerate(shape))
    return View(op.shape, dims, (0,) * len(shape))


def _transpose(op: Reading, shape: Shape) -> View:
    """Dimensions in another order."""
    order = list(op.attribute("permutation"))
    return View(op.shape, tuple(map(order.index, range(len(shape)))), (0,) * len(shape))


def _extract(op: Reading, shape: Shape) -> View | None:
    """The element, or the elements of the inner dimensions, at a position; None if it is given by operands."""
    at = op.attribute("static_position")
    return None if DYNAMIC in at else _inner(op.shape, at)


def _inner(shape: Shape, at: Sequence[int]) -> View:
    return View(shape, (*[-1] * len(at), *range(len(shape))), (*at, *[0] * len(shape)))


def _slice(op: Reading, shape: Shape) -> View:
    offsets = op.attribute("offsets")
    return View(op.shape, tuple(range(len(shape))), (*offsets, *[0] * (len(shape) - len(offsets))))


VIEWS: dict[str, Callable[[Reading, Shape], View | None]] = {
    "vector.broadcast": _broadcast,
    "vector.transpose": _transpose,
    "vector.extract": _extract,
    "vector.extract_strided_slice": _slice,
}
"""Views by op name."""

WHOLE = ("vector.broadcast", "vector.transpose")
"""Views that have all elements of their operand."""


class _Op:
    """An op of the IR as its rule reads it."""

    def __init__(self, op: ir.Operation) -> None:
        self._op = op

    @property
    def shape(self) -> Shape:
        return shape_of(self._op.results[0])

    def attribute(self, name: str) -> list[int]:
        return _INTEGERS[self._op.attributes[name]]


_INTEGERS = Decoded(integers)


def view_of(op: ir.Operation) -> View | None:
    """The view that an op is; None if it is none, or if operands give a position."""
    rule = VIEWS.get(op.name)
    return rule(_Op(op), shape_of(op.operands[0])) if rule else None


def permutation_of(op: ir.Operation | None) -> tuple[int, ...] | None:
    """Return the operand's dimension of each dimension of the result of an op that reorders dimensions; None for other
    ops.
    """
    return None if op is None or op.name != "vector.transpose" else tuple(_Op(op).attribute("permutation"))


def groups(a: Shape, b: Shape) -> list[tuple[range, range]] | None:
    """The dimensions of two shapes that a cast relates: the smallest groups with the same product in both.

    None if the shapes differ in their number of elements.
    """
    if math.prod(a) != math.prod(b):
        return None
    dim_groups = []
    i = j = 0
    while i < len(a) or j < len(b):
        first_i, first_j = i, j
        a_size = a[i] if i < len(a) else 1
        b_size = b[j] if j < len(b) else 1
        i, j = min(i + 1, len(a)), min(j + 1, len(b))
        while a_size != b_size:
            if a_size < b_size:
                a_size *= a[i]
                i += 1
            else:
                b_size *= b[j]
                j += 1
        dim_groups.append((range(first_i, i), range(first_j, j)))
    return dim_groups


# Arrays.

Move = Callable[..., Any]
"""A function of an op and arrays of its operands' elements: its results. Poison elements may have any value."""


def _viewed(rule: Callable[[Reading, Shape], View | None]) -> Move:
    def move(op: Reading, a: Array) -> Array:
        view = rule(op, np.shape(a))
        assert view is not None
        return view.of(np.asarray(a))

    return move


def _position(op: Reading, dynamic: Iterable[Any], shape: Shape) -> tuple[int, ...] | None:
    """A position in a vector; None if it is outside, where the result is poison."""
    waiting = iter(dynamic)
    indices = tuple(int(next(waiting)) if n == DYNAMIC else n for n in op.attribute("static_position"))
    return indices if all(0 <= p < n for p, n in zip(indices, shape)) else None


def _extracted(op: Reading, a: Array, *dynamic: Any) -> Array:
    """A part at a position, which operands may give."""
    at = _position(op, dynamic, a.shape)
    return np.zeros(op.shape, a.dtype) if at is None else _inner(op.shape, at).of(a)


def _insert(op: Reading, value: Array, a: Array, *dynamic: Any) -> Array:
    """A vector with an element, or all elements of the inner dimensions, replaced."""
    at, result = _position(op, dynamic, op.shape), np.array(a)
    if at is not None:
        result[at] = value
    return result


def _insert_slice(op: Reading, value: Array, a: Array) -> Array:
    result, sizes = np.array(a), (*[1] * (a.ndim - value.ndim), *value.shape)
    result[tuple(slice(o, o + n) for o, n in zip(op.attribute("offsets"), sizes))] = value
    return result


def _shuffle(op: Reading, a: Array, b: Array) -> Array:
    rows = np.concatenate([np.atleast_1d(a), np.atleast_1d(b)])
    return rows[[max(i, 0) for i in op.attribute("mask")]]


def _deinterleave(op: Reading, a: Array) -> tuple[Array, Array]:
    return a[..., 0::2], a[..., 1::2]


def _to_elements(op: Reading, a: Array) -> Any:
    elements = tuple(np.asarray(v) for v in a.reshape(-1))
    return elements if len(elements) > 1 else elements[0]


MOVES: dict[str, Move] = {
    **{name: _viewed(rule) for name, rule in VIEWS.items()},
    "vector.extract": _extracted,
    "vector.insert": _insert,
    "vector.insert_strided_slice": _insert_slice,
    "vector.shape_cast": lambda op, a: np.reshape(a, op.shape),
    "vector.shuffle": _shuffle,
    "vector.interleave": lambda op, a, b: np.stack([a, b], axis=-1).reshape(op.shape),
    "vector.deinterleave": _deinterleave,
    "vector.from_elements": lambda op, *elements: np.reshape(np.stack(elements), op.shape),
    "vector.to_elements": _to_elements,
}
"""The ops that move elements, by name."""


def positions(op: ir.Operation) -> Any:
    """Return, for each result of an op, the source positions of its elements: int64, of its shape.

    The elements of all operands are counted in row-major order, those of the first operand first. Positions of parts
    must be constants.
    """
    count, sources = 0, []
    for value in op.operands:
        shape = shape_of(value)
        sources.append(np.arange(count, count + math.prod(shape)).reshape(shape))
        count += math.prod(shape)
    return MOVES[op.name](_Op(op), *sources)


# Ops that move no elements.


def has_one_shape(op: ir.Operation) -> bool:
    """Whether an op has vectors, all of one shape, besides scalars."""
    return len({shape_of(v) for v in (*op.operands, *op.results)} - {()}) == 1


def is_elementwise(op: ir.Operation) -> bool:
    """Whether an upstream op computes each element from elements at the same position and scalars."""
    by_name = op.name.startswith(("arith.", "math.")) or op.name == "vector.fma"
    return by_name and op.name != "arith.constant" and has_one_shape(op)
