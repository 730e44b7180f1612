"""Launches of kernels: arguments of other libraries, versions, tuning, and how kernels look from Python."""

from __future__ import annotations

import ctypes
import functools
import pickle
import pydoc
import types
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Config, Constexpr
from xegpu_py.extensions.tuning import autotune as autotune_module
from xegpu_py.tiles.element_types import Known, as_argument
from xegpu_py.visa.finalizer import FinalizerMissing, available

F32, BF16 = np.float32, ml_dtypes.bfloat16


@xegpu_py.jit
def strided(X, Y, Z, LINE, OUT):
    x, total = X.tile((8, 8), at=(3, 0)), xl.zeros((8, 8))
    for _ in range(3):
        total = total + x.load(padding=1)
        x.advance(columns=4)
    Y.tile((8, 8), at=(0, 0)).store(total)
    z = Z.T.tile((8, 8), at=(-1, 1))
    z.store(total)
    z.add(1)
    line = LINE.tile((16,), at=(1,))
    line.advance(1)
    OUT.tile((16,), at=(0,)).store(line.load())


@xegpu_py.jit
def strided_product(A, B, C):
    a, b = A.tile((2, 16, 16), at=(0, 0, 0)), B.T.tile((16, 32), at=(0, 0))
    c = xl.zeros((16, 32), map=xl.WgMap((2, 2), (8, 16)))
    for _ in range(0, A.shape[2], 16):
        both = a.load()
        c += (both[0] + both[1]) @ b.load()
        a.advance(columns=16)
        b.advance(rows=16)
    C.tile((16, 32), at=(0, 0)).store(c)


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_arrays_whose_rows_and_columns_are_strided(engine):
    """Of which no dimension lies side by side in memory: tiles load what numpy has there, and write nothing else."""
    x, line = np.arange(400, dtype=F32).reshape(20, 20)[::2, ::2], np.arange(40, dtype=F32)[::2]
    around, y, out = np.zeros((20, 24), F32), np.zeros((8, 8), F32), np.zeros(16, F32)
    strided.with_options(engine=engine)(x, y, around[::2, ::3], line, out)
    padded = np.ones((16, 16), F32)
    padded[:10, :10] = x
    total = sum(padded[3:11, 4 * i : 4 * i + 8] for i in range(3))
    written = np.zeros((10, 8), F32)
    written[1:9, :7] = total[1:].T + 1
    found = np.zeros_like(around)
    found[::2, ::3] = written
    np.testing.assert_array_equal(y, total)
    np.testing.assert_array_equal(around, found)
    np.testing.assert_array_equal(out, line[2:18])
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((4, 32, 80), (64, 80)))
    c = np.zeros((16, 32), F32)
    strided_product.with_options(engine=engine)(a[::2, ::2, ::2], b[::2, ::2], c)
    np.testing.assert_array_equal(c, (a[0] + a[2])[::2, ::2].astype(F32) @ b[::2, ::2].astype(F32).T)


@pytest.mark.parametrize("steps, named", [((), {"cols": 4}), ((1,), {"rows": 2}), ((1, 2, 3), {})])
@pytest.mark.parametrize("step", [1, 2])
def test_steps_of_tiles_that_mean_nothing_are_errors(step, steps, named):
    @xegpu_py.jit
    def wrong(X, Y):
        x = X.tile((8, 8), at=(0, 0))
        x.advance(*steps, **named)
        Y.tile((8, 8), at=(0, 0)).store(x.load())

    x = np.zeros((16, 16 * step), F32)[:, ::step]
    with pytest.raises(xegpu_py.DiagnosticError, match=r"test_launch.py:\d+:9: error: .*advance"):
        wrong(x, np.zeros((16, 16), F32))


@xegpu_py.jit
def scale(X, Y, n, factor: xl.float32 = 2.0, BLOCK: Constexpr = 32):
    """Y is X times a factor."""
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    xl.store(Y + i, xl.load(X + i, mask=i < n) * factor, mask=i < n)


def test_grids_are_functions_of_the_arguments():
    x, y = np.arange(100, dtype=F32), np.zeros(100, F32)
    scale[lambda a: (xl.cdiv(a["n"], a["BLOCK"]),)](x, y, 100, BLOCK=16)
    np.testing.assert_array_equal(y, x * 2)
    scale(x, y, n=100, factor=3, grid=lambda a: xl.cdiv(a["n"], a["BLOCK"]))
    np.testing.assert_array_equal(y, x * 3)


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["interpreter", "jit", "reference", "eager"])
@pytest.mark.parametrize("n", [1, 2, 3, -1])
def test_arguments_of_1_have_the_type_of_others(engine, n):
    """A kernel is compiled for 1, since strides often are; a Python 1 would take the type of the other operand."""

    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, n):
        lanes = xl.arange(0, 16)
        xl.store(Y + lanes, (xl.load(X + lanes) + n).to(xl.int64))
        xl.store(Y + 16 + lanes, (n << 31).to(xl.int64) + lanes)
        xl.store(Y + 32 + lanes, ((n + 0) >> 1).to(xl.int64) + lanes * n.to(xl.int64))
        xl.store(Y + 48 + lanes, (n * 2147483647 + n) + lanes)

    y = np.zeros(64, np.int64)
    kernel(np.full(16, 127, np.int8), y, n)
    lanes, wide = np.arange(16, dtype=np.int32), -(2**31) if n % 2 else 0
    found = [127 + n + lanes * 0, wide + np.arange(16)]
    found += [(n >> 1) + lanes * n, wide + np.arange(16)]
    assert y.tolist() == np.concatenate(found).tolist()


def test_versions_say_what_was_chosen():
    @xegpu_py.jit
    def copy(X, Y, n, BLOCK: Constexpr):
        Y.tile((8, BLOCK), at=(0, 0)).store(X.tile((8, BLOCK), at=(0, 0)).load() * n)

    for columns, n in ((32, 1), (30, 1), (32, 5), (32, 7), (32, 2**40)):
        x = np.ones((8, columns), F32)
        y = np.zeros_like(x)
        copy(x, y, n, BLOCK=32)
        assert (y == n).all()
    shown = [repr(version) for version in copy.versions.values()]
    assert shown == [
        "<kernel copy(X: float32[?, ?], Y: float32[?, ?], n: 1, BLOCK: 32)>",
        "<kernel copy(X: float32[?, ?] unaligned, Y: float32[?, ?] unaligned, n: 1, BLOCK: 32)>",
        "<kernel copy(X: float32[?, ?], Y: float32[?, ?], n: int32, BLOCK: 32)>",
        "<kernel copy(X: float32[?, ?], Y: float32[?, ?], n: int64, BLOCK: 32)>",
    ]
    visa = [version.asm["visa"] for version in copy.versions.values()]
    # Blocks where 2D block messages can serve the arrays, gathers elsewhere; nothing is multiplied by 1.
    assert ["block2d" in text for text in visa] == [True, False, True, True]
    assert ["mul " in visa[0], "mul " in visa[2]] == [False, True]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


class Foreign:
    """An array of another library, which supports only DLPack."""

    def __init__(self, array, code, device=1, offset=0):
        self.array, self.device, self.taken = array, device, 0
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        steps = [n // array.itemsize for n in array.strides]
        strides = None if array.flags.c_contiguous else (ctypes.c_int64 * array.ndim)(*steps)
        self.tensor = _Tensor(array.ctypes.data - offset, device, 0, array.ndim, code, array.itemsize * 8, 1)
        self.tensor.shape, self.tensor.offset = shape, offset
        if strides is not None:
            self.tensor.strides = strides

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self):
        self.taken += 1
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.mark.parametrize(
    ("dtype", "code"), [(F32, 2), (np.int16, 0), (np.uint8, 1), (BF16, 4), (ml_dtypes.float8_e5m2, 12)]
)
def test_arrays_by_dlpack_are_not_copied(dtype, code):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    for array in (x, x.T, x[:, 1:3]):
        found = as_argument(Foreign(array, code, offset=64))
        assert (found.dtype, found.shape, found.strides) == (array.dtype, array.shape, array.strides)
        assert found.tobytes() == array.tobytes() and np.shares_memory(found, x) and found.flags.writeable


@pytest.mark.parametrize("shape", [(0,), (3, 0), (1, 1)])
def test_arrays_by_dlpack_without_elements_or_memory(shape):
    """Some libraries give arrays without elements an address, some give none."""
    array = np.ones(shape, np.uint16)
    foreign = Foreign(array, 1)
    assert as_argument(foreign).tobytes() == array.tobytes() and as_argument(foreign).shape == shape
    foreign.tensor.data = None
    if not array.size:
        assert as_argument(foreign).shape == shape and as_argument(foreign).dtype == np.uint16


def test_kernels_take_arrays_of_other_libraries():
    class Interface:
        def __init__(self, array):
            self.__array_interface__ = array.__array_interface__

    x, y = np.arange(40, dtype=F32), np.zeros(40, F32)
    scale[2](Foreign(x, 2), Interface(y), 40)
    np.testing.assert_array_equal(y, x * 2)
    with pytest.raises(TypeError, match="must lie in the host's memory, but DLPack says device 2"):
        scale[2](Foreign(x, 2, device=2), y, 40)
    with pytest.raises(TypeError, match="DLPack's elements of code 5"):
        scale[2](Foreign(x, 5), y, 40)


@xegpu_py.jit
def times(X, Y, FACTOR: Constexpr):
    at = xl.arange(16)
    xl.store(Y + at, xl.load(X + at) * FACTOR + xl.load(X + at))


def test_equal_constants_of_different_types_are_different():
    """The product of integers and 2 is an integer, and the product with 2.0 is not."""
    x, y = np.arange(16, dtype=np.int32) + 2**24, np.zeros(16, np.float64)
    for factor in (2, 2.0, True, 1, 1.0, -0.0, 0.0):
        times(x, y, FACTOR=factor)
        same = x.astype(F32) if isinstance(factor, float) else x
        np.testing.assert_array_equal(y, same * same.dtype.type(factor) + same)
    assert len(times.versions) == 7


@xegpu_py.jit
def chosen_by(X, FLAG):
    tile = X.tile((16,), at=(0,))
    x = tile.load()
    if FLAG:
        x = x + (FLAG + FLAG)
    tile.store(xl.where(FLAG, x * 2, x))


@xegpu_py.jit
def chosen_by_bool(X, FLAG: xl.bool_):
    tile = X.tile((16,), at=(0,))
    x = tile.load()
    tile.store(xl.where(FLAG, x * 6, x))


@pytest.mark.parametrize("engine", ["both", "eager"])
@pytest.mark.parametrize("kernel", [chosen_by, chosen_by_bool])
def test_truth_values(kernel, engine):
    """Python's and numpy's, and numbers for a parameter that is annotated as a truth value."""
    for flag in (True, np.bool_(True), False, np.bool_(False), *((0, 1) if kernel is chosen_by_bool else ())):
        x = np.ones(16, F32)
        kernel.with_options(engine=engine)(x, flag)
        np.testing.assert_array_equal(x, np.full(16, 6 if flag else 1, F32))


OFFSET = 3


def shifted(x):
    return x + OFFSET


@xegpu_py.jit
def uses_names(X, Y):
    at = xl.arange(16)
    xl.store(Y + at, shifted(xl.load(X + at)))


def test_names_that_stand_for_something_else_now(monkeypatch):
    """A kernel is compiled again when a global variable, or a function that it calls, has changed since."""
    x, y = np.arange(16, dtype=F32), np.zeros(16, F32)
    for offset in (3, 5):
        monkeypatch.setitem(globals(), "OFFSET", offset)
        uses_names(x, y)
        np.testing.assert_array_equal(y, x + offset)
    version = next(iter(uses_names.versions.values()))
    uses_names(x, y)
    assert list(uses_names.versions.values()) == [version]
    monkeypatch.setitem(globals(), "shifted", lambda v: v * 2)
    uses_names(x, y)
    np.testing.assert_array_equal(y, x * 2)


@dataclass
class Settings:
    factor: int = 2

    def applied(self, x):
        return x * self.factor


class Classes:
    FACTOR = 2
    by_name = types.SimpleNamespace(factor=2)


FACTORS, BY_NAME, NUMBERS, SETTINGS = [2, [2]], {"factor": 2}, np.array([2, 3]), Settings()
MODULE = types.ModuleType("of_a_user")
MODULE.inner = types.SimpleNamespace(factor=2)


def through_another(x):
    return x * MODULE.inner.factor


def local_name(x):
    settings = MODULE
    return x * settings.inner.factor


@pytest.mark.parametrize(
    ("holder", "key", "function"),
    [
        (FACTORS, 0, lambda x: x * FACTORS[0]),
        (FACTORS[1], 0, lambda x: x * FACTORS[1][0]),
        (BY_NAME, "factor", lambda x: x * BY_NAME["factor"]),
        (NUMBERS, 0, lambda x: x * NUMBERS[0]),
        (SETTINGS, "factor", lambda x: x * SETTINGS.factor),
        (SETTINGS, "factor", lambda x: SETTINGS.applied(x)),
        (Classes, "FACTOR", lambda x: x * Classes.FACTOR),
        (Classes.by_name, "factor", lambda x: x * Classes.by_name.factor),
        (MODULE.inner, "factor", lambda x: x * MODULE.inner.factor),
        (MODULE.inner, "factor", through_another),
        (MODULE.inner, "factor", local_name),
        (MODULE, "inner", local_name),
    ],
)
def test_containers_and_modules_that_have_changed(holder, key, function):
    """A kernel is compiled again when a container, module, class or object that it names has other contents."""

    @xegpu_py.jit
    def kernel(X, f: Constexpr):
        at = xl.arange(16)
        xl.store(X + at, f(xl.load(X + at)))

    def version():
        return kernel.bind(np.zeros(16, np.int32), f=function)[0]

    named = isinstance(holder, (type, types.ModuleType, types.SimpleNamespace, Settings))
    old = getattr(holder, key) if named else holder[key]
    first = version()
    assert version() is first and "dense<2>" in str(first)
    change = functools.partial(setattr if named else type(holder).__setitem__, holder, key)
    change(types.SimpleNamespace(factor=7) if isinstance(old, types.SimpleNamespace) else 7)
    try:
        assert version() is not first and "dense<7>" in str(version())
    finally:
        change(old)


def test_equal_objects_with_different_numbers_are_different():
    frozen = dataclass(frozen=True)(type("Frozen", (), {"__annotations__": {"factor": float}}))
    for one, other in ((frozen(2), frozen(2.0)), (frozenset([2]), frozenset([2.0])), ((1, 2), (True, 2))):
        assert one == other and Known(one) != Known(other) and Known(one) == Known(one)


def doubled(function):
    @functools.wraps(function)
    def wrapper(X, *args, **keywords):
        function(X, *args, **keywords)
        X[0] = X[0] * 2

    return wrapper


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_decorators_below_jit_are_compiled_too(engine):
    @xegpu_py.jit(engine=engine)
    @doubled
    def kernel(X, n, STEP: Constexpr = 3):
        X[0] = n + STEP

    x = np.zeros(1, np.int32)
    kernel(x, 5)
    assert x.tolist() == [16]


def test_jit_of_kernels_and_of_what_is_no_function():
    again = xegpu_py.jit(xegpu_py.jit(shifted, engine="eager"), model="exact")
    assert again._options == {"engine": "eager", "model": "exact"} and again.__kernel_function__ is shifted
    for given in (print, functools.partial(shifted), 3, Settings):
        with pytest.raises(TypeError, match="jit makes kernels of Python functions, not of"):
            xegpu_py.jit(given)
    with pytest.raises(TypeError, match=r"kernel '<lambda>' takes '\*Y', but kernels have a fixed number of arguments"):
        xegpu_py.jit(lambda X, *Y: None)
    with pytest.raises(xegpu_py.DiagnosticError, match="'async def' cannot be compiled in a kernel\nasync def later"):
        xegpu_py.jit(later)(1)


async def later(n):
    pass


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_arrays_without_dimensions_have_one_element(engine):
    @xegpu_py.jit(engine=engine)
    def kernel(X, Y, dtype: Constexpr):
        Y[0] = (xl.load(X + 0) / 2).to(dtype)

    y = np.zeros((), np.float32)
    kernel(np.array(5, np.int32), y, np.float32)
    assert y == 2.5


@pytest.mark.parametrize("engine", ["eager", "jit"])
def test_grids_without_workgroups_launch_nothing(engine):
    """As in Triton: `cdiv(0, BLOCK)` is such a grid."""
    kernel, x = xegpu_py.jit(fails, engine=engine), np.zeros(16, np.int32)
    for grid in (0, (3, 0), lambda arguments: (0, 1, 2)):
        found = kernel[grid](x)
        assert found is None if engine == "eager" else found.threads == 0
    for grid in (-1, (0, -1), (), (0, 1, 1, 1)):
        with pytest.raises(ValueError, match="must be one to three positive integers"):
            kernel[grid](x)


def fails(X):
    xl.device_assert(xl.load(X + xl.arange(16)) > 0)


def test_trials_run_the_version_of_the_call():
    """The copies have the strides of the arrays, and an array that is passed twice is one copy."""
    seen = []

    def objective(run):
        seen.append([(a.strides, a.ctypes.data % 64) for a in run.arguments])
        assert run.arguments[0] is run.arguments[1]
        return run.again().threads

    @xegpu_py.autotune([Config({}), Config({}, {"registers": 128})], objective=objective)
    @xegpu_py.jit
    def kernel(X, Y):
        Y.tile((4, 8), at=(0, 0)).store(X.tile((4, 8), at=(0, 0)).load() + 1)

    x = np.zeros((8, 40), np.float32)[::2, 1:33:2]
    kernel(x, x)
    assert seen == [[(x.strides, x.ctypes.data % 64)] * 2] * 2
    assert x.sum() == 32 and len(kernel.versions) == 1


@pytest.mark.parametrize("engine", ["jit", "eager"])
def test_masked_arrays_are_refused(engine):
    """A kernel would read what the mask hides."""
    x = np.zeros(16, np.int32)
    kernel = xegpu_py.jit(times.__kernel_function__, engine=engine)
    for masked in (np.ma.array(x, mask=True), np.ma.array(x)):
        with pytest.raises(TypeError, match="argument 'X' of kernel 'times' must be an array without a mask"):
            kernel[1](masked, x, FACTOR=2)
        with pytest.raises(TypeError, match="argument 'Y' of kernel 'times' must be an array without a mask"):
            kernel[1](x, masked, FACTOR=2)


@pytest.mark.parametrize("engine", ["jit", "eager"])
def test_empty_slices(engine):
    """They have a pitch that 2D block messages accept, but no rows."""

    def copy(X, Y):
        Y.tile((8, 16), at=(0, 0)).store(X.tile((8, 16), at=(0, 0)).load() + 1)

    kernel, whole = xegpu_py.jit(copy, engine=engine), np.ones((64, 64), np.float32)
    y = np.full((8, 16), 7, np.float32)
    kernel[1](whole[5:5], y)
    assert (y == 1).all()
    kernel[1](whole[:8], whole[5:5])
    assert (whole == 1).all()


def test_mistakes_in_calls():
    x = np.zeros(16, np.int32)
    with pytest.raises(TypeError, match=r"times\(\): missing a required argument: 'Y'"):
        times(x, FACTOR=2)
    with pytest.raises(ValueError, match="'num_warps' must be a positive integer, but got 0"):
        times[1](x, x, FACTOR=2, num_warps=0)
    with pytest.raises(TypeError, match="argument 'FACTOR' of kernel 'times' must be hashable, unlike list"):
        times(x, x, FACTOR=[2])
    with pytest.raises(
        TypeError, match="argument 'Y' of kernel 'times' .* native byte order, but got an array of >i4; astype"
    ):
        times(x, x.astype(">i4"), FACTOR=2)
    with pytest.raises(ValueError, match="kernel 'times': an array with a negative stride overlaps another argument"):
        times(x, x[::-1], FACTOR=2)
    with pytest.raises(TypeError, match="argument 'X' of kernel 'times': no element type .* pack it in uint8"):
        times(x.astype(ml_dtypes.int4), x, FACTOR=2)


def test_how_a_kernel_looks(tmp_path):
    shown = pydoc.plain(pydoc.render_doc(times))
    assert "times(X, Y, FACTOR: " in shown and "Kernel(" not in shown
    shown = pydoc.render_doc(scale)
    assert "Y is X times a factor." in shown and "factor: float32 = 2.0" in shown
    assert scale.__doc__ == "Y is X times a factor." and scale.__name__ == "scale"
    assert repr(scale).startswith("<kernel scale(X, Y, n, factor") and repr(scale).endswith(("version>", "versions>"))
    assert {"versions", "compile", "bind", "with_options"} <= set(dir(scale))
    assert {"jit", "autotune", "compile"} <= set(dir(xegpu_py)) and "tile_kernel" in dir(xegpu_py.language)
    assert pickle.loads(pickle.dumps(scale)) is scale
    assert pickle.loads(pickle.dumps(tuned)) is tuned


def test_versions_can_be_pickled():
    x = np.arange(16, dtype=np.int32)
    times(x, np.zeros_like(x), FACTOR=5)
    versions = pickle.loads(pickle.dumps(times.versions))
    assert versions == times.versions
    (made,) = (v for v in versions.values() if v.arguments["FACTOR"] == Known(5))
    y = np.zeros_like(x)
    made(x, y)
    assert (y == 6 * x).all()

    @xegpu_py.jit
    def local(X):
        X[0] = 1

    with pytest.raises(pickle.PicklingError, match="local function"):
        pickle.dumps(local.bind(x)[0])


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_negative_strides(engine):
    """Such arrays are copied, and copied back if the kernel may write to them."""
    kernel = times.with_options(engine=engine)
    memory, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    kernel(memory[::-2], y[16:][::-1], FACTOR=3)
    assert y.tolist() == [*[0] * 16, *(4 * memory[1::2])]
    held = y[:16][::-1]
    held.flags.writeable = False
    kernel(held, memory[:16], FACTOR=3)
    assert not memory[:16].any()
    with pytest.raises((ValueError, xegpu_py.DiagnosticError), match="read-only"):
        kernel(memory[16:], held, FACTOR=3)
    assert not held.any()


def test_listings(monkeypatch):
    x = np.ones((8, 32), F32)

    @xegpu_py.language.tile_kernel((np.float32, (8, 32)))
    def double(X):
        X.tile((8, 32), at=(0, 0)).store(X.tile((8, 32), at=(0, 0)).load() * 2)

    double(x)
    assert list(double.asm)[:3] == ["xetile", "xegpu", "visa"]
    assert "xetile.load_tile" in double.asm["xetile"] and "xegpu.load_nd" in double.asm["xegpu"]
    assert "lsc_load_block2d" in double.asm["visa"]
    if available(xegpu_py.target.DEFAULT):
        assert "//.instCount" in double.asm["gen"] and "gen" in double.asm
    with pytest.raises(KeyError):
        double.asm["ptx"]
    monkeypatch.setenv("XEGPU_PY_ORACLES", "off")
    assert list(double.asm) == ["xetile", "xegpu", "visa"]
    with pytest.raises(FinalizerMissing, match="is not installed"):
        double.asm["gen"]


CONFIGS = [Config({"BLOCK": 16}), Config({"BLOCK": 64}, {"registers": 128}), Config({"BLOCK": 32})]


@xegpu_py.autotune(CONFIGS, key=["n"], objective="executed")
@xegpu_py.jit
def tuned(X, Y, n, BLOCK: Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    xl.store(Y + i, xl.load(Y + i, mask=i < n) + xl.load(X + i, mask=i < n), mask=i < n)


def test_autotune_tries_on_copies_and_remembers():
    x, y = np.arange(100, dtype=F32), np.ones(100, F32)
    launch = tuned[lambda a: xl.cdiv(a["n"], a["BLOCK"])]
    launch(x, y, 100)
    np.testing.assert_array_equal(y, x + 1)
    (key,) = tuned.best
    costs = [cost for _, cost in tuned.costs[key]]
    assert len(costs) == 3 and len(set(costs)) > 1
    assert tuned.best[key] is tuned.configs[costs.index(min(costs))]
    launch(x, y, 100)
    launch(x[:50], y[:50], 50)
    assert [k[0] for k in tuned.best] == [100, 50]
    with pytest.raises(TypeError, match="the key of autotune names n"):
        tuned(x, y)


def test_the_table_of_autotune(monkeypatch, capsys):
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    kernel = xegpu_py.autotune(CONFIGS, ["n"], objective="size")(xegpu_py.jit(tuned.__kernel_function__))
    x = np.arange(100, dtype=F32)
    kernel[lambda a: xl.cdiv(a["n"], a["BLOCK"])](x, np.zeros_like(x), 100)
    title, *rows = kernel.table().splitlines()
    assert title.endswith(f"(n=100): the cost of {len(CONFIGS)} candidates")
    (costs,) = kernel.costs.values()
    assert [float(row.split()[0]) for row in rows] == sorted(cost for _, cost in costs)
    assert all(str(config) in "".join(rows) for config in CONFIGS)
    assert kernel.table() + "\n" in capsys.readouterr().err
    assert all(row.split()[1] == "instructions" for row in rows)


@pytest.mark.parametrize("unit, scale, options", [("us", 1e6, {}), ("ms", 1, {"warmup": 1, "rep": 1}), ("", 1, None)])
def test_the_table_of_autotune_has_units(unit, scale, options):
    options = {"objective": lambda run: 0.5} if options is None else options
    kernel = xegpu_py.autotune(CONFIGS[:1], ["n"], **options)(xegpu_py.jit(tuned.__kernel_function__))
    x = np.arange(100, dtype=F32)
    kernel[lambda a: xl.cdiv(a["n"], a["BLOCK"])](x, np.zeros_like(x), 100)
    (((config, cost),),) = kernel.costs.values()
    assert kernel.table().splitlines()[1].split() == [*f"{cost * scale:.6g} {unit}".split(), str(config)]


@pytest.mark.parametrize("objective", ["time", "size", lambda run: -run.configuration.values["BLOCK"]])
def test_objectives(objective):
    kernel = xegpu_py.autotune(CONFIGS, ["n"], objective=objective, prune=lambda configs, given: configs[:2])(
        xegpu_py.jit(tuned.__kernel_function__)
    )
    x, y = np.arange(100, dtype=F32), np.ones(100, F32)
    kernel[lambda a: xl.cdiv(a["n"], a["BLOCK"])](x, y, 100)
    np.testing.assert_array_equal(y, x + 1)
    (chosen,) = kernel.best.values()
    if objective != "time":
        assert chosen is CONFIGS[0 if objective == "size" else 1]


def test_candidates_that_cannot_be_compiled_are_left_out():
    def kernel(X, BLOCK: Constexpr):
        assert BLOCK < 32
        X[0] = BLOCK

    x = np.zeros(1, np.int32)
    both = [Config({"BLOCK": 64}), Config({"BLOCK": 8})]
    xegpu_py.autotune(both, objective="size")(xegpu_py.jit(kernel))(x)
    assert x[0] == 8
    with pytest.raises(xegpu_py.DiagnosticError, match="assertion failed"):
        xegpu_py.autotune(both[:1])(xegpu_py.jit(kernel))(x)
    with pytest.raises(
        ValueError,
        match="'objective' must be a function, one of model, .* or one of time, executed, size, but got 'speed'",
    ):
        xegpu_py.autotune(both, objective="speed")


@pytest.mark.parametrize("outer", ["autotune", "heuristics"])
def test_heuristics(outer):
    def fill(X, n, BLOCK: Constexpr, EVEN: Constexpr):
        i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
        xl.store(X + i, xl.full((BLOCK,), 1 if EVEN else 2, np.int32), mask=None if EVEN else i < n)

    tune = xegpu_py.autotune([Config({"BLOCK": 16}), Config({"BLOCK": 32})], ["n"], objective="size")
    rules = {"EVEN": lambda a: a["n"] % 16 == 0}
    if outer == "autotune":
        kernel = tune(xegpu_py.heuristics({"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})(xegpu_py.jit(fill)))
    else:
        kernel = xegpu_py.heuristics(rules)(tune(xegpu_py.jit(fill)))
    for n in (48, 50):
        x = np.zeros(64, np.int32)
        kernel[lambda a: xl.cdiv(a["n"], a["BLOCK"])](x, n)
        assert x[:n].tolist() == [1 + n % 16 // 2] * n and not x[n:].any()


def test_tuned_kernels_have_the_methods_of_kernels():
    best = {"objective": lambda run: -run.configuration.values["BLOCK"]}
    kernel = xegpu_py.autotune(CONFIGS, ["n"], **best)(xegpu_py.jit(tuned.__kernel_function__))
    kernel = xegpu_py.heuristics({"n": lambda a: a["X"].shape[0]})(kernel)
    x, y = np.arange(100, dtype=F32), np.ones(100, F32)
    launch = kernel[lambda a: xl.cdiv(a["n"], a["BLOCK"])]
    found = launch.profile(x, y)
    np.testing.assert_array_equal(y, x + 1)
    assert found.registers == launch.func.compile(x, y).options.registers == 128
    chosen, given = kernel.chosen((x, y), {})
    assert (given["n"], given["BLOCK"], chosen.compile(**given).options.registers) == (100, 64, 128)


@pytest.mark.parametrize("strict", [False, True])
def test_registers_over_the_limit(strict):
    """One warning for each version, with the line of the highest register pressure; an error with `strict_grf`."""

    @xegpu_py.jit(strict_grf=strict, registers=128, subgroups=1)
    def needs_many(X, Y):
        a, b = X.tile((64, 64), at=(0, 0)).load(), X.tile((64, 64), at=(64, 0)).load()
        Y.tile((64, 64), at=(0, 0)).store(xl.maximum(a, b) + a)
        Y.tile((64, 64), at=(64, 0)).store(a - b)

    x, y = np.ones((128, 64), F32), np.zeros((128, 64), F32)
    if strict:
        with pytest.raises(xegpu_py.DiagnosticError, match=r"'needs_many' does not fit: register pressure \d+ of 128"):
            needs_many(x, y)
        return
    with pytest.warns(UserWarning, match=r"register pressure \d+ of 128 GRFs; .* more subgroups than 1") as found:
        needs_many(x, y)
        needs_many(x, y)
    assert len(found) == 1 and found[0].filename == __file__
    assert "variables" not in str(found[0].message)


@xegpu_py.autotune([Config({"BLOCK": 16}), Config({"BLOCK": 32})], key=[], objective="executed")
@xegpu_py.jit
def doubled_in_place(arrays, BLOCK: Constexpr):
    place = xl.load(arrays + xl.program_id(0)).to(xl.pointer_type(xl.int32)) + xl.arange(0, BLOCK)
    for i in range(0, 64, BLOCK):
        xl.store(place + i, xl.load(place + i) * 2)


def test_arrays_of_tables_are_copied_for_trials():
    arrays = [np.arange(64, dtype=np.int32), np.arange(64, 128, dtype=np.int32)]
    doubled_in_place[(2,)](xegpu_py.PointerTable(arrays))
    np.testing.assert_array_equal(np.concatenate(arrays), np.arange(128) * 2)
    (moved,) = [pickle.loads(pickle.dumps(xegpu_py.PointerTable(arrays)))]
    np.testing.assert_array_equal(moved.arrays[1], arrays[1])


# Idioms of Triton's files.

SIXTEEN = xl.constexpr(16)


@pytest.mark.parametrize("engine", ["eager", "both"])
def test_idioms_of_pointers(engine):
    def kernel(X, OUT, n, great):
        four: xl.constexpr = 4
        first = xl.load(X).to(X.dtype.element_ty)
        xl.store(OUT, first + n.to(xl.uint64) + xl.next_power_of_2(SIXTEEN - 3) + four)
        xl.atomic_add(OUT, 1)
        assert X.type.element_ty.primitive_bitwidth == 64 and X.dtype.is_int() and not X.dtype.is_floating()
        xl.store(OUT + 1, (xl.zeros((1,), xl.uint64) + great) >> 60)

    x, out = np.array([1, 2], np.uint64), np.zeros(2, np.uint64)
    made = xegpu_py.jit(kernel, engine=engine, do_not_specialize=["n"], debug=True, noinline=True)
    made[(1,)](x, out, np.uint64(1), 2**63 + 2**61, num_warps=4, num_stages=3, num_ctas=1)
    assert out.tolist() == [1 + 1 + 16 + 4 + 1, 10]
    made[(1,)](x, out, np.uint64(3), 2**63)
    assert len(made.versions) == 1, "n is not specialized"
    with pytest.raises(OverflowError, match="argument 'great': no integer type holds"):
        made(x, out, 1, 2**64)


def moved(A, OUT, K, STRIDES: Constexpr):
    first = xl.make_block_ptr(A, shape=(8, 64), strides=STRIDES, offsets=(0, 0), block_shape=(8, 16), order=(1, 0))
    pointer, total = first, xl.zeros((8, 16), xl.float32)
    for k in range(0, K, 16):
        total += xl.load(pointer)
        # The first one stays where it is.
        pointer = xl.advance(pointer, (0, 16)) if k < 32 else xl.advance(first, (0, 0))
    xl.store(OUT.tile((8, 16), at=(0, 0)), total + 100 * xl.load(first))


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["eager", "reference", "both"])
@pytest.mark.parametrize("strides", [(64, 1), (128, 2), (1, 8)])
def test_advance_gives_another_tile(engine, strides):
    memory = np.arange(8 * 128, dtype=F32)
    view = np.lib.stride_tricks.as_strided(memory, (8, 64), [4 * s for s in strides])
    out = np.zeros((8, 16), F32)
    xegpu_py.jit(moved, engine=engine)(memory, out, 64, STRIDES=strides)
    parts = view.reshape(8, 4, 16)
    np.testing.assert_array_equal(out, parts[:, 0] * 100 + parts[:, :3].sum(1) + parts[:, 0])


@pytest.mark.parametrize("engine", ["eager", "jit"])
@pytest.mark.parametrize("objective", ["executed", "time", "size"])
def test_options_of_tritons_autotune(engine, objective):
    hooks, pruned = [], []

    def early(configs, named, **keywords):
        pruned.append((named["n"], keywords["n"]))
        return configs[1:]

    def model(BLOCK, n, num_warps, **others):
        return -BLOCK

    @xegpu_py.autotune(
        [Config({"BLOCK": n}, num_warps=4, num_stages=3, pre_hook=hooks.append) for n in (16, 32, 64)],
        key=["n"],
        prune_configs_by={"early_config_prune": early, "perf_model": model, "top_k": 1},
        reset_to_zero=["Y"],
        restore_value=["X"],
        post_hook=hooks.append,
        warmup=1,
        rep=1,
        objective=objective,
    )
    @xegpu_py.jit(engine=engine)
    def accumulate(X, Y, n, BLOCK: Constexpr, num_warps: Constexpr):
        i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
        x = xl.load(X + i, mask=i < n)
        xl.device_assert((xl.load(Y + i, mask=i < n) == 0) & ((x == i) | (i >= n)) & (num_warps == 4))
        xl.atomic_add(Y + i, x, mask=i < n)
        xl.store(X + i, x + 1, mask=i < n)

    x, y = np.arange(100, dtype=F32), np.zeros(100, F32)
    accumulate[lambda a: xl.cdiv(100, a["BLOCK"])](x, y, 100)
    np.testing.assert_array_equal(x, y + 1)
    ((config, _),) = next(iter(accumulate.costs.values()))
    assert config.all_kwargs() == {"BLOCK": 64, "num_warps": 4, "num_stages": 3}
    assert pruned == [(100, 100)] and len(hooks) % 2 == 0
    assert hooks[-1]["Y"] is y and all(given["Y"] is not y for given in hooks[:-2])


@pytest.mark.parametrize(
    ("rules", "blocks"),
    [
        ({}, [16, 64, 32, 128]),
        ({"perf_model": lambda BLOCK, **others: -BLOCK}, [16, 64, 32, 128]),
        ({"perf_model": lambda BLOCK, **others: -BLOCK, "top_k": 3}, [128, 64, 32]),
        ({"perf_model": lambda BLOCK, **others: -BLOCK, "top_k": 4}, [16, 64, 32, 128]),
        ({"perf_model": lambda BLOCK, n, **others: BLOCK * n, "top_k": 0.5}, [16, 32]),
        ({"perf_model": lambda BLOCK, n, **others: -BLOCK * n, "top_k": 0.3}, [128]),
        ({"top_k": 1}, [16, 64, 32, 128]),
        ({"early_config_prune": lambda configs, named, **others: configs[1:3], "top_k": 1}, [64, 32]),
    ],
)
def test_candidates_that_tritons_rules_leave(rules, blocks):
    prune = autotune_module._by_triton(rules)
    configs = [Config({"BLOCK": n}) for n in (16, 64, 32, 128)]
    assert [config.all_kwargs()["BLOCK"] for config in prune(configs, {"n": 7})] == blocks


def test_each_failure_of_tuning_is_listed():
    def kernel(X, BLOCK: Constexpr):
        xl.static_assert(BLOCK > 3, "too small")
        X[0] = nothing  # noqa: F821

    configs = [Config({"BLOCK": n}, num_warps=n) for n in (2, 4)]
    with pytest.raises(xegpu_py.DiagnosticError) as caught:
        xegpu_py.autotune(configs, objective="size")(xegpu_py.jit(kernel))(np.zeros(1, F32))
    assert [d.message for d in caught.value.diagnostics] == [
        "all configurations of kernel 'kernel' failed",
        "Config(BLOCK=2, num_warps=2): static assertion failed: too small",
        "Config(BLOCK=4, num_warps=4): name 'nothing' is not defined",
    ]
    for wrong, message in (
        (
            {"configs": [{"BLOCK": 3}]},
            "'configs' must be a list of which each element is a Config or a Space, but got ",
        ),
        (
            {"configs": [Config({"BLOK": 3})]},
            r"Config\(BLOK=3\) names 'BLOK', but kernel 'kernel' has no such parameter",
        ),
        ({"configs": configs, "key": ["n"]}, "autotune names 'n', but kernel 'kernel' has no such parameter"),
    ):
        with pytest.raises(TypeError, match=message):
            xegpu_py.autotune(**wrong)(xegpu_py.jit(kernel))
    with pytest.raises(ValueError, match="'prune_configs_by' has .*, not early"):
        xegpu_py.autotune(configs, prune_configs_by={"early": None})


def test_times_of_functions():
    calls = []
    assert xegpu_py.testing.do_bench(lambda: calls.append(1), warmup=0, rep=0, return_mode="min") > 0
    assert len(calls) == 3
    low, high = xegpu_py.testing.do_bench(lambda: None, 1, 1, quantiles=[0.1, 0.9])
    assert 0 < low <= high
    with pytest.raises(ValueError, match="'return_mode' must be one of min, max, mean, median, all"):
        xegpu_py.testing.do_bench(lambda: None, return_mode="most")
    assert [xegpu_py.next_power_of_2(n) for n in (1, 2, 3, 16, 100)] == [1, 2, 4, 16, 128]


@pytest.mark.parametrize("engine", ["eager", "reference", "both"])
def test_tuples_of_arrays(engine):
    def total(XS, OUT, pair, N: Constexpr):
        i = xl.arange(0, N)
        (first, (second, factor)), found = XS, xl.zeros((N,), xl.float32)
        for x in (first, second):
            found += xl.load(x + i) * factor
        xl.store(OUT[0] + i, found + pair[1])

    kernel = xegpu_py.jit(total, engine=engine)
    x, y, out = np.arange(16, dtype=F32), np.arange(16, dtype=np.int32), np.zeros(16, F32)
    kernel((x, (y, 3)), (out,), (1, 2), N=16)
    np.testing.assert_array_equal(out, x * 6 + 2)
    kernel((y, (x, 0.5)), (out,), (1, 2), N=16)
    np.testing.assert_array_equal(out, x + 2)
    assert len(kernel.versions) == 2
    with pytest.raises(TypeError, match=r"argument 'OUT\[0\]' of kernel 'total' must not have a negative stride"):
        kernel((y, (x, 0.5)), (out[::-1],), (1, 2), N=16)
    with pytest.raises(TypeError, match=r"argument 'XS\[1\]\[0\]' of kernel 'total' must be an array of numbers"):
        kernel((y, (x.astype(object), 0.5)), (out,), (1, 2), N=16)


def test_trials_copy_arrays_in_tuples():
    @xegpu_py.autotune([Config({"BLOCK": 16}), Config({"BLOCK": 32})], objective="executed")
    @xegpu_py.jit
    def more(XS, BLOCK: Constexpr):
        xl.atomic_add(XS[0] + xl.arange(0, BLOCK), 1)

    x = np.zeros(32, F32)
    more((x,))
    assert set(x) <= {0, 1}
