"""Kernels of rows: softmax, normalisation, losses, reductions."""

import numpy as np

import xegpu_py.language as xl
from xegpu_py import Constexpr, cdiv

from .suite import BF16, F32, I32, I64, Run, normal, run, softmax_of, whole


def fused_softmax(X, Y, n, BLOCK: Constexpr, SUBGROUPS: Constexpr):
    row = xl.program_id(0)
    columns = xl.arange(0, BLOCK, map=xl.WgMap((SUBGROUPS,), (BLOCK // SUBGROUPS,)))
    x = xl.load(X + row * n + columns, mask=columns < n, other=-float("inf"))
    e = xl.exp(x - x.max())
    xl.store(Y + row * n + columns, e / e.sum(), mask=columns < n)


@run
def softmax_of_rows(rng):
    x = normal(rng, 5, 77)
    return Run(fused_softmax, [x, np.zeros_like(x), 77], {1: softmax_of(x)}, 5, {"BLOCK": 128, "SUBGROUPS": 1}, 1e-6)


def online_softmax(X, Y, BLOCK: Constexpr):
    """Rows of any length, read twice."""
    m, n = xl.program_id(0) * 8, X.shape[1]
    top, total = xl.full((8, 1), -1e30), xl.zeros((8, 1))
    for start in range(0, n, BLOCK):
        x = X.tile((8, BLOCK), at=(m, start)).load(padding=-1e30)
        new = xl.maximum(top, x.max(axis=1, keep_dims=True))
        total = total * xl.exp(top - new) + xl.exp(x - new).sum(axis=1, keep_dims=True)
        top = new
    for start in range(0, n, BLOCK):
        x = X.tile((8, BLOCK), at=(m, start)).load()
        Y.tile((8, BLOCK), at=(m, start)).store(xl.exp(x - top) / total)


@run
def softmax_online(rng):
    x = normal(rng, 11, 75)
    return Run(online_softmax, [x, np.zeros_like(x)], {1: softmax_of(x)}, 2, {"BLOCK": 32}, 1e-6)


def softmax_backward(Y, DY, DX):
    m = xl.program_id(0) * 8
    y, dy = (array.tile((8, 32), at=(m, 0)).load() for array in (Y, DY))
    DX.tile((8, 32), at=(m, 0)).store(y * (dy - (y * dy).sum(axis=1, keep_dims=True)))


@run
def gradient_of_softmax(rng):
    y, dy = softmax_of(normal(rng, 9, 30)), normal(rng, 9, 30)
    dx = y * (dy - (y * dy).sum(1, keepdims=True))
    return Run(softmax_backward, [y, dy, np.zeros_like(y)], {2: dx}, 2, tolerance=1e-6)


def layer_norm(X, Y, W, B, MEAN, RSTD, n, eps, BLOCK: Constexpr, SUBGROUPS: Constexpr):
    row = xl.program_id(0)
    columns = xl.arange(0, BLOCK, map=xl.WgMap((SUBGROUPS,), (BLOCK // SUBGROUPS,)))
    mask = columns < n
    x = xl.load(X + row * n + columns, mask=mask, other=0.0)
    mean = x.sum() / n
    centred = xl.where(mask, x - mean, 0.0)
    rstd = 1 / xl.sqrt((centred * centred).sum() / n + eps)
    MEAN[row], RSTD[row] = mean, rstd
    w, b = xl.load(W + columns, mask=mask), xl.load(B + columns, mask=mask)
    xl.store(Y + row * n + columns, centred * rstd * w + b, mask=mask)


@run
def layer_norm_forward(rng):
    x, (w, b) = normal(rng, 5, 100), normal(rng, 2, 100)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    y = (x - mean[:, None]) * rstd[:, None] * w + b
    out = [np.zeros_like(x), w, b, np.zeros(5, F32), np.zeros(5, F32), 100, 1e-5]
    return Run(layer_norm, [x, *out], {1: y, 4: mean, 5: rstd}, 5, {"BLOCK": 128, "SUBGROUPS": 1}, 1e-5)


def layer_norm_backward(DX, DY, DW, DB, X, W, MEAN, RSTD, n, BLOCK: Constexpr):
    """The gradient of each row, and what rows add to the gradients of weight and bias."""
    row = xl.program_id(0)
    columns = xl.arange(0, BLOCK)
    mask = columns < n
    x, dy = (xl.load(array + row * n + columns, mask=mask, other=0.0) for array in (X, DY))
    w = xl.load(W + columns, mask=mask, other=0.0)
    normalised = xl.where(mask, (x - MEAN[row]) * RSTD[row], 0.0)
    scaled = w * dy
    first, second = (normalised * scaled).sum() / n, scaled.sum() / n
    xl.store(DX + row * n + columns, (scaled - (normalised * first + second)) * RSTD[row], mask=mask)
    xl.atomic_add(DW + columns, dy * normalised, mask=mask)
    xl.atomic_add(DB + columns, dy, mask=mask)


@run
def gradient_of_layer_norm(rng):
    x, dy, w = normal(rng, 4, 75), normal(rng, 4, 75), normal(rng, 75)
    mean, rstd = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    h, s = (x - mean) * rstd, w * dy
    dx = (s - (h * (h * s).mean(1, keepdims=True) + s.mean(1, keepdims=True))) * rstd
    out = [np.zeros_like(x), dy, np.zeros_like(w), np.zeros_like(w), x, w, mean[:, 0], rstd[:, 0], 75]
    expected = {0: dx, 2: (dy * h).sum(0), 3: dy.sum(0)}
    return Run(layer_norm_backward, out, expected, 4, {"BLOCK": 128}, 1e-5)


def rms_norm(X, Y, W, eps, BLOCK: Constexpr):
    m = xl.program_id(0) * 4
    x = X.tile((4, BLOCK), at=(m, 0)).load().to(xl.float32)
    scale = xl.rsqrt((x * x).sum(axis=1, keep_dims=True) / X.shape[1] + eps)
    w = W.tile((1, BLOCK), at=(0, 0)).load().to(xl.float32)
    Y.tile((4, BLOCK), at=(m, 0)).store((x * scale * w).to(Y.dtype))


@run
def rms_norm_forward(rng):
    x, w = normal(rng, 7, 60, dtype=BF16), normal(rng, 1, 60, dtype=BF16)
    wide = x.astype(F32)
    y = wide / np.sqrt((wide * wide).mean(1, keepdims=True) + 1e-6) * w.astype(F32)
    return Run(rms_norm, [x, np.zeros_like(x), w, 1e-6], {1: y.astype(BF16)}, 2, {"BLOCK": 64}, 1e-2)


def rms_norm_backward(X, DY, W, DX, DW, eps, BLOCK: Constexpr):
    n = X.shape[1]
    w = W.tile((1, BLOCK), at=(0, 0)).load()
    total = xl.zeros((1, BLOCK))
    for m in range(0, X.shape[0], 4):
        x, dy = X.tile((4, BLOCK), at=(m, 0)).load(), DY.tile((4, BLOCK), at=(m, 0)).load()
        r = xl.rsqrt((x * x).sum(axis=1, keep_dims=True) / n + eps)
        g = dy * w
        DX.tile((4, BLOCK), at=(m, 0)).store(r * g - x * (r * r * r / n) * (g * x).sum(axis=1, keep_dims=True))
        total += (dy * x * r).sum(axis=0, keep_dims=True)
    DW.tile((1, BLOCK), at=(0, 0)).store(total)


@run
def gradient_of_rms_norm(rng):
    x, dy, w = normal(rng, 10, 50), normal(rng, 10, 50), normal(rng, 1, 50)
    r = 1 / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6)
    dx = r * dy * w - x * r**3 / 50 * (dy * w * x).sum(1, keepdims=True)
    expected = {3: dx, 4: (dy * x * r).sum(0, keepdims=True)}
    return Run(
        rms_norm_backward, [x, dy, w, np.zeros_like(x), np.zeros_like(w), 1e-6], expected, 1, {"BLOCK": 64}, 1e-5
    )


def group_norm(X, Y, GROUP: Constexpr, COUNT: Constexpr):
    """Statistics of each group of columns."""
    m = xl.program_id(0) * 8
    x = X.tile((8, GROUP * COUNT), at=(m, 0)).load()
    mean = x.sum(axis=1, group=GROUP) / GROUP
    wide = xl.zeros((8, GROUP * COUNT))
    for g in xl.static_range(COUNT):
        column = xl.arange(0, GROUP * COUNT)[None, :]
        wide = xl.where((column >= g * GROUP) & (column < (g + 1) * GROUP), mean[:, g : g + 1], wide)
    Y.tile((8, GROUP * COUNT), at=(m, 0)).store(x - wide)


@run
def means_of_groups(rng):
    x = whole(rng, 11, 64)
    y = (x.reshape(11, 4, 16) - x.reshape(11, 4, 16).mean(2, keepdims=True)).reshape(11, 64)
    return Run(group_norm, [x, np.zeros_like(x)], {1: y}, 2, {"GROUP": 16, "COUNT": 4})


def cross_entropy(X, TARGETS, LOSS, DX, n, BLOCK: Constexpr):
    row, columns = xl.program_id(0), xl.arange(0, BLOCK)
    mask = columns < n
    x = xl.load(X + row * n + columns, mask=mask, other=-1e30)
    target = TARGETS[row]
    top = x.max()
    e = xl.exp(x - top)
    total = e.sum()
    LOSS[row] = xl.log(total) + top - X[row, target]
    xl.store(DX + row * n + columns, e / total - (columns == target).to(xl.float32), mask=mask)


@run
def cross_entropy_and_its_gradient(rng):
    x, targets = normal(rng, 6, 45), rng.integers(0, 45, 6).astype(I64)
    p = softmax_of(x)
    one = np.eye(45, dtype=F32)[targets]
    expected = {2: -np.log(p[np.arange(6), targets]), 3: p - one}
    out = [x, targets, np.zeros(6, F32), np.zeros_like(x), 45]
    return Run(cross_entropy, out, expected, 6, {"BLOCK": 64}, 1e-5)


def row_argmax(X, PLACES, VALUES, n, BLOCK: Constexpr):
    """The first place of the greatest number of each row, of any length."""
    row, i = xl.program_id(0), xl.arange(0, BLOCK)
    best, place = float("-inf"), 0
    for start in range(0, n, BLOCK):
        at = start + i
        x = xl.load(X + row * n + at, mask=at < n, other=float("-inf"))
        top = x.max()
        if top > best:
            best, place = top, xl.where(x == top, at, 1 << 30).min()
    PLACES[row] = place
    VALUES[row] = best


@run
def argmax_of_rows(rng):
    x = whole(rng, 7, 90, most=20)
    expected = {1: x.argmax(1).astype(I64), 2: x.max(1)}
    return Run(row_argmax, [x, np.zeros(7, I64), np.zeros(7, F32), 90], expected, 7, {"BLOCK": 32})


def column_sums(X, SUMS, ROWS: Constexpr):
    """Each workgroup adds its rows to the sums of all."""
    m = xl.program_id(0) * ROWS
    for n in range(0, X.shape[1], 32):
        part = X.tile((ROWS, 32), at=(m, n)).load().to(xl.int32).sum(axis=0, keep_dims=True)
        SUMS.tile((1, 32), at=(0, n)).add(part)


@run
def sums_of_columns(rng):
    x = whole(rng, 37, 75, dtype=np.int8, most=100)
    sums = x.astype(I32).sum(0, keepdims=True)
    return Run(column_sums, [x, np.zeros((1, 75), I32)], {1: sums}, 3, {"ROWS": 16})


def two_norm(X, OUT, n, BLOCK: Constexpr):
    """One number from all workgroups; the last of them to come takes the root."""
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    x = xl.load(X + i, mask=i < n, other=0.0)
    xl.atomic_add(OUT + 0, (x * x).sum())


@run
def sum_of_squares(rng):
    x = whole(rng, 500)
    total = np.array([(x * x).sum()], F32)
    return Run(two_norm, [x, np.zeros(1, F32), 500], {1: total}, cdiv(500, 128), {"BLOCK": 128})


def welford(X, MEAN, VARIANCE, BLOCK: Constexpr):
    """Mean and variance of rows in one pass, by blocks."""
    row, n = xl.program_id(0), X.shape[1]
    count, mean, squares = 0.0, 0.0, 0.0
    for start in range(0, n, BLOCK):
        width = min(n - start, BLOCK).to(xl.float32)
        x = X.tile((1, BLOCK), at=(row, start)).load()
        mask = start + xl.arange(0, BLOCK)[None, :] < n
        own = x.sum() / width
        off = xl.where(mask, x - own, 0.0)
        delta, total = own - mean, count + width
        mean += delta * width / total
        squares += (off * off).sum() + delta * delta * count * width / total
        count = total
    MEAN[row] = mean
    VARIANCE[row] = squares / count


@run
def variance_in_one_pass(rng):
    x = normal(rng, 3, 130)
    expected = {1: x.mean(1), 2: x.var(1)}
    return Run(welford, [x, np.zeros(3, F32), np.zeros(3, F32)], expected, 3, {"BLOCK": 64}, 1e-5)
