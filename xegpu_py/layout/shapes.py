"""Layouts of the same elements in another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xegpu_py.layout.ids import LayoutError
from xegpu_py.layout.nested import TILES, NestedLayout

_SUBGROUP, _BATCH, _OUTER, _THREAD, _ELEMENT = TILES
_STRIDES = {_SUBGROUP: "subgroup_strides", _THREAD: "thread_strides"}


@dataclass(frozen=True)
class _Digit:
    """A digit of an element's row-major number.

    Attributes:
        level: the level of tiles in which it is the index.
        extent: the number of tiles.
        stride: the difference between the ids of neighbours; 0 for levels without ids.
    """

    level: str
    extent: int
    stride: int = 0

    def split(self, inner: int) -> tuple[_Digit, _Digit]:
        """The outer part, and the inner part with the given number of tiles."""
        return replace(self, extent=self.extent // inner, stride=self.stride * inner), replace(self, extent=inner)

    def joins(self, inner: _Digit) -> bool:
        """Whether this digit and the next inner one can be merged to one digit of their level."""
        return self.level == inner.level and self.stride == inner.stride * inner.extent


def reshape(layout: NestedLayout, shape: Sequence[int]) -> NestedLayout:
    """The layout of a vector with the elements of another vector, in row-major order.

    Every lane of every subgroup holds the same elements. If a dimension of the result has registers of several levels
    side by side, they may be in another order.

    Args:
        layout: the layout of a vector.
        shape: the other shape, of as many elements.

    Raises:
        LayoutError: if the number of elements differs, or no nested layout of this shape has the same owners.
    """
    if math.prod(shape) != math.prod(layout.shape):
        raise LayoutError(f"a vector of shape {list(layout.shape)} does not have as many elements as {list(shape)}")
    digits = [d for i in range(layout.rank) for d in _digits(layout, i)]
    dims = []
    for i in reversed(range(len(shape))):
        dims.append(_ordered(_taken(digits, shape[i], i, shape), i, shape))
    found: dict[str, tuple[int, ...]] = {}
    for level in TILES:
        found[level] = tuple(d[level].extent if level in d else 1 for d in reversed(dims))
        if level in _STRIDES:
            found[_STRIDES[level]] = tuple(d[level].stride if level in d else 0 for d in reversed(dims))
    return NestedLayout(**found)


def _digits(layout: NestedLayout, dim: int) -> list[_Digit]:
    """The digits of an index in one dimension, the outermost first."""
    found = []
    for level in TILES:
        extent = getattr(layout, level)[dim]
        if extent > 1:
            found.append(_Digit(level, extent, getattr(layout, _STRIDES[level])[dim] if level in _STRIDES else 0))
    return found


def _taken(digits: list[_Digit], size: int, dim: int, shape: Sequence[int]) -> list[_Digit]:
    """Take from the end those digits that make up a dimension; the last one may be split."""
    found: list[_Digit] = []
    left = size
    while left > 1:
        last = digits.pop()
        if left % last.extent:
            if last.extent % left:
                raise LayoutError(f"dimension {dim} of {list(shape)} ends within {last.extent} tiles of {last.level}")
            outer, last = last.split(left)
            digits.append(outer)
        left //= last.extent
        if found and last.joins(found[0]):
            found[0] = replace(found[0], extent=found[0].extent * last.extent)
        else:
            found.insert(0, last)
    return found


def _ordered(digits: list[_Digit], dim: int, shape: Sequence[int]) -> dict[str, _Digit]:
    """A dimension's digits by level. Registers may change theirs, as each has two outside of the lanes, one inside."""
    rest = list(digits)
    found: dict[str, _Digit] = {}
    if rest and rest[0].level == _SUBGROUP:
        found[_SUBGROUP] = rest.pop(0)
    lanes = [i for i, d in enumerate(rest) if d.level == _THREAD]
    if len(lanes) > 1 or any(d.level == _SUBGROUP for d in rest):
        order = ", ".join(f"{d.extent} of {d.level}" for d in digits)
        raise LayoutError(f"dimension {dim} of {list(shape)} would be {order}, from the outermost on")
    if lanes:
        at = lanes[0]
        found |= _registers(rest[:at], (_BATCH, _OUTER)) | {_THREAD: rest[at]} | _registers(rest[at + 1 :], (_ELEMENT,))
    else:
        found |= _registers(rest, (_BATCH, _OUTER, _ELEMENT))
    return found


def _registers(digits: list[_Digit], levels: tuple[str, ...]) -> dict[str, _Digit]:
    """Digits of registers by level: their own if they are in the order of these, or else all of one."""
    own = [d.level for d in digits]
    if own == [level for level in levels if level in own]:
        return dict(zip(own, digits))
    level = _ELEMENT if _ELEMENT in levels else levels[0]
    return {level: _Digit(level, math.prod(d.extent for d in digits))}
