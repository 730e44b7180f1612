"""How library functions that host code calls are defined in Python: one decorated function each."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xegpu_py.programs.memrefs import MemRef

_SCALARS: dict[str, Any] = {
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "i1": ctypes.c_bool,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "index": ctypes.c_int64,
}


@dataclass
class Host:
    """State that library functions share while a program runs.

    Attributes:
        output: the file descriptor on which the program prints.
        random: the generator of random numbers.
    """

    output: int
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def print(self, text: str) -> None:
        """Print without buffering, because the program may crash later."""
        data = memoryview(text.encode("utf-8", "surrogateescape"))
        while data:
            data = data[os.write(self.output, data) :]


@dataclass(frozen=True)
class Function:
    """A library function.

    Attributes:
        name: its name in host code.
        takes: the MLIR types of its arguments.
        gives: the MLIR type of its result; None if it has no result.
        body: its implementation, called with the `Host` and the arguments; memrefs are `MemRef`s.
    """

    name: str
    takes: tuple[str, ...]
    gives: str | None
    body: Callable[..., Any]

    @property
    def signature(self) -> str:
        """Its type, as MLIR writes it."""
        return f"({', '.join(self.takes)}) -> {self.gives or '()'}"

    @property
    def has_memrefs(self) -> bool:
        """Whether it takes memrefs, so that programs call it by MLIR's C interface."""
        return any(t.startswith("memref") for t in self.takes)

    def callback(self, host: Host, guard: Callable[[Callable[[], Any]], Any]) -> Any:
        """A C function for compiled code.

        Args:
            guard: calls a function, and keeps exceptions out of compiled code.
        """
        readers = [_reader(t) for t in self.takes]

        def called(*words: Any) -> Any:
            return guard(lambda: self.body(host, *(read(w) for read, w in zip(readers, words))))

        types = [_SCALARS.get(t, ctypes.c_void_p) for t in self.takes]
        return ctypes.CFUNCTYPE(_SCALARS[self.gives] if self.gives else None, *types)(called)


def _reader(kind: str) -> Callable[[Any], Any]:
    if kind.startswith("memref<*"):
        return MemRef.unranked
    if kind.startswith("memref<"):
        rank = kind.count("x")
        return lambda pointer: MemRef.ranked(pointer, rank)
    return lambda word: word


class Library(dict[str, Function]):
    """Functions by their names."""

    def define(self, name: str, takes: str, gives: str | None = None) -> Callable[[Any], Any]:
        """Decorates the implementation of a library function.

        Args:
            takes: the MLIR types of its arguments, separated by blanks.
            gives: the MLIR type of its result; None if it has no result.
        """

        def add(body: Callable[..., Any]) -> Callable[..., Any]:
            self[name] = Function(name, tuple(takes.split()), gives, body)
            return body

        return add
