"""Kernels that no GPU runs as they are written: split for their target, run, and compared with numpy."""

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py.numerics.rounding import fma_f32
from xegpu_py.runtime.host_arrays import DTYPES

RNG = np.random.default_rng(7)
PLAIN = "#xegpu.tdesc_attr<boundary_check = false>"


def numbers(element, shape):
    """Any bit patterns of an element type, but no NaN."""
    dtype = np.dtype(DTYPES["f32" if element == "tf32" else element])
    bits = RNG.integers(0, 1 << min(8 * dtype.itemsize, 62), shape).astype(f"u{dtype.itemsize}")
    found = bits.view(dtype)
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(found), 0, found).astype(dtype) if dtype.kind not in "iu" else found


def run(text, *arrays, target="pvcxt", grid=1, check=("uninit",)):
    kernel = xegpu_py.compile(text, target=target, registers=256, check=list(check), engine="interpreter")
    return kernel(*arrays, grid=grid)


def padded(matrix, row, column, rows, columns):
    """A block of a matrix, zeros where it reaches out of it."""
    out = np.zeros((rows, columns), matrix.dtype)
    inside = matrix[row : row + rows, column : column + columns]
    out[: inside.shape[0], : inside.shape[1]] = inside
    return out


def vector(shape, element):
    return f"vector<{'x'.join(map(str, (*shape, element)))}>"


def load_kernel(element, block, place, source, attributes, shape, array=1):
    """A kernel that loads a block and writes the vector as it lies in registers, line by line."""
    rows, columns = block
    total = int(np.prod(shape))
    settings = f", array_length = {array}" if array > 1 else ""
    desc = f"!xegpu.tensor_desc<{rows}x{columns}x{element}{settings}>"
    memref, flat = f"memref<{source[0]}x{source[1]}x{element}>", f"memref<{total}x{element}>"
    line = f"!xegpu.tensor_desc<{total}x{element}, {PLAIN}>"
    return f"""
    gpu.module @m {{ gpu.func @k(%in: {memref}, %out: {flat}) kernel {{
      %d = xegpu.create_nd_tdesc %in[{place[0]}, {place[1]}] {{mode = vc}} : {memref} -> {desc}
      %x = xegpu.load_nd %d {{{attributes}mode = vc}} : {desc} -> {vector(shape, element)}
      %f = vector.shape_cast %x : {vector(shape, element)} to {vector((total,), element)}
      %l = xegpu.create_nd_tdesc %out[0] {{mode = vc}} : {flat} -> {line}
      xegpu.store_nd %f, %l {{mode = vc}} : {vector((total,), element)}, {line}
      gpu.return
    }} }}"""


def shuffled(block, element, kind, array=1):
    """What a load makes of a block, and the attributes that say so."""
    pack = 32 // (8 * block.dtype.itemsize)
    rows, columns = block.shape
    if array > 1:
        return block.reshape(rows, array, columns // array).swapaxes(0, 1), ""
    if kind == "transpose":
        return block.T, "transpose = [1, 0], "
    if kind == "units":
        units = block.reshape(rows, columns // pack, pack).swapaxes(0, 1)
        return units.reshape(columns // pack, rows * pack), "transpose = [1, 0], transpose_bit_width = 32, "
    if kind == "vnni0":
        return block.reshape(rows // pack, pack, columns).swapaxes(1, 2), "vnni_axis = 0, "
    if kind == "vnni1":
        return block.reshape(rows, columns // pack, pack), "vnni_axis = 1, "
    return block, ""


ELEMENTS = ("i8", "f16", "bf16", "f32", "i64", "f64")


@st.composite
def loads(draw):
    element = draw(st.sampled_from(ELEMENTS))
    bytes_ = np.dtype(DTYPES[element]).itemsize
    kinds = ["plain", "transpose"] + (["units", "vnni0", "vnni1"] if bytes_ < 4 else [])
    kind = draw(st.sampled_from(kinds))
    pack = max(4 // bytes_, 1)
    rows = draw(st.integers(1, 70 // bytes_))
    columns = draw(st.integers(1, 80 // bytes_))
    if kind != "plain" and kind != "transpose":
        rows, columns = -(-rows // pack) * pack, -(-columns // pack) * pack
    array = draw(st.sampled_from((1, 1, 2, 3))) if kind == "plain" else 1
    place = draw(st.integers(0, 20)), draw(st.integers(0, 20)) * pack
    return element, kind, rows, columns, array, place


@settings(max_examples=examples(150))
@given(loads())
def test_loads_of_any_block(case):
    element, kind, rows, columns, array, place = case
    size = np.dtype(DTYPES[element]).itemsize
    source = numbers(element, (40, 128 // size))
    whole = padded(source, *place, rows, columns * array)
    expected, attributes = shuffled(whole, element, kind, array)
    text = load_kernel(element, (rows, columns), place, source.shape, attributes, expected.shape, array)
    out = np.zeros(expected.size, source.dtype)
    run(text, source, out)
    np.testing.assert_array_equal(out.view("u1"), np.ascontiguousarray(expected).reshape(-1).view("u1"))


@settings(max_examples=examples(60))
@given(st.sampled_from(ELEMENTS), st.integers(1, 70), st.integers(1, 24), st.integers(0, 12), st.integers(0, 12))
def test_stores_of_any_block(element, rows, dwords, row, column):
    size = np.dtype(DTYPES[element]).itemsize
    columns = max(4 * dwords // size, 1)
    place = row, column * max(4 // size, 1)
    shape = (48, 128 // size)
    total = rows * columns
    data = numbers(element, total)
    desc, line = f"!xegpu.tensor_desc<{rows}x{columns}x{element}>", f"!xegpu.tensor_desc<{total}x{element}, {PLAIN}>"
    memref, flat = f"memref<{shape[0]}x{shape[1]}x{element}>", f"memref<{total}x{element}>"
    text = f"""
    gpu.module @m {{ gpu.func @k(%in: {flat}, %out: {memref}) kernel {{
      %l = xegpu.create_nd_tdesc %in[0] {{mode = vc}} : {flat} -> {line}
      %f = xegpu.load_nd %l {{mode = vc}} : {line} -> {vector((total,), element)}
      %x = vector.shape_cast %f : {vector((total,), element)} to {vector((rows, columns), element)}
      %d = xegpu.create_nd_tdesc %out[{place[0]}, {place[1]}] {{mode = vc}} : {memref} -> {desc}
      xegpu.store_nd %x, %d {{mode = vc}} : {vector((rows, columns), element)}, {desc}
      gpu.return
    }} }}"""
    out = numbers(element, shape)
    expected = out.copy()
    inside = expected[place[0] : place[0] + rows, place[1] : place[1] + columns]
    inside[:] = data.reshape(rows, columns)[: inside.shape[0], : inside.shape[1]]
    # A message of less than a register reads all of it.
    run(text, data, out, check=())
    np.testing.assert_array_equal(out.view("u1"), expected.view("u1"))


def wide(x):
    return x.astype(np.float64)


def matmul(a, b, integer=False):
    """A product in which each term is added in increasing k, with one rounding."""
    if integer:
        return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    found = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        found = fma_f32(np.outer(wide(a[:, k]), wide(b[k])), found)
    return found


def gemm(a, b, c, m, n, k, sizes, turned=False, moved=True):
    """C = A x B by tiles of one dpas each: m x n of C, k at a time."""
    pack = {"bf16": 2, "f16": 2, "i8": 4, "ui8": 4, "tf32": 1}[b]
    rows, columns, depth = sizes
    a_memref, c_memref = f"memref<{rows}x{depth}x{a}>", f"memref<{rows}x{columns}x{c}>"
    b_memref = f"memref<{columns}x{depth}x{b}>" if turned else f"memref<{depth}x{columns}x{b}>"
    a_desc, c_desc = f"!xegpu.tensor_desc<{m}x{k}x{a}>", f"!xegpu.tensor_desc<{m}x{n}x{c}>"
    b_desc = f"!xegpu.tensor_desc<{n}x{k}x{b}>" if turned else f"!xegpu.tensor_desc<{k}x{n}x{b}>"
    a_vector = vector((m, k // pack, pack) if pack > 1 else (m, k), a)
    b_vector, c_vector = vector((k // pack, n, pack) if pack > 1 else (k, n), b), vector((m, n), c)
    a_form, b_form = ("vnni_axis = 1, ", "vnni_axis = 0, ") if pack > 1 else ("", "")
    b_first, b_step = ("%n, %c0", "0, %step") if turned else ("%c0, %n", "%step, 0")
    load_b = f"%bv = xegpu.load_nd %b {{{b_form}mode = vc}} : {b_desc} -> {b_vector}"
    if turned:
        flat = vector((k // pack, n * pack), b)
        load_b = f"""%bt = xegpu.load_nd %b {{transpose = [1, 0], transpose_bit_width = 32, mode = vc}}
            : {b_desc} -> {flat}
          %bv = vector.shape_cast %bt : {flat} to {b_vector}"""
    return f"""
    gpu.module @m {{ gpu.func @gemm(%A: {a_memref}, %B: {b_memref}, %C: {c_memref}) kernel {{
      %c0 = arith.constant 0 : index
      %step = arith.constant {k} : index
      %K = arith.constant {depth} : index
      %rows = arith.constant {m} : index
      %columns = arith.constant {n} : index
      %x = gpu.block_id x
      %y = gpu.block_id y
      %m = arith.muli %x, %rows : index
      %n = arith.muli %y, %columns : index
      %zero = arith.constant dense<{"0.0" if "f" in c else "0"}> : {c_vector}
      %a0 = xegpu.create_nd_tdesc %A[%m, %c0] {{mode = vc}} : {a_memref} -> {a_desc}
      %b0 = xegpu.create_nd_tdesc %B[{b_first}] {{mode = vc}} : {b_memref} -> {b_desc}
      %r:3 = scf.for %k = %c0 to %K step %step iter_args(%acc = %zero, %a = %a0, %b = %b0)
          -> ({c_vector}, {a_desc}, {b_desc}) {{
        xegpu.prefetch_nd %a {{mode = vc}} : {a_desc}
        %av = xegpu.load_nd %a {{{a_form}mode = vc}} : {a_desc} -> {a_vector}
        {load_b}
        %next = xegpu.dpas %acc, %av, %bv {{mode = vc}} : {c_vector}, {a_vector}, {b_vector} -> {c_vector}
        %a1 = xegpu.update_nd_offset %a, [0, %step] {{mode = vc}} : {a_desc} -> {a_desc}
        %b1 = xegpu.update_nd_offset %b, [{b_step}] {{mode = vc}} : {b_desc} -> {b_desc}
        scf.yield %next, %a1, %b1 : {c_vector}, {a_desc}, {b_desc}
      }}
      %c = xegpu.create_nd_tdesc %C[%m, %n] {{mode = vc}} : {c_memref} -> {c_desc}
      xegpu.store_nd %r#0, %c {{mode = vc}} : {c_vector}, {c_desc}
      gpu.return
    }} }}"""


GEMMS = [
    ("bf16", "bf16", "f32", 32, 32, 64, (64, 64, 128), False),
    ("bf16", "bf16", "f32", 32, 64, 32, (100, 104, 88), False),
    ("f16", "f16", "f32", 12, 48, 64, (40, 96, 96), False),
    ("f16", "f16", "f16", 16, 32, 32, (32, 32, 64), False),
    ("tf32", "tf32", "f32", 64, 16, 32, (64, 32, 64), False),
    ("i8", "i8", "i32", 64, 32, 64, (64, 64, 128), False),
    ("ui8", "i8", "i32", 9, 32, 128, (64, 64, 128), False),
    ("bf16", "bf16", "f32", 32, 64, 64, (64, 64, 128), True),
    ("i8", "i8", "i32", 16, 48, 64, (64, 96, 128), True),
]


def operands(a, b, sizes, turned):
    rows, columns, depth = sizes

    def some(element, shape):
        dtype = np.dtype(DTYPES["f32" if element == "tf32" else element])
        if dtype.kind in "iu":
            return numbers(element, shape)
        found = RNG.standard_normal(shape).astype(dtype)
        return (found.view("u4") & 0xFFFFE000).view("f4") if element == "tf32" else found

    return some(a, (rows, depth)), some(b, (columns, depth) if turned else (depth, columns))


@pytest.mark.parametrize("case", GEMMS, ids=str)
def test_gemms_of_one_large_dpas(case):
    a, b, c, m, n, _, sizes, turned = case
    left, right = operands(a, b, sizes, turned)
    out = np.zeros((sizes[0], sizes[1]), DTYPES[c])
    run(gemm(*case), left, right, out, grid=(-(-sizes[0] // m), -(-sizes[1] // n)))
    b_matrix = right.T if turned else right
    if c == "f16":
        # The accumulator is f16 behind each instruction, of 16 elements of K.
        expected = np.zeros(out.shape, np.float16)
        for at in range(0, sizes[2], 16):
            held = expected.astype(np.float32)
            for q in range(at, at + 16):
                held = fma_f32(np.outer(wide(left[:, q]), wide(b_matrix[q])), held)
            expected = held.astype(np.float16)
    else:
        expected = matmul(left, b_matrix, c == "i32")
    np.testing.assert_array_equal(out, expected)
