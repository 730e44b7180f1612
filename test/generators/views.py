"""Random memrefs of a shape that are views of larger arrays: parts, steps, other ranks, orders and bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xegpu_py.ir.builtin import bit_width, by

from .body import Body, filled
from .ops import NARROW


@dataclass(frozen=True)
class View:
    """A memref.

    Attributes:
        strides: in elements; None for those that the type leaves open.
        offset: the same of its first element.
    """

    name: str
    element: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    offset: int | None = 0

    @property
    def type(self) -> str:
        """MLIR's type."""
        kind = by(["?" if n is None else n for n in self.shape] + [self.element])
        if self.offset == 0 and None not in self.shape and self.strides == dense(self.shape):  # type: ignore[arg-type]
            return f"memref<{kind}>"
        strides = ", ".join("?" if n is None else str(n) for n in self.strides)
        return f"memref<{kind}, strided<[{strides}], offset: {'?' if self.offset is None else self.offset}>>"


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of contiguous elements."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def argument(b: Body, element: str, shape: tuple[int, ...], word: str = "") -> View:
    """A kernel argument."""
    name = b.argument(f"memref<{by((*shape, element))}>", word or b.data(element, shape))
    return View(name, element, shape, dense(shape))


def view(
    b: Body,
    element: str,
    shape: tuple[int, ...],
    unit: bool = True,
    small: bool = False,
    depth: int = 2,
    known: bool = False,
) -> View:
    """A memref of a shape.

    Args:
        unit: whether the elements of a row are contiguous.
        small: whether its elements are small integers.
        depth: how many ops make it at most.
        known: whether its type has all bounds, strides and offsets, so that a block in it need not be aligned.
    """
    rank = len(shape)
    ways = ["part", "part", "reinterpret"] + ["bounds"] * (not known) + ["drop"] * (1 not in shape)
    ways += ["expand"] * (rank > 1) + ["collapse"] * (rank > 0) + ["order"] * (rank > 1 + unit)
    how = b.r.choice(ways) if depth and element not in NARROW else ""

    def made(text: str, strides: Sequence[int | None], offset: int | None, shape: Sequence[int | None] = shape) -> View:
        found = View("", element, tuple(shape), tuple(strides), offset)
        return View(b.op(f"{text} to {found.type}", (), "memref").name, element, found.shape, found.strides, offset)

    def source(shape: tuple[int, ...], contiguous: bool = False) -> View:
        return view(b, element, shape, unit, small, 0 if contiguous else depth - 1, known)

    if how == "part" and rank:
        steps = [b.r.choice([1, 1, 2]) for _ in shape[:-1]] + [1 if unit else b.r.choice([1, 2, 3])]
        first = [b.r.randint(0, 3) for _ in shape]
        if bit_width(element) < 64 and b.r.random() < 0.5:
            # Rows that 2D block messages can address.
            first[-1] = 512 // bit_width(element) * b.r.randint(0, 1)
        whole = [f + s * n + b.r.randint(0, 2) for f, s, n in zip(first, steps, shape)]
        wide = 512 // bit_width(element)
        whole[-1] = -(-whole[-1] // wide) * wide if b.r.random() < 0.5 else whole[-1]
        of = source(tuple(whole))
        places, bounds = ["[" + ", ".join(map(str, n)) + "]" for n in (first, steps)]
        strides = [None if n is None else s * n for s, n in zip(steps, of.strides)]
        moves = [None if n is None else f * n for f, n in zip(first, of.strides)]
        offset = None if of.offset is None or None in moves else of.offset + sum(moves)  # type: ignore[arg-type]
        return made(f"memref.subview {of.name}{places} {list(shape)} {bounds} : {of.type}", strides, offset)
    if how == "drop":
        at = b.r.randint(0, rank - 1) if rank else 0
        more = tuple(b.r.randint(1, 3) for _ in range(b.r.randint(1, 2)))
        of = source((*shape[:at], *more, *shape[at:]))
        first = [0] * at + [b.r.randrange(n) for n in more] + [0] * (rank - at)
        sizes = [*shape[:at], *(1 for _ in more), *shape[at:]]
        strides = [n for i, n in enumerate(of.strides) if not at <= i < at + len(more)]
        moves = [0 if not f else n and f * n for f, n in zip(first, of.strides)]
        offset = None if of.offset is None or None in moves else of.offset + sum(moves)  # type: ignore[arg-type]
        ones = [1] * len(sizes)
        return made(f"memref.subview {of.name}{first} {sizes} {ones} : {of.type}", strides, offset)
    if how == "reinterpret":
        gap, offset = b.r.choice([0, 0, 1, 3]), b.r.choice([0, 0, 1, 5, 16])
        strides = list(dense(shape))
        if rank > 1:
            strides[0] += gap
        count = offset + sum((n - 1) * s for n, s in zip(shape, strides)) + 1
        of = source((count + b.r.randint(0, 2),), contiguous=True)
        text = f"offset: [{offset}], sizes: {list(shape)}, strides: {strides}"
        return made(f"memref.reinterpret_cast {of.name} to {text} : {of.type}", strides, offset)
    if how == "bounds":
        of = source(shape)
        if b.r.random() < 0.3:
            return View(b.op(f"memref.assume_alignment {of.name}, 1 : {of.type}", (), "memref").name, *_rest(of))
        open_ = [b.r.random() < 0.5 for _ in range(2 * rank)]
        sizes = [None if o else n for o, n in zip(open_, of.shape)]
        strides = [None if o else n for o, n in zip(open_[rank:], of.strides)]
        if rank and unit:
            strides[-1] = of.strides[-1]
        return made(f"memref.cast {of.name} : {of.type}", strides, None, sizes)
    if how == "expand":
        of = source((shape[0] * shape[1], *shape[2:]), contiguous=True)
        groups = [[0, 1], *([n] for n in range(2, rank))]
        found = View("", element, shape, dense(shape))
        text = f"memref.expand_shape {of.name} {groups} output_shape {list(shape)} : {of.type} into {found.type}"
        return View(b.op(text, (), "memref").name, *_rest(found))
    if how == "collapse":
        factor = b.r.choice([n for n in (1, 2, 3, 4) if shape[0] % n == 0])
        of = source((factor, shape[0] // factor, *shape[1:]), contiguous=True)
        groups = [[0, 1], *([n] for n in range(2, rank + 1))]
        found = View("", element, shape, dense(shape))
        text = f"memref.collapse_shape {of.name} {groups} : {of.type} into {found.type}"
        return View(b.op(text, (), "memref").name, *_rest(found))
    if how == "order":
        order = list(range(rank - unit))
        b.r.shuffle(order)
        order += [rank - 1] * unit
        of = source(tuple(shape[order.index(i)] for i in range(rank)))
        names = [f"d{i}" for i in range(rank)]
        found = View("", element, tuple(of.shape[i] for i in order), tuple(of.strides[i] for i in order), of.offset)
        text = f"({', '.join(names)}) -> ({', '.join(names[i] for i in order)}) : {of.type} to {found.type}"
        return View(b.op(f"memref.transpose {of.name} {text}", (), "memref").name, *_rest(found))
    shape = (*shape[:-1], filled(shape[-1], element)) if rank else shape
    return argument(b, element, shape, b.data(element, shape, small))


def _rest(of: View) -> tuple[str, tuple[int | None, ...], tuple[int | None, ...], int | None]:
    return of.element, of.shape, of.strides, of.offset
