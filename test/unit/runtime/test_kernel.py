"""`Kernel`: the arguments that it accepts, and the errors for others."""

from __future__ import annotations

import re
import warnings
import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py import Kernel
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.host_arrays import check_numbers
from xegpu_py.runtime.options import Options

from .programs import SCALE

KERNEL = Kernel.from_assembly(SCALE, file="scale.visaasm")


def source() -> np.ndarray:
    return np.arange(32, dtype=np.float32)


def expected(factor: float = 2, shift: int = 1) -> np.ndarray:
    return np.minimum(source() * np.float32(factor) + shift, 40)


def test_arrays_are_changed_in_place() -> None:
    x, y = source(), np.zeros(32, np.float32)
    done = KERNEL(x, y, 2.0, [7, 1], grid=2)
    np.testing.assert_array_equal(y, expected())
    np.testing.assert_array_equal(x, source())
    assert done.threads == 2


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_arrays_are_released_after_a_launch(engine: str) -> None:
    kernel = Kernel.from_assembly(SCALE, engine=engine)
    x, y = source(), np.zeros(32, np.float32)
    released = weakref.ref(y)
    kernel(x, y, 2.0, [7, 1], grid=2)
    del y
    assert released() is None


@pytest.mark.parametrize("factor", [2, 2.0, np.float32(2), np.float64(2), np.int8(2), np.array(2.0), np.array([2])])
@pytest.mark.parametrize("shift", [(9, 1), [9, 1], np.array([9, 1]), np.array([9, 1], np.int16)])
def test_numbers_in_all_their_forms(factor: object, shift: object) -> None:
    y = np.zeros(32, np.float32)
    KERNEL(source(), y, factor, shift, grid=(2, 1, 1))
    np.testing.assert_array_equal(y, expected())


@pytest.mark.parametrize("grid", [2, (2,), [2, 1], np.int64(2), np.array([2, 1, 1])])
def test_grids_in_all_their_forms(grid: object) -> None:
    assert KERNEL(source(), source(), 2, (0, 1), grid=grid).threads == 2


def test_arrays_that_are_not_contiguous() -> None:
    x = np.zeros((32, 2), np.float32)
    x[:, 1] = source()
    y = np.zeros((64,), np.float32)
    KERNEL(x[:, 1], y[::-2], 2, (0, 1), grid=2)
    np.testing.assert_array_equal(y[::-2], expected())
    assert not y[::2].any()


def test_shape_and_type_are_the_callers_affair() -> None:
    y = np.zeros((4, 8), np.int32, order="F")
    KERNEL(source().reshape(2, 16), y, 2, (0, 1), grid=2)
    np.testing.assert_array_equal(np.ascontiguousarray(y).view(np.float32).ravel(), expected())
    small = np.zeros(64, ml_dtypes.bfloat16)
    KERNEL(source(), small, 2, (0, 1), grid=2)
    np.testing.assert_array_equal(small.view(np.float32), expected())


def test_one_array_twice_is_one_buffer() -> None:
    x = source()
    KERNEL(x, x, 2, (0, 1), grid=2)
    np.testing.assert_array_equal(x, expected())


def test_arrays_that_overlap_are_refused() -> None:
    x = np.arange(48, dtype=np.float32)
    before = x.copy()
    with pytest.raises(ValueError, match="argument 'Out' overlaps argument 'In'; give one array for both, or a copy"):
        KERNEL(x[:32], x[16:], 2, (0, 1), grid=1)
    np.testing.assert_array_equal(x, before)


def test_another_view_of_one_array_is_the_same_buffer() -> None:
    x = source()
    KERNEL(x, x.view(np.uint32).reshape(4, 8), 2, (0, 1), grid=2)
    np.testing.assert_array_equal(x, expected())


def test_columns_beside_each_other_do_not_overlap() -> None:
    """The arrays share no elements, although the elements of one are between the rows of the other."""
    x = np.zeros((4, 16), np.float32)
    x[:, :8] = np.arange(32, dtype=np.float32).reshape(4, 8)
    KERNEL(x[:, :8], x[:, 8:], 2, (0, 1), grid=2)
    np.testing.assert_array_equal(x[:, :8].ravel(), np.arange(32))
    np.testing.assert_array_equal(x[:, 8:].ravel(), expected())


def test_strided_arrays_that_overlap_are_refused() -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(ValueError, match="argument 'Out' shares memory with argument 'In', and is not contiguous"):
        KERNEL(x[:32], x[::2], 2, (0, 1))


def test_read_only_arrays_can_be_read_but_not_written() -> None:
    x, y = source(), np.zeros(32, np.float32)
    x.flags.writeable = False
    KERNEL(x, y, 2, (0, 1), grid=2)
    np.testing.assert_array_equal(y, expected())
    with pytest.raises(ValueError, match="argument 'Out' is read-only, but kernel 'scale' changes it"):
        KERNEL(y, x, 2, (0, 1), grid=2)
    np.testing.assert_array_equal(x, source())


GOOD = (source(), source(), 2.0, (0, 1))
POINTER = "argument 'In' must be a numpy array, or an integer as its address, but got "
NUMBERS = "argument 'In' must be an array of numbers in native byte order, but got an array of "
FACTOR = "argument 'Factor' must be a number of type f, but got "
SHIFT = "argument 'Shift' must be 2 integers of type w"


@pytest.mark.parametrize(
    ("index", "value", "error", "message"),
    [
        (0, [1.0, 2.0], TypeError, POINTER + "list"),
        (0, "x.npy", TypeError, POINTER + "str"),
        (0, None, TypeError, POINTER + "NoneType"),
        (0, np.float32(1), TypeError, POINTER + "float32"),
        (0, -1, ValueError, "argument 'In' must be a numpy array, or an integer as its address, from 0 to"),
        (0, np.array([None]), TypeError, NUMBERS + "object"),
        (0, np.array(["a"]), TypeError, NUMBERS + "<U1"),
        (0, np.zeros(3, ">f4"), TypeError, NUMBERS + ">f4"),
        (0, np.zeros(3, [("a", "f4")]), TypeError, NUMBERS + "[('a', '<f4')]"),
        (2, "2", TypeError, FACTOR + "str"),
        (2, 2j, TypeError, FACTOR + "complex"),
        (2, None, TypeError, FACTOR + "NoneType"),
        (2, [1.0, 2.0], ValueError, FACTOR + "2 of them"),
        (3, (0.5, 1.0), TypeError, SHIFT + ", but got tuple"),
        (3, np.ones(2, np.float16), TypeError, SHIFT + ", but got float16"),
        (0, True, TypeError, POINTER + "bool"),
        (0, np.ma.zeros(3), TypeError, "argument 'In' must be an array without a mask, but got a masked array"),
        (3, True, ValueError, SHIFT + ", but got 1 of them"),
        (3, 1, ValueError, SHIFT + ", but got 1 of them"),
        (3, (1, 2, 3), ValueError, SHIFT + ", but got 3 of them"),
        (3, ((1, 2), (3,)), TypeError, SHIFT + ", but got ((1, 2), (3,))"),
        (3, (0, 1 << 15), ValueError, SHIFT + ", from -32768 to 32767, but got (0, 32768)"),
        (3, (0, 1 << 70), ValueError, SHIFT + ", from -32768 to 32767, but got (0, 1180591620717411303424)"),
    ],
)
def test_arguments_that_do_not_fit(index: int, value: object, error: type[Exception], message: str) -> None:
    arguments = (*GOOD[:index], value, *GOOD[index + 1 :])
    with pytest.raises(error, match=re.escape(message)):
        KERNEL(*arguments)


@pytest.mark.parametrize(
    ("kind", "copied"),
    [(">f4", "float32"), (">i8", "int64"), (">u2", "uint16"), (">c8", "complex64"), (">M8[s]", ""), ("m8[s]", ""),
     ("M8[s]", ""), ("S3", ""), (">U3", ""), ("O", "")],
)  # fmt: skip
def test_elements_that_are_no_numbers(kind: str, copied: str) -> None:
    """Of numbers in the other byte order, the message says how to convert them."""
    array = np.zeros(2, kind)
    expected = f"X must be an array of numbers in native byte order, but got an array of {array.dtype}"
    hint = f"; astype({copied!r}) makes a copy in native byte order" if copied else ""
    with pytest.raises(TypeError) as found:
        check_numbers(array, "X")
    assert str(found.value) == expected + hint


@pytest.mark.parametrize("one", [True, np.bool_(True), np.array(True), np.int64(1), 1.0])
def test_truth_values_are_numbers(one: object) -> None:
    x, y = source(), source()
    KERNEL(x, y, 1, (0, 1), grid=2)
    want = y.copy()
    KERNEL(x, y, one, (False, np.bool_(True)), grid=2)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("count", [0, 3, 5])
def test_the_number_of_arguments(count: int) -> None:
    message = f"kernel 'scale' takes 4 arguments (In, Out, Factor, Shift), but got {count}"
    with pytest.raises(TypeError, match=re.escape(message)):
        KERNEL(*(*GOOD, 1)[:count])


@pytest.mark.parametrize("name", ["grid", "block"])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, ValueError), (-1, ValueError), ((1, 0), ValueError), ((), ValueError), ((1, 1, 1, 1), ValueError),
        (1 << 32, ValueError), ("2", TypeError), (2.0, TypeError), ((1, 2.5), TypeError), ([None], TypeError),
    ],
)  # fmt: skip
def test_extents_that_are_none(name: str, value: object, error: type[Exception]) -> None:
    message = f"'{name}' must be one to three positive integers"
    with pytest.raises(error, match=f"{message}.*, but got {re.escape(repr(value))}"):
        KERNEL(*GOOD, **{name: value})


def test_workgroups_too_large() -> None:
    message = "'block' makes workgroups of 65 hardware threads; on target pvcxt they have at most 64"
    with pytest.raises(ValueError, match=message):
        KERNEL(*GOOD, block=(13, 5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "i860"}, "unknown target 'i860'; there are pvc"),
        ({"model": "mod"}, "'model' must be one of fma, stage, exact, but got 'mod'"),
        ({"check": ["race"]}, "unknown check 'race'; there are memory, uninit"),
        ({"check": "race"}, "unknown check 'race'; there are memory, uninit"),
        ({"registers": 64}, "target pvcxt has 128 or 256 registers, not 64"),
        ({"name": "other"}, "there is no kernel 'other'; there are scale"),
    ],
)
def test_options_that_are_none(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Kernel.from_assembly(SCALE, **options)


def test_a_check_may_be_one_name() -> None:
    text = SCALE.replace("    lsc_load", "    // lsc_load")
    with pytest.raises(DiagnosticError, match="reads byte 0 of 'X', which was never written"):
        Kernel.from_assembly(text, check="uninit")(*GOOD)


def test_an_access_out_of_bounds_is_located() -> None:
    with pytest.raises(DiagnosticError) as raised:
        KERNEL(*GOOD, grid=3)
    (diagnostic,) = raised.value.diagnostics
    assert (diagnostic.position.file, diagnostic.position.line) == ("scale.visaasm", 22)
    assert diagnostic.message.endswith("reaching 64 bytes over the end of 'In', which has 128 bytes")
    assert diagnostic.notes[0].message == "in workgroup (2, 0, 0), subgroup 0"


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "scale.visaasm"
    path.write_text(SCALE)
    y = np.zeros(32, np.float32)
    Kernel.from_file(path)(source(), y, 2, (0, 1), grid=2)
    np.testing.assert_array_equal(y, expected())
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DiagnosticError, match="scale.visaasm:1:1: error"):
        Kernel.from_file(path)
    with pytest.raises(FileNotFoundError):
        Kernel.from_file(tmp_path / "missing")


def test_variables_that_do_not_fit() -> None:
    wide = "".join(f".decl Wide{n} v_type=G type=f num_elts=2048 align=GRF\n" for n in range(2))
    use = "".join(f"    mov (M1_NM, 16) Wide{n}(0,0)<1> 0x0:f\n" for n in (0, 1, 0))
    text = SCALE.replace(".decl P", wide + ".decl P").replace("    shl", use + "    shl")
    Kernel.from_assembly(text, registers=256)(*GOOD)
    with pytest.raises(DiagnosticError, match=r"'scale' does not fit: register pressure 25\d of 128 GRFs; 2 variables"):
        Kernel.from_assembly(text, strict_grf=True)


def test_the_key_of_options_is_what_lowering_depends_on() -> None:
    lowering = {
        "target": "bmg", "registers": 256, "optimize": False, "prefetch": 2, "load_ahead": True, "unaligned": (1,),
        "large": True, "strided": (0,), "subgroups": 4, "aliased": True,
    }  # fmt: skip
    running = {
        "model": "exact", "check": ("races",), "strict_grf": True, "engine": "both", "threads": 2, "cache": "off",
        "progress": False, "dpas_denormals": "flush", "choices": ("nan-bits=negative",),
    }  # fmt: skip
    # Other schedules need the check of races.
    assert {*lowering, *running, "schedules"} == {*Options.__struct_fields__}
    assert Options(check=("races",), schedules=2).key() == Options().key()
    keys = {Options(**{name: value}).key() for name, value in lowering.items()}
    assert len(keys - {Options().key()}) == len(lowering)
    assert {Options(**{name: value}).key() for name, value in running.items()} == {Options().key()}
    assert Options(large=False).key() == Options().key()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": np.zeros(1)}, TypeError, "'model' must be a name, but got array([0.])"),
        ({"engine": np.array("jit")}, TypeError, "'engine' must be a name, but got array('jit'"),
        ({"model": "fast"}, ValueError, "'model' must be one of fma, stage, exact, but got 'fast'"),
        ({"dpas_denormals": "zero"}, ValueError, "'dpas_denormals' must be one of keep, flush, but got 'zero'"),
        ({"dpas_denormals": "flush", "engine": "reference"}, ValueError,
         "'dpas_denormals' cannot be 'flush': the engine 'reference' keeps subnormal numbers"),
        ({"dpas_denormals": "flush", "target": "bmg"}, ValueError,
         "'dpas_denormals' cannot be 'flush': kernels for target bmg choose it in %cr0"),
        ({"schedules": -1, "check": ("races",)}, ValueError, "'schedules' must be at least 0, but got -1"),
        ({"schedules": 1}, ValueError, "'schedules' must be a number of orders for the check races, but got 1"),
    ],
)  # fmt: skip
def test_options_that_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        Options(**options)


@pytest.mark.parametrize("target", ["pvc", "dg2", "cri", "any"])
def test_targets_that_may_flush_subnormal_factors(target: str) -> None:
    """Those without the bit for it; and cri, whose narrow formats it does not concern."""
    assert Options(target=target, dpas_denormals="flush").dpas_denormals == "flush"


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        (-1, np.int8, "'shape' must be numbers of at least 0, but got -1"),
        ((3, -2), np.int8, "'shape' must be numbers of at least 0, but got (3, -2)"),
        (3, "float33", "'dtype' must be a type of numpy's, but got 'float33'"),
        (3, "U", "an array of 'U' cannot have the shape 3"),
        ((1 << 30, 1 << 30), np.int8, "cannot have the shape (1073741824, 1073741824)"),
    ],
)
def test_aligned_arrays_that_cannot_be(shape: Any, dtype: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        xegpu_py.zeros_aligned(shape, dtype)
    assert xegpu_py.zeros_aligned((3, 0), np.int8).shape == (3, 0) and xegpu_py.zeros_aligned(0, "f4").size == 0


def test_unknown_options() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'targt'"):
        Options.from_keywords(targt="bmg")
    with pytest.raises(TypeError, match=r"did you mean 'target'\? The options are in docs/options.md$"):
        Options.from_keywords(targt="bmg")
    # Calls choose the versions for strided arrays.
    with pytest.raises(TypeError, match="unexpected keyword argument 'strided'"):
        Options.from_keywords(strided=(0,))


READS_IDS = """
gpu.module @m {
  gpu.func @k(%o: memref<64xi32>) kernel {
    %id = gpu.block_id x
    %value = arith.index_cast %id : index to i32
    memref.store %value, %o[%id] : memref<64xi32>
    gpu.return
  }
}
"""


def test_a_grid_that_is_left_out_is_said() -> None:
    """At the caller's line, and only where the kernel reads block ids."""
    kernel = xegpu_py.compile(READS_IDS)
    out = np.full(64, -1, np.int32)
    with pytest.warns(UserWarning, match="kernel 'k' reads block ids, but the call has no grid") as said:
        kernel(out)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(out, grid=1)
        kernel(out, grid=64)
        xegpu_py.compile(READS_IDS.replace("gpu.block_id x", "gpu.thread_id x"))(out)
        # What prints or asserts reads the ids only for its lines.
        xegpu_py.compile(READS_IDS.replace("gpu.block_id x", 'gpu.thread_id x\n gpu.printf "one"'))(out)
    with pytest.warns(UserWarning, match="reads block ids"):
        xegpu_py.compile(kernel.ir("visa"))(out)
    assert (out == np.arange(64)).all()


@pytest.mark.parametrize("engine", ["both", "reference"])
def test_workgroups_of_three_dimensions(engine: str) -> None:
    """Each has its own place in x, y and z, of which no two extents are the same."""
    text = """gpu.module @k { gpu.func @f(%out: memref<2x3x4x3xi32>) kernel {
      %x = gpu.block_id x
      %y = gpu.block_id y
      %z = gpu.block_id z
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %a = arith.index_cast %x : index to i32
      %b = arith.index_cast %y : index to i32
      %c = arith.index_cast %z : index to i32
      memref.store %a, %out[%z, %y, %x, %c0] : memref<2x3x4x3xi32>
      memref.store %b, %out[%z, %y, %x, %c1] : memref<2x3x4x3xi32>
      memref.store %c, %out[%z, %y, %x, %c2] : memref<2x3x4x3xi32>
      gpu.return } }"""
    out = np.full((2, 3, 4, 3), -1, np.int32)
    xegpu_py.compile(text, engine=engine)(out, grid=(4, 3, 2))
    np.testing.assert_array_equal(out, np.moveaxis(np.indices((2, 3, 4))[::-1], 0, -1))


SIZED = """gpu.module @k { gpu.func @f(%x: memref<4xi32>) kernel
  attributes {known_grid_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 3, 1, 1>} {
  gpu.return } }"""


@pytest.mark.parametrize("engine", ["jit", "reference"])
def test_extents_that_a_kernel_knows(engine: str) -> None:
    kernel, x = xegpu_py.compile(SIZED, engine=engine), np.zeros(4, np.int32)
    kernel(x, grid=2, block=3)
    for sizes, message in (
        ({"grid": 3, "block": 3}, "'grid' must be (2, 1, 1), as known_grid_size says, but got "),
        ({"grid": (2, 2), "block": 3}, "'grid' must be (2, 1, 1), as known_grid_size says, but got "),
        ({"grid": 2, "block": 2}, "'block' must be (3, 1, 1), as known_block_size says, but got "),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            kernel(x, **sizes)


@pytest.mark.parametrize("engine", ["jit", "reference"])
def test_a_buffer_that_begins_before_the_array(engine: str) -> None:
    text = """gpu.module @k { gpu.func @f(%x: memref<4xi32, strided<[1], offset: OFFSET>>) kernel { gpu.return } }"""
    for offset in ("0", "?"):
        xegpu_py.compile(text.replace("OFFSET", offset), engine=engine)(np.zeros(4, np.int32))
    with pytest.raises(ValueError, match="begins 2 elements into its buffer, which no array does; let it be dynamic"):
        xegpu_py.compile(text.replace("OFFSET", "2"), engine=engine)(np.zeros(4, np.int32))
