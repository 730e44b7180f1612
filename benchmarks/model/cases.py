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

from xegpu_py.extensions.profile.gpus import GPUS

F16, BF16, F32, F64, S8 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8


class Launch(Struct):
    """A launch of a kernel: a function that makes its arrays, its parameters, its grid, and options to compile it."""

    kernel: Any
    arrays: Callable[[], list[Any]]
    named: Mapping[str, Any]
    grid: Any
    options: Mapping[str, Any] = {}


class ItemLaunch(Struct):
    """A launch of a kernel of kernels.cl: its name, macros, arguments, global and local size, and further options."""

    kernel: str
    macros: Mapping[str, int]
    arrays: Callable[[], list[Any]]
    items: Any
    local: Any
    options: str = ""


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
        ("P057", "a750", F16), ("P064", "a750", F16), ("P065", "a750", np.int32), ("P102", "aurora", F32),
        ("P103", "aurora", F64),
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
    yield Case("P104", "aurora", [Launch(kernels.triad, arrays, {}, (count // 4096 // 32, 64))], 24.0 * count)
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
        marks = [np.empty(n, np.int64) for n in (bags * length, bags)]
        return [np.empty((rows, dim), F16), indices, starts, np.empty((bags, dim), F16), *marks, np.zeros(1, np.int32)]

    for gpu, first in (("max1550", 404), ("b580", 407)):
        for n, (vector, local, checked, options) in enumerate(
            ((1, 256, 1, "-cl-intel-256-GRF-per-thread"), (8, 1024, 1, ""), (8, 1024, 0, ""))
        ):

            def all_arguments(vector: int = vector) -> list[Any]:
                return [*arrays(), np.int64(rows), np.int64(dim // vector), np.int64(-1)]

            macros = {"VECTOR": vector, "CHECKED": checked}
            count = bags * dim // vector
            launch = ItemLaunch("embedding_bag", macros, all_arguments, count, local, options)
            yield Case(f"P{first + n}", gpu, [launch])


def pools() -> Iterator[Case]:
    images = 4096
    for n, (channels, size) in enumerate(((64, 55), (192, 27), (256, 13))):
        out = (size - 3) // 2 + 1
        sizes = [np.int32(n) for n in (channels, size, out, 3, 2)]
        inner, outer = images * size * size * channels, images * out * out * channels
        for m, vector in enumerate((1, 8)):
            for shift, gpu in ((0, "max1550"), (2, "b580")):

                def values(outer: int = outer, inner: int = inner, sizes: list[Any] = sizes) -> list[Any]:
                    return [np.empty(inner, F16), np.empty(outer, F16), np.empty(outer, np.int64), *sizes]

                launch = ItemLaunch("max_pool", {"VECTOR": vector}, values, outer // vector, 1024)
                yield Case(f"P{382 + 4 * n + m + shift}", gpu, [launch])

            # All places are those of the first element of their window.
            def gradients(outer: int = outer, inner: int = inner, sizes: list[Any] = sizes) -> list[Any]:
                return [np.empty(outer, F16), np.empty(outer, np.int64), np.empty(inner, F16), *sizes]

            launch = ItemLaunch("max_pool_gradient", {"VECTOR": vector}, gradients, inner // vector, 1024)
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
            if (count, width) == (21, 1):
                # P323: its source has 2.4 times the time of a launch of 4.6 times as many rows (P325).
                continue
            named = {"D": d, "WIDTH": width, "SUBGROUPS": subgroups, "TURNS": turns}
            yield Case(f"P{323 + 2 * n + m}", "max1550", [Launch(kernels.silu_and_mul, arrays, named, count)])
    for gpu, one, two in (("max1550", "P378", "P379"), ("b580", "P380", "P381")):
        count = 25088 * 16

        def sums(groups: int, count: int = count) -> Launch:
            turns = count // (groups * 128)
            arrays = empty(((count, 24), F32), ((count, 24), F32), ((2 * groups, 32), F32))
            return Launch(kernels.column_sums, arrays, {"ROWS": 8, "TURNS": turns, "SUBGROUPS": 16}, groups)

        def alone(count: int = count) -> list[Any]:
            arrays = [np.empty(n, F32) for n in (count * 24, count * 24, count, count, 48)]
            return [*arrays, np.int32(count), np.int32(24)]

        yield Case(one, gpu, [ItemLaunch("column_sums_alone", {}, alone, (32, 32), (32, 32))])

        def tiles(count: int = count) -> list[Any]:
            arrays = [np.empty(n, F32) for n in (count * 24, count * 24, count, count, 48 * count // 1024)]
            return [*arrays, *(np.int32(n) for n in (count, 24, 16))]

        first = ItemLaunch("column_sums_of_tiles", {}, tiles, (32, 8 * count // 1024), (32, 8))
        yield Case(two, gpu, [first, sums(1, count // 1024)])


def rows_of_b70() -> Iterator[Case]:
    """Kernels of one work item for a row or a column, and of one group for a row, of a laboratory that has a B70."""

    # The SYCL compiler's default is fast arithmetic.
    options = "-cl-std=CL3.0 -cl-fast-relaxed-math"

    def quantise(point: str, kernel: str, count: int, n: int, items: int) -> Case:
        def arrays() -> list[Any]:
            return [np.empty(count * n, F16), np.empty(count * n, S8), np.empty(count, F32), np.int32(n)]

        launch = ItemLaunch(kernel, {}, arrays, count * items, min(count * items, 256), options)
        return Case(point, "b70", [launch], warm=True)

    yield quantise("P460", "quantise_alone", 1, 5120, 1)
    yield quantise("P461", "quantise_by_group", 1, 5120, 256)
    for n, shape in enumerate(((1, 17408), (64, 5120), (64, 17408))):
        yield quantise(f"X{11 + n:03}", "quantise_alone", *shape, 1)
    for point, n in (("P458", 5120), ("P459", 17408)):

        def arrays(n: int = n) -> list[Any]:
            found = [np.empty(size, dtype) for size, dtype in ((5120, S8), (n * 5120, S8), (n, np.int32))]
            return [*found, np.int32(5120), np.int32(n)]

        # The source leaves the size of a group to the driver.
        yield Case(point, "b70", [ItemLaunch("row_times_bytes", {}, arrays, n, 256)], warm=True)


def greatest() -> Iterator[Case]:
    for first, dtype, shapes in (
        (413, BF16, ((1024, 131072), (2048, 131072))),
        (417, F32, ((1024, 131072), (2048, 131072), (2048, 8192))),
    ):
        for n, (count, width) in enumerate(shapes):

            def arrays(count: int = count, width: int = width, dtype: Any = dtype) -> list[Any]:
                numbers = np.random.default_rng(0).standard_normal(1 << 20, np.float32).astype(dtype)
                return [np.resize(numbers, count * width), np.empty(count * 8, F32), np.empty(count * 8, np.int64)]

            macros = {"WIDTH": width, "BYTES": np.dtype(dtype).itemsize}
            yield Case(f"P{first + 2 * n}", "b580", [ItemLaunch("greatest", macros, arrays, count * 32, 256)])


def convolutions() -> Iterator[Case]:
    for n, (sequences, length) in enumerate(((1, 4096), (1, 8192), (8, 1024), (16, 512), (32, 256))):
        tokens = sequences * length

        def arrays(*chosen: int, tokens: int = tokens, length: int = length) -> list[Any]:
            starts = np.arange(0, tokens + 1, length, np.int32)
            x, weights, *results = (np.empty(n, np.uint16) for n in (
                tokens * 12288, 32768, tokens * 2048, tokens * 2048, tokens * 4096, tokens * 4096
            ))  # fmt: skip
            found = [x, weights, starts, *results]
            return [found[at] for at in chosen]

        def launch(
            kernel: str, items: int, groups: int, *chosen: int, arrays: Any = arrays, sequences: int = sequences
        ) -> ItemLaunch:
            macros = {"SEQUENCES": sequences}
            return ItemLaunch(kernel, macros, lambda: arrays(*chosen), (16 * items, groups), (items, 1))

        direct = [launch("convolve", 128, tokens, 0, 1, 2, 3, 4, 5), launch("copy_gates", 64, tokens, 0, 6)]
        yield Case(f"P{309 + 2 * n}", "b580", direct)
        tiles = launch("convolve_tiles", 64, tokens // 8 * 2, 0, 1, 2, 3, 4, 5, 6)
        yield Case(f"P{310 + 2 * n}", "b580", [tiles])


# Attention.


def heads(point: str, gpu: str, shape: tuple[int, int, int], dtype: Any, step: int, **named: Any) -> Case:
    count, n, d = shape
    arrays = empty(*[((count * n, d), dtype)] * 4)
    all_named = {"N": n, "M": 128, "STEP": step, "D": d, "PART": d, "FAST": True, "AHEAD": True, **named}
    launch = Launch(kernels.attention, arrays, all_named, (n // 128, count), {"registers": 256, "prefetch": 0})
    # sycl-tla's benchmarks launch a kernel again and again.
    return Case(point, gpu, [launch], 4.0 * count * n * n * d, warm=True)


def attention() -> Iterator[Case]:
    for n, (fast, ahead) in enumerate(((False, False), (True, False), (True, True))):
        yield heads(f"X{8 + n:03}", "max1100", (16, 4096, 64), F16, 64, FAST=fast, AHEAD=ahead)
    for n, (count, rows) in enumerate(((4, 512), (4, 1024), (8, 512), (8, 1024), (32, 1024), (32, 512))):
        yield heads(f"P{216 + 2 * n}", "b580", (count, rows, 128), BF16, 32, PART=32)


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
    # sycl-tla's benchmarks, of which the products of bytes are, launch a kernel again and again.
    return Case(point, gpu, [Launch(kernel, arrays, named, grid, options)], 0 if timed else 2.0 * m * n * k, warm=fp8)


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
        yield gemm(point, "aurora", (8192, 8192, 8192), dtype)
    shapes = ((1024, 1536, 7168), (1024, 1536, 1536), (1024, 7168, 1024), (1024, 7168, 128))
    for n, shape in enumerate(shapes):
        for m, dtype in enumerate((ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)):
            yield gemm(f"P{207 + 2 * n + m}", "max1550", shape, dtype, fp8=True, timed=True)


def scaled(
    point: str, rows: int, n: int, high: int, subgroups: tuple[int, int], ahead: str = "", **options: Any
) -> Case:
    """A product of bytes of a B70; a thread has `high` rows."""
    k, m, width = 5120, high * subgroups[0], 32 * subgroups[1]
    arrays = empty(((rows, k), S8), ((k, n), S8), ((rows, 1), F32), ((1, n), F32), ((rows, n), F16))
    named = {"K": k, "M": m, "SG": subgroups, "AHEAD_A": "A" in ahead, "AHEAD_B": "B" in ahead}
    grid = (math.ceil(rows / m), math.ceil(n / width))
    return Case(point, "b70", [Launch(kernels.gemm_scaled, arrays, named, grid, {"prefetch": 0, **options})], warm=True)


def products_of_b70() -> Iterator[Case]:
    """Products of bytes by hand (ESIMD): a thread has 32 columns and 4, 8, 32 or 48 rows."""
    line, square = (1, 16), (8, 4)
    yield scaled("P422", 4, 5120, 4, line)
    for point, high, subgroups, ahead, options in (
        ("P424", 4, line, "", {}),
        ("P425", 8, line, "", {}),
        ("P427", 8, line, "A", {}),
        ("P428", 32, line, "A", {}),
        ("P429", 8, line, "AB", {}),
        ("P430", 8, line, "A", {"prefetch": 1}),
        ("P431", 8, square, "A", {}),
        ("P432", 32, (2, 4), "A", {}),
        ("P433", 32, (2, 16), "A", {}),
    ):
        yield scaled(point, 64, 5120, high, subgroups, ahead, **options)
    yield scaled("X014", 64, 17408, 8, square, "A")
    for n, (high, subgroups, ahead) in enumerate(
        ((8, line, "A"), (8, square, "A"), (32, square, ""), (48, square, ""))
    ):
        yield scaled(f"X{15 + n:03}", 256, 5120, high, subgroups, ahead)


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
            arrays = empty(((number,), dtype), ((cells + 4 * size * size,), np.uint8))
            # As many lanes as the registers of the GPU have room for.
            width = 16 if target(gpu) == "dg2" else 32
            named = {"SIZE": size, "CELLS": cells, "FORM": form, "WIDTH": width}
            launch = Launch(kernels.lattice_boltzmann, arrays, named, cells // width)
            yield Case(f"P{first + n:03}", gpu, [launch], cells)


FLUIDS = {72: "max1100", 75: "b70", 81: "b580", 87: "b50", 90: "a770", 93: "a750", 96: "140v", 99: "185h"}
"""The first of each GPU's points."""


def cases() -> list[Case]:
    """All cases."""
    return [
        *arithmetic(), *memory(), *embedding(), *pools(), *histograms(), *rows(), *rows_of_b70(), *greatest(),
        *convolutions(), *attention(), *matrices(), *products_of_b70(), *products_of_items(), *fluids(),
    ]  # fmt: skip
