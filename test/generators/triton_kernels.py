"""Kernels whose TTIR has each op of Triton's dialect, and their TTIR: `python triton_kernels.py FOLDER` writes it."""

import sys
from pathlib import Path

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend
from triton.compiler import ASTSource
from triton.language.extra import libdevice


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    y = tl.load(y_ptr + offs, mask=mask, cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
    tl.store(out_ptr + offs, x + y, mask=mask, eviction_policy="evict_first")


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    m = pid_m * BM + tl.arange(0, BM)
    n = pid_n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :]
    b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < K - i * BK), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K - i * BK) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
        a_ptrs += BK
        b_ptrs += BK * stride_bk
    tl.store(c_ptr + m[:, None] * stride_cm + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def softmax(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    rows = tl.num_programs(0)
    offs = tl.arange(0, BLOCK)
    for r in tl.range(row, 128, rows, num_stages=3, flatten=True):
        x = tl.load(x_ptr + r * stride + offs, mask=offs < n, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + r * stride + offs, e / tl.sum(e, axis=0), mask=offs < n)


@triton.jit
def shapes(x_ptr, out_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :])
    y = tl.trans(x)
    z = tl.reshape(y, (B // 2, 2 * B))
    z = tl.permute(tl.reshape(z, (2, B // 2, B)), (1, 0, 2)).reshape((B, B))
    j = tl.join(x, z)
    a, b = tl.split(j)
    c = tl.cat(tl.reshape(a, (B * B,)), tl.reshape(b, (B * B,)), can_reorder=True)
    r = tl.reshape(c, (B, 2 * B), can_reorder=True)
    o = tl.sum(r, axis=1)
    o = tl.interleave(o, o)
    s = tl.sum(tl.reshape(o, (1, 2 * B)), axis=1)
    tl.store(out_ptr + tl.arange(0, 2 * B), o + s.item())


@triton.jit
def combine(a_v, a_i, b_v, b_i):
    if a_v > b_v:
        v = a_v
    else:
        v = b_v
    return v, tl.where(a_v > b_v, a_i, b_i)


@triton.jit
def add2(a, b):
    return a + b


@triton.jit
def reductions(x_ptr, out_ptr, i_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :])
    i = tl.broadcast_to(tl.arange(0, B)[None, :], (B, B))
    v, k = tl.reduce((x, i), 1, combine)
    s = tl.associative_scan(x, 0, add2, reverse=True)
    m, mi = tl.max(x, axis=1, return_indices=True)
    c = tl.cumsum(v + m, axis=0)
    tl.store(out_ptr + tl.arange(0, B), v + c + tl.sum(s, axis=1) + tl.argmin(x, axis=0).to(tl.float32))
    tl.store(i_ptr + tl.arange(0, B), k + mi)
    h = tl.histogram(k, B, mask=k > 3)
    g = tl.gather(x, i, axis=1)
    tl.store(i_ptr + tl.arange(0, B), h)
    tl.store(x_ptr + tl.arange(0, B), tl.sum(g, axis=0))


@triton.jit
def choose(a, b):
    if a < b:
        return a * 2, b
    return b, a


@triton.jit
def mapped(x_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    a, b = tl.map_elementwise(choose, x, x + 1)
    tl.store(x_ptr + tl.arange(0, B), a + b)


@triton.jit
def atomics(p, q, out, B: tl.constexpr):
    o = tl.arange(0, B)
    a = tl.atomic_add(p + o, 1, mask=o < 5, sem="relaxed", scope="cta")
    b = tl.atomic_max(p + o, a)
    b += tl.atomic_xchg(p + o, a)
    b += tl.atomic_and(p + o, a) + tl.atomic_or(p + o, a) + tl.atomic_xor(p + o, a)
    c = tl.atomic_cas(p, 0, 1, sem="acquire", scope="sys")
    f = tl.atomic_add(q + o, 1.5)
    g = tl.atomic_min(q + o, 1.5)
    tl.store(out + o, f + g)
    tl.store(p + o, b + c)
    u = p.to(tl.pointer_type(tl.uint32))
    tl.atomic_max(u + o, a.to(tl.uint32, bitcast=True))
    tl.atomic_min(u + o, a.to(tl.uint32, bitcast=True))
    tl.atomic_add(u, 3)


@triton.jit
def descriptors(x_ptr, out_ptr, idx_ptr, M, N, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[B, B], padding_option="nan")
    e = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    g = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[1, B])
    h = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[1, B])
    x = d.load([tl.program_id(0) * B, 0])
    e.store([0, tl.program_id(1) * B], x)
    idx = tl.load(idx_ptr + tl.arange(0, B))
    v = g.gather(idx, 16)
    h.scatter(v, idx, 0)
    e.atomic_add([0, 0], x)


@triton.jit
def host_descriptor(desc, out_desc, B: tl.constexpr):
    x = desc.load([0, 0])
    out_desc.store([0, 0], x)


@triton.jit
def conversions(x_ptr, f8_ptr, e5_ptr, h_ptr, b_ptr, i_ptr, d_ptr, pp, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + o)
    tl.store(f8_ptr + o, x.to(tl.float8e4nv))
    tl.store(e5_ptr + o, x.to(tl.float8e5, fp_downcast_rounding="rtz"))
    tl.store(h_ptr + o, x.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(b_ptr + o, tl.load(f8_ptr + o).to(tl.bfloat16))
    tl.store(i_ptr + o, x.to(tl.int32, bitcast=True) + x.to(tl.int32) + x.to(tl.uint32).to(tl.int32))
    tl.store(d_ptr + o, x.to(tl.float64) + tl.load(i_ptr + o).to(tl.float64))
    p = tl.load(pp).to(tl.pointer_type(tl.float32))
    tl.store(p + o, x)
    tl.store(i_ptr, (x_ptr.to(tl.int64)).to(tl.int32))
    y = tl.clamp(x, 0.0, 1.0, propagate_nan=tl.PropagateNan.ALL) + tl.clamp(x, 0.0, 1.0)
    y += (
        tl.sqrt_rn(x)
        + tl.div_rn(x, y)
        + tl.fdiv(x, y)
        + tl.maximum(x, y)
        + tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)
    )
    y += (
        tl.fma(x, y, y)
        + tl.exp2(x)
        + tl.log2(x)
        + tl.sin(x)
        + tl.cos(x)
        + tl.rsqrt(x)
        + tl.erf(x)
        + tl.floor(x)
        + tl.ceil(x)
        + tl.abs(x)
    )
    y += libdevice.tanh(x) + libdevice.pow(x, y)
    i = tl.load(i_ptr + o)
    u = i.to(tl.uint32, bitcast=True)
    tl.store(
        i_ptr + o,
        tl.umulhi(i, i)
        + (u // 3 + u % 5).to(tl.int32)
        + i // 7
        + i % 9
        + (i >> 2)
        + (u >> 3).to(tl.int32)
        + (i << 1)
        + ~i,
    )
    tl.store(x_ptr + o, tl.where(x > 0, y, -x))


@triton.jit
def scaled(a_ptr, b_ptr, s_ptr, t_ptr, c_ptr):
    m = tl.arange(0, 32)
    k = tl.arange(0, 64)
    a = tl.load(a_ptr + m[:, None] * 64 + k[None, :])
    b = tl.load(b_ptr + tl.arange(0, 32)[:, None] * 32 + m[None, :])
    s = tl.load(s_ptr + m[:, None] * 2 + tl.arange(0, 2)[None, :])
    t = tl.load(t_ptr + m[:, None] * 2 + tl.arange(0, 2)[None, :])
    c = tl.dot_scaled(a, s, "e5m2", b, t, "e2m1")
    c = tl.dot_scaled(a, None, "e5m2", b, t, "e2m1", acc=c)
    tl.store(c_ptr + m[:, None] * 32 + m[None, :], c)


@triton.jit(noinline=True)
def helper(x, n):
    if n > 3:
        return x * 2
    return x + n


@triton.jit
def calls(x_ptr, n, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(x_ptr + o)
    if n == 7:
        return
    tl.device_print("x and n", x, n, hex=True)
    tl.device_assert(x > 0, 'positive "x"')
    tl.assume(n > 0)
    tl.debug_barrier()
    y = x + helper(n, n)
    z = tl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $2, 3;\n\t", "=r,r,r", [n + o, o], dtype=tl.int32, is_pure=True, pack=1
    )
    i = 0
    while i < n:
        y += i
        i += 1
    if n > 5:
        y += 1
    elif n > 2:
        y *= 3
    tl.store(x_ptr + o, y + z)


@triton.jit
def poll(p, q, n):
    if tl.atomic_poll(p, n, sem="acquire", scope="gpu"):
        tl.store(q, 1)
    tl.atomic_store(p, 3, sem="release")
    tl.store(q, tl.atomic_load(p, sem="acquire"))
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()


F32, I32, BYTES = "*fp32", "*i32", "*u8"

KERNELS = {
    add: ({"x_ptr": F32, "y_ptr": F32, "out_ptr": F32, "n": "i32"}, {"BLOCK": 256}),
    matmul: (
        {"a_ptr": F32, "b_ptr": F32, "c_ptr": "*fp16", "M": "i32", "N": "i32", "K": "i32"}
        | dict.fromkeys(["stride_am", "stride_bk", "stride_cm"], "i32"),
        {"BM": 64, "BN": 64, "BK": 32},
    ),
    softmax: ({"x_ptr": F32, "out_ptr": F32, "n": "i32", "stride": "i32"}, {"BLOCK": 256}),
    shapes: ({"x_ptr": F32, "out_ptr": F32}, {"B": 16}),
    reductions: ({"x_ptr": F32, "out_ptr": F32, "i_ptr": I32}, {"B": 16}),
    mapped: ({"x_ptr": I32}, {"B": 16}),
    atomics: ({"p": I32, "q": F32, "out": F32}, {"B": 16}),
    descriptors: ({"x_ptr": F32, "out_ptr": F32, "idx_ptr": I32, "M": "i32", "N": "i32"}, {"B": 16}),
    host_descriptor: ({"desc": "tensordesc<fp16[16,32]>", "out_desc": "tensordesc<fp16[16,32]>"}, {"B": 16}),
    conversions: (
        {
            "x_ptr": F32,
            "f8_ptr": "*fp8e4nv",
            "e5_ptr": "*fp8e5",
            "h_ptr": "*fp16",
            "b_ptr": "*bf16",
            "i_ptr": I32,
            "d_ptr": "*fp64",
        }
        | {"pp": "*i64"},
        {"B": 16},
    ),
    scaled: ({"a_ptr": "*fp8e5", "b_ptr": BYTES, "s_ptr": BYTES, "t_ptr": BYTES, "c_ptr": F32}, {}),
    calls: ({"x_ptr": I32, "n": "i32"}, {"B": 16}),
    poll: ({"p": I32, "q": I32, "n": "i32"}, {}),
}
"""The kernels, with the types of their arguments and their constants."""

TARGET = GPUTarget("cuda", 90, 32)
BACKEND = CUDABackend(TARGET)


def context():
    made = ir.context()
    ir.load_dialects(made)
    BACKEND.load_dialects(made)
    return made


def dumped(kernel, passes: bool) -> str:
    """The TTIR of a kernel as libtriton prints it, after Triton's passes on TTIR or before."""
    types, constants = KERNELS[kernel]
    options = BACKEND.parse_options({"debug": kernel in (calls, poll)})
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    places = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, signature, places, {(0,): [["tt.divisibility", 16]]})
    functions, modules = BACKEND.get_codegen_implementation(options), BACKEND.get_module_map()
    module = source.make_ir(TARGET, options, functions, modules, context())
    if passes:
        module = BACKEND.make_ttir(module, {}, options, TARGET.arch)
    return module.str()


def reprinted(path: Path) -> str:
    """A file of TTIR, as libtriton reads and prints it."""
    module = ir.parse_mlir_module(str(path), made := context())
    module.context = made
    return module.str()


if __name__ == "__main__":
    for kernel in KERNELS:
        text = dumped(kernel, True).replace(f'"{__file__}"', '"kernels.py"')
        Path(sys.argv[1], f"{kernel.__name__}.ttir").write_text(text)
