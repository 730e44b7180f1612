"""The functions of MLIR's `mlir_runner_utils` and `mlir_c_runner_utils`, with the same output.

Numbers are printed as C++ streams and C's `%g` print them: with six significant digits.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from xegpu_py.numerics.formats import Array
from xegpu_py.programs.functions import Host, Library
from xegpu_py.programs.memrefs import ELEMENTS, MemRef

LIBRARY = Library()

_NAMES = {"I8": "i8", "I16": "i16", "I32": "i32", "I64": "i64", "F16": "f16", "BF16": "bf16", "F32": "f32",
          "F64": "f64", "Ind": "index"}  # fmt: skip
"""MLIR's element types by their names in the names of functions."""

_VERIFIED = {"I32": None, "I64": None, "Ind": None, "F32": 1e-6, "F64": 1e-12}
"""The greatest relative error that `verifyMemRef` allows; None for integers, which must be equal."""

_SHOWN_ERRORS = 10
"""The largest number of wrong elements that `verifyMemRef` prints."""


def number(value: float) -> str:
    """A number in the format of `%g`; infinities and NaNs in glibc's spelling."""
    if value != value:
        return "-nan" if np.signbit(value) else "nan"
    return f"{value:g}"


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


def _shape(memref: MemRef) -> str:
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


def _print_memref(host: Host, memref: MemRef, *, element: str, title: str) -> None:
    values = memref.array(element)
    data = _nested(values, element) if values.ndim else f"[{_texts(values.reshape(1), element)[0]}]"
    host.print(f"{title} {_shape(memref)} data = \n{data}\n")


def _print_shape(host: Host, memref: MemRef) -> None:
    host.print(f"Unranked Memref {_shape(memref)}\n")


def _verify(host: Host, actual: MemRef, expected: MemRef, *, element: str, error: float | None) -> int:
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
    places = np.argwhere(wrong)
    for place in places[:_SHOWN_ERRORS]:
        at = actual.offset + int(np.dot(place, actual.strides))
        pair = (_texts(v[tuple(place)].reshape(1), element)[0] for v in (have, want))
        sys.stderr.write(f"{' != '.join(pair)} offset = {at}\n")
    return len(places)


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


def _printer(text: Callable[[float], str]) -> Callable[[Host, float], None]:
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
def _print_string(host: Host, pointer: int) -> None:
    host.print(ctypes.string_at(pointer).decode("utf-8", "surrogateescape"))


@LIBRARY.define("printFlops", "f64")
def _print_flops(host: Host, flops: float) -> None:
    sys.stderr.write(f"{flops / 1e9:f} GFLOPS\n")


@LIBRARY.define("rtclock", "", "f64")
def _clock(host: Host) -> float:
    """Seconds since 1970."""
    return time.time()


@LIBRARY.define("nanoTime", "", "i64")
def _nanoseconds(host: Host) -> int:
    return time.time_ns()


def memref_copy(size: int, source: int, to: int) -> None:
    """`memrefCopy`, which compiled code calls to copy non-contiguous elements of `size` bytes."""

    def elements(pointer: int) -> Array:
        found = MemRef.unranked(pointer)
        counted = MemRef(
            0, found.aligned, found.offset * size, (*found.sizes, size), (*(s * size for s in found.strides), 1)
        )
        return counted.array("ui8")

    np.copyto(elements(to), elements(source))
