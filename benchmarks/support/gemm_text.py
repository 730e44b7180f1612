"""A fully unrolled GEMM as text, in this project's xegpu and in that of upstream's C++ dialect."""

from collections.abc import Iterator

K_STEPS = 2
OPS_PER_TILE = 5 + 5 * K_STEPS - 2
SIZE = 4096

_HEAD = """gpu.module @kernels {{
  gpu.func @gemm(%A: memref<{0}x{0}xbf16>, %B: memref<{0}x{0}xbf16>, %C: memref<{0}x{0}xf32>) kernel {{
"""
_TAIL = "    gpu.return\n  }\n}\n"
_A, _B, _C = (f"!xegpu.tensor_desc<{s}>" for s in ("8x16xbf16", "16x16xbf16", "8x16xf32"))
_ACC = "vector<8x16xf32>"


def ours(ops: int) -> str:
    """A module of about `ops` ops in VC mode. Static offsets differ from tile to tile, as unrolling leaves them."""
    return _module(ops, _our_tile)


def upstream(ops: int) -> str:
    """The same module in the syntax of upstream's C++ dialect of MLIR 22."""
    return _module(ops, _upstream_tile)


def _module(ops: int, tile) -> str:
    tiles = max(ops // OPS_PER_TILE, 1)
    lines = (line for i in range(tiles) for line in tile(i, i // 256 * 8 % SIZE, i % 256 * 16))
    return _HEAD.format(SIZE) + "".join(f"    {line}\n" for line in lines) + _TAIL


def _our_tile(i: int, m: int, n: int) -> Iterator[str]:
    vc = "{mode = vc}"
    yield f"%cd{i} = xegpu.create_nd_tdesc %C[{m}, {n}] {vc} : memref<{SIZE}x{SIZE}xf32> -> {_C}"
    yield f"%ad{i}_0 = xegpu.create_nd_tdesc %A[{m}, 0] {vc} : memref<{SIZE}x{SIZE}xbf16> -> {_A}"
    yield f"%bd{i}_0 = xegpu.create_nd_tdesc %B[0, {n}] {vc} : memref<{SIZE}x{SIZE}xbf16> -> {_B}"
    yield f"%c{i}_0 = xegpu.load_nd %cd{i} {vc} : {_C} -> {_ACC}"
    for k in range(K_STEPS):
        yield f"%a{i}_{k} = xegpu.load_nd %ad{i}_{k} {{mode = vc, vnni_axis = 1}} : {_A} -> vector<8x8x2xbf16>"
        yield f"%b{i}_{k} = xegpu.load_nd %bd{i}_{k} {{mode = vc, vnni_axis = 0}} : {_B} -> vector<8x16x2xbf16>"
        yield (
            f"%c{i}_{k + 1} = xegpu.dpas %c{i}_{k}, %a{i}_{k}, %b{i}_{k} {vc} : "
            f"{_ACC}, vector<8x8x2xbf16>, vector<8x16x2xbf16> -> {_ACC}"
        )
        if k + 1 < K_STEPS:
            yield f"%ad{i}_{k + 1} = xegpu.update_nd_offset %ad{i}_{k}, [0, 16] {vc} : {_A} -> {_A}"
            yield f"%bd{i}_{k + 1} = xegpu.update_nd_offset %bd{i}_{k}, [16, 0] {vc} : {_B} -> {_B}"
    yield f"xegpu.store_nd %c{i}_{K_STEPS}, %cd{i} {vc} : {_ACC}, {_C}"


def _upstream_tile(i: int, m: int, n: int) -> Iterator[str]:
    yield f"%cd{i} = xegpu.create_nd_tdesc %C[{m}, {n}] : memref<{SIZE}x{SIZE}xf32> -> {_C}"
    yield f"%ad{i}_0 = xegpu.create_nd_tdesc %A[{m}, 0] : memref<{SIZE}x{SIZE}xbf16> -> {_A}"
    yield f"%bd{i}_0 = xegpu.create_nd_tdesc %B[0, {n}] : memref<{SIZE}x{SIZE}xbf16> -> {_B}"
    yield f"%c{i}_0 = xegpu.load_nd %cd{i} : {_C} -> {_ACC}"
    for k in range(K_STEPS):
        # Upstream's dpas reads A in its memory layout, so only the load of B packs.
        yield f"%a{i}_{k} = xegpu.load_nd %ad{i}_{k} : {_A} -> vector<8x16xbf16>"
        yield f"%b{i}_{k} = xegpu.load_nd %bd{i}_{k} <{{packed}}> : {_B} -> vector<8x16x2xbf16>"
        yield (
            f"%c{i}_{k + 1} = xegpu.dpas %a{i}_{k}, %b{i}_{k}, %c{i}_{k} : "
            f"vector<8x16xbf16>, vector<8x16x2xbf16>, {_ACC} -> {_ACC}"
        )
        if k + 1 < K_STEPS:
            yield f"%ad{i}_{k + 1} = xegpu.update_nd_offset %ad{i}_{k}, [0, 16] : {_A}"
            yield f"%bd{i}_{k + 1} = xegpu.update_nd_offset %bd{i}_{k}, [16, 0] : {_B}"
    yield f"xegpu.store_nd %c{i}_{K_STEPS}, %cd{i} : {_ACC}, {_C}"
