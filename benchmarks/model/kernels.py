"""The kernels of published measurements, written again in the tile language as their sources describe them."""

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr
from xegpu_py.language import WgMap

# Arithmetic: chains of multiplications and additions in registers (OpenCL-Benchmark, clpeak, vkpeak).


@xegpu_py.jit
def chain(X, TURNS: Constexpr, CHAINS: Constexpr, WIDTH: Constexpr):
    """Each chain multiplies and adds `WIDTH` numbers 16 times in each iteration."""
    first = xl.program_id(0) * (WIDTH * CHAINS)
    xs = [X.tile((1, WIDTH), at=(0, first + c * WIDTH)).load() for c in xl.static_range(CHAINS)]
    y = xs[0]
    for _ in range(TURNS):
        for _ in xl.static_range(16):
            for c in xl.static_range(CHAINS):
                xs[c] = xs[c] * y + xs[c]
    for c in xl.static_range(CHAINS):
        X.tile((1, WIDTH), at=(0, first + c * WIDTH)).store(xs[c])


@xegpu_py.jit
def fused_chain(X, TURNS: Constexpr, CHAINS: Constexpr, WIDTH: Constexpr):
    """`chain` of floats, with fused multiplications and additions."""
    first = xl.program_id(0) * (WIDTH * CHAINS)
    xs = [X.tile((1, WIDTH), at=(0, first + c * WIDTH)).load() for c in xl.static_range(CHAINS)]
    y = xs[0]
    for _ in range(TURNS):
        for _ in xl.static_range(16):
            for c in xl.static_range(CHAINS):
                xs[c] = xl.fma(xs[c], y, xs[c])
    for c in xl.static_range(CHAINS):
        X.tile((1, WIDTH), at=(0, first + c * WIDTH)).store(xs[c])


@xegpu_py.jit
def products(A, B, C, TURNS: Constexpr, K: Constexpr):
    """Products of matrices in registers (vkpeak's matrix tests)."""
    m = xl.program_id(0) * 32
    a, b = A.tile((32, K), at=(m, 0)).load(), B.tile((K, 32), at=(0, 0)).load()
    c = xl.zeros((32, 32), C.dtype)
    for _ in range(TURNS):
        c = xl.dot(a, b, c)
    C.tile((32, 32), at=(m, 0)).store(c)


# Memory: OpenCL-Benchmark's and clpeak's tests of bandwidth, copies, gathers.


@xegpu_py.jit
def read(X, Y, STEP: Constexpr, TURNS: Constexpr, SUBGROUPS: Constexpr):
    """Each lane adds up `TURNS` numbers, which are `STEP` apart."""
    width = SUBGROUPS * 32
    shared = WgMap(sg_layout=(1, SUBGROUPS), sg_data=(1, 32))
    lane = (xl.program_id(0) * width + xl.arange(0, width)).reshape(1, width)
    found = [X.at(lane + turn * STEP, map=shared).load() for turn in xl.static_range(TURNS)]
    total = found[0]
    for turn in xl.static_range(1, TURNS):
        total = total + found[turn]
    Y.at(lane, map=shared).store(total)


@xegpu_py.jit
def copy(X, Y, ROWS: Constexpr, COLUMNS: Constexpr, SUBGROUPS: Constexpr):
    """A copy by blocks."""
    shared = WgMap(sg_layout=(SUBGROUPS, 1), sg_data=(ROWS, COLUMNS))
    m, n = xl.program_id(0) * (SUBGROUPS * ROWS), xl.program_id(1) * COLUMNS
    size = (SUBGROUPS * ROWS, COLUMNS)
    Y.tile(size, at=(m, n), map=shared).store(X.tile(size, at=(m, n), map=shared).load())


@xegpu_py.jit
def triad(X, Y, Z):
    """STREAM's triad of 64-bit floats by blocks of 32 x 64."""
    shared = WgMap(sg_layout=(8, 2), sg_data=(4, 32))
    at = (xl.program_id(0) * 32, xl.program_id(1) * 64)
    x, y = (A.tile((32, 64), at=at, map=shared).load() for A in (X, Y))
    Z.tile((32, 64), at=at, map=shared).store(x + y * 3.0)


@xegpu_py.jit
def count_global(E, N, ITEMS: Constexpr):
    """A histogram: one atomic of global memory for each item."""
    item = xl.program_id(0) * ITEMS + xl.arange(0, ITEMS).reshape(1, ITEMS)
    expert = E.at(item).load().to(xl.index)
    N.at(expert).atomic("add", xl.full((1, ITEMS), 1, xl.int32))


@xegpu_py.jit
def count_local(E, N, ITEMS: Constexpr, TURNS: Constexpr):
    """A histogram of each workgroup in shared local memory, which is added to that of the grid."""
    counts = xl.shared((1, 128), xl.int32)
    column = xl.arange(0, 128).reshape(1, 128)
    counts.at(column).store(xl.zeros((1, 128), xl.int32))
    xl.barrier()
    ones = xl.full((1, ITEMS), 1, xl.int32)
    for turn in range(TURNS):
        item = (xl.program_id(0) * TURNS + turn) * ITEMS + xl.arange(0, ITEMS).reshape(1, ITEMS)
        counts.at(E.at(item).load().to(xl.index)).atomic("add", ones)
    xl.barrier()
    N.at(column).atomic("add", counts.at(column).load())


# Rows.


@xegpu_py.jit
def layer_norm(X, Y, N: Constexpr, ACROSS: Constexpr, DOWN: Constexpr):
    """A layer norm of rows of `N` numbers; a workgroup has `DOWN` rows, of `ACROSS` subgroups each."""
    shared = WgMap(sg_layout=(DOWN, ACROSS), sg_data=(1, N // ACROSS))
    m = xl.program_id(0) * DOWN
    x = X.tile((DOWN, N), at=(m, 0), map=shared).load().to(xl.float32)
    mean = x.sum(axis=1, keep_dims=True) * (1.0 / N)
    x = x - mean
    variance = (x * x).sum(axis=1, keep_dims=True) * (1.0 / N)
    y = x * xl.rsqrt(variance + 1e-5)
    Y.tile((DOWN, N), at=(m, 0), map=shared).store(y.to(Y.dtype))


@xegpu_py.jit
def softmax(X, Y, N: Constexpr, ACROSS: Constexpr):
    """A softmax of rows of `N` numbers, of `ACROSS` subgroups each."""
    shared = WgMap(sg_layout=(1, ACROSS), sg_data=(1, N // ACROSS))
    m = xl.program_id(0)
    x = X.tile((1, N), at=(m, 0), map=shared).load().to(xl.float32)
    e = xl.exp(x - x.max(axis=1, keep_dims=True))
    Y.tile((1, N), at=(m, 0), map=shared).store((e / e.sum(axis=1, keep_dims=True)).to(Y.dtype))


@xegpu_py.jit
def silu_and_mul(X, Y, D: Constexpr, WIDTH: Constexpr, SUBGROUPS: Constexpr, TURNS: Constexpr):
    """`silu(x) * z` of rows of `2 * D` numbers; a lane has `WIDTH` of them in each iteration."""
    step = SUBGROUPS * 32 * WIDTH
    shared = WgMap(sg_layout=(1, SUBGROUPS), sg_data=(1, 32 * WIDTH))
    m = xl.program_id(0)
    for turn in range(TURNS):
        n = turn * step
        x = X.tile((1, step), at=(m, n), map=shared).load().to(xl.float32)
        z = X.tile((1, step), at=(m, n + D), map=shared).load().to(xl.float32)
        Y.tile((1, step), at=(m, n), map=shared).store((x / (1 + xl.exp(-x)) * z).to(Y.dtype))


@xegpu_py.jit
def column_sums(X, D, Y, ROWS: Constexpr, TURNS: Constexpr, SUBGROUPS: Constexpr):
    """Sums over rows of `x * d` and `d`, of 32 columns; a subgroup has `ROWS` rows in each iteration."""
    size = (SUBGROUPS * ROWS, 32)
    shared = WgMap(sg_layout=(SUBGROUPS, 1), sg_data=(ROWS, 32))
    m = xl.program_id(0) * (TURNS * SUBGROUPS * ROWS)
    gamma, beta = xl.zeros(size, map=shared), xl.zeros(size, map=shared)
    for turn in range(TURNS):
        at = (m + turn * (SUBGROUPS * ROWS), 0)
        d = D.tile(size, at=at, map=shared).load()
        gamma += X.tile(size, at=at, map=shared).load() * d
        beta += d
    Y.tile((1, 32), at=(xl.program_id(0) * 2, 0)).store(gamma.sum(axis=0, keep_dims=True))
    Y.tile((1, 32), at=(xl.program_id(0) * 2 + 1, 0)).store(beta.sum(axis=0, keep_dims=True))


# Products of matrices.


@xegpu_py.jit
def gemm(A, B, C, K: Constexpr, M: Constexpr, N: Constexpr, STEP: Constexpr, SG: Constexpr):
    """A product by tiles of `M` x `N`, of subgroups `SG`."""
    m, n = xl.program_id(0) * M, xl.program_id(1) * N
    down, across = SG
    shared = WgMap(sg_layout=SG, sg_data=(M // down, N // across))
    a, b = A.tile((M, STEP), at=(m, 0)), B.tile((STEP, N), at=(0, n))
    wide = xl.int32 if A.dtype == xl.int8 else xl.float32
    c = xl.zeros((M, N), wide, map=shared)
    for _ in range(0, K, STEP):
        c = xl.dot(a.load(), b.load(), c)
        a.advance(columns=STEP)
        b.advance(rows=STEP)
    C.tile((M, N), at=(m, n)).store(c.to(C.dtype))


@xegpu_py.jit
def gemm_scaled(
    A, B, ROWS, COLUMNS, C, K: Constexpr, M: Constexpr, SG: Constexpr, AHEAD_A: Constexpr, AHEAD_B: Constexpr
):
    """A product of bytes, times a scale for each row and column: a subgroup has two blocks of 16 columns.

    It loads the blocks that it multiplies, and those of the next 64 columns of A, or rows of B, first (`AHEAD_A`).
    """
    down, across = SG
    width = 16 * across
    m, n = xl.program_id(0) * M, xl.program_id(1) * (2 * width)
    shared = WgMap(sg_layout=SG, sg_data=(M // down, 16))
    sums = [xl.zeros((M, width), xl.int32, map=shared) for _ in xl.static_range(2)]
    left = [A.tile((M, 32), at=(m, 32 * k)).load() for k in xl.static_range(2)]
    right = [B.tile((32, width), at=(32 * (i // 2), n + i % 2 * width)).load() for i in xl.static_range(4)]
    for row in range(0, K, 64):
        if AHEAD_A:
            next_left = [A.tile((M, 32), at=(m, row + 64 + 32 * k)).load() for k in xl.static_range(2)]
        else:
            left = [A.tile((M, 32), at=(m, row + 32 * k)).load() for k in xl.static_range(2)]
        if AHEAD_B:
            next_right = [
                B.tile((32, width), at=(row + 64 + 32 * (i // 2), n + i % 2 * width)).load() for i in xl.static_range(4)
            ]
        for i in xl.static_range(4):
            if AHEAD_B:
                block = right[i]
            else:
                block = B.tile((32, width), at=(row + 32 * (i // 2), n + i % 2 * width)).load()
            sums[i % 2] = xl.dot(left[i // 2], block, sums[i % 2])
        if AHEAD_A:
            left = next_left
        if AHEAD_B:
            right = next_right
    for t in xl.static_range(2):
        at = n + t * width
        scales = ROWS.tile((M, 1), at=(m, 0)).load() * COLUMNS.tile((1, width), at=(0, at)).load()
        C.tile((M, width), at=(m, at)).store((sums[t].to(xl.float32) * scales).to(C.dtype))


def widened(x):
    """Numbers of 8 bits as halves, by the instructions of sycl-tla's conversions."""
    if x.dtype == xl.float8_e5m2:
        return (x.bitcast(xl.uint8).to(xl.uint16) << 8).bitcast(xl.float16)
    bits = x.bitcast(xl.uint8)
    rest = bits & 0x7F
    sign = bits ^ rest
    zero = (rest == 0).to(xl.uint8)
    invalid = (0x7E - rest) & 0x80
    small = ((rest - 8) >> 7) & 1
    rest = (rest + (invalid >> 1)) | (small & 8)
    rest = rest + (0x40 & ~(zero * 0x40))
    wide = (rest.to(xl.uint16) << 7) - ((small & 0x48 & ~zero).to(xl.uint16) << 7)
    wide = wide & ~(zero.to(xl.uint16) << 7)
    return (wide ^ (sign.to(xl.uint16) << 8)).bitcast(xl.float16)


@xegpu_py.jit
def gemm_fp8(A, B, C, K: Constexpr, M: Constexpr, N: Constexpr, STEP: Constexpr, SG: Constexpr):
    """`gemm` of numbers of 8 bits, which each subgroup converts."""
    m, n = xl.program_id(0) * M, xl.program_id(1) * N
    down, across = SG
    shared = WgMap(sg_layout=SG, sg_data=(M // down, N // across))
    a, b = A.tile((M, STEP), at=(m, 0)), B.tile((STEP, N), at=(0, n))
    c = xl.zeros((M, N), map=shared)
    for _ in range(0, K, STEP):
        c = xl.dot(widened(a.load()), widened(b.load()), c)
        a.advance(columns=STEP)
        b.advance(rows=STEP)
    C.tile((M, N), at=(m, n)).store(c)


# FluidX3D's lattice Boltzmann step, D3Q19.

VELOCITIES = [
    (0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1), (1, 1, 0), (-1, -1, 0),
    (1, 0, 1), (-1, 0, -1), (0, 1, 1), (0, -1, -1), (1, -1, 0), (-1, 1, 0), (1, 0, -1), (-1, 0, 1), (0, 1, -1),
    (0, -1, 1),
]  # fmt: skip
WEIGHTS = [1 / 3] + 6 * [1 / 18] + 12 * [1 / 36]


def decoded(bits):
    """A number in FluidX3D's own 16-bit format, with 4 bits of exponent."""
    b = bits.to(xl.uint32)
    e, m = (b & 0x7800) >> 11, (b & 0x07FF) << 12
    v = m.to(xl.float32).bitcast(xl.uint32) >> 23
    normal = (e != 0).to(xl.uint32) * ((e + 112) << 23 | m)
    small = ((e == 0) & (m != 0)).to(xl.uint32) * ((v - 37) << 23 | ((m << (150 - v)) & 0x007FF000))
    return ((b & 0x8000) << 16 | normal | small).bitcast(xl.float32)


def encoded(x):
    """The opposite of `decoded`."""
    b = x.bitcast(xl.uint32) + 0x00000800
    e, m = (b & 0x7F800000) >> 23, b & 0x007FFFFF
    normal = (e > 112).to(xl.uint32) * ((((e - 112) << 11) & 0x7800) | (m >> 12))
    small = ((e < 113) & (e > 100)).to(xl.uint32) * ((((m + 0x007FF800) >> (124 - e)) + 1) >> 1)
    return ((b & 0x80000000) >> 16 | normal | small).to(xl.uint16)


@xegpu_py.jit
def lattice_boltzmann(F, FLAGS, SIZE: Constexpr, CELLS: Constexpr, FORM: Constexpr, WIDTH: Constexpr):
    """Streaming in place (Esoteric Pull, an odd step) and collision of `WIDTH` cells along x.

    `FORM` is "f32", "f16s" or "f16c".
    """
    cell = (xl.program_id(0) * WIDTH + xl.arange(0, WIDTH)).reshape(1, WIDTH) + SIZE * SIZE + SIZE
    flag = FLAGS.at(cell).load()
    # Of two opposite velocities one is at the cell, one at the neighbour; both are stored where the other was.
    places, f = [cell], []
    for q in xl.static_range(1, 19, 2):
        x, y, z = VELOCITIES[q]
        places = [*places, cell + q * CELLS, cell + ((q + 1) * CELLS + x + SIZE * y + SIZE * SIZE * z)]
    for q in xl.static_range(19):
        found = F.at(places[q]).load()
        if FORM == "f16s":
            found = found.to(xl.float32) * 3.0517578e-5
        if FORM == "f16c":
            found = decoded(found)
        f = [*f, found]
    rho = f[0]
    for q in xl.static_range(1, 19):
        rho = rho + f[q]
    rho = rho + 1.0
    u = []
    for axis in xl.static_range(3):
        total = xl.zeros((1, WIDTH))
        for q in xl.static_range(19):
            if VELOCITIES[q][axis] == 1:
                total = total + f[q]
            if VELOCITIES[q][axis] == -1:
                total = total - f[q]
        u = [*u, total / rho]
    square = u[0] * u[0] + u[1] * u[1] + u[2] * u[2]
    keep = (flag == 0).to(xl.float32)
    for q in xl.static_range(19):
        along = xl.zeros((1, WIDTH))
        for axis in xl.static_range(3):
            if VELOCITIES[q][axis] == 1:
                along = along + u[axis]
            if VELOCITIES[q][axis] == -1:
                along = along - u[axis]
        equilibrium = (WEIGHTS[q] * rho) * (xl.fma(along, along * 4.5 + 3.0, square * -1.5)) + WEIGHTS[q] * (rho - 1.0)
        value = f[q] + (equilibrium - f[q]) * (keep * 1.6)
        if FORM == "f16s":
            value = (value * 32768.0).to(xl.float16)
        if FORM == "f16c":
            value = encoded(value)
        F.at(places[q if q == 0 else q + 1 if q % 2 else q - 1]).store(value)


# Attention.


@xegpu_py.jit
def attention(
    Q, K, V, OUT,
    N: Constexpr, M: Constexpr, STEP: Constexpr, D: Constexpr, PART: Constexpr, FAST: Constexpr, AHEAD: Constexpr,
):  # fmt: skip
    """Flash attention of heads of `N` rows: a subgroup has 16 of `M` rows, and all `STEP` rows of K and V in a step.

    A product of Q and K has `PART` columns; if these are not all, Q is loaded in each step. `FAST` takes the powers of
    2 of the hardware; `AHEAD` loads the next step's rows into the cache.
    """
    shared = WgMap(sg_layout=(M // 16, 1), sg_data=(16, D))
    first = xl.program_id(1) * N
    m = first + xl.program_id(0) * M
    q = Q.tile((M, D), at=(m, 0), map=shared).load() if PART == D else None
    top, total, out = xl.full((M, 1), -1e30), xl.zeros((M, 1)), xl.zeros((M, D))
    for n in range(first, first + N, STEP):
        if AHEAD:
            ahead = WgMap(sg_layout=(M // 32, 2), sg_data=(STEP * 32 // M, D // 2))
            K.tile((STEP, D), at=(n + STEP, 0), map=ahead).prefetch()
            V.tile((STEP, D), at=(n + STEP, 0), map=ahead).prefetch()
        if PART == D:
            scores = q @ K.tile((STEP, D), at=(n, 0)).load().T
        else:
            scores = xl.zeros((M, STEP), map=WgMap(sg_layout=(M // 16, 1), sg_data=(16, STEP)))
            for d in xl.static_range(0, D, PART):
                part = K.tile((STEP, PART), at=(n, d)).load().T
                scores = xl.dot(Q.tile((M, PART), at=(m, d)).load(), part, scores)
        scores = scores * D**-0.5
        new = xl.maximum(top, scores.max(axis=1, keep_dims=True))
        powers = xl.exp2(scores - new) if FAST else xl.exp(scores - new)
        kept = xl.exp2(top - new) if FAST else xl.exp(top - new)
        total = total * kept + powers.sum(axis=1, keep_dims=True)
        out = out * kept + powers.to(V.dtype) @ V.tile((STEP, D), at=(n, 0)).load()
        top = new
    OUT.tile((M, D), at=(m, 0)).store((out / total).to(OUT.dtype))
