"""Kernels of work items give the bits that each work item's own computation gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import xegpu_py
from xegpu_py.runtime.host_arrays import DTYPES

from .gemms import Gemm
from .single import exp, fma

KERNELS = Path(__file__).parents[2] / "run" / "simt"


def test_softmax():
    rng = np.random.default_rng(1)
    x = (10 * rng.standard_normal((8, 100))).astype(np.float32)
    out = np.zeros_like(x)
    xegpu_py.compile(KERNELS / "softmax.mlir")(x, out, grid=4, block=(16, 2))
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    # To the bit: each work item adds every 16th number, then lanes are added, the highest bit of their number first.
    powers = exp(x - x.max(axis=1, keepdims=True))
    part = np.zeros((8, 16), np.float32)
    for j in range(0, 100, 16):
        part[:, : 100 - j] += powers[:, j : j + 16]
    for bit in (8, 4, 2, 1):
        part = part + part[:, np.arange(16) ^ bit]
    np.testing.assert_array_equal(out, powers / part[:, :1])


@pytest.mark.parametrize("block", [(3, 1, 5), (11, 3, 2), (4, 2, 4), (2, 3, 8), (16, 1, 1)])
def test_only_work_items_that_exist_act(block):
    x, y, z = block
    text = f"""
    gpu.module @m {{
      gpu.func @k(%o: memref<?xf32>) kernel
          attributes {{xegpu.subgroup_size = 16 : i32, known_block_size = array<i32: {x}, {y}, {z}>}} {{
        %one = arith.constant 1.0 : f32
        %i = gpu.thread_id x
        %j = gpu.thread_id y
        %k = gpu.thread_id z
        %x = gpu.block_dim x
        %y = gpu.block_dim y
        %jk = arith.muli %k, %y : index
        %line = arith.addi %jk, %j : index
        %first = arith.muli %line, %x : index
        %at = arith.addi %first, %i : index
        memref.store %one, %o[%at] : memref<?xf32>
        gpu.return
      }}
    }}
    """
    out = np.zeros(x * y * z + 32, np.float32)
    xegpu_py.compile(text, engine="both")(out, block=block)
    np.testing.assert_array_equal(out, np.arange(len(out)) < x * y * z)


@pytest.mark.parametrize("dtype", [np.float16])
def test_gather(dtype):
    rng = np.random.default_rng(2)
    table = rng.standard_normal((50, 12)).astype(dtype)
    index = rng.integers(-10, 50, 40).astype(np.int32)
    out = np.ones((40, 12), dtype)
    xegpu_py.compile(KERNELS / "gather.mlir")(table, index, out, grid=2, block=20)
    np.testing.assert_array_equal(out, np.where(index[:, None] < 0, 0, table[index]))


@dataclass(frozen=True)
class Fragments:
    """A GEMM of work items, of 8x16 tiles, with the maps by which A and C are distributed.

    Attributes:
        a_packed: whether A is loaded in the VNNI layout.
        b_transposed: whether B is given as N x K, and loaded transposed.
    """

    a: str
    b: str
    c: str
    a_map: tuple[tuple[int, int], tuple[int, int]]
    c_map: tuple[tuple[int, int], tuple[int, int]]
    a_packed: bool = False
    b_transposed: bool = False

    def text(self) -> str:
        pack = 32 // {"bf16": 16, "f16": 16, "i8": 8, "ui8": 8, "tf32": 32}[self.b]
        k = 8 * pack

        def part(rows: int, columns: int, layout: tuple[int, int]) -> str:
            return f"{rows // layout[0]}x{columns // layout[1]}"

        maps = {"a": self.a_map, "b": ((16, 1) if self.b_transposed else (1, 16), (pack, 1)), "c": self.c_map}
        lines = [
            f"#{n} = #xegpu.sg_map<wi_layout = {list(layout)}, wi_data = {list(data)}>"
            for n, (layout, data) in maps.items()
        ]
        rows, columns = 8 // self.a_map[0][0], k // self.a_map[0][1]
        a = (
            f"vector<{rows}x{columns // pack}x{pack}x{self.a}>"
            if self.a_packed
            else f"vector<{rows}x{columns}x{self.a}>"
        )
        b = f"vector<8x1x{pack}x{self.b}>" if pack > 1 else f"vector<8x1x{self.b}>"
        c = f"vector<{part(8, 16, self.c_map[0])}x{self.c}>"
        b_shape = f"16x{k}" if self.b_transposed else f"{k}x16"
        ta, tb, tc = (
            f"!xegpu.tensor_desc<{shape}x{element}, #{n}>"
            for n, shape, element in (("a", f"8x{k}", self.a), ("b", b_shape, self.b), ("c", "8x16", self.c))
        )
        place = "%n, %k" if self.b_transposed else "%k, %n"
        how = "{transpose = [1, 0]}" if self.b_transposed else "{vnni_axis = 0}" if pack > 1 else ""
        return "\n".join(
            [
                *lines,
                f"""gpu.module @kernels {{
  gpu.func @gemm(%A: memref<64x64x{self.a}>, %B: memref<64x64x{self.b}>, %C: memref<64x64x{self.c}>) kernel {{
    %zero = arith.constant dense<{"0" if self.c == "i32" else "0.0"}> : {c}
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %step = arith.constant {k} : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %m = arith.muli %x, %c8 : index
    %n = arith.muli %y, %c16 : index
    %ta = xegpu.create_nd_tdesc %A[%m, 0] : memref<64x64x{self.a}> -> {ta}
    %tc = xegpu.create_nd_tdesc %C[%m, %n] : memref<64x64x{self.c}> -> {tc}
    %r:2 = scf.for %k = %c0 to %c64 step %step iter_args(%acc = %zero, %pa = %ta) -> ({c}, {ta}) {{
      %tb = xegpu.create_nd_tdesc %B[{place}] : memref<64x64x{self.b}> -> {tb}
      xegpu.prefetch_nd %tb : {tb}
      %a = xegpu.load_nd %pa {"{vnni_axis = 1}" if self.a_packed else ""} : {ta} -> {a}
      %b = xegpu.load_nd %tb {how} : {tb} -> {b}
      %d = xegpu.dpas %acc, %a, %b : {c}, {a}, {b} -> {c}
      %na = xegpu.update_nd_offset %pa, [%c0, %step] : {ta} -> {ta}
      scf.yield %d, %na : {c}, {ta}
    }}
    xegpu.store_nd %r#0, %tc : {c}, {tc}
    gpu.return
  }}
}}""",
            ]
        )


WIDE = ((1, 16), (1, 1))
FRAGMENTS = [
    Fragments("bf16", "bf16", "f32", WIDE, WIDE),
    Fragments("bf16", "bf16", "f32", ((2, 8), (1, 2)), WIDE, True),
    Fragments("bf16", "bf16", "f32", ((2, 8), (1, 2)), ((2, 8), (1, 1))),
    Fragments("f16", "f16", "f32", ((4, 4), (1, 2)), ((8, 2), (1, 4))),
    Fragments("f16", "f16", "f32", ((8, 2), (1, 8)), ((1, 16), (1, 1))),
    Fragments("tf32", "tf32", "f32", ((2, 8), (1, 1)), ((2, 8), (1, 2))),
    Fragments("tf32", "tf32", "f32", ((4, 4), (1, 2)), WIDE),
    Fragments("tf32", "tf32", "f32", ((8, 2), (1, 1)), ((4, 4), (1, 2)), b_transposed=True),
    Fragments("i8", "i8", "i32", ((1, 16), (1, 2)), WIDE),
    Fragments("ui8", "i8", "i32", ((2, 8), (1, 4)), ((2, 8), (1, 2)), True),
]


def numbers(rng, element, shape):
    dtype = DTYPES["f32" if element == "tf32" else element]
    if "i" in element:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)
    found = rng.standard_normal(shape).astype(dtype)
    return (found.view("u4") & 0xFFFFE000).view("f4") if element == "tf32" else found


@pytest.mark.parametrize("gemm", FRAGMENTS, ids=str)
def test_gemm_of_fragments(gemm):
    """The same bytes as the GEMM of whole blocks and as sums by fma, and no more instructions."""
    rng = np.random.default_rng(3)
    a, b = numbers(rng, gemm.a, (64, 64)), numbers(rng, gemm.b, (64, 64))
    found, want = (np.zeros((64, 64), DTYPES[gemm.c]) for _ in range(2))
    kernel = xegpu_py.compile(gemm.text())
    kernel(a, np.ascontiguousarray(b.T) if gemm.b_transposed else b, found, grid=(8, 4), block=16)
    whole = xegpu_py.compile(Gemm(gemm.a, gemm.b, gemm.c, fresh=True).text())
    whole(a, b, want, grid=(8, 4))
    np.testing.assert_array_equal(found, want)
    if gemm.c == "i32":
        np.testing.assert_array_equal(found, (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32))
    else:
        rows, columns = rng.integers(0, 64, (2, 24))
        sums = np.zeros(24, np.float32)
        for k in range(64):
            sums = fma(a[rows, k].astype(np.float32), b[k, columns].astype(np.float32), sums)
        np.testing.assert_array_equal(found[rows, columns], sums)
    loop = kernel.asm.partition("For")[2].partition("Done")[0]
    assert loop.count("dpas") == 1 and "mov" not in loop, loop


@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.mlir")), ids=lambda p: p.stem)
def test_assembles(path, native_of):
    native = native_of(xegpu_py.compile(path, target="pvc").asm, "pvc")
    assert native.instructions and not native.spill_bytes


def test_whether_a_shuffle_reads_its_segment():
    """The second result of gpu.shuffle differs among work items, like the first."""
    text = """
gpu.module @k {
  gpu.func @f(%out: memref<32xi32>, %offset: i32) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %item = gpu.thread_id x
    %x = arith.index_cast %item : index to i32
    %width = arith.constant 8 : i32
    %three = arith.constant 3 : i32
    %y, %first = gpu.shuffle up %x, %three, %width : i32
    %z, %second = gpu.shuffle down %x, %offset, %width : i32
    %a = arith.extui %first : i1 to i32
    %b = scf.if %second -> i32 {
      scf.yield %z : i32
    } else {
      %hundred = arith.constant 100 : i32
      scf.yield %hundred : i32
    }
    %sum = arith.addi %a, %b : i32
    memref.store %sum, %out[%item] : memref<32xi32>
    gpu.return
  }
}
"""
    wanted = [(i % 8 >= 3) + (i + 2 if i % 8 < 6 else 100) for i in range(32)]
    for engine in ("both", "reference"):
        out = np.zeros(32, np.int32)
        xegpu_py.compile(text, engine=engine)(out, np.int32(2), block=32)
        assert out.tolist() == wanted


@pytest.mark.parametrize("mode", ["up", "down"])
@pytest.mark.parametrize("how", ["%three", "%given"])
@pytest.mark.parametrize("engine", ["both", "reference"])
def test_the_offset_of_a_shuffle_is_signed(mode, how, engine):
    text = f"""
gpu.module @k {{
  gpu.func @f(%out: memref<32xi32>, %offsets: memref<32xi32>) kernel attributes {{xegpu.subgroup_size = 16 : i32}} {{
    %item = gpu.thread_id x
    %x = arith.index_cast %item : index to i32
    %width = arith.constant 8 : i32
    %three = arith.constant -3 : i32
    %given = memref.load %offsets[%item] : memref<32xi32>
    %y, %valid = gpu.shuffle {mode} %x, {how}, %width : i32
    %none = arith.constant -1 : i32
    %z = arith.select %valid, %y, %none : i32
    memref.store %z, %out[%item] : memref<32xi32>
    gpu.return
  }}
}}
"""
    offsets = np.random.default_rng(0).integers(-9, 9, 32).astype(np.int32)
    out = np.zeros(32, np.int32)
    xegpu_py.compile(text, engine=engine)(out, offsets, block=32)
    moves = (offsets if how == "%given" else np.full(32, -3)) * (1 if mode == "down" else -1)
    lanes = np.arange(32) % 8 + moves
    np.testing.assert_array_equal(out, np.where((lanes >= 0) & (lanes < 8), np.arange(32) + moves, -1))


def test_memrefs_are_uniform():
    text = """
gpu.module @k {
  gpu.func @f(%a: memref<32xi32>, %b: memref<32xi32>) kernel attributes {xegpu.subgroup_size = 16 : i32} {
    %item = gpu.thread_id x
    %five = arith.constant 5 : index
    %c = arith.cmpi ult, %item, %five : index
    %m = arith.select %c, %a, %b : memref<32xi32>
    %x = memref.load %m[%item] : memref<32xi32>
    memref.store %x, %a[%item] : memref<32xi32>
    gpu.return
  }
}
"""
    with pytest.raises(xegpu_py.DiagnosticError, match=r"7:\d+: error: 'arith.select' op .*divergent value"):
        xegpu_py.compile(text)
