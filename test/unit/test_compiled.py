"""`xegpu_py.compile`: legal and illegal modules and arguments, and the attributes of kernels."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.lower_kernel import ModuleSource, stated_options
from xegpu_py.runtime.kernel import Kernel

TEXT = """gpu.module @kernels {
  gpu.func @scale(%from: memref<4x32xf32>, %factor: f32, %to: memref<4x?xf32>) kernel {
    %row = gpu.block_id x
    %c0 = arith.constant 0 : index
    %src = xegpu.create_nd_tdesc %from[%row, %c0] {mode = vc} : memref<4x32xf32> -> !xegpu.tensor_desc<1x16xf32>
    %dst = xegpu.create_nd_tdesc %to[%row, %c0] {mode = vc} : memref<4x?xf32> -> !xegpu.tensor_desc<1x16xf32>
    %x = xegpu.load_nd %src {mode = vc} : !xegpu.tensor_desc<1x16xf32> -> vector<1x16xf32>
    %factors = vector.broadcast %factor : f32 to vector<1x16xf32>
    %y = arith.mulf %x, %factors : vector<1x16xf32>
    xegpu.store_nd %y, %dst {mode = vc} : vector<1x16xf32>, !xegpu.tensor_desc<1x16xf32>
    gpu.return
  }
  gpu.func @shift(%from: memref<32xi32>, %to: memref<32xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c31 = arith.constant 31 : index
    scf.for %i = %c0 to %c31 step %c1 {
      %j = arith.addi %i, %c1 : index
      %x = memref.load %from[%i] : memref<32xi32>
      memref.store %x, %to[%j] : memref<32xi32>
    }
    gpu.return
  }
  gpu.func @fill(%rows: memref<4x8xi16, strided<[?, 1], offset: ?>>, %value: i16) kernel {
    %x = gpu.block_id x
    %y = gpu.block_id y
    memref.store %value, %rows[%x, %y] : memref<4x8xi16, strided<[?, 1], offset: ?>>
    gpu.return
  }
}
"""


STATED = """module {options} {{ gpu.module @k {chip} {{ gpu.func @f(%x: memref<4xi32>) kernel {{
  %c0 = arith.constant 0 : index
  %x0 = memref.load %x[%c0] : memref<4xi32>
  gpu.return }} }} }}"""


@pytest.mark.parametrize(
    ("options", "chip", "given", "expected"),
    [
        ("", "", {}, ("bmg", None)),
        ("attributes {xegpu.options = {registers = 256 : i64}}", "", {}, ("bmg", 256)),
        ("attributes {xegpu.options = {registers = 256 : i64}}", "", {"registers": 128}, ("bmg", 128)),
        ("", '[#xevm.target<chip = "cri">]', {}, ("cri", None)),
        ("", '[#xevm.target<chip = "cri">]', {"target": "pvcxt"}, ("pvcxt", None)),
        ("", '[#xevm.target<chip = "bmg">]', {}, ("bmg", None)),
    ],
)
def test_options_that_a_module_states(options, chip, given, expected):
    """As text, which is read for them only where it names some, and as a module in memory."""
    default = xegpu_py.compile(STATED.format(options="", chip="")).options
    text = STATED.format(options=options, chip=chip)
    for module in (text, xegpu_py.parse(text)):
        found = xegpu_py.compile(module, **given).options
        target = default.target if expected[0] == "bmg" else expected[0]
        registers = default.registers if expected[1] is None else expected[1]
        assert (found.target, found.registers) == (target, registers)


def test_a_text_that_states_no_options_is_not_read_for_them():
    def read():
        raise InterruptedError

    assert stated_options(ModuleSource(read, ("module", "a.mlir", STATED))) == {}
    for key in ((), ("module", "a.mlir", "xegpu.options = {}"), ("module", "a.mlir", '[#xevm.target<chip = "cri">]')):
        with pytest.raises(InterruptedError):
            stated_options(ModuleSource(read, key))


def scale(**options):
    return xegpu_py.compile(TEXT, "scale", **options)


def data():
    return np.arange(128, dtype=np.float32).reshape(4, 32), np.zeros((4, 48), np.float32)


def test_a_module_is_a_path_a_text_or_a_module(tmp_path: Path):
    path = tmp_path / "scale.mlir"
    path.write_text(TEXT)
    module = xegpu_py.parse(TEXT)
    before = str(module)
    for given in (path, str(path), TEXT, module):
        x, y = data()
        xegpu_py.compile(given, "scale")(x, 2.0, y, grid=4)
        np.testing.assert_array_equal(y[:, :16], 2 * x[:, :16])
        assert not y[:, 16:].any()
    assert str(module) == before


@pytest.mark.parametrize("engine", ["jit", "interpreter", "reference"])
def test_copies_of_read_only_arrays_are_of_each_call(engine):
    source, y = data()
    x, kernel = source.view(), scale(engine=engine)
    x.flags.writeable = False
    for _ in range(3):
        kernel(x, 2.0, y, grid=4)
        np.testing.assert_array_equal(y[:, :16], 2 * source[:, :16])
        source += 1


def test_arrays_are_changed_in_place():
    x, y = data()
    address, owner = y.ctypes.data, y.base
    scale()(x, 0.5, y, grid=4)
    assert (y.ctypes.data, y.base is owner) == (address, True)
    assert y[3, 15] == x[3, 15] / 2
    np.testing.assert_array_equal(x, data()[0])


def test_calls_with_the_same_arguments_are_prepared_once(monkeypatch):
    """Contents may change between such calls. Anything else that a call looks at is looked at again."""
    prepare, calls = Kernel._staged, []
    monkeypatch.setattr(Kernel, "_staged", lambda *given, **named: calls.append(1) or prepare(*given, **named))
    kernel, (x, y), grid = scale(engine="jit"), data(), [4]

    def result(factor: float, to: np.ndarray = y) -> np.ndarray:
        to[:] = 7
        kernel(x, factor, to, grid=grid)
        return to[:, :16].copy()

    for add in range(3):
        x += add
        np.testing.assert_array_equal(result(2.0), 2 * x[:, :16])
    assert len(calls) == 1
    x[:] = 1
    assert not np.signbit(result(0.0)).any()
    assert np.signbit(result(-0.0)).all()
    grid[0] = 2
    np.testing.assert_array_equal(result(-0.0)[:, 0], [0, 0, 7, 7])
    grid[0] = 4
    np.testing.assert_array_equal(result(3.0, np.zeros((4, 100), np.float32)[:, 4:52].copy()), 3 * x[:, :16])
    np.testing.assert_array_equal(result(3.0), 3 * x[:, :16])
    with pytest.raises(TypeError, match="must be an array of float32"):
        kernel(x.view(np.int32), 3.0, y, grid=grid)
    y[:] = 7
    y.flags.writeable = False
    with pytest.raises(ValueError, match="is read-only"):
        kernel(x, 3.0, y, grid=grid)
    y.flags.writeable = True
    np.testing.assert_array_equal(result(5.0), 5 * x[:, :16])
    assert len(calls) == 8


def test_calls_with_other_strides_are_prepared_again():
    fill, whole = xegpu_py.compile(TEXT, "fill"), np.zeros((8, 8), np.int16)
    for every in (1, 2, 1):
        whole[:] = 0
        fill(whole[: 4 * every : every], 1, grid=(4, 8))
        np.testing.assert_array_equal(np.flatnonzero(whole[:, 0]), np.arange(4) * every)


def test_one_array_twice_is_one_and_what_overlaps_otherwise_is_refused():
    shift = xegpu_py.compile(TEXT, "shift")
    x = np.arange(32, dtype=np.int32)
    shift(x, x)
    assert not x.any()
    # One that begins within the other, whichever comes first.
    line = np.arange(40, dtype=np.int32)
    for arrays in ((line[:32], line[8:]), (line[8:], line[:32])):
        with pytest.raises(
            ValueError,
            match="argument '%(from|to)' of .+, overlaps argument '%(from|to)' of .+>; give one array for both",
        ):
            shift(*arrays)
    np.testing.assert_array_equal(line, np.arange(40))


def test_strided_arrays_are_changed_where_they_lie():
    fill = xegpu_py.compile(TEXT, "fill")
    around = np.full((5, 12), 7, np.int16)
    fill(around[:4, 2:10], np.int16(-1), grid=(4, 8))
    expected = np.full((5, 12), 7, np.int16)
    expected[:4, 2:10] = -1
    np.testing.assert_array_equal(around, expected)


def test_what_a_kernel_tells():
    kernel = scale(target="pvc", registers=256)
    assert kernel.stats is None
    assert "xegpu.load_nd" in kernel.ir("xegpu")
    assert "visa" not in kernel.ir("xegpu")
    visa = kernel.ir("visa")
    assert "visa.lsc_load_block2d" in visa
    assert "visa.registers = 256" in visa
    assert 'visa.target = "pvc"' in visa
    assert kernel.asm.startswith(".version")
    assert '.kernel "scale"' in kernel.asm
    assert ".kernel" not in kernel.asm.partition('.kernel "scale"')[2].replace(".kernel_attr", "")
    x, y = data()
    done = kernel(x, 1.0, y, grid=4)
    assert done is kernel.stats
    assert done.threads == 4
    assert done.traffic["ugm", "load"] == 4 * 64
    assert done.allocation.registers == 256
    for level in ("xegpu", "visa"):
        assert str(xegpu_py.parse(kernel.ir(level)))
    with pytest.raises(ValueError, match="unknown level 'gen'; there are xegpu, visa"):
        kernel.ir("gen")


FROM, FACTOR, TO = (
    f"argument '{name}' of kernel 'scale', {kind},"
    for name, kind in (("%from", "a memref<4x32xf32>"), ("%factor", "an f32"), ("%to", "a memref<4x?xf32>"))
)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({0: [[1.0] * 32] * 4}, TypeError, f"{FROM} must be a numpy array, but got list"),
        ({0: np.zeros((4, 32))}, TypeError, f"{FROM} must be an array of float32, but got an array of float64"),
        (
            {0: np.zeros((4, 32), ml_dtypes.bfloat16)},
            TypeError,
            f"{FROM} must be an array of float32, but got an array of bfloat16",
        ),
        ({0: np.zeros((4, 31), "f4")}, ValueError, f"{FROM} cannot be an array of shape (4, 31)"),
        ({0: np.zeros(128, "f4")}, ValueError, f"{FROM} cannot be an array of shape (128,)"),
        ({0: np.zeros((32, 4), "f4").T}, ValueError, f"{FROM} must lie in memory in row-major order"),
        ({0: np.zeros((4, 64), "f4")[:, ::2]}, ValueError, f"{FROM} must lie in memory in row-major order"),
        ({1: np.ones(3, "f4")}, TypeError, f"{FACTOR} must be a number, but got an array"),
        ({1: "2"}, TypeError, f"{FACTOR} must be a number, but got str"),
        ({1: None}, TypeError, f"{FACTOR} must be a number, but got NoneType"),
        ({2: 1.0}, TypeError, f"{TO} must be a numpy array, but got float"),
        ({2: np.zeros((5, 48), "f4")}, ValueError, f"{TO} cannot be an array of shape (5, 48)"),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit(change, error, message):
    x, y = data()
    given = [x, 1.0, y]
    for i, value in change.items():
        given[i] = value
    with pytest.raises(error, match=re.escape(message)):
        scale()(*given, grid=4)
    assert not y.any()


EXTENTS = """gpu.module @m {
  gpu.func @rows(%m: memref<?x?xf32>, %rows: index, %columns: index) kernel {
    %c1 = arith.constant 1 : index
    %d = xegpu.create_nd_tdesc %m[0, 0], [%rows, %columns], [%columns, %c1] {mode = vc}
      : memref<?x?xf32> -> !xegpu.tensor_desc<8x16xf32>
    %x = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %x, %d {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""
"""A kernel with a surface whose extents are arguments."""


def test_the_wrong_number_of_arguments():
    x, y = data()
    known = "takes 3 arguments (%from: memref<4x32xf32>, %factor: f32, %to: memref<4x?xf32>)"
    for given in ((x, 1.0), (x, 1.0, y, y), ()):
        with pytest.raises(TypeError, match=re.escape(f"{known}, but got {len(given)}")):
            scale()(*given)
    rows = xegpu_py.compile(EXTENTS)
    for call in (rows, lambda *given: rows.version_for(given)):
        with pytest.raises(TypeError, match="takes 3 arguments .*, but got 1"):
            call(x)


def test_read_only_arrays():
    x, y = data()
    x.flags.writeable = False
    scale()(x, 1.0, y, grid=4)
    y[:] = 0
    y.flags.writeable = False
    with pytest.raises(ValueError, match=re.escape(f"{TO} is read-only, but kernel 'scale' changes it")):
        scale()(x, 1.0, y, grid=4)
    assert not y.any()


ROW = np.lib.stride_tricks.as_strided(np.zeros(8, np.int16), (4, 8), (1 << 62, 2))
"""An array of a stride that no memory has."""


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.ndarray((4, 8), np.int16, bytes(100), 0, (17, 2)),
            "cannot be an array of strides (17, 2) bytes, which are",
        ),
        (ROW, f"has strides of ({1 << 62}, 2) bytes, which reach beyond"),
        (np.zeros((8, 4), np.int16).T, "cannot be an array of strides (1, 4) elements"),
        (np.zeros((8, 8), np.int16)[::-2], "has a negative stride"),
        (np.zeros((4, 16), np.int16)[:, ::2], "cannot be an array of strides (16, 2) elements"),
    ],
    ids=["no multiples", "beyond memory", "transposed", "reversed", "every second"],
)
def test_strides_that_do_not_fit(array, message):
    fill = xegpu_py.compile(TEXT, "fill")
    who = "argument '%rows' of kernel 'fill', a memref<4x8xi16, strided<[?, 1], offset: ?>>,"
    with pytest.raises(ValueError, match=re.escape(f"{who} {message}")):
        fill(array, np.int16(1))


def test_masked_arrays_are_refused():
    array = np.ma.zeros((4, 8), np.int16)
    with pytest.raises(TypeError, match="argument '%rows' .*, must be an array without a mask, but got a masked array"):
        xegpu_py.compile(TEXT, "fill")(array, np.int16(1))
    with pytest.raises(TypeError, match="argument '%rows' must be an array without a mask, but got a masked array"):
        xegpu_py.compile(TEXT, "fill", engine="reference")(array, np.int16(1))


def test_accesses_behind_an_array_that_repeats_its_elements():
    """The kernel computes the pitch from the shape."""
    text = """gpu.module @m {
      gpu.func @second(%from: memref<?x8xi16, strided<[?, 1]>>, %to: memref<1xi16>) kernel {
        %c0 = arith.constant 0 : index
        %c8 = arith.constant 8 : index
        %flat = memref.reinterpret_cast %from to offset: [0], sizes: [16], strides: [1]
          : memref<?x8xi16, strided<[?, 1]>> to memref<16xi16, strided<[1]>>
        %x = memref.load %flat[%c8] : memref<16xi16, strided<[1]>>
        memref.store %x, %to[%c0] : memref<1xi16>
        gpu.return
      }
    }"""
    kernel = xegpu_py.compile(text)
    kernel(np.zeros((2, 8), np.int16), np.zeros(1, np.int16))
    with pytest.raises(
        xegpu_py.DiagnosticError, match="argument '%from' has shape .2, 8. and strides .0, 2.: a stride of 0"
    ):
        kernel(np.broadcast_to(np.zeros(8, np.int16), (2, 8)), np.zeros(1, np.int16))


@pytest.mark.parametrize("engine", ["both", "reference"])
def test_empty_arrays_fit_any_strides(engine):
    text = """gpu.module @m {
      gpu.func @rows(%m: memref<?x8xi16, strided<[?, 1], offset: ?>>, %out: memref<1xi64>) kernel {
        %c0 = arith.constant 0 : index
        %rows = memref.dim %m, %c0 : memref<?x8xi16, strided<[?, 1], offset: ?>>
        %found = arith.index_cast %rows : index to i64
        memref.store %found, %out[%c0] : memref<1xi64>
        gpu.return
      }
    }"""
    out = np.full(1, -1)
    xegpu_py.compile(text, engine=engine)(np.lib.stride_tricks.as_strided(np.zeros(1, np.int16), (0, 8), (0, 0)), out)
    assert out == 0


@pytest.mark.parametrize(
    ("value", "error"), [(40_000, ValueError), (1.5, TypeError), (np.float32(1), TypeError)], ids=str
)
def test_integers_that_do_not_fit(value, error):
    with pytest.raises(error, match="argument '%value' of kernel 'fill', an i16,"):
        xegpu_py.compile(TEXT, "fill")(np.zeros((4, 8), np.int16), value)


@pytest.mark.parametrize("size", [0, (1, 2, 3, 4), (2, -1), 2.5, "4"], ids=str)
@pytest.mark.parametrize("name", ["grid", "block"])
def test_sizes_that_do_not_fit(name, size):
    x, y = data()
    with pytest.raises((TypeError, ValueError), match=f"'{name}' must be one to three positive integers"):
        scale()(x, 1.0, y, **{name: size})


def test_which_kernel():
    with pytest.raises(ValueError, match="one kernel must be named: there are scale, shift, fill"):
        xegpu_py.compile(TEXT)
    with pytest.raises(ValueError, match="there is no kernel 'gemm'; there are scale, shift, fill"):
        xegpu_py.compile(TEXT, "gemm")
    with pytest.raises(ValueError, match="there are several kernels 'k'"):
        one = "gpu.module @{0} {{ gpu.func @k() kernel {{ gpu.return }} }}\n"
        xegpu_py.compile(one.format("a") + one.format("b"), "k")
    with pytest.raises(ValueError, match="there is no kernel; in MLIR, a kernel is a gpu.func"):
        xegpu_py.compile("func.func @f() { return }")


def test_only_the_kernel_is_lowered():
    """A kernel beside it takes no time, and its faults are not seen; launches in host code keep theirs."""
    fault = """gpu.func @wrong(%a: memref<i64>) kernel {
      %m = memref.alloc() : memref<4xf32>
      %p = memref.extract_aligned_pointer_as_index %m : memref<4xf32> -> index
      %i = arith.index_cast %p : index to i64
      memref.store %i, %a[] : memref<i64>
      gpu.return
    }"""
    wrong = TEXT.replace("gpu.func @scale", f"{fault}\n  gpu.func @scale", 1)
    with pytest.raises(xegpu_py.DiagnosticError, match="can allocate only shared local memory"):
        xegpu_py.compile(wrong, "wrong")
    kernel = xegpu_py.compile(wrong, "scale")
    assert re.findall(r"gpu.func @(\w+)", kernel.ir("visa")) == ["scale"]
    assert re.findall(r"gpu.func @(\w+)", kernel.ir("xegpu")) == ["wrong", "scale", "shift", "fill"]
    host = f"module attributes {{gpu.container_module}} {{\n{TEXT}}}"
    lowered = xegpu_py.compile(host, "shift").ir("visa")
    assert re.findall(r"gpu.func @(\w+)", lowered) == ["scale", "shift", "fill"]


def test_options_that_there_are_not():
    with pytest.raises(ValueError, match="unknown target 'gen9'"):
        scale(target="gen9")
    with pytest.raises((ValueError, xegpu_py.DiagnosticError), match="has 128 or 256 registers, not 100"):
        scale(registers=100)
    with pytest.raises(ValueError, match="'model' must be one of"):
        scale(model="sloppy")


SIZED = """
gpu.module @m {
  gpu.func @k(%out: memref<4xi32>) kernel
      attributes {known_block_size = array<i32: 2, 1, 1>, known_grid_size = array<i32: 2, 1, 1>} {
    %c2 = arith.constant 2 : index
    %group = gpu.block_id x
    %thread = gpu.thread_id x
    %first = arith.muli %group, %c2 : index
    %at = arith.addi %first, %thread : index
    %value = arith.index_cast %at : index to i32
    memref.store %value, %out[%at] : memref<4xi32>
    gpu.return
  }
}
"""


def test_extents_that_the_kernel_says() -> None:
    kernel, out = xegpu_py.compile(SIZED), np.zeros(4, np.int32)
    kernel(out, grid=2, block=(2, 1))
    assert out.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=re.escape("'block' must be (2, 1, 1), as known_block_size says")):
        kernel(out, grid=2, block=4)
    with pytest.raises(ValueError, match=re.escape("'grid' must be (2, 1, 1), as known_grid_size says")):
        kernel(out, grid=(1, 2), block=2)


PRODUCT = """gpu.module @m {
  gpu.func @product(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<32x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c1 = arith.constant 1 : index
    %m = memref.dim %A, %c0 : memref<?x?xf16>
    %k = memref.dim %A, %c1 : memref<?x?xf16>
    %kb = memref.dim %B, %c0 : memref<?x?xf16>
    %n = memref.dim %B, %c1 : memref<?x?xf16>
    %zero = arith.constant dense<0.0> : vector<32x64xf32>
    %sum = scf.for %i = %c0 to %k step %c16 iter_args(%acc = %zero) -> vector<32x64xf32> {
      %a = xegpu.create_nd_tdesc %A[%c0, %i], [%m, %k], [%k, %c1] {mode = vc}
        : memref<?x?xf16> -> !xegpu.tensor_desc<32x16xf16>
      %b = xegpu.create_nd_tdesc %B[%i, %c0], [%kb, %n], [%n, %c1] {mode = vc}
        : memref<?x?xf16> -> !xegpu.tensor_desc<16x64xf16>
      %x = xegpu.load_nd %a {mode = vc, vnni_axis = 1} : !xegpu.tensor_desc<32x16xf16> -> vector<32x8x2xf16>
      %y = xegpu.load_nd %b {mode = vc, vnni_axis = 0} : !xegpu.tensor_desc<16x64xf16> -> vector<8x64x2xf16>
      %r = xegpu.dpas %x, %y, %acc {mode = vc}
        : vector<32x8x2xf16>, vector<8x64x2xf16>, vector<32x64xf32> -> vector<32x64xf32>
      scf.yield %r : vector<32x64xf32>
    }
    %c = xegpu.create_nd_tdesc %C[%c0, %c0] {mode = vc}
      : memref<32x64xf32> -> !xegpu.tensor_desc<32x64xf32>
    xegpu.store_nd %sum, %c {mode = vc} : vector<32x64xf32>, !xegpu.tensor_desc<32x64xf32>
    gpu.return
  }
}"""


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:.* the left matrix")
@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("a", "b", "block", "line", "what"),
    [
        ((32, 64), (64, 64), 1, None, ""),
        ((32, 64), (48, 64), 1, "%y = ", "rows 48 to 63 of 48"),
        ((24, 64), (64, 64), 1, "%x = ", "rows 0 to 31 of 24"),
        ((32, 64), (64, 96), 1, None, ""),
        ((32, 64), (64, 48), 2, "%y = ", "columns 32 to 63 of 48"),
    ],
)
def test_blocks_beyond_their_surface(engine, a, b, block, line, what):
    """Also where threads share what they load, and where several blocks are loaded as one."""
    arrays = np.ones(a, np.float16), np.ones(b, np.float16), np.zeros((32, 64), np.float32)
    options = {"engine": engine, "registers": 256}
    xegpu_py.compile(PRODUCT, **options)(*arrays, block=block)
    kernel = xegpu_py.compile(PRODUCT, check="bounds", **options)
    if line is None:
        kernel(*arrays, block=block)
        return
    with pytest.raises(xegpu_py.DiagnosticError, match="reads a block of .* beyond its surface") as e:
        kernel(*arrays, block=block)
    (found,) = e.value.diagnostics
    assert found.message.endswith(what)
    assert line in PRODUCT.splitlines()[found.position.line - 1]


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_stores_of_blocks_beyond_their_surface(engine):
    x, y = np.ones((4, 32), np.float32), np.zeros((4, 24), np.float32)
    xegpu_py.compile(TEXT, "scale", engine=engine, check="bounds")(x, 2.0, np.zeros((4, 16), np.float32), grid=4)
    xegpu_py.compile(TEXT, "scale", engine=engine)(x, 2.0, y, grid=5)
    with pytest.raises(xegpu_py.DiagnosticError, match="beyond its surface.*rows 4 to 4 of 4"):
        xegpu_py.compile(TEXT, "scale", engine=engine, check="bounds")(x, 2.0, y, grid=5)


BLOCK_AT = """
gpu.module @m {
  gpu.func @k(%a: memref<10x32xf32>, %o: memref<8x16xf32>, %y: index, %x: index) kernel {
    %d = xegpu.create_nd_tdesc %a[%y, %x] {mode = vc} : memref<10x32xf32> -> !xegpu.tensor_desc<8x16xf32>
    %v = xegpu.load_nd %d {mode = vc} : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %e = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<8x16xf32> -> !xegpu.tensor_desc<8x16xf32>
    xegpu.store_nd %v, %e {mode = vc} : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    gpu.return
  }
}
"""


def test_all_sides_of_a_surface():
    """A block touches each side, is one element beyond it, and beyond two of them."""
    a, o = np.arange(320, dtype=np.float32).reshape(10, 32), np.zeros((8, 16), np.float32)
    kernel = xegpu_py.compile(BLOCK_AT, engine="interpreter", check="bounds")
    for y, x, said in (
        (0, 0, ""), (2, 16, ""), (3, 0, "rows 3 to 10 of 10"), (-1, 0, "rows -1 to 6 of 10"),
        (0, 17, "columns 17 to 32 of 32"), (0, -1, "columns -1 to 14 of 32"),
        (-1, 17, "rows -1 to 6 of 10 and columns 17 to 32 of 32"),
        (5, -9, "rows 5 to 12 of 10 and columns -9 to 6 of 32"),
    ):  # fmt: skip
        if not said:
            kernel(a, o, y, x)
            np.testing.assert_array_equal(o, a[y : y + 8, x : x + 16])
            continue
        with pytest.raises(xegpu_py.DiagnosticError) as found:
            kernel(a, o, y, x)
        assert found.value.diagnostics[0].message.endswith(f": {said}")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows", ["%kb", "%c48"])
def test_a_warning_of_inner_sizes_that_differ(rows):
    text = PRODUCT.replace("[%kb, %n]", f"[{rows}, %n]").replace(
        "%c16 =", "%c48 = arith.constant 48 : index\n    %c16 ="
    )
    kernel = xegpu_py.compile(text)
    a, c = np.ones((32, 64), np.float16), np.zeros((32, 64), np.float32)
    with pytest.warns(UserWarning, match="<string>:.*: the left matrix is loaded from rows of 64 .* from 48 rows"):
        kernel(a, np.ones((48, 64), np.float16), c)
    kernel(a[:, :48].copy(), np.ones((48, 64), np.float16), c)
    if rows == "%kb":
        # Several matrices in one array.
        kernel(a, np.ones((128, 64), np.float16), c)
