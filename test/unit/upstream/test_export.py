"""Descriptors of blocks as upstream's: their memory, and the offsets of the accesses."""

import itertools
import re

import pytest

from xegpu_py.ir.module import parse
from xegpu_py.upstream import export_upstream, import_upstream

T = "!xegpu.tensor_desc<8x16xf32>"
SOURCES = [
    ("memref<64x64xf32>", "", ""),
    ("memref<64x64xf32>", ", [64, 64], [64, 1]", ", shape : [64, 64], strides : [64, 1]"),
    ("memref<?x?xf32>", "", ", shape : [%dim, %dim_0], strides : [%strides#0, 1]"),
    ("memref<?x64xf32>", "", ", shape : [%dim, 64], strides : [64, 1]"),
    ("memref<?x?xf32>", ", [64, 32], [32, 1]", ", shape : [64, 32], strides : [32, 1]"),
    ("memref<?x?xf32>", ", [%h, %w], [%w, 1]", ", shape : [%arg1, %arg2], strides : [%arg2, 1]"),
    ("memref<64x64xf32, strided<[?, 1]>>", "", ", shape : [64, 64], strides : [%strides#0, 1]"),
    ("ui64", ", [64, 64], [64, 1]", ", shape : [64, 64], strides : [64, 1]"),
    ("ui64", ", [%h, %w], [%w, 1]", ", shape : [%arg1, %arg2], strides : [%arg2, 1]"),
]


def exported(kind, size, offsets, body):
    head = f"gpu.func @k(%a: {kind}, %h: index, %w: index, %x: index, %p: i1) kernel"
    made = f"%d = xegpu.create_nd_tdesc %a[{offsets}]{size} {{mode = vc}} : {kind} -> {T}"
    text = str(export_upstream(parse(f"gpu.module @m {{ {head} {{ {made} {body} gpu.return }} }}")))
    assert "xegpu" in str(import_upstream(text))
    return re.findall(r"xegpu\.(?:create_nd_tdesc|load_nd|store_nd|prefetch_nd|update_nd_offset) .*(?= : )", text)


@pytest.mark.parametrize("source, offsets", zip(SOURCES, itertools.cycle(["0, 0", "8, 16", "%x, 4"])))
def test_accesses_have_the_offsets(source, offsets):
    """A descriptor is of the whole memory, if all its uses are known; what it is moved by is added."""
    kind, size, stated = source
    body = f"""%v = xegpu.load_nd %d {{mode = vc}} : {T} -> vector<8x16xf32>
    %e = xegpu.update_nd_offset %d, [8, 0] {{mode = vc}} : {T} -> {T}
    xegpu.prefetch_nd %e {{mode = vc}} : {T}
    xegpu.store_nd %v, %e {{mode = vc}} : vector<8x16xf32>, {T}"""
    made, load, *others = exported(kind, size, offsets, body)
    first = offsets.replace("%x", "%arg3")
    moved = {"0, 0": "8, 0", "8, 16": "16, 16", "%x, 4": r"%\d+, 4"}[offsets]
    assert made == f"xegpu.create_nd_tdesc %arg0{stated}"
    assert load == f"xegpu.load_nd %{load[15]}[{first}]"
    prefetch, store = others
    assert re.fullmatch(rf"xegpu\.prefetch_nd %\d\[{moved}\]", prefetch)
    assert re.fullmatch(rf"xegpu\.store_nd %\d, %\d\[{moved}\]", store)


@pytest.mark.parametrize("kind, size, stated", SOURCES[1::3])
def test_control_flow_passes_on_offsets(kind, size, stated):
    body = f"""%f = xegpu.update_nd_offset %d, [8, 0] {{mode = vc}} : {T} -> {T}
    %e = scf.if %p -> ({T}) {{ scf.yield %d : {T} }} else {{ scf.yield %f : {T} }}
    %v = xegpu.load_nd %e {{mode = vc}} : {T} -> vector<8x16xf32>
    xegpu.store_nd %v, %d {{mode = vc}} : vector<8x16xf32>, {T}"""
    made, load, store = exported(kind, size, "%x, 4", body)
    assert made == f"xegpu.create_nd_tdesc %arg0{stated}"
    assert re.fullmatch(r"xegpu\.load_nd %\d\[(%\d)#0, \1#1\]", load)
    assert re.fullmatch(r"xegpu\.store_nd %\d, %\d\[%arg3, %c4\]", store)
