"""Gathers, scatters, scans, sorts, transforms, sparse and dense linear algebra, convolutions."""

import numpy as np

import xegpu_py.language as xl
from xegpu_py import Constexpr, cdiv

from .suite import BF16, F32, I32, I64, Run, normal, run, whole


def embedding(TABLE, IDS, OUT, d, BLOCK: Constexpr):
    row = xl.program_id(0)
    token = IDS[row]
    for start in range(0, d, BLOCK):
        i = start + xl.arange(0, BLOCK)
        xl.store(OUT + row * d + i, xl.load(TABLE + token * d + i, mask=i < d), mask=i < d)


@run
def embedding_lookup(rng):
    table, ids = normal(rng, 11, 45), rng.integers(0, 11, 9).astype(I64)
    return Run(embedding, [table, ids, np.zeros((9, 45), F32), 45], {2: table[ids]}, 9, {"BLOCK": 32})


def embedding_backward(GRADIENTS, IDS, TABLE, d, BLOCK: Constexpr):
    row, i = xl.program_id(0), xl.arange(0, BLOCK)
    xl.atomic_add(TABLE + IDS[row] * d + i, xl.load(GRADIENTS + row * d + i, mask=i < d), mask=i < d)


@run
def gradient_of_an_embedding(rng):
    g, ids = whole(rng, 20, 30), rng.integers(0, 5, 20).astype(I32)
    table = np.zeros((5, 30), F32)
    np.add.at(table, ids, g)
    return Run(embedding_backward, [g, ids, np.zeros_like(table), 30], {2: table}, 20, {"BLOCK": 32})


def histogram(X, COUNTS, n, BLOCK: Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    x = xl.load(X + i, mask=i < n, other=0)
    xl.atomic_add(COUNTS + x, xl.full((BLOCK,), 1, np.int32), mask=i < n)


@run
def histogram_by_atomics(rng):
    x = rng.integers(0, 10, 500).astype(I32)
    counts = np.bincount(x, minlength=16).astype(I32)
    return Run(histogram, [x, np.zeros(16, I32), 500], {1: counts}, cdiv(500, 64), {"BLOCK": 64})


def histogram_in_registers(X, COUNTS, n, BINS: Constexpr, BLOCK: Constexpr):
    """Each block's elements beside all bins, and one update for each bin."""
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    x = xl.load(X + i, mask=i < n, other=-1)
    bins = xl.arange(0, BINS)
    counts = (x[:, None] == bins[None, :]).sum(axis=0, keep_dims=True)
    xl.atomic_add(COUNTS + bins, counts.reshape(BINS))


@run
def histogram_by_comparison(rng):
    x = rng.integers(0, 16, 150).astype(I32)
    counts = np.bincount(x, minlength=16).astype(I32)
    return Run(histogram_in_registers, [x, np.zeros(16, I32), 150], {1: counts}, 5, {"BINS": 16, "BLOCK": 32})


def scan(X, OUT, n, BLOCK: Constexpr):
    """Inclusive sums, block after block, each beside the triangle of what comes before."""
    i = xl.arange(0, BLOCK)
    before = i[None, :] <= i[:, None]
    carried = xl.zeros((1, 1), X.dtype)
    for start in range(0, n, BLOCK):
        at = start + i
        x = xl.load(X + at, mask=at < n, other=0)
        sums = xl.where(before, x[None, :], 0).sum(axis=1, keep_dims=True) + carried
        xl.store(OUT + at, sums.reshape(BLOCK), mask=at < n)
        carried = sums[BLOCK - 1 : BLOCK, :]


@run
def inclusive_scan(rng):
    x = whole(rng, 100, dtype=I32, most=1000)
    return Run(scan, [x, np.zeros_like(x), 100], {1: np.cumsum(x, dtype=I32)}, 1, {"BLOCK": 32})


def scan_in_passes(X, SUMS, FLAGS, OUT, n, BLOCK: Constexpr):
    """Exclusive places of set elements: those before in the block, and those of blocks before."""
    block, i = xl.program_id(0), xl.arange(0, BLOCK)
    at = block * BLOCK + i
    keep = (xl.load(X + at, mask=at < n, other=0) > 0) & (at < n)
    earlier = xl.arange(0, 64)
    base = xl.where(earlier < block, xl.load(SUMS + earlier), 0).sum()
    place = xl.where(i[None, :] < i[:, None], keep.to(xl.int32)[None, :], 0).sum(axis=1) + base
    xl.store(OUT + place, xl.load(X + at, mask=at < n), mask=keep)
    xl.store(FLAGS + at, keep.to(xl.int8), mask=at < n)


@run
def compaction(rng):
    x = whole(rng, 150, dtype=I32, most=50)
    sums = np.zeros(64, I32)
    for block in range(5):
        sums[block] = (x[block * 32 : (block + 1) * 32] > 0).sum()
    kept = x[x > 0]
    out = np.zeros(150, I32)
    out[: len(kept)] = kept
    arguments = [x, sums, np.zeros(150, np.int8), np.zeros(150, I32), 150]
    return Run(scan_in_passes, arguments, {2: (x > 0).astype(np.int8), 3: out}, 5, {"BLOCK": 32})


def rank_sort(X, OUT, ORDER, n, BLOCK: Constexpr):
    """Stable: each element's place is the number of those before it."""
    i = xl.arange(0, BLOCK)
    x = xl.load(X + i, mask=i < n, other=float("inf"))
    a, b = x[:, None], x[None, :]
    first = (b < a) | ((b == a) & (i[None, :] < i[:, None]))
    rank = first.sum(axis=1)
    xl.store(OUT + rank, x, mask=i < n)
    xl.store(ORDER + rank, i, mask=i < n)


@run
def sort_by_rank(rng):
    x = whole(rng, 27, most=20)
    order = np.argsort(x, kind="stable")
    out = [x, np.zeros_like(x), np.zeros(27, I64), 27]
    return Run(rank_sort, out, {1: x[order], 2: order}, 1, {"BLOCK": 32})


def top_k(X, VALUES, PLACES, n, K: Constexpr, BLOCK: Constexpr):
    row, i = xl.program_id(0), xl.arange(0, BLOCK)
    x = xl.load(X + row * n + i, mask=i < n, other=float("-inf"))
    for k in range(K):
        top = x.max()
        place = xl.where(x == top, i, BLOCK).min()
        VALUES[row, k] = top
        PLACES[row, k] = place
        x = xl.where(i == place, float("-inf"), x)


@run
def greatest_of_each_row(rng):
    x = rng.permutation(5 * 50).reshape(5, 50).astype(F32)
    places = np.argsort(-x, axis=1)[:, :4]
    expected = {1: np.take_along_axis(x, places, 1), 2: places}
    out = [x, np.zeros((5, 4), F32), np.zeros((5, 4), I64), 50]
    return Run(top_k, out, expected, 5, {"K": 4, "BLOCK": 64})


def router(X, WEIGHTS, EXPERTS, K: Constexpr, BM: Constexpr, N: Constexpr):
    """The K experts of greatest score of each token, and their weights: scores and places sorted as one number."""
    m = xl.program_id(0) * BM
    scores = X.tile((BM, N), at=(m, 0)).load()
    places = xl.arange(0, N)[None, :]
    best = xl.topk((scores.to(xl.int64) << 8) | (N - 1 - places), K)
    weights = xl.exp((best >> 8).to(xl.float32))
    WEIGHTS.tile((BM, K), at=(m, 0)).store(weights / weights.sum(axis=1, keep_dims=True))
    EXPERTS.tile((BM, K), at=(m, 0)).store(N - 1 - (best & 255))


@run
def experts_of_tokens(rng):
    x = rng.integers(-5, 6, (11, 16)).astype(I32)
    order = np.argsort(-x, axis=1, kind="stable")[:, :4]
    e = np.exp(np.take_along_axis(x, order, 1).astype(F32))
    out = [x, np.zeros((11, 4), F32), np.zeros((11, 4), I32)]
    expected = {1: e / e.sum(1, keepdims=True), 2: order}
    return Run(router, out, expected, 2, {"K": 4, "BM": 8, "N": 16}, 1e-6)


def medians(X, Y, n, BLOCK: Constexpr):
    """The median of each row, of an odd number of elements."""
    row, i = xl.program_id(0), xl.arange(0, BLOCK)
    x = xl.sort(xl.load(X + row * n + i, mask=i < n, other=float("inf")))
    Y[row] = xl.where(i == n // 2, x, 0.0).sum()


@run
def medians_of_rows(rng):
    x = normal(rng, 5, 29)
    return Run(medians, [x, np.zeros(5, F32), 29], {1: np.median(x, 1)}, 5, {"BLOCK": 32})


def complex_product(A, B, OUT, n, BLOCK: Constexpr):
    """Of complex numbers, whose parts alternate in memory."""
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    place, mask = 2 * i[:, None] + xl.arange(0, 2)[None, :], i[:, None] < n
    (a, b), (c, d) = (xl.split(xl.load(M + place, mask=mask, other=0.0)) for M in (A, B))
    xl.store(OUT + place, xl.join(a * c - b * d, a * d + b * c), mask=mask)


@run
def product_of_complex_numbers(rng):
    a, b = whole(rng, 37, 2), whole(rng, 37, 2)
    both = (a[:, 0] + 1j * a[:, 1]) * (b[:, 0] + 1j * b[:, 1])
    out = np.stack([both.real, both.imag], 1).astype(F32)
    return Run(complex_product, [a, b, np.zeros_like(a), 37], {2: out}, 3, {"BLOCK": 16})


def spmv(VALUES, COLUMNS, STARTS, X, Y, BLOCK: Constexpr):
    """A row of a sparse matrix (CSR) for each workgroup."""
    row, i = xl.program_id(0), xl.arange(0, BLOCK)
    total = 0.0
    for start in range(STARTS[row], STARTS[row + 1], BLOCK):
        mask = start + i < STARTS[row + 1]
        column = xl.load(COLUMNS + start + i, mask=mask, other=0)
        value = xl.load(VALUES + start + i, mask=mask, other=0.0)
        total += (value * xl.load(X + column, mask=mask)).sum()
    Y[row] = total


@run
def sparse_matrix_times_vector(rng):
    dense = whole(rng, 13, 60) * (rng.random((13, 60)) < 0.3)
    dense[4] = 0
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(14)).astype(I32)
    x = whole(rng, 60)
    y = (dense.astype(np.float64) @ x).astype(F32)
    arguments = [dense[rows, columns].astype(F32), columns.astype(I32), starts, x, np.zeros(13, F32)]
    return Run(spmv, arguments, {4: y}, 13, {"BLOCK": 16})


def cholesky(A, L, N: Constexpr):
    """Columns one after the other, each of which is taken out of the rest."""
    a = A.tile((N, N), at=(xl.program_id(0), 0, 0)).load()
    rows, columns = xl.arange(0, N)[:, None], xl.arange(0, N)[None, :]
    low = xl.zeros((N, N))
    for k in range(N):
        column = xl.where(columns == k, a, 0.0).sum(axis=1, keep_dims=True)
        pivot = xl.where(rows == k, column, 0.0).sum()
        column = xl.where(rows >= k, column / xl.sqrt(pivot), 0.0)
        low = xl.where(columns == k, column, low)
        a = a - column * column.T
    L.tile((N, N), at=(xl.program_id(0), 0, 0)).store(low)


@run
def cholesky_factors(rng):
    x = normal(rng, 3, 16, 16)
    a = x @ x.transpose(0, 2, 1) + 4 * np.eye(16, dtype=F32)
    low = np.linalg.cholesky(a.astype(np.float64)).astype(F32)
    return Run(cholesky, [a, np.zeros_like(a)], {1: low}, 3, {"N": 16}, 1e-4)


def triangular_solve(L, B, X, N: Constexpr):
    """L X = B for a lower triangle, row after row."""
    low, b = L.tile((N, N), at=(0, 0)).load(), B.tile((N, N), at=(0, 0)).load()
    rows, columns = xl.arange(0, N)[:, None], xl.arange(0, N)[None, :]
    for k in range(N):
        diagonal = xl.where((rows == k) & (columns == k), low, 0.0).sum()
        row = xl.where(rows == k, b, 0.0).sum(axis=0, keep_dims=True) / diagonal
        column = xl.where((columns == k) & (rows > k), low, 0.0).sum(axis=1, keep_dims=True)
        b = xl.where(rows == k, row, b - column * row)
    X.tile((N, N), at=(0, 0)).store(b)


@run
def triangular_systems(rng):
    low = np.tril(whole(rng, 16, 16)) * (1 - np.eye(16)) + 2 ** rng.integers(0, 2, 16) * np.eye(16)
    low, b = low.astype(F32) * F32(0.25), normal(rng, 16, 16)
    x = np.linalg.solve(low.astype(np.float64), b)
    return Run(triangular_solve, [low, b, np.zeros_like(b)], {2: x.astype(F32)}, 1, {"N": 16}, 1e-3)


def convolution(X, W, Y, C: Constexpr, R: Constexpr, S: Constexpr, BH: Constexpr, BW: Constexpr):
    """One output channel, direct, with zeros around the image."""
    k, h, w = xl.program_id(2), xl.program_id(1) * BH, xl.program_id(0) * BW
    acc = xl.zeros((BH, BW))
    for c in range(C):
        for r in xl.static_range(R):
            for s in xl.static_range(S):
                acc += X.tile((BH, BW), at=(c, h + r - R // 2, w + s - S // 2)).load() * W[k, c, r, s]
    Y.tile((BH, BW), at=(k, h, w)).store(acc)


def convolved(x, w):
    _, height, width = x.shape
    k, _, r, s = w.shape
    padded = np.pad(x, ((0, 0), (r // 2, r // 2), (s // 2, s // 2))).astype(np.float64)
    y = np.zeros((k, height, width))
    for i in range(r):
        for j in range(s):
            y += np.einsum("kc,chw->khw", w[:, :, i, j], padded[:, i : i + height, j : j + width])
    return y.astype(F32)


@run
def direct_convolution(rng):
    x, w = whole(rng, 3, 10, 21), whole(rng, 2, 3, 3, 3)
    constants = {"C": 3, "R": 3, "S": 3, "BH": 8, "BW": 16}
    return Run(convolution, [x, w, np.zeros((2, 10, 21), F32)], {2: convolved(x, w)}, (2, 2, 2), constants)


def implicit_gemm(X, W, Y, H, WIDTH, C: Constexpr, R: Constexpr, BP: Constexpr, BK: Constexpr, N: Constexpr):
    """Pixels times channels: the patches are gathered as rows of a matrix."""
    pixel = (xl.program_id(0) * BP + xl.arange(0, BP))[:, None]
    h, w = pixel // WIDTH, pixel % WIDTH
    acc = xl.zeros((BP, N))
    for k in range(0, C * R * R, BK):
        inner = (k + xl.arange(0, BK))[None, :]
        c, r, s = inner // (R * R), inner // R % R, inner % R
        y, x = h + r - R // 2, w + s - R // 2
        mask = (y >= 0) & (y < H) & (x >= 0) & (x < WIDTH) & (inner < C * R * R)
        patch = xl.load(X + (c * H + y) * WIDTH + x, mask=mask, other=0.0)
        acc = xl.dot(patch, W.tile((BK, N), at=(k, 0)).load(), acc)
    Y.tile((BP, N), at=(xl.program_id(0) * BP, 0)).store(acc)


@run
def convolution_as_a_product(rng):
    x, w = whole(rng, 5, 9, 7, dtype=BF16), whole(rng, 16, 5, 3, 3, dtype=BF16)
    matrix = np.ascontiguousarray(w.reshape(16, 45).T)
    y = convolved(x.astype(F32), w.astype(F32)).reshape(16, 63).T
    constants = {"C": 5, "R": 3, "BP": 16, "BK": 16, "N": 16}
    arguments = [x, matrix, np.zeros((63, 16), F32), 9, 7]
    return Run(implicit_gemm, arguments, {2: y}, cdiv(63, 16), constants)


def causal_convolution(X, W, Y, K: Constexpr, BT: Constexpr, BC: Constexpr):
    """Along time, of each channel by itself, as in state-space models."""
    t, c = xl.program_id(1) * BT, xl.program_id(0) * BC
    acc = xl.zeros((BT, BC))
    for k in xl.static_range(K):
        acc += X.tile((BT, BC), at=(t + k - (K - 1), c)).load() * W.tile((1, BC), at=(k, c)).load()
    Y.tile((BT, BC), at=(t, c)).store(acc)


@run
def convolution_of_channels_in_time(rng):
    x, w = whole(rng, 21, 40), whole(rng, 4, 40)
    padded = np.pad(x, ((3, 0), (0, 0)))
    y = sum(padded[k : k + 21] * w[k] for k in range(4))
    return Run(causal_convolution, [x, w, np.zeros_like(x)], {2: y}, (2, 2), {"K": 4, "BT": 16, "BC": 32})


def transpose(X, Y, BM: Constexpr, BN: Constexpr):
    m, n = xl.program_id(1) * BM, xl.program_id(0) * BN
    Y.tile((BN, BM), at=(n, m)).store(X.tile((BM, BN), at=(m, n)).load().T)


@run
def transposed_matrix(rng):
    x = normal(rng, 37, 50)
    y = np.ascontiguousarray(x.T)
    return Run(transpose, [x, np.zeros_like(y)], {1: y}, (4, 3), {"BM": 16, "BN": 16})


def max_pool(X, Y, BH: Constexpr, BW: Constexpr):
    """Windows of 2x2, by pointers."""
    h, w = xl.program_id(1) * BH, xl.program_id(0) * BW
    rows, columns = h + xl.arange(0, BH)[:, None], w + xl.arange(0, BW)[None, :]
    height, width = X.shape
    best = xl.full((BH, BW), float("-inf"))
    for dr in xl.static_range(2):
        for dc in xl.static_range(2):
            r, c = 2 * rows + dr, 2 * columns + dc
            mask = (r < height) & (c < width)
            best = xl.maximum(best, xl.load(X + r * width + c, mask=mask, other=float("-inf")))
    Y.tile((BH, BW), at=(h, w)).store(best)


@run
def pooling(rng):
    x = normal(rng, 17, 35)
    padded = np.pad(x, ((0, 1), (0, 1)), constant_values=-np.inf)
    y = padded.reshape(9, 2, 18, 2).max((1, 3))
    return Run(max_pool, [x, np.zeros_like(y)], {1: y}, (2, 2), {"BH": 8, "BW": 16})


def selective_scan(X, A, OUT, T: Constexpr, N: Constexpr):
    """A linear recurrence of each column: h = a h + x."""
    n = xl.program_id(0) * N
    h = xl.zeros((1, N))
    for t in range(X.shape[0]):
        h = h * A.tile((1, N), at=(0, n)).load() + X.tile((1, N), at=(t, n)).load()
        OUT.tile((1, N), at=(t, n)).store(h)


@run
def linear_recurrence(rng):
    x, a = whole(rng, 9, 40), (2.0 ** rng.integers(-1, 2, (1, 40))).astype(F32)
    out, h = np.zeros_like(x), np.zeros((1, 40), F32)
    for t in range(9):
        h = h * a + x[t]
        out[t] = h[0]
    return Run(selective_scan, [x, a, np.zeros_like(x)], {2: out}, 2, {"T": 9, "N": 32})


def fft(RE, IM, COS, SIN, N: Constexpr, STEPS: Constexpr):
    """The discrete Fourier transform of each row by Stockham's algorithm, which leaves the results in order."""
    row, i = xl.program_id(0) * N, xl.arange(0, N)
    re, im = xl.load(RE + row + i), xl.load(IM + row + i)
    for step in xl.static_range(STEPS):
        ar, br = xl.split(xl.trans(re.reshape(2, N // 2)))
        ai, bi = xl.split(xl.trans(im.reshape(2, N // 2)))
        # Neighbours have the same factor: after each step twice as many.
        turn = xl.arange(0, N // 2) >> step << step
        c, s = xl.load(COS + turn), xl.load(SIN + turn)
        dr, di = ar - br, ai - bi
        pairs = (N // 2 >> step, 1 << step)
        re = xl.join((ar + br).reshape(*pairs), (dr * c + di * s).reshape(*pairs)).permute(0, 2, 1).reshape(N)
        im = xl.join((ai + bi).reshape(*pairs), (di * c - dr * s).reshape(*pairs)).permute(0, 2, 1).reshape(N)
    xl.store(RE + row + i, re)
    xl.store(IM + row + i, im)


@run
def fourier_transform_of_rows(rng):
    re, im = normal(rng, 2, 3, 64)
    angles = 2 * np.pi * np.arange(32) / 64
    done = np.fft.fft(re + 1j * im)
    arguments = [re, im, np.cos(angles).astype(F32), np.sin(angles).astype(F32)]
    return Run(fft, arguments, {0: done.real, 1: done.imag}, 3, {"N": 64, "STEPS": 6}, 1e-5)


def collatz(N, STEPS):
    i = xl.program_id(0)
    n, steps = N[i], 0
    while n != 1:
        if steps == 30:
            return
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    STEPS[i] = steps


@run
def loop_with_a_way_out(rng):
    n = np.array([1, 2, 3, 7, 9, 27, 0], np.int64)
    return Run(collatz, [n, np.zeros(7, I64)], {1: np.array([0, 1, 7, 16, 19, 0, 0])}, 7)


def newton(X, ROOTS, tolerance, BLOCK: Constexpr):
    """Square roots of lines, until the farthest element is near enough."""
    line = xl.arange(0, BLOCK) + xl.program_id(0) * BLOCK
    x = xl.load(X + line)
    root = x + 1
    for _ in range(50):
        better = 0.5 * (root + x / root)
        off = abs(better - root).max()
        root = better
        if off < tolerance:
            break
    else:
        root = root * 0
    xl.store(ROOTS + line, root)


@run
def iteration_until_near_enough(rng):
    x = rng.random(64).astype(F32) * 100
    return Run(newton, [x, np.zeros_like(x), 1e-3], {1: np.sqrt(x)}, 2, {"BLOCK": 32}, 1e-5)
