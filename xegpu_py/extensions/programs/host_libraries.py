"""The libraries that host code calls, and its memrefs."""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from xegpu_py.numerics.formats import Array, element_bits
from xegpu_py.runtime.host_arrays import DTYPES

# How library functions that host code calls are defined in Python: one decorated function each.

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
class LibraryState:
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
class LibraryFunction:
    """A library function.

    Attributes:
        name: its name in host code.
        takes: the MLIR types of its arguments.
        gives: the MLIR type of its result; None if it has no result.
        body: its implementation, called with the `LibraryState` and the arguments; memrefs are `HostMemRef`s.
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

    def callback(self, host: LibraryState, guard: Callable[[Callable[[], Any]], Any]) -> Any:
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
        return HostMemRef.unranked
    if kind.startswith("memref<"):
        rank = kind.count("x")
        return lambda pointer: HostMemRef.ranked(pointer, rank)
    return lambda word: word


class Library(dict[str, LibraryFunction]):
    """Functions by their names."""

    def define(self, name: str, takes: str, gives: str | None = None) -> Callable[[Any], Any]:
        """Decorates the implementation of a library function.

        Args:
            takes: the MLIR types of its arguments, separated by blanks.
            gives: the MLIR type of its result; None if it has no result.
        """

        def add(body: Callable[..., Any]) -> Callable[..., Any]:
            self[name] = LibraryFunction(name, tuple(takes.split()), gives, body)
            return body

        return add


# The functions of IMEX's `imex_runner_utils`: fill arrays, compare them, and compute matrix products on the host.

LIBRARY = Library()

_FLOATS = {"F16": "f16", "BF16": "bf16", "F32": "f32"}

ABSOLUTE, RELATIVE = float(np.float32(1e-4)), float(np.float32(1e-3))
"""The tolerances of `allclose`."""


def _fill(host: LibraryState, memref: HostMemRef, value: float, *, element: str) -> None:
    memref.array(element)[...] = np.float32(value)


def _fill_random(
    host: LibraryState, memref: HostMemRef, lower: float, upper: float, whole: bool, *, element: str
) -> None:
    array = memref.array(element)
    numbers = host.random.uniform(lower, upper, array.shape)
    array[...] = (np.trunc(numbers) if whole else numbers).astype(np.float32)


def _is_close(host: LibraryState, actual: HostMemRef, expected: HostMemRef, *, element: str) -> bool:
    """Whether all elements are within the tolerance; NaNs always are."""
    have = actual.array(element).astype(np.float32).ravel()
    want = expected.array("f32").ravel()
    count = min(len(have), len(want))
    have, want = have[:count], want[:count]
    with np.errstate(all="ignore"):
        # Differences are rounded to f32, and the tolerance is not.
        far = np.abs(have - want) > ABSOLUTE + RELATIVE * np.abs(want.astype(np.float64))
    return not bool(far.any())


def _print_close(host: LibraryState, actual: HostMemRef, expected: HostMemRef, *, element: str) -> None:
    is_close = _is_close(host, actual, expected, element=element)
    host.print(f"[ALLCLOSE: {'TRUE' if is_close else 'FALSE'}]\n")


def _print_error(host: LibraryState, first: HostMemRef, second: HostMemRef, *, element: str) -> None:
    a, b = (m.array(element).astype(np.float64).ravel() for m in (first, second))
    count = min(len(a), len(b))
    a, b = a[:count], b[:count]
    with np.errstate(all="ignore"):
        absolute = np.abs(a - b)
        relative = absolute / np.fmax(np.abs(a), np.abs(b))
    for name, errors in (("absolute", absolute), ("relative", relative)):
        # The first element with the greatest error, if any element has one. A NaN is not an error.
        positive_errors = np.where(errors > 0, errors, 0)
        at = int(np.argmax(positive_errors)) if count and positive_errors.any() else None
        shown = (0, np.inf, np.inf) if at is None else (positive_errors[at], a[at], b[at])
        error, i, j = (number(float(v)) for v in shown)
        host.print(f"Max {name} error {error} at idx={at or 0} (i={i}, j={j})\n")


def _gemm(host: LibraryState, a: HostMemRef, b: HostMemRef, c: HostMemRef, *, element: str, rounded: str) -> None:
    """C + A x B in f32. The result is rounded once to C's type."""
    sizes = a.sizes, b.sizes, c.sizes
    if any(len(s) != 2 for s in sizes):
        ranks = ", ".join(f"{name} rank: {len(s)}" for name, s in zip("ABC", sizes))
        host.print(f"Expecting 2D memrefs, got {ranks}\n")
        return
    if a.sizes[1] != b.sizes[0] or a.sizes[0] != c.sizes[0] or b.sizes[1] != c.sizes[1]:
        shapes = ", ".join(f"{name}: [{s[0]}, {s[1]}]" for name, s in zip("ABC", sizes))
        host.print(f"Incompatible matrix dimensions: {shapes}\n")
        return
    if any(m.strides != (m.sizes[1], 1) for m in (a, b, c)):
        host.print("Expecting A strides to be [M, 1], B strides to be [K, 1], C strides to be [M, 1]\n")
        return
    left, right = (m.array(element).astype(np.float32) for m in (a, b))
    result = c.array("f32")
    product = result.copy()
    multiply(left, right, product)
    result[...] = product.astype(ELEMENTS[rounded])


_PART = 1 << 16
"""Elements of a product that are computed together: they stay in the second-level cache."""


def multiply(a: Array, b: Array, c: Array) -> None:
    """Add the product of two matrices to a third, all f32: each product and sum is rounded, in the order of k."""
    rows = max(_PART // max(c.shape[1], 1), 1)
    for first in range(0, len(c), rows):
        own, left = c[first : first + rows], np.ascontiguousarray(a[first : first + rows].T)
        term = np.empty_like(own)
        for column, row in zip(left, b):
            np.multiply(column[:, None], row, out=term)
            own += term


# The functions of MLIR's `mlir_runner_utils` and `mlir_c_runner_utils`, with the same output.
#
# Numbers are printed as C++ streams and C's `%g` print them: with six significant digits.


def number(value: float) -> str:
    """A number in the format of `%g`; infinities and NaNs in glibc's spelling."""
    if value != value:
        return "-nan" if np.signbit(value) else "nan"
    return f"{value:g}"


# Descriptors of memrefs in compiled host code, and their views as numpy arrays.
#
# A ranked memref is {allocated pointer, aligned pointer, offset, sizes, strides}, an unranked one {rank, pointer to the
# ranked one}: https://mlir.llvm.org/docs/TargetLLVMIR/#c-compatible-wrapper-emission.


@dataclass(frozen=True)
class HostMemRef:
    """A memref of a running program.

    Attributes:
        allocated: address of the allocation.
        aligned: address that `offset` counts from.
        offset: offset of the first element from `aligned`, in elements.
        sizes, strides: size and stride of each dimension, in elements.
    """

    allocated: int
    aligned: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def ranked(cls, pointer: int, rank: int) -> HostMemRef:
        """The memref at a pointer to a ranked descriptor."""
        descriptor: Any = descriptor_type(rank).from_address(pointer)
        return cls(
            descriptor.allocated or 0,
            descriptor.aligned or 0,
            descriptor.offset,
            tuple(descriptor.sizes),
            tuple(descriptor.strides),
        )

    @classmethod
    def unranked(cls, pointer: int) -> HostMemRef:
        """The memref at a pointer to an unranked descriptor."""
        rank, descriptor = (ctypes.c_int64 * 2).from_address(pointer)
        return cls.ranked(descriptor, rank)

    @classmethod
    def of(cls, array: Array) -> HostMemRef:
        """The memref of a numpy array."""
        strides = tuple(s // array.itemsize for s in array.strides)
        return cls(array.ctypes.data, array.ctypes.data, 0, array.shape, strides)

    @classmethod
    def contiguous(cls, pointer: int, sizes: tuple[int, ...]) -> HostMemRef:
        """A memref in row-major order."""
        return cls(pointer, pointer, 0, sizes, tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes))))

    def descriptor(self) -> ctypes.Structure:
        """The ranked descriptor."""
        rank = len(self.sizes)
        lengths = ctypes.c_int64 * rank
        return descriptor_type(rank)(
            self.allocated, self.aligned, self.offset, lengths(*self.sizes), lengths(*self.strides)
        )

    def array(self, element: str) -> Array:
        """A numpy view of the elements, which have this MLIR type. Writing the array writes the memory.

        Elements of 2 and 4 bits are packed as in kernels, and the array consists of bytes.

        Raises:
            ValueError: if such elements do not fill bytes.
        """
        if element_bits(element):
            return self._packed(8 // element_bits(element)).array("i8")
        dtype = ELEMENTS[element]
        size = dtype.itemsize
        if 0 in self.sizes:
            return np.zeros(self.sizes, dtype)
        reach = [(n - 1) * s for n, s in zip(self.sizes, self.strides)]
        first, last = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        start = self.aligned + (self.offset + first) * size
        buffer = (ctypes.c_char * ((last - first + 1) * size)).from_address(start)
        # Untyped bytes, since numpy cannot make such views of ml_dtypes' types.
        flat = np.frombuffer(buffer, f"V{size}")
        strided = np.lib.stride_tricks.as_strided(flat[-first:], self.sizes, [s * size for s in self.strides])
        return strided.view(dtype)

    def _packed(self, each: int) -> HostMemRef:
        """The memref of the bytes, each of which holds `each` elements."""
        counts = (self.offset, *self.sizes[-1:], *self.strides[:-1])
        if self.strides[-1:] != (1,) or any(n % each for n in counts):
            raise ValueError(f"elements of {self.sizes} with strides {self.strides} do not fill bytes")
        sizes, strides = (*self.sizes[:-1], self.sizes[-1] // each), (*(s // each for s in self.strides[:-1]), 1)
        return HostMemRef(self.allocated, self.aligned, self.offset // each, sizes, strides)


for _name, _element in _FLOATS.items():
    _kind = f"memref<*x{_element}>"
    LIBRARY.define(f"fillResource1D{_name}", f"{_kind} f32")(partial(_fill, element=_element))
    LIBRARY.define(f"fillResource1DRandom{_name}", f"{_kind} f32 f32 i1")(partial(_fill_random, element=_element))
    LIBRARY.define(f"allclose{_name}", f"{_kind} memref<*xf32>", "i1")(partial(_is_close, element=_element))
    LIBRARY.define(f"printAllclose{_name}", f"{_kind} memref<*xf32>")(partial(_print_close, element=_element))
    LIBRARY.define(f"printMaxError{_name}", f"{_kind} {_kind}")(partial(_print_error, element=_element))


@LIBRARY.define("printAllcloseI32", "memref<*xi32> memref<*xi32>")
def _print_equal(host: LibraryState, actual: HostMemRef, expected: HostMemRef) -> None:
    is_equal = np.array_equal(actual.array("i32").ravel(), expected.array("i32").ravel())
    host.print(f"[ALLCLOSE: {'TRUE' if is_equal else 'FALSE'}]\n")


ELEMENTS: dict[str, Any] = {
    **DTYPES,
    "index": np.dtype(np.int64),
    "i1": np.dtype(np.bool_),
    "tf32": np.dtype(np.float32),
    **{f"si{bits}": DTYPES[f"i{bits}"] for bits in (8, 16, 32, 64)},
}
"""The numpy type of each MLIR element type in the host's memory, by MLIR's name."""

for _name, _element, _rounded in (
    ("F16F16F32", "f16", "f32"),
    ("F16F16F16", "f16", "f16"),
    ("BF16BF16F32", "bf16", "f32"),
):
    _kind = f"memref<*x{_element}>"
    LIBRARY.define(f"gemm{_name}", f"{_kind} {_kind} memref<*xf32>")(partial(_gemm, element=_element, rounded=_rounded))

_NAMES = {"I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64", "F16": "f16", "BF16": "bf16", "F32": "f32",
          "F64": "f64", "Ind": "index"}  # fmt: skip
"""MLIR's element types by their names in the names of functions."""

_VERIFIED = {"I32": None, "I64": None, "Ind": None, "F32": 1e-6, "F64": 1e-12}
"""The greatest relative error that `verifyMemRef` allows; None for integers, which must be equal."""

_SHOWN_ERRORS = 10
"""The largest number of wrong elements that `verifyMemRef` prints."""


def _texts(values: Array, element: str) -> list[str]:
    if element == "i8":
        # C++ streams print bytes as characters.
        return [bytes([v]).decode("utf-8", "surrogateescape") for v in values.view(np.uint8).tolist()]
    if element == "index":
        values = values.view(np.uint64)
    if values.dtype.kind in "iu":
        return [str(v) for v in values.tolist()]
    floats = values.astype(np.float64)
    return [number(v) for v in floats.tolist()]


def _shape(memref: HostMemRef) -> str:
    sizes, strides = (", ".join(map(str, s)) for s in (memref.sizes, memref.strides))
    return (
        f"base@ = {memref.aligned:#x} rank = {len(memref.sizes)} offset = {memref.offset} "
        f"sizes = [{sizes}] strides = [{strides}]"
    )


def _nested(values: Array, element: str, indent: int = 1) -> str:
    """The elements in nested brackets. Each line but the first is indented by one blank for each open bracket."""
    if values.ndim == 1:
        return f"[{(', ' + ' ' * indent).join(_texts(values, element))}]"
    between = ", \n" + " " * indent
    return f"[{between.join(_nested(v, element, indent + 1) for v in values)}]"


def _print_memref(host: LibraryState, memref: HostMemRef, *, element: str, title: str) -> None:
    values = memref.array(element)
    data = _nested(values, element) if values.ndim else f"[{_texts(values.reshape(1), element)[0]}]"
    host.print(f"{title} {_shape(memref)} data = \n{data}\n")


def _print_shape(host: LibraryState, memref: HostMemRef) -> None:
    host.print(f"Unranked Memref {_shape(memref)}\n")


def _verify(host: LibraryState, actual: HostMemRef, expected: HostMemRef, *, element: str, error: float | None) -> int:
    """The number of elements that differ, or -1 if shapes, strides or offsets differ. Prints to standard error."""
    if (actual.sizes, actual.strides, actual.offset) != (expected.sizes, expected.strides, expected.offset):
        sys.stderr.write(_shape(actual) + _shape(expected))
        return -1
    have, want = actual.array(element), expected.array(element)
    if error is None:
        wrong = have != want
    else:
        with np.errstate(all="ignore"):
            close = np.abs(have - want) <= have.dtype.type(error) * np.abs(want)
        wrong = ~(close & np.isfinite(have) & np.isfinite(want))
    indices = np.argwhere(wrong)
    for index in indices[:_SHOWN_ERRORS]:
        at = actual.offset + int(np.dot(index, actual.strides))
        pair = (_texts(v[tuple(index)].reshape(1), element)[0] for v in (have, want))
        sys.stderr.write(f"{' != '.join(pair)} offset = {at}\n")
    return len(indices)


for _name, _element in _NAMES.items():
    LIBRARY.define(f"printMemref{_name}", f"memref<*x{_element}>")(
        partial(_print_memref, element=_element, title="Unranked Memref")
    )
    LIBRARY.define(f"printMemrefShape{_name}", f"memref<*x{_element}>")(_print_shape)
    for _rank in range(5):
        LIBRARY.define(f"printMemref{_rank}d{_name}", f"memref<{'?x' * _rank}{_element}>")(
            partial(_print_memref, element=_element, title="Memref")
        )

for _name, _error in _VERIFIED.items():
    _kind = f"memref<*x{_NAMES[_name]}>"
    LIBRARY.define(f"verifyMemRef{_name}", f"{_kind} {_kind}", "i64")(
        partial(_verify, element=_NAMES[_name], error=_error)
    )


def _printer(text: Callable[[float], str]) -> Callable[[LibraryState, float], None]:
    return lambda host, value: host.print(text(value))


def _half(element: str) -> Callable[[float], str]:
    def text(bits: float) -> str:
        return _texts(np.array([bits], np.int16).view(ELEMENTS[element]), element)[0]

    return text


LIBRARY.define("printI64", "i64")(_printer(str))

LIBRARY.define("printU64", "i64")(_printer(lambda v: str(int(v) % (1 << 64))))

LIBRARY.define("printF32", "f32")(_printer(number))

LIBRARY.define("printF64", "f64")(_printer(number))

LIBRARY.define("printF16", "i16")(_printer(_half("f16")))

LIBRARY.define("printBF16", "i16")(_printer(_half("bf16")))

for _name, _text in {"Open": "( ", "Close": " )", "Comma": ", ", "Newline": "\n"}.items():
    LIBRARY.define(f"print{_name}", "")(lambda host, text=_text: host.print(text))


@LIBRARY.define("printString", "!llvm.ptr")
@LIBRARY.define("printCString", "!llvm.ptr")
def _print_string(host: LibraryState, pointer: int) -> None:
    host.print(ctypes.string_at(pointer).decode("utf-8", "surrogateescape"))


@LIBRARY.define("printFlops", "f64")
def _print_flops(host: LibraryState, flops: float) -> None:
    sys.stderr.write(f"{flops / 1e9:f} GFLOPS\n")


@LIBRARY.define("rtclock", "", "f64")
def _clock(host: LibraryState) -> float:
    """Seconds since 1970."""
    return time.time()


@LIBRARY.define("nanoTime", "", "i64")
def _nanoseconds(host: LibraryState) -> int:
    return time.time_ns()


def memref_copy(size: int, source: int, to: int) -> None:
    """`memrefCopy`, which compiled code calls to copy non-contiguous elements of `size` bytes."""

    def elements(pointer: int) -> Array:
        view = HostMemRef.unranked(pointer)
        counted = HostMemRef(
            0, view.aligned, view.offset * size, (*view.sizes, size), (*(s * size for s in view.strides), 1)
        )
        return counted.array("ui8")

    np.copyto(elements(to), elements(source))


def descriptor_type(rank: int) -> type[ctypes.Structure]:
    """The structure of a ranked memref."""
    fields = [
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * rank),
        ("strides", ctypes.c_int64 * rank),
    ]
    return type(f"MemRef{rank}", (ctypes.Structure,), {"_fields_": fields})
