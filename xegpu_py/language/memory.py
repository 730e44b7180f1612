"""Triton's `load` and `store`, of tiles and of pointers under masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

from xegpu_py.language.arrays import Array, Pointers
from xegpu_py.language.scattered import Scattered
from xegpu_py.language.tiles import Block
from xegpu_py.language.values import Value

_LOADED = "tiles and pointers are loaded and stored"

_PADDINGS = {"": None, "zero": None, "nan": math.nan}
"""The numbers that Triton's `padding_option` names."""


def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Sequence[int] = (),
    padding_option: str = "",
    **hints: Any,
) -> Value:
    """The elements of a tile, or the elements that pointers point to.

    Args:
        pointer: a tile, or pointers; an array points to its first element.
        mask: where to read; a tile takes none, as its array bounds it.
        other: what masked and out-of-bounds elements are, by default zero: a number, or with pointers also a value.
        boundary_check: Triton's, without effect: a tile never reads out of bounds.
        padding_option: Triton's names for `other` of a tile: "zero" or "nan".
        hints: Triton's cache hints, which change no result.

    Raises:
        TypeError: if a tile is given a mask.
        ValueError: for another `padding_option`.
    """
    _check_hints(hints)
    if padding_option not in _PADDINGS:
        raise ValueError(f"padding_option is 'zero' or 'nan', not {padding_option!r}")
    pointer = pointed(pointer)
    if is_block(pointer, mask):
        return pointer.load(_PADDINGS[padding_option] if other is None else other)
    found = scattered_of(pointer, _LOADED).load(mask, other)
    return found.reshape(pointer.indices.shape) if isinstance(pointer, Pointers) else found


def store(pointer: Any, value: Any, mask: Any = None, boundary_check: Sequence[int] = (), **hints: Any) -> None:
    """Store to a tile, or to the elements that pointers point to.

    Args:
        pointer: a tile, or pointers; an array points to its first element.
        value: what to store.
        mask: where to write; a tile takes none, as its array bounds it.
        boundary_check: Triton's, without effect: a tile never writes out of bounds.
        hints: Triton's cache hints, which change no result.

    Raises:
        TypeError: if a tile is given a mask.
    """
    _check_hints(hints)
    pointer = pointed(pointer)
    if is_block(pointer, mask):
        return pointer.store(value)
    return scattered_of(pointer, _LOADED).store(value, mask)


def pointed(given: Any) -> Any:
    """What a load or store accesses: of an array its first element, as of a pointer in Triton."""
    return Pointers(given, 0) if isinstance(given, Array) else given


def is_block(given: Any, mask: Any) -> TypeGuard[Block]:
    """Whether a load or store accesses a tile, and not pointers.

    Raises:
        TypeError: if a tile is given a mask.
    """
    if isinstance(given, Block) and mask is not None:
        raise TypeError("a tile takes no mask: out-of-bounds elements are not accessed")
    return isinstance(given, Block)


def scattered_of(given: Any, rule: str) -> Scattered:
    """The elements that pointers, `array + indices` or `array.at(indices)`, point to.

    Args:
        rule: the beginning of the error message: what the caller does with tiles and pointers.

    Raises:
        TypeError: if these are not pointers.
    """
    if isinstance(given, Pointers):
        return given.place()
    if isinstance(given, Scattered):
        return given
    raise TypeError(f"{rule}, not {given!r}")


_HINTS = ("cache_modifier", "eviction_policy", "volatile")


def _check_hints(hints: dict[str, Any]) -> None:
    unknown = [name for name in hints if name not in _HINTS]
    if unknown:
        raise TypeError(f"got an unexpected keyword argument '{unknown[0]}'")
