"""Kernels of XeTile, lowered and run, against numpy models that know nothing of tiles."""

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
from xegpu_py.numerics.rounding import fma_f32

FOLDER = Path(__file__).parents[2] / "run"
BF16 = ml_dtypes.bfloat16
RNG = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def wide(x):
    return x.astype(np.float64)


def product(a, b, c=None):
    """A x B + C, each product added in increasing k with one rounding to f32: what the systolic array computes."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32) if c is None else c
    for k in range(a.shape[1]):
        total = fma_f32(np.outer(wide(a[:, k]), wide(b[k])), total)
    return total


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def gelu(z):
    return z / 2 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))


def layer_norm(x, gamma, beta):
    off = x - x.mean(1, keepdims=True)
    return off / np.sqrt((off**2).mean(1, keepdims=True) + 1e-5) * gamma + beta


def fused(a, scale, b, by, bias, out):
    left = (a.astype(np.float32) * scale).astype(BF16)
    right = (b.astype(np.float32) * by).astype(BF16)
    return gelu(wide(left) @ wide(right) + bias)


def scattered_add(where, what, out):
    found = np.zeros_like(out)
    np.add.at(found, where[where != 0], what[where != 0])
    return found


def column_major(a, b, c):
    return product(a.T, b.T, c.T.copy()).T


A, B = normal(256, 64, dtype=BF16), normal(64, 512, dtype=BF16)
RAGGED_A, RAGGED_B = normal(300, 88, dtype=BF16), normal(88, 280, dtype=BF16)
HALF = [normal(64, 64, dtype=np.float16) for _ in range(4)]
BATCH = normal(3, 64, 32, dtype=BF16), normal(3, 32, 64, dtype=BF16)
INTEGERS = [RNG.integers(-8, 9, s).astype(BF16) for s in ((64, 128), (128, 64))]
TALL, BROAD = normal(192, 64, dtype=BF16), normal(64, 256, dtype=BF16)
FUSED = [
    normal(50, 44, dtype=BF16),
    normal(50, 1),
    RNG.integers(-100, 100, (44, 72)).astype(np.int8),
    normal(1, 72) / 100,
    normal(1, 72),
]
MATRIX, SQUARE, WIDE = normal(32, 64), normal(64, 64), normal(70, 100)
ROWS, GAMMA, BETA = normal(64, 256) + 3, normal(1, 256), normal(1, 256)
QUERIES, KEYS, VALUES = (normal(n, 64, dtype=BF16) for n in (128, 256, 256))
WHERE, WHAT = RNG.integers(0, 300, 256).astype(np.int32), RNG.integers(-8, 9, 256).astype(np.float32)


def empty(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


# file: arguments, grid, block, model of the last ones, tolerance
KERNELS = {
    "gemm": ([A, B, empty(256, 512)], (1, 2), 32, lambda a, b, c: [product(a, b)], 0),
    "gemm ragged": ([RAGGED_A, RAGGED_B, empty(300, 280)], (2, 2), 32, lambda a, b, c: [product(a, b)], 0),
    "gemm_transposed": ([HALF[0], HALF[1], empty(64, 64)], 1, 4, lambda a, b, c: [product(a.T, b.T)], 0),
    "gemm_column_major": (
        [HALF[0], HALF[1], SQUARE.copy()],
        1,
        4,
        lambda a, b, c: [column_major(a, b, c)],
        0,
    ),
    "gemm_batch": (
        [*BATCH, empty(3, 64, 64)],
        (1, 1, 3),
        4,
        lambda a, b, c: [np.stack([product(x, y) for x, y in zip(a, b)])],
        0,
    ),
    "gemm_fused": ([*FUSED, empty(50, 72, dtype=BF16)], (2, 3), 4, lambda *a: [fused(*a)], 1e-2),
    "gemm_split_k": ([*INTEGERS, empty(64, 64)], (1, 1, 4), 4, lambda a, b, c: [wide(a) @ wide(b)], 0),
    "gemm_persistent": ([TALL, BROAD, empty(192, 256)], 5, 4, lambda a, b, c: [product(a, b)], 0),
    "reductions": (
        [MATRIX, empty(32, 1), empty(1, 64), empty(32, 8)],
        1,
        8,
        lambda x, *_: [x.sum(1, keepdims=True), x.max(0, keepdims=True), x.reshape(32, 8, 8).sum(2)],
        1e-5,
    ),
    "softmax": ([WIDE, empty(70, 100)], 3, 8, lambda x, y: [softmax(wide(x))], 1e-6),
    "layer_norm": ([ROWS, GAMMA, BETA, empty(64, 256)], 2, 8, lambda x, g, b, y: [layer_norm(wide(x), g, b)], 1e-5),
    "attention": (
        [QUERIES, KEYS, VALUES, empty(128, 64)],
        2,
        8,
        lambda q, k, v, o: [softmax(wide(q) @ wide(k).T / 8) @ wide(v)],
        5e-3,
    ),
    "slm": ([SQUARE[:32, :32].copy(), empty(32, 32), empty(32, 32)], 1, 4, lambda x, *_: [x, x.T], 0),
    "scattered_add": ([WHERE, WHAT, empty(300)], 2, 4, lambda *a: [scattered_add(*a)], 0),
}


def file_of(name):
    return FOLDER / f"xetile_{name.split()[0]}.mlir"


def test_every_file_is_tried():
    # Only target any multiplies f64, and numbers are arguments of the other; those files' own RUN lines check them.
    files = set(FOLDER.glob("xetile_*.mlir")) - {FOLDER / f"xetile_{n}.mlir" for n in ("gemm_f64", "given_surface")}
    assert files == {file_of(name) for name in KERNELS}


@pytest.mark.each_value
@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name, prefetch):
    arguments, grid, block, model, tolerance = KERNELS[name]
    given = [a.copy() for a in arguments]
    kernel = xegpu_py.compile(file_of(name), registers=256, check=["uninit", "races"], prefetch=prefetch)
    expected = model(*[a.copy() for a in arguments])
    kernel(*given, grid=grid, block=block)
    for found, wanted in zip(given[-len(expected) :], expected, strict=True):
        np.testing.assert_allclose(wide(found), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["gemm ragged", "gemm_persistent", "attention"])
def test_kernel_that_loads_ahead_leaves_the_same_bits(name):
    arguments, grid, block, *_ = KERNELS[name]
    left, loads = [], []
    for ahead in (False, True):
        given = [a.copy() for a in arguments]
        kernel = xegpu_py.compile(file_of(name), registers=256, load_ahead=ahead)
        kernel(*given, grid=grid, block=block)
        left.append(given[-1].tobytes())
        loads.append(kernel.ir("xegpu").count("xegpu.load_nd"))
    assert left[0] == left[1]
    # Those before the loop are additional.
    assert loads[0] < loads[1]


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_assembles_without_spills(name, native_of):
    # GenX_IR-2024 crashes on gemm_column_major for pvc, not for pvcxt or bmg.
    target = "pvcxt" if native_of.name == "GenX_IR-2024" else "pvc"
    kernel = xegpu_py.compile(file_of(name), target=target, registers=256)
    native = native_of(kernel.asm, target, registers=256)
    assert native.instructions > 0
    assert native.spill_bytes == 0


MAP = "wg_map = <sg_layout = [2, 2], sg_data = [8, 16]>"
DIVIDED = f"!xetile.tile<16x32xf32, #xetile.tile_attr<{MAP}>>"
SCATTERED = "#xetile.tile_attr<{}scattered = true>"
LOADED = f"""
    %source = xetile.init_tile %a[%c0, %c0] : memref<48x32xf32> -> {DIVIDED}
    %target = xetile.init_tile %o[%c0, %c0] : memref<48x32xf32> -> {DIVIDED}
    %v = xetile.load_tile %source : {DIVIDED} -> vector<16x32xf32>"""


def computed(body, *numbers, block=4):
    """What a kernel stores to %o, and its input, whose elements are small integers."""
    names = "".join(f", %{n}: index" for n in "ij"[: len(numbers)])
    text = f"""gpu.module @m {{
      gpu.func @k(%a: memref<48x32xf32>, %n: memref<16x32xindex>, %o: memref<48x32xf32>{names}) kernel {{
        %c0 = arith.constant 0 : index
        {body}
        gpu.return
      }} }}"""
    rng = np.random.default_rng(0)
    a, n, o = rng.integers(-9, 9, (48, 32)).astype(np.float32), rng.integers(0, 700, (16, 32)), empty(48, 32)
    o[:] = 0
    xegpu_py.compile(text, engine="both", cache="off")(a, n, o, *numbers, block=block)
    return a, n, o


@pytest.mark.parametrize(("kind", "function"), [("add", np.add), ("maximumf", np.maximum), ("mul", np.multiply)])
def test_matrix_reduced_to_a_scalar(kind, function):
    a, _, o = computed(f"""{LOADED}
        %s = arith.constant 1.5 : f32
        %k = arith.constant dense<1.0> : vector<16x32xf32>
        %u = arith.{"minimumf" if kind == "mul" else "addf"} %v, %k : vector<16x32xf32>
        %r = vector.multi_reduction <{kind}>, %u, %s [0, 1] : vector<16x32xf32> to f32
        memref.store %r, %o[%c0, %c0] : memref<48x32xf32>""")
    elements = np.minimum(a[:16], 1) if kind == "mul" else a[:16] + 1
    assert o[0, 0] == function.reduce([*elements.ravel(), 1.5])


@pytest.mark.parametrize("bounds", [(5, 7), (16, 32), (0, 3), (-2, 9), (12, 40), (9, 20)])
def test_mask_divided_among_subgroups(bounds):
    a, _, o = computed(f"""{LOADED}
        %mask = vector.create_mask %i, %j : vector<16x32xi1>
        %zeros = arith.constant dense<0.0> : vector<16x32xf32>
        %r = arith.select %mask, %v, %zeros : vector<16x32xi1>, vector<16x32xf32>
        xetile.store_tile %r, %target : vector<16x32xf32>, {DIVIDED}""", *bounds)  # fmt: skip
    rows, columns = (max(n, 0) for n in bounds)
    expected = np.zeros((48, 32))
    expected[:16][:rows, :columns] = a[:16][:rows, :columns]
    np.testing.assert_array_equal(o, expected)


def test_scattered_tile_divided_among_subgroups():
    """Each subgroup moves its lanes by its part of the offsets."""
    tile = f"!xetile.tile<16x32xf32, {SCATTERED.format(MAP + ', ')}>"
    a, n, o = computed(f"""{LOADED}
        %flat = memref.collapse_shape %a [[0, 1]] : memref<48x32xf32> into memref<1536xf32>
        %at = vector.load %n[%c0, %c0] : memref<16x32xindex>, vector<16x32xindex>
        %mask = arith.constant dense<true> : vector<16x32xi1>
        %t = xetile.init_tile %flat, %at : memref<1536xf32>, vector<16x32xindex> -> {tile}
        %u = xetile.update_tile_offset %t, %at : {tile}, vector<16x32xindex>
        xetile.prefetch_tile %u : {tile}
        %w = xetile.load %u, %mask : {tile}, vector<16x32xi1> -> vector<16x32xf32>
        xetile.store_tile %w, %target : vector<16x32xf32>, {DIVIDED}""")  # fmt: skip
    np.testing.assert_array_equal(o[:16], a.ravel()[2 * n])


@pytest.mark.parametrize("how", ["select", "if"])
@pytest.mark.parametrize("first", [0, 1])
def test_choice_of_tiles(first, how):
    tile = "!xetile.tile<8x16xf32>"
    scattered = f"!xetile.tile<4x16xf32, {SCATTERED.format('')}>"
    choice = f"""
        %x = xetile.init_tile %a[%c0, %i] : memref<48x32xf32> -> {tile}
        %y = xetile.init_tile %a[%c8, %c8] : memref<48x32xf32> -> {tile}
        %t = arith.select %p, %x, %y : {tile}
        %v = xetile.load_tile %t : {tile} -> vector<8x16xf32>
        %target = xetile.init_tile %o[%c0, %c0] : memref<48x32xf32> -> {tile}
        xetile.store_tile %v, %target : vector<8x16xf32>, {tile}"""
    if how == "if":
        choice = f"""
        %flat = memref.collapse_shape %a [[0, 1]] : memref<48x32xf32> into memref<1536xf32>
        %at = vector.load %n[%c0, %c0] : memref<16x32xindex>, vector<4x16xindex>
        %mask = arith.constant dense<true> : vector<4x16xi1>
        %t = scf.if %p -> {scattered} {{
          %x = xetile.init_tile %flat, %at : memref<1536xf32>, vector<4x16xindex> -> {scattered}
          scf.yield %x : {scattered}
        }} else {{
          %y = xetile.init_tile %flat, %at : memref<1536xf32>, vector<4x16xindex> -> {scattered}
          %u = xetile.update_tile_offset %y, %at : {scattered}, vector<4x16xindex>
          scf.yield %u : {scattered}
        }}
        %v = xetile.load %t, %mask : {scattered}, vector<4x16xi1> -> vector<4x16xf32>
        vector.store %v, %o[%c0, %c0] : memref<48x32xf32>, vector<4x16xf32>"""
    a, n, o = computed(f"""
        %c8 = arith.constant 8 : index
        %p = arith.cmpi ne, %i, %c0 : index
        {choice}""", first, block=1)  # fmt: skip
    if how == "if":
        np.testing.assert_array_equal(o[:4, :16], a.ravel()[n[:4, :16] * (1 if first else 2)])
    else:
        np.testing.assert_array_equal(o[:8, :16], a[:8, 1:17] if first else a[8:16, 8:24])


REARRANGED = {
    "sums of groups, repeated": (
        """%q = xetile.reduction <add>, %v [1] {reduction_size = 16 : i64} : vector<16x32xf32> -> vector<16x2xf32>
        %r = xetile.broadcast %q [1] {broadcast_size = 16 : i64} : vector<16x2xf32> -> vector<16x32xf32>""",
        lambda a: np.repeat(a.reshape(16, 2, 16).sum(2), 16, 1),
    ),
    "a transpose that keeps its order": (
        """%q = xetile.transpose %v, [0, 1] : vector<16x32xf32> -> vector<16x32xf32>
        %r = arith.addf %q, %v : vector<16x32xf32>""",
        lambda a: 2 * a,
    ),
    "a part of both dimensions": (
        """%q = vector.extract_strided_slice %v {offsets = [2, 3], sizes = [8, 16], strides = [1, 1]}
          : vector<16x32xf32> to vector<8x16xf32>
        %r = vector.insert_strided_slice %q, %v {offsets = [5, 7], strides = [1, 1]}
          : vector<8x16xf32> into vector<16x32xf32>""",
        lambda a: np.block([[a[:5]], [a[5:13, :7], a[2:10, 3:19], a[5:13, 23:]], [a[13:]]]),
    ),
    "a part of a line": (
        """%q = xetile.reduction <add>, %v [0] : vector<16x32xf32> -> vector<1x32xf32>
        %f = vector.shape_cast %q : vector<1x32xf32> to vector<32xf32>
        %g = vector.extract_strided_slice %f {offsets = [5], sizes = [8], strides = [1]}
          : vector<32xf32> to vector<8xf32>
        %h = vector.insert_strided_slice %g, %f {offsets = [1], strides = [1]} : vector<8xf32> into vector<32xf32>
        %x = vector.shape_cast %h : vector<32xf32> to vector<1x32xf32>
        %r = xetile.broadcast %x [0] : vector<1x32xf32> -> vector<16x32xf32>""",
        lambda a: np.tile(np.r_[a.sum(0)[:1], a.sum(0)[5:13], a.sum(0)[9:]], (16, 1)),
    ),
}


@pytest.mark.parametrize("name", REARRANGED)
def test_elements_rearranged_among_subgroups(name):
    body, expected = REARRANGED[name]
    a, _, o = computed(f"{LOADED} {body} xetile.store_tile %r, %target : vector<16x32xf32>, {DIVIDED}")
    np.testing.assert_array_equal(o[:16], expected(a[:16]))


def test_factors_of_four_bits_that_bytes_hold_along_k():
    """The second factor's bytes are those of the matrix in memory: only they are put in VNNI layout."""
    text = """gpu.module @m {
      gpu.func @k(%a: memref<8x32xi8>, %b: memref<32x16xi8>, %o: memref<8x16xi32>) kernel {
        %at = xetile.init_tile %a[0, 0] : memref<8x32xi8> -> !xetile.tile<8x32xi8>
        %bt = xetile.init_tile %b[0, 0] : memref<32x16xi8> -> !xetile.tile<32x16xi8>
        %av = xetile.load_tile %at : !xetile.tile<8x32xi8> -> vector<8x32xi8>
        %bv = xetile.load_tile %bt : !xetile.tile<32x16xi8> -> vector<32x16xi8>
        %transposed = xetile.transpose %bv, [1, 0] : vector<32x16xi8> -> vector<16x32xi8>
        %half = vector.bitcast %transposed : vector<16x32xi8> to vector<16x64xi4>
        %second = xetile.transpose %half, [1, 0] : vector<16x64xi4> -> vector<64x16xi4>
        %first = vector.bitcast %av : vector<8x32xi8> to vector<8x64xi4>
        %c = xetile.tile_mma %first, %second : vector<8x64xi4>, vector<64x16xi4> -> vector<8x16xi32>
        %ot = xetile.init_tile %o[0, 0] : memref<8x16xi32> -> !xetile.tile<8x16xi32>
        xetile.store_tile %c, %ot : vector<8x16xi32>, !xetile.tile<8x16xi32>
        gpu.return
      }
    }"""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (8, 32)).astype(np.int8), rng.integers(-128, 128, (32, 16)).astype(np.int8)
    o = np.zeros((8, 16), np.int32)
    xegpu_py.compile(text)(a, b, o)
    first, second = (np.stack([x << 4 >> 4, x >> 4], -1).astype(np.int32) for x in (a, b.T.copy()))
    np.testing.assert_array_equal(o, first.reshape(8, 64) @ second.reshape(16, 64).T)


LINE_MASKS = {
    "of a number": ("%m = vector.create_mask %i : vector<64xi1>", lambda lane, n: lane < n),
    "from a number on": (
        """%b = vector.broadcast %i : index to vector<64xindex>
        %m = arith.cmpi sge, %p, %b : vector<64xindex>""",
        lambda lane, n: 40 + lane >= n,
    ),
    "from a position on": (
        """%b = arith.constant dense<16> : vector<64xindex>
        %m = arith.cmpi sgt, %p, %b : vector<64xindex>""",
        lambda lane, n: lane >= 0,
    ),
    "of an integer without sign": (
        """%wide = arith.index_cast %i : index to i64
        %n64 = arith.index_castui %wide : i64 to index
        %b = vector.broadcast %n64 : index to vector<64xindex>
        %m = arith.cmpi slt, %p, %b : vector<64xindex>""",
        lambda lane, n: 40 + lane < n,
    ),
    "of a negative quotient": (
        """%grid = gpu.grid_dim x
        %c96 = arith.constant 96 : index
        %minus = arith.constant -2 : index
        %many = arith.muli %grid, %c96 : index
        %below = arith.divsi %many, %minus : index
        %b = vector.broadcast %below : index to vector<64xindex>
        %m = arith.cmpi slt, %p, %b : vector<64xindex>""",
        lambda lane, n: lane < 0,
    ),
    "of none": ("%m = arith.constant dense<false> : vector<64xi1>", lambda lane, n: lane < 0),
    "of all and a bound": (
        """%all = arith.constant dense<true> : vector<64xi1>
        %b = vector.broadcast %i : index to vector<64xindex>
        %less = arith.cmpi slt, %p, %b : vector<64xindex>
        %m = arith.andi %all, %less : vector<64xi1>""",
        lambda lane, n: 40 + lane < n,
    ),
    "that a loop carries": (
        """%c1 = arith.constant 1 : index
        %none = arith.constant dense<false> : vector<64xi1>
        %m = scf.for %k = %c0 to %c1 step %c1 iter_args(%carried = %none) -> vector<64xi1> {
          %next = vector.create_mask %i : vector<64xi1>
          scf.yield %next : vector<64xi1>
        }""",
        lambda lane, n: lane < n,
    ),
}


@pytest.mark.parametrize("number", [-100, -3, 0, 5, 60, 64, 100])
@pytest.mark.parametrize("name", LINE_MASKS)
def test_masks_of_consecutive_elements(name, number):
    """Elements that the mask leaves out are padding, whether a block or single elements are loaded."""
    mask, holds = LINE_MASKS[name]
    tile = f"!xetile.tile<64xf32, {SCATTERED.format('')}>"
    a, _, o = computed(f"""
        %flat = memref.collapse_shape %a [[0, 1]] : memref<48x32xf32> into memref<1536xf32>
        %lane = vector.step : vector<64xindex>
        %first = arith.constant dense<40> : vector<64xindex>
        %p = arith.addi %lane, %first : vector<64xindex>
        {mask}
        %t = xetile.init_tile %flat, %p : memref<1536xf32>, vector<64xindex> -> {tile}
        %v = xetile.load %t, %m {{padding = 5.0 : f32}} : {tile}, vector<64xi1> -> vector<64xf32>
        %x = vector.shape_cast %v : vector<64xf32> to vector<2x32xf32>
        vector.store %x, %o[%c0, %c0] : memref<48x32xf32>, vector<2x32xf32>""", number, block=1)  # fmt: skip
    lane = np.arange(64)
    np.testing.assert_array_equal(o[:2].ravel(), np.where(holds(lane, number), a.ravel()[40:104], 5))
