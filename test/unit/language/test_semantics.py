"""Types and operators of the tile language, against numpy; and what it refuses, at the user's line."""

import functools

import ml_dtypes
import numpy as np
import pytest

import xegpu_py
import xegpu_py.language as xl
from xegpu_py import DiagnosticError, language
from xegpu_py.language.scopes import fits_types, outline

F16, F32, I8, I32, U8, U32, BF16 = np.float16, np.float32, np.int8, np.int32, np.uint8, np.uint32, ml_dtypes.bfloat16
SMALL = np.arange(-8, 8, dtype=I32)


def applied(function, x, out):
    """What a function of a line of 16 elements gives in a kernel."""

    @language.tile_kernel((x.dtype, (1, 16)), (out, (1, 16)), engine="both")
    def kernel(X, Y):
        Y.tile((1, 16), at=(0, 0)).store(function(X.tile((1, 16), at=(0, 0)).load()))

    y = np.zeros((1, 16), out)
    kernel(x.reshape(1, 16), y)
    return y[0]


BYTES = np.array([0, 1, 2, 3, 7, 100, 126, 127, 128, 129, 130, 200, 253, 254, 255, 5], U8)
WORDS = np.array([0, 1, 5, 6, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1] * 2, U32)
REALS = np.array([0, -0.0, 1, -1.5, 2.5, 3.5, 1e-3, 1e4, -7, 0.1, 300, -300, 17, 5, 6, 8], F32)

# The function, its argument, the type of what it gives, and numpy's result.
CASES = {
    "true is 1": (lambda v: (v > 0).to(I32), SMALL, I32, lambda v: (v > 0).astype(I32)),
    "true is 1.0": (lambda v: (v > 0).to(F32), SMALL, F32, lambda v: (v > 0).astype(F32)),
    "floor division": (lambda v: v // 3, SMALL, I32, lambda v: v // 3),
    "floor division by negative": (lambda v: v // -3, SMALL, I32, lambda v: v // -3),
    "modulo": (lambda v: v % 3, SMALL, I32, lambda v: v % 3),
    "modulo by negative": (lambda v: v % -3, SMALL, I32, lambda v: v % -3),
    "reflected modulo": (lambda v: 100 % (v * 2 + 1), SMALL, I32, lambda v: 100 % (v * 2 + 1)),
    "integer times float": (lambda v: v * 0.5, SMALL, F32, lambda v: v.astype(F32) * F32(0.5)),
    "integer plus float": (lambda v: v + 1.5, SMALL, F32, lambda v: v.astype(F32) + F32(1.5)),
    "true division": (lambda v: v / 2, SMALL, F32, lambda v: v.astype(F32) / 2),
    "unsigned widens with zeros": (lambda v: v.to(I32), BYTES, I32, lambda v: v.astype(I32)),
    "unsigned comparison": (lambda v: xl.where(v > 5, v, v * 0), WORDS, U32, lambda v: np.where(v > 5, v, 0)),
    "unsigned maximum": (lambda v: v * 0 + v.max(1), BYTES, U8, lambda v: v * 0 + v.max()),
    "unsigned division": (lambda v: v // 3, WORDS, U32, lambda v: v // U32(3)),
    "unsigned remainder": (lambda v: v % 7, WORDS, U32, lambda v: v % U32(7)),
    "unsigned to float": (lambda v: v.to(F32), WORDS, F32, lambda v: v.astype(F32)),
    "unsigned shift": (lambda v: v >> 3, WORDS, U32, lambda v: v >> U32(3)),
    "shifts and bits": (lambda v: (v << 2) ^ (v >> 1) | ~v, SMALL, I32, lambda v: (v << 2) ^ (v >> 1) | ~v),
    "chained comparison": (
        lambda v: xl.where(-4 < v < 6, v, -v),
        SMALL,
        I32,
        lambda v: np.where((v > -4) & (v < 6), v, -v),
    ),
    "mixed widths": (lambda v: v + v.to(I8), SMALL, I32, lambda v: v + v),
    "mixed signs": (
        lambda v: v.to(U8).to(np.int16) + v.to(I8),
        SMALL,
        np.int16,
        lambda v: v.astype(U8).astype(np.int16) + v.astype(I8),
    ),
    "power": (lambda v: v**3, SMALL, I32, lambda v: v**3),
    "absolute": (lambda v: abs(v) - (-v), SMALL, I32, lambda v: abs(v) + v),
    "min and max": (lambda v: min(max(v, -3), 4), SMALL, I32, lambda v: np.clip(v, -3, 4)),
    "f16 and bf16": (
        lambda v: v.to(F16) + v.to(BF16),
        REALS,
        F32,
        lambda v: v.astype(F16).astype(F32) + v.astype(BF16).astype(F32),
    ),
    "f16 to bf16": (lambda v: v.to(F16).to(BF16).to(F32), REALS, F32, lambda v: v.astype(F16).astype(BF16).astype(F32)),
    "f32 to f8": (
        lambda v: v.to(ml_dtypes.float8_e5m2).to(F32),
        REALS,
        F32,
        lambda v: v.astype(ml_dtypes.float8_e5m2).astype(F32),
    ),
    "bits of a float": (lambda v: v.bitcast(I32) & 0xFFFF, REALS, I32, lambda v: v.view(I32) & 0xFFFF),
    "not equal": (lambda v: (v != v.max()).to(I32), SMALL, I32, lambda v: (v != v.max()).astype(I32)),
    "any and all": (
        lambda v: v * 0 + (v > 6).any().to(I32) * 10 + (v > 6).all().to(I32),
        SMALL,
        I32,
        lambda v: v * 0 + 10,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operators(name):
    function, x, out, model = CASES[name]
    np.testing.assert_array_equal(applied(function, x, out), model(x))


def test_conditions_on_what_is_known_only_as_the_kernel_runs():
    def branch(v):
        if v.max() > 6 and not v.min() > 0:
            return v + 1
        return v + 2

    np.testing.assert_array_equal(applied(branch, SMALL, I32), SMALL + 1)
    np.testing.assert_array_equal(applied(branch, SMALL - 20, I32), SMALL - 18)


def assigned_anew(v):
    place, total = xl.arange(16), v * 0
    for _ in range(4):
        total += place.to(I32)
        place = place + 16
    return total


def divided_in_place(v):
    place, total = v + 48, v * 0
    for _ in range(4):
        total += place
        place //= 2
    return total


def test_loops_carry_what_is_assigned():
    np.testing.assert_array_equal(applied(assigned_anew, SMALL, I32), 4 * np.arange(16) + 96)
    expected, place = SMALL * 0, SMALL + 48
    for _ in range(4):
        expected, place = expected + place, place // 2
    np.testing.assert_array_equal(applied(divided_in_place, SMALL, I32), expected)


def loop_without_iterations(v):
    for _ in range(0, -3, 1):
        v += 1
    for _ in range(3, 0, -1):
        v += 10
    return v


def test_ranges_are_pythons():
    np.testing.assert_array_equal(applied(loop_without_iterations, SMALL, I32), SMALL + 30)


def imports(v):
    import math

    return v + math.pi


def forever(v):
    return forever(v + 1)


def assigns_an_element(v):
    v[0] = 1
    return v


def sums_tiles(v):
    if v > 3:
        return v
    return v + 1


# Illegal code, and the error messages.
REFUSED = {
    "float and": (lambda v: v.to(F32) & 3, "'&' needs integers or truth values, not float32"),
    "float or": (lambda v: v.to(F32) | v.to(F32), "'|' needs integers or truth values, not float32"),
    "number that does not fit": (lambda v: v.to(I8) + 300, "300 does not fit int8"),
    "negative unsigned": (lambda v: v.to(U8) + -1, "-1 does not fit uint8"),
    "axis": (lambda v: v.sum(2), "axis 2 is out of bounds for a value of dimension 2"),
    "step 0": (lambda v: next(v for _ in range(0, 4, 0)), "range() arg 3 must not be zero"),
    "shapes": (lambda v: v + xl.zeros((1, 8), I32), "shape mismatch"),
    "and of lines": (lambda v: (v > 1) and (v < 3), "the truth value of bool[1, 16] is ambiguous"),
    "condition of a line": (sums_tiles, "the truth value of bool[1, 16] is ambiguous"),
    "int of a value": (lambda v: [1, 2, 3][v.max()], "list is indexed by what is known"),
    "iteration": (lambda v: sum(x for x in v), "int32[1, 16] cannot be iterated over"),
    "element": (assigns_an_element, "elements of int32[1, 16] cannot be assigned in a kernel"),
    "import": (imports, "'import' cannot be compiled in a kernel"),
    "recursion": (forever, "calls are nested too deep; functions are inlined"),
    "unknown name": (lambda v: v + missing, "name 'missing' is not defined"),  # noqa: F821
    "numpy function": (lambda v: np.exp(v), "exp() takes no value that is known only at run time"),
    "text of a value": (lambda v: xl.device_print(f"{v.max()}"), "the text of int32, which is known only at run time"),
    "text by str": (lambda v: xl.device_print(str(v)), "the text of int32[1, 16], which is known only at run time"),
    "numpy array": (lambda v: v * np.arange(16), "cannot combine int32[1, 16] and array("),
    "wrong arguments": (lambda v: (lambda x, *, y=1: x)(v, 2), "<lambda>(): too many positional arguments"),
    "too many elements": (
        lambda v: v + xl.zeros((2048, 16, 64)),
        "a value has at most 1048576 elements, unlike float32",
    ),
    "uint64 with signed": (lambda v: v.to(np.uint64) + v, "no integer type holds both uint64 and int32"),
    "fma of integers": (lambda v: xl.fma(v, v, v), "fma needs floating-point values, not int32"),
    "fdiv of integers": (lambda v: xl.fdiv(v, 3), "fdiv needs floating-point values"),
    "cat of scalars": (lambda v: xl.cat(v.max(), v.min()), "zero-dimensional arrays cannot be concatenated"),
    "unpacked words": (lambda v: xl.unpack_int4(v), "unpack_int4 needs bytes, not int32"),
    "packed floats": (lambda v: xl.pack_int4(v.to(F32)), "pack_int4 needs integers, not float32"),
    "an odd extent": (lambda v: xl.pack_int4(v[:, :3]), "pack_int4 needs an even last extent, but got int32[1, 3]"),
    "shift by all bits": (lambda v: v << 32, "cannot shift int32 by 32 bits"),
    "shift back": (lambda v: v >> -1, "cannot shift int32 by -1 bits"),
    "product of a line": (lambda v: xl.dot(v.ravel(), v), "dot multiplies matrices, and not int32[16] by int32[1, 16]"),
    "product of stacks": (
        lambda v: xl.dot(xl.zeros((2, 8, 16), F16), xl.zeros((3, 16, 16), F16)),
        "dot cannot multiply float16[2, 8, 16] by float16[3, 16, 16]: the leading dimensions differ",
    ),
    "matrix by a stack": (
        lambda v: xl.dot(xl.zeros((8, 16), F16), xl.zeros((3, 16, 16), F16)),
        "dot cannot multiply float16[8, 16] by float16[3, 16, 16]: the leading dimensions differ",
    ),
    "stack by a matrix": (
        lambda v: xl.dot(xl.zeros((3, 8, 16), F16), xl.zeros((16, 16), F16)),
        "dot cannot multiply float16[3, 8, 16] by float16[16, 16]: the leading dimensions differ",
    ),
    "sides of @": (
        lambda v: xl.zeros((8, 16), F16) @ xl.zeros((8, 16), F16),
        "'@' cannot multiply float16[8, 16] by float16[8, 16]",
    ),
    "types of @": (lambda v: xl.zeros((8, 8)) @ xl.zeros((8, 16)), "; dot(a, b, input_precision=...) says how"),
    "scaled factors": (
        lambda v: xl.dot_scaled(xl.zeros((8, 32), U8), None, "e5m2", xl.zeros((64, 16), U8), None, "e5m2"),
        "dot_scaled cannot multiply 8x32 by 64x16 elements",
    ),
    "a format's type": (
        lambda v: xl.dot_scaled(xl.zeros((8, 32), F16), None, "e5m2", xl.zeros((32, 16), U8), None, "e5m2"),
        "'lhs' of format 'e5m2' must be float8_e5m2, but got float16",
    ),
    "packed pairs": (
        lambda v: xl.dot_scaled(xl.zeros((8, 32), F16), None, "e2m1", xl.zeros((32, 16), U8), None, "e5m2"),
        "'lhs' of format 'e2m1' must be uint8 of two elements a byte, but got float16",
    ),
    "scales": (
        lambda v: xl.dot_scaled(
            xl.zeros((8, 32), U8), xl.zeros((8, 1), I32), "e5m2", xl.zeros((32, 16), U8), None, "e5m2"
        ),
        "'lhs_scale' must be uint8 or float8_e4m3fn, but got int32",
    ),
    "results of a reduction": (
        lambda v: xl.reduce((v, v), 1, lambda a, b, c, d: a + c),
        "the function takes 4 values and must return 2, not 1",
    ),
    "a group of all": (lambda v: v.sum(group=4), "a group needs an axis"),
    "two axes": (lambda v: v.argmax((0, 1)), "argmax takes one axis, not (0, 1)"),
    "length": (lambda v: v + len(v.max()), "a scalar has no length"),
    "squeeze": (lambda v: v.squeeze(1), "cannot squeeze axis 1 of int32[1, 16], whose extent is not 1"),
    "broadcast": (lambda v: v.broadcast_to(16), "cannot broadcast shape (1, 16) to (16,)"),
    "two ellipses": (lambda v: v[..., ...], "an index can only have a single ellipsis ('...')"),
    "slices without steps": (lambda v: v[:, ::0], "slice step cannot be zero"),
    "printed number": (lambda v: xl.device_print(3, v), "device_print needs a text first, not 3"),
    "printed matrix": (
        lambda v: xl.device_print("x", xl.zeros((64, 64))),
        "device_print shows values of up to 64 elements, not float32[64, 64]",
    ),
    "padding": (
        lambda v: xl.load(v, padding_option="one"),
        "padding_option is 'zero' or 'nan', not 'one'",
    ),
    "memory of pointers": (lambda v: xl.pointer_type(F32, 3), "pointers are to global memory, address space 1, not 3"),
    "rounding of integers": (lambda v: v.to(I8, fp_downcast_rounding="rtz"), "int32 becomes int8 without rounding"),
    "gather by floats": (lambda v: xl.gather(v, v.to(F32), 1), "indices are integers, not float32"),
    "empty range": (lambda v: xl.arange(3, 3), "arange(3, 3) has no elements"),
    "axis of the grid": (lambda v: xl.block_id(3), "the axes of the grid are 0, 1, 2 or 'x', 'y', 'z', not 3"),
    "name of an axis": (lambda v: xl.block_id("w"), "the axes of the grid are 0, 1, 2 or 'x', 'y', 'z', not 'w'"),
    "interleaved scalars": (
        lambda v: xl.interleave(v.max(), v.min()),
        "interleave needs values of at least one dimension",
    ),
    "bits": (lambda v: v.bitcast(F16), "cannot take the bits of int32 for float16: they have 32 and 16"),
    "rounding to floats": (
        lambda v: v.to(F16, fp_downcast_rounding="rtz"),
        "int32 is rounded to float16 to nearest only; convert it to float32 first",
    ),
    "precision": (
        lambda v: xl.dot(xl.zeros((8, 16)), xl.zeros((16, 16)), input_precision="tf31"),
        "there is no input_precision 'tf31'; there are ",
    ),
    "extents along K": (
        lambda v: xl.dot(xl.zeros((8, 16), F16), xl.zeros((8, 16), F16)),
        "dot cannot multiply float16[8, 16] by float16[8, 16]: their extents along K differ",
    ),
    "format": (
        lambda v: xl.dot_scaled(xl.zeros((8, 32), U8), None, "e9m9", xl.zeros((32, 16), U8), None, "e5m2"),
        "there is no format 'e9m9'; there are ",
    ),
    "line of a format": (
        lambda v: xl.dot_scaled(xl.zeros((32,), U8), None, "e5m2", xl.zeros((32, 16), U8), None, "e5m2"),
        "'lhs' must be a matrix, but got uint8[32]",
    ),
    "bitonic extent": (lambda v: xl.bitonic_merge(v[:, :12]), "needs an extent that is a power of two, but got 12"),
    "bins": (lambda v: xl.histogram(v.ravel(), 0), "histogram needs at least one bin, not 0"),
    "power of integers": (lambda v: v**v, "'**' needs floating-point values, or a constant exponent of 1 to 64"),
    "exponent 0": (lambda v: v**0, "'**' needs floating-point values, or a constant exponent of 1 to 64"),
    "exponent 65": (lambda v: v**65, "'**' needs floating-point values, or a constant exponent of 1 to 64"),
    "random floats": (
        lambda v: v.to(F32).to(F16, rounding="stochastic", random=v.to(F32)),
        "the random bits of stochastic rounding are integers",
    ),
    "visa of numbers": (lambda v: xl.inline_visa("", 3), "inline_visa needs an operand that is a value"),
    "memory of a value": (
        lambda v: xl.make_tensor_descriptor(v, (1, 4), (4, 1), (1, 4)),
        "tiles are of an array, or of what follows a pointer to one of",
    ),
    "pack": (lambda v: xl.map_elementwise(lambda x: x, v, pack=2), "for all elements at once: pack must be 1"),
    "fenced memory": (lambda v: xl.fence("local"), "fence orders accesses of global, shared, both, not 'local'"),
    "scope of a fence": (lambda v: xl.fence(scope="cta"), "the scope of a fence is workgroup or gpu, not 'cta'"),
    "assumption": (lambda v: xl.assume(1 > 2), "assumption does not hold"),
    "extents": (lambda v: xl.zeros((0, 4)), "a shape has positive extents, unlike (0, 4)"),
    "shift by the width": (lambda v: v << 32, "cannot shift int32 by 32 bits"),
    "bits of floats": (lambda v: ~v.to(F32), "'~' needs integers or truth values, not float32"),
    "groups": (lambda v: v.sum(1, group=5), "groups of 5 elements do not divide the 16 along axis 1"),
    "counted floats": (lambda v: xl.histogram(v.to(F32).ravel(), 4), "histogram needs integers, not float32"),
    "seed": (lambda v: xl.randint(v.max().to(F32), v), "a seed is an integer, not float32"),
    "uniform bytes": (lambda v: xl.uint_to_uniform_float(v.to(I8)), "needs integers of 32 or 64 bits, not int8"),
    "uniform floats": (lambda v: xl.uint_to_uniform_float(v.to(F32)), "needs integers of 32 or 64 bits, not float32"),
    "high bytes": (lambda v: xl.umulhi(v.to(I8), v.to(I8)), "umulhi needs integers of 32 or 64 bits, not int8"),
    "high floats": (lambda v: xl.umulhi(v.to(F32), v.to(F32)), "umulhi needs integers of 32 or 64 bits, not float32"),
    "split": (lambda v: xl.split(v), "split needs a last dimension of extent 2, but got int32[1, 16]"),
    "split number": (lambda v: xl.split(v.max()), "split needs a last dimension of extent 2, but got int32"),
    "static assertion": (lambda v: xl.static_assert(v.max() > 0), "known at compile time; see device_assert"),
    "text of an assertion": (lambda v: xl.static_assert(1 > 2, "no"), "static assertion failed: no"),
    "hint of none": (lambda v: xl.multiple_of(v, 0), "multiple_of needs positive integers that are known at compile"),
    "hint of truth": (lambda v: xl.multiple_of(v, True), "known at compile time, not True"),
    "text without an end": (lambda v: xl.inline_mlir("%r = arith.addi $0, $0 : $t0", v), "ends with 'return', and"),
    "stochastic bytes": (
        lambda v: v.to(F32).to(BF16, rounding="stochastic", random=v),
        "there is no stochastic rounding of float32 to bfloat16; there is one of float32 to float16",
    ),
    "empty slice": (lambda v: v[:, 5:5], "a slice of 16 elements by 5:5 is empty"),
    "index 16": (lambda v: v[0, 16], "index 16 is out of bounds for a dimension of extent 16"),
    "index -17": (lambda v: v[0, -17], "index -17 is out of bounds for a dimension of extent 16"),
    "index of truth": (lambda v: v[0, True], "values are indexed by constants, slices, None and '...', not by True"),
    "integers of 64 bits": (
        lambda v: v.to(np.int64) + v.to(np.uint64),
        "no integer type holds both int64 and uint64; convert one with .to(...)",
    ),
    "elements of each": (
        lambda v: xl.reduce(v, 1, lambda a, b: xl.zeros((3,), I32)),
        "which is not elementwise",
    ),
    "all of each": (
        lambda v: xl.reduce(v, 1, lambda a, b: a + b.sum()),
        "the function of reduce works on each element: it cannot combine elements",
    ),
    "axes": (lambda v: v.permute(0), "axes don't match: int32[1, 16] has 2 dimensions, but 1 axes"),
    "one axis twice": (lambda v: v.permute(0, 0), "repeated axis in transpose"),
    **{
        f"barrier {number} of {count}": (
            lambda v, n=number, c=count: xl.named_barrier(n, c),
            f"barriers are numbered 1 to 31 and are for 1 to 64 subgroups, not {number} for {count}",
        )
        for number, count in ((0, 4), (32, 4), (1, 0), (1, 65))
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    function, message = REFUSED[name]
    with pytest.raises(DiagnosticError) as caught:
        applied(function, SMALL, I32)
    first = caught.value.diagnostics[0]
    assert message in first.message
    assert first.position.file == __file__
    assert first.position.line >= function.__code__.co_firstlineno
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "use"),
    [
        (lambda X: xl.zeros((8, 16)), lambda X, value: X.tile((8, 16), at=(0, 0)).store(value)),
        (lambda X: X.tile((8, 16), at=(0, 0)), lambda X, tile: tile.load()),
    ],
    ids=["value", "tile"],
)
def test_a_value_of_another_kernel(value, use):
    kept = []
    keep = functools.partial(kept.append)

    @language.tile_kernel((F32, (8, 16)))
    def first(X):
        keep(value(X))

    with pytest.raises(DiagnosticError, match="a value of one kernel is used in another"):

        @language.tile_kernel((F32, (8, 16)))
        def second(X):
            use(X, kept[0])


def test_what_is_assigned_in_one_branch_only():
    with pytest.raises(DiagnosticError, match="'y' is assigned in one branch only"):

        @language.tile_kernel((I32, (1, 16)))
        def kernel(X):
            x = X.tile((1, 16), at=(0, 0)).load()
            if x.max() > 3:
                y = x + 1
            X.tile((1, 16), at=(0, 0)).store(y)


def test_the_block_follows_from_the_maps():
    @language.tile_kernel((F32, (32, 32)), (F32, (32, 32)))
    def copy(X, Y):
        x = X.tile((32, 32), at=(0, 0), map=language.WgMap((2, 2), (16, 16))).load()
        Y.tile((32, 32), at=(0, 0)).store(x)

    x, y = np.arange(1024, dtype=F32).reshape(32, 32), np.zeros((32, 32), F32)
    copy(x, y)
    np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match="'block' must be 4 subgroups, as the kernel's maps say, but got 1"):
        copy(x, y, block=1)


def test_kernels_are_compiled_for_their_arguments():
    @xegpu_py.jit
    def scale(X, Y, factor, ROWS: xegpu_py.Constexpr):
        """Multiply."""
        m = xl.program_id(0) * ROWS
        Y.tile((ROWS, 16), at=(m, 0)).store(X.tile((ROWS, 16), at=(m, 0)).load() * factor)

    for dtype, rows, factor in ((F32, 8, 2.5), (F32, 16, 2.5), (I32, 8, 3), (I32, 8, 1), (F32, 8, 0.5)):
        x, y = np.arange(512).reshape(32, 16).astype(dtype), np.zeros((32, 16), dtype)
        scale[lambda given: xegpu_py.cdiv(given["X"].shape[0], given["ROWS"])](x, y, factor, ROWS=rows)
        np.testing.assert_array_equal(y, x * dtype(factor))
    assert len(scale.versions) == 4
    assert scale.__doc__ == "Multiply." and scale.__name__ == "scale"
    assert "X, Y, factor" in repr(scale)
    with pytest.raises(TypeError, match="argument 'X' of kernel 'scale' must be an array or a number, but got object"):
        scale(object(), y, 1.0, ROWS=8)
    with pytest.raises(TypeError, match="missing a required argument"):
        scale(x, y)


def test_scalars_have_the_types_of_their_annotations():
    @xegpu_py.jit
    def fill(X, number: xl.U8, real: xl.F16):
        X.tile((1, 16), at=(0, 0)).store(xl.full((1, 16), number, xl.F32) + real.to(F32))

    x = np.zeros((1, 16), F32)
    fill(x, 200, 0.5)
    np.testing.assert_array_equal(x, np.full((1, 16), 200.5))
    with pytest.raises(OverflowError, match="argument 'number': 256 does not fit uint8"):
        fill(x, 256, 0.5)


def test_pointers():
    @xegpu_py.jit
    def add(X, Y, OUT, n, BLOCK: xegpu_py.Constexpr):
        offsets = xl.program_id(0) * BLOCK + xl.arange(0, BLOCK)
        mask = offsets < n
        x = xl.load(X + offsets, mask=mask)
        y = xl.load(Y + offsets, mask=mask, other=0.0)
        xl.store(OUT + offsets, x + y, mask=mask)

    x, y = np.random.default_rng(0).standard_normal((2, 1000)).astype(F32)
    out = np.zeros(1024, F32)
    add[lambda given: (xegpu_py.cdiv(given["n"], given["BLOCK"]),)](x, y, out, 1000, BLOCK=64)
    np.testing.assert_array_equal(out[:1000], x + y)
    assert not out[1000:].any()


def test_what_is_dead_needs_no_map():
    @language.tile_kernel((F32, (32, 32)), (F32, (32, 32)))
    def kernel(X, Y):
        X.tile((32, 32), at=(0, 0)).load()
        Y.tile((32, 32), at=(0, 0), map=language.WgMap((2, 2), (16, 16))).store(language.ones((32, 32)))

    y = np.zeros((32, 32), F32)
    kernel(y.copy(), y)
    assert (y == 1).all()


def test_extents_of_a_transposed_array():
    @language.tile_kernel((F32, (None, None)), (F32, (8, 16)))
    def kernel(X, Y):
        rows, columns = X.T.shape
        Y.tile((8, 16), at=(0, 0)).store(language.ones((8, 16)) * (rows * 100 + columns).to(F32))

    y = np.zeros((8, 16), F32)
    kernel(np.zeros((5, 7), F32), y)
    assert (y == 705).all()


def test_loading_ahead_over_a_batch():
    """The last iteration has no next matrix to load."""

    @language.tile_kernel((F16, (4, 32, 32)), (F16, (4, 32, 32)), (F32, (32, 32)))
    def kernel(X, W, Y):
        total = language.zeros((32, 32))
        for i in range(4):
            total += X.tile((32, 32), at=(i, 0, 0)).load() @ W.tile((32, 32), at=(i, 0, 0)).load()
        Y.tile((32, 32), at=(0, 0)).store(total)

    rng = np.random.default_rng(0)
    x, w = rng.integers(-3, 4, (2, 4, 32, 32)).astype(F16)
    y = np.zeros((32, 32), F32)
    kernel.compile(registers=256, load_ahead=True)(x, w, y)
    np.testing.assert_array_equal(y, (x.astype(F32) @ w.astype(F32)).sum(0))


def test_kernels_that_exceed_the_registers_say_so():
    def needs_many(X, Y):
        a, b = X.tile((48, 48), at=(0, 0)).load(), X.tile((48, 48), at=(48, 0)).load()
        Y.tile((48, 48), at=(0, 0)).store(language.maximum(a, b).T + a)
        Y.tile((48, 48), at=(48, 0)).store(a - b)

    x, y = np.ones((96, 48), F32), np.zeros((96, 48), F32)
    with pytest.warns(
        UserWarning,
        match="kernel 'needs_many' does not fit: register pressure",
    ):
        xegpu_py.jit(needs_many, subgroups=1)(x, y)
    with pytest.raises(DiagnosticError, match="does not fit"):
        xegpu_py.jit(needs_many, strict_grf=True, subgroups=1)(x, y)


def test_indices_of_64_bits_between_subgroups():
    """Indices of a line that subgroups exchange through memory keep all their 64 bits."""

    @language.tile_kernel((np.int64, (32, 32)), (np.int64, (32, 32)))
    def kernel(X, Y):
        x = X.tile((32, 32), at=(0, 0), map=language.WgMap((4, 1), (8, 32))).load().to(xl.index)
        y = x.with_map(language.WgMap((1, 4), (32, 8))).to(xl.int64)
        Y.tile((32, 32), at=(0, 0), map=language.WgMap((1, 4), (32, 8))).store(y)

    x = (np.arange(1024).reshape(32, 32) - 500) * (2**40 + 3)
    y = np.zeros_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("rows, columns", [(8, 16), (5, 7), (13, 9)])
def test_rows_and_columns_in_conditions(rows, columns):
    """Also of sizes that are not a multiple of a block's."""

    @xegpu_py.jit(engine="both")
    def causal(X, Y, n, ROWS: xegpu_py.Constexpr, COLUMNS: xegpu_py.Constexpr):
        m = xl.program_id(0) * ROWS
        x = X.tile((ROWS, COLUMNS), at=(m, 0)).load()
        row, column = (xl.arange(ROWS) + m)[:, None], xl.arange(COLUMNS)[None, :]
        Y.tile((ROWS, COLUMNS), at=(m, 0)).store(xl.where((row < n) & (column <= row), x, 0.0))

    x = np.random.default_rng(0).standard_normal((2 * rows, columns)).astype(F32)
    y, i, j = np.zeros_like(x), np.arange(2 * rows)[:, None], np.arange(columns)
    causal[2](x, y, 2 * rows - 2, ROWS=rows, COLUMNS=columns)
    np.testing.assert_array_equal(y, np.where((i < 2 * rows - 2) & (j <= i), x, 0))


def test_one_mistake_is_reported_once():
    """A conversion that the target lacks is one error, however many instructions it becomes."""

    def narrow(A, C):
        a = A.tile((32, 64), at=(0, 0)).load()
        C.tile((32, 64), at=(0, 0)).store(a.to(xl.float16, rounding="stochastic", random=a.bitcast(xl.int32)))

    with pytest.raises(DiagnosticError, match="requires srnd, which target 'dg2' does not support") as caught:
        xegpu_py.jit(narrow, target="dg2")(np.zeros((32, 64), F32), np.zeros((32, 64), np.float16))
    assert len([d for d in caught.value.diagnostics if d.severity == "error"]) == 1


@pytest.mark.parametrize("target", ["pvc", "dg2"])
def test_places_are_divided(target):
    @xegpu_py.jit(target=target, engine="both")
    def divide(X, Y):
        a, b = X[0].to(xl.index), X[1].to(xl.index)
        Y[0], Y[1] = (a // b).to(xl.int64), (a % b).to(xl.int64)

    for a, b in ((10**12 + 7, -3), (-(2**62), 7), (12, 2**40), (-1, -(2**63) + 1)):
        y = np.zeros(2, np.int64)
        divide(np.array([a, b], np.int64), y)
        assert y.tolist() == [a // b, a % b]


@pytest.mark.parametrize(
    ("value", "like", "fits"),
    [
        ((1, 2), (3, 4), True),
        ((1, (2, [3])), (4, (5, [6])), True),
        ([1, 2], (3, 4), False),
        ((1, 2, 3), (4, 5), False),
        ((1,), (4, 5), False),
        ((), (4,), False),
        ((), (), True),
        ((1, 2.5), (3, 4), False),
        ((2.5, 1), (3, 4), False),
        ((1, (2, [3.5])), (4, (5, [6])), False),
        ((1, 2), 3, False),
        (True, 1, False),
        (1, True, False),
        (1, 2.5, True),
    ],
)
def test_objects_that_take_the_place_of_others(value, like, fits):
    """Of the same kinds, as many of each, and numbers of the other's type."""
    assert fits_types(value, outline(like)) == fits
