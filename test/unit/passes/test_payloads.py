"""Messages read their addresses from the start of a register on, in whole registers, as hardware does.

The engines read what a variable holds, wherever it lies, so these tests look at programs and at native code.
"""

import re

import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py.engines.operands import data_offsets
from xegpu_py.ir.diagnostics import Source
from xegpu_py.passes.visa_optimize.code_motion import forward_results
from xegpu_py.target import TARGETS
from xegpu_py.visa import assembly
from xegpu_py.visa.messages import holds_payload
from xegpu_py.visa.operands import Address
from xegpu_py.visa.spec import DataShape, payload_lanes

from .blocks import Access, accesses

ALL = tuple(name for name in TARGETS if name != "any")

SCALARS = """
gpu.module @m {
  gpu.func @k(%a: memref<64xi16>, %b: memref<?xi8>, %o: memref<64xf64>, %i: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %first = memref.load %b[%c0] : memref<?xi8>
    %start = arith.extsi %first : i8 to i16
    scf.for %n = %c0 to %c8 step %c1 {
      %x = memref.load %a[%i] : memref<64xi16>
      %y = memref.load %b[%n] : memref<?xi8>
      %z = arith.extsi %y : i8 to i16
      %v = arith.addi %x, %z : i16
      %w = arith.addi %v, %start : i16
      %f = arith.sitofp %w : i16 to f64
      memref.store %f, %o[%n] : memref<64xf64>
      %old = memref.atomic_rmw addi %w, %a[%n] : (i16, memref<64xi16>) -> i16
    }
    gpu.return
  }
}
"""

LINES = """
!line = !xegpu.tensor_desc<16xf32, #xegpu.tdesc_attr<boundary_check = false>>
gpu.module @m {
  gpu.func @k(%a: memref<64xf32>, %o: memref<64xf32>) kernel {
    %t = xegpu.create_nd_tdesc %a[0] {mode = vc} : memref<64xf32> -> !line
    %u = xegpu.create_nd_tdesc %a[16] {mode = vc} : memref<64xf32> -> !line
    %v = xegpu.create_nd_tdesc %o[0] {mode = vc} : memref<64xf32> -> !line
    %x = xegpu.load_nd %t {mode = vc} : !line -> vector<16xf32>
    %y = xegpu.load_nd %u {mode = vc} : !line -> vector<16xf32>
    %z = arith.addf %x, %y : vector<16xf32>
    xegpu.store_nd %z, %v {mode = vc} : vector<16xf32>, !line
    gpu.return
  }
}
"""


def addresses(asm, target):
    """The messages of a program, with their addresses."""
    (program,) = assembly.read(Source(asm, "k.visaasm"))
    found = [(i, i["address"]) for i in program.instructions if isinstance(i.values.get("address"), Address)]
    return [(assembly.write_statement(i), a, holds_payload(a, i, TARGETS[target])) for i, a in found]


@pytest.mark.parametrize(
    ("declared", "offset", "held"),
    [
        ("num_elts=16 align=GRF", 0, True),
        ("num_elts=16 align=qword", 0, False),
        ("num_elts=8 align=GRF", 0, False),
        ("num_elts=32 align=GRF", 1, False),
        ("num_elts=32 align=GRF", 8, True),
    ],
)
def test_registers_of_a_payload(declared, offset, held):
    """16 addresses of 64 bits on pvc, at the start of one of its 64-byte registers."""
    kernel = f""".version 3.8
.kernel "k"
.decl A v_type=G type=uq {declared}
.decl V v_type=G type=d num_elts=16 align=GRF
.kernel_attr Target="cm"
    lsc_load.ugm (M1_NM, 16) V:d32 flat[A.{8 * offset}]:a64
    ret (M1, 1)
"""
    assert [found for _, _, found in addresses(kernel, "pvc")] == [held]


@pytest.mark.parametrize(
    ("target", "lanes", "size", "forwarded"),
    [
        ("pvc", 16, 64, True),
        ("pvc", 8, 64, False),
        ("pvc", 8, 32, True),
        ("dg2", 8, 64, True),
        ("dg2", 4, 64, False),
    ],
)
def test_loads_are_not_forwarded_to_where_their_registers_reach_too_far(target, lanes, size, forwarded):
    """A message of few lanes has the registers of 16 (dg2: 8), here more than follow in B."""
    grf = TARGETS[target].grf_bytes
    register, half = grf * 8 // size, lanes // 2
    kernel = f""".version 3.8
.kernel "k"
.decl A v_type=G type=uq num_elts=16 align=GRF
.decl V v_type=G type={"q" if size == 64 else "d"} num_elts={2 * register} align=GRF
.decl B v_type=G type={"q" if size == 64 else "d"} num_elts={register + lanes} align=GRF
.kernel_attr Target="cm"
    mov (M1_NM, {register}) B(0,0)<1> 0x0:w
    lsc_load.ugm (M1_NM, {lanes}) V:d{size} flat[A]:a64
    mov (M1_NM, {half}) B(1,0)<1> V(0,0)<1;1,0>
    mov (M1_NM, {half}) B({1 + half // register},{half % register})<1> V({half // register},{half % register})<1;1,0>
    lsc_store.ugm (M1_NM, 16) flat[A]:a64 B:d32
    ret (M1, 1)
"""
    (program,) = assembly.read(Source(kernel, "k.visaasm"))
    found = assembly.write([forward_results(program, TARGETS[target])])
    assert (f"B.{grf}:d{size}" in found) == forwarded
    assert (found.count("mov") == 1) == forwarded


@pytest.mark.each_value
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("text", [SCALARS, LINES], ids=["scalars", "lines"])
def test_messages_of_one_lane(text, target, optimize):
    if text == SCALARS:
        text = text.replace("f64", "f32") if target == "dg2" else text
    messages = addresses(xegpu_py.compile(text, target=target, optimize=optimize).asm, target)
    assert messages
    assert not [statement for statement, _, held in messages if not held]


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.filter_too_much])
@given(accesses(aligned=False), st.sampled_from(ALL))
def test_messages_in_place_of_blocks(access, target):
    messages = addresses(xegpu_py.compile(access.text(), target=target, unaligned=(0,)).asm, target)
    assert not [statement for statement, _, held in messages if not held]


@pytest.mark.parametrize("target", ["dg2", "pvc"])
def test_the_finalizer_reads_addresses_where_they_are(target, native_of):
    text = SCALARS.replace("f64", "f32") if target == "dg2" else SCALARS
    kernel = xegpu_py.compile(text, target=target)
    native = native_of(kernel.asm, target).text
    for statement, address, _ in addresses(kernel.asm, target):
        (declared,) = re.findall(rf"^//\.declare {address.var.root[0].name} .*\(r(\d+)\.(\d+)\)", native, re.MULTILINE)
        assert declared[1] == "0", statement


def test_addresses_do_not_end_at_the_last_register(native_of):
    """The finalizer crashed: two lanes' addresses had one register of 32 bytes, of which a message reads two."""
    access = Access(
        element="i16",
        op="load",
        whole=(1, 1, 1, 1),
        view=(1, 1, 1, 1),
        block=(2, 2, 9, 2),
        place=(0,) * 4,
        start=(0,) * 4,
        turns=1,
        transform="",
        array=1,
        static=False,
        loop=False,
        side_by_side=False,
        slm=False,
    )
    native_of(xegpu_py.compile(access.text(), target="dg2", unaligned=(0,)).asm, "dg2")


HEADER = """.version 3.8
.kernel "k"
.decl in0 v_type=G type=uq num_elts=1 align=qword
.decl at v_type=G type=uq num_elts=32 align=GRF
.decl to v_type=G type=uq num_elts=128 align=GRF
.input in0 offset=64 size=8
.kernel_attr SimdSize=16
.kernel_attr Target="cm"
    mov (M1_NM, 16) at(0,0)<1> in0(0,0)<0;1,0>
"""


@pytest.mark.parametrize("target", ["dg2", "pvc"])
def test_messages_of_few_lanes_take_the_registers_that_the_finalizer_encodes(target, native_of):
    """Each element of all lanes begins at a register: the second one's depends on the least lanes of a message."""
    grf = TARGETS[target].grf_bytes
    shapes = [
        (DataShape(size, vector), lanes) for size in ("d32", "d64") for vector in (1, 2, 4) for lanes in (1, 4, 8)
    ]
    shapes += [(DataShape("d32", 2), 16), (DataShape("d16c32"), 2)]
    loads = [f"    lsc_load.ugm (M1_NM, {lanes}) to.0:{shape} flat[at.0]:a64" for shape, lanes in shapes]
    text = "\n".join([HEADER + loads[0], *loads[1:], "    ret (M1, 1)\n"])
    native = native_of(text, target).text
    found = [tuple(map(int, m)) for m in re.findall(r" load\.ugm\.\S+\.a64 .*? r\d+:(\d+) +\[r\d+:(\d+)\]", native)]
    assert found == [
        (shape.vector * shape.row_bytes(lanes, grf) // grf, payload_lanes(lanes, grf) * 8 // grf)
        for shape, lanes in shapes
    ]


def test_elements_of_few_lanes_begin_at_registers():
    """Two f64 for each of 4 lanes: a message of dg2 has room for 8 lanes."""
    assert data_offsets(DataShape("d64", 2), 4, 32).tolist() == [[0, 64], [8, 72], [16, 80], [24, 88]]
    assert data_offsets(DataShape("d32", 2), 4, 32).tolist() == [[0, 32], [4, 36], [8, 40], [12, 44]]
