"""Kernels of one element each: vectors, activations, optimizers, random numbers."""

import math

import numpy as np

import xegpu_py.language as xl
from xegpu_py import Constexpr, cdiv

from .suite import BF16, F16, F32, I8, I32, U8, U32, Run, normal, run, whole


def vector_add(X, Y, OUT, n, BLOCK: Constexpr):
    offsets = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    mask = offsets < n
    xl.store(OUT + offsets, xl.load(X + offsets, mask=mask) + xl.load(Y + offsets, mask=mask), mask=mask)


@run
def vectors(rng):
    x, y = normal(rng, 2, 777)
    return Run(vector_add, [x, y, np.zeros_like(x), 777], {2: x + y}, cdiv(777, 128), {"BLOCK": 128})


def saxpy(X, Y, n, a: xl.float32, BLOCK: Constexpr):
    """Y += a X, with one rounding; a workgroup takes every `num_programs`th block."""
    for start in range(xl.program_id(0) * BLOCK, n, xl.num_programs(0) * BLOCK):
        i = start + xl.arange(0, BLOCK)
        x, y = xl.load(X + i, mask=i < n), xl.load(Y + i, mask=i < n)
        xl.store(Y + i, xl.fma(x, xl.full((BLOCK,), a), y), mask=i < n)


@run
def grid_stride(rng):
    x, y = normal(rng, 2, 333)
    expected = (np.float64(F32(0.3)) * x + y).astype(F32)
    return Run(saxpy, [x, y, 333, 0.3], {1: expected}, 3, {"BLOCK": 32})


def gelu(X, Y, BLOCK: Constexpr, TANH: Constexpr):
    m = xl.program_id(0) * 8
    x = X.tile((8, BLOCK), at=(m, 0)).load().to(xl.float32)
    if TANH:
        y = 0.5 * x * (1 + xl.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    else:
        y = 0.5 * x * (1 + xl.erf(x * math.sqrt(0.5)))
    Y.tile((8, BLOCK), at=(m, 0)).store(y.to(Y.dtype))


def _gelu(rng, tanh):
    x = normal(rng, 13, 30, dtype=F16)
    wide = x.astype(np.float64)
    inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    erf = np.vectorize(math.erf)
    y = 0.5 * wide * (1 + (np.tanh(inner) if tanh else erf(wide / np.sqrt(2))))
    return Run(gelu, [x, np.zeros_like(x)], {1: y.astype(F16)}, 2, {"BLOCK": 32, "TANH": tanh}, tolerance=1e-3)


@run
def gelu_by_erf(rng):
    return _gelu(rng, False)


@run
def gelu_by_tanh(rng):
    return _gelu(rng, True)


def swiglu(GATE, UP, OUT, n, BLOCK: Constexpr):
    row, i = xl.program_id(0), xl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        at, mask = row * n + start + i, start + i < n
        gate, up = xl.load(GATE + at, mask=mask).to(xl.float32), xl.load(UP + at, mask=mask).to(xl.float32)
        xl.store(OUT + at, (gate * xl.sigmoid(gate) * up).to(OUT.dtype), mask=mask)


@run
def swiglu_rows(rng):
    gate, up = normal(rng, 2, 5, 77, dtype=BF16)
    g = gate.astype(F32)
    out = (g / (1 + np.exp(-g)) * up.astype(F32)).astype(BF16)
    return Run(swiglu, [gate, up, np.zeros_like(gate), 77], {2: out}, 5, {"BLOCK": 32}, tolerance=1e-2)


def rope(X, COS, SIN, OUT, D: Constexpr):
    """Rotary embedding: the halves of each row are rotated by its angles."""
    row = xl.program_id(0) * 8
    half = D // 2
    low = X.tile((8, half), at=(row, 0)).load()
    high = X.tile((8, half), at=(row, half)).load()
    c, s = COS.tile((8, half), at=(row, 0)).load(), SIN.tile((8, half), at=(row, 0)).load()
    OUT.tile((8, half), at=(row, 0)).store(low * c - high * s)
    OUT.tile((8, half), at=(row, half)).store(high * c + low * s)


@run
def rotary_embedding(rng):
    x, angles = normal(rng, 21, 64), normal(rng, 21, 32)
    c, s = np.cos(angles), np.sin(angles)
    low, high = x[:, :32], x[:, 32:]
    out = np.concatenate([low * c - high * s, high * c + low * s], 1)
    return Run(rope, [x, c, s, np.zeros_like(x)], {3: out}, 3, {"D": 64})


def dropout(X, OUT, n, p: xl.float32, SEED: Constexpr, BLOCK: Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    word, _, _, _ = xl.philox(SEED, i, 0, 0, 0)
    uniform = (word >> 8).to(xl.float32) * (1 / (1 << 24))
    x = xl.load(X + i, mask=i < n)
    xl.store(OUT + i, xl.where(uniform >= p, x / (1 - p), 0.0), mask=i < n)


def philox(counter, key):
    words = [counter.astype(np.uint64), *np.zeros((3, *counter.shape), np.uint64)]
    low = np.uint64(0xFFFFFFFF)
    k0, k1 = key
    for _ in range(10):
        first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [second >> 32 ^ words[1] ^ k0, second & low, first >> 32 ^ words[3] ^ k1, first & low]
        words = [np.uint64(w) & low for w in words]
        k0, k1 = np.uint64((int(k0) + 0x9E3779B9) % 2**32), np.uint64((int(k1) + 0xBB67AE85) % 2**32)
    return words


@run
def dropout_with_philox(rng):
    x = normal(rng, 300)
    uniform = (philox(np.arange(300), (np.uint64(123), np.uint64(0)))[0] >> 8).astype(F32) * F32(2**-24)
    out = np.where(uniform >= F32(0.4), x / (F32(1) - F32(0.4)), F32(0))
    return Run(dropout, [x, np.zeros_like(x), 300, 0.4], {1: out}, 5, {"SEED": 123, "BLOCK": 64})


def adamw(W, G, M, V, n, rate: xl.float32, step: xl.int32, BLOCK: Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    mask = i < n
    w, g, m, v = (xl.load(array + i, mask=mask) for array in (W, G, M, V))
    m = 0.9 * m + (1 - 0.9) * g
    v = 0.999 * v + (1 - 0.999) * g * g
    correction1, correction2 = 1 - xl.exp2(step * math.log2(0.9)), 1 - xl.exp2(step * math.log2(0.999))
    w = w * (1 - 0.01 * rate) - rate * (m / correction1) / (xl.sqrt(v / correction2) + 1e-8)
    for array, value in ((W, w), (M, m), (V, v)):
        xl.store(array + i, value, mask=mask)


@run
def adamw_step(rng):
    w, g, m = normal(rng, 3, 150)
    v = rng.random(150).astype(F32)
    m1, v1 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    w1 = w * (1 - 0.01 * 0.1) - 0.1 * (m1 / (1 - 0.9**7)) / (np.sqrt(v1 / (1 - 0.999**7)) + 1e-8)
    expected = {0: w1, 2: m1, 3: v1}
    return Run(adamw, [w, g, m, v, 150, 0.1, 7], expected, 3, {"BLOCK": 64}, tolerance=1e-4)


def black_scholes(S, K, T, CALL, PUT, n, r: xl.float32, v: xl.float32, BLOCK: Constexpr):
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    mask = i < n
    s, k, t = (
        xl.load(S + i, mask=mask, other=1.0),
        xl.load(K + i, mask=mask, other=1.0),
        xl.load(T + i, mask=mask, other=1.0),
    )

    def normal_below(x):
        return 0.5 + 0.5 * xl.erf(x * math.sqrt(0.5))

    deviation = v * xl.sqrt(t)
    d1 = (xl.log(s / k) + (r + 0.5 * v * v) * t) / deviation
    discounted = k * xl.exp(-r * t)
    call = s * normal_below(d1) - discounted * normal_below(d1 - deviation)
    xl.store(CALL + i, call, mask=mask)
    xl.store(PUT + i, call - s + discounted, mask=mask)


@run
def options_by_black_scholes(rng):
    s, k = rng.uniform(50, 150, (2, 100)).astype(F32)
    t = rng.uniform(0.1, 2, 100).astype(F32)
    phi = np.vectorize(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))))
    d1 = (np.log(s / k) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
    call = s * phi(d1) - k * np.exp(-0.02 * t) * phi(d1 - 0.3 * np.sqrt(t))
    expected = {3: call, 4: call - s + k * np.exp(-0.02 * t)}
    out = [np.zeros_like(s), np.zeros_like(s)]
    return Run(black_scholes, [s, k, t, *out, 100, 0.02, 0.3], expected, 4, {"BLOCK": 32}, tolerance=1e-3)


def mandelbrot(COUNTS, W: Constexpr, most: xl.int32):
    """A line of points runs until all of them have left."""
    y = xl.program_id(0)
    x = xl.arange(0, W)
    cr, ci = x * (3 / W) - 2, xl.full((W,), y * 0.125 - 1)
    zr, zi, count, turn = xl.zeros((W,)), xl.zeros((W,)), xl.zeros((W,), np.int32), 0
    inside = zr * zr + zi * zi < 4
    while inside.any() and turn < most:
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        inside = inside & (zr * zr + zi * zi < 4)
        count += inside
        turn += 1
    COUNTS.tile((1, W), at=(y, 0)).store(count.expand_dims(0))


@run
def mandelbrot_set(rng):
    x, y = np.meshgrid(np.arange(32).astype(F32) * F32(3 / 32) - F32(2), np.arange(9).astype(F32) * F32(0.125) - F32(1))
    zr, zi, count, inside = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, I32), np.ones(x.shape, bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(8):
            zr, zi = zr * zr - zi * zi + x, F32(2) * zr * zi + y
            inside &= zr * zr + zi * zi < 4
            count += inside
    return Run(mandelbrot, [np.zeros((9, 32), I32)], {0: count}, 9, {"W": 32, "most": 8})


def life(OLD, NEW, ROWS: Constexpr, COLUMNS: Constexpr):
    """Conway's game; cells beyond the edges are dead."""
    r, c = xl.program_id(1) * ROWS, xl.program_id(0) * COLUMNS
    count = xl.zeros((ROWS, COLUMNS), np.int32)
    for dr in xl.static_range(-1, 2):
        for dc in xl.static_range(-1, 2):
            if (dr, dc) != (0, 0):
                count += OLD.tile((ROWS, COLUMNS), at=(r + dr, c + dc)).load()
    alive = OLD.tile((ROWS, COLUMNS), at=(r, c)).load() != 0
    NEW.tile((ROWS, COLUMNS), at=(r, c)).store(((count == 3) | (alive & (count == 2))).to(NEW.dtype))


@run
def game_of_life(rng):
    old = rng.integers(0, 2, (21, 45)).astype(U8)
    wide = np.pad(old, 1).astype(int)
    count = sum(np.roll(wide, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1))[1:-1, 1:-1] - old
    new = ((count == 3) | ((old == 1) & (count == 2))).astype(U8)
    return Run(life, [old, np.zeros_like(old)], {1: new}, (3, 3), {"ROWS": 8, "COLUMNS": 16})


def quantize(X, Q, SCALES, n, BLOCK: Constexpr):
    """Rows to int8 by the greatest absolute value of each."""
    row, i = xl.program_id(0), xl.arange(0, BLOCK)
    x = xl.load(X + row * n + i, mask=i < n, other=0.0)
    scale = abs(x).max() / 127
    SCALES[row] = scale
    xl.store(Q + row * n + i, xl.round(x / scale).to(xl.int8), mask=i < n)


@run
def quantization_of_rows(rng):
    x = normal(rng, 7, 50)
    scale = abs(x).max(1) / F32(127)
    q = np.rint(x / scale[:, None]).astype(I8)
    return Run(quantize, [x, np.zeros(x.shape, I8), np.zeros(7, F32), 50], {1: q, 2: scale}, 7, {"BLOCK": 64})


def heat(OLD, NEW, N: Constexpr):
    m, n = xl.program_id(1) * 8, xl.program_id(0) * N
    at = lambda dr, dc: OLD.tile((8, N), at=(m + dr, n + dc)).load()  # noqa: E731
    NEW.tile((8, N), at=(m, n)).store(0.25 * (at(-1, 0) + at(1, 0) + (at(0, -1) + at(0, 1))))


@run
def stencil_of_five_points(rng):
    old = normal(rng, 19, 37)
    p = np.pad(old, 1)
    new = F32(0.25) * (p[:-2, 1:-1] + p[2:, 1:-1] + (p[1:-1, :-2] + p[1:-1, 2:]))
    return Run(heat, [old, np.zeros_like(old)], {1: new}, (2, 3), {"N": 32})


def morton(X, Y, CODES, n, BLOCK: Constexpr):
    """The bits of two coordinates interleaved."""
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)

    def spread(v):
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            v = (v ^ (v << shift)) & mask
        return v

    x, y = (xl.load(array + i, mask=i < n).to(xl.uint32) for array in (X, Y))
    xl.store(CODES + i, spread(x) | spread(y) << 1, mask=i < n)


@run
def morton_codes(rng):
    x, y = rng.integers(0, 1 << 16, (2, 70)).astype(np.uint16)
    codes = [sum((int(a) >> k & 1) << 2 * k | (int(b) >> k & 1) << 2 * k + 1 for k in range(16)) for a, b in zip(x, y)]
    return Run(morton, [x, y, np.zeros(70, U32), 70], {2: np.array(codes, U32)}, 3, {"BLOCK": 32})


def checked_sum(X, OUT, FLAGS, n, BLOCK: Constexpr):
    """Sums of integers that say where they wrap around."""
    i = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
    x = xl.load(X + i, mask=i < n, other=0)
    total = x + x * 3
    exact = x.to(xl.int64) * 4
    xl.store(OUT + i, total, mask=i < n)
    xl.store(FLAGS + i, (total.to(xl.int64) != exact).to(xl.int8), mask=i < n)


@run
def sums_that_wrap(rng):
    x = rng.integers(-(2**31), 2**31, 90).astype(I32)
    total = (x.astype(np.int64) * 4).astype(I32)
    flags = (total != x.astype(np.int64) * 4).astype(I8)
    return Run(checked_sum, [x, np.zeros(90, I32), np.zeros(90, I8), 90], {1: total, 2: flags}, 3, {"BLOCK": 32})


def relu_backward(X, DY, DX):
    x, dy = X.tile((16, 16), at=(0, 0)).load(), DY.tile((16, 16), at=(0, 0)).load()
    DX.tile((16, 16), at=(0, 0)).store(xl.where(x > 0, dy, dy * 0.125))


@run
def leaky_relu_backward(rng):
    x, dy = whole(rng, 2, 13, 11, dtype=BF16)
    dx = np.where(x > 0, dy.astype(F32), dy.astype(F32) * F32(0.125)).astype(BF16)
    return Run(relu_backward, [x, dy, np.zeros_like(x)], {2: dx})
