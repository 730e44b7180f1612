"""Numbers of every integer type are passed up to both ends of the type, and none beyond."""

import re
from typing import Any

import numpy as np
import pytest
from msgspec import structs

import xegpu_py
from xegpu_py.runtime.argument_conditions import Multiple, Product, Sum, Surface, evaluated
from xegpu_py.runtime.host_arrays import from_dlpack
from xegpu_py.runtime.parameters import SMALL, Parameter, beyond

TEXT = """
gpu.module @m {
  gpu.func @k(%m: memref<4xTYPE>, %v: TYPE) kernel {
    %i = arith.constant 1 : index
    memref.store %v, %m[%i] : memref<4xTYPE>
    gpu.return
  }
}
"""


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_numbers_at_both_ends_of_a_type(bits):
    kernel = xegpu_py.compile(TEXT.replace("TYPE", f"i{bits}"), engine="both")
    signed, unsigned = np.iinfo(f"int{bits}"), np.iinfo(f"uint{bits}")
    for value in (signed.min, signed.min + 1, -1, 0, signed.max - 1, signed.max):
        array = np.zeros(4, f"int{bits}")
        kernel(array, value)
        assert array.tolist() == [0, value, 0, 0]
    for value in (signed.min - 1, signed.max + 1, unsigned.max + 1):
        with pytest.raises(ValueError, match=re.escape(f"but got {value}")) as found:
            kernel(np.zeros(4, f"int{bits}"), value)
        assert f"from {signed.min} to {signed.max}" in str(found.value)


SMALL_TEXT = """
gpu.module @m {
  gpu.func @k(%a: memref<?x?xi16>, %n: index, %v: i64) kernel {
    gpu.return
  }
}
"""


def test_the_limits_of_a_small_kernel():
    """Each quantity at its limit and one beyond; without `large=False`, a call compiles the kernel again."""
    small, usual = (xegpu_py.compile(SMALL_TEXT, engine="interpreter", **options) for options in ({"large": False}, {}))
    most, index, grid = (SMALL[name] for name in ("bytes", "index", "grid"))
    tail = ", and kernel 'k' was compiled for less; large=True compiles it for more"

    def spanning(shape, strides):
        return np.lib.stride_tricks.as_strided(np.zeros(1, np.int16), shape, strides)

    array = np.zeros((2, 2), np.int16)
    for fits, beyond_it, message in (
        (
            (spanning((2, 1), (most - 2, 2)), 0, 1),
            (spanning((2, 1), (most, 2)), 0, 1),
            f"an array of more than {most} b",
        ),
        (
            (spanning((1, 2), (2, most - 2)), 0, 1),
            (spanning((1, 2), (2, most)), 0, 1),
            f"an array of more than {most} b",
        ),
        (
            (spanning((most // 2, 0), (2, 2)), 0, 1),
            (spanning((most // 2 + 1, 0), (2, 2)), 0, 1),
            "'%a' is an array of mo",
        ),
        (
            (spanning((0, most // 2), (2, 2)), 0, 1),
            (spanning((0, most // 2 + 1), (2, 2)), 0, 1),
            "'%a' is an array of mo",
        ),
        ((array, index, 1), (array, index + 1, 1), f"argument '%n' is an index of more than {index}"),
        ((array, -index, 1), (array, -index - 1, 1), f"argument '%n' is an index of more than {index}"),
        ((array, 0, (1, grid)), (array, 0, (1, grid + 1)), f"'grid' has more than {grid} workgroups in a dimension"),
    ):
        for (a, n, size), said in ((fits, None), (beyond_it, message)):
            found = beyond(small.executable.parameters, (a, n, 1 << 40), size, small.executable.limits)
            assert (said in found) if said else found is None, (a.shape, a.strides, n, size)
    for arguments, size in (((array, index + 1, 0), 1), ((array, 0, 0), (1, grid + 1))):
        with pytest.raises(ValueError, match=re.escape(tail)):
            small(*arguments, grid=size)
    usual(array, index + 1, 0)


ARRAY = np.zeros((6, 40), np.float32)
ARGUMENTS = (ARRAY, 24, np.int64(-3), 1 << 31, 2.5, 0)
N, NEGATIVE, LARGE, FLOAT, ZERO = (("argument", i) for i in range(1, 6))
ROWS, COLUMNS = ("extent", 0, 0), ("extent", 0, 1)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (None, None), (7, 7), (N, 24), (NEGATIVE, -3), (FLOAT, None), (ROWS, 6), (COLUMNS, 40),
        (("extent", 0, 2), None),
        (("extent", 1, 0), None), (("addi", N, ROWS), 30), (("muli", N, ("subi", COLUMNS, 4)), 24 * 36),
        (("divui", COLUMNS, 3), 13), (("ceildivui", COLUMNS, 3), 14), (("remui", COLUMNS, 3), 1), (("shli", 3, 4), 48),
        (("shli", 3, 63), 3 << 63), (("shli", 3, 64), 0), (("shrui", N, 2), 6), (("addi", N, NEGATIVE), 21),
        (("maxsi", NEGATIVE, 0), 0), (("divui", NEGATIVE, 3), None), (("shli", NEGATIVE, 1), None),
        (("addi", ZERO, N), 24), (("addi", FLOAT, N), None), (("addi", N, FLOAT), None),
    ],
)  # fmt: skip
def test_values_of_expressions_of_arguments(expression, value):
    """None if an argument is no integer, an extent is missing, or an operand of an op is negative."""
    assert evaluated(expression, ARGUMENTS) == value


def test_what_a_kernel_assumes_of_numbers():
    for number, of, holds in ((N, 8, True), (N, 24, True), (N, 16, False), (ZERO, 8, False), (NEGATIVE, 3, False),
                              (FLOAT, 1, False), (NEGATIVE, 1, False), (1, 1, True)):  # fmt: skip
        assert Multiple(0, number, of).holds(ARGUMENTS) == holds
    half = 1 << 30
    for terms, holds in (
        ([(1, (LARGE,))], False), ([(1, (LARGE,)), (-1, (1,))], True), ([(-1, (LARGE,))], True),
        ([(-1, (LARGE,)), (-1, (1,))], False), ([(2, (half,))], False), ([(1, (half,)), (half - 1, ())], True),
        ([(3, (N, ROWS)), (LARGE[1], (FLOAT,))], True), ([(1, (half, FLOAT)), (1, (LARGE, FLOAT))], True), ([], True),
        ([(half, (N,)), (-half, (N,))], True), ([(1, (half, NEGATIVE))], False),
    ):  # fmt: skip
        assert Sum(0, tuple(terms)).holds(ARGUMENTS) == holds, terms
    for columns, rows, unlike in ((24, 24, False), (24, 6, False), (6, 24, False), (24, 16, True), (16, 24, True),
                                  (0, 7, False), (7, 0, False), (FLOAT, 7, False), (7, FLOAT, False)):  # fmt: skip
        found = Product("a.py:3", columns, rows).unlike(ARGUMENTS)
        text = (
            f"a.py:3: the left matrix is loaded from rows of {columns} elements, but the right one from {rows} rows; "
        )
        assert found.startswith(text) if unlike else found is None, (columns, rows)


def test_surfaces_that_block_messages_take():
    """Numbers of elements; what is not computed from arguments is not asked for."""

    class Limits:
        def surface_problem(self, *given):
            asked.append(given)
            return None if None in given else "no"

    asked = []
    assert Surface(1, 4, COLUMNS, ROWS, ("addi", COLUMNS, 2)).misfits(ARGUMENTS, Limits())
    assert not Surface(0, 2, None, ROWS, N).misfits(ARGUMENTS, Limits())
    assert not Surface(0, 2, N, FLOAT, None).misfits(ARGUMENTS, Limits())
    assert asked == [(160, 6, 168, 24), (None, 6, 48, None), (48, None, None, None)]


def memref(shape, strides, offset=0, contiguous=False):
    return Parameter("memref", "f32", "memref", shape, strides, offset, contiguous, "A")


def test_arrays_whose_layout_a_kernel_does_not_know():
    """2D blocks of arrays are checked at a call if a type has an unknown extent of a matrix, or an unknown stride."""

    class Limits:
        def array_problem(self, array):
            return "no"

    matrix, cube, line = np.zeros((4, 6), np.float32), np.zeros((2, 4, 6), np.float32), np.zeros(6, np.float32)
    for parameter, argument, misfits in (
        (memref((4, 6), (6, 1)), matrix, False),
        (memref((None, 6), (6, 1)), matrix, True),
        (memref((4, None), (None, 1)), matrix, True),
        (memref((4, 6), (None, 1)), matrix, True),
        (memref((4, 6), (6, None)), matrix, True),
        (memref((None, 4, 6), (24, 6, 1)), cube, False),
        (memref((2, None, 6), (24, 6, 1)), cube, True),
        (memref((2, 4, None), (24, 6, 1)), cube, True),
        (memref((2, 4, 6), (None, 6, 1)), cube, True),
        (memref((None,), (None,)), line, False),
        (memref((None, 6), (6, 1)), 5, False),
        (Parameter("f32", "f32", shape=(None, 6)), matrix, False),
    ):
        assert parameter.misfits(argument, Limits()) == misfits, (parameter, misfits)
        assert not parameter.misfits(argument, None)
    for parameter, argument, strided in (
        (memref((4, 6), (6, None)), matrix, False),
        (memref((4, 6), (6, None)), matrix[:, ::2], True),
        (memref((4, 6), (6, None)), matrix[:, ::-1], True),
        (memref((4, 6), (None, 1)), matrix[:, ::2], False),
        (memref((), ()), matrix[:, ::2], False),
        (memref((4, 6), (6, None)), 5, False),
        (Parameter("f32", "f32", strides=(None,)), matrix[:, ::2], False),
    ):
        assert parameter.is_strided(argument) == strided, (parameter, strided)


def test_the_bytes_that_an_array_reaches():
    a = np.zeros((3, 5, 7), np.float32)
    for array, reach in (
        (a, 4 * 105), (a[:, :, ::2], 4 * (70 + 28 + 6 + 1)), (a[::-1], 4 * 105), (a[:1, :1, :1], 4 * 35),
        (a[:0], 4 * 35), (np.zeros((0, 9), np.float32), 36), (np.zeros((9, 0), np.float32), 36),
        (np.zeros(1, np.int8), 1), (np.broadcast_to(np.zeros(1, np.int16), (50,)), 100),
        (np.broadcast_to(np.zeros(1, np.int16), (2, 50)), 100),
    ):  # fmt: skip
        assert memref((None,) * array.ndim, (None,) * array.ndim).reach(array) == reach, array.shape
    assert memref((3,), (1,)).reach(5) == Parameter("f32", "f32").reach(a) == 0
    index = Parameter("index", "index")
    for value, greatest in ((5, 5), (-7, 7), (np.array([3, -9, 4]), 9), (1 << 70, 1 << 70), (2.5, 0),
                            (np.zeros(0, np.int64), 0)):  # fmt: skip
        assert index.greatest_index(value) == greatest
    assert Parameter("i64", "i64").greatest_index(5) == structs.replace(index, kind="memref").greatest_index(5) == 0


@pytest.mark.parametrize("offset", [0, None, 3])
def test_layouts_of_arrays_and_of_types(offset):
    """The strides of a type are an array's where both know them, but for one element, or for none at all."""
    a = np.zeros((4, 6), np.float32)
    for strides, array, fits in (
        ((6, 1), a, True), ((None, 1), a, True), ((None, None), a[:, ::2], True), ((6, 2), a[:, ::2], True),
        ((6, 1), a[:, ::2], False), ((5, 1), a, False), ((5, 1), a[:1], True), ((6, 9), a[:, :1], True),
        ((5, 9), a[:0], True), ((None, 1), a[::-1], True), ((-6, 1), a[::-1], True), ((6, 1), a[::-1], False),
    ):  # fmt: skip
        parameter = memref((None, None), strides, offset)
        if not fits or offset == 3:
            with pytest.raises(ValueError, match="cannot be an array of strides" if not fits else "begins 3 elements"):
                parameter.inputs(2, array, "X")
            continue
        found = parameter.inputs(2, array, "X")
        assert found.pop("in2") is array
        steps = [n // 4 for n in array.strides]
        assert found == {"in2_size0": len(array), "in2_size1": array.shape[1], "in2_stride0": steps[0],
                         "in2_stride1": steps[1], "in2_offset": 0}  # fmt: skip
    contiguous = memref((None, 6), (6, 1), 0, True)
    assert {n: v for n, v in contiguous.inputs(0, a, "X").items() if n != "in0"} == {"in0_size0": 4, "in0_size1": 6}
    with pytest.raises(ValueError, match="X must lie in memory in row-major order; numpy.ascontiguousarray"):
        contiguous.inputs(0, a.T.copy().T, "X")
    odd = np.ndarray((3,), np.float32, bytes(32), strides=(6,))
    with pytest.raises(ValueError, match=r"strides \(6,\) bytes, which are not multiples of 4"):
        memref((None,), (None,)).inputs(0, odd, "X")


OFF_ELEMENTS = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (4, 5), (22, 4))


@pytest.mark.parametrize(
    ("parameter", "array", "message"),
    [
        (Parameter("memref<4xi128>", "i128", "memref", (4,)), np.zeros(4, np.int32),
         "x has elements of i128, which no array has"),
        (Parameter("", "f32", "memref", (4, 5), (None, 1), 0, False), OFF_ELEMENTS,
         "x cannot be an array of strides (22, 4) bytes, which are not multiples of 4, the size of its elements"),
        (Parameter("", "f32", "memref", (4, 5), (8, 1), 0, False), np.zeros((4, 5), np.float32),
         "x cannot be an array of strides (5, 1) elements"),
        (Parameter("", "f32", "memref", (4, 5), (5, 1), 3, False), np.zeros((4, 5), np.float32),
         "x begins 3 elements into its buffer, which no array does; let it be dynamic"),
        (Parameter("", "f32", "memref", (4, 5)), np.zeros((4, 5, 1), np.float32), "array of shape (4, 5, 1)"),
        (Parameter("", "f32", "memref", (4, 5)), np.zeros((5, 4), np.float32), "array of shape (5, 4)"),
        (Parameter("", "f32"), np.zeros(1), "x must be a number, but got an array"),
        (Parameter("", "f32"), "1", "x must be a number, but got str"),
        (Parameter("", "f32", "memref", (1,)), 1.0, "x must be a numpy array, but got float"),
    ],
)  # fmt: skip
def test_arguments_that_no_parameter_takes(parameter: Parameter, array: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        parameter.inputs(0, array, "x")


@pytest.mark.parametrize(
    ("parameter", "array", "strides"),
    [
        (Parameter("", "f32", "memref", (4, 5), (8, 1), 0, False), np.zeros((4, 8), np.float32)[:, :5], [8, 1]),
        (Parameter("", "f32", "memref", (1, 5), (8, 1), 0, False), np.zeros((1, 5), np.float32), [5, 1]),
        (Parameter("", "f32", "memref", (None, 5), (8, 1), None, False), np.zeros((0, 5), np.float32), None),
        (Parameter("", "f32", "memref", (4, 5), (None, None), None, False), np.zeros((5, 4), np.float32).T, [1, 4]),
        (Parameter("", "f32", "memref", ()), np.zeros((), np.float32), []),
    ],
)
def test_arguments_that_parameters_take(parameter: Parameter, array: Any, strides: list[int] | None) -> None:
    found = parameter.inputs(2, array, "x")
    assert found["in2"].ctypes.data == array.ctypes.data and found["in2"].ndim == max(array.ndim, 1)
    assert [found[f"in2_size{d}"] for d in range(array.ndim)] == [*array.shape]
    if strides:
        assert [found[f"in2_stride{d}"] for d in range(array.ndim)] == strides and found["in2_offset"] == 0


def test_arrays_of_other_libraries_that_numpy_has_no_type_for() -> None:
    with pytest.raises(TypeError, match="DLPack's elements of code 5, 64 bits and 1 lanes have no type"):
        from_dlpack(np.zeros(2, np.complex64))
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    for given in (array, array.T, array[:, ::2], array[:0], np.zeros((), np.float32)):
        found = from_dlpack(given)
        assert (found == given).all() and found.dtype == given.dtype and found.shape == given.shape
        assert not given.size or np.shares_memory(found, given)
