"""What kernels do besides computing: checks, output, hints, barriers, ops of MLIR, and loops that load ahead."""

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import Constexpr, DiagnosticError

from .computing import built, check

BF16, F32, I32 = ml_dtypes.bfloat16, np.float32, np.int32
SMALL = np.arange(128, dtype=I32).reshape(8, 16) - 40
ENGINES = ("eager", "reference", "interpreter", "jit")


def checked(X, Y):
    x = X.tile((8, 16), at=(0, 0)).load()
    xl.device_assert(x < 100, "x is too large")
    xl.device_assert(x < 0, "of the masked ones", mask=x < -10)
    Y.tile((8, 16), at=(0, 0)).store(x)


@pytest.mark.parametrize("engine", ENGINES)
def test_device_assert_stops_at_its_line(engine):
    kernel, x, y = xegpu_py.jit(checked, engine=engine), SMALL.copy(), np.zeros_like(SMALL)
    kernel(x, y)
    np.testing.assert_array_equal(x, y)
    x[3, 3] = 200
    with pytest.raises(DiagnosticError) as caught:
        kernel(x, y)
    where = caught.value.diagnostics[0].position
    assert (where.file, where.line, where.column) == (__file__, checked.__code__.co_firstlineno + 2, 5)
    assert "x is too large" in str(caught.value)


def test_assumptions_and_expected_zeros_are_checked():
    def kernel(X, Y):
        x = X.tile((8, 16), at=(0, 0)).load()
        xl.assume((x < 100).all())
        Y.tile((8, 16), at=(0, 0)).store(xl.expect_zero(x, x == 0))

    x, y = SMALL.copy(), np.zeros_like(SMALL)
    run = built(kernel, [x, y])
    run(x, y)
    np.testing.assert_array_equal(x, y)
    with pytest.raises(DiagnosticError):
        run(x + 90, y)


@pytest.mark.parametrize("engine", ENGINES)
def test_device_print(engine, capsys):
    @xegpu_py.jit(engine=engine)
    def kernel(X, Y):
        x = X.tile((8, 16), at=(0, 0)).load()
        xl.device_print("100% of", x.sum(), x[0, :2], x[0, 0] < 0, x[0, 1].to(xl.float16))
        xl.device_print("bits", x[0, 3], hex=True)
        Y.tile((8, 16), at=(0, 0)).store(x)

    kernel(SMALL + 43, np.zeros_like(SMALL))
    assert capsys.readouterr().out == "100% of 8512 3 4 0 4.000000\nbits 6\n" * 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_are_printed_with_their_sign(dtype, capsys):
    """At both ends of each type, in base 10 and 16."""

    @xegpu_py.jit(engine="interpreter")
    def kernel(X):
        xl.device_print("x", X[0], X[1])
        xl.device_print("h", X[0], X[1], hex=True)

    info = np.iinfo(dtype)
    kernel(np.array([info.min, info.max], dtype))
    expected = f"x {info.min} {info.max}\nh {info.min % (1 << info.bits):x} {info.max:x}\n"
    assert capsys.readouterr().out == expected


@xegpu_py.jit
def talks(X, Y, MOST: Constexpr):
    m = xl.program_id(0)
    x = X.tile((32, 16), at=(m * 32, 0), map=xl.WgMap((4, 1), (8, 16))).load()
    xl.device_print("%", m, x.sum(), x[9, :2])
    if x.max() > 600:
        xl.device_print("great:", x.max())
    xl.device_assert(x < MOST, "100% of x")
    Y.tile((32, 16), at=(m * 32, 0)).store(x)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_workgroup_prints_once(engine, capsys):
    """Workgroups print in order, what they print under a condition of the kernel included, and before they fail."""
    x = np.arange(1024, dtype=F32).reshape(64, 16)
    kernel, first = talks.with_options(engine=engine), "% 0 130816.000000 144.000000 145.000000\n"
    both = f"{first}% 1 392960.000000 656.000000 657.000000\ngreat: 1023.000000\n"
    kernel(x, np.zeros_like(x), MOST=2000, grid=2)
    assert capsys.readouterr().out == both
    with pytest.raises(DiagnosticError, match="assertion failed: 100% of x") as caught:
        kernel(x, np.zeros_like(x), MOST=600, grid=2)
    assert caught.value.diagnostics[0].position.line == talks.__wrapped__.__code__.co_firstlineno + 7
    assert any("in workgroup (1, 0, 0)" in n.message or "workgroup (1, 0, 0)" in n.message
               for n in caught.value.diagnostics[0].notes)  # fmt: skip
    assert capsys.readouterr().out == both


def test_static_print_and_assert(capsys):
    @xegpu_py.jit
    def kernel(X, N: Constexpr):
        x = X.tile((8, 16), at=(0, 0)).load()
        xl.static_print("tile", x, N, sep=": ")
        xl.static_assert(N == 3, "three only")
        X.tile((8, 16), at=(0, 0)).store(x)

    kernel(SMALL.copy(), N=3)
    assert "tile: int32[8, 16]: 3" in capsys.readouterr().out
    with pytest.raises(DiagnosticError, match="static assertion failed: three only"):
        kernel(SMALL.copy(), N=4)


def test_hints_change_nothing():
    def function(v):
        a = xl.max_contiguous(xl.multiple_of(v, 8), [1, 16])
        return xl.max_constancy(a, 1) + xl.zeros_like(v)

    check(function, [SMALL], SMALL)
    for numbers in (0, -8, True, 2.0, [8, 0], "8", None):
        with pytest.raises(TypeError, match="multiple_of needs positive integers"):
            check(lambda v, numbers=numbers: xl.multiple_of(v, numbers), [SMALL], SMALL)


def test_ops_of_mlir():
    def function(v):
        product = xl.inline_mlir("%p = arith.muli $0, $1 : $t0\n%s = arith.addi %p, $0 : $t0\nreturn %s : $t0", v, v)
        cube = v.reshape(2, 4, 16)
        both = xl.inline_mlir("return $0, $0 : $t0, $t0", cube, dtype=(xl.uint32, None))
        return product, both[0].to(xl.int32), both[1]

    check(function, [SMALL], (SMALL * SMALL + SMALL, *[SMALL.reshape(2, 4, 16)] * 2))
    check(function, [SMALL], (SMALL * SMALL + SMALL, *[SMALL.reshape(2, 4, 16)] * 2), workgroup=True)
    with pytest.raises(ValueError, match="ends with 'return'"):
        check(lambda v: xl.inline_mlir("%p = arith.muli $0, $0 : $t0", v), [SMALL], SMALL)
    with pytest.raises(ValueError, match="inline_mlir: "):
        check(lambda v: xl.inline_mlir("%p = arith.nonsense $0 : $t0\nreturn %p : $t0", v), [SMALL], SMALL)


@pytest.mark.parametrize("workgroup", [False, True])
def test_instructions_of_visa(workgroup):
    big = (SMALL * 0x1234567).astype(np.uint32)
    real = SMALL.astype(F32) / 8

    def function(v, r):
        bits = xl.inline_asm_elementwise("xor $0:ud $1:ud 0xff:ud", "=r, r", [v], xl.uint32, is_pure=True, pack=1)
        high = xl.inline_visa("mulh %h:ud $1:ud $2:ud\nadd $0:ud %h:ud 5:ud", v, 0xDEADBEEF)
        clipped = xl.inline_visa("mul %t:f $1:f 0.5:f\nadd.sat $0:f %t:f -$2:f", r, xl.full((1, 16), 0.25))
        return bits, high, clipped, xl.inline_visa("mov $0:d $1:f", r[0, 0], dtype=xl.int32)

    high = (big.astype(np.uint64) * np.uint64(0xDEADBEEF) >> np.uint64(32)).astype(np.uint32) + np.uint32(5)
    expected = (big ^ np.uint32(0xFF), high, np.clip(real / 2 - F32(0.25), 0, 1), np.array(int(real[0, 0]), I32))
    check(function, [big, real], expected, workgroup)


REFUSED = {
    "instruction": ("frob $0:d $1:d", "has no instruction 'frob'"),
    "load": ("lsc_load $0:d $1:d", "cannot take 'lsc_load': it works on"),
    "update": ("lsc_atomic_iadd.ugm $0:d $1:d", "subgroups that share a part would each update it"),
    "barrier": ("nbarrier.wait 1", "see barrier, fence and named_barrier"),
    "jump": ("jmp Out", "the kernel's own if, while and for become jumps"),
    "product": ("dpas $0:d $1:d", "see dot and dot_scaled"),
    "operands": ("add $0:d $1:d", "'add' has 3 operands"),
    "two results": ("madw $0:d $1:d $1:d $1:d", "cannot take 'madw': it has two results"),
    "carry": ("addc $0:ud $1:ud $1:ud", "cannot take 'addc': it has two results"),
    "attribute": ("bfn $0:d $1:d $1:d $1:d", "cannot take 'bfn': it has more than operands"),
    "type": ("mulh $0:ud $1:f 3:f", "'mulh' has no operand of type f"),
    "width": ("add $0:d $1:q 3:d", "the widths must be the same"),
    "name": ("add $0:d %t:d 3:d", "knows no operand '%t'"),
    "result": ("add %t:d $1:d 3:d", "has no instruction that writes $0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_instructions(name):
    text, message = REFUSED[name]
    with pytest.raises(DiagnosticError) as caught:
        check(lambda v: xl.inline_visa(text, v), [SMALL], SMALL)
    assert message in str(caught.value)


def test_constraints_of_instructions():
    with pytest.raises(ValueError, match="must be those of a result and 1 operands, but got '=r,=r,r'"):
        check(lambda v: xl.inline_asm_elementwise("xor $0:ud $1:ud 1:ud", "=r,=r,r", [v], xl.uint32), [SMALL], SMALL)


def test_the_reference_knows_no_instructions():
    with pytest.raises(DiagnosticError, match="is an instruction of vISA"):
        check(lambda v: xl.inline_visa("xor $0:ud $1:ud 0xff:ud", v), [SMALL], SMALL, engine="reference")


def test_named_barriers_and_fences():
    """One subgroup of two writes what the other one reads, in global memory."""

    def kernel(X, Y):
        pair = xl.named_barrier(1, 2)
        writes = xl.subgroup_id() == 0

        def copy(source, target, more):
            target.tile((8, 16), at=(0, 0)).store(source.tile((8, 16), at=(0, 0)).load() + more)

        from mlir import ir
        from mlir.dialects import scf

        for condition, source, target, first in ((writes, X, X, True), (~writes, X, Y, False)):
            if not first:
                xl.fence("global", "workgroup")
                pair.arrive()
                pair.wait()
            branch = scf.IfOp(condition.ir)
            with ir.InsertionPoint(branch.then_block):
                copy(source, target, 1)
                scf.YieldOp([])

    x, y = SMALL.copy(), np.zeros_like(SMALL)
    built(kernel, [x, y])(x, y, block=2)
    np.testing.assert_array_equal(y, SMALL + 2)
    with pytest.raises(ValueError, match="barriers are numbered 1 to 31"):
        built(lambda X: xl.named_barrier(0, 2), [x])
    with pytest.raises(ValueError, match="fence orders accesses of"):
        built(lambda X: xl.fence("everything"), [x])


def test_atomic_loads_and_stores():
    def kernel(X, Y):
        at = xl.arange(16)
        xl.atomic_store(Y + at, xl.atomic_load(X + at, scope="cta") + 1, mask=at < 9)

    x, y = SMALL[0].copy(), np.zeros(16, I32)
    built(kernel, [x, y])(x, y)
    np.testing.assert_array_equal(y, np.where(np.arange(16) < 9, x + 1, 0))


@xegpu_py.jit
def swap(X, EXPECTED, NEW, OLD):
    at = xl.arange(0, 40)
    here = at < 33
    expected, new = xl.load(EXPECTED + at), xl.load(NEW + at)
    old = xl.atomic_cas(X + at, expected, new, sem="acq_rel", scope="cta", mask=here)
    local = xl.shared((40,), X.dtype)
    xl.store(local + at, old)
    xl.barrier()
    xl.store(OLD + at, xl.atomic_cas(local + at, expected, new, mask=here))
    xl.barrier()
    xl.store(EXPECTED + at, xl.load(local + at))


@pytest.mark.each_value
@pytest.mark.parametrize("engine", ["eager", "both"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint16, np.int8, F32, BF16, ml_dtypes.float8_e5m2])
def test_compare_and_swap(dtype, engine):
    """In global and in shared local memory. Masked elements are unchanged, and read as zero."""
    rng = np.random.default_rng(0)
    x, expected = (rng.integers(0, 3, 40).astype(dtype) for _ in range(2))
    new, old = rng.integers(5, 9, 40).astype(dtype), np.ones(40, dtype)
    here, held = np.arange(40) < 33, expected.copy()
    after = np.where(here & (x == expected), new, x)
    before = np.where(here, x, np.zeros_like(x))
    swap.with_options(engine=engine)(x, expected, new, old)
    assert x.tobytes() == after.tobytes() and old.tobytes() == before.tobytes()
    assert expected.tobytes() == np.where(here & (before == held), new, before).tobytes()


def test_bits_are_compared():
    x, zero = np.array([0.0, -0.0, np.nan], F32), np.zeros(3, F32)
    expected = np.array([0.0, 0.0, np.nan], F32)

    def kernel(X, E, OLD):
        at = xl.arange(0, 3)
        xl.store(OLD + at, xl.atomic_cas(X + at, xl.load(E + at), 1))

    for engine in ENGINES:
        given, old = x.copy(), zero.copy()
        xegpu_py.jit(kernel, engine=engine)(given, expected, old)
        assert given.tobytes() == np.array([1, -0.0, 1], F32).tobytes() and old.tobytes() == x.tobytes()


@xegpu_py.jit
def locked(LOCK, COUNTS, SEEN, Y):
    """One workgroup gets the lock; all subgroups of each workgroup know the result."""
    m = xl.program_id(0)
    found = xl.atomic_cas(LOCK + 0, 0, 1)
    if found == 0:
        xl.atomic_add(COUNTS + 0, 1)
    number = xl.atomic_add(COUNTS + 1, 1)
    xl.store(SEEN + m, found)
    y = Y.tile((32, 32), at=(m * 32, 0), map=xl.WgMap((2, 2), (16, 16)))
    y.store(y.load() + number)


@pytest.mark.parametrize("engine", ["eager", "interpreter", "jit"])
def test_all_subgroups_get_what_an_update_found(engine):
    lock, counts, seen, y = np.zeros(1, I32), np.zeros(2, I32), np.full(4, 7, I32), np.zeros((128, 32), I32)
    locked.with_options(engine=engine)(lock, counts, seen, y, grid=4)
    assert lock.tolist() == [1] and counts.tolist() == [1, 4] and sorted(seen) == [0, 1, 1, 1]
    parts = y.reshape(4, -1)
    assert (parts == parts[:, :1]).all() and sorted(parts[:, 0]) == [0, 1, 2, 3]


def test_atomic_ops_take_tritons_arguments_only():
    def kernel(X, sem, scope):
        xl.atomic_add(X + xl.arange(4), 1, sem=sem, scope=scope)

    x = np.zeros(4, I32)
    for sem in (None, "acquire", "release", "acq_rel", "relaxed"):
        built(lambda X, sem=sem: kernel(X, sem, "sys"), [x])
    with pytest.raises(ValueError, match="the order of an atomic op is acquire, release, acq_rel, relaxed, not 'seq'"):
        built(lambda X: kernel(X, "seq", None), [x])
    with pytest.raises(ValueError, match="the scope of an atomic op is gpu, cta, sys, not 'grid'"):
        built(lambda X: kernel(X, None, "grid"), [x])
    with pytest.raises(TypeError, match="a tile takes no mask"):
        built(lambda X: xl.atomic_cas(X.tile((4,), at=(0,)), 0, 1, mask=xl.arange(4) < 2), [x])
    with pytest.raises(TypeError, match="atomic ops update tiles and pointers, not 5"):
        built(lambda X: xl.atomic_add(5, 1), [x])


def matmul(A, B, C, STAGES: Constexpr):
    acc = xl.zeros((16, 32))
    a, b = A.tile((16, 32), at=(0, 0)), B.tile((32, 32), at=(0, 0))
    for _ in xl.range(0, A.shape[1], 32, num_stages=STAGES):
        acc = xl.dot(a.load(), b.load(), acc)
        a.advance(columns=32)
        b.advance(rows=32)
    C.tile((16, 32), at=(0, 0)).store(acc)


@pytest.mark.parametrize("depth", [96, 107])
def test_stages_load_ahead(depth):
    """Also for sizes that are not a multiple of the step, and unaligned rows."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (16, depth)).astype(BF16), rng.integers(-3, 4, (depth, 32)).astype(BF16)
    before = []
    for stages in (1, 2):
        kernel, c = xegpu_py.jit(matmul), np.zeros((16, 32), F32)
        kernel(a, b, c, STAGES=stages)
        np.testing.assert_array_equal(c, a.astype(F32) @ b.astype(F32))
        (version,) = kernel.versions.values()
        text = version.compiled.ir("xegpu")
        before.append(text[: text.index("scf.for")].count("xegpu.load_nd"))
    assert before[0] == 0 < before[1], "the first blocks are loaded before the loop"


def test_stages_are_positive():
    with pytest.raises(ValueError, match="num_stages is a positive integer"):
        xl.range(4, num_stages=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'stages'"):
        xl.range(4, stages=2)
    assert xl.range(4, num_stages=3, flatten=True).ahead


def middle(a, b):
    """A function of the module, in which a chained comparison is one of values."""
    return xl.where(-20 < a < 30, a, b)


def several(X, Y, Z):
    """Functions that take functions, shapes of three dimensions, an intrinsic: as the eager engine runs them."""
    x = X.tile((8, 16), at=(0, 0)).load()
    cube = x.reshape(2, 4, 16).permute(1, 0, 2)[:, ::-1]
    total = xl.reduce(cube, (0, 1), lambda a, b: xl.maximum(a, b), keep_dims=False)
    scan = xl.associative_scan(x, 1, lambda a, b: a + b)
    Y.tile((8, 16), at=(0, 0)).store(xl.sort(scan, descending=True) + total + xl.map_elementwise(middle, x, x * 2))
    near = x.to(xl.float32).to(xl.float16, rounding="stochastic", random=x & 8191)
    Z.tile((8, 16), at=(0, 0)).store(near.to(xl.float32) + xl.rand(3, x))


def test_the_eager_engine_runs_them():
    found = []
    for engine in ("eager", "jit"):
        y, z = np.zeros_like(SMALL), np.zeros(SMALL.shape, F32)
        xegpu_py.jit(several, engine=engine)(SMALL.copy(), y, z)
        found.append((y, z))
    for a, b in zip(*found):
        assert a.tobytes() == b.tobytes()
    scan = np.sort(SMALL.cumsum(1, dtype=I32))[:, ::-1]
    chosen = np.where((SMALL > -20) & (SMALL < 30), SMALL, SMALL * 2)
    np.testing.assert_array_equal(found[0][0], scan + SMALL.reshape(2, 4, 16).max((0, 1)) + chosen)
