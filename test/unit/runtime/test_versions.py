"""Versions of kernels for calls with unaligned arrays, whose lowering begins as that of the general version."""

import pytest
from msgspec import structs

import xegpu_py
from xegpu_py.ir.module import parse
from xegpu_py.lower_kernel import KernelLowering
from xegpu_py.runtime.options import Options

OPTIONS = Options(target="bmg")

# The kernel assumes of array 0 that the number 2 is a multiple of 64, and nothing of array 1.
TEXT = """
gpu.module @k {
  gpu.func @k(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) kernel ATTRIBUTES {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %id = gpu.block_id x
    %first = arith.muli %id, %c64 : index
    %s = vector.step : vector<64xindex>
    %f = vector.broadcast %first : index to vector<64xindex>
    %p = arith.addi %f, %s : vector<64xindex>
    %m = vector.broadcast %n : index to vector<64xindex>
    %i = arith.remsi %p, %m : vector<64xindex>
    %a = xetile.init_tile %A, %i : memref<?xf32>, vector<64xindex>
      -> !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>
    %x = xetile.load %a : !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>> -> vector<64xf32>
    %more = arith.addi %n, %c1 : index
    %b = vector.broadcast BOUND : index to vector<64xindex>
    %in = arith.cmpi slt, %p, %b : vector<64xindex>
    %t = xetile.init_tile %B, %p : memref<?xf32>, vector<64xindex>
      -> !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>
    scf.for %k = %c0 to %c1 step %c1 {
      %y = xetile.load %t, %in : !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1>
        -> vector<64xf32>
      %z = arith.addf %x, %y : vector<64xf32>
      xetile.store %z, %t, %in
        : vector<64xf32>, !xetile.tile<64xf32, #xetile.tile_attr<scattered = true>>, vector<64xi1>
    } LOOP
    gpu.return
  }
}
"""


def lowering(options=OPTIONS, attributes="", loop="", bound="%more"):
    text = TEXT.replace("ATTRIBUTES", attributes).replace("LOOP", loop).replace("BOUND", bound)
    return KernelLowering(parse(text), "k", options)


def test_the_version_of_an_unaligned_array_goes_on_from_the_assumptions():
    options = structs.replace(OPTIONS, unaligned=(1,))
    begun = lowering()
    begun.assumptions()
    assert begun.serves(options)
    version, alone, aligned = begun.executable(), lowering(options).executable(), lowering().executable()
    assert version == alone
    assert version.program != aligned.program
    assert lowering().serves(OPTIONS)


def test_the_version_of_an_array_of_which_something_is_assumed_begins_anew():
    options = structs.replace(OPTIONS, unaligned=(0, 1))
    begun = lowering()
    assert begun.assumptions().multiples and not lowering(options).assumptions().multiples
    assert not begun.serves(options)
    # It goes on as it began.
    assert begun.executable() == lowering().executable()


def test_the_version_of_an_array_whose_rows_are_divided_begins_anew():
    options = structs.replace(OPTIONS, unaligned=(1,))
    begun = lowering(bound="%n")
    assert begun.assumptions() and not begun.serves(options)
    assert begun.executable().program != lowering(options, bound="%n").executable().program


@pytest.mark.parametrize(
    ("changes", "attributes", "loop"),
    [
        ({"load_ahead": True}, "", ""),
        ({"unaligned": (0,)}, "", ""),
        ({}, "attributes {xegpu.unaligned = array<i64: 0>}", ""),
        ({}, "", "{xetile.load_ahead}"),
    ],
)
def test_what_depends_on_alignment_before_the_assumptions_begins_anew(changes, attributes, loop):
    options = structs.replace(OPTIONS, **changes)
    wanted = structs.replace(options, unaligned=(1,))
    assert not lowering(options, attributes, loop).serves(wanted)


def test_other_options_begin_anew():
    assert not lowering().serves(structs.replace(OPTIONS, unaligned=(1,), large=True))
    assert not lowering().serves(structs.replace(OPTIONS, strided=(1,)))


TILES = """
gpu.module @m {
  gpu.func @k(%a: memref<32x32xf32>, %b: memref<32x32xf32>) kernel {
    %c0 = arith.constant 0 : index
    %x = xetile.init_tile %a[%c0, %c0] : memref<32x32xf32> -> !xetile.tile<32x32xf32MAP>
    %v = xetile.load_tile %x : !xetile.tile<32x32xf32MAP> -> vector<32x32xf32>
    %y = xetile.init_tile %b[%c0, %c0] : memref<32x32xf32> -> !xetile.tile<32x32xf32MAP>
    xetile.store_tile %v, %y : vector<32x32xf32>, !xetile.tile<32x32xf32MAP>
    gpu.return
  }
}
"""
MAP = ", #xetile.tile_attr<wg_map = <sg_layout = [4, 2], sg_data = [8, 16]>>"


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize(("given", "chosen"), [(None, None), (0, 2), (1, None), (2, 2), (4, 4)])
def test_subgroups_of_a_workgroup(mapped: bool, given: int | None, chosen: int | None) -> None:
    """Those of the maps, or else as many as are asked for, of which one is none."""
    text = TILES.replace("MAP", MAP if mapped else "")
    kernel = xegpu_py.compile(text, subgroups=given, cache="off")
    expected = 8 if mapped else chosen
    assert (kernel.subgroups, kernel.block) == (expected, (expected or 1,))
