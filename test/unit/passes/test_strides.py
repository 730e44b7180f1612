"""Tensors with an innermost stride that is unknown at compile time, or is not 1, have the same elements as in numpy."""

import numpy as np
import pytest

import xegpu_py
from xegpu_py.dialects import visa
from xegpu_py.lower_kernel import executable_of
from xegpu_py.runtime.kernel import CompiledKernel

MATRIX, LINE, CUBE = (
    "memref<?x?xf32, strided<[?, ?]>>", "memref<?xf32, strided<[?]>>", "memref<?x?x?xf32, strided<[?, ?, ?]>>",
)  # fmt: skip
BLOCK, ROW = "!xegpu.tensor_desc<8x16xf32>", "!xegpu.tensor_desc<80xf32>"
MAP = "map = <wi_layout = [1, 16], wi_data = [1, 1]>"
STEPS = [(1, 1), (2, 1), (1, 2), (2, 3)]


def kernel(arguments, body):
    return f"gpu.module @m {{ gpu.func @k({arguments}) kernel {{\n{body}\ngpu.return\n}} }}"


def block(view, block, result=None, transform="", at="1, 2", desc=None):
    """A kernel that copies a block of a tensor to an array, and twice of it to where it was."""
    desc = desc or f"!xegpu.tensor_desc<{'x'.join(map(str, block))}xf32>"
    shape = "x".join(map(str, result or block))
    vector, out = f"vector<{shape}xf32>", f"memref<{shape}xf32>"
    zeros = ", ".join(["%c0"] * len(block))
    back = "" if transform else f"xegpu.store_nd %y, %t {{mode = vc}} : {vector}, {desc}"
    return kernel(f"%m: {view}, %o: {out}", f"""
    %c0 = arith.constant 0 : index
    %t = xegpu.create_nd_tdesc %m[{at}] {{mode = vc}} : {view} -> {desc}
    xegpu.prefetch_nd %t {{mode = vc}} : {desc}
    %x = xegpu.load_nd %t {{{transform}mode = vc}} : {desc} -> {vector}
    vector.store %x, %o[{zeros}] : {out}, {vector}
    %y = arith.addf %x, %x : {vector}
    {back}""")  # fmt: skip


def matrix(steps=(1, 1), shape=(64, 64)):
    return np.arange(1, 4097, dtype=np.float32).reshape(shape)[tuple(slice(None, None, n) for n in steps)]


def run(text, array, wanted, written=None, arguments=(), **options):
    """Run a kernel on an array, whose base is compared too, and on one for what it gives; and evaluate the module.

    Returns:
        Whether the version for these arguments gathers elements as their stride is not known to be 1.
    """
    where = array.base if array.base is not None else array
    first = where.copy()
    if written is not None:
        array[written] *= 2
    changed, where[...] = where.copy(), first
    for engine in ("reference", "both"):
        where[...], out = first, np.zeros_like(wanted)
        compiled = xegpu_py.compile(text, engine=engine, **({"cache": "off"} if engine == "both" else {}))
        compiled(array, out, *arguments, **options)
        np.testing.assert_array_equal(out, wanted)
        np.testing.assert_array_equal(where, changed)
    where[...] = first
    return any("innermost stride" in r.message for r in compiled.version_for([array, out, *arguments]).remarks)


@pytest.mark.parametrize("steps", STEPS)
def test_matrices(steps):
    array, place = matrix(steps), (slice(1, 9), slice(2, 18))
    assert run(block(MATRIX, (8, 16)), array, array[place].copy(), place) == (steps[1] != 1)
    text = block(MATRIX, (8, 16), (16, 8), "transpose = [1, 0], ")
    assert run(text, array, array[place].T.copy()) == (steps[1] != 1)


@pytest.mark.parametrize("steps", STEPS)
def test_matrices_of_work_items(steps):
    """In SIMT mode, where each work item has a column."""
    array, place, desc = matrix(steps), (slice(1, 9), slice(2, 18)), f"!xegpu.tensor_desc<8x16xf32, {MAP}>"
    text = kernel(f"%m: {MATRIX}, %o: memref<8x16xf32>", f"""
    %t = xegpu.create_nd_tdesc %m[1, 2] : {MATRIX} -> {desc}
    %d = xegpu.create_nd_tdesc %o[0, 0] : memref<8x16xf32> -> {desc}
    %x = xegpu.load_nd %t : {desc} -> vector<8x1xf32>
    xegpu.store_nd %x, %d : vector<8x1xf32>, {desc}
    %y = arith.addf %x, %x : vector<8x1xf32>
    xegpu.store_nd %y, %t : vector<8x1xf32>, {desc}""")  # fmt: skip
    assert run(text, array, array[place].copy(), place, block=16) == (steps[1] != 1)


@pytest.mark.parametrize("steps", STEPS)
def test_lines(steps):
    array, place = matrix(steps[1:], 4096), slice(2, 82)
    assert run(block(LINE, (80,), at="2"), array, array[place].copy(), place) == (steps[1] != 1)


@pytest.mark.parametrize("steps", STEPS)
def test_three_dimensions(steps):
    array, place = matrix((1, *steps), (4, 16, 64)), (slice(1, 3), slice(0, 8), slice(2, 18))
    assert run(block(CUBE, (2, 8, 16), at="1, 0, 2"), array, array[place].copy(), place) == (steps[1] != 1)


@pytest.mark.each_value
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("order", ["", ", #xetile.tile_attr<order = [0, 1]>"])
def test_tiles(steps, order):
    array, place, tile = matrix(steps), (slice(1, 17), slice(2, 18)), f"!xetile.tile<16x16xf32{order}>"
    text = kernel(f"%m: {MATRIX}, %o: memref<16x16xf32>", f"""
    %t = xetile.init_tile %m[1, 2] : {MATRIX} -> {tile}
    xetile.prefetch_tile %t : {tile}
    %x = xetile.load_tile %t : {tile} -> vector<16x16xf32>
    %d = xetile.init_tile %o[0, 0] : memref<16x16xf32> -> !xetile.tile<16x16xf32>
    xetile.store_tile %x, %d : vector<16x16xf32>, !xetile.tile<16x16xf32>
    %y = arith.addf %x, %x : vector<16x16xf32>
    xetile.store_tile %y, %t : vector<16x16xf32>, {tile}""")  # fmt: skip
    assert run(text, array, array[place].copy(), place) == (steps[1] != 1 or bool(order))


@pytest.mark.parametrize("step", [1, 3])
def test_views_and_strides_that_the_kernel_computes(step):
    """Blocks of a subview, with strides that the descriptor gives, and of a line at an address; also in a loop."""
    array, view = matrix(), "memref<32x20xf32, strided<[64, ?]>>"
    cut = f"%v = memref.subview %m[0, 0] [32, 20] [1, %s] : memref<64x64xf32> to {view}"
    subview = block(view, (8, 16)).replace(f"%m: {view}", "%m: memref<64x64xf32>").replace(
        "xf32>) kernel {", f"xf32>, %s: index) kernel {{ {cut}").replace("%m[1", "%v[1")  # fmt: skip
    place = (slice(1, 9), slice(2 * step, 18 * step, step))
    assert run(subview, array, array[place].copy(), place, (step,))
    given = block(MATRIX, (8, 16)).replace("xf32>) kernel", "xf32>, %s: index, %h: index) kernel").replace(
        "%m[1, 2]", "%m[1, 2], [%h, %h], [%h, %s]")  # fmt: skip
    assert run(given, array, array[place].copy(), place, (step, 64))
    line = kernel("%m: memref<64x64xf32>, %o: memref<64xf32>, %s: index", """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %p = memref.extract_aligned_pointer_as_index %m : memref<64x64xf32> -> index
    %a = arith.index_cast %p : index to i64
    %f = xegpu.create_nd_tdesc %a[2], [%c16], [%s] {mode = vc} : i64 -> !xegpu.tensor_desc<16xf32>
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %f) -> (!xegpu.tensor_desc<16xf32>) {
      %at = arith.muli %i, %c16 : index
      %d = xegpu.create_nd_tdesc %o[%at] {mode = vc} : memref<64xf32> -> !xegpu.tensor_desc<16xf32>
      %x = xegpu.load_nd %t {mode = vc} : !xegpu.tensor_desc<16xf32> -> vector<16xf32>
      xegpu.store_nd %x, %d {mode = vc} : vector<16xf32>, !xegpu.tensor_desc<16xf32>
      %n = xegpu.update_nd_offset %t, [16] {mode = vc} : !xegpu.tensor_desc<16xf32> -> !xegpu.tensor_desc<16xf32>
      scf.yield %n : !xegpu.tensor_desc<16xf32>
    }""")  # fmt: skip
    run(line, array, array.ravel()[2 * step : 66 * step : step].copy(), arguments=(step,))


@pytest.mark.parametrize("step", [1, 3])
def test_elements_and_transfers(step):
    array = matrix((2, step))
    text = kernel(f"%m: {MATRIX}, %o: memref<8x16xf32>", f"""
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %z = arith.constant 0.0 : f32
    %x = vector.transfer_read %m[%c1, %c1], %z : {MATRIX}, vector<8x16xf32>
    %e = memref.load %m[%c0, %c1] : {MATRIX}
    %y = vector.broadcast %e : f32 to vector<8x16xf32>
    %w = arith.subf %x, %y : vector<8x16xf32>
    vector.store %w, %o[%c0, %c0] : memref<8x16xf32>, vector<8x16xf32>
    %d = arith.addf %x, %x : vector<8x16xf32>
    vector.transfer_write %d, %m[%c1, %c1] : vector<8x16xf32>, {MATRIX}""")  # fmt: skip
    place = (slice(1, 9), slice(1, 17))
    run(text, array, array[place] - array[0, 1], place)


def test_passes_that_need_a_stride_of_1_say_so():
    text = block(MATRIX, (8, 16))
    for passes in ("xegpu-verify-target{target=pvc}", "vector-to-xegpu,xegpu-to-visa{target=pvc}"):
        module = xegpu_py.parse(text)
        with pytest.raises(xegpu_py.DiagnosticError, match="innermost stride that is not known to be 1") as raised:
            xegpu_py.run_pipeline(module, f"builtin.module({passes})")
        assert raised.value.diagnostics[0].notes[0].message == "xegpu-legalize rewrites it"


def test_views_keep_the_innermost_stride_of_their_source():
    view = "memref<32x?xf32, strided<[?, ?], offset: ?>>"
    text = block(MATRIX, (8, 16)).replace("%c0 = arith", f"""
    %v = memref.subview %m[1, 1] [32, 20] [2, 1] : {MATRIX} to memref<32x20xf32, strided<[?, ?], offset: ?>>
    %w = memref.cast %v : memref<32x20xf32, strided<[?, ?], offset: ?>> to {view}
    %c0 = arith""", 1).replace("%m[1, 2]", "%w[1, 2]").replace(f": {MATRIX} -> !", f": {view} -> !")  # fmt: skip
    for step in (1, 2):
        array = np.arange(128 * 64 * step, dtype=np.float32).reshape(128, -1)[:, ::step]
        place = (slice(3, 19, 2), slice(3, 19))
        compiled = xegpu_py.compile(text, unaligned=[0], cache="off")
        found, out = array.copy(), np.zeros((8, 16), np.float32)
        compiled(array, out)
        np.testing.assert_array_equal(out, found[place])
        remarks = compiled.version_for([array, out]).remarks
        assert any("innermost stride" in r.message for r in remarks) == (step != 1)


def test_a_launch_checks_strides_that_a_kernel_promises():
    text = block(MATRIX, (8, 16)).replace(") kernel {", ") kernel attributes {xegpu.unit_strides = array<i64: 0>} {")
    module = xegpu_py.parse(text)
    xegpu_py.run_pipeline(module, "builtin.module(xegpu-to-visa-pipeline{target=pvc})")
    compiled = CompiledKernel(executable_of(module, visa.kernels(module.operation)[0]), target="pvc")
    out = np.zeros((8, 16), np.float32)
    compiled(matrix(), out)
    np.testing.assert_array_equal(out, matrix()[1:9, 2:18])
    with pytest.raises(
        ValueError,
        match=r"<string>:\d+:\d+: argument '%m' of kernel 'k', a memref<.*>, has an innermost stride of 3 elements",
    ):
        compiled(matrix((1, 3)), out)
    assert "block2d" in compiled.asm


@pytest.mark.parametrize("kind", ["memref<3x3x17xf64, strided<[54, 18, 1]>>", "memref<?x?x?xf64, strided<[?, ?, 1]>>"])
def test_matrices_that_begin_at_no_multiple_of_64_bytes(kind):
    """Matrices of a 3D tensor are gathered, whether this is known at compile time or at the call."""
    text = block(kind, (2, 3, 8), at="1, 0, 2").replace("xf32", "xf64")
    array = np.arange(3 * 3 * 18, dtype=np.float64).reshape(3, 3, 18)[..., :17]
    compiled, out, expected = xegpu_py.compile(text, cache="off"), np.zeros((2, 3, 8)), array.copy()
    compiled(array, out)
    np.testing.assert_array_equal(out, expected[1:3, :, 2:10])
    expected[1:3, :, 2:10] *= 2
    np.testing.assert_array_equal(array, expected)
    assert any("begin 432 bytes behind" in r.message for r in compiled.remarks) == ("3x3" in kind)


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("chosen", [0, 1])
def test_descriptors_that_branches_choose(step, chosen):
    """Descriptors of an array with an unknown innermost stride, and of one with stride 1."""
    desc = "!xegpu.tensor_desc<16xf32>"
    text = kernel(f"%m: {LINE}, %o: memref<16xf32>, %n: memref<4096xf32>, %which: i8", f"""
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i8
    %c = arith.cmpi ne, %which, %zero : i8
    %t = scf.if %c -> ({desc}) {{
      %a = xegpu.create_nd_tdesc %m[2] {{mode = vc}} : {LINE} -> {desc}
      scf.yield %a : {desc}
    }} else {{
      %b = xegpu.create_nd_tdesc %n[2] {{mode = vc}} : memref<4096xf32> -> {desc}
      scf.yield %b : {desc}
    }}
    %u = xegpu.update_nd_offset %t, [1] {{mode = vc}} : {desc} -> {desc}
    %x = xegpu.load_nd %u {{mode = vc}} : {desc} -> vector<16xf32>
    vector.store %x, %o[%c0] : memref<16xf32>, vector<16xf32>""")  # fmt: skip
    array, other = matrix((step,), 4096), np.zeros(4096, np.float32)
    wanted = array[3:19] if chosen else other[3:19]
    assert run(text, array, wanted.copy(), arguments=(other, chosen)) == (step != 1)


def test_nibbles_need_an_innermost_stride_of_1():
    """The note says what to write; rows of an even number of elements are no answer."""
    view = "memref<?x?xi4, strided<[?, ?], offset: ?>>"
    text = f"""gpu.module @m {{ gpu.func @k(%m: {view}) kernel {{
    %c0 = arith.constant 0 : index
    %x = memref.load %m[%c0, %c0] : {view}
    gpu.return }} }}"""
    with pytest.raises(xegpu_py.DiagnosticError, match=r"stride is not known to be 1(.|\n)*note: use a type whose"):
        xegpu_py.compile(text)
