"""Kernels before and after `xegpu-legalize`: their results, their branches, and that they fit the target."""

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py import reference
from xegpu_py.dialects import visa
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.runtime.host_arrays import DTYPES

from .test_kernels import CASES, FOLDER, source
from .test_legalize import PLAIN, loads, numbers, run, shuffled, vector
from .test_legalize import load_kernel as load_text

CLEAN = "canonicalize,cse,xegpu-dce"
SCATTERED = "#xegpu.scattered"


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_split_reductions_have_the_bits_of_whole_ones(name):
    case, (path, wanted) = CASES[name], source(name)
    found, expected = case.out.copy(), case.out.copy()
    module = xegpu_py.parse(path)
    xegpu_py.compile(module, wanted)(*case.inputs, found, grid=case.grid, block=case.block)
    with module.context:
        reference.run(module, wanted, [*case.inputs, expected], grid=case.grid, block=case.block)
    assert found.tobytes() == expected.tobytes()


def test_rows_of_softmax_fit_the_registers():
    module = xegpu_py.parse((FOLDER / "softmax.mlir").read_text())
    xegpu_py.run_pipeline(module, "builtin.module(xegpu-to-visa-pipeline{target=pvc})")
    (func,) = visa.kernels(module.operation)
    assert func.attributes["visa.pressure"].value <= 128


@settings(max_examples=examples(150))
@given(loads(), st.sampled_from(["pvc", "pvcxt", "any"]))
def test_what_the_target_accepts_lowers(case, target):
    """Loads that xegpu-verify-target lets pass need no legalization, and vISA's own rules accept them."""
    element, kind, rows, columns, array, place = case
    block = np.zeros((rows, columns * array), DTYPES[element])
    expected, attributes = shuffled(block, element, kind, array)
    source = (40, 128 // block.dtype.itemsize)
    text = load_text(element, (rows, columns), place, source, attributes, expected.shape, array)
    module = xegpu_py.parse(text)
    verify = f"xegpu-verify-target{{target={target}}}"
    try:
        xegpu_py.run_pipeline(module, f"builtin.module({verify})")
    except DiagnosticError:
        # The result of legalization is accepted.
        xegpu_py.run_pipeline(module, f"builtin.module(xegpu-legalize{{target={target}}},{CLEAN},{verify})")
    xegpu_py.run_pipeline(module, f"builtin.module(xegpu-to-visa{{target={target}}})")


GATHERS = st.tuples(
    st.sampled_from(["i8", "f16", "f32", "i64"]),
    st.sampled_from([1, 2, 4, 8, 16, 32]),
    st.sampled_from([1, 2, 3, 4, 8]),
    st.sampled_from(["pvcxt", "dg2"]),
    st.booleans(),
)


@settings(max_examples=examples(60))
@given(GATHERS, st.integers(0, 2**32 - 1))
def test_gathers_and_scatters_of_any_lanes(case, bits):
    element, lanes, chunk, target, moved = case
    rng = np.random.default_rng(bits)
    places = (rng.permutation(64)[:lanes] * 8).astype(np.int32)
    mask = np.array([bits >> lane & 1 for lane in range(lanes)], np.int8)
    source = numbers(element, 520)
    shape = (chunk, lanes) if chunk > 1 else (lanes,)
    lead = "x".join(map(str, (lanes, chunk) if chunk > 1 else (lanes,)))
    desc = f"!xegpu.tensor_desc<{lead}x{element}, {SCATTERED}>"
    value = vector(shape, element)
    line = f"!xegpu.tensor_desc<{lanes}xi32, {PLAIN}>"
    bytes_ = f"!xegpu.tensor_desc<{lanes}xi8, {PLAIN}>"
    create = f"{{mode = vc, chunk_size_per_lane = {chunk}}} : memref<520x{element}>, vector<{lanes}xindex> -> {desc}"
    update = ""
    if moved:
        update = f"""
      %four = arith.constant dense<4> : vector<{lanes}xindex>
      %d = xegpu.update_offset %d0, %four {{mode = vc}} : {desc}, vector<{lanes}xindex> -> {desc}"""
    text = f"""
    gpu.module @m {{ gpu.func @k(%in: memref<520x{element}>, %at: memref<{lanes}xi32>, %on: memref<{lanes}xi8>,
                                 %out: memref<520x{element}>) kernel {{
      %da = xegpu.create_nd_tdesc %at[0] {{mode = vc}} : memref<{lanes}xi32> -> {line}
      %ia = xegpu.load_nd %da {{mode = vc}} : {line} -> vector<{lanes}xi32>
      %o = arith.index_cast %ia : vector<{lanes}xi32> to vector<{lanes}xindex>
      %dm = xegpu.create_nd_tdesc %on[0] {{mode = vc}} : memref<{lanes}xi8> -> {bytes_}
      %im = xegpu.load_nd %dm {{mode = vc}} : {bytes_} -> vector<{lanes}xi8>
      %mask = arith.trunci %im : vector<{lanes}xi8> to vector<{lanes}xi1>
      %d{"0" if moved else ""} = xegpu.create_tdesc %in, %o {create}{update}
      %x = xegpu.load_gather %d, %mask {{mode = vc}} : {desc}, vector<{lanes}xi1> -> {value}
      %e = xegpu.create_tdesc %out, %o {create}
      xegpu.store_scatter %x, %e, %mask {{mode = vc}} : {value}, {desc}, vector<{lanes}xi1>
      gpu.return
    }} }}"""
    out = numbers(element, 520)
    expected = out.copy()
    for lane in np.flatnonzero(mask):
        at, step = places[lane], 4 if moved else 0
        expected[at : at + chunk] = source[at + step : at + step + chunk]
    run(text, source, places, mask, out, target=target, check=())
    np.testing.assert_array_equal(out.view("u1"), expected.view("u1"))


TILE = "vector<32x32xf32>"
BLOCK = "!xegpu.tensor_desc<32x32xf32>"
HEAD = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = xegpu.create_nd_tdesc %in[0, 0] {{mode = vc}} : memref<64x64xf32> -> {BLOCK}
  %e = xegpu.create_nd_tdesc %out[0, 0] {{mode = vc}} : memref<64x64xf32> -> {BLOCK}
  %x = xegpu.load_nd %d {{mode = vc}} : {BLOCK} -> {TILE}"""
TAIL = f"""
  xegpu.store_nd %r, %e {{mode = vc}} : {TILE}, {BLOCK}
  gpu.return"""
CONTROL = {
    "if": f"""
  %more = arith.cmpi sgt, %n, %c1 : index
  %r = scf.if %more -> {TILE} {{
    %y = arith.addf %x, %x : {TILE}
    scf.yield %y : {TILE}
  }} else {{
    scf.yield %x : {TILE}
  }}""",
    "switch": f"""
  %r = scf.index_switch %n -> {TILE}
  case 1 {{
    scf.yield %x : {TILE}
  }}
  case 2 {{
    %y = arith.addf %x, %x : {TILE}
    scf.yield %y : {TILE}
  }}
  default {{
    %two = arith.addf %x, %x : {TILE}
    %y = arith.addf %x, %two : {TILE}
    scf.yield %y : {TILE}
  }}""",
    "while": f"""
  %zero = arith.constant dense<0.0> : {TILE}
  %last:3 = scf.while (%i = %c0, %sum = %zero, %at = %d)
      : (index, {TILE}, {BLOCK}) -> (index, {TILE}, {BLOCK}) {{
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %i, %sum, %at : index, {TILE}, {BLOCK}
  }} do {{
  ^bb0(%i: index, %sum: {TILE}, %at: {BLOCK}):
    %v = xegpu.load_nd %at {{mode = vc}} : {BLOCK} -> {TILE}
    %next = arith.addf %sum, %v : {TILE}
    %j = arith.addi %i, %c1 : index
    %to = xegpu.update_nd_offset %at, [0, 0] {{mode = vc}} : {BLOCK} -> {BLOCK}
    scf.yield %j, %next, %to : index, {TILE}, {BLOCK}
  }}
  %r = arith.addf %last#1, %zero : {TILE}""",
    "for with what is whole": f"""
  %zero = arith.constant dense<0.0> : {TILE}
  %f1 = arith.constant 1.0 : f32
  %last:3 = scf.for %i = %c0 to %n step %c1 iter_args(%k = %f1, %sum = %zero, %at = %d) -> (f32, {TILE}, {BLOCK}) {{
    %v = xegpu.load_nd %at {{mode = vc}} : {BLOCK} -> {TILE}
    %one = vector.broadcast %k : f32 to {TILE}
    %scaled = arith.mulf %v, %one : {TILE}
    %next = arith.addf %sum, %scaled : {TILE}
    scf.yield %k, %next, %at : f32, {TILE}, {BLOCK}
  }}
  %r = arith.addf %last#1, %zero : {TILE}""",
}


@pytest.mark.each_value
@pytest.mark.parametrize("name", CONTROL)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_blocks_through_control_flow(name, n):
    body = CONTROL[name]
    text = f"""gpu.module @m {{
    gpu.func @k(%in: memref<64x64xf32>, %out: memref<64x64xf32>, %n: index) kernel {{{HEAD}{body}{TAIL}
    }} }}"""
    source = RNG.integers(-100, 100, (64, 64)).astype(np.float32)
    out = np.zeros((64, 64), np.float32)
    run(text, source, out, n)
    times = min(n, 2) if name == "if" else n
    expected = np.zeros_like(out)
    expected[:32, :32] = times * source[:32, :32]
    np.testing.assert_array_equal(out, expected)


RNG = np.random.default_rng(11)
SHAPES = {
    "rows": ("vector.multi_reduction <add>, %x, %start [1] : vector<32x32xf32> to vector<32xf32>", 1),
    "columns": ("vector.multi_reduction <add>, %x, %start [0] : vector<32x32xf32> to vector<32xf32>", 0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_reductions_of_blocks(name):
    reduce, axis = SHAPES[name]
    line = f"!xegpu.tensor_desc<32xf32, {PLAIN}>"
    text = f"""gpu.module @m {{ gpu.func @k(%in: memref<64x64xf32>, %out: memref<32xf32>) kernel {{
      %d = xegpu.create_nd_tdesc %in[0, 0] {{mode = vc}} : memref<64x64xf32> -> {BLOCK}
      %x = xegpu.load_nd %d {{mode = vc}} : {BLOCK} -> {TILE}
      %start = arith.constant dense<5.0> : vector<32xf32>
      %r = {reduce}
      %e = xegpu.create_nd_tdesc %out[0] {{mode = vc}} : memref<32xf32> -> {line}
      xegpu.store_nd %r, %e {{mode = vc}} : vector<32xf32>, {line}
      gpu.return
    }} }}"""
    source = RNG.integers(-100, 100, (64, 64)).astype(np.float32)
    out = np.zeros(32, np.float32)
    run(text, source, out)
    np.testing.assert_array_equal(out, source[:32, :32].sum(axis) + 5)


@pytest.mark.parametrize("element", ["f32", "f16", "i8"])
def test_blocks_of_three_dimensions(element):
    source = numbers(element, (4, 40, 64))
    desc, value = f"!xegpu.tensor_desc<2x24x48x{element}>", vector((2, 24, 48), element)
    transposed = vector((24, 2, 48), element)
    line = f"!xegpu.tensor_desc<{2 * 24 * 48}x{element}, {PLAIN}>"
    flat = vector((2 * 24 * 48,), element)
    text = f"""gpu.module @m {{ gpu.func @k(%in: memref<4x40x64x{element}>, %to: memref<4x40x64x{element}>,
                                            %out: memref<{2 * 24 * 48}x{element}>) kernel {{
      %d = xegpu.create_nd_tdesc %in[1, 20, 8] {{mode = vc}} : memref<4x40x64x{element}> -> {desc}
      %x = xegpu.load_nd %d {{mode = vc}} : {desc} -> {value}
      %e = xegpu.create_nd_tdesc %to[2, 16, 16] {{mode = vc}} : memref<4x40x64x{element}> -> {desc}
      xegpu.store_nd %x, %e {{mode = vc}} : {value}, {desc}
      %t = xegpu.load_nd %d {{transpose = [1, 0, 2], mode = vc}} : {desc} -> {transposed}
      %f = vector.shape_cast %t : {transposed} to {flat}
      %l = xegpu.create_nd_tdesc %out[0] {{mode = vc}} : memref<{2 * 24 * 48}x{element}> -> {line}
      xegpu.store_nd %f, %l {{mode = vc}} : {flat}, {line}
      gpu.return
    }} }}"""
    to, out = np.zeros_like(source), np.zeros(2 * 24 * 48, source.dtype)
    run(text, source, to, out)
    block = np.zeros((2, 24, 48), source.dtype)
    block[:, :20] = source[1:3, 20:, 8:56]
    expected = np.zeros_like(source)
    expected[2:4, 16:40, 16:64] = block
    np.testing.assert_array_equal(to.view("u1"), expected.view("u1"))
    np.testing.assert_array_equal(out.view("u1"), block.swapaxes(0, 1).ravel().view("u1"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.mlir")), ids=lambda p: p.stem)
def test_what_is_legal_stays(path):
    module = xegpu_py.parse(path.read_text())
    xegpu_py.run_pipeline(module, f"builtin.module(xegpu-emulate-narrow-types,xegpu-legalize,{CLEAN})")
    once = str(module)
    xegpu_py.run_pipeline(module, f"builtin.module(xegpu-legalize,{CLEAN})")
    assert str(module) == once


@pytest.mark.parametrize("target", ["dg2", "pvcxt"])
@pytest.mark.parametrize(
    ("lanes", "chunk", "element"), [(32, 1, "f16"), (32, 1, "i8"), (32, 1, "f64"), (32, 8, "f32"), (16, 8, "f64")]
)
def test_lanes_that_need_several_messages(lanes, chunk, element, target):
    """A descriptor is divided where it is created, moved, prefetched, loaded and stored."""
    chunks = f", chunk_size_per_lane = {chunk}" if chunk > 1 else ""
    shape = f"{lanes}x{chunk}" if chunk > 1 else f"{lanes}"
    held = f"vector<{chunk}x{lanes}x{element}>" if chunk > 1 else f"vector<{lanes}x{element}>"
    desc = f"!xegpu.tensor_desc<{shape}x{element}, #xegpu.tdesc_attr<scattered = true{chunks}>>"
    memory, offsets = f"memref<?x{element}>", f"vector<{lanes}xindex>"
    text = f"""gpu.module @m {{
  gpu.func @k(%a: {memory}, %o: {memory}) kernel {{
    %step = vector.step : {offsets}
    %three = arith.constant dense<3> : {offsets}
    %i = arith.muli %step, %three : {offsets}
    %size = arith.constant dense<{chunk}> : {offsets}
    %j = arith.muli %step, %size : {offsets}
    %m = arith.constant dense<true> : vector<{lanes}xi1>
    %t = xegpu.create_tdesc %a, %i {{mode = vc{chunks}}} : {memory}, {offsets} -> {desc}
    %u = xegpu.update_offset %t, %step {{mode = vc}} : {desc}, {offsets} -> {desc}
    xegpu.prefetch %u {{mode = vc}} : {desc}
    %v = xegpu.load %u, %m {{mode = vc}} : {desc}, vector<{lanes}xi1> -> {held}
    %p = xegpu.create_tdesc %o, %j {{mode = vc{chunks}}} : {memory}, {offsets} -> {desc}
    xegpu.store %v, %p, %m {{mode = vc}} : {held}, {desc}, vector<{lanes}xi1>
    gpu.return
  }}
}}"""
    a = np.random.default_rng(0).integers(-99, 99, 4 * lanes + chunk).astype(DTYPES[element])
    o = np.zeros(lanes * chunk, a.dtype)
    xegpu_py.compile(text, target=target)(a, o)
    np.testing.assert_array_equal(o.reshape(lanes, chunk), [a[4 * i : 4 * i + chunk] for i in range(lanes)])
