"""Kernels in `xevm` and `llvm`: each op against a model of what OpenCL's functions do, made of numpy alone."""

import re

import ml_dtypes
import numpy as np
import pytest
from mlir import ir

import xegpu_py
from xegpu_py.dialects.xegpu import SgMap
from xegpu_py.ir.diagnostics import DiagnosticError
from xegpu_py.ir.module import walk
from xegpu_py.passes.analysis.ir_queries import constant_of
from xegpu_py.upstream import import_upstream
from xegpu_py.upstream.xevm import put
from xegpu_py.upstream.xevm_memory import MessageBlock, _accessed

LANES = 16
ENGINES = ("jit", "reference")

KERNEL = """
gpu.module @m {
  GLOBALS
  llvm.func spir_kernelcc @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {gpu.kernel} {
    %lane = xevm.lane_id : i64
    BODY
    llvm.return
  }
}
"""


def run(body, a, b, engine="jit", header="", block=LANES, grid=1, **options):
    """Run lines of a kernel on two arrays, of which it writes the second."""
    module = import_upstream(KERNEL.replace("BODY", body).replace("GLOBALS", header))
    options = {} if engine == "reference" else {"cache": "off", **options}
    kernel = xegpu_py.compile(module, engine=engine, **options)
    kernel(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8), grid=grid, block=block)
    return b


def lanes_of(bits, rows, columns, blocks, how, found):
    """The lanes' parts of blocks, [lanes, bytes], of `found`, [blocks, rows, columns].

    The registers have a block's elements one after the other, of 16 bits at least, round robin; packed
    elements are those that lie in a column, as many as 32 bits hold.
    """
    if how == "transpose":
        found = found.transpose(0, 2, 1)
    if how == "pack":
        factor = 32 // bits
        found = found.reshape(blocks, rows // factor, factor, columns).transpose(0, 1, 3, 2)
    unit = 4 if how == "pack" else max(bits // 8, 2)
    registers = np.ascontiguousarray(found).reshape(-1).view(np.uint8).reshape(-1, LANES, unit)
    return registers.transpose(1, 0, 2).reshape(LANES, -1)


TILES = [
    (16, 8, 16, 1, ""), (16, 4, 16, 2, ""), (32, 8, 16, 1, ""), (32, 8, 8, 1, ""), (8, 8, 32, 1, ""),
    (16, 2, 32, 1, ""),
    (16, 16, 16, 1, "pack"), (8, 32, 16, 1, "pack"), (16, 16, 16, 2, "pack"),
    (32, 16, 8, 1, "transpose"), (32, 32, 4, 1, "transpose"),
]  # fmt: skip


@pytest.mark.each_value
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("called", [False, True])
def test_blocks_are_loaded(tile, called):
    bits, rows, columns, blocks, how = tile
    dtype = np.dtype(f"u{bits // 8}")
    source = np.random.default_rng(2).integers(0, 256, (64, 256), np.uint8).view(dtype)
    # A block that begins within bounds, and one that exceeds the right and the lower edge, where it is zero.
    x, y, width, height = 3 * 4 // dtype.itemsize, 11, 20 + columns * blocks, 16 + rows
    padded = np.zeros((200, 600), dtype)
    padded[:height, :width] = source[:height, :width]
    count = rows * columns * blocks * bits // 8 // LANES // (4 if bits == 32 or how == "pack" else 2)
    element = "i32" if bits == 32 or how == "pack" else "i16"
    kind, both = f"vector<{count}x{element}>", f"!llvm.array<2 x array<{count} x {element}>>"
    name = {"": "", "pack": "_transform", "transpose": "_transpose"}[how]
    body = []
    for number, (px, py) in enumerate([(x, y), (x + width - columns, y + 4)]):
        body.append(f"""
    %w{number} = llvm.mlir.constant({width * bits // 8} : i32) : i32
    %h{number} = llvm.mlir.constant({height} : i32) : i32
    %p{number} = llvm.mlir.constant(256 : i32) : i32
    %x{number} = llvm.mlir.constant({px} : i32) : i32
    %y{number} = llvm.mlir.constant({py} : i32) : i32""")
        if called:
            function = f"@_Z52intel_sub_group_2d_block_read{name}_{bits}b_{rows}r{columns}x{blocks}c"
            function = function.replace("52", str(len(function) - 5))
            body.append(f"""
    %n{number} = llvm.mlir.constant({count} : i32) : i32
    %i0{number} = llvm.mlir.constant(0 : i32) : i32
    %i1{number} = llvm.mlir.constant(1 : i32) : i32
    %u{number} = llvm.mlir.undef : vector<2xi32>
    %c{number} = llvm.insertelement %x{number}, %u{number}[%i0{number} : i32] : vector<2xi32>
    %d{number} = llvm.insertelement %y{number}, %c{number}[%i1{number} : i32] : vector<2xi32>
    %q{number} = llvm.alloca %n{number} x {element} : (i32) -> !llvm.ptr
    llvm.call {function}(%a, %w{number}, %h{number}, %p{number}, %d{number}, %q{number})
      : (!llvm.ptr<1>, i32, i32, i32, vector<2xi32>, !llvm.ptr) -> ()
    %v{number} = llvm.load %q{number} : !llvm.ptr -> {kind}""")
        else:
            body.append(f"""
    %v{number} = xevm.blockload2d %a, %w{number}, %h{number}, %p{number}, %x{number}, %y{number}
      <{{elem_size_in_bits = {bits} : i32, tile_width = {columns} : i32, tile_height = {rows} : i32,
        v_blocks = {blocks} : i32, transpose = {str(how == "transpose").lower()},
        pack_register = {str(how == "pack").lower()}}}>
      : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> {kind}""")
        body.append(f"""
    %s{number} = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {both}
    %t{number} = llvm.getelementptr %s{number}[0, {number}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, {both}
    llvm.store %v{number}, %t{number} : {kind}, !llvm.ptr<1>""")
    header = ""
    if called:
        header = f"llvm.func spir_funccc {function}(!llvm.ptr<1>, i32, i32, i32, vector<2xi32>, !llvm.ptr)"
    out = np.zeros((LANES, 2, rows * columns * blocks * bits // 8 // LANES), np.uint8)
    for engine in ENGINES[: 2 - called]:
        out[:] = 0
        run("".join(body), source, out, engine, header)
        for number, (px, py) in enumerate([(x, y), (x + width - columns, y + 4)]):
            found = [padded[py : py + rows, px + i * columns : px + (i + 1) * columns] for i in range(blocks)]
            expected = lanes_of(bits, rows, columns, blocks, how, np.array(found))
            np.testing.assert_array_equal(out[:, number], expected)


@pytest.mark.parametrize("tile", [(16, 8, 16), (32, 8, 16), (8, 8, 32), (32, 1, 16), (16, 2, 16)])
def test_blocks_are_stored(tile):
    bits, rows, columns = tile
    size = rows * columns * bits // 8 // LANES
    dtype = np.dtype(f"u{bits // 8}")
    source = np.random.default_rng(3).integers(1, 256, (LANES, size), np.uint8)
    target = np.zeros((24, 128), np.uint8).view(dtype)
    body = f"""
    %w = llvm.mlir.constant(96 : i32) : i32
    %h = llvm.mlir.constant(20 : i32) : i32
    %p = llvm.mlir.constant(128 : i32) : i32
    %x = llvm.mlir.constant({16 * 4 // dtype.itemsize} : i32) : i32
    %y = llvm.mlir.constant(17 : i32) : i32
    %s = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<{size} x i8>
    %v = llvm.load %s {{alignment = 2 : i64}} : !llvm.ptr<1> -> vector<{size // 2}xi16>
    %c = llvm.bitcast %v : vector<{size // 2}xi16> to vector<{size * 8 // bits}xi{bits}>
    xevm.blockstore2d %b, %w, %h, %p, %x, %y, %c
      <{{elem_size_in_bits = {bits} : i32, tile_width = {columns} : i32, tile_height = {rows} : i32}}>
      : (!llvm.ptr<1>, i32, i32, i32, i32, i32, vector<{size * 8 // bits}xi{bits}>)"""
    run(body, source, target)
    block = np.zeros(rows * columns * bits // 8, np.uint8)
    block[registers_order(bits, rows, columns).ravel()] = source.ravel()
    expected = np.zeros((24 + rows, 512), np.uint8)
    expected[17 : 17 + rows, 64 : 64 + columns * bits // 8] = block.reshape(rows, -1)
    expected[20:] = 0
    expected[:, 96:] = 0
    np.testing.assert_array_equal(target.view(np.uint8), expected[:24, :128])


def registers_order(bits, rows, columns):
    """int[lanes, bytes], the byte of a row-major block that each byte of a lane is."""
    unit = max(bits // 8, 2)
    return np.arange(rows * columns * bits // 8).reshape(-1, LANES, unit).transpose(1, 0, 2).reshape(LANES, -1)


PRODUCTS = [("f16", "f32", 16), ("bf16", "f32", 16), ("tf32", "f32", 8), ("s8", "s32", 32), ("u8", "s32", 32)]
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8, "u8": np.uint8, "f32": np.float32,
    "s32": np.int32,
}  # fmt: skip


@pytest.mark.each_value
@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("called", [False, True])
def test_products(product, engine, called):
    kind, result, depth = product
    r = np.random.default_rng(4)
    low = 0 if kind == "u8" else -9
    high = 255 if kind == "u8" else 9
    a, b = (r.integers(low, high, shape).astype(DTYPES[kind]) for shape in ((8, depth), (depth, LANES)))
    c = r.integers(-9, 9, (8, LANES)).astype(DTYPES[result])
    bits = 8 * a.itemsize
    # Each lane's registers of A, of B, which has the elements of a column packed, and of C.
    held = [
        lanes_of(bits, 8, depth, 1, "", a.view(f"u{a.itemsize}")[None]),
        lanes_of(bits, depth, LANES, 1, "pack", b.view(f"u{b.itemsize}")[None]),
        lanes_of(32, 8, LANES, 1, "", c.view(np.uint32)[None]),
    ]
    sizes = [h.shape[1] for h in held]
    types = [
        "f32" if kind == "tf32" else "i16",
        "f32" if kind == "tf32" else "i32",
        "f32" if result == "f32" else "i32",
    ]
    counts = [n // (2 if t == "i16" else 4) for n, t in zip(sizes, types)]
    vectors = [f"vector<{n}x{t}>" for n, t in zip(counts, types)]
    body = f"""
    %p = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<{sum(sizes)} x i8>
    %va = llvm.load %p : !llvm.ptr<1> -> {vectors[0]}
    %pb = llvm.getelementptr %p[{sizes[0]}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %vb = llvm.load %pb : !llvm.ptr<1> -> {vectors[1]}
    %pc = llvm.getelementptr %p[{sum(sizes[:2])}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %vc = llvm.load %pc : !llvm.ptr<1> -> {vectors[2]}
    PRODUCT
    %to = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {vectors[2]}
    llvm.store %d, %to : {vectors[2]}, !llvm.ptr<1>"""
    signature = f"({', '.join(vectors)}) -> {vectors[2]}"
    header = ""
    if called:
        name = f"intel_sub_group_{kind}_{kind}_matrix_mad_k{depth}"
        function = f"@_Z{len(name)}{name}Dv8_sDv8_iDv8_f"
        product = f"%d = llvm.call spir_funccc {function}(%va, %vb, %vc) : {signature}"
        header = f"llvm.func spir_funccc {function}({', '.join(vectors)}) -> {vectors[2]}"
    else:
        product = f"""%d = xevm.mma %va, %vb, %vc {{shape = <m = 8, n = 16, k = {depth}>,
          types = <d = {result}, a = {kind}, b = {kind}, c = {result}>}} : {signature}"""
    out = np.zeros((LANES, 8), DTYPES[result])
    run(body.replace("PRODUCT", product), np.concatenate(held, 1), out, engine, header)
    wide = np.int64 if result == "s32" else np.float64
    expected = c.astype(wide) + a.astype(wide) @ b.astype(wide)
    np.testing.assert_array_equal(out.T, expected.astype(out.dtype))


@pytest.mark.parametrize("kind", ["i16", "vector<4xi16>", "i32", "vector<2xi64>", "vector<8xi8>"])
def test_consecutive_elements(kind):
    count = int(kind[len("vector<")]) if kind[0] == "v" else 1
    dtype = np.dtype("u" + str(int(kind.rstrip(">").rpartition("i")[2]) // 8))
    source = np.random.default_rng(5).integers(0, 256, (64, LANES * count * dtype.itemsize), np.uint8)
    target = np.zeros(LANES * count, dtype)
    source = source[0].view(dtype)
    line = f"!llvm.array<{count} x i{8 * dtype.itemsize}>"
    body = f"""
    %v = xevm.blockload %a : (!llvm.ptr<1>) -> {kind}
    %to = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {line}
    llvm.store %v, %to : {kind}, !llvm.ptr<1>"""
    run(body, source, target)
    np.testing.assert_array_equal(target.reshape(LANES, count), source.reshape(count, LANES).T)
    back = np.zeros_like(target)
    body = f"""
    %from = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {line}
    %v = llvm.load %from : !llvm.ptr<1> -> {kind}
    xevm.blockstore %b, %v : (!llvm.ptr<1>, {kind})"""
    run(body, target, back)
    np.testing.assert_array_equal(back, source)


ACCESSES = {
    # Accesses of a lane at an address, and the bytes of which that must be a multiple, and the rule that says so.
    "%v = llvm.load %p : !llvm.ptr<1> -> vector<4xf32>": (4, "lsc-vector-align"),
    "%v = llvm.load %p : !llvm.ptr<1> -> vector<16xi32>": (4, "lsc-vector-align"),
    "%v = llvm.load %p : !llvm.ptr<1> -> vector<2xi64>": (4, "lsc-vector-align"),
    "%v = llvm.load %p : !llvm.ptr<1> -> vector<8xf16>": (4, "lsc-vector-align"),
    "%v = llvm.load %p {alignment = 2 : i64} : !llvm.ptr<1> -> vector<8xf16>": (1, ""),
    "%v = llvm.load %p {alignment = 1 : i64} : !llvm.ptr<1> -> vector<2xi32>": (1, ""),
    "%v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> vector<2xi64>": (4, "lsc-vector-align"),
    "%v = llvm.load %p : !llvm.ptr<1> -> vector<3xf16>": (1, ""),
    "%v = llvm.load %p : !llvm.ptr<1> -> f32": (1, ""),
    "%v = llvm.load %p : !llvm.ptr<1> -> i64": (1, ""),
    "%v = llvm.load %l : !llvm.ptr<3> -> vector<4xf32>": (4, "lsc-vector-align"),
    "%v = llvm.load %l : !llvm.ptr<3> -> vector<16xf32>": (4, "lsc-vector-align"),
    "%v = llvm.load %l : !llvm.ptr<3> -> f32": (1, ""),
    "%v = llvm.load %q : !llvm.ptr<1> -> vector<4xf32>": (4, "lsc-transposed-align"),
    "%v = llvm.load %m : !llvm.ptr<3> -> vector<4xf32>": (4, "lsc-transposed-align"),
    "llvm.store %x, %q : vector<4xi32>, !llvm.ptr<1>": (4, "lsc-transposed-align"),
    "llvm.store %x, %m : vector<4xi32>, !llvm.ptr<3>": (4, "lsc-transposed-align"),
    "llvm.store %y, %q : vector<4xi32>, !llvm.ptr<1>": (4, "lsc-vector-align"),
    "llvm.store %y, %m : vector<4xi32>, !llvm.ptr<3>": (4, "lsc-vector-align"),
    "%v = llvm.load %m : !llvm.ptr<3> -> f32": (4, "lsc-transposed-align"),
    "%v = llvm.load %q : !llvm.ptr<1> -> f32": (4, "lsc-transposed-align"),
    "%v = llvm.load %q : !llvm.ptr<1> -> i64": (8, "lsc-transposed-align"),
    "llvm.store %n, %q : i64, !llvm.ptr<1>": (8, "lsc-transposed-align"),
    "llvm.store %x, %p : vector<4xi32>, !llvm.ptr<1>": (4, "lsc-vector-align"),
    "llvm.store %x, %l : vector<4xi32>, !llvm.ptr<3>": (4, "lsc-vector-align"),
    "llvm.store %n, %p : i64, !llvm.ptr<1>": (1, ""),
    "%v = xevm.blockload %q : (!llvm.ptr<1>) -> vector<4xi32>": (4, "lsc-transposed-align"),
    "%v = xevm.blockload %q : (!llvm.ptr<1>) -> i16": (4, "lsc-transposed-align"),
    "xevm.blockstore %q, %x : (!llvm.ptr<1>, vector<4xi32>)": (4, "lsc-transposed-align"),
    "xevm.blockstore %m, %x : (!llvm.ptr<3>, vector<4xi32>)": (4, "lsc-transposed-align"),
    "%v = llvm.atomicrmw add %p, %i monotonic : !llvm.ptr<1>, i32": (4, "atomic-align"),
    "%v = llvm.atomicrmw add %l, %i monotonic : !llvm.ptr<3>, i32": (4, "atomic-align"),
    "%v = llvm.cmpxchg %q, %i, %i monotonic monotonic : !llvm.ptr<1>, i32": (4, "atomic-align"),
}


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("access", ACCESSES)
def test_alignment_of_addresses(access, engine):
    """An address is that of the message, and not that of the element in which it is."""
    needed, rule = ACCESSES[access]
    kind = access.rpartition("-> ")[2] if "load" in access else ""
    body = f"""
    %last = llvm.getelementptr %b[{64 * LANES}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %at = llvm.load %last : !llvm.ptr<1> -> i64
    %buffer = llvm.mlir.addressof @buffer : !llvm.ptr<3>
    %q = llvm.getelementptr %a[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %p = llvm.getelementptr %q[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<64 x i8>
    %m = llvm.getelementptr %buffer[%at] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i8
    %l = llvm.getelementptr %m[%lane] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, !llvm.array<64 x i8>
    %i = llvm.mlir.constant(7 : i32) : i32
    %n = llvm.mlir.constant(0x0102030405060708 : i64) : i64
    %x = llvm.mlir.constant(dense<[1, 2, 3, 4]> : vector<4xi32>) : vector<4xi32>
    %to = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<64 x i8>
    %y = llvm.load %to : !llvm.ptr<1> -> vector<4xi32>
    {access}
    {f"llvm.store %v, %to : {kind}, !llvm.ptr<1>" if kind else ""}"""
    buffer = "llvm.mlir.global internal @buffer() {addr_space = 3 : i32} : !llvm.array<2048 x i8>"
    text = KERNEL.replace("BODY", body).replace("GLOBALS", buffer)
    kernel = xegpu_py.compile(import_upstream(text), target="bmg", engine=engine, cache="off")
    for step in (0, 1, 2, 4, 8):
        a, b = np.arange(1 << 12, dtype=np.uint32).view(np.uint8) ^ 0x5A, np.zeros(64 * LANES + 8, np.uint8)
        b[-8:].view(np.int64)[0] = 64 + step
        bytes_of_lanes, before = 64 + step + 64 * np.arange(LANES)[:, None] + np.arange(8), a.copy()
        try:
            kernel(a, b, block=LANES)
        except DiagnosticError as error:
            texts = [str(d.message) for found in error.diagnostics for d in found.flat()]
            assert step % needed, access
            assert "at an address that is not a multiple of" in texts[0] and f"rule {rule}: " in "".join(texts)
            continue
        assert step % needed == 0, access
        if access.startswith("%v = llvm.load %p"):
            size = 4 if kind == "f32" else 6 if kind == "vector<3xf16>" else 8
            np.testing.assert_array_equal(b[:-8].reshape(LANES, 64)[:, :size], before[bytes_of_lanes[:, :size]])
        elif access == "llvm.store %n, %p : i64, !llvm.ptr<1>":
            before[bytes_of_lanes] = np.arange(8, 0, -1)
            np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_all_parts_of_a_vector_are_at_the_address(engine):
    """An access of several messages, at half of an element, in both memories, and of two types at one address."""
    body = """
    %at = llvm.load %b : !llvm.ptr<1> -> i64
    %buffer = llvm.mlir.addressof @buffer : !llvm.ptr<3>
    %q = llvm.getelementptr %a[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %p = llvm.getelementptr %q[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<128 x i8>
    %m = llvm.getelementptr %buffer[%at] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i8
    %l = llvm.getelementptr %m[%lane] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, !llvm.array<128 x i8>
    %to = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<256 x i8>
    %then = llvm.getelementptr %to[128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %v = llvm.load %p : !llvm.ptr<1> -> vector<16xi64>
    %w = llvm.load %p : !llvm.ptr<1> -> vector<16xf64>
    llvm.store %v, %l : vector<16xi64>, !llvm.ptr<3>
    %x = llvm.load %l : !llvm.ptr<3> -> vector<32xi32>
    llvm.store %x, %to : vector<32xi32>, !llvm.ptr<1>
    llvm.store %w, %then : vector<16xf64>, !llvm.ptr<1>"""
    a, b = np.arange(128 * LANES + 4, dtype=np.uint32).astype(np.uint8) ^ 0x5A, np.zeros((LANES, 2, 128), np.uint8)
    buffer = "llvm.mlir.global internal @buffer() {addr_space = 3 : i32} : !llvm.array<4096 x i8>"
    b[0, 0, 0] = 4
    run(body, a, b, engine, buffer, target="bmg")
    for half in range(2):
        np.testing.assert_array_equal(b[:, half].ravel(), a[4:])


def scalar(body, inputs, dtype, engine="jit"):
    """What lines make of a lane's numbers %0, %1, ...: %r."""
    kind = {"f4": "f32", "i4": "i32", "i8": "i64", "f2": "f16"}[np.dtype(dtype).str[1:]]
    source = np.array(inputs, dtype).T.copy()
    lines = [
        f"%p = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<{len(inputs)} x {kind}>"
    ]
    for i in range(len(inputs)):
        lines.append(f"%p{i} = llvm.getelementptr %p[{i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, {kind}")
        lines.append(f"%n{i} = llvm.load %p{i} : !llvm.ptr<1> -> {kind}")
    lines.append(body)
    lines.append(f"%to = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {kind}")
    lines.append(f"llvm.store %r, %to : {kind}, !llvm.ptr<1>")
    return run("\n".join(lines), source, np.zeros(LANES, dtype), engine)


INTEGERS = {
    "add": np.add, "mul": np.multiply, "xor": np.bitwise_xor, "sub": np.subtract, "intr.smax": np.maximum,
    "and": np.bitwise_and, "intr.smin": np.minimum, "or": np.bitwise_or,
}  # fmt: skip
FLOATS = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "intr.maxnum": np.maximum}


def test_arithmetic():
    r = np.random.default_rng(6)
    x, y = r.integers(-(2**31), 2**31, (2, LANES)).astype(np.int32)
    body, last, expected = "", "%n0", x
    for i, (name, function) in enumerate(INTEGERS.items()):
        if name.startswith("intr"):
            body += f"%o{i} = llvm.{name}({last}, %n1) : (i32, i32) -> i32\n"
        else:
            body += f"%o{i} = llvm.{name} {last}, %n1 : i32\n"
        last = f"%o{i}"
        expected = function(expected, y)
    found = scalar(body.replace(f"{last} =", "%r ="), [x, y], np.int32)
    np.testing.assert_array_equal(found, expected)
    f, g = r.standard_normal((2, LANES)).astype(np.float32)
    for name, function in FLOATS.items():
        line = f"%r = llvm.{name}(%n0, %n1) : (f32, f32) -> f32" if "." in name else f"%r = llvm.{name} %n0, %n1 : f32"
        np.testing.assert_array_equal(scalar(line, [f, g], np.float32), function(f, g))


def test_casts_comparisons_and_vectors():
    r = np.random.default_rng(7)
    x, y = r.integers(-100, 100, (2, LANES)).astype(np.int32)
    body = """
    %c = llvm.icmp "slt" %n0, %n1 : i32
    %s = llvm.select %c, %n0, %n1 : i1, i32
    %w = llvm.sext %s : i32 to i64
    %t = llvm.trunc %w : i64 to i16
    %f = llvm.sitofp %t : i16 to f32
    %h = llvm.fptrunc %f : f32 to f16
    %e = llvm.fpext %h : f16 to f32
    %u = llvm.mlir.poison : vector<2xf32>
    %i0 = llvm.mlir.constant(0 : i32) : i32
    %i1 = llvm.mlir.constant(1 : i64) : i64
    %v0 = llvm.insertelement %e, %u[%i0 : i32] : vector<2xf32>
    %v1 = llvm.insertelement %f, %v0[%i1 : i64] : vector<2xf32>
    %k = llvm.mlir.constant(dense<[1.0, 2.0]> : vector<2xf32>) : vector<2xf32>
    %m = llvm.fmul %v1, %k : vector<2xf32>
    %sh = llvm.shufflevector %m, %m [1, 0] : vector<2xf32>
    %b2 = llvm.bitcast %sh : vector<2xf32> to i64
    %b3 = llvm.bitcast %b2 : i64 to vector<2xf32>
    %z = llvm.mlir.constant(0.0 : f32) : f32
    %sum = "llvm.intr.vector.reduce.fadd"(%z, %b3) : (f32, vector<2xf32>) -> f32
    %r = llvm.fptosi %sum : f32 to i32"""
    np.testing.assert_array_equal(scalar(body, [x, y], np.int32), np.minimum(x, y) * 3)
    np.testing.assert_array_equal(scalar(body, [x, y], np.int32, "reference"), np.minimum(x, y) * 3)


def test_null_pointers_and_elements_of_other_types():
    """An element that is read as a number of another type is not the zero around it."""
    body = """
    %p = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %v = llvm.load %p : !llvm.ptr<1> -> i32
    %zero = llvm.mlir.constant(dense<0> : vector<4xi32>) : vector<4xi32>
    %null = llvm.mlir.zero : !llvm.ptr<1>
    %at = llvm.mlir.constant(2 : i32) : i32
    %x = llvm.insertelement %v, %zero[%at : i32] : vector<4xi32>
    %y = llvm.bitcast %x : vector<4xi32> to vector<4xf32>
    %z = llvm.extractelement %y[%at : i32] : vector<4xf32>
    %r = llvm.fadd %z, %z : f32
    %n = llvm.ptrtoint %null : !llvm.ptr<1> to i64
    %m = llvm.ptrtoint %a : !llvm.ptr<1> to i64
    %is_null = llvm.icmp "eq" %null, %a : !llvm.ptr<1>
    %f = llvm.uitofp %is_null : i1 to f32
    %s = llvm.uitofp %n : i64 to f32
    %t = llvm.fadd %f, %s : f32
    %u = llvm.fadd %t, %r : f32
    %q = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %u, %q : f32, !llvm.ptr<1>"""
    given = np.arange(1, 1 + LANES, dtype=np.float32)
    np.testing.assert_array_equal(run(body, given, np.zeros_like(given)), 2 * given)


def test_branches():
    x = np.arange(LANES, dtype=np.int32)
    body = """
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    llvm.br ^loop(%zero, %zero : i32, i32)
  ^loop(%i: i32, %sum: i32):
    %more = llvm.icmp "slt" %i, %n0 : i32
    llvm.cond_br %more, ^body, ^end
  ^body:
    %m = llvm.srem %i, %three : i32
    llvm.switch %m : i32, ^other(%i : i32) [0: ^whole, 1: ^other(%one : i32)]
  ^whole:
    %s0 = llvm.add %sum, %three : i32
    llvm.br ^next(%s0 : i32)
  ^other(%by: i32):
    %s1 = llvm.add %sum, %by : i32
    llvm.br ^next(%s1 : i32)
  ^next(%s: i32):
    %n = llvm.add %i, %one : i32
    llvm.br ^loop(%n, %s : i32, i32)
  ^end:
    %r = llvm.add %sum, %zero : i32"""
    expected = [sum(3 if i % 3 == 0 else 1 if i % 3 == 1 else i for i in range(n)) for n in range(LANES)]
    np.testing.assert_array_equal(scalar(body, [x], np.int32), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_shuffles_barriers_and_shared_memory(engine):
    header = """
  llvm.mlir.global internal @slm() {addr_space = 3 : i32} : !llvm.array<64 x f32>
  llvm.func spir_funccc @_Z7barrierj(i32)
  llvm.func spir_funccc @_Z12get_local_idj(i32) -> i64
  llvm.func spir_funccc @_Z21sub_group_shuffle_xorfj(f32, i32) -> f32
  llvm.func spir_funccc @_Z22atomic_work_item_fenceiii(i32, i32, i32)"""
    body = """
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %three = llvm.mlir.constant(3 : i32) : i32
    %last = llvm.mlir.constant(63 : i64) : i64
    %id = llvm.call spir_funccc @_Z12get_local_idj(%zero) : (i32) -> i64
    %p = llvm.getelementptr %a[%id] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %w = llvm.call spir_funccc @_Z21sub_group_shuffle_xorfj(%v, %three) : (f32, i32) -> f32
    %slm = llvm.mlir.addressof @slm : !llvm.ptr<3>
    %s = llvm.getelementptr %slm[%id] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    llvm.store %w, %s : f32, !llvm.ptr<3>
    llvm.call spir_funccc @_Z22atomic_work_item_fenceiii(%one, %one, %one) : (i32, i32, i32) -> ()
    llvm.call spir_funccc @_Z7barrierj(%three) : (i32) -> ()
    %other = llvm.sub %last, %id : i64
    %t = llvm.getelementptr %slm[%other] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
    %x = llvm.load %t : !llvm.ptr<3> -> f32
    %q = llvm.getelementptr %b[%id] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %x, %q : f32, !llvm.ptr<1>"""
    source = np.arange(64, dtype=np.float32)
    out = run(body, source, np.zeros(64, np.float32), engine, header, block=64)
    np.testing.assert_array_equal(out, source[np.arange(64) ^ 3][::-1])


@pytest.mark.parametrize("engine", ENGINES)
def test_atomic_updates(engine):
    body = """
    %v = llvm.trunc %lane : i64 to i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %p1 = llvm.getelementptr %b[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %p2 = llvm.getelementptr %b[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %p3 = llvm.getelementptr %b[3] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %o0 = llvm.atomicrmw add %b, %v monotonic : !llvm.ptr<1>, i32
    %o1 = llvm.atomicrmw sub %p1, %two monotonic : !llvm.ptr<1>, i32
    %o2 = llvm.atomicrmw umax %p2, %v monotonic : !llvm.ptr<1>, i32
    %f = llvm.sitofp %v : i32 to f32
    %o3 = llvm.atomicrmw fadd %p3, %f monotonic : !llvm.ptr<1>, f32
    %p4 = llvm.getelementptr %b[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %seven = llvm.mlir.constant(7 : i32) : i32
    %hundred = llvm.mlir.constant(100 : i32) : i32
    %o4 = llvm.cmpxchg %p4, %seven, %hundred monotonic monotonic : !llvm.ptr<1>, i32
    %ok = llvm.extractvalue %o4[1] : !llvm.struct<(i32, i1)>
    %n = llvm.zext %ok : i1 to i32
    %p5 = llvm.getelementptr %b[5] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %o5 = llvm.atomicrmw add %p5, %n monotonic : !llvm.ptr<1>, i32"""
    out = np.array([10, 100, 3, 0, 7, 0], np.int32)
    run(body, np.zeros(1, np.uint8), out, engine)
    assert out[:3].tolist() == [10 + 120, 100 - 32, 15]
    assert out[3:4].view(np.float32)[0] == 120
    assert out[4:].tolist() == [100, 1]


def test_parts_of_elements_that_lie_where_they_need_not():
    source = np.random.default_rng(8).integers(0, 256, 4 * LANES + 2, np.uint8)
    body = """
    %p = llvm.getelementptr %a[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %q = llvm.getelementptr %p[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %v = llvm.load %q {alignment = 2 : i64} : !llvm.ptr<1> -> i32
    %r = llvm.getelementptr %b[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %s = llvm.getelementptr %r[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    llvm.store %v, %s {alignment = 1 : i64} : i32, !llvm.ptr<1>"""
    out = run(body, source, np.zeros(4 * LANES + 1, np.uint8))
    np.testing.assert_array_equal(out[1:], source[2:])


def test_arguments_that_are_numbers_and_gpu_funcs():
    text = """
    gpu.module @m {
      gpu.func @k(%p: !llvm.ptr<1>, %n: i64, %m: memref<16xi64>) kernel {
        %i = gpu.thread_id x
        %j = arith.index_cast %i : index to i64
        %q = llvm.getelementptr %p[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
        %x = memref.load %m[%i] : memref<16xi64>
        %y = llvm.add %x, %n : i64
        llvm.store %y, %q : i64, !llvm.ptr<1>
        gpu.return
      }
    }"""
    out, given = np.zeros(16, np.int64), np.arange(16)
    xegpu_py.compile(text, cache="off")(out.view(np.uint8), 5, given, block=16)
    np.testing.assert_array_equal(out, given + 5)


def test_functions_of_the_module_are_called():
    header = """
  llvm.func @outer(%p: !llvm.ptr<1>, %i: i64) -> !llvm.ptr<1> {
    %q = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    llvm.return %q : !llvm.ptr<1>
  }
  llvm.func @twice(%p: !llvm.ptr<1>, %i: i64) {
    %q = llvm.call @outer(%p, %i) : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>
    %x = llvm.load %q : !llvm.ptr<1> -> i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %c = llvm.icmp "sgt" %x, %zero : i32
    llvm.cond_br %c, ^yes, ^no
  ^yes:
    %y = llvm.add %x, %x : i32
    llvm.store %y, %q : i32, !llvm.ptr<1>
    llvm.br ^no
  ^no:
    llvm.return
  }"""
    out = np.arange(-8, 8, dtype=np.int32)
    expected = np.where(out > 0, 2 * out, out)
    body = "llvm.call @twice(%b, %lane) : (!llvm.ptr<1>, i64) -> ()"
    np.testing.assert_array_equal(run(body, np.zeros(1, np.uint8), out, header=header), expected)


def test_private_memory():
    """A struct and an array that a loop accesses at known places are values."""
    body = """
    %zero = llvm.mlir.constant(0 : i64) : i64
    %five = llvm.mlir.constant(5 : i64) : i64
    %step = llvm.mlir.constant(1 : i64) : i64
    %none = llvm.mlir.constant(0 : i32) : i32
    %s = llvm.alloca %step x !llvm.struct<(i64, i32)> : (i64) -> !llvm.ptr
    %p = llvm.alloca %step x !llvm.array<2 x i32> : (i64) -> !llvm.ptr
    %count = llvm.getelementptr %s[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i64, i32)>
    %sum = llvm.getelementptr %s[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i64, i32)>
    %last = llvm.getelementptr %p[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<2 x i32>
    llvm.store %zero, %count : i64, !llvm.ptr
    llvm.store %none, %sum : i32, !llvm.ptr
    llvm.store %none, %p : i32, !llvm.ptr
    llvm.store %none, %last : i32, !llvm.ptr
    llvm.br ^head
  ^head:
    %i = llvm.load %count : !llvm.ptr -> i64
    %more = llvm.icmp "slt" %i, %five : i64
    llvm.cond_br %more, ^body, ^end
  ^body:
    %at = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %v = llvm.load %at : !llvm.ptr<1> -> i32
    %old = llvm.load %sum : !llvm.ptr -> i32
    %new = llvm.add %old, %v : i32
    llvm.store %new, %sum : i32, !llvm.ptr
    %w = llvm.load %p : !llvm.ptr -> i32
    llvm.store %w, %last : i32, !llvm.ptr
    llvm.store %new, %p : i32, !llvm.ptr
    %j = llvm.add %i, %step : i64
    llvm.store %j, %count : i64, !llvm.ptr
    llvm.br ^head
  ^end:
    %r = llvm.load %sum : !llvm.ptr -> i32
    %q = llvm.load %last : !llvm.ptr -> i32
    llvm.store %r, %b : i32, !llvm.ptr<1>
    %second = llvm.getelementptr %b[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %q, %second : i32, !llvm.ptr<1>"""
    out = run(body, np.arange(10, 15, dtype=np.int32).view(np.uint8), np.zeros(2, np.int32))
    np.testing.assert_array_equal(out, [60, 46])


FORMATS = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "bf8": ml_dtypes.float8_e5m2, "f8": ml_dtypes.float8_e4m3fn, "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


def packed(values):
    """The bytes of a lane's elements; those of 4 bits two in a byte, the first one in the low half."""
    if values.dtype != FORMATS["e2m1"]:
        return np.ascontiguousarray(values).view(np.uint8)
    codes = values.view(np.uint8)
    codes = np.pad(codes, [(0, 0), (0, codes.shape[1] % 2)])
    return codes[:, ::2] | codes[:, 1::2] << 4


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("narrow", ["bf8", "f8", "e2m1"])
@pytest.mark.parametrize(("wide", "count"), [("f16", 1), ("bf16", 3), ("f16", 8), ("bf16", 16), ("bf16", 2)])
def test_conversions_of_a_lanes_elements(narrow, wide, count, engine):
    greatest = {"bf8": 57344, "f8": 448, "e2m1": 6}[narrow]
    source = np.random.default_rng(7).normal(size=(LANES, count), scale=greatest / 8).astype(FORMATS[wide])
    source.flat[:4] = np.inf, -np.inf, greatest * 1.1, -0.0
    clipped = np.clip(source.astype(np.float64), -greatest, greatest)
    expected = clipped.astype(FORMATS[narrow])
    held = packed(expected)
    kind = f"vector<{count}x{wide}>" if count > 1 else wide
    stored = f"vector<{held.shape[1]}xi8>" if held.shape[1] > 1 else "i8"
    out = np.zeros((LANES, 64), np.uint8)
    body = f"""
    %p = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<{count} x {wide}>
    %q = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<64 x i8>
    %r = llvm.getelementptr %q[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %v = llvm.load %p {{alignment = 1 : i64}} : !llvm.ptr<1> -> {kind}
    %t = xevm.truncf %v {{ src_etype = {wide}, dst_etype = {narrow} }} : ({kind}) -> {stored}
    llvm.store %t, %q : {stored}, !llvm.ptr<1>
    %e = xevm.extf %t {{ src_etype = {narrow}, dst_etype = {wide} }} : ({stored}) -> {kind}
    llvm.store %e, %r : {kind}, !llvm.ptr<1>"""
    run(body, source, out, engine=engine)
    np.testing.assert_array_equal(out[:, : held.shape[1]], held)
    again = expected.astype(FORMATS[wide]).view(np.uint8)
    np.testing.assert_array_equal(out[:, 32 : 32 + again.shape[1]], again)


@pytest.mark.parametrize("extf", ["", "ext_"])
def test_the_generic_form_of_conversions(extf):
    """Formats as mlir-opt prints them: parameters of attributes, whose names begin with `ext_` for extf."""
    types = "(vector<16xf16>) -> vector<16xi8>", "(vector<16xi8>) -> vector<16xf16>"
    own = f"""%t = xevm.truncf %v {{ src_etype = f16, dst_etype = bf8 }} : {types[0]}
    %e = xevm.extf %t {{ src_etype = bf8, dst_etype = f16 }} : {types[1]}"""
    narrow, wide = "dst_etype = #xevm<dst_etype dst_etype = bf8>", "src_etype = #xevm<src_etype src_etype = f16>"
    back = f"#xevm<{extf}dst_etype dst_etype = f16>", f"#xevm<{extf}src_etype src_etype = bf8>"
    generic = f"""%t = "xevm.truncf"(%v) <{{{narrow}, {wide}}}> : {types[0]}
    %e = "xevm.extf"(%t) <{{dst_etype = {back[0]}, src_etype = {back[1]}}}> : {types[1]}"""
    text = """gpu.module @m { llvm.func @f(%p: !llvm.ptr<1>) attributes {gpu.kernel} {
    %v = llvm.load %p : !llvm.ptr<1> -> vector<16xf16>
    {}
    llvm.store %e, %p : vector<16xf16>, !llvm.ptr<1>
    llvm.return
    } }"""
    found, expected = (str(xegpu_py.import_upstream(text.replace("{}", ops))) for ops in (generic, own))
    assert found == expected
    assert "f8E5M2" in found
    with pytest.raises(xegpu_py.DiagnosticError, match="expected one of bf16, f16, .*, but got '9f'"):
        xegpu_py.import_upstream(text.replace("{}", generic.replace("= bf8>", "= 9f>")))


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("vector<4xi16>", "i64"),
        ("i64", "vector<2xi32>"),
        ("vector<8xi16>", "vector<2xi64>"),
        ("vector<3xf32>", "vector<6xi16>"),
    ],
)
def test_bits_are_shuffled(kind, result):
    """The stream of bits, component by component, is that of the result."""

    def components(kind):
        count, _, element = kind.removeprefix("vector<").removesuffix(">").rpartition("x")
        return int(count or 1), int(element[1:]) // 8

    (n, size), (m, wide) = components(kind), components(result)
    source = np.random.default_rng(3).integers(0, 256, (LANES, n * size), np.uint8)
    stream = source.reshape(LANES, n, size).transpose(1, 0, 2).reshape(-1)
    out = run(
        f"""
    %p = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<{n * size} x i8>
    %q = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<{n * size} x i8>
    %v = llvm.load %p {{alignment = 1 : i64}} : !llvm.ptr<1> -> {kind}
    %s = xevm.bitcast_shuffle %v : ({kind}) -> {result}
    llvm.store %s, %q : {result}, !llvm.ptr<1>""",
        source,
        np.zeros_like(source),
    )
    expected = stream.reshape(m, LANES, wide).transpose(1, 0, 2).reshape(LANES, -1)
    np.testing.assert_array_equal(out, expected)


def test_adjacent_messages_are_not_joined():
    load, store = (
        "<{elem_size_in_bits = 16 : i32, tile_width = 16 : i32, tile_height = 8 : i32" + rest
        for rest in (
            ", v_blocks = 1 : i32, transpose = false, pack_register = false}>"
            " : (!llvm.ptr<1>, i32, i32, i32, i32, i32) -> vector<8xi16>",
            "}> : (!llvm.ptr<1>, i32, i32, i32, i32, i32, vector<8xi16>)",
        )
    )
    text = f"""
gpu.module @kernels {{
  llvm.func @both(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {{gpu.kernel}} {{
    %w = llvm.mlir.constant(128 : i32) : i32
    %h = llvm.mlir.constant(8 : i32) : i32
    %x = llvm.mlir.constant(0 : i32) : i32
    %next = llvm.mlir.constant(16 : i32) : i32
    %u = xevm.blockload2d %a, %w, %h, %w, %x, %x {load}
    %v = xevm.blockload2d %a, %w, %h, %w, %next, %x {load}
    xevm.blockstore2d %b, %w, %h, %w, %x, %x, %u {store}
    xevm.blockstore2d %b, %w, %h, %w, %next, %x, %v {store}
    llvm.return
  }}
}}
"""
    program = xegpu_py.compile(text, target="bmg").program
    messages = [i.name for i in program.instructions if "block2d" in i.name]
    assert messages == 2 * ["lsc_load_block2d"] + 2 * ["lsc_store_block2d"]


@pytest.mark.each_value
@pytest.mark.parametrize("is_uniform", [False, True])
@pytest.mark.parametrize("element", ["bf8", "f8", "e2m1", "bf16"])
def test_scaled_products(element, is_uniform):
    """Of block-scaled factors: 32 elements of K share a scale. All lanes may have one part of A."""
    random = np.random.default_rng(5)
    size = {"e2m1": 0.5, "bf16": 2}.get(element, 1)
    depth = int(32 / size)
    blocks = -(-depth // 32)
    left = random.integers(-3, 4, (8, depth)).astype(FORMATS[element])
    right = random.integers(-3, 4, (depth, LANES)).astype(FORMATS[element])
    scale_a, scale_b = (random.integers(125, 130, shape).astype(np.uint8) for shape in ((8, blocks), (blocks, LANES)))
    # What a lane has: of A, units of 16 bits round robin; of B, its column; rows of scales of A, a column of B's.
    if is_uniform:
        left = np.ascontiguousarray(np.tile(left[:, : depth // LANES], LANES))
    rows = packed(left).reshape(-1, 2)
    a = rows.reshape(-1, LANES, 2).transpose(1, 0, 2).reshape(LANES, -1)
    b = packed(np.ascontiguousarray(right.T))
    data = np.zeros((LANES, 64), np.uint8)
    data[:, :16], data[:, 16:48] = a, b
    data[:8, 48 : 48 + blocks], data[8:, 48 : 48 + blocks] = scale_a, scale_a
    data[:, 56 : 56 + blocks] = scale_b.T
    scales = f"vector<{blocks}xi8>" if blocks > 1 else "i8"
    places = "".join(
        f"""
    %p{name} = llvm.getelementptr %{base}[{offset}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %{name} = llvm.load %p{name} : !llvm.ptr<1> -> {kind}"""
        for name, base, offset, kind in (
            ("x", "a" if is_uniform else "at", 0, "vector<8xi16>"),
            ("y", "at", 16, "vector<8xi32>"),
            ("s", "at", 48, scales),
            ("t", "at", 56, scales),
        )
    )
    body = f"""
    %at = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<64 x i8>{places}
    %c = llvm.mlir.constant(dense<1.0> : vector<8xf32>) : vector<8xf32>
    %d = xevm.mma_mx %x, %y, %s, %t, %c {{shape = <m = 8, n = 16, k = {depth}>,
      types = <d = f32, a = {element}, b = {element}, c = f32>}}
      : (vector<8xi16>, vector<8xi32>, {scales}, {scales}, vector<8xf32>) -> vector<8xf32>
    %q = llvm.getelementptr %b[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.array<8 x f32>
    llvm.store %d, %q : vector<8xf32>, !llvm.ptr<1>"""
    out = run(body, data, np.zeros((LANES, 8), np.float32), target="cri")
    e8m0 = ml_dtypes.float8_e8m0fnu
    wide_a = np.repeat(scale_a.view(e8m0).astype(np.float64), 32, axis=1)[:, :depth] * left.astype(np.float64)
    wide_b = np.repeat(scale_b.view(e8m0).astype(np.float64), 32, axis=0)[:depth] * right.astype(np.float64)
    np.testing.assert_array_equal(out.T, wide_a @ wide_b + 1)


@pytest.mark.parametrize("what", ["load", "store"])
def test_the_size_of_accesses(what):
    """Elements, or parts of them if the alignment is smaller; vectors of smaller ones by words that are aligned."""
    accesses = [
        ("i8", 0, 8), ("i16", 0, 16), ("i32", 0, 32), ("f64", 0, 64), ("i16", 1, 8), ("i32", 1, 8), ("i32", 2, 16),
        ("i64", 4, 32), ("i64", 8, 64), ("i32", 16, 32), ("i1", 0, 8),
        ("vector<4xi8>", 0, 32), ("vector<4xi8>", 1, 8), ("vector<4xi8>", 2, 8), ("vector<4xi8>", 4, 32),
        ("vector<8xi8>", 8, 32), ("vector<2xi8>", 0, 8), ("vector<3xi8>", 4, 8), ("vector<6xi8>", 4, 8),
        ("vector<2xf16>", 0, 32), ("vector<2xf16>", 1, 8), ("vector<2xf16>", 2, 16), ("vector<2xf16>", 4, 32),
        ("vector<3xf16>", 0, 16), ("vector<1xf16>", 8, 16), ("vector<2xi32>", 8, 32), ("vector<2xi32>", 2, 16),
        ("vector<2xi64>", 0, 64), ("vector<2xi64>", 4, 32),
    ]  # fmt: skip
    body = []
    for i, (kind, alignment, _) in enumerate(accesses):
        stated = f" {{alignment = {alignment} : i64}}" if alignment else ""
        load, store = (stated if what == name else " {alignment = 1 : i64}" for name in ("load", "store"))
        body += [f"%v{i} = llvm.load %p{load} : !llvm.ptr<1> -> {kind}"]
        body += [f"llvm.store %v{i}, %p{store} : {kind}, !llvm.ptr<1>"]
    text = f"gpu.module @m {{ llvm.func spir_kernelcc @k(%p: !llvm.ptr<1>) {{ {' '.join(body)} llvm.return }} }}"
    ops = [line for line in str(import_upstream(text)).splitlines() if f".{what}" in line]
    for (kind, alignment, bits), op in zip(accesses, ops, strict=True):
        assert re.search(r"memref<\?xi?f?(\d+)", op)[1] == str(bits), (kind, alignment, op)


def bits_of(number):
    return int(number) & 0xFFFFFFFF


REAL = {
    "fabs": (np.abs, "f"), "sqrt": (lambda x: np.sqrt(np.abs(x)), "a"), "floor": (np.floor, "f"),
    "ceil": (np.ceil, "f"), "roundeven": (np.rint, "f"),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "f"),
    "trunc": (np.trunc, "f"), "exp": (np.exp, "f"), "exp2": (np.exp2, "f"), "log": (lambda x: np.log(np.abs(x)), "a"),
    "log2": (lambda x: np.log2(np.abs(x)), "a"), "log10": (lambda x: np.log10(np.abs(x)), "a"), "sin": (np.sin, "f"),
    "cos": (np.cos, "f"), "tan": (np.tan, "f"), "asin": (lambda x: np.arcsin(x / 4), "q"),
    "acos": (lambda x: np.arccos(x / 4), "q"), "atan": (np.arctan, "f"), "sinh": (np.sinh, "f"), "cosh": (np.cosh, "f"),
    "tanh": (np.tanh, "f"), "copysign": (np.copysign, "fg"), "atan2": (np.arctan2, "fg"),
    "pow": (lambda x, y: np.abs(x) ** y, "ag"), "powi": (lambda x, n: x ** n.astype(np.float64), "fn"),
    "fma": (lambda x, y, z: x * y + z, "fga"), "fmuladd": (lambda x, y, z: x * y + z, "gfq"),
}  # fmt: skip
"""LLVM's functions of floats, what numpy says, and the operands: x, |x|, x / 4, y, and an integer."""

WHOLE = {
    "ctpop": (lambda n: bin(bits_of(n)).count("1"), ""),
    "abs": (lambda n: abs(int(n)), "is_int_min_poison"),
    "ctlz": (lambda n: 32 - bits_of(n).bit_length(), "is_zero_poison"),
    "cttz": (lambda n: (bits_of(n) & -bits_of(n)).bit_length() - 1 if n else 32, "is_zero_poison"),
}


def test_functions_of_numbers():
    """One result of each intrinsic for each lane."""
    x, y = np.random.default_rng(8).uniform(-3.75, 3.75, (2, LANES)).astype(np.float32)
    x[:4] = (0.5, -1.5, 2.5, -0.25)
    n = np.array([0, 1, -1, 2**31 - 1, -(2**31), 5, -7, 1 << 20, 3, -3, 2, -2, 4, 12, 96, -5], np.int32)
    small = n % 7 - 3
    source = np.stack([x.view(np.int32), y.view(np.int32), n, small])
    body = ["%q = llvm.mlir.constant(0.25 : f32) : f32"]
    for i, (name, kind) in enumerate((("f", "f32"), ("g", "f32"), ("m", "i32"), ("n", "i32"))):
        body += [
            f"%p{i} = llvm.getelementptr %a[{i * LANES}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32",
            f"%l{i} = llvm.getelementptr %p{i}[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32",
            f"%{name} = llvm.load %l{i} : !llvm.ptr<1> -> {kind}",
        ]
    body += ["%a0 = llvm.intr.fabs(%f) : (f32) -> f32", "%q0 = llvm.fmul %f, %q : f32"]
    values = {"f": x, "a": np.abs(x), "q": x / 4, "g": y, "n": small}
    names = {"f": "%f", "a": "%a0", "q": "%q0", "g": "%g", "n": "%n"}
    expected = []
    for i, name in enumerate((*REAL, *WHOLE)):
        if name in REAL:
            function, operands = REAL[name]
            kinds = ", ".join("i32" if o == "n" else "f32" for o in operands)
            body.append(f"%r{i} = llvm.intr.{name}({', '.join(names[o] for o in operands)}) : ({kinds}) -> f32")
            given = [values["f" if o in "aq" and len(operands) == 1 else o].astype(np.float64) for o in operands]
            expected.append(function(*given))
        else:
            function, poison = WHOLE[name]
            given = f"<{{{poison} = false}}>" if poison else ""
            body.append(f'%r{i} = "llvm.intr.{name}"(%m) {given} : (i32) -> i32')
            expected.append([function(v) for v in n])
        body += [
            f"%s{i} = llvm.getelementptr %b[{i * LANES}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32",
            f"%t{i} = llvm.getelementptr %s{i}[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32",
            f"llvm.store %r{i}, %t{i} : {'f32' if name in REAL else 'i32'}, !llvm.ptr<1>",
        ]
    found = run("\n".join(body), source, np.zeros((len(expected), LANES), np.int32), "reference")
    for name, bits, want in zip((*REAL, *WHOLE), found, expected):
        if name in WHOLE:
            assert [bits_of(b) for b in bits] == [bits_of(w) for w in want], name
        else:
            np.testing.assert_allclose(bits.view(np.float32), want, rtol=2e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "kind",
    [
        "memref<?x?xf32, strided<[?, ?], offset: ?>>",
        "memref<3x4xf32, strided<[8, 1], offset: 5>>",
        "memref<?x4xf32, strided<[8, 1], offset: ?>>",
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_descriptors_of_memrefs_are_structs(kind, engine):
    """Parts are put in and taken out one by one and as arrays; a memref becomes such a struct, too."""
    struct, pair = "!llvm.struct<(ptr<1>, ptr<1>, i64, array<2 x i64>, array<2 x i64>)>", "!llvm.array<2 x i64>"
    numbers = "\n".join(f"%c{n} = llvm.mlir.constant({n} : i64) : i64" for n in (1, 3, 4, 5, 8))
    body = f"""{numbers}
    %u = llvm.mlir.undef : {struct}
    %s0 = llvm.insertvalue %a, %u[0] : {struct}
    %s1 = llvm.insertvalue %a, %s0[1] : {struct}
    %s2 = llvm.insertvalue %c5, %s1[2] : {struct}
    %e = llvm.mlir.undef : {pair}
    %e0 = llvm.insertvalue %c3, %e[0] : {pair}
    %e1 = llvm.insertvalue %c4, %e0[1] : {pair}
    %s3 = llvm.insertvalue %e1, %s2[3] : {struct}
    %old = llvm.insertvalue %c3, %s3[4, 0] : {struct}
    %s4 = llvm.insertvalue %c8, %old[4, 0] : {struct}
    %s5 = llvm.insertvalue %c1, %s4[4, 1] : {struct}
    %m = builtin.unrealized_conversion_cast %s5 : {struct} to {kind}
    %x = arith.constant 1 : index
    %y = arith.constant 2 : index
    %v = memref.load %m[%x, %y] : {kind}
    llvm.store %v, %b : f32, !llvm.ptr<1>
    %d = builtin.unrealized_conversion_cast %m : {kind} to {struct}
    %extents = llvm.extractvalue %d[3] : {struct}
    %rows = llvm.extractvalue %extents[0] : {pair}
    %columns = llvm.extractvalue %d[3, 1] : {struct}
    %pitch = llvm.extractvalue %d[4, 0] : {struct}
    %offset = llvm.extractvalue %d[2] : {struct}
    %start = llvm.extractvalue %d[1] : {struct}
    %t0 = llvm.mul %rows, %pitch : i64
    %t1 = llvm.mul %columns, %offset : i64
    %t2 = llvm.sub %t0, %t1 : i64
    %w = llvm.sitofp %t2 : i64 to f32
    %q = llvm.getelementptr %b[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    llvm.store %w, %q : f32, !llvm.ptr<1>
    %z = llvm.load %start : !llvm.ptr<1> -> f32
    %q2 = llvm.getelementptr %b[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    llvm.store %z, %q2 : f32, !llvm.ptr<1>"""
    found = run(body, np.arange(7, 71, dtype=np.float32), np.zeros(3, np.float32), engine)
    assert found.tolist() == [7 + 5 + 8 + 2, 3 * 8 - 4 * 5, 7]


PLACES = {
    "local_id": lambda group, item: (item, 0 * item, 0 * item),
    "local_size": lambda group, item: (0 * item + 32, 0 * item + 1, 0 * item + 1),
    "group_id": lambda group, item: (group, 0 * item, 0 * item),
    "group_count": lambda group, item: (0 * item + 2, 0 * item + 1, 0 * item + 1),
}
"""xevm's ids and extents of a launch of 2 workgroups of 32 work items."""

FUNCTIONS = {
    "_Z22get_sub_group_local_idv": lambda group, item: item % 16,
    "_Z16get_sub_group_idv": lambda group, item: item // 16,
    "_Z18get_num_sub_groupsv": lambda group, item: 0 * item + 2,
    "_Z18get_sub_group_sizev": lambda group, item: 0 * item + 16,
    "_Z22get_max_sub_group_sizev": lambda group, item: 0 * item + 16,
}

ITEM = """
    %group = xevm.group_id.x : i32
    %local = xevm.local_id.x : i32
    %size = xevm.local_size.x : i32
    %before = llvm.mul %group, %size : i32
    %item = llvm.add %before, %local : i32
    %at = llvm.zext %item : i32 to i64
"""


def stored(value, number, kind):
    """Store a value of each of 64 work items to a row of the second array."""
    return f"""
    %row{number} = llvm.getelementptr %b[{64 * number}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, {kind}
    %to{number} = llvm.getelementptr %row{number}[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {kind}
    llvm.store {value}, %to{number} : {kind}, !llvm.ptr<1>"""


@pytest.mark.parametrize("engine", ENGINES)
def test_ids_and_extents(engine):
    ops = [f"xevm.{name}.{d} : i32" for name in PLACES for d in "xyz"]
    ops += [f"llvm.call @{name}() : () -> i32" for name in FUNCTIONS]
    body = ITEM + "".join(f"%r{i} = {op}{stored(f'%r{i}', i, 'i32')}\n" for i, op in enumerate(ops))
    header = "\n".join(f"llvm.func @{name}() -> i32" for name in FUNCTIONS)
    out = np.zeros((len(ops), 64), np.int32)
    found = run(body, np.zeros(4, np.int32), out, engine, header, block=32, grid=2)
    group, item = np.divmod(np.arange(64), 32)
    expected = [row for place in PLACES.values() for row in place(group, item)]
    np.testing.assert_array_equal(found, [*expected, *(of(group, item) for of in FUNCTIONS.values())])


CALLED = {
    "_Z15__spirv_ocl_expf": np.exp, "_Z22__spirv_ocl_native_expf": np.exp, "_Z11native_exp2f": np.exp2,
    "_Z25__spirv_ocl_native_divideff": lambda x, y: x / y, "_Z4sqrtf": np.sqrt, "_Z4fabsf": np.abs, "_Z4rintf": np.rint,
    "_Z12native_rsqrtf": lambda x: x**-0.5, "_Z3madfff": lambda x, y, z: x * y + z, "_Z4powrff": np.power,
}  # fmt: skip
"""Functions of OpenCL C and of SPIR-V, and what numpy says of x, x + 1 and x + 2."""


@pytest.mark.parametrize("engine", ENGINES)
def test_functions_that_are_called_by_name(engine):
    x = np.random.default_rng(9).uniform(0.25, 3, 64).astype(np.float32)
    body = f"""{ITEM}
    %p = llvm.getelementptr %a[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    %one = llvm.mlir.constant(1.0 : f32) : f32
    %y = llvm.fadd %x, %one : f32
    %z = llvm.fadd %y, %one : f32
"""
    header, expected = "", []
    for i, (name, function) in enumerate(CALLED.items()):
        count = function.nin if isinstance(function, np.ufunc) else function.__code__.co_argcount
        kinds, operands = ", ".join(["f32"] * count), ", ".join(("%x", "%y", "%z")[:count])
        header += f"llvm.func @{name}({kinds}) -> f32\n"
        body += f"%r{i} = llvm.call @{name}({operands}) : ({kinds}) -> f32{stored(f'%r{i}', i, 'f32')}\n"
        expected.append(function(*(x, x + np.float32(1), x + np.float32(2))[:count]))
    found = run(body, x, np.zeros((len(CALLED), 64), np.float32), engine, header, block=32, grid=2)
    for name, row, wanted in zip(CALLED, found, expected):
        np.testing.assert_allclose(row, wanted, rtol=1e-6, err_msg=name)


REFUSED = {
    "%q = llvm.getelementptr %a[%lane] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, !llvm.struct<(i32, f32)>": (
        "the layout of !llvm.struct<(i32, f32)> is unknown"
    ),
    "%q = llvm.getelementptr %a[0, 1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, !llvm.struct<(i32, f32)>": (
        "the layout of !llvm.struct<(i32, f32)> is unknown"
    ),
    "xevm.memfence <{addrspace = #xevm.addr_space<global>, scope = #xevm.mem_scope<system>}>": (
        "fence scope system is not supported"
    ),
    "%q = builtin.unrealized_conversion_cast %lane : i64 to f32": "it casts i64 to f32",
    "%q = xevm.bitcast_shuffle %lane : (i64) -> vector<2xi16>": "i64 and vector<2xi16> have different numbers of bits",
    """%p = llvm.load %a : !llvm.ptr<1> -> vector<4xf16>
    %q = xevm.truncf %p { src_etype = f16, dst_etype = bf8 }
      : (vector<4xf16>) -> vector<3xi8>""": "vector<3xi8> does not hold 4 elements of f8E5M2",
    """%p = llvm.load %a : !llvm.ptr<1> -> vector<3xi8>
    %q = xevm.extf %p { src_etype = bf8, dst_etype = f16 }
      : (vector<3xi8>) -> vector<4xf16>""": "vector<3xi8> does not hold 4 elements of f8E5M2",
}


for source, to in (("f32", "bf8"), ("f16", "s32"), ("bf8", "f8"), ("bf8", "f16"), ("f16", "bf16"), ("f16", "u8")):
    REFUSED[
        f"""%p = llvm.load %a : !llvm.ptr<1> -> vector<2xi32>
    %q = xevm.truncf %p {{ src_etype = {source}, dst_etype = {to} }} : (vector<2xi32>) -> vector<2xi8>"""
    ] = f"cannot convert {source} to {to}"
for role, kind, message in (("a", "f32", "of f32"), ("b", "s32", "of s32"), ("d", "tf32", "in tf32")):
    types = ", ".join(f"{r} = {kind if r == role else 'f16'}" for r in "dabc")
    REFUSED[
        f"""%p = llvm.load %a : !llvm.ptr<1> -> vector<8xi16>
    %q = llvm.load %a : !llvm.ptr<1> -> vector<8xi32>
    %d = xevm.mma %p, %q, %p {{shape = <m = 8, n = 16, k = 16>, types = <{types}>}}
      : (vector<8xi16>, vector<8xi32>, vector<8xi16>) -> vector<8xi16>"""
    ] = f"products {message} are not supported"


@pytest.mark.parametrize("body", REFUSED)
def test_refused_ops(body):
    with pytest.raises(DiagnosticError) as caught:
        import_upstream(KERNEL.replace("BODY", body).replace("GLOBALS", ""))
    assert caught.value.diagnostics[0].message.endswith(f"op cannot be imported: {REFUSED[body]}")


PAYLOADS = """
func.func @f(%a: i32, %b: i64, %v: vector<8xi32>, %x: f32, %n: index) {
  %z = arith.constant dense<0> : vector<4xi64>
  %o = arith.constant dense<1> : vector<8xi32>
  %m = arith.constant dense<[0, 0, 0, 0, 0, 0, 0, 1]> : vector<8xi32>
  %f = arith.constant dense<0.0> : vector<8xf32>
  %s = vector.insert %b, %z [1] : i64 into vector<4xi64>
  %t = vector.bitcast %s : vector<4xi64> to vector<8xi32>
  %u = vector.insert %a, %t [5] : i32 into vector<8xi32>
  %g = vector.insert %x, %f [0] : f32 into vector<8xf32>
  %h = vector.bitcast %g : vector<8xf32> to vector<8xi32>
  %d = vector.insert %a, %v [%n] : i32 into vector<8xi32>
  %w = vector.insert %a, %v [7] : i32 into vector<8xi32>
  return
}
"""


@pytest.mark.parametrize(
    ("vector", "place", "bits", "expected"),
    [
        ("u", 5, 32, "a"), ("u", 1, 64, "b"), ("u", 4, 32, 0), ("u", 6, 32, 0), ("u", 0, 32, 0), ("u", 3, 64, 0),
        ("t", 5, 32, 0), ("s", 1, 64, "b"), ("s", 0, 64, 0), ("w", 7, 32, "a"),
        # Parts of an element, and one that was inserted into others.
        ("u", 2, 32, None), ("u", 3, 32, None), ("u", 2, 64, None), ("u", 1, 128, None), ("u", 10, 16, None),
        # Elements that no visible op inserts, or that are not zero.
        ("w", 6, 32, None), ("v", 0, 32, None), ("o", 0, 32, None), ("m", 0, 32, None), ("d", 0, 32, None),
        ("h", 0, 32, None), ("h", 1, 32, None), ("g", 0, None, None), ("f", 0, None, None),
    ],
)  # fmt: skip
def test_elements_of_payloads(vector, place, bits, expected):
    module = xegpu_py.parse(PAYLOADS)
    func = next(op for op in walk(module.operation) if op.name == "func.func")
    body = func.regions[0].blocks[0]
    values = dict(zip("abvxn", body.arguments))
    names = re.findall(r"^  %(\w) =", PAYLOADS, re.MULTILINE)
    values |= dict(zip(names, (op.results[0] for op in body.operations if len(op.results))))
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_terminator(body):
        kind = ir.F32Type.get() if bits is None else ir.IntegerType.get_signless(bits)
        found = put(values[vector], place, kind)
        if expected == 0:
            assert found.type == kind and constant_of(found) == 0
        else:
            assert found == (expected and values[expected])


@pytest.mark.parametrize(
    ("bits", "rows", "columns", "kind", "expected"),
    [
        # Rows of units of 16 bits or more, round robin.
        (32, 8, 16, "", ((1, 16), (1, 1))), (16, 8, 16, "", ((1, 16), (1, 1))), (16, 8, 32, "", ((1, 16), (1, 1))),
        (8, 8, 32, "", ((1, 16), (1, 2))), (8, 8, 64, "", ((1, 16), (1, 2))), (64, 8, 8, "", ((2, 8), (1, 1))),
        (32, 4, 4, "", ((4, 4), (1, 1))), (32, 16, 1, "", ((16, 1), (1, 1))), (8, 8, 16, "", ((2, 8), (1, 2))),
        (4, 8, 64, "", ((1, 16), (1, 4))),
        # Lanes that have no whole part of rows or columns.
        (32, 1, 8, "", None), (32, 2, 4, "", None), (32, 8, 12, "", None), (32, 8, 24, "", None), (8, 8, 1, "", None),
        (8, 8, 33, "", None), (8, 1, 16, "", None),
        # Elements of a column, and rows of what is transposed.
        (16, 16, 16, "pack", ((1, 16), (1, 1))), (8, 32, 16, "pack", ((1, 16), (1, 1))), (8, 32, 32, "pack", None),
        (16, 16, 8, "pack", None), (32, 16, 8, "transpose", ((16, 1), (1, 1))),
        (64, 16, 4, "transpose", ((16, 1), (1, 1))),
        (32, 32, 8, "transpose", ((16, 1), (1, 1))), (32, 8, 8, "transpose", None), (16, 16, 16, "transpose", None),
    ],
)  # fmt: skip
def test_parts_of_lanes_of_a_message(bits, rows, columns, kind, expected):
    block = MessageBlock(bits, rows, columns, transpose=kind == "transpose", pack=kind == "pack")
    module = xegpu_py.parse("func.func @f() { return }")
    op = next(op for op in walk(module.operation) if op.name == "func.return")
    if expected is not None:
        assert block.map(op) == SgMap(*expected)
        return
    words = {"": "a block", "pack": "a packed block", "transpose": "a transposed block"}[kind]
    message = f"16 lanes cannot divide {words} of {rows}x{columns} elements of {bits} bits"
    with pytest.raises(DiagnosticError, match=message):
        block.map(op)


@pytest.mark.parametrize(
    ("kind", "alignment", "expected"),
    [
        # Elements, or parts of them where the alignment is smaller.
        ("i32", None, 32), ("i64", None, 64), ("i64", 4, 32), ("i64", 1, 8), ("i32", 4, 32), ("i32", 2, 16),
        ("i8", 1, 8), ("f32", None, "f32"), ("f32", 2, 16), ("f64", 8, "f64"), ("f64", 16, "f64"), ("i16", None, 16),
        ("i1", None, 8), ("i1", 1, 8),
        # Words of vectors of smaller elements, if there are whole ones and they are aligned.
        ("vector<4xi8>", None, 32), ("vector<4xi8>", 4, 32), ("vector<4xi8>", 2, 8), ("vector<2xi8>", None, 8),
        ("vector<6xi8>", None, 8), ("vector<2xf16>", 4, 32), ("vector<3xf16>", None, "f16"),
        ("vector<4xf32>", 16, "f32"),
        ("vector<4xf32>", 2, 16), ("vector<2xi64>", 4, 32),
        ("i4", None, "it accesses elements of 4 bits"), ("vector<8xi1>", None, "it accesses elements of 1 bits"),
        ("i128", None, "it accesses elements of 128 bits"),
    ],
)  # fmt: skip
def test_single_accesses(kind, alignment, expected):
    module = xegpu_py.parse("func.func @f() { return }")
    op = next(op for op in walk(module.operation) if op.name == "func.return")
    with module.context, ir.Location.unknown():
        if alignment is not None:
            op.attributes["alignment"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), alignment)
        parsed = ir.Type.parse(kind)
        if isinstance(expected, str) and " " in expected:
            with pytest.raises(DiagnosticError, match=expected):
                _accessed(op, parsed)
        else:
            assert str(_accessed(op, parsed)) == (expected if isinstance(expected, str) else f"i{expected}")
