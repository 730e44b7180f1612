"""The tiles, descriptors and maps that accesses of upstream's kernels become."""

import math
import re

import numpy as np
import pytest
from upstream.programs import Writer, kernel, places, typed

from xegpu_py.dialects.xegpu import SgMap
from xegpu_py.dialects.xegpu.upstream_types import Layout, Slice, UpstreamTensorDesc
from xegpu_py.dialects.xetile.types import WgMap
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.upstream import import_upstream, lane
from xegpu_py.upstream.layout_maps import even_map, map_of, subgroups_of

TWO = "<{layout = #xegpu.layout<sg_layout = [2, 1], sg_data = [4, 16]>}>"


def imported(arguments, body, level="workgroup"):
    """The lines of a kernel's body, after import."""
    lines = body if isinstance(body, list) else body.strip().splitlines()
    return str(import_upstream(kernel(arguments, lines), level=level)).splitlines()[3:-4]


_ARITHMETIC = {
    "addi": np.add, "muli": np.multiply, "divsi": np.floor_divide, "divui": np.floor_divide, "remui": np.remainder,
    "cmpi ult,": np.less, "andi": np.logical_and,
}  # fmt: skip


def numbers(lines, **arguments):
    """The numbers of values that constants and arithmetic define, as arrays; casts of scalars keep the number."""
    values = {f"%{name}": np.asarray(n) for name, n in arguments.items()}
    for line in lines:
        name, _, made = line.strip().partition(" = ")
        operands = re.findall(r"%[\w#]+", made)
        shape = [int(n) for n in re.findall(r"(\d+)x", m[1])] if (m := re.search(r"vector<([^>]*)>$", made)) else ()
        if not values.keys() >= set(operands):
            continue
        given = [values[operand] for operand in operands]
        if m := re.match(r"arith\.constant (?:dense<)?(-?\d+)", made):
            values[name] = np.full(shape, int(m[1]))
        elif made.startswith("vector.step"):
            values[name] = np.arange(shape[0])
        elif made.startswith("vector.shape_cast"):
            values[name] = given[0].reshape(shape)
        elif made.startswith(("vector.broadcast", "xetile.broadcast")):
            values[name] = np.broadcast_to(given[0], shape)
        elif m := re.match(r"arith\.(cmpi \w+,|\w+) %", made):
            values[name] = _ARITHMETIC.get(m[1], lambda value: value)(*given)
        elif made.startswith("builtin.unrealized_conversion_cast"):
            values[name] = given[0]
    return values


def tiles(lines):
    """For each tile what `init_tile` gets, without types."""
    return [m[1] for line in lines if (m := re.search(r"init_tile (.*?)(?: \{.*)? : ", line))]


def block_accesses(element, offsets, shape, strides, level):
    """The lines of a kernel that loads and stores a block of a tensor at an address."""
    desc, kind = f"!xegpu.tensor_desc<8x16x{element}>", f"vector<8x16x{element}>"
    layout = TWO * (level == "workgroup")
    return imported(
        "%a: ui64, %x: index",
        f"""%d = xegpu.create_nd_tdesc %a{offsets}, shape : {shape}, strides : {strides} : ui64 -> {desc}
%v = xegpu.load_nd %d {layout} : {desc} -> {kind}
xegpu.store_nd %v, %d {layout} : {kind}, {desc}""",
        level,
    )


FOUR = [3, 4, 64, 32], [9000, 2048, 32, 1]


@pytest.mark.parametrize(
    ("element", "offsets", "shape", "strides", "address", "inner"),
    [
        ("f32", "", [64, 32], [48, 1], 0, "[0, 0]"),
        ("f32", "[%x, 8]", [64, 32], [48, 1], 0, "[%arg1, 8]"),
        ("f32", "", [4, 64, 32], [2048, 32, 1], 0, "[0, 0]"),
        ("f32", "[%x, 8, 16]", [4, 64, 32], [2048, 32, 1], 5 * 2048 * 4, "[8, 16]"),
        ("f16", "[3, 8, %x]", [4, 64, 32], [2048, 32, 1], 3 * 2048 * 2, "[8, %arg1]"),
        ("i8", "[2, 0, 8, 16]", *FOUR, 18000, "[8, 16]"),
        ("i8", "[0, %x, 8, 16]", *FOUR, 10240, "[8, 16]"),
        ("i8", "[2, %x, 8, 16]", *FOUR, 28240, "[8, 16]"),
        ("i4", "[%x, 8, 16]", [4, 64, 32], [2046, 32, 1], 5115, "[8, 16]"),
        ("i4", "[2, 8, 16]", [4, 64, 32], [2050, 32, 1], 2050, "[8, 16]"),
    ],
)
@pytest.mark.parametrize("level", ["workgroup", "subgroup"])
def test_blocks_of_tensors_at_addresses(element, offsets, shape, strides, address, inner, level):
    """Offsets of outer dimensions move the address, by bytes; the others are offsets in the inner ones."""
    lines = block_accesses(element, offsets, shape, strides, level)
    tile = f"{inner}, {shape[-2:]}, {strides[-2:]}"
    if element == "i4" and level == "workgroup":
        tile = "[8, 8], [64, 16], [16, 1]"  # as bytes
    values = numbers(lines, arg0=0, arg1=5)
    made = [m for line in lines if (m := re.search(r"(?:init_tile|create_nd_tdesc) (%\w+)(\[.*\]) ", line))]
    assert [values[m[1]] for m in made] == [address] * len(made)
    assert {m[2].partition(" {")[0] for m in made} == {tile}
    # An offset of zero moves nothing.
    assert bool(address) == any("arith.muli" in line for line in lines)


@pytest.mark.parametrize("level", ["workgroup", "subgroup"])
@pytest.mark.parametrize("outer", ["%x", "3"])
def test_half_bytes_that_no_address_has(outer, level):
    message = "'xegpu.create_nd_tdesc' op cannot be imported: it is not known to begin at a byte"
    with pytest.raises(DiagnosticError, match=message) as e:
        block_accesses("i4", f"[{outer}, 8, 16]", [4, 64, 32], [2047, 32, 1], level)
    expected = "offsets and strides must be" if level == "workgroup" else "offsets must be"
    assert f"{expected} multiples of 2 elements" in str(e.value)


@pytest.mark.parametrize(
    ("shape", "element", "steps", "first", "block"),
    [
        ((8, 32), "f32", (64, 1), 0, "[8, 32], [64, 1]"),
        ((8, 32), "f32", (32, 1), 16, "[8, 32], [32, 1]"),
        ((8, 16), "f32", (20, 1), 0, "[8, 16], [20, 1]"),
        ((8, 64), "i8", (80, 1), 64, "[8, 64], [80, 1]"),
        # One row has no pitch; rows and columns of more dimensions are those of a matrix.
        ((1, 32), "f32", (7, 1), 0, "[1, 32], [32, 1]"),
        ((32,), "f32", (1,), 0, "[1, 32], [32, 1]"),
        ((2, 4, 32), "f32", (256, 64, 1), 0, "[8, 32], [64, 1]"),
        # Rows that overlap, or do not begin at 16 bytes; elements that do not follow each other; blocks of less than 64
        # bytes, or that do not begin at 64 bytes.
        ((8, 32), "f32", (28, 1), 0, None),
        ((8, 32), "f32", (34, 1), 0, None),
        ((8, 32), "f32", (64, 2), 0, None),
        ((8, 32), "f32", (1, 8), 0, None),
        ((8, 8), "f32", (64, 1), 0, None),
        ((8, 63), "i8", (80, 1), 0, None),
        ((8, 32), "f32", (64, 1), 8, None),
        ((8, 64), "i8", (80, 1), 32, None),
        ((2, 4, 32), "f32", (300, 64, 1), 0, None),
    ],
)  # fmt: skip
def test_offsets_that_are_those_of_a_block(shape, element, steps, first, block):
    w = Writer()
    here = places(w, shape, steps, w(f"arith.constant {first} : index"))
    mask = w(f"arith.constant dense<true> : {typed(shape, 'i1')}")
    types = f"memref<9999x{element}>, {typed(shape, 'index')}, {typed(shape, 'i1')}"
    value = w(f"xegpu.load %a[{here}], {mask} : {types} -> {typed(shape, element)}")
    w(f"xegpu.store {value}, %a[{here}], {mask} : {typed(shape, element)}, {types}", named=False)
    lines = imported(f"%a: memref<9999x{element}>", w.lines)
    values, made = numbers(lines), tiles(lines)
    accesses = [line for line in lines if re.search(r"xetile\.(load|store)", line)]
    assert len(accesses) == 2
    if block is None:
        at = first + sum(step * i for step, i in zip(steps, np.indices(shape)))
        for tile in made:
            assert np.array_equal(values[tile.split(", ")[1]], at.reshape(-1, shape[-1]))
        assert not any("_tile" in line for line in accesses)
        return
    size = {"f32": 4, "i8": 1}[element]
    for tile in made:
        address, _, rest = tile.partition("[")
        assert rest == f"0, 0], {block}"
        (moved,) = [line for line in lines if line.strip().startswith(f"{address} = arith.addi")]
        assert values[moved.split()[-3]] == first * size
    assert all("_tile" in line for line in accesses)
    assert sum("{in_bounds = true}" in line for line in lines) == 2


ONE = "<{layout = #xegpu.layout<sg_layout = [2], sg_data = [8]>}>"


@pytest.mark.parametrize(
    ("memory", "made", "offsets", "expected"),
    [
        # A row of a matrix; offsets are those of the descriptor and of the access together.
        ("64", "", "", "%expand_shape[0, 0]"),
        ("64", "", "[%x]", "%expand_shape[0, %arg1]"),
        ("64", "[8]", "[16]", "%expand_shape[0, 24]"),
        ("64x64", "", "", "%arg0[0, 0]"),
        ("64x64", "[8, %x]", "[4, 2]", "%arg0[12, %0]"),
        ("64x64", ", shape : [64, 64], strides : [64, 1]", "[1, 2]", "%arg0[1, 2]"),
        ("?x?", ", shape : [%x, %y], strides : [%y, 1]", "[1, 2]", "%arg0[1, 2], [%arg1, %arg2], [%arg2, 1]"),
        ("4x64x64", "", "[8, 16]", "%arg0[0, 8, 16]"),
        ("4x64x64", "[1, 2, 3]", "[8, 16]", "%arg0[1, 10, 19]"),
    ],
)
def test_blocks_of_memrefs(memory, made, offsets, expected):
    shape, given = ("16", ONE) if memory == "64" else ("8x16", TWO)
    memref, desc, kind = f"memref<{memory}xf32>", f"!xegpu.tensor_desc<{shape}xf32>", f"vector<{shape}xf32>"
    body = f"""%d = xegpu.create_nd_tdesc %a{made} : {memref} -> {desc}
%v = xegpu.load_nd %d{offsets} {given} : {desc} -> {kind}"""
    lines = imported(f"%a: {memref}, %x: index, %y: index", body)
    assert tiles(lines) == [expected]
    if "%0" in expected:
        assert numbers(lines, arg1=5)["%0"] == 7


@pytest.mark.parametrize(
    ("memory", "offsets", "expected", "step", "moved"),
    [
        ("64x64", "", None, "[0, 16]", "[0, 16]"),
        ("64x64", "[0, 0]", None, "[%x, 0]", "[%arg1, 0]"),
        ("64x64", "[0, 8]", "[0, 8]", "[0, 16]", "[0, 16]"),
        ("64x64", "[%x, 0]", "[%arg1, 0]", "[0, 16]", "[0, 16]"),
        ("64", "", None, "[16]", "[0, 16]"),
        ("64", "[0]", None, "[16]", "[0, 16]"),
        ("64", "[%x]", "[0, %arg1]", "[%y]", "[0, %arg2]"),
    ],
)
def test_blocks_of_tiles_that_a_loop_carries(memory, offsets, expected, step, moved):
    shape, given = ("16", ONE) if memory == "64" else ("8x16", TWO)
    memref, desc, kind = f"memref<{memory}xf32>", f"!xegpu.tensor_desc<{shape}xf32>", f"vector<{shape}xf32>"
    body = f"""%d = xegpu.create_nd_tdesc %a : {memref} -> {desc}
%r = scf.for %i = %x to %y step %x iter_args(%e = %d) -> ({desc}) {{
%v = xegpu.load_nd %e{offsets} {given} : {desc} -> {kind}
xegpu.store_nd %v, %e{offsets} {given} : {kind}, {desc}
%f = xegpu.update_nd_offset %e, {step} : {desc}
scf.yield %f : {desc}
}}"""
    text = "\n".join(imported(f"%a: {memref}, %x: index, %y: index", body))
    found = re.findall(r"update_tile_offset %arg4, (\[.*?\])", text)
    assert found == [expected] * (2 if expected else 0) + [moved]
    # The tile has the map of the store already where the loop begins.
    grid = "[1, 2]" if memory == "64" else "[2, 1]"
    types = re.findall(r"!xetile.tile<[^<]*<[^<]*<([^>]*)>", text)
    assert {kind.partition(", sg_data")[0] for kind in types} == {f"sg_layout = {grid}"}


@pytest.mark.parametrize(
    ("desc", "offsets", "shape", "expected"),
    [
        ("32x64xf32", "[8, %x]", (8, 16), None),
        ("32x64xf32, #xegpu.mem_layout<stride = [64, 1]>", "[8, %x]", (8, 16), None),
        ("32x64xf32, #xegpu.mem_layout<stride = [1, 32]>", "[8, %x]", (8, 16), lambda r, c: (8 + r) + (5 + c) * 32),
        (
            "32x64xf32, #xegpu.mem_layout<stride = [64, 1], block = [1, 16]>",
            "[8, %x]",
            (8, 16),
            lambda r, c: (8 + r) * 64 + 5 + c,
        ),
        (
            "32x64xf32, #xegpu.mem_layout<stride = [1, 32], block = [8, 16]>",
            "[4, %x]",
            (8, 16),
            lambda r, c: (4 + r) // 8 * 128 + (4 + r) % 8 + (5 + c) // 16 * 512 + (5 + c) % 16 * 8,
        ),
        ("2x16x64xf32", "[1, 4, %x]", (8, 16), lambda r, c: 1024 + (4 + r) * 64 + 5 + c),
        ("2x16x64xf32", "[%x, 8, 0]", (1, 8, 16), lambda b, r, c: (5 + b) * 1024 + (8 + r) * 64 + c),
        ("2x16x64xf32", "[0, 8, %x]", (2, 8, 16), lambda b, r, c: b * 1024 + (8 + r) * 64 + 5 + c),
    ],
)  # fmt: skip
def test_matrices_in_shared_memory(desc, offsets, shape, expected):
    """A matrix of rows that follow each other is a block of memory; elements of others have an offset each."""
    desc, kind = f"!xegpu.mem_desc<{desc}>", typed(shape, "f32")
    grid, data = [1] * len(shape), list(shape)
    grid[-2], data[-2] = 2, 4
    given = f"<{{layout = #xegpu.layout<sg_layout = {grid}, sg_data = {data}>}}>"
    body = f"""%b = memref.alloca() : memref<8192xi8, 3>
%m = xegpu.create_mem_desc %b : memref<8192xi8, 3> -> {desc}
%v = xegpu.load_matrix %m{offsets} {given} : {desc} -> {kind}
xegpu.store_matrix %v, %m{offsets} {given} : {kind}, {desc}"""
    lines = imported("%x: index", body)
    if expected is None:
        assert [tile.partition("[")[2] for tile in tiles(lines)] == ["8, %arg0]"] * 2
        assert "\n".join(lines).count("output_shape [32, 64]") == 2
        return
    values = numbers(lines, arg0=5)
    matrix = expected(*np.indices(shape)).reshape(-1, shape[-1])
    for tile in tiles(lines):
        view, indices = tile.split(", ")
        assert view == "%view" and np.array_equal(values[indices], matrix)


def layout(grid, data=()):
    return Layout(sg_layout=grid, sg_data=data)


@pytest.mark.parametrize(
    ("given", "shape", "split", "subgroups", "expected"),
    [
        (((2, 4), (8, 16)), (16, 64), 1, 8, ((2, 4), (8, 16))),
        (((2, 4),), (16, 64), 1, 8, ((2, 4), (8, 16))),
        # More subgroups than elements of a dimension have one each.
        (((4, 2),), (2, 64), 1, 8, ((4, 2), (1, 32))),
        (((2, 4), (8, 16)), (16, 64), 1, 4, None),
        (((8,), (16,)), (16, 64), 1, 8, None),
        (((2, 4), (8, 24)), (16, 64), 1, 8, None),
        (((), (8, 16)), (16, 64), 1, 1, None),
        # Rows and columns of more dimensions.
        (((2, 1, 4), (1, 8, 16)), (2, 8, 64), 2, 8, ((2, 4), (8, 16))),
        (((2, 1, 4), (1, 8, 16)), (2, 8, 64), 1, 8, ((2, 4), (1, 128))),
        (((2, 4), (8, 16)), (16, 64), 2, 8, ((8, 1), (128, 1))),
        (((2, 4), (8, 16)), (16, 64), 0, 8, ((1, 8), (1, 128))),
    ],
)
def test_maps_of_layouts(given, shape, split, subgroups, expected):
    assert map_of(layout(*given), shape, split, subgroups) == (expected and WgMap(*expected))
    assert subgroups_of(layout(*given)) == (math.prod(given[0]) if given[0] else None)


@pytest.mark.parametrize(
    ("dims", "shape", "split", "expected"),
    [
        # The subgroups along a removed dimension share the rest, along a dimension of one element.
        ((0,), (64,), 0, ((2, 4), (1, 16))),
        ((0,), (64,), 1, ((4, 2), (16, 1))),
        ((1,), (16,), 1, ((2, 4), (8, 1))),
        ((1,), (16,), 0, ((4, 2), (1, 8))),
    ],
)
def test_maps_of_slices(dims, shape, split, expected):
    assert map_of(Slice(layout((2, 4), (8, 16)).encode(), dims), shape, split, 8) == WgMap(*expected)


def test_slices_of_matrices_have_no_map_if_subgroups_share_them():
    parent = layout((2, 2, 2), (8, 8, 8)).encode()
    assert map_of(Slice(parent, (0,)), (16, 16), 1, 8) is None
    parent = layout((2, 2, 2), (8, 1, 8)).encode()
    assert map_of(Slice(parent, (0,)), (1, 16), 1, 8) == WgMap((4, 2), (1, 8))


@pytest.mark.parametrize(
    ("shape", "subgroups", "expected"),
    [((16, 32), 1, ((1, 1), (16, 32))), ((16, 32), 4, ((4, 1), (4, 32))), ((6, 32), 4, ((1, 4), (6, 8))),
     ((6, 30), 4, ((1, 4), (6, 30))), ((4, 32), 4, ((4, 1), (1, 32)))],
)  # fmt: skip
def test_even_maps(shape, subgroups, expected):
    assert even_map(shape, subgroups) == WgMap(*expected)


@pytest.mark.parametrize(
    ("of_desc", "of_load", "grid"),
    [
        ("sg_layout = [2, 1], sg_data = [4, 16]", None, "[2, 1]"),
        (None, "sg_layout = [2, 1], sg_data = [4, 16]", "[2, 1]"),
        ("sg_layout = [1, 2], sg_data = [8, 8]", "sg_layout = [2, 1], sg_data = [4, 16]", "[2, 1]"),
        # The kernel has as many subgroups as the layout with the most.
        ("sg_layout = [4, 1], sg_data = [2, 16]", "sg_layout = [2, 1], sg_data = [4, 16]", "[4, 1]"),
        ("sg_layout = [2, 1], sg_data = [4, 16]", "sg_layout = [4, 1], sg_data = [2, 16]", "[4, 1]"),
    ],
)
def test_layouts_of_descriptors_and_accesses(of_desc, of_load, grid):
    desc = f"!xegpu.tensor_desc<8x16xf32{f', #xegpu.layout<{of_desc}>' if of_desc else ''}>"
    given = f"<{{layout = #xegpu.layout<{of_load}>}}>" if of_load else ""
    body = f"""%d = xegpu.create_nd_tdesc %a : memref<8x16xf32> -> {desc}
%v = xegpu.load_nd %d {given} : {desc} -> vector<8x16xf32>"""
    [made] = [line for line in imported("%a: memref<8x16xf32>", body) if "init_tile" in line]
    assert re.search(r"sg_layout = (\[.*?\])", made)[1] == grid


@pytest.mark.parametrize(
    ("memory", "given", "offsets", "block", "desc", "moved"),
    [
        ("64xf32", "", "[%x]", "16xf32", "%arg0[0]", "[%arg1]"),
        ("64xf32", "[8]", "[16]", "16xf32", "%arg0[8]", "[16]"),
        ("64x64xf32", "", "", "8x16xf32", "%arg0[0, 0]", None),
        ("64x64xf32", "", "[0, 0]", "8x16xf32", "%arg0[0, 0]", None),
        ("64x64xf32", "[8, %x]", "[4, %y]", "8x16xf32", "%arg0[8, %arg1]", "[4, %arg2]"),
        ("64x64xf32", "[8, %x]", "[0, 16]", "8x16xf32", "%arg0[8, %arg1]", "[0, 16]"),
        # Extents that the memref's type has are not repeated.
        ("64x64xf32", ", shape : [64, 64], strides : [64, 1]", "", "8x16xf32", "%arg0[0, 0]", None),
        (
            "64x64xf32",
            ", shape : [%x, 64], strides : [64, 1]",
            "",
            "8x16xf32",
            "%arg0[0, 0], [%arg1, 64], [64, 1]",
            None,
        ),
        (
            "?x?xf32",
            ", shape : [%x, %y], strides : [%y, 1]",
            "",
            "8x16xf32",
            "%arg0[0, 0], [%arg1, %arg2], [%arg2, 1]",
            None,
        ),
        # Parts of a memref of more dimensions.
        ("4x64x64xf32", "[1, 2, 3]", "[8, 16]", "8x16xf32", "%subview[2, 3]", "[8, 16]"),
        ("4x64x64xf32", "[%x, 2, 3]", "", "8x16xf32", "%subview[2, 3]", None),
        ("64x64xf32", "[1, %x]", "[16]", "16xf32", "%subview[0]", "[16]"),
    ],
)
def test_blocks_of_subgroups(memory, given, offsets, block, desc, moved):
    memref, kind, vector = f"memref<{memory}>", f"!xegpu.tensor_desc<{block}>", f"vector<{block}>"
    body = f"""%d = xegpu.create_nd_tdesc %a{given} : {memref} -> {kind}
%v = xegpu.load_nd %d{offsets} : {kind} -> {vector}
xegpu.store_nd %v, %d{offsets} : {vector}, {kind}
xegpu.prefetch_nd %d{offsets} : {kind}"""
    text = "\n".join(imported(f"%a: {memref}, %x: index, %y: index", body, "subgroup"))
    assert re.findall(r"create_nd_tdesc (.*) {mode = vc}", text) == [desc]
    assert re.findall(r"update_nd_offset %\w+, (\[.*?\])", text) == [moved] * 3 * bool(moved)
    if "subview" in desc:
        first = given[1:].split(",")[0].replace("%x", "%arg1")
        starts = re.search(r"subview %arg0\[(%\w+), (%\w+)", text).groups()
        values = numbers(text.splitlines(), arg1=5)
        assert values[starts[0]] == (5 if "%" in first else int(first))
        assert values[starts[1]] == (5 if block == "16xf32" else 0)
        assert f"[1, {'16] [1, 1]' if block == '16xf32' else '64, 64] [1, 1, 1]'}" in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (", shape : [64, 32], strides : [64, 1]", r"its shape \[64, 32\] differs from that of memref<64x64xf32>"),
        (", shape : [%x, 32], strides : [64, 1]", r"its shape \[.*, 32\] differs from that of memref<64x64xf32>"),
        (", shape : [64, 64], strides : [32, 1]", r"its strides \[32, 1\] differs from that of memref<64x64xf32>"),
    ],
)
def test_extents_that_differ_from_those_of_the_memref(given, message):
    desc = "!xegpu.tensor_desc<8x16xf32>"
    body = f"""%d = xegpu.create_nd_tdesc %a{given} : memref<64x64xf32> -> {desc}
xegpu.prefetch_nd %d[0, 0] : {desc}"""
    with pytest.raises(DiagnosticError, match=f"'xegpu.create_nd_tdesc' op cannot be imported: {message}"):
        imported("%a: memref<64x64xf32>, %x: index", body, "subgroup")


@pytest.mark.parametrize(
    ("block", "element", "attributes", "loaded", "options"),
    [
        ("16x16", "f16", "<{packed}>", "8x16x2", "vnni_axis = 0"),
        ("32x16", "i8", "<{packed}>", "8x16x4", "vnni_axis = 0"),
        ("32", "f16", "<{packed}>", "32", ""),
        ("16x8", "f32", "<{transpose = array<i64: 1, 0>}>", "8x16", "transpose = [1, 0]"),
        ("16x8", "f32", "<{transpose = array<i64: 0, 1>}>", "16x8", ""),
        (
            "16x16",
            "f16",
            "<{transpose = array<i64: 1, 0>, transpose_bit_width = 32 : i32}>",
            "16x16",
            "transpose = [1, 0], transpose_bit_width = 32",
        ),
        (
            "16x8",
            "f32",
            "<{transpose = array<i64: 1, 0>, transpose_bit_width = 32 : i32}>",
            "8x16",
            "transpose = [1, 0]",
        ),
    ],
)
def test_blocks_that_are_packed_or_transposed(block, element, attributes, loaded, options):
    sizes = "64x64" if "x" in block else "64"
    memref, desc = f"memref<{sizes}x{element}>", f"!xegpu.tensor_desc<{block}x{element}>"
    body = f"""%d = xegpu.create_nd_tdesc %a : {memref} -> {desc}
%v = xegpu.load_nd %d {attributes} : {desc} -> vector<{loaded}x{element}>"""
    [line] = [line for line in imported(f"%a: {memref}", body, "subgroup") if "load_nd" in line]
    assert re.search(r"{mode = vc(?:, )?(.*?)}", line)[1] == options


@pytest.mark.parametrize(
    ("shape", "element", "use", "expected"),
    [
        # Columns of a lane: as many elements side by side as 16 bits hold, unless they are packed or transposed.
        ((8, 16), "f32", "plain", ((1, 16), (1, 1))),
        ((8, 16), "f16", "plain", ((1, 16), (1, 1))),
        ((8, 32), "i8", "plain", ((1, 16), (1, 2))),
        ((8, 64), "i4", "plain", ((1, 16), (1, 4))),
        ((16,), "f32", "plain", ((1, 16), (1, 1))),
        ((32, 16), "i8", "plain", ((1, 16), (1, 1))),
        ((32, 16), "i8", "packed", ((1, 16), (1, 1))),
        ((32, 32), "i8", "packed", ((1, 16), (1, 1))),
        ((16, 8), "f32", "transposed", ((16, 1), (1, 1))),
        ((32, 3), "f32", "transposed", ((16, 1), (1, 1))),
        # Blocks that lanes cannot divide.
        ((8, 8), "f32", "plain", None),
        ((8, 24), "f32", "plain", None),
        ((8, 48), "i8", "plain", None),
        ((8, 32), "i4", "plain", None),
        ((8, 24), "f16", "packed", None),
        ((8, 16), "f32", "transposed", None),
        ((24, 16), "f32", "transposed", None),
        ((16,), "f32", "transposed", None),
    ],
)
def test_elements_of_lanes(shape, element, use, expected):
    assert lane.map_of(UpstreamTensorDesc(shape, element), use) == (expected and SgMap(*expected))


PRODUCT = """%d = xegpu.create_nd_tdesc %a : memref<32x32xf16> -> !xegpu.tensor_desc<32x32xf16>
%o = xegpu.create_nd_tdesc %c : memref<32x32xf32> -> !xegpu.tensor_desc<32x32xf32>
%z = arith.constant dense<0.0> : vector<32xf32>
%l = arith.addf %z, %z : vector<32xf32>
%v = xegpu.load_nd %d[0, 0] : !xegpu.tensor_desc<32x32xf16> -> vector<32x32xf16>
%p = xegpu.dpas %v, %v LAYOUT : vector<32x32xf16>, vector<32x32xf16> -> vector<32x32xf32>
%r = arith.addf %p, %p : vector<32x32xf32>
%s = arith.mulf %r, %r : vector<32x32xf32>
xegpu.store_nd %s, %o[0, 0] : vector<32x32xf32>, !xegpu.tensor_desc<32x32xf32>
"""


@pytest.mark.parametrize("given", ["", "{layout_cd = #xegpu.layout<sg_layout = [2, 2], sg_data = [16, 16]>}"])
def test_some_op_says_how_many_subgroups_a_kernel_has(given):
    """Without layouts the first elementwise op on a matrix does; the map of a product is enough."""
    lines = imported("%a: memref<32x32xf16>, %c: memref<32x32xf32>", PRODUCT.replace("LAYOUT", given))
    found = [(line.split(" = ")[1].split()[0], line.partition("{")[2]) for line in lines if "sg_layout" in line]
    op, key, grid = ("xetile.tile_mma", "wg_map_c", "[2, 2]") if given else ("arith.addf", "map", "[1, 1]")
    assert [name for name, _ in found] == [op]
    assert found[0][1].startswith(f"{key} = #xetile.wg_map<sg_layout = {grid}")
