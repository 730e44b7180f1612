"""Atomic operations on tiles and on pointers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xegpu_py.language.arrays import Pointers
from xegpu_py.language.memory import is_block, load, pointed, scattered_of, store
from xegpu_py.language.synchronization import fence
from xegpu_py.language.tiles import ATOMICS
from xegpu_py.language.values import Value

_SCOPES = {None: "gpu", "gpu": "gpu", "sys": "gpu", "cta": "workgroup"}
"""Triton's memory scopes, by the scope of the fence for each."""


def _check(what: str, orders: Sequence[str], sem: str | None, scope: str | None) -> None:
    if sem is not None and sem not in orders:
        raise ValueError(f"the order of an atomic {what} is {', '.join(orders)}, not {sem!r}")
    if scope not in _SCOPES:
        raise ValueError(f"the scope of an atomic {what} is gpu, cta, sys, not {scope!r}")


def _updated(
    operation: str, pointer: Any, value: Any, mask: Any, expected: Any, sem: str | None, scope: str | None
) -> Value:
    _check("op", ("acquire", "release", "acq_rel", "relaxed"), sem, scope)
    pointer = pointed(pointer)
    if is_block(pointer, mask):
        return pointer.atomic(operation, value, expected)
    found = scattered_of(pointer, "atomic ops update tiles and pointers").atomic(operation, value, mask, expected)
    return found.reshape(pointer.indices.shape) if isinstance(pointer, Pointers) else found


def _atomic(operation: str) -> Any:
    def atomic(pointer: Any, value: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> Value:
        return _updated(operation, pointer, value, mask, None, sem, scope)

    atomic.__name__ = atomic.__qualname__ = f"atomic_{operation}"
    atomic.__doc__ = (
        f"Atomic {operation} of memory and a value; gives the old elements. "
        "Triton's `sem` and `scope` are checked and have no effect: the GPU's memory model holds for each."
    )
    return atomic


atomic_add, atomic_max, atomic_min, atomic_and, atomic_or, atomic_xor, atomic_xchg = map(_atomic, ATOMICS)


def atomic_cas(
    pointer: Any, cmp: Any, val: Any, sem: str | None = None, scope: str | None = None, mask: Any = None
) -> Value:
    """Compare memory with `cmp` and, where they are equal, write `val`, atomically; gives the old elements.

    Args:
        pointer: pointers, or a tile.
        cmp: the expected elements. Bits are compared: -0.0 does not equal 0.0, and a NaN may equal itself.
        val: the new elements.
        sem: Triton's memory order, which is checked and has no effect: the GPU's memory model holds for each.
        scope: Triton's memory scope, as `sem`.
        mask: where to compare and write; elements elsewhere are zero in the result.

    Raises:
        TypeError: if a tile is given a mask, or a value cannot be converted to the elements' type.
        ValueError: for another order or scope.
    """
    return _updated("xchg", pointer, val, mask, cmp, sem, scope)


def atomic_load(pointer: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> Value:
    """The elements of a tile or at pointers, each read atomically and before any later access to memory.

    Args:
        pointer: pointers, or a tile.
        mask: where to read.
        sem: "relaxed" leaves out the fence; by default "acquire".
        scope: "cta", "gpu" or "sys".

    Raises:
        ValueError: for another order or scope.
    """
    _check("load", ("acquire", "relaxed"), sem, scope)
    found = load(pointer, mask)
    if sem != "relaxed":
        fence(scope=_SCOPES[scope])
    return found


def atomic_store(pointer: Any, value: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> None:
    """Store to a tile or to pointers, each element atomically and after all earlier accesses to memory.

    Args:
        pointer: pointers, or a tile.
        value: what to store.
        mask: where to write.
        sem: "relaxed" leaves out the fence; by default "release".
        scope: "cta", "gpu" or "sys".

    Raises:
        ValueError: for another order or scope.
    """
    _check("store", ("release", "relaxed"), sem, scope)
    if sem != "relaxed":
        fence(scope=_SCOPES[scope])
    store(pointer, value, mask)
