"""dpas of any size that instructions make up, of subgroups and of work items, and of elements within bytes."""

import re

import numpy as np
import pytest

import xegpu_py
from xegpu_py.passes.analysis import message_tiling
from xegpu_py.target import TARGETS

SIZES = [(8, 16, 16), (32, 16, 16), (16, 32, 32), (3, 48, 16), (20, 16, 48)]


def vc(m, n, k):
    """One f16 product of a subgroup."""
    return f"""gpu.module @k {{
    gpu.func @f(%a: memref<{m}x{k}xf16>, %b: memref<{k}x{n}xf16>, %c: memref<{m}x{n}xf32>) kernel {{
      %at = xegpu.create_nd_tdesc %a[0, 0] {{mode = vc}} : memref<{m}x{k}xf16> -> !xegpu.tensor_desc<{m}x{k}xf16>
      %bt = xegpu.create_nd_tdesc %b[0, 0] {{mode = vc}} : memref<{k}x{n}xf16> -> !xegpu.tensor_desc<{k}x{n}xf16>
      %ct = xegpu.create_nd_tdesc %c[0, 0] {{mode = vc}} : memref<{m}x{n}xf32> -> !xegpu.tensor_desc<{m}x{n}xf32>
      %av = xegpu.load_nd %at {{mode = vc}} : !xegpu.tensor_desc<{m}x{k}xf16> -> vector<{m}x{k}xf16>
      %bv = xegpu.load_nd %bt {{mode = vc, vnni_axis = 0}}
        : !xegpu.tensor_desc<{k}x{n}xf16> -> vector<{k // 2}x{n}x2xf16>
      %r = xegpu.dpas %av, %bv {{mode = vc}} : vector<{m}x{k}xf16>, vector<{k // 2}x{n}x2xf16> -> vector<{m}x{n}xf32>
      xegpu.store_nd %r, %ct {{mode = vc}} : vector<{m}x{n}xf32>, !xegpu.tensor_desc<{m}x{n}xf32>
      gpu.return
    }} }}"""


def simt(m, n, k):
    """The same of work items, each with its fragments."""
    plain, pairs = (f"#xegpu.sg_map<wi_layout = [1, 16], wi_data = [{d}, 1]>" for d in (1, 2))
    a, b, c = (
        f"!xegpu.tensor_desc<{shape}, {kind}>"
        for shape, kind in ((f"{m}x{k}xf16", plain), (f"{k}x{n}xf16", pairs), (f"{m}x{n}xf32", plain))
    )
    av, bv, cv = f"vector<{m}x{k // 16}xf16>", f"vector<{k // 2}x{n // 16}x2xf16>", f"vector<{m}x{n // 16}xf32>"
    return f"""gpu.module @k {{
    gpu.func @f(%a: memref<{m}x{k}xf16>, %b: memref<{k}x{n}xf16>, %c: memref<{m}x{n}xf32>) kernel {{
      %at = xegpu.create_nd_tdesc %a[0, 0] : memref<{m}x{k}xf16> -> {a}
      %bt = xegpu.create_nd_tdesc %b[0, 0] : memref<{k}x{n}xf16> -> {b}
      %ct = xegpu.create_nd_tdesc %c[0, 0] : memref<{m}x{n}xf32> -> {c}
      %av = xegpu.load_nd %at : {a} -> {av}
      %bv = xegpu.load_nd %bt {{vnni_axis = 0}} : {b} -> {bv}
      %r = xegpu.dpas %av, %bv : {av}, {bv} -> {cv}
      xegpu.store_nd %r, %ct : {cv}, {c}
      gpu.return
    }} }}"""


def product(text, m, n, k, target, block=1):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    kernel = xegpu_py.compile(text, target=target, registers=256, engine="interpreter")
    kernel(a, b, c, block=block)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    return kernel


@pytest.mark.each_value
@pytest.mark.parametrize("target", ["pvc", "dg2"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_of_subgroups(size, target):
    product(vc(*size), *size, target)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_of_work_items(size):
    product(simt(*size), *size, "pvc", block=16)


def test_of_work_items_with_a_factor_that_all_share():
    """A fragment that is the same in all work items is one of each: A has 16 columns here, and not one."""
    m, n, k = 8, 16, 16
    text, old = simt(m, n, k), "%av = xegpu.load_nd %at"
    line = next(line for line in text.splitlines() if old in line)
    text = text.replace(line, "%av = arith.constant dense<2.0> : vector<8x1xf16>")
    b, c = np.arange(k * n).reshape(k, n).astype(np.float16), np.zeros((m, n), np.float32)
    for engine in ("interpreter", "reference"):
        xegpu_py.compile(text, target="pvc", engine=engine)(np.zeros((m, k), np.float16), b, c, block=16)
        np.testing.assert_array_equal(c, np.full((m, k), 2.0) @ b.astype(np.float64))


@pytest.mark.parametrize(
    ("size", "elements", "target", "slab", "ahead"),
    [
        # As deep as a message of A is wide; with loads ahead one instruction deep, and as wide as a message of B.
        ((32, 64, 128), "f16", "pvc", (64, 32), (32, 16)),
        ((8, 64, 64), "i8", "pvc", (64, 64), (64, 32)),
        ((16, 24, 64), "f16", "cri", (24, 32), (32, 16)),
        # All of K and the columns of a message, if it has the rows for it and this needs no more registers.
        ((8, 40, 32), "tf32", "pvc", (16, 32), (16, 8)),
        ((8, 39, 32), "tf32", "pvc", (39, 16), (16, 8)),
        ((8, 64, 33), "tf32", "pvc", (64, 16), (16, 8)),
        # Without 2D block messages the whole product.
        ((32, 64, 128), "f16", "dg2", (64, 128), (64, 128)),
    ],
)
def test_slabs_of_products(size, elements, target, slab, ahead):
    m, n, k = size
    for expected, is_ahead in ((slab, False), (ahead, True)):
        blocks = message_tiling._blocks((m, n), k, elements, elements, False, TARGETS[target], is_ahead)
        assert (blocks.slab_columns, blocks.slab_depth) == expected


def test_the_most_lanes_that_divide_the_columns():
    found = {name: [TARGETS[name].dpas_columns(n) for n in (8, 16, 20, 24, 48)] for name in ("any", "pvc", "dg2")}
    assert found == {
        "any": [8, 16, None, 8, 16],
        "pvc": [None, 16, None, None, 16],
        "dg2": [8, 8, None, 8, 8],
    }


def test_of_eight_lanes_on_any():
    """The specification has SIMD8 as well as SIMD16."""
    asm = product(vc(8, 24, 16), 8, 24, 16, "any").asm
    assert len(re.findall(r"dpas\.hf\.hf\.8\.8 \(M1(_NM)?, 8\)", asm)) == 3
    # 24 columns are two products of 16 lanes, the second padded with zeros.
    asm = product(vc(8, 24, 16), 8, 24, 16, "pvc").asm
    assert len(re.findall(r"dpas\.hf\.hf\.8\.8 \(M1(_NM)?, 16\)", asm)) == 2


@pytest.mark.parametrize("bits", [4, 2])
@pytest.mark.parametrize("target", ["pvc", "dg2"])
def test_of_elements_within_bytes(target, bits):
    m, n, k, each = 16, 32, 512 // bits, 8 // bits
    a, b, packed = f"{m}x{k // each}xi8", f"{k // each}x{n}xi8", f"{k // each // 4}x{n}"
    text = f"""gpu.module @k {{ gpu.func @f(%a: memref<{a}>, %b: memref<{b}>, %c: memref<{m}x{n}xi32>) kernel {{
      %at = xegpu.create_nd_tdesc %a[0, 0] {{mode = vc}} : memref<{a}> -> !xegpu.tensor_desc<{a}>
      %bt = xegpu.create_nd_tdesc %b[0, 0] {{mode = vc}} : memref<{b}> -> !xegpu.tensor_desc<{b}>
      %ct = xegpu.create_nd_tdesc %c[0, 0] {{mode = vc}} : memref<{m}x{n}xi32> -> !xegpu.tensor_desc<{m}x{n}xi32>
      %a8 = xegpu.load_nd %at {{mode = vc}} : !xegpu.tensor_desc<{a}> -> vector<{a}>
      %b8 = xegpu.load_nd %bt {{mode = vc, vnni_axis = 0}} : !xegpu.tensor_desc<{b}> -> vector<{packed}x4xi8>
      %av = vector.bitcast %a8 : vector<{a}> to vector<{m}x{k}xi{bits}>
      %bv = vector.bitcast %b8 : vector<{packed}x4xi8> to vector<{packed}x{4 * each}xi{bits}>
      %r = xegpu.dpas %av, %bv {{mode = vc}}
        : vector<{m}x{k}xi{bits}>, vector<{packed}x{4 * each}xi{bits}> -> vector<{m}x{n}xi32>
      xegpu.store_nd %r, %ct {{mode = vc}} : vector<{m}x{n}xi32>, !xegpu.tensor_desc<{m}x{n}xi32>
      gpu.return
    }} }}"""
    rng = np.random.default_rng(7)
    low, mask = 1 << (bits - 1), (1 << bits) - 1
    left, right = rng.integers(-low, low, (m, k)), rng.integers(-low, low, (k, n))
    # The first element is in the lowest bits.
    shifts = bits * np.arange(each)
    left8 = ((left.reshape(m, -1, each) & mask) << shifts).sum(-1).astype(np.uint8).view(np.int8)
    right8 = ((right.reshape(-1, each, n) & mask) << shifts[:, None]).sum(1).astype(np.uint8).view(np.int8)
    found = np.zeros((m, n), np.int32)
    xegpu_py.compile(text, target=target, registers=256, engine="both")(left8, right8, found)
    np.testing.assert_array_equal(found, left @ right)


BARRIERS = """
gpu.module @m {
  gpu.func @k(%count: i8, %m: memref<32xi32>) kernel {
    %zero = arith.constant 0 : i8
    %two = arith.constant 2 : i8
    %id = gpu.thread_id x
    %other = gpu.subgroup_id : index
    xegpu.alloc_nbarrier %count : i8
    %barrier = xegpu.init_nbarrier %zero, %two : i8, i8 -> !xegpu.nbarrier
    %value = arith.index_cast %id : index to i32
    memref.store %value, %m[%id] : memref<32xi32>
    xegpu.fence
    xegpu.nbarrier_arrive %barrier
    xegpu.nbarrier_wait %barrier
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %next = arith.subi %c1, %id : index
    %found = memref.load %m[%next] : memref<32xi32>
    %at = arith.addi %id, %c16 : index
    memref.store %found, %m[%at] : memref<32xi32>
    gpu.return
  }
}
"""


def test_barriers_whose_number_is_an_argument_and_a_fence_of_everything():
    kernel = xegpu_py.compile(BARRIERS, target="pvc", engine="both")
    memory = np.zeros(32, np.int32)
    kernel(1, memory, block=2)
    np.testing.assert_array_equal(memory[[0, 1, 16, 17]], [0, 1, 1, 0])
    assert "lsc_fence.ugm.none.gpu" in kernel.asm and "lsc_fence.slm.none.group" in kernel.asm
    assert "NBarrierCnt=32" in kernel.asm.replace('"', "")
