"""Shapes of loads and dpas against arrays that are really transposed, packed and distributed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xegpu_py.dialects.xegpu import Mode, SgMap, TdescAttr, TensorDesc
from xegpu_py.dialects.xegpu.matrix_ops import dpas_problem, loaded_shapes
from xegpu_py.ir.operation import VerifyError

BITS = {"i8": 8, "f8E5M2": 8, "bf16": 16, "f16": 16, "f32": 32, "tf32": 32, "i64": 64, "i4": 4}
sizes = st.integers(1, 40)


def moved(block: np.ndarray, bits: int, transpose: bool, unit: int | None, axis: int | None) -> np.ndarray:
    """A block of element numbers as the RFC's text says it is loaded."""
    if transpose:
        per_unit = (unit or bits) // bits
        units = block.reshape(block.shape[0], -1, per_unit)
        block = units.transpose(1, 0, 2).reshape(units.shape[1], -1)
    if axis is not None:
        factor = 32 // bits
        pairs = np.stack([block.take(range(i, block.shape[axis], factor), axis) for i in range(factor)], axis=-1)
        block = pairs
    return block


@given(
    rows=sizes,
    columns=sizes,
    element=st.sampled_from(sorted(BITS)),
    transpose=st.booleans(),
    unit=st.sampled_from([None, 8, 16, 32, 64]),
    axis=st.sampled_from([None, 0, 1]),
    count=st.integers(1, 4),
)
def test_loads_of_whole_blocks(rows, columns, element, transpose, unit, axis, count) -> None:
    bits = BITS[element]
    desc = TensorDesc((rows, columns), element, TdescAttr(array_length=count))
    legal = not (transpose and axis is not None)
    legal &= unit is None or (transpose and unit >= bits and columns * bits % unit == 0)
    legal &= axis is None or (bits < 32 and (rows, columns)[axis] % (32 // bits) == 0)
    arguments = (desc, Mode.VC, (1, 0) if transpose else None, unit, axis)
    if not legal:
        with pytest.raises(VerifyError):
            loaded_shapes(*arguments)
        return
    shapes = loaded_shapes(*arguments)
    block = moved(np.arange(rows * columns).reshape(rows, columns), bits, transpose, unit, axis)
    assert sorted(block.ravel()) == list(range(rows * columns))
    assert shapes[0] == ((count,) if count > 1 else ()) + block.shape
    assert all(np.prod(s) == count * rows * columns for s in shapes)


@st.composite
def maps(draw: st.DrawFn) -> tuple[TensorDesc, SgMap]:
    layout = draw(st.sampled_from([(1, 16), (2, 8), (4, 4), (16, 1), (1, 8), (2, 16)]))
    data = (1, draw(st.integers(1, 2)))
    rounds = (draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    shape = tuple(n * d * r for n, d, r in zip(layout, data, rounds))
    sg_map = SgMap(layout, data)
    return TensorDesc(shape, "f32", TdescAttr(map=sg_map)), sg_map


@given(maps())
def test_fragments_are_what_lanes_are_dealt(case: tuple[TensorDesc, SgMap]) -> None:
    desc, sg_map = case
    assert desc.problem() is None
    rows, columns = np.indices(desc.shape)
    lane = (rows // sg_map.wi_data[0] % sg_map.wi_layout[0]) * sg_map.wi_layout[1] + (
        columns // sg_map.wi_data[1] % sg_map.wi_layout[1]
    )
    (fragment,) = loaded_shapes(desc, Mode.SIMT, None, None, None)
    for i in range(sg_map.wi_layout[0] * sg_map.wi_layout[1]):
        own = np.argwhere(lane == i)
        assert (len(set(own[:, 0])), len(set(own[:, 1]))) == fragment
    assert loaded_shapes(desc, Mode.SIMT, (1, 0), None, None) == [fragment[::-1]]


@given(
    layout=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    data=st.one_of(st.tuples(st.just(1), st.integers(1, 3)), st.just((2, 1))),
    shape=st.tuples(sizes, sizes),
)
def test_a_map_fits_if_it_tiles_the_block(layout, data, shape) -> None:
    desc = TensorDesc(shape, "f16", TdescAttr(map=SgMap(layout, data)))
    fits = all(s % (n * d) == 0 for s, n, d in zip(shape, layout, data))
    assert (desc.problem() is None) == fits


FACTORS = {"i8": 4, "ui8": 4, "i4": 8, "ui2": 16, "bf16": 2, "f16": 2, "f8E4M3FN": 4, "tf32": 1, "f64": 1}


@given(
    m=st.integers(1, 10),
    n=st.sampled_from([8, 16]),
    depth=st.integers(1, 8),
    a=st.sampled_from(sorted(FACTORS)),
    b=st.sampled_from(sorted(FACTORS)),
    packed=st.booleans(),
    shift=st.sampled_from([0, 0, 0, 1]),
    result=st.sampled_from(["f32", "i32", "bf16", "f16", "f64", "ui32"]),
)
def test_dpas_of_whole_matrices(m, n, depth, a, b, packed, shift, result) -> None:
    k = 16 * depth
    fa, fb = FACTORS[a], FACTORS[b]
    lhs = (m, k // fa, fa) if packed and fa > 1 else (m, k)
    rhs = ((k + shift * fb) // fb, n, fb) if fb > 1 else (k + shift, n)
    ints = {"i8", "ui8", "i4", "ui2"}
    results = {
        "bf16": {"f32", "bf16"},
        "f16": {"f32", "f16"},
        "tf32": {"f32"},
        "f8E4M3FN": {"f32"},
        "f64": {"f64"},
    }
    meets = ({a, b} <= ints and result in {"i32", "ui32"}) or (a == b and result in results.get(a, ()))
    problem = dpas_problem(None, (lhs, a), (rhs, b), ((m, n), result), Mode.VC)
    assert (problem is None) == (meets and not shift), problem


def test_a_line_is_not_checked_against_bounds():
    """RFC: of descriptors of one dimension boundary_check is false by default."""
    assert not TensorDesc((16,), "f16").attr.boundary_check
    assert TensorDesc((8, 16), "f16").attr.boundary_check
