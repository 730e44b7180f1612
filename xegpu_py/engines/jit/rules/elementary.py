"""Roots, powers, logarithms and sines: correctly rounded, as the golden functions.

Of f32 arguments an f64 estimate is computed whose relative error has a bound. Where the estimate a bound lower and a
bound higher round to the same f32 number, that is the result; else the golden function decides. The bound is far above
the errors: polynomials leave out less than 2**-51, and few roundings of 2**-53 matter. Of f16 arguments the results
are in tables.

Each is a function of native code that instructions call: inlined, they are so much code that the CPU waits for it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

from xegpu_py.engines.jit.code import PTR, Code, Value, vector
from xegpu_py.engines.jit.frame import TABLES
from xegpu_py.engines.jit.rules.alu import Alu
from xegpu_py.engines.table import Table

ELEMENTARY = Table()
"""The rule of each instruction. Results in doubt are computed by the golden function, from the thread's block."""

_BOUND = 2.0**-46
_LARGEST_ANGLE = 2.0**20
"""Up to which angles are reduced here; beyond, the golden function does it."""

# pi/2 in three parts, of which the first two have 33 bits, so that their products with numbers below 2**20 are exact.
_HALF_PI = (float.fromhex("0x1.921fb544p+0"), float.fromhex("0x1.0b4611a6p-34"), float.fromhex("0x1.3198a2e037073p-69"))

_INTEGRAL = 1.5 * 2.0**52
"""Sums of this and small numbers are rounded to integers."""

_POWER = [
    float.fromhex(h)
    for h in (
        "0x1p+0", "0x1.62e42fefa3a19p-1", "0x1.ebfbdff82c598p-3", "0x1.c6b08d703ce47p-5", "0x1.3b2ab6fba1de4p-7",
        "0x1.5d87fe9d7a7abp-10", "0x1.430913096f0eap-13", "0x1.ffcb5405de21bp-17", "0x1.62bfd4792ba8bp-20",
        "0x1.b675bcea1ca08p-24", "0x1.e6063bb9d7e13p-28",
    )
]  # fmt: skip
"""2 to a power of at most 1/2, interpolated between Chebyshev's nodes: with a relative error below 2**-51."""

_ATANH = [1 / (2 * k + 1) for k in range(11)]
_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(10)]


def _number(code: Code, value: float, like: Value) -> Value:
    """A constant f64."""
    return code.const(struct.unpack("<Q", struct.pack("<d", value))[0], like.type)


def _polynomial(code: Code, coefficients: Sequence[float], x: Value) -> Value:
    """The value of a polynomial, lowest coefficient first: its even and its odd part side by side, which wait apart."""
    square = code.bin("fmul", x, x)
    parts = []
    for own in (coefficients[::2], coefficients[1::2]):
        total = _number(code, own[-1], x)
        for coefficient in reversed(own[:-1]):
            total = code.intrinsic("fma", total, square, _number(code, coefficient, x))
        parts.append(total)
    return code.intrinsic("fma", parts[1], x, parts[0])


def _decided(op: Alu, estimate: Value, unsure: Value | None = None) -> Value:
    """The estimate rounded to f32; lanes in which that is not certain are noted.

    Args:
        unsure: lanes that are not certain anyway.
    """
    code = op.code
    low, high = (
        code.cast("fptrunc", code.bin("fmul", estimate, _number(code, 1 + way * _BOUND, estimate)), "f32")
        for way in (-1, 1)
    )
    # Equal, or no numbers at all.
    doubtful = code.fcmp("one", low, high)
    op.doubtful = doubtful if unsure is None else code.or_(doubtful, unsure)
    return low


def _looked_up(op: Alu, a: Value) -> Value:
    """The function's values of f16 arguments."""
    code = op.code
    index = code.resize(code.cast("bitcast", code.cast("fptrunc", a, "f16"), "i16"), 64, False)
    table = code.load(code.at(op.emitter.context("tables", PTR), 8 * TABLES.index(op.name)), PTR, 8)
    found = code.poison(vector(a.lanes, "i16"))
    for lane in range(a.lanes):
        at = code.at(table, code.shl(code.extract(index, lane), 1))
        found = code.insert(found, code.load(at, "i16", 2), lane)
    return code.cast("fpext", code.cast("bitcast", found, "f16"), "f32")


_Rule = Callable[[Alu, Value], Value]


def _elementary(name: str) -> Callable[[_Rule], _Rule]:
    """Declare the rule of an instruction by what it does with f32 arguments."""

    def declare(work: _Rule) -> _Rule:
        @ELEMENTARY.of(name)
        def apply(op: Alu, a: Value) -> Value:
            if op.format == "hf":
                return _looked_up(op, a)
            function, code = f"{name}_{a.lanes}", op.code
            op.emitter.helper(function, lambda: _function(function, work, op, a.type))
            doubtful = code.alloca(4, 4)
            found = code.call(function, a, doubtful, result=a.type)
            op.doubtful = code.bits_to_mask(code.load(doubtful, "i32", 4), a.lanes)
            return found

        return work

    return declare


def _function(name: str, work: _Rule, op: Alu, kind: str) -> str:
    """The function that gives an elementary function's values, and writes which of them are in doubt, an i32."""
    code = op.emitter.host.function(name, [kind, PTR], kind)
    a, doubtful = code.arguments
    own = replace(op, code=code)
    found = work(own, a)
    assert own.doubtful is not None
    code.store(code.mask_to_bits(own.doubtful), doubtful, 4)
    code.ret(found)
    return code.text()


@_elementary("rsqrt")
def rsqrt(op: Alu, a: Value) -> Value:
    """The reciprocal square root."""
    x = op.code.cast("fpext", a, "f64")
    return _decided(op, op.code.bin("fdiv", _number(op.code, 1.0, x), op.code.intrinsic("sqrt", x)))


@_elementary("exp")
def exp(op: Alu, a: Value) -> Value:
    """2 to a power: that of the nearest integer times a polynomial of what is left, at most 1/2."""
    code = op.code
    x = code.cast("fpext", a, "f64")
    # Beyond these all is infinity, or zero.
    x = code.select(code.fcmp("ogt", x, _number(code, 129.0, x)), _number(code, 129.0, x), x)
    x = code.select(code.fcmp("olt", x, _number(code, -152.0, x)), _number(code, -152.0, x), x)
    number = code.fcmp("ord", x, x)
    # The lowest bits of this sum are the integer.
    raised = code.bin("fadd", x, _number(code, _INTEGRAL, x))
    whole = code.bin("fsub", raised, _number(code, _INTEGRAL, x))
    fraction = _polynomial(code, _POWER, code.bin("fsub", x, whole))
    steps = code.shl(code.cast("bitcast", raised, "i64"), 52)
    power = code.cast("bitcast", code.add(code.cast("bitcast", fraction, "i64"), steps), "f64")
    return _decided(op, code.select(number, power, x))


@_elementary("log")
def log(op: Alu, a: Value) -> Value:
    """The binary logarithm: the exponent, and that of a fraction m about 1 by atanh((m - 1) / (m + 1))."""
    code = op.code
    x = code.cast("fpext", a, "f64")
    zero, one = _number(code, 0.0, x), _number(code, 1.0, x)
    infinity = _number(code, math.inf, x)
    usual = code.and_(code.fcmp("ogt", x, zero), code.fcmp("olt", x, infinity))
    bits = code.cast("bitcast", code.select(usual, x, one), "i64")
    # The exponent counts from the square root of 1/2 on, so that fractions lie about 1.
    root = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0]
    exponent = code.ashr(code.sub(bits, code.const(root, bits.type)), 52)
    fraction = code.cast("bitcast", code.sub(bits, code.shl(exponent, 52)), "f64")
    distance = code.bin("fsub", fraction, one)
    s = code.bin("fdiv", distance, code.bin("fadd", fraction, one))
    series = _polynomial(code, _ATANH, code.bin("fmul", s, s))
    part = code.bin("fmul", code.bin("fmul", s, _number(code, 2 / math.log(2), x)), series)
    found = code.bin("fadd", code.cast("sitofp", exponent, "f64"), part)
    special = code.select(code.fcmp("oeq", x, zero), _number(code, -math.inf, x), _number(code, math.nan, x))
    special = code.select(code.fcmp("oeq", x, infinity), x, special)
    return _decided(op, code.select(usual, found, special))


def _sine(op: Alu, a: Value, first: int) -> Value:
    """The sine of an angle plus `first` right angles."""
    code = op.code
    x = code.cast("fpext", a, "f64")
    small = code.fcmp("ole", code.intrinsic("fabs", x), _number(code, _LARGEST_ANGLE, x))
    angle = code.select(small, x, _number(code, 0.0, x))
    quarters = code.intrinsic("roundeven", code.bin("fmul", angle, _number(code, 2 / math.pi, x)))
    high, middle, low = (_number(code, p, x) for p in _HALF_PI)
    # Exact: the first difference, and the second one as a sum of two.
    rest = code.bin("fsub", angle, code.bin("fmul", quarters, high))
    taken = code.bin("fmul", quarters, middle)
    near = code.bin("fsub", rest, taken)
    back = code.bin("fsub", near, rest)
    error = code.bin("fsub", code.bin("fsub", rest, code.bin("fsub", near, back)), code.bin("fadd", taken, back))
    y = code.bin("fadd", near, code.bin("fsub", error, code.bin("fmul", quarters, low)))
    square = code.bin("fmul", y, y)
    sine = code.bin("fmul", y, _polynomial(code, _SINE, square))
    cosine = _polynomial(code, _COSINE, square)
    quadrant = code.add(code.cast("fptosi", quarters, "i64"), code.const(first, vector(x.lanes, "i64")))
    odd = code.icmp("ne", code.mask(quadrant, 1), 0)
    sign = code.shl(code.lshr(code.mask(quadrant, 2), 1), 63)
    value = code.cast("bitcast", code.select(odd, cosine, sine), "i64")
    found = code.cast("bitcast", code.xor(value, sign), "f64")
    if not first:
        found = code.select(code.fcmp("oeq", x, _number(code, 0.0, x)), x, found)
    # Infinities and NaNs, whose difference with themselves is NaN.
    difference = code.bin("fsub", x, x)
    finite = code.fcmp("oeq", difference, difference)
    found = code.select(finite, found, difference)
    return _decided(op, found, code.and_(finite, code.not_(small)))


@_elementary("sin")
def sin(op: Alu, a: Value) -> Value:
    """The sine of an angle in radians."""
    return _sine(op, a, 0)


@_elementary("cos")
def cos(op: Alu, a: Value) -> Value:
    """The cosine of an angle in radians."""
    return _sine(op, a, 1)
