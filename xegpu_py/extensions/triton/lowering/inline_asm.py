"""`tt.elementwise_inline_asm`: instructions of PTX that compute, by their meaning. Others are refused at their line.

Source: NVIDIA's PTX ISA 8.5, sections 9.7.1 to 9.7.9. Approximations are those of the ops of MLIR's `math`, which are
more exact.
"""

from __future__ import annotations

import inspect
import re
import struct
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from mlir import ir as mlir

from xegpu_py.extensions.triton.lowering.lowering import Lowering, Rule
from xegpu_py.extensions.triton.lowering.types import kind_of
from xegpu_py.extensions.triton.lowering.values import applied, signed
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.tiles import element_types
from xegpu_py.tiles.element_types import DType, integer_of
from xegpu_py.tiles.functions import libdevice, where
from xegpu_py.tiles.tile_values import Value, constant

_FLOATS = {
    "f16": element_types.float16, "bf16": element_types.bfloat16, "f32": element_types.float32,
    "f64": element_types.float64,
}  # fmt: skip

_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
"""Modifiers of `cvt` that round to integers, and the functions of MLIR's `math` that do so."""

_TO_INTEGER = {"rni": "nearest", "rzi": "zero", "rmi": "down", "rpi": "up"}
"""These modifiers, and the names of the roundings of `Value.to`."""

_INEXACT = frozenset(("approx", "ftz", "full"))
"""Modifiers without effect: results are at least as exact, and subnormal numbers are kept."""

_MODIFIERS = {
    **dict.fromkeys(("add", "sub", "fma"), frozenset(("rn", "sat"))),
    "mul": frozenset(("rn", "sat", "lo", "hi")),
    "mad": frozenset(("rn", "sat", "lo")),
    **dict.fromkeys(("div", "sqrt", "rcp"), frozenset(("rn",))),
    "shf": frozenset(("l", "r", "wrap")),
    "cvt": frozenset(("rn", "rz", "sat", *_INTEGRAL)),
}
"""The modifiers of instructions that choose what they compute. Those of other instructions are `_INEXACT`."""


def _type_of(word: str) -> DType | None:
    """The type that a suffix names; bits are unsigned integers."""
    if word in _FLOATS:
        return _FLOATS[word]
    match = re.fullmatch(r"([usb])(8|16|32|64)", word)
    return None if match is None else integer_of(int(match[2]), signed=match[1] == "s")


def _as(value: Value, dtype: DType) -> Value:
    """The low bits of a register as a type."""
    bits = value.bitcast(integer_of(value.dtype.bits, signed=False)) if value.dtype.is_float else value
    wide = bits.to(integer_of(dtype.bits, signed=False))
    return wide.bitcast(dtype) if dtype.is_float else wide.to(dtype)


def _shifted(name: str) -> Callable[..., Value]:
    def shift(a: Value, count: Value) -> Value:
        # A count beyond the width shifts all bits out.
        most = a.dtype.bits
        beyond = count >= most
        by = where(beyond, 0, count).to(a.dtype)
        shifted = applied(f"arith.{name}", a.dtype, a, by)
        fill = applied("arith.shrsi", a.dtype, a, constant(a.dtype, most - 1)) if name == "shrsi" else 0
        result: Value = where(beyond, fill, shifted)
        return result

    return shift


def _funnel(left: bool) -> Callable[..., Value]:
    def shift(low: Value, high: Value, count: Value) -> Value:
        wide = element_types.uint64
        both = (high.to(wide) << 32) | low.to(wide)
        by = (count & 31).to(wide)
        return (both << by >> 32 if left else both >> by).to(element_types.uint32)

    return shift


def _math(name: str) -> Callable[[Value], Value]:
    return lambda a: applied(f"math.{name}", a.dtype, a)


def _arith(real: str, whole: str) -> Callable[..., Value]:
    def op(a: Value, b: Value) -> Value:
        sign = "s" if a.dtype.is_signed else "u"
        return applied(f"arith.{real if a.dtype.is_float else whole.format(sign)}", a.dtype, a, b)

    return op


def _fma(a: Value, b: Value, c: Value) -> Value:
    if a.dtype.is_float:
        return applied("math.fma", a.dtype, a, b, c)
    return a * b + c


def _high(a: Value, b: Value) -> Value:
    width = a.dtype.bits
    if width == 64:
        raise _Refused
    wide = integer_of(2 * width, signed=a.dtype.is_signed)
    return (a.to(wide) * b.to(wide) >> width).to(a.dtype)


_OPS: dict[str, Callable[..., Any]] = {
    "mov": lambda a: a,
    "add": _arith("addf", "addi"),
    "sub": _arith("subf", "subi"),
    "mul": _arith("mulf", "muli"),
    "mul.hi": _high,
    "div": _arith("divf", "div{}i"),
    "rem": _arith("remf", "rem{}i"),
    "min": _arith("minnumf", "min{}i"),
    "max": _arith("maxnumf", "max{}i"),
    "and": _arith("", "andi"),
    "or": _arith("", "ori"),
    "xor": _arith("", "xori"),
    "not": lambda a: ~a,
    "neg": lambda a: -a,
    "abs": abs,
    "fma": _fma,
    "mad": _fma,
    "shl": _shifted("shli"),
    "shf.l": _funnel(True),
    "shf.r": _funnel(False),
    "ex2": _math("exp2"),
    "lg2": _math("log2"),
    "sin": _math("sin"),
    "cos": _math("cos"),
    "tanh": _math("tanh"),
    "sqrt": _math("sqrt"),
    "rsqrt": _math("rsqrt"),
    "rcp": lambda a: 1.0 / a,
    "popc": libdevice.popc,
    "clz": libdevice.clz,
}
"""The instructions by their names, with the parts that choose another function."""


def _tf32(value: Value) -> Value:
    """Bits of float32 rounded to tf32, ties away from zero."""
    return (_as(value, element_types.uint32) + 0x1000) & 0xFFFFE000


class _Refused(Exception):
    pass


def _converted(operand: Value, to: DType, source_dtype: DType, modifiers: Collection[str]) -> Value:
    """The result of `cvt`.

    Raises:
        _Refused: if it is not known.
    """
    source = _as(operand, source_dtype)
    integral = next((m for m in modifiers if m in _INTEGRAL), None)
    if source_dtype.is_float and to.is_float and integral:
        if source_dtype != to:
            raise _Refused
        return _math(_INTEGRAL[integral])(source)
    if source_dtype.is_float and not to.is_float:
        if integral is None:
            raise _Refused
        return source.to(to, rounding=_TO_INTEGER[integral])
    if integral or ("rz" in modifiers and not source_dtype.is_float):
        raise _Refused
    try:
        return source.to(to, rounding="zero" if "rz" in modifiers else None)
    except ValueError:
        raise _Refused from None


def _saturated(value: Value) -> Value:
    """A number clamped to 0 to 1; NaN gives 0."""
    if not value.dtype.is_float:
        raise _Refused
    above = applied("arith.maxnumf", value.dtype, value, constant(value.dtype, 0.0))
    return applied("arith.minnumf", value.dtype, above, constant(value.dtype, 1.0))


def _executed(name: str, operands: list[Value]) -> Value:
    """The result of an instruction.

    Raises:
        _Refused: if it is not known.
    """
    mnemonic, *words = name.split(".")
    if (mnemonic, words) == ("cvt", ["rna", "tf32", "f32"]):
        return _tf32(*operands)
    types = [t for word in words if (t := _type_of(word)) is not None]
    modifiers = [word for word in words if _type_of(word) is None]
    function: Callable[..., Value] | None
    if mnemonic == "cvt":
        function = partial(_converted, to=types[0], source_dtype=types[-1], modifiers=modifiers) if types else None
    elif mnemonic == "shr":
        function = _shifted("shrsi" if types and types[0].is_signed else "shrui")
    else:
        mode = [word for word in modifiers if word in ("l", "r", "hi")]
        function = _OPS.get(".".join([mnemonic, *mode]))
    known = _INEXACT | _MODIFIERS.get(mnemonic, frozenset())
    if function is None or len(types) != (2 if mnemonic == "cvt" else 1) or not {*modifiers} <= known:
        raise _Refused
    if mnemonic == "cvt":
        typed_operands = operands
    else:
        counts = mnemonic in ("shl", "shr")
        typed_operands = [_as(v, element_types.uint32 if counts and i else types[0]) for i, v in enumerate(operands)]
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    if len(operands) != len(required):
        raise _Refused
    result = function(*typed_operands)
    return _saturated(result) if "sat" in modifiers else result


def _immediate(text: str) -> Value | None:
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return constant(element_types.float32, struct.unpack(">f", bytes.fromhex(match[1]))[0])
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return constant(element_types.uint32, int(text.rstrip("U"), 0) & 0xFFFFFFFF)
    return None


def _inline(low: Lowering, op: mlir.Operation) -> list[Value]:
    view: Any = op.opview
    if int(view.packed_element) != 1:
        emit_error(op, f"packs {int(view.packed_element)} elements into a register, which is not supported")
    results = [kind_of(v) for v in op.results]
    registers = {f"${len(results) + i}": low.value(v) for i, v in enumerate(view.args)}
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", str(view.asm_string), flags=re.DOTALL)
    for statement in text.split(";"):
        words = statement.strip("{} \t\n")
        if not words or words.startswith(".reg"):
            continue
        name, _, rest = words.partition(" ")
        target, *names = (part.strip() for part in rest.split(","))
        operands = [registers[n] if n in registers else _immediate(n) for n in names]
        if None in operands:
            emit_error(op, f"has the instruction '{words}', whose operands are not known")
        try:
            registers[target] = _executed(name, [v for v in operands if v is not None])
        except _Refused:
            emit_error(op, f"has the instruction '{words}' of PTX, which is not known", "use functions of Triton")
    made = []
    for i, kind in enumerate(results):
        if f"${i}" not in registers:
            emit_error(op, f"does not write its result ${i}")
        made.append(signed(_as(registers[f"${i}"], kind.dtype)).broadcast(kind.shape))
    return made


RULES: dict[str, Rule] = {"tt.elementwise_inline_asm": _inline}
"""The rule of inline assembly."""
