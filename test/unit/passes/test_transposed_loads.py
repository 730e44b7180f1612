"""Blocks that are loaded transposed without boundary checks: each lane of a gather loads dwords of one row."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xegpu_py
from xegpu_py.target import target as target_of

TYPES = {"f32": np.float32, "i32": np.int32, "f16": np.float16, "i8": np.int8}

SCOPE = "#xegpu.tdesc_attr<memory_scope = slm, boundary_check = false>"

TEXT = """
!array = memref<{height}x{pitch}x{element}>
!buffer = memref<{height}x{pitch}x{element}, 3>
!result = memref<{dwords}x{across}x{element}>
!from = !xegpu.tensor_desc<{height}x{pitch}x{element}>
!to = !xegpu.tensor_desc<{height}x{pitch}x{element}, {scope}>
!block = !xegpu.tensor_desc<{rows}x{columns}x{element}, {scope}>
!out = !xegpu.tensor_desc<{dwords}x{across}x{element}>
gpu.module @m {{
  gpu.func @k(%a: !array, %o: !result, %row: index, %n: index) kernel {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %s = memref.alloc() : !buffer
    %from = xegpu.create_nd_tdesc %a[0, 0] {{mode = vc}} : !array -> !from
    %to = xegpu.create_nd_tdesc %s[0, 0] {{mode = vc}} : !buffer -> !to
    %v = xegpu.load_nd %from {{mode = vc}} : !from -> vector<{height}x{pitch}x{element}>
    xegpu.store_nd %v, %to {{mode = vc}} : vector<{height}x{pitch}x{element}>, !to
    gpu.barrier
    %d = xegpu.create_nd_tdesc %s[%row, {column}] {{mode = vc}} : !buffer -> !block
    {begin}
    %x = xegpu.load_nd {desc} {{mode = vc, transpose = [1, 0]{unit}}} : !block -> vector<{dwords}x{across}x{element}>
    %e = xegpu.create_nd_tdesc %o[0, 0] {{mode = vc}} : !result -> !out
    xegpu.store_nd %x, %e {{mode = vc}} : vector<{dwords}x{across}x{element}>, !out
    {end}
    gpu.return
  }}
}}
"""

LOOP = """%last = scf.for %i = %c0 to %n step %c1 iter_args(%b = %d) -> (!block) {"""
NEXT = """%next = xegpu.update_nd_offset %b, [1, 0] {mode = vc} : !block -> !block
    scf.yield %next : !block
    }"""


def program(element: str, rows: int, columns: int, pitch: int, column: int | str, carried: bool) -> str:
    per_dword = 4 // np.dtype(TYPES[element]).itemsize
    return TEXT.format(
        scope=SCOPE,
        element=element,
        height=rows + 8,
        rows=rows,
        columns=columns,
        pitch=pitch,
        dwords=columns // per_dword,
        across=rows * per_dword,
        column=column,
        unit=", transpose_bit_width = 32" if per_dword > 1 else "",
        desc="%b" if carried else "%d",
        begin=LOOP if carried else "",
        end=NEXT if carried else "",
    )


def gathers(asm: str, memory: str = "slm") -> set[str]:
    """The data of the loads whose lanes load dwords."""
    return {*re.findall(rf"lsc_load\.{memory} \(\S+ \d+\) \S+:(d32(?:x\d)?) flat", asm)}


@pytest.mark.each_value
@pytest.mark.parametrize("target", ["pvc", "bmg", "dg2"])
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize(
    ("element", "rows", "columns", "pitch", "column", "message"),
    [
        ("f32", 16, 16, 16, 0, "d32x8"),
        ("i32", 32, 4, 12, 8, "d32x4"),
        ("f32", 48, 6, 16, 3, "d32x2"),
        ("f16", 32, 64, 64, 0, "d32x8"),
        ("f16", 16, 24, 32, 2, "d32x4"),
        ("i8", 16, 32, 64, 4, "d32x8"),
        # Rows that fill no register, one dword, dwords that do not begin at multiples of 4 bytes, or perhaps do not.
        ("f32", 12, 16, 16, 0, None),
        ("f32", 16, 1, 16, 0, None),
        ("f16", 16, 16, 32, 3, None),
        ("f16", 16, 16, 17, 0, None),
        ("f16", 16, 16, 32, "%n", None),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*upstream's lowering makes a 2D block message")
def test_transposed_loads(
    element: str,
    rows: int,
    columns: int,
    pitch: int,
    column: int | str,
    message: str | None,
    carried: bool,
    target: str,
) -> None:
    text, kind = program(element, rows, columns, pitch, column, carried), TYPES[element]
    rng = np.random.default_rng(rows * columns)
    a = rng.integers(-128, 128, (rows + 8, pitch)).astype(kind)
    per_dword, first, n = 4 // a.itemsize, 3, 3
    begin = first + (n - 1) * carried
    left = n if column == "%n" else column
    block = np.ascontiguousarray(a[begin : begin + rows, left : left + columns])
    expected = block.reshape(rows, -1, per_dword).transpose(1, 0, 2).reshape(columns // per_dword, -1)
    compiled = xegpu_py.compile(text, target=target, engine="both")
    for kernel in (compiled, xegpu_py.compile(text, engine="reference")):
        o = np.zeros(expected.shape, kind)
        kernel(a, o, first, n)
        np.testing.assert_array_equal(o, expected)
    fits = message is not None and rows % (target_of(target).grf_bytes // 4) == 0
    assert gathers(compiled.asm) == ({message} if fits else set())


JOINED = """
!buffer = memref<32x16xf32, 3>
!whole = !xegpu.tensor_desc<32x16xf32, SCOPE>
!block = !xegpu.tensor_desc<16x16xf32, SCOPE>
gpu.module @m {
  gpu.func @k(%a: memref<32x16xf32>, %o: memref<16x16xf32>, %n: i32) kernel {
    %c1 = arith.constant 1 : i32
    %first = arith.cmpi eq, %n, %c1 : i32
    %c2 = arith.constant dense<2.0> : vector<32x16xf32>
    %s = memref.alloc() : !buffer
    %t = memref.alloc() : !buffer
    %from = xegpu.create_nd_tdesc %a[0, 0] {mode = vc} : memref<32x16xf32> -> !xegpu.tensor_desc<32x16xf32>
    %to_s = xegpu.create_nd_tdesc %s[0, 0] {mode = vc} : !buffer -> !whole
    %to_t = xegpu.create_nd_tdesc %t[0, 0] {mode = vc} : !buffer -> !whole
    %v = xegpu.load_nd %from {mode = vc} : !xegpu.tensor_desc<32x16xf32> -> vector<32x16xf32>
    %w = arith.mulf %v, %c2 : vector<32x16xf32>
    xegpu.store_nd %v, %to_s {mode = vc} : vector<32x16xf32>, !whole
    xegpu.store_nd %w, %to_t {mode = vc} : vector<32x16xf32>, !whole
    gpu.barrier
    %d = scf.if %first -> !block {
      %e = xegpu.create_nd_tdesc %s[8, 0] {mode = vc} : !buffer -> !block
      scf.yield %e : !block
    } else {
      %e = xegpu.create_nd_tdesc %t[16, 0] {mode = vc} : !buffer -> !block
      scf.yield %e : !block
    }
    %x = xegpu.load_nd %d {mode = vc, transpose = ORDER} : !block -> vector<16x16xf32>
    %out = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32>
    xegpu.store_nd %x, %out {mode = vc} : vector<16x16xf32>, !xegpu.tensor_desc<16x16xf32>
    gpu.return
  }
}
""".replace("SCOPE", SCOPE)


@pytest.mark.parametrize("order", ["[1, 0]", "[0, 1]"])
def test_blocks_of_two_buffers_and_permutations_that_change_nothing(order: str) -> None:
    a = np.arange(512, dtype=np.float32).reshape(32, 16)
    compiled = xegpu_py.compile(JOINED.replace("ORDER", order), target="pvc", engine="both")
    for first in (True, False):
        o, block = np.zeros((16, 16), np.float32), a[8:24] if first else 2 * a[16:]
        compiled(a, o, int(first))
        np.testing.assert_array_equal(o, block.T if order == "[1, 0]" else block)
    assert gathers(compiled.asm) == ({"d32x8"} if order == "[1, 0]" else set())


GLOBAL = """
!array = memref<{height}x{pitch}x{element}>
!block = !xegpu.tensor_desc<{rows}x{columns}x{element}, #xegpu.tdesc_attr<boundary_check = {checked}>>
!result = vector<{dwords}x{across}x{element}>
!out = !xegpu.tensor_desc<{dwords}x{across}x{element}>
gpu.module @m {{
  gpu.func @k(%a: !array, %o: memref<{dwords}x{across}x{element}>) kernel {{
    %pointer = memref.extract_aligned_pointer_as_index %a : !array -> index
    %address = arith.index_cast %pointer : index to i64
    %step = arith.constant {step} : index
    %d = xegpu.create_nd_tdesc {tensor} -> !block
    %x = xegpu.load_nd %d {{mode = vc, transpose = [1, 0]{unit}}} : !block -> !result
    %out = xegpu.create_nd_tdesc %o[0, 0] {{mode = vc}} : memref<{dwords}x{across}x{element}> -> !out
    xegpu.store_nd %x, %out {{mode = vc}} : !result, !out
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("target", ["bmg", "dg2"])
@pytest.mark.parametrize(
    ("element", "rows", "columns", "pitch", "unit", "options", "message"),
    [
        ("f32", 16, 16, 18, 32, {}, "d32x8"),
        ("f16", 16, 24, 36, 32, {}, "d32x4"),
        ("f32", 16, 16, 18, 32, {"checked": "true"}, None),
        ("f16", 16, 16, 18, 16, {}, None),
        ("i8", 16, 16, 20, 16, {}, None),
        ("f64", 16, 4, 9, 64, {}, None),
        ("f32", 16, 8, 18, 32, {"step": 2}, "d32"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*upstream's lowering makes a 2D block message")
def test_loads_of_global_memory(
    element: str,
    rows: int,
    columns: int,
    pitch: int,
    unit: int,
    options: dict[str, Any],
    message: str | None,
    target: str,
) -> None:
    kind, column = np.dtype((TYPES | {"f64": np.float64})[element]), 2
    across, step = unit // 8 // kind.itemsize, int(options.get("step", 1))
    height, shape = rows + 4, (columns // across, rows * across)
    tensor = f"%a[3, {column}] {{mode = vc}} : !array"
    if step > 1:
        size, strides = f"[{height}, {pitch // step}]", f"[{pitch}, %step]"
        tensor = f"%address[3, {column // step}], {size}, {strides} {{mode = vc}} : i64"
    text = GLOBAL.format(
        element=element, rows=rows, columns=columns, pitch=pitch, height=height, dwords=shape[0], across=shape[1],
        tensor=tensor, step=step, unit=f", transpose_bit_width = {unit}" if across > 1 else "",
        checked=options.get("checked", "false"),
    )  # fmt: skip
    a = np.random.default_rng(rows * columns).integers(-128, 128, (height, pitch)).astype(kind)
    block = np.ascontiguousarray(a[3 : 3 + rows, column::step][:, :columns])
    expected = block.reshape(rows, -1, across).transpose(1, 0, 2).reshape(shape)
    compiled = xegpu_py.compile(text, target=target, engine="both")
    for kernel in (compiled, xegpu_py.compile(text, engine="reference")):
        o = np.zeros(shape, kind)
        kernel(a, o)
        np.testing.assert_array_equal(o, expected)
    assert gathers(compiled.asm, "ugm") == ({message} if message else set())


@pytest.mark.parametrize("pitch", [19, 32])
def test_rows_of_a_pitch_that_is_not_known(pitch: int) -> None:
    text = """
    !array = memref<?x?xf32, strided<[?, 1], offset: ?>>
    !block = !xegpu.tensor_desc<16x16xf32, #xegpu.tdesc_attr<boundary_check = false>>
    gpu.module @m {
      gpu.func @k(%a: !array, %o: memref<16x16xf32>, %r: index) kernel {
        %d = xegpu.create_nd_tdesc %a[%r, 2] {mode = vc} : !array -> !block
        %x = xegpu.load_nd %d {mode = vc, transpose = [1, 0]} : !block -> vector<16x16xf32>
        %out = xegpu.create_nd_tdesc %o[0, 0] {mode = vc} : memref<16x16xf32> -> !xegpu.tensor_desc<16x16xf32>
        xegpu.store_nd %x, %out {mode = vc} : vector<16x16xf32>, !xegpu.tensor_desc<16x16xf32>
        gpu.return
      }
    }
    """
    a, o = np.arange(24 * pitch, dtype=np.float32).reshape(24, pitch), np.zeros((16, 16), np.float32)
    compiled = xegpu_py.compile(text, target="dg2", engine="both")
    compiled(a, o, 3)
    np.testing.assert_array_equal(o, a[3:19, 2:18].T)
    assert gathers(compiled.asm, "ugm") == {"d32x8"}
