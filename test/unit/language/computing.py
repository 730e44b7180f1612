"""What functions of the tile language give, for tests that compare it with numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import build
from xegpu_py.target import DEFAULT
from xegpu_py.tiles import element_types
from xegpu_py.tiles.arrays import Array
from xegpu_py.tiles.value_base import BUILDING

SUBGROUPS = 4


def map_of(shape: Sequence[int]) -> Any:
    """A map of a matrix for a workgroup of four subgroups."""
    rows = math.gcd(shape[0], SUBGROUPS)
    columns = SUBGROUPS // rows
    return xl.WgMap((rows, columns), (shape[0] // rows, shape[1] // math.gcd(columns, shape[1])))


def matrix(shape: Sequence[int]) -> tuple[int, int]:
    """The matrix in which arrays of any shape are passed."""
    columns = shape[-1] if len(shape) else 1
    return math.prod(shape) // columns, columns


def computed(
    function: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    workgroup: bool = False,
    engine: str = "both",
    **options: Any,
) -> list[np.ndarray]:
    """What a function of values gives in a kernel.

    Args:
        function: gets a value for each array, and gives a value, or a tuple of them.
        arrays: its arguments, of any number of dimensions.
        expected: arrays of the types and shapes that its results must have.
        workgroup: whether the kernel has maps, of four subgroups.
        engine: which engine runs it.
        options: of `xegpu_py.compile`.
    """
    given = [np.ascontiguousarray(a).reshape(matrix(a.shape)) for a in arrays]
    made = [np.zeros(matrix(e.shape), np.uint8 if e.dtype == bool else e.dtype) for e in expected]

    def kernel(*arguments: Any) -> None:
        values = []
        for array, argument in zip(arrays, arguments):
            shape = matrix(array.shape)
            tile = argument.tile(shape, at=(0, 0), map=map_of(shape) if workgroup else None)
            values.append(tile.load().reshape(array.shape))
        found = function(*values)
        results = found if isinstance(found, tuple) else (found,)
        assert len(results) == len(expected)
        for result, like, argument in zip(results, expected, arguments[len(arrays) :]):
            held = xl.to_tensor(result)
            assert held.shape == like.shape, f"{held.shape} instead of {like.shape}"
            index_as_int64 = xl.int64 if held.dtype == xl.index else held.dtype
            assert index_as_int64 == element_types.dtype_of(like.dtype), f"{held.dtype} instead of {like.dtype}"
            stored = held.to(xl.uint8 if like.dtype == bool else index_as_int64)
            argument.tile(matrix(like.shape), at=(0, 0)).store(stored.reshape(matrix(like.shape)))

    built(kernel, [*given, *made], engine, **options)(*given, *made)
    return [m.reshape(e.shape).astype(e.dtype) for m, e in zip(made, expected)]


def built(kernel: Callable[..., None], arrays: Sequence[np.ndarray], engine: str = "both", **options: Any) -> Any:
    """A kernel of these arrays whose body is what a Python function builds as it is called."""
    types = [element_types.dtype_of(a.dtype) for a in arrays]
    kinds = [f"memref<{'x'.join(map(str, (*a.shape, t.mlir)))}>" for a, t in zip(arrays, types)]
    with build.module() as module, build.gpu_module("kernels"), build.kernel("kernel", *kinds) as values:
        BUILDING.enter(target=options.get("target", DEFAULT))
        try:
            kernel(*(Array(v, t) for v, t in zip(values, types)))
        finally:
            BUILDING.leave()
    return xegpu_py.compile(module, "kernel", engine=engine, registers=256, **options)


def check(
    function: Callable[..., Any],
    arrays: Sequence[np.ndarray],
    expected: Any,
    workgroup: bool = False,
    engine: str = "both",
    **options: Any,
) -> None:
    """Compare all bytes of what a function of values gives with numpy's arrays; NaN are equal."""
    wanted = [np.asarray(e) for e in (expected if isinstance(expected, tuple) else (expected,))]
    for found, want in zip(computed(function, arrays, wanted, workgroup, engine, **options), wanted, strict=True):
        if want.dtype.kind == "f" or want.dtype.name.startswith(("bfloat", "float8")):
            nan = np.isnan(want.astype(np.float64))
            np.testing.assert_array_equal(np.isnan(found.astype(np.float64)), nan)
            found, want = np.where(nan, np.zeros_like(found), found), np.where(nan, np.zeros_like(want), want)
        assert found.tobytes() == want.tobytes(), f"{found}\ninstead of\n{want}"
