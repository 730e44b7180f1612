"""`tt.elementwise_inline_asm`: instructions of PTX that compute, by their meaning. Others are refused at their line.

Source: NVIDIA's PTX ISA 8.5, sections 9.7.1 to 9.7.9. Approximations are those of the ops of MLIR's `math`, which are
more exact.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
import re
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from mlir import ir as mlir

from xegpu_py.deferred import deferred
from xegpu_py.extensions.triton.lowering.lowering import Lowering, Rule
from xegpu_py.extensions.triton.lowering.types import kind_of
from xegpu_py.extensions.triton.lowering.values import applied, chosen, signed
from xegpu_py.ir.diagnostics import emit_error
from xegpu_py.passes.rewriting.builders import FLOAT_PREDICATES, PREDICATES
from xegpu_py.tiles import element_types
from xegpu_py.tiles.element_types import DType, integer_of
from xegpu_py.tiles.functions import join, maximum, minimum, where
from xegpu_py.tiles.tile_values import Value, constant

if TYPE_CHECKING:
    from xegpu_py.extensions.triton.lowering import libdevice
else:
    libdevice = deferred("xegpu_py.extensions.triton.lowering.libdevice")

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
    "mul": frozenset(("rn", "sat", "lo", "hi", "wide")),
    "mad": frozenset(("rn", "sat", "lo", "hi", "wide")),
    **dict.fromkeys(("div", "sqrt", "rcp"), frozenset(("rn",))),
    **dict.fromkeys(("min", "max"), frozenset(("NaN",))),
    "shf": frozenset(("l", "r", "wrap", "clamp")),
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


def _funnel(left: bool, clamps: bool) -> Callable[..., Value]:
    def shift(low: Value, high: Value, count: Value) -> Value:
        wide = element_types.uint64
        both = (high.to(wide) << 32) | low.to(wide)
        by = (minimum(count, 32) if clamps else count & 31).to(wide)
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
        return libdevice.high_product(a, b)
    wide = integer_of(2 * width, signed=a.dtype.is_signed)
    return (a.to(wide) * b.to(wide) >> width).to(a.dtype)


def _wide(a: Value, b: Value) -> Value:
    if a.dtype.is_float or a.dtype.bits == 64:
        raise _Refused
    wide = integer_of(2 * a.dtype.bits, signed=a.dtype.is_signed)
    return a.to(wide) * b.to(wide)


def _wide_sum(a: Value, b: Value, c: Value) -> Value:
    product = _wide(a, b)
    return product + _as(c, product.dtype)


# Fields of bits. A position and a length are the lowest eight bits of their operands.


def _ones(length: Value, dtype: DType) -> Value:
    """As many of the lowest bits as a length says."""
    return ~_shifted("shli")(constant(dtype, -1 % (1 << dtype.bits)), length)


def _extracted(a: Value, position: Value, length: Value) -> Value:
    """The field, extended by zeros, or by its highest bit that is in the register."""
    pattern = integer_of(a.dtype.bits, signed=False)
    bits, at, count = a.to(pattern), position & 255, length & 255
    valid = minimum(count, maximum(a.dtype.bits - at.to(element_types.int32), 0).to(count.dtype))
    mask = _ones(valid, pattern)
    field = _shifted("shrui")(bits, at) & mask
    if a.dtype.is_signed:
        last = minimum(at + maximum(count, 1) - 1, a.dtype.bits - 1)
        is_set = (_shifted("shrui")(bits, last) & 1).differs(0) & count.differs(0)
        field = where(is_set, field | ~mask, field)
    return field


def _inserted(a: Value, b: Value, position: Value, length: Value) -> Value:
    """`b` with the lowest bits of `a` in a field."""
    at = position & 255
    mask = _shifted("shli")(_ones(length & 255, a.dtype), at)
    return (b & ~mask) | (_shifted("shli")(a, at) & mask)


def _permuted(a: Value, b: Value, selector: Value) -> Value:
    """Four of the eight bytes of two registers; where a half-byte of the selector has its highest bit, their signs."""
    both = a.to(element_types.uint64) | b.to(element_types.uint64) << 32
    result = constant(element_types.uint32, 0)
    for n in range(4):
        half = selector >> 4 * n & 15
        byte = (both >> ((half & 7) * 8).to(element_types.uint64) & 255).to(element_types.uint32)
        result = result | where((half & 8).differs(0), where(byte >= 128, 255, 0).to(byte.dtype), byte) << 8 * n
    return result


def _of_table(table: int, variables: list[Value]) -> Value | bool:
    """The function of bits that a table of truth values gives; all its bits are equal where it is a bool.

    The first variable is the highest bit of an index of the table.
    """
    if not variables:
        return bool(table & 1)
    a, *rest = variables
    half = 1 << len(rest)
    zero, one = _of_table(table & (1 << half) - 1, rest), _of_table(table >> half, rest)
    if table >> half == table & (1 << half) - 1:
        return zero
    if isinstance(zero, bool) and isinstance(one, bool):
        return a if one else ~a
    if isinstance(zero, bool):
        return ~a | one if zero else a & one
    if isinstance(one, bool):
        return a | zero if one else ~a & zero
    return (a & one) | (~a & zero)


def _logical(variables: list[Value], table: int) -> Value:
    found = _of_table(table & 255, variables)
    return constant(element_types.uint32, -found % (1 << 32)) if isinstance(found, bool) else found


def _dot(a: Value, b: Value, c: Value, signs: tuple[bool, bool]) -> Value:
    """c plus the products of four bytes of each register."""
    total = c
    for n in range(4):
        x, y = ((v >> 8 * n).to(integer_of(8, signed=sign)).to(element_types.int32) for v, sign in zip((a, b), signs))
        total = total + (x * y).to(total.dtype)
    return total


def _highest_set(a: Value) -> Value:
    """The position of the highest bit that is set, or -1; of negative numbers that of the highest one that is not."""
    bits = where(a < 0, ~a, a) if a.dtype.is_signed else a
    return (a.dtype.bits - 1 - applied("math.ctlz", a.dtype, bits)).to(element_types.int32)


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
    **{
        f"shf.{side}.{mode}": _funnel(side == "l", mode == "clamp") for side in ("l", "r") for mode in ("wrap", "clamp")
    },
    "mul.wide": _wide,
    "mad.wide": _wide_sum,
    "mad.hi": lambda a, b, c: _high(a, b) + c,
    "min.NaN": _arith("minimumf", ""),
    "max.NaN": _arith("maximumf", ""),
    "bfe": _extracted,
    "bfi": _inserted,
    "brev": lambda a: libdevice.reversed_bits(a),
    "bfind": _highest_set,
    "prmt": _permuted,
    "copysign": lambda sign, size: applied("math.copysign", size.dtype, size, sign),
    "ex2": _math("exp2"),
    "lg2": _math("log2"),
    "sin": _math("sin"),
    "cos": _math("cos"),
    "tanh": _math("tanh"),
    "sqrt": _math("sqrt"),
    "rsqrt": _math("rsqrt"),
    "rcp": lambda a: 1.0 / a,
    "popc": lambda a: applied("math.ctpop", a.dtype, a),
    "clz": lambda a: applied("math.ctlz", a.dtype, a),
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


_COUNTS = {"shl": (1,), "shr": (1,), "bfe": (1, 2), "bfi": (2, 3)}
"""The operands of instructions that are counts of 32 bits, for any type of the others."""

_COMPARISONS = {
    **{name: f"o{name}" for name in ("eq", "lt", "le", "gt", "ge")},
    **{f"{name}u": f"u{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "ne": "one",
    "num": "ord",
    "nan": "uno",
}
"""Comparisons of floats, and the predicates of arith.cmpf."""

_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}


def _compared(comparison: str, a: Value, b: Value) -> Value:
    """The truth value of `setp`.

    Raises:
        _Refused: if it is not known.
    """
    if a.dtype.is_float:
        name, predicate = "arith.cmpf", _COMPARISONS.get(comparison)
        names: tuple[str, ...] = FLOAT_PREDICATES
    else:
        sign = "s" if a.dtype.is_signed else "u"
        by_sign = comparison if comparison in ("eq", "ne") else f"{sign}{comparison}"
        name, predicate, names = "arith.cmpi", _UNSIGNED.get(comparison, by_sign), PREDICATES
    if predicate not in names:
        raise _Refused
    number = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), names.index(predicate))
    return applied(name, element_types.bool_, a, b, predicate=number)


def _executed(name: str, operands: list[Value], texts: list[str]) -> Value:
    """The result of an instruction.

    Args:
        texts: the operands as they are written.

    Raises:
        _Refused: if it is not known.
    """
    mnemonic, *words = name.split(".")
    if (mnemonic, words) == ("cvt", ["rna", "tf32", "f32"]):
        return _tf32(*operands)
    if (mnemonic, words) == ("lop3", ["b32"]):
        if len(operands) != 4 or not re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", texts[3]):
            raise _Refused
        return _logical([_as(v, element_types.uint32) for v in operands[:3]], int(texts[3], 0))
    if mnemonic == "dp4a" and len(words) == 2 and len(operands) == 3 and {*words} <= {"u32", "s32"}:
        a, b, c = (_as(v, element_types.uint32) for v in operands)
        return _dot(a, b, c, (words[0] == "s32", words[1] == "s32"))
    if mnemonic == "selp" and len(words) == 1 and len(operands) == 3 and operands[2].dtype == element_types.bool_:
        if (dtype := _type_of(words[0])) is None:
            raise _Refused
        a, b = (_as(v, dtype) for v in operands[:2])
        return chosen(operands[2], a, b)
    if packed := [word for word in words if re.fullmatch(r"(?:b?f|[us])16x2|e[45]m[23]x2", word)]:
        return _executed_packed(mnemonic, words, packed, operands, texts)
    types = [t for word in words if (t := _type_of(word)) is not None]
    modifiers = [word for word in words if _type_of(word) is None]
    function: Callable[..., Value] | None
    if mnemonic == "cvt":
        function = partial(_converted, to=types[0], source_dtype=types[-1], modifiers=modifiers) if types else None
    elif mnemonic == "setp" and len(modifiers) == 1:
        function = partial(_compared, modifiers.pop())
    elif mnemonic == "shr":
        function = _shifted("shrsi" if types and types[0].is_signed else "shrui")
    else:
        mode = [word for word in modifiers if word in ("l", "r", "hi", "wide", "wrap", "clamp", "NaN")]
        function = _OPS.get(".".join([mnemonic, *mode]))
    known = _INEXACT | _MODIFIERS.get(mnemonic, frozenset())
    if function is None or len(types) != (2 if mnemonic == "cvt" else 1) or not {*modifiers} <= known:
        raise _Refused
    if mnemonic == "cvt":
        typed_operands = operands
    elif mnemonic == "mad" and "wide" in modifiers:
        typed_operands = [*(_as(v, types[0]) for v in operands[:2]), *operands[2:]]
    else:
        counts = _COUNTS.get(mnemonic, ())
        typed_operands = [_as(v, element_types.uint32 if i in counts else types[0]) for i, v in enumerate(operands)]
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    if len(operands) != len(required):
        raise _Refused
    result = function(*typed_operands)
    return _saturated(result) if "sat" in modifiers else result


_BYTE_FLOATS = {"e4m3x2": element_types.float8_e4m3fn, "e5m2x2": element_types.float8_e5m2}


def _executed_packed(
    mnemonic: str, words: list[str], packed: list[str], operands: list[Value], texts: list[str]
) -> Value:
    """The result of an instruction on two numbers in a register, the first one in its lower half."""
    if mnemonic == "cvt" and len(packed) == 1 and words[-1] == "f32" and len(operands) == 2:
        # The first operand becomes the upper half.
        if packed[0] in _BYTE_FLOATS:
            if words[:-2] != ["rn", "satfinite"]:
                raise _Refused
            numbers = [_as(v, element_types.float32) for v in operands]
            parts = [v.to(_BYTE_FLOATS[packed[0]], saturate=True) for v in numbers]
        else:
            name = ".".join(["cvt", *words[:-2], packed[0].removesuffix("x2"), "f32"])
            parts = [_executed(name, [v], texts[:1]) for v in operands]
        return _joined(parts[::-1])
    if mnemonic == "cvt" and len(packed) == 2 and packed[1] in _BYTE_FLOATS and words == ["rn", "f16x2", packed[1]]:
        parts = [part.bitcast(_BYTE_FLOATS[packed[1]]) for part in _split(_as(operands[0], element_types.uint16), 2)]
        return _joined([part.to(element_types.float16) for part in parts])
    if len(packed) != 1 or packed[0] in _BYTE_FLOATS or mnemonic == "cvt":
        raise _Refused
    name = ".".join([mnemonic, *(word.removesuffix("x2") for word in words)])
    halves = zip(*(_split(_as(v, element_types.uint32), 2) for v in operands))
    return _joined([_executed(name, list(half), texts) for half in halves])


def _split(value: Value, count: int) -> list[Value]:
    """Equal parts of a register, from the lowest bits on, without sign."""
    bits = _as(value, integer_of(value.dtype.bits, signed=False))
    part = integer_of(bits.dtype.bits // count, signed=False)
    return [(bits >> n * part.bits).to(part) for n in range(count)]


def _joined(parts: list[Value]) -> Value:
    """A register of parts of equal width."""
    width = parts[0].dtype.bits
    whole = integer_of(width * len(parts), signed=False)
    bits = [_as(part, integer_of(width, signed=False)).to(whole) << n * width for n, part in enumerate(parts)]
    return functools.reduce(operator.or_, bits)


def _immediate(text: str) -> Value | None:
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return constant(element_types.float32, struct.unpack(">f", bytes.fromhex(match[1]))[0])
    if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
        return constant(element_types.float64, struct.unpack(">d", bytes.fromhex(match[1]))[0])
    if match := re.fullmatch(r"(-?)(?:(0[xX][0-9a-fA-F]+|0[bB][01]+|[1-9]\d*)|(0[0-7]*))U?", text):
        number = int(match[1] + match[2], 0) if match[2] else int(match[1] + match[3], 8)
        if not -(1 << 63) <= number < 1 << 64:
            return None
        # Wider instructions extend it by its sign, as integers have 64 bits in PTX.
        bits = 32 if -(1 << 31) <= number < 1 << 32 else 64
        return constant(integer_of(bits, signed=number < 0), number)
    return None


_STATEMENT = re.compile(r"(?:@(!?)([\w%$]+)\s+)?([\w.]+)\s+(.*)", re.DOTALL)


def _statements(text: str) -> Iterator[str]:
    """The instructions of a program, without comments, declarations and braces around all."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    for statement in text.split(";"):
        # Braces of a list of registers stand behind the instruction's name.
        words = re.sub(r"^[\s{}]+", "", statement).strip()
        while words.count("{") < words.count("}"):
            words = words.removesuffix("}").rstrip()
        if words and not words.startswith(".reg"):
            yield words


class _Program:
    """Assembly that is evaluated, with its registers by their names."""

    def __init__(self, op: mlir.Operation, registers: dict[str, Value]) -> None:
        self.op, self.registers = op, registers

    def run(self, text: str) -> None:
        """Evaluate all instructions."""
        for words in _statements(text):
            match = _STATEMENT.fullmatch(words)
            if match is None:
                self._refuse(words)
            targets, *operands = re.findall(r"\{[^}]*\}|[^\s,{}]+", match[4]) or [""]
            before = dict(self.registers)
            try:
                self._execute(match[3], targets, operands, words)
            except _Refused:
                self._refuse(words)
            if match[2]:
                self._keep_where(match[2], bool(match[1]), before, words)

    def _refuse(self, words: str) -> NoReturn:
        emit_error(self.op, f"has the instruction '{words}' of PTX, which is not known", "use functions of Triton")

    def _keep_where(self, predicate: str, is_negated: bool, before: dict[str, Value], words: str) -> None:
        """Keep what registers held where a predicate does not hold."""
        condition = before.get(predicate)
        if condition is None or condition.dtype != element_types.bool_:
            self._refuse(words)
        for name, value in self.registers.items():
            old = before.get(name)
            if old is value:
                continue
            if old is None:
                self._refuse(words)
            old = _as(old, value.dtype) if value.dtype != element_types.bool_ else old
            self.registers[name] = chosen(condition, *((old, value) if is_negated else (value, old)))

    def _execute(self, name: str, target: str, operands: list[str], words: str) -> None:
        if name.startswith("mov.b") and len(operands) == 1 and "{" in target + operands[0]:
            self._move_parts(int(name.removeprefix("mov.b")), target, operands[0], words)
        else:
            self.registers[target] = _executed(name, [self._value(text, words) for text in operands], operands)

    def _move_parts(self, width: int, target: str, operand: str, words: str) -> None:
        """A move between a register and a list of registers."""
        if target.startswith("{"):
            names = [name.strip() for name in target.strip("{}").split(",")]
            whole = _as(self._value(operand, words), integer_of(width, signed=False))
            self.registers |= zip(names, _split(whole, len(names)))
        else:
            names = [name.strip() for name in operand.strip("{}").split(",")]
            part = integer_of(width // len(names), signed=False)
            self.registers[target] = _joined([_as(self._value(name, words), part) for name in names])

    def _value(self, text: str, words: str) -> Value:
        value = self.registers.get(text)
        if value is None:
            value = _immediate(text)
        if value is None:
            emit_error(self.op, f"has the instruction '{words}', whose operands are not known")
        return value


def _inline(low: Lowering, op: mlir.Operation) -> list[Value]:
    view: Any = op.opview
    count = int(view.packed_element)
    results = [kind_of(v) for v in op.results]
    arguments = [low.value(v) for v in view.args]
    if count == 1:
        written = [[f"${i}"] for i in range(len(results))]
        program = _Program(op, {f"${len(results) + i}": value for i, value in enumerate(arguments)})
    else:
        number = itertools.count()
        written = [[f"${next(number)}" for _ in range(_registers(kind.dtype, count))] for kind in results]
        program = _Program(op, {})
        for value in arguments:
            elements = _every(value, count)
            held = count // _registers(value.dtype, count)
            for n in range(0, count, held):
                program.registers[f"${next(number)}"] = _joined(elements[n : n + held])
    program.run(str(view.asm_string))
    made = []
    for names, kind in zip(written, results):
        for name in names:
            if name not in program.registers:
                emit_error(op, f"does not write its result {name}")
        registers = [program.registers[name] for name in names]
        if count == 1:
            made.append(signed(_as(registers[0], kind.dtype)).broadcast(kind.shape))
            continue
        width = count // len(names) * kind.dtype.bits
        whole = [_as(register, integer_of(width, signed=False)) for register in registers]
        parts = [part for register in whole for part in _split(register, count // len(names))]
        made.append(_interleaved([signed(_as(part, kind.dtype)) for part in parts], kind.shape))
    return made


def _registers(dtype: DType, count: int) -> int:
    """The registers of some elements of a type: those of 8 and 16 bits share registers of 32 bits."""
    return max(count * dtype.bits // 32, 1) if dtype.bits < 32 else count


def _every(value: Value, count: int) -> list[Value]:
    """For each place in groups of consecutive elements the elements there, as a line."""
    line = value.ravel()
    return [line.rows(list(range(n, line.size, count))) for n in range(count)]


def _interleaved(parts: list[Value], shape: Sequence[int]) -> Value:
    """The elements of lines, alternating."""
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [join(a, b).ravel() for a, b in zip(parts[:half], parts[half:])]
    return parts[0].reshape(tuple(shape))


RULES: dict[str, Rule] = {"tt.elementwise_inline_asm": _inline}
"""The rule of inline assembly."""
