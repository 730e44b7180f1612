"""The functions of IMEX's `imex_runner_utils`: fill arrays, compare them, and compute matrix products on the host."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from xegpu_py.numerics.formats import Array
from xegpu_py.programs.functions import Host, Library
from xegpu_py.programs.memrefs import ELEMENTS, MemRef
from xegpu_py.programs.runner_utils import number

LIBRARY = Library()

_NAMES = {"F16": "f16", "BF16": "bf16", "F32": "f32"}
ABSOLUTE, RELATIVE = float(np.float32(1e-4)), float(np.float32(1e-3))
"""The tolerances of `allclose`."""


def _fill(host: Host, memref: MemRef, value: float, *, element: str) -> None:
    memref.array(element)[...] = np.float32(value)


def _fill_random(host: Host, memref: MemRef, lower: float, upper: float, whole: bool, *, element: str) -> None:
    """Uniform random numbers, truncated to integers on request."""
    array = memref.array(element)
    found = host.random.uniform(lower, upper, array.shape)
    array[...] = (np.trunc(found) if whole else found).astype(np.float32)


def _is_close(host: Host, actual: MemRef, expected: MemRef, *, element: str) -> bool:
    """Whether all elements are within the tolerance; NaNs always are."""
    have = actual.array(element).astype(np.float32).ravel()
    want = expected.array("f32").ravel()
    count = min(len(have), len(want))
    have, want = have[:count], want[:count]
    with np.errstate(all="ignore"):
        # Differences are rounded to f32, and the tolerance is not.
        far = np.abs(have - want) > ABSOLUTE + RELATIVE * np.abs(want.astype(np.float64))
    return not bool(far.any())


def _print_close(host: Host, actual: MemRef, expected: MemRef, *, element: str) -> None:
    found = _is_close(host, actual, expected, element=element)
    host.print(f"[ALLCLOSE: {'TRUE' if found else 'FALSE'}]\n")


def _print_error(host: Host, first: MemRef, second: MemRef, *, element: str) -> None:
    a, b = (m.array(element).astype(np.float64).ravel() for m in (first, second))
    count = min(len(a), len(b))
    a, b = a[:count], b[:count]
    with np.errstate(all="ignore"):
        absolute = np.abs(a - b)
        relative = absolute / np.fmax(np.abs(a), np.abs(b))
    for name, errors in (("absolute", absolute), ("relative", relative)):
        # The first element with the greatest error, if any element has one. A NaN is not an error.
        known = np.where(errors > 0, errors, 0)
        at = int(np.argmax(known)) if count and known.any() else None
        shown = (0, np.inf, np.inf) if at is None else (known[at], a[at], b[at])
        error, i, j = (number(float(v)) for v in shown)
        host.print(f"Max {name} error {error} at idx={at or 0} (i={i}, j={j})\n")


def _gemm(host: Host, a: MemRef, b: MemRef, c: MemRef, *, element: str, rounded: str) -> None:
    """C + A x B in f32: each product and sum is rounded, in the order of k. C is rounded once to its type."""
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
    found = result.copy()
    multiply(left, right, found)
    result[...] = found.astype(ELEMENTS[rounded])


_MULTIPLY = """
func.func @multiply(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %tile = arith.constant 256 : index
  %rows = memref.dim %c, %c0 : memref<?x?xf32>
  %columns = memref.dim %c, %c1 : memref<?x?xf32>
  %depth = memref.dim %a, %c1 : memref<?x?xf32>
  scf.for %j0 = %c0 to %columns step %tile {
    %j_end = affine.min affine_map<(d0)[s0] -> (d0 + 256, s0)>(%j0)[%columns]
    scf.for %k0 = %c0 to %depth step %tile {
      %k_end = affine.min affine_map<(d0)[s0] -> (d0 + 256, s0)>(%k0)[%depth]
      scf.for %i = %c0 to %rows step %c1 {
        scf.for %k = %k0 to %k_end step %c1 {
          %x = memref.load %a[%i, %k] : memref<?x?xf32>
          scf.for %j = %j0 to %j_end step %c1 {
            %y = memref.load %b[%k, %j] : memref<?x?xf32>
            %z = memref.load %c[%i, %j] : memref<?x?xf32>
            %xy = arith.mulf %x, %y : f32
            %sum = arith.addf %z, %xy : f32
            memref.store %sum, %c[%i, %j] : memref<?x?xf32>
          }
        }
      }
    }
  }
  return
}
"""
"""A product in tiles that fit caches. Each element's terms are added in the order of k."""


@cache
def _multiplier() -> Any:
    from mlir import ir, passmanager
    from mlir.execution_engine import ExecutionEngine

    steps = "convert-scf-to-cf,expand-strided-metadata,lower-affine,finalize-memref-to-llvm,convert-to-llvm"
    with ir.Context():
        module = ir.Module.parse(_MULTIPLY)
        passmanager.PassManager.parse(f"builtin.module({steps},reconcile-unrealized-casts)").run(module.operation)
        return ExecutionEngine(module, opt_level=3)


def multiply(a: Array, b: Array, c: Array) -> None:
    """Add the product of two matrices to a third, all f32 and contiguous."""
    import ctypes

    given = [MemRef.of(m).descriptor() for m in (a, b, c)]
    _multiplier().invoke("multiply", *(ctypes.pointer(ctypes.pointer(d)) for d in given))


for _name, _element in _NAMES.items():
    _kind = f"memref<*x{_element}>"
    LIBRARY.define(f"fillResource1D{_name}", f"{_kind} f32")(partial(_fill, element=_element))
    LIBRARY.define(f"fillResource1DRandom{_name}", f"{_kind} f32 f32 i1")(partial(_fill_random, element=_element))
    LIBRARY.define(f"allclose{_name}", f"{_kind} memref<*xf32>", "i1")(partial(_is_close, element=_element))
    LIBRARY.define(f"printAllclose{_name}", f"{_kind} memref<*xf32>")(partial(_print_close, element=_element))
    LIBRARY.define(f"printMaxError{_name}", f"{_kind} {_kind}")(partial(_print_error, element=_element))


@LIBRARY.define("printAllcloseI32", "memref<*xi32> memref<*xi32>")
def _print_equal(host: Host, actual: MemRef, expected: MemRef) -> None:
    """Integers must be equal."""
    found = np.array_equal(actual.array("i32").ravel(), expected.array("i32").ravel())
    host.print(f"[ALLCLOSE: {'TRUE' if found else 'FALSE'}]\n")


for _name, _element, _rounded in (
    ("F16F16F32", "f16", "f32"),
    ("F16F16F16", "f16", "f16"),
    ("BF16BF16F32", "bf16", "f32"),
):
    _kind = f"memref<*x{_element}>"
    LIBRARY.define(f"gemm{_name}", f"{_kind} {_kind} memref<*xf32>")(partial(_gemm, element=_element, rounded=_rounded))
