"""`xetile-split-stacks` splits loads and stores of stacks of matrices, and the kernel computes the same as before."""

import re

import numpy as np
import pytest

from xegpu_py import reference
from xegpu_py.ir.module import parse
from xegpu_py.ir.passes import run_pipeline

TILE = "!xetile.tile<{}xf32, #xetile.tile_attr<scattered = true>>"
WHOLE, HALF = "vector<32x16xf32>", "vector<16x16xf32>"

PLACES = """
%r = vector.step : vector<32xindex>
%c = vector.step : vector<16xindex>
%rows = vector.shape_cast %r : vector<32xindex> to vector<32x1xindex>
%columns = vector.shape_cast %c : vector<16xindex> to vector<1x16xindex>
%pitch = vector.broadcast %n : index to vector<32x1xindex>
%starts = arith.muli %rows, %pitch : vector<32x1xindex>
%down = xetile.broadcast %starts [1] : vector<32x1xindex> -> vector<32x16xindex>
%across = xetile.broadcast %columns [0] : vector<1x16xindex> -> vector<32x16xindex>
%at = arith.addi %down, %across : vector<32x16xindex>"""
"""Indices of 32 rows of 16 elements."""

REPEATED = """
%two = vector.step : vector<2xindex>
%line = vector.shape_cast %two : vector<2xindex> to vector<2x1xindex>
%wide = xetile.broadcast %line [1] : vector<2x1xindex> -> vector<2x16xindex>
%each = xetile.broadcast %wide [0] {broadcast_size = 16} : vector<2x16xindex> -> vector<32x16xindex>
%where = arith.addi %at, %each : vector<32x16xindex>"""
"""The same, the second half one element further on."""


FOUR = REPEATED.replace("<2x", "<4x").replace("<2xindex>", "<4xindex>").replace("_size = 16", "_size = 8")
"""The same, each quarter one element further on than the one before."""


def loaded(places="%at", mask="", padding=""):
    masked = (f", %{mask}" if mask else "", ", vector<32x16xi1>" if mask else "")
    tile = TILE.format("32x16")
    return (f"%t = xetile.init_tile %m, {places} : memref<4096xf32>, vector<32x16xindex> -> {tile}\n"
            f"%v = xetile.load %t{masked[0]} {padding} : {tile}{masked[1]} -> {WHOLE}")  # fmt: skip


def sliced(name, first, count, source="v", columns=16):
    return (f"%{name} = vector.extract_strided_slice %{source} {{offsets = [{first}, 0], sizes = [{count}, {columns}], "
            f"strides = [1, 1]}} : {WHOLE} to vector<{count}x{columns}xf32>")  # fmt: skip


def kept(name, at, rows=16, columns=16):
    tile = f"!xetile.tile<{rows}x{columns}xf32>"
    return (f"%o{name} = xetile.init_tile %o[{at}, 0] : memref<64x16xf32> -> {tile}\n"
            f"xetile.store_tile %{name}, %o{name} : vector<{rows}x{columns}xf32>, {tile}")  # fmt: skip


def joined(order=range(32)):
    return f"%j = vector.shuffle %a, %b {list(order)} : {HALF}, {HALF}"


def scattered(value, mask=""):
    masked = (f", %{mask}" if mask else "", ", vector<32x16xi1>" if mask else "")
    tile = TILE.format("32x16")
    return (f"%u = xetile.init_tile %m, %at : memref<4096xf32>, vector<32x16xindex> -> {tile}\n"
            f"xetile.store %{value}, %u{masked[0]} : {WHOLE}, {tile}{masked[1]}")  # fmt: skip


MASK = (
    "%limit = arith.constant dense<700> : vector<32x16xindex>\n%p = arith.cmpi ult, %at, %limit : vector<32x16xindex>"
)
HALVES = sliced("a", 0, 16), sliced("b", 16, 16)
STORES = kept("a", 0), kept("b", 16)
DOUBLE = f"%two_v = arith.addf %v, %v : {WHOLE}"

CASES = {
    "halves": ((loaded(), *HALVES, *STORES), [16, 16], []),
    "one half": ((loaded(), HALVES[1], STORES[1]), [16], []),
    "quarters": ((loaded(), sliced("a", 8, 8), sliced("b", 24, 8), kept("a", 0, 8), kept("b", 16, 8)), [8, 8], []),
    "across halves": ((loaded(), sliced("a", 8, 16), kept("a", 0)), [32], []),
    "half and quarter": ((loaded(), HALVES[0], sliced("b", 16, 8), STORES[0], kept("b", 16, 8)), [32], []),
    "rows that do not divide": ((loaded(), sliced("a", 0, 12), kept("a", 0, 12)), [32], []),
    "the whole too": ((loaded(), *HALVES, *STORES, kept("v", 32, 32)), [32], []),
    "columns": ((loaded(), sliced("a", 0, 16, columns=8), kept("a", 0, 16, 8)), [32], []),
    "twice its elements": (
        (loaded(), DOUBLE, sliced("a", 0, 16, "two_v"), sliced("b", 16, 16, "two_v"), *STORES), [16, 16], []
    ),
    "twice its elements, and whole": (
        (loaded(), DOUBLE, sliced("a", 0, 16, "two_v"), STORES[0], kept("two_v", 32, 32)), [32], []
    ),
    "elements and twice the elements": (
        (loaded(), DOUBLE, sliced("a", 0, 16, "two_v"), sliced("b", 0, 16), *STORES), [16], []
    ),
    "of other sizes": (
        (loaded(), DOUBLE, sliced("a", 0, 16, "two_v"), sliced("b", 0, 8), STORES[0], kept("b", 16, 8)), [32], []
    ),
    "repeated indices": ((REPEATED, loaded("%where"), *HALVES, *STORES), [16, 16], []),
    "indices repeated in each half": ((FOUR, loaded("%where"), *HALVES, *STORES), [16, 16], []),
    "masked": ((MASK, loaded(mask="p"), *HALVES, *STORES), [16, 16], []),
    "padded": ((MASK, loaded(mask="p", padding="{padding = 3.0 : f32}"), *HALVES, *STORES), [16, 16], []),
    "stored halves": ((loaded(), *HALVES, joined(), scattered("j")), [16, 16], [16, 16]),
    "stored under a mask": ((MASK, loaded(), *HALVES, joined(), scattered("j", "p")), [16, 16], [16, 16]),
    "stored twice": (
        (loaded(), *HALVES, joined(), f"%k = arith.addf %j, %j : {WHOLE}", scattered("k")), [16, 16], [16, 16]
    ),
    "stored with the load": (
        (loaded(), *HALVES, joined(), f"%k = arith.addf %j, %v : {WHOLE}", scattered("k")), [32], [16, 16]
    ),
    "exchanged": ((loaded(), *HALVES, joined([*range(16, 32), *range(16)]), scattered("j")), [16, 16], [32]),
    "one row exchanged": (
        (loaded(), *HALVES, joined([1, 0, *range(2, 32)]), scattered("j")), [16, 16], [32]
    ),
    "stored as loaded": ((loaded(), DOUBLE, scattered("two_v")), [32], [32]),
}  # fmt: skip
"""The lines of each kernel, and the rows of its loads and of its scattered stores."""


def kernel(lines):
    body = "\n".join((PLACES, *lines))
    return f"""gpu.module @m {{ gpu.func @k(%m: memref<4096xf32>, %o: memref<64x16xf32>, %n: index) kernel {{ {body}
      gpu.return }} }}"""


def evaluated(module):
    m, o = np.random.default_rng(3).integers(-9, 10, 4096).astype(np.float32), np.zeros((64, 16), np.float32)
    reference.run(module, "k", [m, o, 40])
    return m, o


@pytest.mark.parametrize("name", CASES)
def test_stacks_are_split_where_their_matrices_are_used_apart(name):
    lines, loads, stores = CASES[name]
    before, after = parse(kernel(lines)), parse(kernel(lines))
    run_pipeline(after, "builtin.module(xetile-split-stacks,xegpu-dce)")
    found = re.findall(r"xetile\.load .*-> vector<(\d+)x", str(after))
    assert [int(n) for n in found] == loads
    assert [int(n) for n in re.findall(r"xetile\.store %.* : vector<(\d+)x", str(after))] == stores
    for one, other in zip(evaluated(before), evaluated(after)):
        np.testing.assert_array_equal(one, other)
