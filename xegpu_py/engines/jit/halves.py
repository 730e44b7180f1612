"""Conversions of halves for CPUs that have no instruction for them: the functions that LLVM then calls.

They are part of a compiler's own library, which the wheels do not have.
"""

from __future__ import annotations

from xegpu_py.engines.jit.code import Code

_ATTRIBUTES = '"noinline", "nounwind"'


def half_functions() -> str:
    """Both functions."""
    return _widen() + "\n" + _narrow()


def _widen() -> str:
    """f16 to f32, exact."""
    code = Code("__extendhfsf2", ["f16"], "f32", _ATTRIBUTES)
    bits = code.resize(code.cast("bitcast", code.arguments[0], "i16"), 32, False)
    magnitude = code.mask(bits, 0x7FFF)
    # The exponent's bias differs by 112. A product by 2**112 is right for subnormal numbers too.
    number = code.cast("bitcast", code.shl(magnitude, 13), "f32")
    scaled = code.cast("bitcast", code.bin("fmul", number, code.const(0x77800000, "f32")), "i32")
    special = code.or_(scaled, code.const(0x7F800000, "i32"))
    found = code.select(code.icmp("uge", magnitude, 0x7C00), special, scaled)
    sign = code.shl(code.mask(bits, 0x8000), 16)
    code.ret(code.cast("bitcast", code.or_(found, sign), "f32"))
    return code.text("")


def _narrow() -> str:
    """f32 to f16, to nearest even."""
    code = Code("__truncsfhf2", ["f32"], "f16", _ATTRIBUTES)
    bits = code.cast("bitcast", code.arguments[0], "i32")
    magnitude = code.mask(bits, 0x7FFFFFFF)
    odd = code.mask(code.lshr(magnitude, 13), 1)
    moved = code.add(code.add(magnitude, code.const(0xFFF - (112 << 23), "i32")), odd)
    normal = code.lshr(moved, 13)
    # The last bit of numbers from 0.5 to 1 is that of subnormal halves.
    half = code.const(0x3F000000, "f32")
    raised = code.bin("fadd", code.cast("bitcast", magnitude, "f32"), half)
    small = code.sub(code.cast("bitcast", raised, "i32"), code.const(0x3F000000, "i32"))
    found = code.select(code.icmp("ult", magnitude, 0x38800000), small, normal)
    found = code.select(code.icmp("uge", magnitude, 0x47800000), code.const(0x7C00, "i32"), found)
    found = code.select(code.icmp("ugt", magnitude, 0x7F800000), code.const(0x7E00, "i32"), found)
    sign = code.lshr(code.mask(bits, 0x80000000), 16)
    code.ret(code.cast("bitcast", code.resize(code.or_(found, sign), 16, False), "f16"))
    return code.text("")
