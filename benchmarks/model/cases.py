"""The published points that are predicted, and the launches that stand for them.

Left out are points whose sources do not say what the kernel was: tiles, shapes or element types; whole models; figures
above the memory's rate that say nothing of caches; and comparisons of software whose kernels differ in unknown ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import kernels
import ml_dtypes
import numpy as np
from msgspec import Struct

from xegpu_py.gpus import GPUS

F16, BF16, F32, F64, S8 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8


class Launch(Struct):
    """A launch of a kernel: a function that makes its arrays, its parameters, its grid, and options to compile it."""

    kernel: Any
    arrays: Callable[[], list[Any]]
    named: Mapping[str, Any]
    grid: Any
    options: Mapping[str, Any] = {}


class ItemLaunch(Struct):
    """A launch of a kernel of kernels.cl: its name, its macros, its arrays, and its global and local size."""

    kernel: str
    macros: Mapping[str, int]
    arrays: Callable[[], list[Any]]
    items: Any
    local: Any


class Case(Struct):
    """A published point.

    Attributes:
        point: its number in points.csv.
        gpu: the GPU.
        launches: the launches whose times are added.
        work: what the published value counts, in its unit's terms: operations, bytes, cells; 0 for times.
        warm: whether the caches hold what an earlier launch has left.
    """

    point: str
    gpu: str
    launches: list[Launch | ItemLaunch]
    work: float = 0
    warm: bool = False


def target(gpu: str) -> str:
    return GPUS[gpu].target


def empty(*shapes: Any) -> Callable[[], list[Any]]:
    """Arrays that no workgroup reads for addresses: (shape, type) pairs."""
    return lambda: [np.empty(shape, dtype) for shape, dtype in shapes]


# Arithmetic.


def chain(point: str, gpu: str, dtype: Any, chains: int = 1, width: int = 32) -> Case:
    kernel = kernels.fused_chain if np.dtype(dtype).kind == "f" else kernels.chain
    if target(gpu) == "dg2":
        width //= 2
    count, turns = GPUS[gpu].cores * 8 * 8 * 8, 256 // chains
    named = {"TURNS": turns, "CHAINS": chains, "WIDTH": width}
    work = 2.0 * 16 * turns * chains * width * count
    return Case(point, gpu, [Launch(kernel, empty(((1, width * chains * count), dtype)), named, count)], work)


def products(point: str, gpu: str, dtype: Any) -> Case:
    count, turns = GPUS[gpu].cores * 8 * 8 * 8, 256
    k, wide = (64, np.int32) if dtype == S8 else (32, F32)
    arrays = empty(((32 * count, k), dtype), ((k, 32), dtype), ((32 * count, 32), wide))
    launch = Launch(kernels.products, arrays, {"TURNS": turns, "K": k}, count, {"registers": 256})
    return Case(point, gpu, [launch], 2.0 * 32 * 32 * k * turns * count)


def arithmetic() -> Iterator[Case]:
    for gpu, first in (("max1100", 1), ("b580", 12)):
        types = (F64, F32, F16, np.int64, np.int32, np.int16)
        for n, dtype in enumerate(types):
            yield chain(f"P{first + n:03}", gpu, dtype, width=64 if np.dtype(dtype).itemsize == 2 else 32)
    for n, dtype in enumerate((F16, BF16, S8)):
        yield products(f"P{23 + n:03}", "b580", dtype)
    for n, dtype in enumerate((F32, F16, F64, np.int32, np.int64)):
        yield chain(f"P{26 + n:03}", "b580", dtype)
    for point, dtype, chains in (
        ("P033", F32, 1),
        ("P034", F32, 4),
        ("P035", F32, 16),
        ("P036", F16, 1),
        ("P037", F16, 4),
    ):
        yield chain(point, "b580", dtype, chains, 32 if chains < 16 else 16)
    for first, gpu, chains in (
        (43, "a770", (1, 2, 4, 8, 16)),
        (53, "a750", (1, 2, 4, 16)),
        (60, "a750", (1, 2, 4, 16)),
    ):
        for n, count in enumerate(chains):
            yield chain(f"P{first + n:03}", gpu, F32, count, 32 if count < 8 else 16)
    for n, (dtype, count) in enumerate(((F32, 1), (F16, 1), (F16, 2))):
        yield chain(f"P{68 + n:03}", "a770", dtype, count)
    for point, gpu, dtype in (
        ("P038", "b580", np.int32), ("P040", "b580", F64), ("P048", "a770", F16), ("P049", "a770", np.int32),
        ("P057", "a750", F16), ("P064", "a750", F16), ("P065", "a750", np.int32), ("P102", "max1550", F32),
        ("P103", "max1550", F64),
    ):  # fmt: skip
        yield chain(point, gpu, dtype)
    for point, gpu in (("P007", "max1100"), ("P018", "b580")):
        items = GPUS[gpu].cores * 8 * 8 * 8 * 32
        launch = ItemLaunch("byte_products", {"TURNS": 256}, empty(((items,), np.int32)), items, 64)
        yield Case(point, gpu, [launch], 8.0 * 16 * 256 * items)


# Memory.


def bandwidth_of_items(point: str, gpu: str, way: str) -> Case:
    lanes, turns = 1 << 22, 16
    kind, _, access = way.partition(" ")
    stride, step = (turns, 1) if access == "misaligned" else (1, lanes)
    shapes = [((lanes * turns,), F32)] + [((lanes,), F32)] * (kind == "read")
    macros = {"TURNS": turns, "STRIDE": stride, "STEP": step}
    launch = ItemLaunch(f"{kind}_numbers", macros, empty(*shapes), lanes, 64)
    return Case(point, gpu, [launch], 4.0 * lanes * turns)


def bandwidth(point: str, gpu: str) -> Case:
    lanes, turns = 1 << 22, 16
    named = {"TURNS": turns, "SUBGROUPS": 2, "STEP": lanes}
    arrays = empty(((lanes * turns,), F32), ((lanes,), F32))
    return Case(point, gpu, [Launch(kernels.read, arrays, named, lanes // 64)], 4.0 * lanes * turns)


def memory() -> Iterator[Case]:
    for n, way in enumerate(("read", "write", "read misaligned", "write misaligned")):
        yield bandwidth_of_items(f"P{8 + n:03}", "max1100", way)
    yield bandwidth_of_items("P020", "b580", "write misaligned")
    count = 1 << 24
    arrays = empty(*[((count // 4096, 4096), F64)] * 3)
    yield Case("P104", "max1550", [Launch(kernels.triad, arrays, {}, (count // 4096 // 32, 64))], 24.0 * count)
    for point, gpu in (
        ("P050", "a770"), ("P051", "a770"), ("P052", "a770"), ("P058", "a750"), ("P059", "a750"), ("P066", "a750"),
        ("P067", "a750"),
    ):  # fmt: skip
        yield bandwidth(point, gpu)
    for n, mib in enumerate((32, 64, 128, 256)):
        rows = mib << 10 >> 4
        arrays = empty(((rows, 4096), F32), ((rows, 4096), F32))
        named = {"ROWS": 8, "COLUMNS": 64, "SUBGROUPS": 8}
        yield Case(f"P{453 + n}", "b70", [Launch(kernels.copy, arrays, named, (rows // 64, 64))], 2.0 * (mib << 20))


def embedding() -> Iterator[Case]:
    bags, length, dim, rows = 4096, 100, 64, 1000000

    def arrays() -> list[Any]:
        indices = np.random.default_rng(0).integers(0, rows, bags * length)
        starts = np.arange(0, bags * length + 1, length)
        return [np.empty((rows, dim), F16), indices, starts, np.empty((bags, dim), F16)]

    for gpu, first in (("max1550", 404), ("b580", 407)):
        for n, (vector, local) in enumerate(((1, 256), (8, 1024), (8, 1024))):
            point = f"P{first + n}"
            macros = {"WIDTH": dim, "VECTOR": vector}
            yield Case(point, gpu, [ItemLaunch("embedding_bag", macros, arrays, bags * dim // vector, local)])


def pools() -> Iterator[Case]:
    images = 4096
    for n, (channels, size) in enumerate(((64, 55), (192, 27), (256, 13))):
        out = (size - 3) // 2 + 1
        macros = {"WIDTH": channels, "IN": size, "OUT": out}
        inner, outer = images * size * size * channels, images * out * out * channels
        for m, vector in enumerate((1, 8)):
            for shift, gpu in ((0, "max1550"), (2, "b580")):
                arrays = empty(((inner,), F16), ((outer,), F16), ((outer,), np.int64))
                launch = ItemLaunch("max_pool", {**macros, "VECTOR": vector}, arrays, outer // vector, 256)
                yield Case(f"P{382 + 4 * n + m + shift}", gpu, [launch])

            # All places are those of the first element of their window.
            def gradients(outer: int = outer, inner: int = inner) -> list[Any]:
                return [np.empty(outer, F16), np.empty(outer, np.int64), np.empty(inner, F16)]

            launch = ItemLaunch("max_pool_gradient", {**macros, "VECTOR": vector}, gradients, inner // vector, 256)
            yield Case(f"P{394 + 2 * n + m}", "max1550", [launch])


def histograms() -> Iterator[Case]:
    for n, tokens in enumerate((4096, 8192, 16384, 32768)):
        count = tokens * 8

        def arrays(count: int = count) -> list[Any]:
            experts = np.random.default_rng(0).integers(0, 128, count).astype(np.int32)
            return [experts, np.zeros(128, np.int32)]

        yield Case(f"P{477 + 2 * n}", "b580", [Launch(kernels.count_global, arrays, {"ITEMS": 32}, count // 32)])
        named = {"ITEMS": 32, "TURNS": 32}
        yield Case(f"P{478 + 2 * n}", "b580", [Launch(kernels.count_local, arrays, named, count // 1024)])


# Rows.


def layer_norm(point: str, rows: int, n: int, dtype: Any, across: int, down: int = 1) -> Case:
    arrays = empty(((rows, n), dtype), ((rows, n), dtype))
    named = {"N": n, "ACROSS": across, "DOWN": down}
    return Case(point, "max1550", [Launch(kernels.layer_norm, arrays, named, -(-rows // down))])


def rows() -> Iterator[Case]:
    for n, columns in enumerate((256, 1024, 2048, 4096, 8192)):
        arrays = empty(((4096, columns), F16), ((4096, columns), F16))
        named = {"N": columns, "ACROSS": max(1, columns // 256)}
        yield Case(
            f"P{137 + 2 * n}", "max1550", [Launch(kernels.softmax, arrays, named, 4096)], 2.0 * 4096 * columns * 2
        )
    yield layer_norm("P362", 1, 1024, BF16, 8)
    yield layer_norm("P363", 1, 1024, F32, 8)
    for n, (count, columns) in enumerate(((512 * 3136, 128), (128 * 49 * 196, 1024))):
        for m, dtype in enumerate((BF16, F32)):
            yield layer_norm(f"P{364 + 2 * n + m}", count, columns, dtype, max(1, columns // 128))
    for n, (count, columns) in enumerate(
        ((128 * 197, 384), (16 * 128, 1024), (2 * 4096, 320), (512 * 3136, 128), (1, 1024))
    ):
        yield layer_norm(f"P{368 + 2 * n}", count, columns, BF16, columns // 32)
        yield layer_norm(f"P{369 + 2 * n}", count, columns, BF16, max(1, columns // 128))
    for n, (count, d) in enumerate(((21, 3584), (96, 3584), (45, 6912), (32, 6912))):
        arrays = empty(((count, 2 * d), F16), ((count, d), F16))
        for m, (width, subgroups, turns) in enumerate(
            ((1, 28 if d == 3584 else 27, d // (896 if d == 3584 else 864)), (8, d // 256, 1))
        ):
            named = {"D": d, "WIDTH": width, "SUBGROUPS": subgroups, "TURNS": turns}
            yield Case(f"P{323 + 2 * n + m}", "max1550", [Launch(kernels.silu_and_mul, arrays, named, count)])
    for gpu, one, two in (("max1550", "P378", "P379"), ("b580", "P380", "P381")):
        count = 25088 * 16

        def sums(groups: int, count: int = count) -> Launch:
            turns = count // (groups * 128)
            arrays = empty(((count, 24), F32), ((count, 24), F32), ((2 * groups, 32), F32))
            return Launch(kernels.column_sums, arrays, {"ROWS": 8, "TURNS": turns, "SUBGROUPS": 16}, groups)

        yield Case(one, gpu, [sums(1)])
        yield Case(two, gpu, [sums(64), sums(1, 128)])
    arrays = empty(((1, 5120), F16), ((1, 5120), S8))
    yield Case("P460", "b70", [Launch(kernels.rms_norm_alone, arrays, {"N": 5120}, 1)])
    yield Case("P461", "b70", [Launch(kernels.rms_norm, arrays, {"N": 5120, "SUBGROUPS": 8}, 1)])
    for point, n in (("P458", 5120), ("P459", 17408)):
        arrays = empty(((5120,), S8), ((n * 5120,), S8), ((n,), np.int32))
        yield Case(point, "b70", [Launch(kernels.gemv_columns, arrays, {"K": 5120}, n // 32)], warm=True)


# Products of matrices.


def gemm(
    point: str, gpu: str, shape: tuple[int, int, int], dtype: Any = F16, *, prefetch: int = 3, timed: bool = False,
    tile: tuple[int, int] = (256, 256), subgroups: tuple[int, int] = (8, 4), fp8: bool = False,
    out: Any = None,
) -> Case:  # fmt: skip
    m, n, k = shape
    wide = out or (np.int32 if dtype == S8 else F32)
    arrays = empty(((m, k), dtype), ((k, n), dtype), ((m, n), wide))
    step = 32 if np.dtype(dtype).itemsize == 2 or fp8 else 64 if dtype == S8 else 16
    named = {"K": k, "M": tile[0], "N": tile[1], "STEP": step, "SG": subgroups}
    grid = (math.ceil(m / tile[0]), math.ceil(n / tile[1]))
    kernel = kernels.gemm_fp8 if fp8 else kernels.gemm
    options = {"registers": 256, "prefetch": prefetch}
    return Case(point, gpu, [Launch(kernel, arrays, named, grid, options)], 0 if timed else 2.0 * m * n * k)


def matrices() -> Iterator[Case]:
    cube = (4096, 4096, 4096)
    for point, prefetch in (("X001", 0), ("X002", 1), ("X003", 3)):
        yield gemm(point, "b580", cube, prefetch=prefetch)
    yield gemm("P343", "b580", cube, BF16)
    yield gemm("P345", "b580", cube, BF16, out=BF16)
    yield gemm("P283", "b580", (5120, 4096, 4096), BF16)
    for n, m in enumerate((1, 8, 16, 32, 128, 1024)):
        tile, subgroups = ((256, 256), (8, 4)) if m > 128 else ((128, 64), (4, 2)) if m > 32 else ((32, 64), (4, 4))
        yield gemm(f"P{332 + 2 * n}", "b580", (m, 4096, 4096), BF16, tile=tile, subgroups=subgroups, timed=True)
    for point, dtype in (("P107", F16), ("P108", BF16), ("P110", S8)):
        yield gemm(point, "max1550", (8192, 8192, 8192), dtype)
    shapes = ((1024, 1536, 7168), (1024, 1536, 1536), (1024, 7168, 1024), (1024, 7168, 128))
    for n, shape in enumerate(shapes):
        for m, dtype in enumerate((ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)):
            yield gemm(f"P{207 + 2 * n + m}", "max1550", shape, dtype, fp8=True, timed=True)


def products_of_items() -> Iterator[Case]:
    """Products of matrices without dpas."""
    n = 2048
    arrays = empty(((n, n), S8), ((n, n), S8), ((n, n), np.int32))
    yield Case("P457", "b70", [ItemLaunch("tiled_bytes", {"WIDTH": n}, arrays, (n, n), (16, 16))])
    m, k = 4096, 14336
    for point, columns in (("P470", 1), ("P471", 2), ("P472", 4), ("P473", 8)):
        arrays = empty(((m, k), np.uint16), ((columns, k), F32), ((m, columns), F32))
        launch = ItemLaunch("rows_times_columns", {"WIDTH": k, "VECTOR": columns}, arrays, m * 32, 128)
        yield Case(point, "b580", [launch], 2.0 * m * k * columns)
    tokens, experts, width = 32, 256, 3072
    arrays = empty(((tokens, width), F32), ((experts, width), F32), ((tokens, experts), F32))
    for point, kernel, slices in (("P307", "route", 1), ("P308", "route_in_slices", 4)):
        macros = {"TOKENS": tokens, "EXPERTS": experts, "WIDTH": width, "SLICES": slices}
        yield Case(point, "b60", [ItemLaunch(kernel, macros, arrays, experts * 16 * slices, 16 * slices)])


# FluidX3D.


def fluids() -> Iterator[Case]:
    size = 256
    cells = size**3
    for first, gpu in FLUIDS.items():
        for n, (form, dtype) in enumerate((("f32", F32), ("f16s", F16), ("f16c", np.uint16))):
            number = 19 * cells + 4 * size * size
            arrays = empty(((number,), dtype), ((number,), dtype), ((cells + 4 * size * size,), np.uint8))
            named = {"SIZE": size, "CELLS": cells, "FORM": form}
            yield Case(f"P{first + n:03}", gpu, [Launch(kernels.lattice_boltzmann, arrays, named, cells // 32)], cells)


FLUIDS = {72: "max1100", 75: "b70", 81: "b580", 87: "b50", 90: "a770", 93: "a750", 96: "140v", 99: "185h"}
"""The first of each GPU's points."""


def cases() -> list[Case]:
    """All cases."""
    return [
        *arithmetic(), *memory(), *embedding(), *pools(), *histograms(), *rows(), *matrices(), *products_of_items(),
        *fluids(),
    ]  # fmt: skip
