"""Checks, output, hints and synchronisation: what kernels do besides computing."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from mlir import ir as mlir
from mlir.dialects import cf, gpu

from xegpu_py.dialects import xegpu
from xegpu_py.dialects.xegpu.types import FenceScope, MemoryKind
from xegpu_py.language import types
from xegpu_py.language.functions import barrier
from xegpu_py.language.held import BUILDING, Handle
from xegpu_py.language.math import valued
from xegpu_py.language.memory import load, store
from xegpu_py.language.values import Product, Value, constant

PRINTED = 64
"""Most elements that `device_print` shows of a value."""


def static_assert(condition: Any, message: str = "") -> None:
    """Refuse the kernel unless a condition holds that is known as it is compiled.

    Raises:
        ValueError: if it does not hold.
        TypeError: if it is known only as the kernel runs.
    """
    if isinstance(condition, (Value, Product)):
        raise TypeError("static_assert needs a condition that is known as the kernel is compiled; see device_assert")
    if not condition:
        raise ValueError(f"static assertion failed: {message}" if message else "static assertion failed")


def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Print as the kernel is compiled, as Python's `print`; of values that are known only as it runs their type."""
    shown = [v.describe() if isinstance(v, Value) else v for v in values]
    builtins.print(*shown, sep=sep, end=end, file=file, flush=flush)


def device_assert(condition: Any, message: str = "", mask: Any = None) -> None:
    """Stop the run with an error at this line unless a condition holds for all elements.

    Args:
        condition: truth values, or numbers that are true unless they are zero.
        message: what the error says.
        mask: of which elements it must hold; by default of all.
    """
    BUILDING.check()
    held = valued(condition).to(types.bool_)
    if mask is not None:
        held = held | ~valued(mask).to(types.bool_)
    cf.assert_((held.all() if held.shape else held).ir, message or "assertion failed")
    BUILDING.built()


def device_print(prefix: str, *values: Any, hex: bool = False) -> None:
    """Print a text and values as the kernel runs, once for each workgroup; compiled kernels print when they have ended.

    Args:
        prefix: the text, known as the kernel is compiled.
        values: scalars, or values of up to 64 elements.
        hex: whether integers are shown in base 16.

    Raises:
        TypeError: if the prefix is no text.
        ValueError: for values of more elements.
    """
    BUILDING.check()
    if not isinstance(prefix, str):
        raise TypeError(f"device_print needs a text first, not {prefix!r}")
    form, operands = prefix.replace("%", "%%"), []
    for given in values:
        value = valued(given)
        if value.size > PRINTED:
            raise ValueError(f"device_print shows values of up to {PRINTED} elements, not {value.describe()}")
        value = value.to(types.int32) if value.dtype.kind == "bool" else value
        if value.dtype.is_float and value.dtype.bits < 32:
            value = value.to(types.float32)
        one = " %f" if value.dtype.is_float else " %x" if hex else " %u" if value.dtype.kind == "uint" else " %d"
        line = value.ravel() if value.shape else value
        parts = [line[i] for i in range(value.size)] if value.shape else [line]
        form += one * len(parts)
        operands += [p.ir for p in parts]
    gpu.printf(form + "\n", *operands)
    BUILDING.built()


# Hints.


def _hinted(value: Any, numbers: Any, name: str) -> Any:
    given = numbers if isinstance(numbers, Sequence) else [numbers]
    if not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in given):
        raise TypeError(f"{name} needs positive integers that are known as the kernel is compiled, not {numbers!r}")
    return value


def multiple_of(value: Any, values: Any) -> Any:
    """A promise that a value is a multiple of a number. Nothing depends on it: the compiler derives what it needs."""
    return _hinted(value, values, "multiple_of")


def max_contiguous(value: Any, values: Any) -> Any:
    """A promise that so many elements are consecutive numbers, likewise."""
    return _hinted(value, values, "max_contiguous")


def max_constancy(value: Any, values: Any) -> Any:
    """A promise that so many elements are the same, likewise."""
    return _hinted(value, values, "max_constancy")


def assume(condition: Any) -> None:
    """A promise that a condition holds, which the engines check as `device_assert` does.

    Raises:
        ValueError: if it is known not to hold.
    """
    if isinstance(condition, (Value, Product)):
        device_assert(condition, "assumption does not hold")
    elif not condition:
        raise ValueError("assumption does not hold")


# Synchronisation.


def debug_barrier() -> None:
    """Wait for all subgroups of the workgroup: Triton's name of `barrier`."""
    barrier()


def fence(memory: str = "both", scope: str = "gpu") -> None:
    """Let what this subgroup has written be seen before what it writes later.

    Args:
        memory: "global", "shared" or "both".
        scope: by whom: "workgroup" or "gpu".

    Raises:
        ValueError: if there is no such memory or scope.
    """
    BUILDING.check()
    kinds = {"global": MemoryKind.GLOBAL, "shared": MemoryKind.SHARED, "both": None}
    scopes = {"workgroup": FenceScope.WORKGROUP, "gpu": FenceScope.GPU}
    if memory not in kinds:
        raise ValueError(f"fence orders accesses of {', '.join(kinds)}, not {memory!r}")
    if scope not in scopes:
        raise ValueError(f"the scope of a fence is {' or '.join(scopes)}, not {scope!r}")
    xegpu.fence(memory_kind=kinds[memory], scope=scopes[scope])
    BUILDING.built()


class NamedBarrier(Handle):
    """A barrier at which some subgroups of a workgroup meet."""

    def arrive(self) -> None:
        """Tell the others that this subgroup has arrived."""
        xegpu.nbarrier_arrive(self.ir)
        BUILDING.built()

    def wait(self) -> None:
        """Wait until all subgroups have arrived."""
        xegpu.nbarrier_wait(self.ir)
        BUILDING.built()

    def with_ir(self, value: mlir.Value) -> NamedBarrier:
        return NamedBarrier(value)


def named_barrier(number: int, participants: int) -> NamedBarrier:
    """A named barrier for kernels without maps, whose subgroups go their own ways.

    Args:
        number: which of the workgroup's barriers, from 1 on: 0 is that of `barrier`.
        participants: how many subgroups meet at it.

    Raises:
        ValueError: if there is no such barrier.
    """
    BUILDING.check()
    if not 1 <= number < 32 or not 1 <= participants <= 64:
        raise ValueError(
            f"barriers are numbered 1 to 31 and are for 1 to 64 subgroups, not {number} for {participants}"
        )
    xegpu.alloc_nbarrier(nbarrier_num=number + 1)
    ident, count = (constant(types.uint8, n).ir for n in (number, participants))
    return NamedBarrier(xegpu.init_nbarrier(ident, count))


def expect_zero(value: Any, mask: Any) -> Any:
    """A value that is zero wherever a mask is set, which the engines check as `device_assert` does."""
    given = valued(value)
    device_assert(
        (given == 0) | ~valued(mask).to(types.bool_), "expect_zero: a value is not zero where the mask is set"
    )
    return value


def atomic_load(pointer: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> Value:
    """The elements that pointers lead to, each read whole, before anything that follows is read or written.

    Args:
        pointer: pointers, or a tile.
        mask: where to read.
        sem: "relaxed" leaves out the fence; by default "acquire".
        scope: "cta", "gpu" or "sys".

    Raises:
        ValueError: for another order.
    """
    if sem not in (None, "acquire", "relaxed"):
        raise ValueError(f"the order of an atomic load is 'acquire' or 'relaxed', not {sem!r}")
    found = load(pointer, mask)
    if sem != "relaxed":
        fence(scope="workgroup" if scope == "cta" else "gpu")
    return found


def atomic_store(pointer: Any, value: Any, mask: Any = None, sem: str | None = None, scope: str | None = None) -> None:
    """Store where pointers lead, each element whole, after all that was read and written before.

    Args:
        pointer: pointers, or a tile.
        value: what to store.
        mask: where to write.
        sem: "relaxed" leaves out the fence; by default "release".
        scope: "cta", "gpu" or "sys".

    Raises:
        ValueError: for another order.
    """
    if sem not in (None, "release", "relaxed"):
        raise ValueError(f"the order of an atomic store is 'release' or 'relaxed', not {sem!r}")
    if sem != "relaxed":
        fence(scope="workgroup" if scope == "cta" else "gpu")
    store(pointer, value, mask)
