"""Roots, powers, logarithms and sines: correctly rounded, like the semantic functions.

For f32 arguments a rule computes an f64 estimate whose relative error has a bound. The rule decreases and increases the
estimate by this bound. If both numbers round to the same f32 number, that is the result; otherwise the semantic
function computes it. The bound is far above the actual errors: the truncation errors of polynomials are below 2**-51,
and only a few roundings of 2**-53 matter. For f16 arguments the results are in tables.

Each rule is a function of native code that instructions call: inlined code would be so large that the CPU waits for
instruction fetches. For powers a faster method with pairs of f32 is tried first on hosts that can permute lanes by a
table lookup.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache

import numpy as np
from msgspec.structs import replace

from xegpu_py.engines.jit.host import intrinsic_of
from xegpu_py.engines.jit.ir_text import ONE, PTR, FunctionBody, LLVMValue, vector
from xegpu_py.engines.jit.native_launch_struct import TABLES
from xegpu_py.engines.jit.rules.alu import Alu

# If a result is in doubt, the semantic function computes it from the thread's block.

_BOUND = 2.0**-46

_POWER_BOUND = 2.0**-49
"""The bound of the relative error of powers. The truncation error of the polynomial is below 2**-51.5, and so are the
rounding errors of its evaluation."""

_LARGEST_ANGLE = 2.0**20
"""The largest angle that native code reduces; for larger angles the semantic function computes the result."""

# pi/2 in three parts. The first two have 33 bits, so that their products with numbers below 2**20 are exact.
_HALF_PI = (float.fromhex("0x1.921fb544p+0"), float.fromhex("0x1.0b4611a6p-34"), float.fromhex("0x1.3198a2e037073p-69"))

_INTEGRAL = 1.5 * 2.0**52
"""Adding this number to a small number rounds the small number to an integer."""

_POWER = [
    float.fromhex(h)
    for h in (
        "0x1p+0", "0x1.62e42fefa3a19p-1", "0x1.ebfbdff82c598p-3", "0x1.c6b08d703ce47p-5", "0x1.3b2ab6fba1de4p-7",
        "0x1.5d87fe9d7a7abp-10", "0x1.430913096f0eap-13", "0x1.ffcb5405de21bp-17", "0x1.62bfd4792ba8bp-20",
        "0x1.b675bcea1ca08p-24", "0x1.e6063bb9d7e13p-28",
    )
]  # fmt: skip
"""Coefficients of 2**x for abs(x) <= 1/2, interpolated at Chebyshev nodes. The relative error is below 2**-51."""


@cache
def _roots() -> list[tuple[float, float]]:
    """2 to the powers 1, 17/16, ... 31/16, as sums of two f32."""
    exact = [Decimal(2) ** (1 + Decimal(n) / 16) for n in range(16)]
    return [(float(np.float32(x)), float(np.float32(x - Decimal(float(np.float32(x)))))) for x in exact]


_RISE = [
    float.fromhex(h)
    for h in (
        "0x1.62e430p-1", "-0x1.05c610p-29", "0x1.ebfbe0p-3", "0x1.c6b08ep-5", "0x1.3b3106p-7", "0x1.5d8cfep-10",
    )
]  # fmt: skip
"""Coefficients of (2**x - 1) / x for f32 numbers, abs(x) <= 1/16. The first coefficient is the sum of the first two
numbers. The relative error is below 2**-41."""

_LEAST_BOUND = 2.0**-40
"""The part of the bound of the relative error of powers by `_roots` that does not depend on the argument."""

_ATANH = [1 / (2 * k + 1) for k in range(11)]

_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]

_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(10)]


def _number(code: FunctionBody, value: float, like: LLVMValue) -> LLVMValue:
    """A constant f64."""
    return code.const(struct.unpack("<Q", struct.pack("<d", value))[0], like.type)


def _polynomial(code: FunctionBody, coefficients: Sequence[float], x: LLVMValue) -> LLVMValue:
    """The value of a polynomial, lowest coefficient first. Its even and odd parts are computed independently."""
    square = code.bin("fmul", x, x)
    halves = []
    for half in (coefficients[::2], coefficients[1::2]):
        total = _number(code, half[-1], x)
        for coefficient in reversed(half[:-1]):
            total = code.intrinsic("fma", total, square, _number(code, coefficient, x))
        halves.append(total)
    return code.intrinsic("fma", halves[1], x, halves[0])


def _decided(op: Alu, estimate: LLVMValue, unsure: LLVMValue | None = None, bound: float | None = None) -> LLVMValue:
    """The estimate rounded to f32; lanes in which the rounding is not certain are recorded in `op.doubtful`.

    Args:
        unsure: lanes that are not certain for other reasons.
        bound: the bound of the estimate's relative error; `_BOUND` by default.
    """
    code, bound = op.code, bound or _BOUND
    low, high = (
        code.cast("fptrunc", code.bin("fmul", estimate, _number(code, 1 + sign * bound, estimate)), "f32")
        for sign in (-1, 1)
    )
    # A lane is not doubtful if both numbers are equal, or if one is NaN.
    doubtful = code.fcmp("one", low, high)
    op.doubtful = doubtful if unsure is None else code.or_(doubtful, unsure)
    return low


def _looked_up(op: Alu, a: LLVMValue) -> LLVMValue:
    """The function's values for f16 arguments, from a table."""
    code = op.code
    index = code.resize(code.cast("bitcast", code.cast("fptrunc", a, "f16"), "i16"), 64, False)
    table = code.load(code.at(op.emitter.context("tables", PTR), 8 * TABLES.index(op.name)), PTR, 8)
    values = code.poison(vector(a.lanes, "i16"))
    for lane in range(a.lanes):
        at = code.at(table, code.shl(code.extract(index, lane), 1))
        values = code.insert(values, code.load(at, "i16", 2), lane)
    return code.cast("fpext", code.cast("bitcast", values, "f16"), "f32")


_Rule = Callable[[Alu, LLVMValue], LLVMValue]

_RULES: dict[str, _Rule] = {}
"""The rules of instructions for f32 arguments, by the names of instructions."""

_SHORT: dict[str, _Rule] = {}
"""The faster rules that hosts which permute lanes try first; they leave more lanes in doubt."""


def _elementary(name: str, short: _Rule | None = None) -> Callable[[_Rule], _Rule]:
    """Register the decorated function as the rule of an instruction for f32 arguments; `short` is tried first."""

    def declare(work: _Rule) -> _Rule:
        _RULES[name] = work
        if short:
            _SHORT[name] = short
        return work

    return declare


def apply(op: Alu, a: LLVMValue) -> LLVMValue:
    """The rule of all elementary functions, of f32 and hf."""
    if op.format == "hf":
        return _looked_up(op, a)
    values, unsure = _called(op, a, _values)
    op.doubtful = op.code.bits_to_mask(unsure, a.lanes)
    return values


def _values(op: Alu, a: LLVMValue) -> tuple[LLVMValue, LLVMValue]:
    """An elementary function's values, and the lanes that are in doubt, as bits of an i32."""
    code = op.code
    if op.name not in _SHORT or not op.emitter.host.permuted_singles:
        return _certain_values(op, a)
    values = _SHORT[op.name](op, a)
    assert op.doubtful
    retry_label, done_label = code.label(), code.label()
    some = code.intrinsic("vector.reduce.or", op.doubtful, ty="i1")
    code.cond_br(some, retry_label, done_label, values, code.const(0, "i32"))
    code.begin(retry_label)
    code.br(done_label, *_called(op, a, _certain_values))
    values, unsure = code.begin_with(done_label, values.type, "i32")
    return values, unsure


def _certain_values(op: Alu, a: LLVMValue) -> tuple[LLVMValue, LLVMValue]:
    """The same as `_values`, but without the faster rule."""
    values = _RULES[op.name](op, a)
    assert op.doubtful
    return values, op.code.mask_to_bits(op.doubtful)


def _called(
    op: Alu, a: LLVMValue, work: Callable[[Alu, LLVMValue], tuple[LLVMValue, LLVMValue]]
) -> tuple[LLVMValue, LLVMValue]:
    """The result of `work`, which is emitted as a separate function and called."""
    code, name = op.code, f"{op.name}_{a.lanes}{work.__name__}"

    def make() -> str:
        function_code = op.emitter.host.function(name, [a.type, PTR], a.type)
        argument, doubtful = function_code.arguments
        values, unsure = work(replace(op, code=function_code), argument)
        function_code.store(unsure, doubtful, 4)
        function_code.ret(values)
        return function_code.text()

    op.emitter.helper(name, make)
    doubtful = code.alloca(4, 4)
    return code.call(name, a, doubtful, result=a.type), code.load(doubtful, "i32", 4)


@_elementary("rsqrt")
def rsqrt(op: Alu, a: LLVMValue) -> LLVMValue:
    """The reciprocal square root."""
    x = op.code.cast("fpext", a, "f64")
    return _decided(op, op.code.bin("fdiv", _number(op.code, 1.0, x), op.code.intrinsic("sqrt", x)))


def _power(code: FunctionBody, a: LLVMValue) -> LLVMValue:
    """2 to a power, f64: 2 to the nearest integer, times a polynomial of the remainder, which is at most 1/2."""
    # Beyond these limits the result is infinity or zero.
    for comparison, bound_value in (("ogt", 129.0), ("olt", -152.0)):
        limit = code.const(struct.unpack("<I", struct.pack("<f", bound_value))[0], a.type)
        a = code.select(code.fcmp(comparison, a, limit), limit, a)
    x = code.cast("fpext", a, "f64")
    # The lowest bits of this sum contain the integer.
    raised = code.bin("fadd", x, _number(code, _INTEGRAL, x))
    integer_part = code.bin("fsub", raised, _number(code, _INTEGRAL, x))
    fraction = _polynomial(code, _POWER, code.bin("fsub", x, integer_part))
    exponent = code.shl(code.cast("bitcast", raised, "i64"), 52)
    scale = code.add(exponent, ONE["f64"])
    return code.bin("fmul", fraction, code.cast("bitcast", scale, "f64"))


def _single(code: FunctionBody, value: float, like: LLVMValue) -> LLVMValue:
    """A constant f32."""
    return code.const(_bits(value), like.type)


def _bits(value: float) -> int:
    """The bits of an f32."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def _permuted(op: Alu, table: Sequence[float], index: LLVMValue) -> LLVMValue:
    """Entries of a table of f32, as many as a vector register holds: for each lane that of the index's lowest bits."""
    code, lanes, size = op.code, index.lanes, len(table)
    numbers = code.recast(code.consts([_bits(t) for t in table], "i32"), vector(size, "f32"))
    looked_up = []
    for first_lane in range(0, lanes, size):
        lane_indices = code.shuffle(index, index, [min(first_lane + i, lanes - 1) for i in range(size)])
        looked_up.append(code.call(intrinsic_of("permute_singles", size), numbers, lane_indices, result=numbers.type))
    while len(looked_up) > 1:
        looked_up = [code.shuffle(a, b, list(range(2 * a.lanes))) for a, b in zip(looked_up[::2], looked_up[1::2])]
    return looked_up[0] if lanes >= size else code.shuffle(looked_up[0], looked_up[0], list(range(lanes)))


def _tabled_exp(op: Alu, a: LLVMValue) -> LLVMValue:
    """2 to a power, computed with pairs of f32, if the rounding is certain. It is the product of a root of 2, a
    polynomial of the remainder, which is at most half the distance between roots, and 2 to an integer."""
    code, entries = op.code, op.emitter.host.permuted_singles

    def fma(x: LLVMValue, y: LLVMValue, z: LLVMValue) -> LLVMValue:
        return code.intrinsic("fma", x, y, z)

    # Subnormal powers have fewer bits, and powers below half of the smallest subnormal are zero.
    low, zero = (
        code.fcmp(comparison, a, _single(code, bound_value, a))
        for comparison, bound_value in (("olt", -125.0), ("ole", -150.0))
    )
    for comparison, bound_value in (("ogt", 128.0), ("olt", -150.0)):
        limit = _single(code, bound_value, a)
        a = code.select(code.fcmp(comparison, a, limit), limit, a)
    # The lowest bits of this sum contain the integer and the index of the root.
    shift = _single(code, 1.5 * 2.0**23 / entries, a)
    raised = code.bin("fadd", a, shift)
    x, index = code.bin("fsub", a, code.bin("fsub", raised, shift)), code.cast("bitcast", raised, "i32")
    roots = _roots()[:: len(_roots()) // entries]
    root, root_error = (_permuted(op, table, index) for table in zip(*roots))
    first, *others = (_single(code, c, a) for c in _RISE)
    slope = others[-1]
    for coefficient in reversed(others[:-1]):
        slope = fma(slope, x, coefficient)
    # 2 to the power x is the sum of one, the product, its error, and the rest of the polynomial.
    product = code.bin("fmul", x, first)
    error = fma(x, first, code.op(f"fneg {product}", a.type))
    power = fma(root, product, root)
    rounding_error = fma(root, product, code.bin("fsub", root, power))
    rounding_error = fma(root_error, product, code.bin("fadd", rounding_error, root_error))
    rise = fma(x, slope, error)
    rounding_error = fma(root, rise, rounding_error)
    # Four roundings of numbers that are about as large as `rise` dominate the error.
    bound = fma(rise, _single(code, 2.0**-22.1, a), _single(code, _LEAST_BOUND, a))
    candidates = [
        code.bin("fadd", power, fma(power, bound_value, rounding_error))
        for bound_value in (code.op(f"fneg {bound}", a.type), bound)
    ]
    steps = code.mask(index, 0x100000000 - entries)
    # Roots begin at 2, so that the greatest scale is finite.
    scale = code.add(code.shl(steps, 24 - entries.bit_length()), 126 << 23)
    scale = code.select(zero, code.const(0, scale.type), scale)
    op.doubtful = code.or_(code.fcmp("one", *candidates), code.xor(low, zero))
    return code.bin("fmul", candidates[0], code.cast("bitcast", scale, "f32"))


@_elementary("exp", _tabled_exp)
def exp(op: Alu, a: LLVMValue) -> LLVMValue:
    """2 to a power."""
    return _decided(op, _power(op.code, a), bound=_POWER_BOUND)


@_elementary("log")
def log(op: Alu, a: LLVMValue) -> LLVMValue:
    """The binary logarithm: the exponent plus the logarithm of a fraction m near 1, by atanh((m - 1) / (m + 1))."""
    code = op.code
    x = code.cast("fpext", a, "f64")
    zero, one_f64 = _number(code, 0.0, x), _number(code, 1.0, x)
    infinity = _number(code, math.inf, x)
    usual = code.and_(code.fcmp("ogt", x, zero), code.fcmp("olt", x, infinity))
    bits = code.cast("bitcast", code.select(usual, x, one_f64), "i64")
    # Fractions begin at the square root of 1/2, so that they are near 1.
    root = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0]
    exponent = code.ashr(code.sub(bits, root), 52)
    fraction = code.cast("bitcast", code.sub(bits, code.shl(exponent, 52)), "f64")
    distance = code.bin("fsub", fraction, one_f64)
    s = code.bin("fdiv", distance, code.bin("fadd", fraction, one_f64))
    series = _polynomial(code, _ATANH, code.bin("fmul", s, s))
    mantissa_log = code.bin("fmul", code.bin("fmul", s, _number(code, 2 / math.log(2), x)), series)
    logarithm = code.bin("fadd", code.cast("sitofp", exponent, "f64"), mantissa_log)
    special = code.select(code.fcmp("oeq", x, zero), _number(code, -math.inf, x), _number(code, math.nan, x))
    special = code.select(code.fcmp("oeq", x, infinity), x, special)
    return _decided(op, code.select(usual, logarithm, special))


def _sine(op: Alu, a: LLVMValue, first_quarter: int) -> LLVMValue:
    """The sine of an angle plus `first_quarter` right angles."""
    code = op.code
    x = code.cast("fpext", a, "f64")
    small = code.fcmp("ole", code.intrinsic("fabs", x), _number(code, _LARGEST_ANGLE, x))
    angle = code.select(small, x, _number(code, 0.0, x))
    quarters = code.intrinsic("roundeven", code.bin("fmul", angle, _number(code, 2 / math.pi, x)))
    high, middle, low = (_number(code, p, x) for p in _HALF_PI)
    # The first difference is exact; the second difference is exact as a sum of two numbers.
    reduced = code.bin("fsub", angle, code.bin("fmul", quarters, high))
    middle_product = code.bin("fmul", quarters, middle)
    remainder = code.bin("fsub", reduced, middle_product)
    back = code.bin("fsub", remainder, reduced)
    error = code.bin(
        "fsub", code.bin("fsub", reduced, code.bin("fsub", remainder, back)), code.bin("fadd", middle_product, back)
    )
    y = code.bin("fadd", remainder, code.bin("fsub", error, code.bin("fmul", quarters, low)))
    square = code.bin("fmul", y, y)
    sine = code.bin("fmul", y, _polynomial(code, _SINE, square))
    cosine = _polynomial(code, _COSINE, square)
    quadrant = code.add(code.cast("fptosi", quarters, "i64"), first_quarter)
    odd = code.icmp("ne", code.mask(quadrant, 1), 0)
    sign = code.shl(code.lshr(code.mask(quadrant, 2), 1), 63)
    value = code.cast("bitcast", code.select(odd, cosine, sine), "i64")
    signed_value = code.cast("bitcast", code.xor(value, sign), "f64")
    if not first_quarter:
        signed_value = code.select(code.fcmp("oeq", x, _number(code, 0.0, x)), x, signed_value)
    # The difference of an infinity or NaN with itself is NaN.
    difference = code.bin("fsub", x, x)
    finite = code.fcmp("oeq", difference, difference)
    signed_value = code.select(finite, signed_value, difference)
    return _decided(op, signed_value, code.and_(finite, code.not_(small)))


@_elementary("sin")
def sin(op: Alu, a: LLVMValue) -> LLVMValue:
    """The sine of an angle in radians."""
    return _sine(op, a, 0)


@_elementary("cos")
def cos(op: Alu, a: LLVMValue) -> LLVMValue:
    """The cosine of an angle in radians."""
    return _sine(op, a, 1)
