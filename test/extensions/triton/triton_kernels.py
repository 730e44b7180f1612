"""Kernels of the tests, in Triton's language: Triton reads their source from a file."""

import triton
import triton.language as tl


@triton.jit
def add(X, Y, Z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(Z + i, tl.load(X + i, mask=mask) + tl.load(Y + i, mask=mask), mask=mask)


@triton.jit
def unmasked(X, Y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i)
    tl.store(Y + i, x, mask=i < n)


@triton.jit
def racing(X, n):
    x = tl.load(X)
    tl.store(X, x + tl.program_id(0))


@triton.jit
def asserting(X, n):
    tl.device_assert(n > 3, "n is small")
    tl.device_print("n", n)
    tl.store(X, n)


@triton.jit
def dividing(X, Y, n, m, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(X + i)
    y = tl.load(Y + i)
    quotient = x // y
    position = tl.program_id(0) // n
    rest = x % m
    tl.store(X + i + position, quotient + rest + m // 3)


@triton.jit
def unsigned_remainder(X, Y, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(X + i, tl.load(X + i).to(tl.uint32) % tl.load(Y + i).to(tl.uint32))


@triton.jit
def printing(X, Y, n, B: tl.constexpr):
    i = tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(X + i)
    tl.device_print("begins 100%")
    tl.device_print("x", x)
    tl.device_print("", x, n, hex=True)
    tl.device_print("sum", tl.sum(x))
    tl.device_print("large", x > 2)
    tl.device_print("at", X + i)
    y = tl.load(Y + i[:, None] + tl.arange(0, 2)[None, :])
    tl.device_print("y", y)
    tl.device_print("y", y, hex=True)


@triton.jit
def printing_matrix(X, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(X + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.device_print("x", x)
    tl.device_print("transposed", tl.trans(x).reshape(N, 2, M // 2))
    tl.device_print("sum", tl.sum(x, axis=0))


@triton.jit
def matmul(
    A, B, C, M, N, K, sam, sak, sbk, sbn, scm, scn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr = "ieee",
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = A + m[:, None] * sam + k[None, :] * sak
    b = B + k[:, None] * sbk + n[None, :] * sbn
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(tl.cdiv(K, BK)):
        x = tl.load(a, mask=(m[:, None] < M) & (k[None, :] < K - i * BK), other=0.0)
        y = tl.load(b, mask=(k[:, None] < K - i * BK) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc, input_precision=PRECISION)
        a += BK * sak
        b += BK * sbk
    tl.store(C + m[:, None] * scm + n[None, :] * scn, acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def cubed(X, Y, N: tl.constexpr):
    p = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(X + p)
    tl.store(Y + p, tl.dot(tl.dot(x, x), x))


@triton.jit
def softmax(X, Y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(X + row * stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(Y + row * stride + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def bounded(X, Y, M, BM: tl.constexpr, N: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, N)
    places = m[:, None] * N + n[None, :]
    x = tl.load(X + places, mask=m[:, None] < M)
    d = tl.make_tensor_descriptor(X, [M, N], [N, 1], [BM, N])
    y = d.load([tl.program_id(0) * BM, 0])
    tl.store(Y + places, x + y, mask=m[:, None] < M)


@triton.jit
def scaled(X, Y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(Y + i, tl.load(X + i) * n)


@triton.jit
def wrapped_position(X, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(X + i, (i * n > 0).to(tl.int32))


@triton.jit
def previous(X, Y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(Y + i, tl.load(X + i - n))


@triton.jit
def root(X, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(X + i, tl.sqrt(tl.load(X + i)))


@triton.jit
def swapped(X, Y, Z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p, q = X + i, Y + i
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        total = total * 2 + tl.load(p)
        p, q = q, p
    tl.store(Z + i, total)


@triton.jit
def chosen_pointers(X, Y, Z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = tl.where(i % 3 == 0, X + i, Y + i)
    tl.store(Z + i, tl.load(p))


@triton.jit
def returns_early(X, Y, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    x = tl.load(X + pid)
    if x < 0:
        tl.store(Y + pid, 0 - x)
        return
    tl.store(Y + pid, x + 100)


@triton.jit(noinline=True)
def weighed(x, y, w):
    if w > 2:
        return x * w
    return x + y


@triton.jit
def calls(X, Y, Z):
    pid = tl.program_id(0)
    x, y = tl.load(X + pid), tl.load(Y + pid)
    tl.store(Z + pid, weighed(x, y, pid) + weighed(y, x, 5))


@triton.jit
def collatz(X, Y):
    pid = tl.program_id(0)
    x = tl.load(X + pid)
    steps = 0
    while x > 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    tl.store(Y + pid, steps)


@triton.jit
def atomics(X, V, OLD, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(V + i)
    tl.store(OLD + i, tl.atomic_max(X + i, v))
    tl.atomic_min(X + BLOCK + i, v)
    tl.atomic_add(X + 2 * BLOCK + i, v, mask=i % 2 == 0, sem="relaxed", scope="cta")
    tl.atomic_xchg(X + 3 * BLOCK + i, v)
    tl.atomic_and(X + 4 * BLOCK + i, v)
    tl.atomic_or(X + 5 * BLOCK + i, v)
    tl.atomic_xor(X + 6 * BLOCK + i, v)
    tl.atomic_cas(X + 7 * BLOCK + i, v, v + 1)


@triton.jit
def published(X, F, Y, BLOCK: tl.constexpr, SEM: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(X + i, i + 5)
        tl.debug_barrier()
        tl.atomic_xchg(F, 1, sem=SEM)
    else:
        tl.atomic_poll(F, 1, sem="acquire")
        tl.debug_barrier()
        tl.store(Y + i, tl.load(X + i))


@triton.jit
def locked(X, L, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    while tl.atomic_cas(L, 0, 1) == 1:
        pass
    tl.store(X + i, tl.load(X + i) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(L, 0)


@triton.jit
def behind_a_loop(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The block of which a loop computes the position."""
    first = 0
    for k in range(n):
        first += k * BLOCK
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + first + i))


@triton.jit
def polled(F, OUT, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(OUT + i, tl.atomic_poll(F + i, 1, timeout_ns=5000))


@triton.jit
def reduced_block(X, Y, M, N, BM: tl.constexpr, BN: tl.constexpr, KIND: tl.constexpr):
    d = tl.make_tensor_descriptor(Y, [M, N], [N, 1], [BM, BN])
    v = tl.load(X + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :])
    if KIND == "add":
        d.atomic_add([2, 16], v)
    elif KIND == "min":
        d.atomic_min([2, 16], v)
    elif KIND == "max":
        d.atomic_max([2, 16], v)
    else:
        d.atomic_xor([2, 16], v)


@triton.jit
def scattered_rows(X, R, Y, M, N, ROWS: tl.constexpr, BN: tl.constexpr):
    y = tl.make_tensor_descriptor(Y, [M, N], [N, 1], [1, BN])
    x = tl.load(X + tl.arange(0, ROWS)[:, None] * BN + tl.arange(0, BN)[None, :])
    y.scatter(x, tl.load(R + tl.arange(0, ROWS)), 8)


@triton.jit
def descriptors(X, Y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(X, [M, N], [N, 1], [BM, BN])
    y = tl.make_tensor_descriptor(Y, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    y.store([m, n], x.load([m, n]) * 2)


@triton.jit
def host_descriptor(desc, Y, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(Y + i, desc.load([4, 16]))


@triton.jit
def gathered_rows(X, R, Y, M, N, ROWS: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(X, [M, N], [N, 1], [1, BN])
    rows = tl.load(R + tl.arange(0, ROWS))
    y = x.gather(rows, 8)
    tl.store(Y + tl.arange(0, ROWS)[:, None] * BN + tl.arange(0, BN)[None, :], y)


@triton.jit
def scanned(X, Y, M: tl.constexpr, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(Y + i, tl.cumsum(tl.load(X + i), axis=1, reverse=REVERSE))


@triton.jit
def largest(X, V, P, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v, p = tl.max(tl.load(X + i), axis=1, return_indices=True)
    tl.store(V + tl.arange(0, M), v)
    tl.store(P + tl.arange(0, M), p)


@triton.jit
def sorted_rows(X, Y, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(Y + i, tl.sort(tl.load(X + i), dim=1))


@triton.jit
def _least_and_sign(a, b):
    if a < b:
        return a, -1
    return b, 1


@triton.jit
def mapped(X, Y, V, S, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v, s = tl.map_elementwise(_least_and_sign, tl.load(X + i), tl.load(Y + i))
    tl.store(V + i, v)
    tl.store(S + i, s)


@triton.jit
def unsigned(X, Y, Z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y = tl.load(X + i), tl.load(Y + i)
    tl.store(Z + i, x // y)
    tl.store(Z + BLOCK + i, x % y)
    tl.store(Z + 2 * BLOCK + i, tl.umulhi(x, y))
    tl.store(Z + 3 * BLOCK + i, (x < y).to(tl.uint32) + (x >> 3))


@triton.jit
def converted(X, Y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(Y + i, tl.load(X + i).to(Y.dtype.element_ty))


@triton.jit
def calls_itself(X, n):
    if n > 0:
        calls_itself(X, n - 1)


@triton.jit
def assembled(X, Y, S, Z, W, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y, s = tl.load(X + i), tl.load(Y + i), tl.load(S + i)
    z = tl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $2, $3;", "=r,r,r,r", [x, y, s], dtype=tl.int32, is_pure=True, pack=1
    )
    tl.store(Z + i, z)
    a, b = tl.inline_asm_elementwise(
        """
        {
            .reg .b32 t;
            and.b32 t, $2, 0x1F1F1F1F;   // a comment
            shl.b32 $0, t, 3;
            sub.u32 $1, $3, $2;
        }
        """,
        "=r,=r,r,r",
        [x, y],
        dtype=(tl.int32, tl.int32),
        is_pure=True,
        pack=1,
    )
    tl.store(Z + BLOCK + i, a)
    tl.store(Z + 2 * BLOCK + i, b)
    tl.store(
        W + i, tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=r,r", [s.to(tl.float32)], tl.float32, True, 1)
    )


@triton.jit
def assembled_otherwise(X, Y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    y = tl.inline_asm_elementwise("vadd.u32.u32.u32 $0, $1, $1;", "=r,r", [tl.load(X + i)], tl.int32, True, 1)
    tl.store(Y + i, y)


@triton.jit
def sums_of_columns(x, out, N: tl.constexpr):
    row, column = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    sums = tl.cumsum(tl.trans(tl.load(x + row * N + column)), 1)
    tl.store(out + row * N + column, tl.reshape(sums, (N, N)))


@triton.jit
def sums_of_groups(tables, sizes, out, BLOCK: tl.constexpr):
    """The sum of the floats at each address of a table."""
    group = tl.program_id(0)
    first = tl.load(tables + group).to(tl.pointer_type(tl.float32))
    offsets = tl.arange(0, BLOCK)
    tl.store(out + group, tl.sum(tl.load(first + offsets, mask=offsets < tl.load(sizes + group), other=0.0)))


@triton.jit
def segmented(a, a_begins, b, b_begins):
    return tl.where(b_begins, b, a + b), a_begins | b_begins


@triton.jit
def truth_values(x_ptr, flag_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x, flags = tl.load(x_ptr + at), tl.load(flag_ptr + at) != 0
    sums, begun = tl.associative_scan((x, flags), AXIS, segmented, reverse=REVERSE)
    either = tl.gather(tl.where(x > 0, flags, begun), tl.abs(x) % 8, AXIS)
    tl.store(out_ptr + at, sums + either.to(tl.int32) * 1000)


@triton.jit
def reversed_copy(X, Y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(Y + i, tl.load(X + N - 1 - i))


@triton.jit
def rows_of_quotients(x, o, n, m, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr, MASKED: tl.constexpr):
    program = tl.program_id(0)
    rows = program // n * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    places = x + rows[:, None] * stride + columns[None, :]
    if MASKED:
        values = tl.load(places, mask=(rows[:, None] < m) & (columns[None, :] < COLUMNS), other=-1.0)
    else:
        values = tl.load(places)
    out = program * ROWS + tl.arange(0, ROWS)
    tl.store(o + out[:, None] * COLUMNS + columns[None, :], values)
