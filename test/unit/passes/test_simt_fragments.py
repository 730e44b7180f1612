"""Each work item gets the elements of a block that the RFC's sg_map gives it."""

from __future__ import annotations

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import xegpu_py
from xegpu_py.runtime.host_arrays import DTYPES

LAYOUTS = [(1, 16), (2, 8), (4, 4), (8, 2), (16, 1)]


def fragment(block: np.ndarray, layout: tuple[int, int], data: tuple[int, int], lane: int) -> np.ndarray:
    """A work item's part: of each round its wi_data elements, rounds side by side (RFC, sg_map)."""
    row, column = divmod(lane, layout[1])
    rows = [r for r in range(block.shape[0]) if r // data[0] % layout[0] == row]
    columns = [c for c in range(block.shape[1]) if c // data[1] % layout[1] == column]
    return block[np.ix_(rows, columns)]


@st.composite
def loads(draw):
    element = draw(st.sampled_from(["f32", "i32", "f16", "bf16", "i8"]))
    pack = 4 // np.dtype(DTYPES[element]).itemsize
    layout = draw(st.sampled_from(LAYOUTS))
    kind = draw(st.sampled_from(["plain", "plain", "transpose", "vnni0", "vnni1", "array"]))
    if pack == 1 and kind.startswith("vnni"):
        kind = "plain"
    if pack > 1 and kind == "transpose":
        kind = "array"
    data = [1, draw(st.sampled_from([1, 2, 4]))]
    if kind == "vnni0":
        data = [pack, 1]
    if kind == "vnni1":
        data[1] = pack
    tile = (layout[0] * data[0], layout[1] * data[1])
    limit = (8, 8) if kind == "transpose" else (32, 64 // (4 // pack) // (2 if kind == "array" else 1))
    shape = tuple(t * draw(st.integers(1, max(1, n // t))) for t, n in zip(tile, limit))
    bits = 32 // pack
    fits = shape[0] <= 32 and 4 <= shape[1] * bits // 8 <= (64 if kind[0] in "pv" else 32)
    fits &= shape[1] * bits // 8 % 4 == 0 and shape[0] * shape[1] <= 16 * 24
    if kind == "vnni0" and shape[1] > 16:
        fits = False
    return (element, pack, layout, tuple(data), shape, kind) if fits else None


@settings(max_examples=examples(60))
@given(loads())
def test_loaded_fragments(load):
    if load is None or (load[5] == "transpose" and load[4][0] > 8):
        return
    element, pack, layout, data, shape, kind = load
    count = 2 if kind == "array" else 1
    array = ", array_length = 2" if count > 1 else ""
    desc = f"!xegpu.tensor_desc<{shape[0]}x{shape[1]}x{element}{array}, #m>"
    if array:
        attr = f"#xegpu.tdesc_attr<array_length = 2, map = <wi_layout = {list(layout)}, wi_data = {list(data)}>>"
        desc = f"!xegpu.tensor_desc<{shape[0]}x{shape[1]}x{element}, {attr}>"
    rows, columns = shape[0] // layout[0], shape[1] // layout[1]
    held = {
        "plain": (rows, columns),
        "array": (2, rows, columns),
        "transpose": (columns, rows),
        "vnni0": (rows // pack, columns, pack),
        "vnni1": (rows, columns // pack, pack),
    }[kind]
    how = {"transpose": "{transpose = [1, 0]}", "vnni0": "{vnni_axis = 0}", "vnni1": "{vnni_axis = 1}"}.get(kind, "")
    size = rows * columns * count
    vector = f"vector<{'x'.join(map(str, held))}x{element}>"
    takes = "\n".join(
        f"%i{n} = arith.constant {n} : index\n"
        f"%e{n} = vector.extract %f[{n}] : {element} from vector<{size}x{element}>\n"
        f"memref.store %e{n}, %out[%lane, %i{n}] : memref<16x{size}x{element}>"
        for n in range(size)
    )
    text = f"""#m = #xegpu.sg_map<wi_layout = {list(layout)}, wi_data = {list(data)}>
gpu.module @k {{
  gpu.func @f(%in: memref<64x128x{element}>, %out: memref<16x{size}x{element}>) kernel {{
    %lane = gpu.lane_id
    %t = xegpu.create_nd_tdesc %in[2, 4] : memref<64x128x{element}> -> {desc}
    %v = xegpu.load_nd %t {how} : {desc} -> {vector}
    %f = vector.shape_cast %v : {vector} to vector<{size}x{element}>
    {takes}
    gpu.return
  }}
}}"""
    dtype = np.dtype(DTYPES[element])
    matrix = np.random.default_rng(4).integers(0, 100, (64, 128)).astype(dtype)
    out = np.zeros((16, size), dtype)
    xegpu_py.compile(text, check="races")(matrix, out, block=16)
    for lane in range(16):
        parts = []
        for b in range(count):
            block = matrix[2 : 2 + shape[0], 4 + b * shape[1] : 4 + (b + 1) * shape[1]]
            part = fragment(block, layout, data, lane)
            if kind == "transpose":
                part = part.T
            elif kind == "vnni0":
                part = part.reshape(rows // pack, pack, columns).transpose(0, 2, 1)
            parts.append(part.ravel())
        np.testing.assert_array_equal(out[lane], np.concatenate(parts), str(load))


DATA = [(1, 1), (1, 2)]


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("layout", "data"),
    [(layout, data) for layout in LAYOUTS for data in DATA if layout[0] * data[0] <= 16],
    ids=str,
)
def test_stored_fragments(layout, data):
    """Values loaded by one map and stored by another are redistributed; blocks have 16 rows."""
    rows, columns = 16 // layout[0], 32 // layout[1]
    text = f"""#from = #xegpu.sg_map<wi_layout = {list(layout)}, wi_data = {list(data)}>
#to = #xegpu.sg_map<wi_layout = [1, 16], wi_data = [1, 2]>
gpu.module @k {{
  gpu.func @f(%in: memref<16x32xf16>, %out: memref<16x32xf16>) kernel {{
    %a = xegpu.create_nd_tdesc %in[0, 0] : memref<16x32xf16> -> !xegpu.tensor_desc<16x32xf16, #from>
    %b = xegpu.create_nd_tdesc %out[0, 0] : memref<16x32xf16> -> !xegpu.tensor_desc<8x32xf16, #to>
    %c = xegpu.update_nd_offset %b, [8, 0] : !xegpu.tensor_desc<8x32xf16, #to> -> !xegpu.tensor_desc<8x32xf16, #to>
    %x = xegpu.load_nd %a : !xegpu.tensor_desc<16x32xf16, #from> -> vector<{rows}x{columns}xf16>
    %y = vector.shape_cast %x : vector<{rows}x{columns}xf16> to vector<2x8x2xf16>
    %one = vector.extract %y[0] : vector<8x2xf16> from vector<2x8x2xf16>
    %two = vector.extract %y[1] : vector<8x2xf16> from vector<2x8x2xf16>
    xegpu.store_nd %one, %b : vector<8x2xf16>, !xegpu.tensor_desc<8x32xf16, #to>
    xegpu.store_nd %two, %c : vector<8x2xf16>, !xegpu.tensor_desc<8x32xf16, #to>
    gpu.return
  }}
}}"""
    matrix = np.arange(512).reshape(16, 32).astype(np.float16)
    out, want = np.zeros_like(matrix), np.zeros_like(matrix)
    xegpu_py.compile(text, check="races")(matrix, out, block=16)
    for lane in range(16):
        part = fragment(matrix, layout, data, lane).reshape(2, 8, 2)
        want[:8, 2 * lane : 2 * lane + 2], want[8:, 2 * lane : 2 * lane + 2] = part
    np.testing.assert_array_equal(out, want)
