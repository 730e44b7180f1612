"""The arguments of Triton's launches as those of our kernels: memory, numbers and descriptors, without copies."""

from __future__ import annotations

import gc
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct

from xegpu_py.runtime.host_arrays import PointerTable, Window

DTYPES: dict[str, Any] = {
    **{f"{sign}{bits}": np.dtype(f"int{bits}") for sign in "iu" for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("i1", "u1", "B"), np.dtype(np.int8)),
    **{f"fp{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
}
"""The types of numbers and elements by Triton's names. Signs do not matter: MLIR's integers have none."""

ADDRESS = np.dtype(np.int64)


class Parameter(Struct, frozen=True):
    """A parameter that Triton passes at run time.

    Attributes:
        name: the user's name of it, in a tuple with its index.
        path: where it is in the arguments of the launch: the number of an argument, and of elements in tuples.
        kind: "array", "number" or "descriptor".
        dtype: Triton's name of the type of its elements.
        rank: the dimensions of a descriptor.
    """

    name: str
    path: tuple[int, ...]
    kind: str
    dtype: str
    rank: int = 0

    def names(self) -> tuple[str, ...]:
        """The names of the parameters of our kernel that it becomes."""
        if self.kind != "descriptor":
            return (self.name,)
        sizes = [f"{self.name}.{quantity}[{d}]" for quantity in ("shape", "strides") for d in range(self.rank)]
        return (self.name, *sizes, *sizes)


_DESCRIPTOR = re.compile(r"tensordesc\w*<([^\[>]*)\[([^\]]*)\]")


def parameters_of(signature: Sequence[tuple[str, Any]]) -> tuple[Parameter, ...]:
    """The parameters that a signature of Triton passes at run time.

    Args:
        signature: names and types: "*fp32", "i32", "constexpr", "tensordesc<fp16[64, 64]>", or a tuple of types.

    Raises:
        TypeError: for a type that this backend does not know.
    """
    return tuple(p for i, (name, kind) in enumerate(signature) for p in _parameters(name, (i,), kind))


def _parameters(name: str, path: tuple[int, ...], kind: Any) -> Iterator[Parameter]:
    if isinstance(kind, (tuple, list)):
        for i, one in enumerate(kind):
            yield from _parameters(f"{name}[{i}]", (*path, i), one)
    elif kind.startswith("*"):
        element = kind[1:].removeprefix("k")
        dtype = "i64" if element.startswith("*") else element
        _check(name, dtype)
        yield Parameter(name, path, "array", dtype)
    elif (match := _DESCRIPTOR.match(kind)) is not None:
        _check(name, match[1])
        yield Parameter(name, path, "descriptor", match[1], match[2].count(",") + 1)
    elif kind != "constexpr":
        _check(name, kind)
        yield Parameter(name, path, "number", kind)


def _check(name: str, dtype: str) -> None:
    if dtype not in DTYPES:
        raise TypeError(f"argument '{name}' must have a type of {', '.join(DTYPES)}, but got {dtype}")


def memory_of(argument: Any, name: str) -> tuple[int, int, int, bool]:
    """The address of a tensor's first element, of the first byte and the end of its memory, and if that is writeable.

    Raises:
        TypeError: if it is not in the host's memory, or its memory is not known.
    """
    while not hasattr(argument, "untyped_storage") and hasattr(getattr(argument, "base", None), "data_ptr"):
        # A tensor whose elements are taken for another type.
        argument = argument.base
    device = getattr(argument, "device", None)
    if getattr(device, "type", "cpu") != "cpu":
        raise TypeError(f"argument '{name}' must be a tensor in the host's memory, but got one on device {device}")
    if hasattr(argument, "untyped_storage"):
        storage = argument.untyped_storage()
        start = storage.data_ptr()
        return argument.data_ptr(), start, start + storage.nbytes(), True
    span = getattr(argument, "xegpu_span", None)
    if span is None:
        raise TypeError(f"argument '{name}' must be a tensor or wrap(array), but got {type(argument).__name__}")
    return span


def key_of(parameter: Parameter, argument: Any) -> Any:
    """All that a launch depends on of an argument, without the contents of its memory."""
    if parameter.kind == "array":
        return None if argument is None else memory_of(argument, parameter.name)
    if parameter.kind == "number":
        return struct.pack("<d", argument) if isinstance(argument, float) else argument
    return (memory_of(argument.base, parameter.name), *argument.shape, *argument.strides, padding_of(argument))


def padding_of(descriptor: Any) -> str:
    """How blocks of a descriptor are loaded: "zero" or "nan" outside, and "-tf32" if elements are rounded to that."""
    rounded = getattr(descriptor, "round_f32_to_tf32", False)
    return f"{getattr(descriptor, 'padding', 'zero')}{'-tf32' * bool(rounded)}"


def passed(parameter: Parameter, argument: Any, points: bool = False) -> list[Any]:
    """The arguments of our kernel for an argument of Triton's.

    Args:
        points: whether the kernel makes pointers of integers: a tensor of addresses may be a table of pointers.
    """
    dtype = DTYPES[parameter.dtype]
    if parameter.kind == "array":
        array = _array(argument, dtype, parameter.name)
        return [_table_of(array) if points and dtype == ADDRESS else array]
    if parameter.kind == "number":
        return [_number(argument, parameter.dtype)]
    sizes = [*map(int, argument.shape), *map(int, argument.strides)]
    wide, rank = [np.int64(n) for n in sizes], parameter.rank
    narrow = [np.array(n).astype(np.int32)[()] for n in sizes[:rank]]
    return [_array(argument.base, dtype, parameter.name), *wide, *narrow, *wide[rank:]]


def _array(argument: Any, dtype: np.dtype[Any], name: str) -> Window:
    if argument is None:
        return Window.of(np.zeros(1, dtype))
    first, start, end, writeable = memory_of(argument, name)
    window = Window.at(first, start, end, dtype)
    window.flags.writeable = writeable
    return window


def _table_of(array: Window) -> Window | PointerTable:
    """An array of integers as a table of pointers, if each of them is an address in a tensor of this process."""
    spans = _spans_of_tensors() if array.size else []
    starts, entries = [start for start, _ in spans], []
    for address in array.tolist():
        start, end = spans[at - 1] if (at := bisect_right(starts, address)) else (0, 0)
        if not start <= address < end:
            return array
        entries.append(Window.at(address, start, end, np.dtype(np.uint8)))
    return PointerTable(entries) if entries else array


def _spans_of_tensors() -> list[tuple[int, int]]:
    """The addresses, from the first byte up to the end, of the memory of all tensors and wrapped arrays, sorted."""
    spans = set()
    for tensor in gc.get_objects():
        # The classes of some objects are only found by running code of theirs, which `type` does not.
        if hasattr(type(tensor), "data_ptr") and hasattr(type(tensor), "stride"):
            # Tensors of other devices, or without memory.
            with suppress(TypeError, RuntimeError):
                _, start, end, _ = memory_of(tensor, "")
                spans.add((start, end))
    return sorted(span for span in spans if span[0] < span[1])


def _number(argument: Any, kind: str) -> Any:
    dtype = DTYPES[kind]
    if dtype.kind == "i":
        return np.array(int(argument) & (1 << 8 * dtype.itemsize) - 1, np.uint64).astype(dtype)[()]
    return np.array(argument).astype(dtype)[()]


def at_path(arguments: Sequence[Any], path: tuple[int, ...]) -> Any:
    """The argument at a path into tuples."""
    argument: Any = arguments
    for step in path:
        argument = argument[step]
    return argument
