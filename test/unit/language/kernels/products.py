"""Products of matrices: epilogues, split and streamed reductions, groups, scales, narrow types."""

import numpy as np

import xegpu_py.language as xl
from xegpu_py import Constexpr, cdiv

from .suite import BF16, F8, F16, F32, I8, I32, U8, Run, run, whole

TILE = {"BM": 16, "BN": 16, "BK": 16}


def product(a, b):
    """Exact for small whole numbers."""
    return a.astype(np.float64) @ b.astype(np.float64)


def accumulate(A, B, m, n, first, last, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    """Rows of A times columns of B, over a part of the inner dimension."""
    acc = xl.zeros((BM, BN))
    a, b = A.tile((BM, BK), at=(m, first)), B.tile((BK, BN), at=(first, n))
    for _ in range(first, last, BK):
        acc = xl.dot(a.load(), b.load(), acc)
        a.advance(columns=BK)
        b.advance(rows=BK)
    return acc


def grouped_ordering(pid, rows, columns, GROUP: Constexpr):
    """Workgroups in groups of rows, so that those that run together share more of B."""
    width = GROUP * columns
    first = pid // width * GROUP
    size = min(rows - first, GROUP)
    return first + (pid % width) % size, (pid % width) // size


def matmul(A, B, C, BM: Constexpr, BN: Constexpr, BK: Constexpr, GROUP: Constexpr):
    rows, columns = xl.cdiv(A.shape[0], BM), xl.cdiv(B.shape[1], BN)
    i, j = grouped_ordering(xl.program_id(0), rows, columns, GROUP)
    acc = accumulate(A, B, i * BM, j * BN, 0, A.shape[1], BM, BN, BK)
    C.tile((BM, BN), at=(i * BM, j * BN)).store(xl.where(acc > 0, acc, acc * 0.25))


@run
def matmul_with_grouped_ordering(rng):
    a, b = whole(rng, 40, 50, dtype=BF16), whole(rng, 50, 25, dtype=BF16)
    c = product(a, b)
    out = [a, b, np.zeros((40, 25), F32)]
    return Run(matmul, out, {2: np.where(c > 0, c, c / 4).astype(F32)}, 6, {**TILE, "GROUP": 2})


def matmul_bias_gelu(A, B, BIAS, C, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    m, n = xl.program_id(1) * BM, xl.program_id(0) * BN
    x = accumulate(A, B, m, n, 0, A.shape[1], BM, BN, BK) + BIAS.tile((1, BN), at=(0, n)).load()
    C.tile((BM, BN), at=(m, n)).store((x * xl.sigmoid(1.702 * x)).to(C.dtype))


@run
def epilogue_of_bias_and_gelu(rng):
    a, b, bias = whole(rng, 19, 40, dtype=F16), whole(rng, 40, 25, dtype=F16), whole(rng, 1, 25)
    x = product(a, b) + bias
    c = (x / (1 + np.exp(-1.702 * x))).astype(F16)
    return Run(matmul_bias_gelu, [a, b, bias, np.zeros((19, 25), F16)], {3: c}, (2, 2), TILE, tolerance=1e-2)


def matmul_residual(A, B, R, C, alpha: xl.float32, beta: xl.float32, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    m, n = xl.program_id(1) * BM, xl.program_id(0) * BN
    acc = accumulate(A, B, m, n, 0, A.shape[1], BM, BN, BK)
    C.tile((BM, BN), at=(m, n)).store((alpha * acc + beta * R.tile((BM, BN), at=(m, n)).load()).to(C.dtype))


@run
def epilogue_of_a_residual(rng):
    a, b, r = whole(rng, 14, 50, dtype=BF16), whole(rng, 50, 29, dtype=BF16), whole(rng, 14, 29, dtype=BF16)
    c = (0.5 * product(a, b) + 2 * r.astype(np.float64)).astype(F32).astype(BF16)
    out = [a, b, r, np.zeros_like(c), 0.5, 2.0]
    return Run(matmul_residual, out, {3: c}, (2, 1), TILE)


def matmul_transposed(A, B, C, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    """The product of the transposes of what is in memory."""
    m, n = xl.program_id(1) * BM, xl.program_id(0) * BN
    acc = accumulate(A.T, B.T, m, n, 0, A.shape[0], BM, BN, BK)
    C.tile((BM, BN), at=(m, n)).store(acc)


@run
def product_of_transposes(rng):
    a, b = whole(rng, 50, 26, dtype=BF16), whole(rng, 30, 50, dtype=BF16)
    return Run(matmul_transposed, [a, b, np.zeros((26, 30), F32)], {2: product(a.T, b.T).astype(F32)}, (2, 2), TILE)


def matmul_int8(A, B, SCALE, C, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    m, n = xl.program_id(1) * BM, xl.program_id(0) * BN
    acc = xl.zeros((BM, BN), np.int32)
    for k in range(0, A.shape[1], BK):
        acc += A.tile((BM, BK), at=(m, k)).load() @ B.tile((BK, BN), at=(k, n)).load()
    scale = SCALE.tile((1, BN), at=(0, n)).load()
    C.tile((BM, BN), at=(m, n)).store(xl.clamp(xl.round(acc * scale), -128, 127).to(xl.int8))


@run
def int8_with_requantization(rng):
    a, b = whole(rng, 25, 70, dtype=I8, most=100), whole(rng, 70, 30, dtype=I8, most=100)
    scale = rng.uniform(1e-3, 4e-3, (1, 30)).astype(F32)
    exact = (a.astype(I32) @ b.astype(I32)).astype(F32)
    c = np.clip(np.rint(exact * scale), -128, 127).astype(I8)
    return Run(matmul_int8, [a, b, scale, np.zeros_like(c)], {3: c}, (2, 2), {**TILE, "BK": 32})


def split_k(A, B, C, BM: Constexpr, BN: Constexpr, BK: Constexpr, SPLIT: Constexpr):
    """Several workgroups share the inner dimension of a tile, and add to it."""
    m, n, part = xl.program_id(1) * BM, xl.program_id(0) * BN, xl.program_id(2)
    steps = xl.cdiv(xl.cdiv(A.shape[1], BK), SPLIT)
    first = part * steps * BK
    C.tile((BM, BN), at=(m, n)).add(accumulate(A, B, m, n, first, min(first + steps * BK, A.shape[1]), BM, BN, BK))


@run
def splitting_the_inner_dimension(rng):
    a, b = whole(rng, 20, 120, dtype=BF16), whole(rng, 120, 24, dtype=BF16)
    out = [a, b, np.zeros((20, 24), F32)]
    return Run(split_k, out, {2: product(a, b).astype(F32)}, (2, 2, 3), {**TILE, "SPLIT": 3})


def stream_k(A, B, C, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    """All workgroups do as many steps, wherever in a tile these begin and end."""
    columns = xl.cdiv(B.shape[1], BN)
    steps = xl.cdiv(A.shape[1], BK)
    total = xl.cdiv(A.shape[0], BM) * columns * steps
    each = xl.cdiv(total, xl.num_programs(0))
    step = xl.program_id(0) * each
    last = min(step + each, total)
    while step < last:
        tile, inner = step // steps, step % steps
        count = min(steps - inner, last - step)
        m, n = tile // columns * BM, tile % columns * BN
        acc = accumulate(A, B, m, n, inner * BK, (inner + count) * BK, BM, BN, BK)
        place = C.tile((BM, BN), at=(m, n))
        if count == steps:
            place.store(acc)
        else:
            place.add(acc)
        step += count


@run
def streaming_the_inner_dimension(rng):
    a, b = whole(rng, 20, 70, dtype=BF16), whole(rng, 70, 30, dtype=BF16)
    return Run(stream_k, [a, b, np.zeros((20, 30), F32)], {2: product(a, b).astype(F32)}, 3, TILE)


def persistent(A, B, C, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    """As many workgroups as there are cores, each of which takes tile after tile."""
    columns = xl.cdiv(B.shape[1], BN)
    for tile in range(xl.program_id(0), xl.cdiv(A.shape[0], BM) * columns, xl.num_programs(0)):
        m, n = tile // columns * BM, tile % columns * BN
        C.tile((BM, BN), at=(m, n)).store(accumulate(A, B, m, n, 0, A.shape[1], BM, BN, BK).to(C.dtype))


@run
def persistent_matmul(rng):
    a, b = whole(rng, 35, 30, dtype=F16), whole(rng, 30, 37, dtype=F16)
    return Run(persistent, [a, b, np.zeros((35, 37), F16)], {2: product(a, b).astype(F16)}, 4, TILE)


def batched(A, B, C, BM: Constexpr, BN: Constexpr):
    """A product for each leading index."""
    z, m, n = xl.program_id(2), xl.program_id(1) * BM, xl.program_id(0) * BN
    acc = xl.zeros((BM, BN))
    for k in range(0, A.shape[2], 16):
        acc += A.tile((BM, 16), at=(z, m, k)).load() @ B.tile((16, BN), at=(z, k, n)).load()
    C.tile((BM, BN), at=(z, m, n)).store(acc)


@run
def batched_matmul(rng):
    a, b = whole(rng, 3, 20, 40, dtype=BF16), whole(rng, 3, 40, 27, dtype=BF16)
    out = [a, b, np.zeros((3, 20, 27), F32)]
    return Run(batched, out, {2: product(a, b).astype(F32)}, (2, 2, 3), {"BM": 16, "BN": 16})


def grouped(A, B, C, STARTS, BM: Constexpr, BN: Constexpr, K: Constexpr, GROUPS: Constexpr):
    """Rows in groups of any size, each of which has its own matrix B; one launch for all."""
    tile, n = xl.program_id(0), xl.program_id(1) * BN
    seen = 0
    for g in range(GROUPS):
        first, last = STARTS[g], STARTS[g + 1]
        tiles = xl.cdiv(last - first, BM)
        if seen <= tile < seen + tiles:
            m = first + (tile - seen) * BM
            rows = m + xl.arange(0, BM)[:, None]
            acc = A.tile((BM, K), at=(m, 0)).load() @ B.tile((K, BN), at=(g, 0, n)).load()
            columns = n + xl.arange(0, BN)[None, :]
            inside = (rows < last) & (columns < C.shape[1])
            xl.store(C + rows * C.shape[1] + columns, acc + 0.0, mask=inside)
        seen += tiles


@run
def grouped_gemm(rng):
    starts = np.array([0, 5, 5, 26, 30], np.int64)
    a, b = whole(rng, 30, 16, dtype=BF16), whole(rng, 4, 16, 27, dtype=BF16)
    c = np.concatenate([product(a[starts[g] : starts[g + 1]], b[g]) for g in range(4)]).astype(F32)
    constants = {"BM": 16, "BN": 16, "K": 16, "GROUPS": 4}
    return Run(grouped, [a, b, np.zeros((30, 27), F32), starts], {2: c}, (4, 2), constants)


def moe(X, W, ROUTES, EXPERTS, OUT, d, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    """Each block of routed tokens has one expert; the rows of its tokens are gathered."""
    block, n = xl.program_id(0), xl.program_id(1) * BN
    expert = EXPERTS[block]
    tokens = xl.load(ROUTES + block * BM + xl.arange(0, BM))
    rows = tokens[:, None]
    acc = xl.zeros((BM, BN))
    for k in range(0, d, BK):
        inner = k + xl.arange(0, BK)[None, :]
        x = xl.load(X + rows * d + inner, mask=(rows >= 0) & (inner < d), other=0.0)
        acc += x @ W.tile((BK, BN), at=(expert, k, n)).load()
    columns = n + xl.arange(0, BN)[None, :]
    xl.store(OUT + rows * OUT.shape[1] + columns, acc, mask=(rows >= 0) & (columns < OUT.shape[1]))


@run
def mixture_of_experts(rng):
    x, w = whole(rng, 20, 40, dtype=BF16), whole(rng, 3, 40, 27, dtype=BF16)
    chosen = rng.integers(0, 3, 20)
    routes, experts = [], []
    for e in range(3):
        tokens = np.flatnonzero(chosen == e)
        for start in range(0, len(tokens), 16):
            part = tokens[start : start + 16]
            routes += [*part, *[-1] * (16 - len(part))]
            experts.append(e)
    out = np.stack([product(x[t], w[chosen[t]]) for t in range(20)]).astype(F32)
    arguments = [x, w, np.array(routes, I32), np.array(experts, I32), np.zeros((20, 27), F32), 40]
    return Run(moe, arguments, {4: out}, (len(experts), 2), TILE)


def fp8_matmul(A, B, C, SA, SB, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    """Elements of 8 bits are widened, which is exact."""
    m, n = xl.program_id(1) * BM, xl.program_id(0) * BN
    acc = xl.zeros((BM, BN))
    for k in range(0, A.shape[1], BK):
        a, b = A.tile((BM, BK), at=(m, k)).load(), B.tile((BK, BN), at=(k, n)).load()
        acc = xl.dot(a.to(xl.float16), b.to(xl.float16), acc)
    C.tile((BM, BN), at=(m, n)).store((acc * (SA[0] * SB[0])).to(xl.float16).to(xl.float8_e5m2))


@run
def fp8_with_scales(rng):
    a, b = whole(rng, 14, 50, dtype=F8), whole(rng, 50, 30, dtype=F8)
    c = (product(a, b) * 0.125).astype(F32).astype(F16).astype(F8)
    out = [a, b, np.zeros((14, 30), F8), np.array([0.5], F32), np.array([0.25], F32)]
    return Run(fp8_matmul, out, {2: c}, (2, 1), TILE)


def block_scaled(A, B, SA, SB, C, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    """A scale for each row of A, and each column of B, and each 32 elements of the inner dimension."""
    m, n = xl.program_id(1) * BM, xl.program_id(0) * BN
    acc = xl.zeros((BM, BN))
    for k in range(0, A.shape[1], BK):
        a, b = A.tile((BM, BK), at=(m, k)).load(), B.tile((BK, BN), at=(k, n)).load()
        sa, sb = SA.tile((BM, BK // 32), at=(m, k // 32)).load(), SB.tile((BN, BK // 32), at=(n, k // 32)).load()
        acc = xl.dot_scaled(a, sa, "e5m2", b, sb, "e5m2", acc)
    C.tile((BM, BN), at=(m, n)).store(acc)


@run
def block_scaled_matmul(rng):
    a, b = whole(rng, 14, 90, dtype=F8), whole(rng, 90, 27, dtype=F8)
    sa, sb = rng.integers(125, 130, (14, 3)).astype(U8), rng.integers(125, 130, (27, 3)).astype(U8)
    wide_a = a.astype(np.float64) * np.repeat(2.0 ** (sa.astype(int) - 127), 32, 1)[:, :90]
    wide_b = b.astype(np.float64) * np.repeat(2.0 ** (sb.T.astype(int) - 127), 32, 0)[:90]
    return Run(
        block_scaled,
        [a, b, sa, sb, np.zeros((14, 27), F32)],
        {4: (wide_a @ wide_b).astype(F32)},
        (2, 1),
        {**TILE, "BK": 32},
    )


def int4_matmul(A, Q, SCALES, C, BM: Constexpr, BN: Constexpr, BK: Constexpr):
    """Weights of 4 bits, two in a byte: rows k and k + BK/2 of each block; a scale for each block and column."""
    m, n = xl.program_id(1) * BM, xl.program_id(0) * BN
    acc = xl.zeros((BM, BN))
    half = BK // 2
    for k in range(0, A.shape[1], BK):
        packed = Q.tile((half, BN), at=(k // 2, n)).load().to(xl.int32)
        scale = SCALES.tile((1, BN), at=(k // BK, n)).load()
        low, high = ((packed & 15) - 8).to(xl.bfloat16), ((packed >> 4) - 8).to(xl.bfloat16)
        part = A.tile((BM, half), at=(m, k)).load() @ low
        part = part + A.tile((BM, half), at=(m, k + half)).load() @ high
        acc += part * scale
    C.tile((BM, BN), at=(m, n)).store(acc)


@run
def int4_weights(rng):
    a, w = whole(rng, 13, 96, dtype=BF16), rng.integers(-8, 8, (96, 27))
    blocks = (w + 8).reshape(3, 2, 16, 27)
    q = (blocks[:, 0] | blocks[:, 1] << 4).reshape(48, 27).astype(U8)
    scales = (2.0 ** rng.integers(-2, 3, (3, 27))).astype(F32)
    c = product(a, w * np.repeat(scales, 32, 0)).astype(F32)
    return Run(int4_matmul, [a, q, scales, np.zeros((13, 27), F32)], {3: c}, (2, 1), {**TILE, "BK": 32})


def matvec(A, X, Y, BM: Constexpr, BK: Constexpr):
    m = xl.program_id(0) * BM
    total = xl.zeros((BM, 1))
    for k in range(0, A.shape[1], BK):
        total += (A.tile((BM, BK), at=(m, k)).load() * X.tile((1, BK), at=(0, k)).load()).sum(axis=1, keep_dims=True)
    Y.tile((BM, 1), at=(m, 0)).store(total)


@run
def matrix_times_vector(rng):
    a, x = whole(rng, 27, 70), whole(rng, 1, 70)
    y = product(a, x.T).astype(F32)
    return Run(matvec, [a, x, np.zeros((27, 1), F32)], {2: y}, cdiv(27, 16), {"BM": 16, "BK": 32})


def outer_sum(A, B, C):
    """Gram matrix of rows, lower triangle alone."""
    i, j = xl.program_id(1) * 16, xl.program_id(0) * 16
    if j > i:
        return
    acc = A.tile((16, 32), at=(i, 0)).load() @ A.tile((16, 32), at=(j, 0)).load().T
    C.tile((16, 16), at=(i, j)).store(acc + B.tile((16, 16), at=(i, j)).load())


@run
def rank_update_of_the_lower_triangle(rng):
    a, b = whole(rng, 40, 30, dtype=BF16), whole(rng, 40, 40)
    c = product(a, a.T).astype(F32) + b
    block = np.arange(40) // 16
    return Run(outer_sum, [a, b, np.zeros((40, 40), F32)], {2: np.where(block[:, None] >= block, c, 0)}, (3, 3))


def complex_matmul(AR, AI, BR, BI, CR, CI):
    m, n = xl.program_id(1) * 16, xl.program_id(0) * 16
    ar, ai = AR.tile((16, 16), at=(m, 0)).load(), AI.tile((16, 16), at=(m, 0)).load()
    br, bi = BR.tile((16, 16), at=(0, n)).load(), BI.tile((16, 16), at=(0, n)).load()
    CR.tile((16, 16), at=(m, n)).store(xl.dot(ar, br) - xl.dot(ai, bi))
    CI.tile((16, 16), at=(m, n)).store(xl.dot(ai, br, xl.dot(ar, bi)))


@run
def product_of_complex_matrices(rng):
    a, b = whole(rng, 2, 20, 14, dtype=BF16), whole(rng, 2, 14, 20, dtype=BF16)
    c = product(a[0] + 0.0, b[0]) - product(a[1], b[1]), product(a[0], b[1]) + product(a[1], b[0])
    out = [np.zeros((20, 20), F32), np.zeros((20, 20), F32)]
    return Run(complex_matmul, [*a, *b, *out], {4: c[0].astype(F32), 5: c[1].astype(F32)}, (2, 2))


def chained(A, B, C, D):
    """(A B) C without the intermediate matrix in memory."""
    m = xl.program_id(0) * 16
    ab = (A.tile((16, 16), at=(m, 0)).load() @ B.tile((16, 32), at=(0, 0)).load()).to(xl.bfloat16)
    D.tile((16, 16), at=(m, 0)).store(xl.dot(ab, C.tile((32, 16), at=(0, 0)).load()))


@run
def product_of_three(rng):
    a, b, c = (
        whole(rng, 27, 14, dtype=BF16, most=1),
        whole(rng, 14, 31, dtype=BF16, most=1),
        whole(rng, 31, 13, dtype=BF16),
    )
    d = product(product(a, b).astype(BF16), c).astype(F32)
    return Run(chained, [a, b, c, np.zeros((27, 13), F32)], {3: d}, 2)


def tf32(A, B, C):
    a, b = A.tile((16, 32), at=(0, 0)).load(), B.tile((32, 16), at=(0, 0)).load()
    C.tile((16, 16), at=(0, 0)).store(a.to(xl.tfloat32) @ b.to(xl.tfloat32))


@run
def tf32_product(rng):
    a, b = whole(rng, 13, 27, most=1000), whole(rng, 27, 11, most=7)
    return Run(tf32, [a, b, np.zeros((13, 11), F32)], {2: product(a, b).astype(F32)})
