"""The sizes of messages: slabs of products, lanes of gathers and scatters, and pieces of lines."""

import pytest

from xegpu_py.dialects.xegpu.types import TdescAttr, TensorDesc
from xegpu_py.passes.analysis.message_tiling import _blocks, fitting_lanes, line_tiling, message_steps
from xegpu_py.target import target


@pytest.mark.parametrize(
    "name, element, shape, depth, ahead, step, slab",
    [
        # A slab has all columns, and the depth of a message of A, whose rows have 64 bytes.
        ("bmg", "f16", (32, 64), 128, False, (16, 16), (64, 32)),
        ("bmg", "i8", (32, 64), 128, False, (16, 32), (64, 64)),
        ("bmg", "i4", (8, 48), 256, False, (16, 64), (48, 128)),
        # Or all of K and the columns of a message of B: at most 32 rows, in registers for at most as many elements.
        ("bmg", "tf32", (32, 64), 32, False, (16, 8), (16, 32)),
        ("bmg", "tf32", (32, 63), 32, False, (16, 8), (63, 16)),
        ("bmg", "tf32", (33, 64), 32, False, (16, 8), (64, 16)),
        ("bmg", "tf32", (8, 64), 33, False, (16, 8), (64, 16)),
        ("bmg", "tf32", (8, 64), 17, False, (16, 8), (16, 17)),
        ("bmg", "tf32", (8, 64), 16, False, (16, 8), (64, 16)),
        # Ahead, one instruction deep, with the columns of one message of B.
        ("bmg", "f16", (32, 64), 128, True, (16, 16), (32, 16)),
        ("bmg", "i8", (32, 64), 128, True, (16, 32), (64, 32)),
        ("bmg", "tf32", (32, 64), 128, True, (16, 8), (16, 8)),
        ("bmg", "i4", (32, 64), 128, True, (16, 64), (16, 64)),
        # Without 2D block messages, all of it.
        ("dg2", "f16", (32, 64), 128, False, (8, 16), (64, 128)),
        ("dg2", "f16", (32, 64), 128, True, (8, 16), (64, 128)),
    ],
)
def test_slabs_of_products(name, element, shape, depth, ahead, step, slab):
    blocks = _blocks(shape, depth, element, element, False, target(name), ahead)
    assert ((blocks.step_columns, blocks.step), (blocks.slab_columns, blocks.slab_depth)) == (step, slab)
    assert blocks.least_rows == 1


@pytest.mark.parametrize(
    "name, element, shape, lanes",
    [
        ("bmg", "f32", (64,), 32),
        ("bmg", "f64", (32,), 32),
        ("bmg", "f16", (48,), 24),
        ("bmg", "f32", (32, 5), 32),
        # At most eight registers.
        ("bmg", "f32", (64, 8), 16),
        ("bmg", "f64", (32, 8), 16),
        ("bmg", "f32", (16, 3), 16),
        ("dg2", "f32", (64,), 16),
        ("dg2", "f32", (32, 8), 8),
    ],
)
def test_lanes_of_gathers(name, element, shape, lanes):
    desc = TensorDesc(shape, element, TdescAttr(scattered=True))
    assert fitting_lanes(desc, target(name), "lsc_load") == fitting_lanes(desc, target(name), "lsc_store") == lanes


@pytest.mark.parametrize("message", ["iadd", "icas"])
def test_lanes_of_atomics(message):
    desc = TensorDesc((64,), "i32", TdescAttr(scattered=True))
    assert fitting_lanes(desc, target("bmg"), f"lsc_atomic_{message}") == 32
    assert fitting_lanes(desc, target("dg2"), f"lsc_atomic_{message}") == 16


@pytest.mark.parametrize(
    "shape, most, steps",
    [
        ((8, 16), 32, (2, 16)),
        ((8, 16), 16, (1, 16)),
        ((8, 8), 16, (2, 8)),
        ((8, 4), 32, (8, 4)),
        ((16, 1), 8, (8, 1)),
        ((6, 4), 16, (2, 4)),  # six rows are three times two
        ((7, 4), 16, (1, 4)),
        ((8, 3), 16, (1, 3)),
        ((8, 48), 16, (1, 16)),
        ((8, 32), 16, (1, 16)),
    ],
)
def test_rows_and_columns_of_scattered_messages(shape, most, steps):
    assert message_steps(TensorDesc(shape, "f32", TdescAttr()), shape[-1], most) == steps


@pytest.mark.parametrize(
    "element, count, pieces",
    [
        ("f32", 64, None),
        ("f32", 128, [(0, 64), (64, 64)]),
        ("f32", 9, [(0, 8), (8, 1)]),
        ("f64", 31, [(0, 16), (16, 8), (24, 4), (28, 2), (30, 1)]),
        ("f64", 64, [(0, 32), (32, 32)]),
        ("i8", 128, None),
    ],
)
def test_pieces_of_lines(element, count, pieces):
    tiling = line_tiling(TensorDesc((count,), element, TdescAttr()))
    assert (tiling and [(*at, *piece.shape) for at, piece in tiling]) == pieces
