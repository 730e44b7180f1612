"""Minima and maxima of floats: maximumf gives NaN if either operand is one, maxnumf then gives the other operand."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import xegpu_py

KINDS = ("maximumf", "minimumf", "maxnumf", "minnumf")
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
SPECIAL = (np.nan, 0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 6e-8)


def expected(kind, a, b):
    """The minimum or maximum of two arrays; -0 is less than +0, and a NaN is the canonical one."""
    if kind.startswith("max"):
        found = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
    else:
        found = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    if "num" in kind:
        return np.where(np.isnan(a), b, np.where(np.isnan(b), a, found))
    return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), found)


def bits(values):
    return values.view(f"u{values.itemsize}")


def pairs(dtype):
    a, b = (np.array(x, dtype) for x in zip(*itertools.product(SPECIAL, repeat=2)))
    return a, b


ATOMIC = """
gpu.module @m {{
  gpu.func @k(%m: memref<?x{t}>, %values: memref<?x{t}>, %places: memref<?xi32>, %enabled: memref<?xi32>,
              %before: memref<?x{t}>) kernel {{
    %c16 = arith.constant 16 : index
    %zero = arith.constant dense<0> : vector<16xi32>
    %bx = gpu.block_id x
    %at = arith.muli %bx, %c16 : index
    %none = arith.constant 0.0 : {t}
    %no = arith.constant 0 : i32
    %v = vector.transfer_read %values[%at], %none {{in_bounds = [true]}} : memref<?x{t}>, vector<16x{t}>
    %p = vector.transfer_read %places[%at], %no {{in_bounds = [true]}} : memref<?xi32>, vector<16xi32>
    %e = vector.transfer_read %enabled[%at], %no {{in_bounds = [true]}} : memref<?xi32>, vector<16xi32>
    %mask = arith.cmpi ne, %e, %zero : vector<16xi32>
    %offsets = arith.index_cast %p : vector<16xi32> to vector<16xindex>
    %lanes = xegpu.create_tdesc %m, %offsets {{mode = vc}}
      : memref<?x{t}>, vector<16xindex> -> !xegpu.tensor_desc<16x{t}, #xegpu.scattered>
    %r = xegpu.atomic_rmw {kind}, %v, %lanes, %mask {{mode = vc}} : vector<16x{t}>,
      !xegpu.tensor_desc<16x{t}, #xegpu.scattered>, vector<16xi1> -> vector<16x{t}>
    vector.transfer_write %r, %before[%at] {{in_bounds = [true]}} : vector<16x{t}>, memref<?x{t}>
    gpu.return
  }}
}}
"""


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("t", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_atomic_updates(kind, t):
    memory, values = pairs(DTYPES[t])
    n = len(memory)
    places, enabled, before = np.arange(n, dtype=np.int32), np.ones(n, np.int32), np.zeros(n, DTYPES[t])
    enabled[5::7] = 0
    changed = memory.copy()
    kernel = xegpu_py.compile(ATOMIC.format(kind=kind, t=t), target="pvc", engine="both")
    kernel(changed, values, places, enabled, before, grid=n // 16)
    on = enabled != 0
    np.testing.assert_array_equal(bits(changed), bits(np.where(on, expected(kind, memory, values), memory)))
    np.testing.assert_array_equal(bits(before)[on], bits(memory)[on])


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
@pytest.mark.parametrize("kind", KINDS)
def test_updates_of_one_element_by_all_lanes_and_threads(kind, engine):
    """The last value does not depend on the order of the updates; the values that they found do."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal(1024).astype(np.float32)
    for column, special in enumerate((np.nan, -0.0)):
        values[column::64] = special
    places = np.tile(np.arange(8, dtype=np.int32), len(values) // 8)
    memory, before = np.zeros(8, np.float32), np.zeros_like(values)
    kernel = xegpu_py.compile(ATOMIC.format(kind=kind, t="f32"), target="pvc", engine=engine)
    kernel(memory, values, places, np.ones_like(places), before, grid=len(values) // 16)
    whole = np.zeros(8, np.float32)
    for row in values.reshape(-1, 8):
        whole = expected(kind, whole, row)
    np.testing.assert_array_equal(bits(memory), bits(whole))


@pytest.mark.parametrize("simt", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_memref_atomic(kind, simt):
    """One update a thread, or one a work item."""
    attributes = "attributes {xegpu.subgroup_size = 16 : i32}" * simt
    text = f"""
gpu.module @m {{
  gpu.func @k(%m: memref<?xf32>, %values: memref<?xf32>) kernel {attributes} {{
    %id = gpu.global_id x
    %v = memref.load %values[%id] : memref<?xf32>
    %old = memref.atomic_rmw {kind} %v, %m[%id] : (f32, memref<?xf32>) -> f32
    memref.store %old, %values[%id] : memref<?xf32>
    gpu.return
  }}
}}
"""
    memory, values = pairs(np.float32)
    changed, before = memory.copy(), values.copy()
    kernel = xegpu_py.compile(text, target="pvc", engine="both")
    kernel(changed, before, grid=len(memory) // 16, block=16)
    np.testing.assert_array_equal(bits(changed), bits(expected(kind, memory, values)))
    np.testing.assert_array_equal(bits(before), bits(memory))


@pytest.mark.each_value
@pytest.mark.parametrize("space", ["", ", 3"])
@pytest.mark.parametrize(
    ("kind", "t"),
    [("addf", "f32"), ("addf", "f64"), ("addf", "bf16"), ("mulf", "f16"), ("mulf", "f64"), ("muli", "i16"),
     ("muli", "i32"), ("muli", "i64"), ("addi", "i64"), ("assign", "f64"), ("maxs", "i64"), ("minnumf", "f64")],
)  # fmt: skip
def test_atomic_updates_without_a_message(kind, t, space):
    """In global and in shared local memory. A lane whose compare and swap fails tries again."""
    dtype = {"bf16": ml_dtypes.bfloat16, "i16": np.int16, "i32": np.int32, "i64": np.int64, **DTYPES}[t]
    text = f"""
gpu.module @m {{
  gpu.func @k(%m: memref<4x{t}>, %values: memref<16x{t}>) kernel {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant {"0.0" if t[0] in "fb" else "0"} : {t}
    %v = vector.transfer_read %values[%c0], %zero {{in_bounds = [true]}} : memref<16x{t}>, vector<16x{t}>
    %start = vector.transfer_read %m[%c0], %zero {{in_bounds = [true]}} : memref<4x{t}>, vector<4x{t}>
    %buffer = {f"memref.alloc() : memref<4x{t}, 3>" if space else f"memref.cast %m : memref<4x{t}> to memref<4x{t}>"}
    vector.transfer_write %start, %buffer[%c0] {{in_bounds = [true]}} : vector<4x{t}>, memref<4x{t}{space}>
    gpu.barrier
    %offsets = arith.constant dense<[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]> : vector<16xindex>
    %mask = arith.constant dense<true> : vector<16xi1>
    %lanes = xegpu.create_tdesc %buffer, %offsets {{mode = vc}} : memref<4x{t}{space}>, vector<16xindex>
      -> !xegpu.tensor_desc<16x{t}, #xegpu.tdesc_attr<{"memory_scope = slm, " * bool(space)}#xegpu.scattered>>
    %r = xegpu.atomic_rmw {kind}, %v, %lanes, %mask {{mode = vc}} : vector<16x{t}>,
      !xegpu.tensor_desc<16x{t}, #xegpu.tdesc_attr<{"memory_scope = slm, " * bool(space)}#xegpu.scattered>>,
      vector<16xi1> -> vector<16x{t}>
    gpu.barrier
    %end = vector.transfer_read %buffer[%c0], %zero {{in_bounds = [true]}} : memref<4x{t}{space}>, vector<4x{t}>
    vector.transfer_write %end, %m[%c0] {{in_bounds = [true]}} : vector<4x{t}>, memref<4x{t}>
    gpu.return
  }}
}}
"""
    rng = np.random.default_rng(0)
    memory, values = rng.integers(-9, 9, 4).astype(dtype), rng.integers(-5, 5, 16).astype(dtype)
    wanted = memory.copy()
    combine = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "ass": lambda a, b: b,
        "max": np.maximum,
        "min": np.minimum,
    }[kind[:3]]
    for row in values.reshape(4, 4):
        wanted = combine(wanted, row).astype(dtype)
    xegpu_py.compile(text, target="pvc", engine="both")(memory, values, grid=1)
    np.testing.assert_array_equal(memory, wanted)


def folded(kind, rows):
    found = rows[0]
    for row in rows[1:]:
        found = expected(kind, found, row)
    return found


REDUCTIONS = {
    "vector.reduction": """
    %v = vector.transfer_read %m[%c0, %c0], %z {{in_bounds = [true, true]}} : memref<16x16x{t}>, vector<16x16x{t}>
    %flat = vector.shape_cast %v : vector<16x16x{t}> to vector<256x{t}>
    %r = vector.reduction <{kind}>, %flat : vector<256x{t}> into {t}
    memref.store %r, %o[%c0] : memref<16x{t}>""",
    "vector.multi_reduction": """
    %v = vector.transfer_read %m[%c0, %c0], %z {{in_bounds = [true, true]}} : memref<16x16x{t}>, vector<16x16x{t}>
    %first = vector.extract %v[0] : vector<16x{t}> from vector<16x16x{t}>
    %r = vector.multi_reduction <{kind}>, %v, %first [0] : vector<16x16x{t}> to vector<16x{t}>
    vector.transfer_write %r, %o[%c0] {{in_bounds = [true]}} : vector<16x{t}>, memref<16x{t}>""",
    "xetile.reduction": """
    %t = xetile.init_tile %m[0, 0] : memref<16x16x{t}> -> !xetile.tile<16x16x{t}>
    %v = xetile.load_tile %t : !xetile.tile<16x16x{t}> -> vector<16x16x{t}>
    %r = xetile.reduction <{kind}>, %v [0] : vector<16x16x{t}> -> vector<1x16x{t}>
    %lines = memref.expand_shape %o [[0, 1]] output_shape [1, 16] : memref<16x{t}> into memref<1x16x{t}>
    %u = xetile.init_tile %lines[0, 0] : memref<1x16x{t}> -> !xetile.tile<1x16x{t}>
    xetile.store_tile %r, %u : vector<1x16x{t}>, !xetile.tile<1x16x{t}>""",
}


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("t", ["f16", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", REDUCTIONS)
def test_reductions(form, kind, t):
    """Also reductions of NaNs only."""
    body = REDUCTIONS[form].format(kind=kind, t=t)
    text = f"""
gpu.module @m {{
  gpu.func @k(%m: memref<16x16x{t}>, %o: memref<16x{t}>) kernel {{
    %c0 = arith.constant 0 : index
    %z = arith.constant 0.0 : {t}
    {body}
    gpu.return
  }}
}}
"""
    kernel = xegpu_py.compile(text, target="pvc", engine="both")
    rng = np.random.default_rng(0)
    values = np.array(SPECIAL, DTYPES[t])[rng.integers(1, len(SPECIAL), (16, 16))]
    values[rng.random((16, 16)) < 0.1] = np.nan
    values[:, 3] = np.nan
    for matrix in (values, np.full_like(values, np.nan)):
        rows = [row[:1] for row in matrix.reshape(-1, 1)] if form == "vector.reduction" else list(matrix)
        wanted = folded(kind, rows)
        out = np.zeros(16, DTYPES[t])
        kernel(matrix, out, grid=1)
        np.testing.assert_array_equal(bits(out)[: len(wanted)], bits(wanted))


@pytest.mark.parametrize("block", [16, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_reductions_of_a_subgroup(kind, block):
    """Lanes that the workgroup's last subgroup lacks change nothing."""
    text = f"""
gpu.module @m {{
  gpu.func @k(%m: memref<16xf32>, %o: memref<16xf32>) kernel attributes {{xegpu.subgroup_size = 16 : i32}} {{
    %i = gpu.thread_id x
    %v = memref.load %m[%i] : memref<16xf32>
    %r = gpu.subgroup_reduce {kind} %v : (f32) -> f32
    memref.store %r, %o[%i] : memref<16xf32>
    gpu.return
  }}
}}
"""
    kernel = xegpu_py.compile(text, target="pvc", engine="both")
    for values in (SPECIAL * 2, [np.nan] * 16, [-np.inf] * 16, [-0.0] * 16):
        values = np.array(values, np.float32)
        out = np.zeros(16, np.float32)
        kernel(values, out, grid=1, block=block)
        wanted = folded(kind, list(values[:block]))
        np.testing.assert_array_equal(bits(out)[:block], np.repeat(bits(wanted.reshape(1)), block))


@pytest.mark.parametrize("t", DTYPES)
def test_copysign(t):
    """Also the sign of NaN and of zeros."""
    a, b = (np.concatenate([v, -v]).astype(DTYPES[t]) for v in pairs(DTYPES[t]))
    text = f"""
gpu.module @m {{
  gpu.func @k(%a: memref<128x{t}>, %b: memref<128x{t}>) kernel {{
    %c0 = arith.constant 0 : index
    %z = arith.constant 0.0 : {t}
    %x = vector.transfer_read %a[%c0], %z {{in_bounds = [true]}} : memref<128x{t}>, vector<128x{t}>
    %y = vector.transfer_read %b[%c0], %z {{in_bounds = [true]}} : memref<128x{t}>, vector<128x{t}>
    %r = math.copysign %x, %y : vector<128x{t}>
    vector.transfer_write %r, %a[%c0] {{in_bounds = [true]}} : vector<128x{t}>, memref<128x{t}>
    gpu.return
  }}
}}
"""
    top = bits(a).dtype.type(1 << (8 * a.itemsize - 1))
    wanted = (bits(a) & ~top) | (bits(b) & top)
    xegpu_py.compile(text, target="pvc", engine="both")(a, b, grid=1)
    np.testing.assert_array_equal(bits(a), wanted)


@pytest.mark.parametrize(("t", "nan"), [("bf16", 0x7FEA), ("f16", 0xFD01), ("f32", 0xFFC00001)])
def test_choices_keep_the_bits_of_nans(t, nan):
    """Of elements in memory, and of constants."""
    text = f"""gpu.module @kernels {{
  gpu.func @k(%a: memref<16x{t}>, %o: memref<16x{t}>) kernel {{
    %c = arith.constant 0 : index
    %n = arith.constant dense<{nan:#x}> : vector<16x{t}>
    %m = arith.constant dense<[{", ".join(["true", "false"] * 8)}]> : vector<16xi1>
    %v = vector.load %a[%c] : memref<16x{t}>, vector<16x{t}>
    %s = arith.select %m, %v, %n : vector<16xi1>, vector<16x{t}>
    vector.store %s, %o[%c] : memref<16x{t}>, vector<16x{t}>
    gpu.return
  }}
}}"""
    words = np.uint32 if t == "f32" else np.uint16
    a, out = np.full(16, nan ^ 3, words), np.zeros(16, words)
    xegpu_py.compile(text, engine="both")(a.view(DTYPES[t]), out.view(DTYPES[t]))
    np.testing.assert_array_equal(out, np.where(np.arange(16) % 2, nan, a))
