"""The functions of libraries that host code calls, on arrays of this process."""

import ctypes
import math
import os
import re
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from mlir import ir

from xegpu_py.extensions.programs import device, host_libraries
from xegpu_py.extensions.programs.__main__ import _given, _results, _taken
from xegpu_py.extensions.programs.host_libraries import LIBRARY, HostMemRef, LibraryState, memref_copy
from xegpu_py.ir.context import Context
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position
from xegpu_py.runtime.parameters import Parameter

BF16 = ml_dtypes.bfloat16


def called(name, *arguments, seed=0):
    """The result of a function, and what it prints."""
    reading, writing = os.pipe()
    with open(reading) as pipe:
        passed = [HostMemRef.of(a) if isinstance(a, np.ndarray) else a for a in arguments]
        result = LIBRARY[name].body(LibraryState(writing, np.random.default_rng(seed)), *passed)
        os.close(writing)
        return result, pipe.read()


def f32(*values):
    return np.array(values, np.float32)


TINY, BEYOND = np.float32(1e-4), np.nextafter(np.float32(1e-4), np.float32(1))


@pytest.mark.parametrize(
    ("actual", "expected", "close"),
    [
        (f32(1, 2), f32(1, 2), True),
        (f32(TINY), f32(0), True),
        (f32(-TINY), f32(0), True),
        (f32(BEYOND), f32(0), False),
        (f32(-BEYOND), f32(0), False),
        (f32(1, 2, 3), f32(1, 2, 4), False),
        (f32(100.1), f32(100), True),
        (f32(100.11), f32(100), False),
        (f32(-100.1), f32(-100), True),
        (f32(np.nan, 1), f32(1, np.nan), True),
        (f32(np.inf), f32(1), False),
        (f32(1, 2, 9), f32(1, 2), True),
        (f32(1, 2), f32(1, 2, 9), True),
        (f32(9, 2), f32(1), False),
        (f32(), f32(1), True),
    ],
)
def test_which_arrays_are_close(actual, expected, close):
    assert called("allcloseF32", actual, expected) == (close, "")
    printed = f"[ALLCLOSE: {'TRUE' if close else 'FALSE'}]\n"
    assert called("printAllcloseF32", actual, expected) == (None, printed)


def test_integers_are_equal_or_not():
    for actual, expected, equal in (([1, 2], [1, 2], "TRUE"), ([1, 2], [1, 3], "FALSE"), ([1], [1, 2], "FALSE")):
        arrays = (np.array(values, np.int32) for values in (actual, expected))
        assert called("printAllcloseI32", *arrays)[1] == f"[ALLCLOSE: {equal}]\n"


@pytest.mark.parametrize(
    ("a", "b", "absolute", "relative"),
    [
        ([1, 2, 3], [1, 2, 3], "0 at idx=0 (i=inf, j=inf)", "0 at idx=0 (i=inf, j=inf)"),
        ([1, 4, 90], [1, 2, 100], "10 at idx=2 (i=90, j=100)", "0.5 at idx=1 (i=4, j=2)"),
        ([1, -4, 5], [1, 4, 6], "8 at idx=1 (i=-4, j=4)", "2 at idx=1 (i=-4, j=4)"),
        ([2, 3, 2], [1, 2, 1], "1 at idx=0 (i=2, j=1)", "0.5 at idx=0 (i=2, j=1)"),
        ([math.nan, 1], [1, 3], "2 at idx=1 (i=1, j=3)", "0.666667 at idx=1 (i=1, j=3)"),
        ([1, 2, 9], [1, 4], "2 at idx=1 (i=2, j=4)", "0.5 at idx=1 (i=2, j=4)"),
        ([], [1], "0 at idx=0 (i=inf, j=inf)", "0 at idx=0 (i=inf, j=inf)"),
    ],
)
def test_the_greatest_errors(a, b, absolute, relative):
    for name, dtype in (("F32", np.float32), ("F16", np.float16), ("BF16", BF16)):
        _, printed = called(f"printMaxError{name}", np.array(a, dtype), np.array(b, dtype))
        assert printed == f"Max absolute error {absolute}\nMax relative error {relative}\n"


@pytest.mark.parametrize("rounded", ["F32", "F16"])
def test_products(rounded):
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((5, 9), (9, 7)))
    c = rng.standard_normal((5, 7)).astype(np.float32)
    expected = c.copy()
    for k in range(9):
        expected += a[:, k : k + 1].astype(np.float32) * b[k].astype(np.float32)
    assert called(f"gemmF16F16{rounded}", a, b, c) == (None, "")
    np.testing.assert_array_equal(c, expected.astype(np.float16) if rounded == "F16" else expected)


@pytest.mark.parametrize(
    ("a", "b", "c", "message"),
    [
        ((2,), (2, 3), (2, 3), "Expecting 2D memrefs, got A rank: 1, B rank: 2, C rank: 2"),
        ((2, 4), (4, 3), (2, 3, 1), "Expecting 2D memrefs, got A rank: 2, B rank: 2, C rank: 3"),
        ((2, 4), (5, 3), (2, 3), "Incompatible matrix dimensions: A: [2, 4], B: [5, 3], C: [2, 3]"),
        ((2, 4), (4, 3), (3, 3), "Incompatible matrix dimensions: A: [2, 4], B: [4, 3], C: [3, 3]"),
        ((2, 4), (4, 3), (2, 2), "Incompatible matrix dimensions: A: [2, 4], B: [4, 3], C: [2, 2]"),
    ],
)
def test_products_of_other_shapes(a, b, c, message):
    kinds = (BF16, BF16, np.float32)
    arrays = [np.ones(shape, dtype) for shape, dtype in zip((a, b, c), kinds)]
    assert called("gemmBF16BF16F32", *arrays)[1] == message + "\n"
    assert all((array == 1).all() for array in arrays)


@pytest.mark.parametrize("transposed", range(3))
def test_products_of_other_strides(transposed):
    arrays = [np.ones((4, 4), dtype) for dtype in (np.float16, np.float16, np.float32)]
    arrays[transposed] = arrays[transposed].T
    assert called("gemmF16F16F32", *arrays)[1].startswith("Expecting A strides to be [M, 1], B strides to be [K, 1]")
    assert (arrays[2] == 1).all()


def test_arrays_are_filled():
    for name, dtype in (("F16", np.float16), ("BF16", BF16), ("F32", np.float32)):
        array = np.zeros((40, 50), dtype)
        called(f"fillResource1D{name}", array[:, ::2], 1 / 3)
        assert (array[:, ::2] == np.float32(1 / 3).astype(dtype)).all() and not array[:, 1::2].any()
        called(f"fillResource1DRandom{name}", array, -3.0, 5.0, False)
        numbers = array.astype(np.float64)
        assert -3 <= numbers.min() < -2.5 and 4.5 < numbers.max() <= 5 and (numbers % 1).any()
        called(f"fillResource1DRandom{name}", array, -3.0, 5.0, True)
        assert sorted({*array.astype(np.float64).ravel().tolist()}) == [-2, -1, 0, 1, 2, 3, 4]
    first, same, other = (np.zeros(8, np.float32) for _ in range(3))
    for array, seed in ((first, 1), (same, 1), (other, 2)):
        called("fillResource1DRandomF32", array, 0.0, 1.0, False, seed=seed)
    assert (first == same).all() and (first != other).any()


@pytest.mark.parametrize(
    ("name", "actual", "expected", "wrong"),
    [
        ("I32", [1, -2, 3], [1, 2, 4], ["-2 != 2 offset = 1", "3 != 4 offset = 2"]),
        ("I64", [[1, 2], [1 << 40, 4]], [[1, 2], [3, 4]], [f"{1 << 40} != 3 offset = 2"]),
        ("Ind", [-1], [0], [f"{(1 << 64) - 1} != 0 offset = 0"]),
        ("F32", [1.0, 1 + 2e-6], [1 + 5e-7, 1.0], ["1 != 1 offset = 1"]),
        ("F32", [np.nan, np.inf, 0.0], [np.nan, np.inf, -0.0], ["nan != nan offset = 0", "inf != inf offset = 1"]),
        ("F64", [1e300, -1.5], [1e300, 1.5], ["-1.5 != 1.5 offset = 1"]),
        ("I32", [*range(12)], [*range(1, 13)], [f"{n} != {n + 1} offset = {n}" for n in range(10)]),
    ],
)
def test_verified_arrays(name, actual, expected, wrong, capsys):
    dtype = {"I32": np.int32, "I64": np.int64, "Ind": np.int64, "F32": np.float32, "F64": np.float64}[name]
    a, b = np.array(actual, dtype), np.array(expected, dtype)
    assert called(f"verifyMemRef{name}", a, b)[0] == (12 if len(a) == 12 else len(wrong))
    assert capsys.readouterr().err.splitlines() == wrong
    assert called(f"verifyMemRef{name}", np.ones_like(a), np.ones_like(a)) == (0, "")


def test_arrays_of_other_places_are_not_compared(capsys):
    whole = np.arange(16, dtype=np.int32)
    at = whole.ctypes.data
    first = HostMemRef(at, at, 0, (2, 4), (4, 1))
    for place in ((0, (2, 3), (4, 1)), (0, (2, 4), (5, 1)), (1, (2, 4), (4, 1))):
        other = HostMemRef(at, at, *place)
        assert LIBRARY["verifyMemRefI32"].body(LibraryState(1), first, other) == -1
        shown = capsys.readouterr().err
        assert shown.startswith(f"base@ = {at:#x} rank = 2 offset = 0 sizes = [2, 4] strides = [4, 1]base@ = {at:#x} ")
    moved = HostMemRef(at, at, 3, (2, 2), (4, 2))
    copy = whole.copy()
    copy[9] = -1
    same = HostMemRef(copy.ctypes.data, copy.ctypes.data, 3, (2, 2), (4, 2))
    assert LIBRARY["verifyMemRefI32"].body(LibraryState(1), moved, same) == 1
    assert capsys.readouterr().err == "9 != -1 offset = 9\n"


@pytest.mark.parametrize(
    ("name", "value", "printed"),
    [("I64", -5, "-5"), ("U64", -1, str((1 << 64) - 1)), ("U64", 5, "5"), ("F32", 0.1, "0.1"), ("F64", 1e22, "1e+22"),
     ("F16", 0x3E00, "1.5"), ("BF16", 0x3FC0, "1.5"), ("F16", -0x8000, "-0"), ("F64", -math.nan, "-nan"),
     ("F64", math.nan, "nan"), ("F32", -math.inf, "-inf")],
)  # fmt: skip
def test_numbers_that_are_printed(name, value, printed):
    assert called(f"print{name}", value) == (None, printed)


def test_punctuation():
    assert "".join(called(f"print{n}")[1] for n in ("Open", "Comma", "Close", "Newline")) == "( ,  )\n"
    text = ctypes.create_string_buffer("a \u00e4\udcff".encode("utf-8", "surrogateescape"))
    reading, writing = os.pipe()
    LIBRARY["printString"].body(LibraryState(writing), ctypes.addressof(text))
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read() == b"a \xc3\xa4\xff"


def test_copies_of_elements():
    """Between memrefs of any strides; elements have any size."""
    source, to = np.arange(48, dtype=np.float64).reshape(6, 8), np.zeros((8, 6))
    pointers = []
    for array in (source[::2, 1::3], to.T[::2, 2:5]):
        inner = HostMemRef.of(array).descriptor()
        pointers.append(((ctypes.c_int64 * 2)(array.ndim, ctypes.addressof(inner)), inner))
    memref_copy(8, *(ctypes.addressof(unranked) for unranked, _ in pointers))
    expected = np.zeros((8, 6))
    expected.T[::2, 2:5] = source[::2, 1::3]
    np.testing.assert_array_equal(to, expected)


def test_descriptors_of_no_memory():
    """An empty memref may have null pointers."""
    descriptor = host_libraries.descriptor_type(1)()
    assert HostMemRef.ranked(ctypes.addressof(descriptor), 1) == HostMemRef(0, 0, 0, (0,), (0,))


def test_functions_as_compiled_code_calls_them():
    seen = []
    for name, takes, gives, signature in (
        ("one", "memref<*xf32> i64", "i64", "(memref<*xf32>, i64) -> i64"),
        ("two", "memref<?x?xf32> f32", None, "(memref<?x?xf32>, f32) -> ()"),
        ("three", "", None, "() -> ()"),
    ):
        library = host_libraries.Library()
        library.define(name, takes, gives)(lambda *arguments: seen.append(arguments) or 7)
        function = library[name]
        assert (function.signature, function.has_memrefs) == (signature, "memref" in takes)
        array = np.ones((2, 3), np.float32)
        inner = HostMemRef.of(array).descriptor()
        unranked = (ctypes.c_int64 * 2)(2, ctypes.addressof(inner))
        words = {"one": (ctypes.addressof(unranked), 5), "two": (ctypes.addressof(inner), 0.5), "three": ()}[name]
        result = function.callback(LibraryState(1), lambda action: action())(*words)
        assert result == (7 if gives else None)
        host, *arguments = seen.pop()
        assert isinstance(host, LibraryState) and len(arguments) == len(words)
        if arguments:
            assert arguments[0] == HostMemRef.of(array) and arguments[1] == words[1]


class Freed:
    """A device, what it says, and what it frees."""

    def __init__(self, monkeypatch, kept):
        self.said, self.freed = [], []
        monkeypatch.setattr(device, "KEPT", kept)
        monkeypatch.setattr(device, "_free", self.freed.append)
        self.device = device.Device({}, None, self.said.append, print)
        self.site = SimpleNamespace(where=Position("a.mlir", 3, 5), element="f32", message="x > 0")


def test_freed_memory_is_kept_for_a_while(monkeypatch):
    found = Freed(monkeypatch, 100)
    arrays = [np.ones(n, np.float32) for n in (10, 15, 5, 30)]
    memrefs = [HostMemRef.of(array) for array in arrays]
    for memref in memrefs:
        found.device.allocate(found.site, memref)
    assert not any(array.any() for array in arrays)
    addresses = [array.ctypes.data for array in arrays]
    # 40, 100, then 120 bytes wait: the first one is freed.
    for memref, freed in zip(memrefs, ([], [], addresses[:1], addresses)):
        found.device.deallocate(found.site, memref)
        assert found.freed == freed
    assert found.said == []


def test_memory_that_is_freed_twice_or_was_not_allocated(monkeypatch):
    found = Freed(monkeypatch, 100)
    array = np.ones(4, np.float32)
    memref = HostMemRef.of(array)
    found.device.deallocate(found.site, memref)
    [warning] = found.said
    assert warning == Diagnostic("warning", "'gpu.dealloc' op frees memory that gpu.alloc has not allocated; it stays "
                                 "allocated", found.site.where)  # fmt: skip
    found.device.allocate(found.site, memref)
    found.device.deallocate(found.site, memref)
    with pytest.raises(DiagnosticError, match="3:5: error: 'gpu.dealloc' op frees memory that is not alloc") as refused:
        found.device.deallocate(found.site, memref)
    assert "it has been freed before" in str(refused.value) and found.freed == [] and len(found.said) == 1


def test_copies_fills_and_assertions_of_a_device(monkeypatch):
    found = Freed(monkeypatch, 100)
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((3, 2), np.float32)
    found.device.copy(found.site, HostMemRef.of(b.T), HostMemRef.of(a))
    np.testing.assert_array_equal(b, a.T)
    found.device.fill(found.site, HostMemRef.of(b[:2]), HostMemRef.of(f32(7)))
    assert b.ravel().tolist() == [7, 7, 7, 7, 2, 5]
    message = "'gpu.memcpy' op copies an array of sizes (2, 3) to one of (3, 2)"
    with pytest.raises(DiagnosticError, match=re.escape(message)):
        found.device.copy(found.site, HostMemRef.of(b), HostMemRef.of(a))
    with pytest.raises(DiagnosticError, match="a.mlir:3:5: error: assertion failed: x > 0"):
        found.device.refute(found.site)


@pytest.mark.parametrize("count", [99, 100])
def test_programs_that_measure_time_get_a_note(monkeypatch, count):
    found = Freed(monkeypatch, 100)
    found.device.launches["m", "often"], found.device.launches["m", "seldom"] = count, 99
    found.device.close()
    said = "".join(found.said)
    assert ("note: kernel 'often' was launched 100 times; times that the program measures are" in said) == (count > 99)
    assert "seldom" not in said and bool(said) == (count > 99)


@pytest.mark.parametrize(
    ("kind", "value", "refusal"),
    [
        ("i8", 127, ""), ("i8", -128, ""), ("i8", 128, "must be a number"), ("i8", -129, "must be a number"),
        ("i1", True, ""), ("i32", np.int64(5), ""), ("i32", True, ""), ("i32", 1.0, "must be a number"),
        ("index", -(1 << 63), ""), ("index", (1 << 63) - 1, ""), ("index", 1 << 63, "must be a number"),
        ("i32", [1], "must be a number"), ("f32", 0.1, ""), ("f32", 3, ""), ("f32", "x", "must be a number"),
        ("bf16", 1.5, ""), ("f64", None, "must be a number"), ("f64", 10**20, ""), ("f32", ml_dtypes.bfloat16(0.5), ""),
        ("f64", 10**400, "must be a number"), ("bf16", 1j, "must be a number"), ("f64", [1.0], "must be a number"),
        ("complex<f32>", 1.0, "cannot be passed; memrefs and numbers can"),
    ],
)  # fmt: skip
def test_numbers_that_host_functions_take(kind, value, refusal):
    with Context():
        kind = ir.Type.parse(kind)
        if refusal:
            with pytest.raises(TypeError, match=refusal):
                _given(kind, value, "x")
        else:
            dtype = host_libraries.ELEMENTS[str(kind)]
            assert bytes(_given(kind, value, "x")) == np.array([value], dtype).tobytes()


MATRIX, WIDE = np.arange(16, dtype=np.float32).reshape(4, 4), np.arange(32, dtype=np.float32).reshape(4, 8)
LINE = np.lib.stride_tricks.as_strided(WIDE, (1, 4), (36, 4))


@pytest.mark.parametrize(
    ("kind", "array", "refusal"),
    [
        ("memref<4x4xf32>", MATRIX, ""), ("memref<?x4xf32>", MATRIX[:2], ""), ("memref<*xf32>", MATRIX, ""),
        ("memref<4x5xf32>", MATRIX, "cannot be an array of shape (4, 4)"),
        ("memref<?xf32>", MATRIX, "cannot be an array of shape (4, 4)"),
        ("memref<4x4xf32>", WIDE[:, ::2], "cannot be an array of strides (8, 2) elements"),
        ("memref<4x4xf32>", MATRIX.T, "cannot be an array of strides (1, 4) elements"),
        ("memref<4x4xf32, strided<[8, 2]>>", WIDE[:, ::2], ""), ("memref<4x4xf32, strided<[?, 2]>>", WIDE[:, ::2], ""),
        ("memref<4x4xf32, strided<[?, 1]>>", WIDE[:, ::2], "cannot be an array of strides (8, 2) elements"),
        ("memref<4x4xf32, strided<[?, ?], offset: ?>>", MATRIX.T, ""), ("memref<1x4xf32>", LINE, ""),
        ("memref<4x4xf32, strided<[4, 1], offset: 1>>", MATRIX, "cannot be an array of strides (4, 1) elements"),
        ("memref<4x4xf16>", MATRIX, "must be a numpy array of float16, but got an array of float32"),
        ("memref<4x4xf32>", 5, "must be a numpy array of float32, but got int"),
    ],
)  # fmt: skip
def test_arrays_that_host_functions_take(kind, array, refusal):
    with Context():
        kind = ir.Type.parse(kind)
        if refusal:
            with pytest.raises((TypeError, ValueError), match=re.escape(refusal)):
                _given(kind, array, "x")
            return
        held = _given(kind, array, "x")
        pointer = ctypes.c_void_p.from_address(ctypes.addressof(held)).value
        ranked = isinstance(kind, ir.MemRefType)
        memref = HostMemRef.ranked(pointer, array.ndim) if ranked else HostMemRef.unranked(pointer)
        assert memref == HostMemRef.of(array) and (memref.array("f32") == array).all()


def test_results_of_host_functions():
    with Context():
        names = ("i8", "bf16", "f64", "index", "i1", "memref<?x4xf32>", "memref<*xf32>")
        kinds = [ir.Type.parse(kind) for kind in names]
        results = _results(kinds)
        ranked = HostMemRef.of(WIDE[:, ::2]).descriptor()
        results.r0, results.r1, results.r2, results.r3, results.r4 = 0xFF, 0x3FC0, 0x3FF8 << 48, (1 << 64) - 5, 1
        results.r6 = (ctypes.c_int64 * 2)(2, ctypes.addressof(ranked))
        ctypes.memmove(ctypes.addressof(results.r5), ctypes.addressof(ranked), ctypes.sizeof(ranked))
        *numbers, one, other = (_taken(kind, getattr(results, f"r{i}")) for i, kind in enumerate(kinds))
        assert numbers == [-1, 1.5, 1.5, -5, True]
        for copy in (one, other):
            assert (copy == WIDE[:, ::2]).all() and not np.shares_memory(copy, WIDE)
        with pytest.raises(TypeError, match="results of type vector<4xf32> cannot be passed; memrefs and numbers can"):
            _results([ir.Type.parse("vector<4xf32>")])


@pytest.mark.parametrize(
    ("parameter", "array", "expected"),
    [
        (Parameter("f32", "f32"), f32(1.5, 2), 1.5),
        (Parameter("vector<2xf32>", "f32", "vector", (2,)), f32(1, 2, 3), [1, 2]),
        (Parameter("memref<3xf32>", "f32", "memref", (3,)), f32(1, 2, 3), [1, 2, 3]),
        (Parameter("complex<f32>", "complex<f32>"), f32(1, 2), "complex<f32>, which host code cannot pass"),
    ],
)
def test_arguments_of_kernels(parameter, array, expected):
    """Those of memrefs are arrays of the same memory; numbers and vectors are stored at their memrefs."""
    if isinstance(expected, str):
        with pytest.raises(TypeError, match=f"has an argument with elements of {expected}"):
            device._argument(parameter, HostMemRef.of(array))
        return
    found = device._argument(parameter, HostMemRef.of(array))
    assert np.shape(found) == np.shape(expected) and (found == expected).all()
    assert (parameter.kind == "memref") == (np.shape(found) == array.shape)
