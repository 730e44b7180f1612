"""The text of instructions: reads and writes each by the form that its declaration gives.

Two notations share it. In vISA assembly a variable is written by its name, and the guard precedes the instruction:
`(!P1.any) add (M1, 16) X(0,0)<1> X(1,0)<1;1,0> 0x10:d`. In the `visa` dialect a variable is written by its SSA name,
and the guard follows the execution size: `visa.add (M1, 16, !%P1 any) %X(0,0)<1> %X(1,0)<1;1,0> 0x10:d`. A byte offset
is `X.64` in assembly and `%X[64]` in the dialect, where a dot would be part of the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np

from xegpu_py.ir.codecs import Cursor
from xegpu_py.numerics.formats import TYPES
from xegpu_py.visa.operands import (
    PACKED,
    Address,
    AddressOf,
    Destination,
    Flag,
    Guard,
    Immediate,
    Indirect,
    Operand,
    Raw,
    Region,
    Vector,
)
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import (
    Attribute,
    BlockShape,
    BlockShapeAttribute,
    ByteAttribute,
    CacheAttribute,
    DataShape,
    DataShapeAttribute,
    InstructionSpec,
    IntegerAttribute,
    KeywordAttribute,
    LabelsAttribute,
    OperandSpec,
    SuffixAttribute,
    SurfaceAttribute,
    SymbolAttribute,
)

_FIELD = re.compile(r"\{(\w+)\}")

_MODIFIER = re.compile(r"\((-abs|abs|-|~)\)")

_PAIR = re.compile(r"\(\s*(\d+|0x[0-9a-fA-F]+)\s*,\s*(\d+|0x[0-9a-fA-F]+)\s*\)")

_SOURCE = re.compile(r"<\s*(\d+)\s*;\s*(\d+)\s*,\s*(\d+)\s*>")

_STRIDE = re.compile(r"<\s*(\d+)\s*>")

_ROWS = re.compile(r"<\s*(\d+)\s*,\s*(\d+)\s*>")

_ELEMENT = re.compile(r"\(\s*(\d+)\s*\)")

_BYTES = re.compile(r"\[\s*(\d+)\s*\]")

_SPACE = re.compile(r"(flat|ss|surf|bss|bti|arg)(?=\s*[\[(])")

_SCALE = re.compile(r"(0x[0-9a-fA-F]+|\d+)\s*\*")

_PAIR_OF_DIGITS = re.compile(r"[0-9a-f]{2}(?!\w)")

_SYMBOL = re.compile(r'"([^"\n]*)"|[\w$.]+')

_INTEGER = re.compile(r"(-?)\s*(0x[0-9a-fA-F]+|\d+)(?![\w.])")

_FLOAT = re.compile(r"-?\d+\.\d*(?:[eE][+-]?\d+)?|-?\d+[eE][+-]?\d+")

_TYPE = re.compile(r":([a-z]+)")

_MASK = re.compile(r"M[1-8](?:_NM)?\b")

_WORD = re.compile(r"[A-Za-z_]\w*")

_NUMBER = re.compile(r"\d+")

_LABEL = re.compile(r"[A-Za-z_$][\w$]*")

_SURFACE = re.compile(r"%?[A-Za-z_$][\w$]*")

SLM = "%slm"
"""The surface that is shared local memory."""

_SHAPE = re.compile(r"d(8c32|16c32|8u32|16u32|8|16|32|64)(?:x(\d+))?(t?)(?!\w)")

_BLOCK = re.compile(r"d(8|16|32|64)\.(?:(\d+)x)?(\d+)x(\d+)([nt])([nt])(?!\w)")

_CACHES = re.compile(r"\.([a-z]{2})\.([a-z]{2})(?:\.([a-z]{2}))?(?:\.(ov))?(?!\w)")

_CONTROL = re.compile(r"\.?(any|all)\b")


class Notation(Protocol):
    """How variables are spelled.

    Attributes:
        null: the null operand's name.
        modern: whether it is that of IGC since 2024, and not that of the finalizers that are programs.
    """

    null: str
    modern: bool = False

    def name(self, cursor: Cursor) -> Any | None:
        """The variable or predicate that the next token names; None if it is not a name."""

    def address_variable(self, var: Any) -> Any | None:
        """The variable if it can be one of addresses, whose elements have one number in brackets; else None."""
        return var if getattr(var, "kind", "G") == "A" else None

    def spell(self, var: Any) -> str:
        """The variable's name."""

    def offset(self, cursor: Cursor) -> int:
        """A byte offset behind a variable; 0 where there is none."""

    def spell_raw(self, name: str, offset: int) -> str:
        """A variable from a byte offset on."""

    def spell_null(self) -> str:
        """The null operand."""
        return self.null

    def guard(self, cursor: Cursor) -> Guard | None:
        """The guard that may stand beside the execution size, with the comma before it."""
        return None

    def spell_guard(self, guard: Guard) -> str:
        """The text of the guard beside the execution size, with the comma before it."""
        return ""


def need_name(cursor: Cursor, notation: Notation, expected: str = "a variable") -> Any:
    """The variable that the next token names.

    Raises:
        SyntaxFault: if it names none.
    """
    variable = notation.name(cursor)
    if variable is None:
        raise cursor.expected(expected)
    return variable


def _number(text: str) -> int:
    return int(text, 16 if text.startswith("0x") else 10)


def _integer(cursor: Cursor) -> int | None:
    m = cursor.match(_INTEGER)
    if m is None:
        return None
    return -_number(m[2]) if m[1] else _number(m[2])


def read_immediate(cursor: Cursor) -> Immediate | None:
    """A constant such as `0x10:d`, `-1:w`, `1.5:f` or `0x3f800000:f`; None where there is none.

    Raises:
        SyntaxFault: if it has no type, or does not fit it.
    """
    start = cursor.skip()
    literal = cursor.match(_FLOAT)
    value = None if literal else _integer(cursor)
    if literal is None and value is None:
        return None
    name = cursor.match(_TYPE)
    if name is None:
        raise cursor.expected("the type of the constant, such as ':d'")
    if name[1] not in TYPES and name[1] not in PACKED:
        raise cursor.fault(f"unknown type '{name[1]}'; there are {', '.join(TYPES)}", name.start(1))
    if literal:
        if name[1] not in ("f", "df"):
            raise cursor.fault(f"a constant of type {name[1]} is written by its bits, such as 0x3c00:hf", start)
        fmt = TYPES[name[1]]
        with np.errstate(over="ignore"):
            bits = int.from_bytes(np.array(float(literal[0]), fmt.dtype).tobytes(), "little")
        return Immediate(bits, fmt.name)
    assert value is not None
    size, is_float = (32, True) if name[1] in PACKED else (TYPES[name[1]].bits, TYPES[name[1]].is_float)
    # IGC writes negative numbers of 8 and 16 bits with 32.
    extended = name[1] in ("b", "w") and (1 << 32) - (1 << size - 1) <= value < 1 << 32
    if (not -(1 << (size - 1)) <= value < 1 << size and not extended) or (value < 0 and is_float):
        raise cursor.fault(f"{value} does not fit type {name[1]}", start)
    return Immediate(value & ((1 << size) - 1), name[1])


def write_immediate(value: Immediate, modern: bool = False) -> str:
    """The text of a constant."""
    if value.type in PACKED:
        return f"{value.bits:#x}:{value.type}"
    fmt = TYPES[value.type]
    if fmt.kind == "s" and value.bits >> (fmt.bits - 1):
        negative = value.bits - (1 << fmt.bits)
        return f"{negative & ((1 << max(fmt.bits, 32)) - 1):#x}:{value.type}" if modern else f"{negative}:{value.type}"
    return f"{value.bits:#x}:{value.type}"


def _pair(cursor: Cursor) -> tuple[int, int] | None:
    m = cursor.match(_PAIR)
    return None if m is None else (_number(m[1]), _number(m[2]))


def _read_element(cursor: Cursor, notation: Notation, var: Any) -> tuple[Any, tuple[int, int] | None]:
    """The variable, and the row and column of its element. Of an address variable there is the column alone."""
    at = _pair(cursor)
    address_variable = None if at else notation.address_variable(var)
    m = cursor.match(_ELEMENT) if address_variable else None
    return (address_variable, (0, int(m[1]))) if m else (var, at)


def _at_indirect(cursor: Cursor) -> bool:
    return cursor.text.startswith("r[", cursor.skip())


def _read_indirect(cursor: Cursor, notation: Notation, modifier: str, *, destination: bool) -> Indirect:
    cursor.expect("r")
    cursor.expect("[")
    start = cursor.skip()
    var = need_name(cursor, notation, "an address variable")
    if notation.address_variable(var) is None:
        raise cursor.fault(f"'{notation.spell(var)}' is no address variable", start)
    var, at = _read_element(cursor, notation, var)
    col = at[1] if at else 0
    plus = _integer(cursor) if cursor.accept(",") else 0
    if plus is None:
        raise cursor.expected("an integer")
    cursor.expect("]")
    region = cursor.match(_STRIDE if destination else _SOURCE) or (None if destination else cursor.match(_ROWS))
    if region is None:
        raise cursor.expected("a region")
    strides: list[int | None] = [*map(int, region.groups())]
    # The elements of a destination are those of the region <stride;1,0> behind one address.
    vstride, width, hstride = (strides[0], 1, 0) if destination else [None, *strides][-3:]
    start = cursor.pos
    name = cursor.match(_TYPE)
    if name is None or name[1] not in TYPES:
        cursor.pos = start
        raise cursor.expected(f"':' and the type, one of {', '.join(TYPES)}")
    assert width is not None and hstride is not None
    return Indirect(var, col, plus, vstride, width, hstride, name[1], modifier)


def _read_address_element(slot: OperandSpec, cursor: Cursor, notation: Notation) -> Operand:
    if not cursor.accept("&"):
        return _read_source(slot, cursor, notation)
    var = need_name(cursor, notation)
    m = cursor.match(_BYTES)
    return AddressOf(var, int(m[1]) if m else 0)


def read_operand(slot: OperandSpec, cursor: Cursor, notation: Notation) -> Operand:
    """Read one operand.

    Raises:
        SyntaxFault: if the text is none of this kind.
    """
    return _READERS[slot.kind](slot, cursor, notation)


def _read_destination(slot: OperandSpec, cursor: Cursor, notation: Notation) -> Operand:
    if slot.indirect and _at_indirect(cursor):
        return _read_indirect(cursor, notation, "", destination=True)
    var, at = _read_element(cursor, notation, need_name(cursor, notation))
    stride = cursor.match(_STRIDE)
    if stride is None:
        if at is None and slot.flags:
            return Flag(var)
        raise cursor.expected("the destination's region, such as '<1>'")
    row, col = at or (0, 0)
    return Destination(var, row, col, int(stride[1]))


def _read_source(slot: OperandSpec, cursor: Cursor, notation: Notation) -> Operand:
    modifier = cursor.match(_MODIFIER)
    if modifier and modifier[1] not in slot.modifiers:
        modifiers = ", ".join(f"({m})" for m in slot.modifiers) or "none"
        raise cursor.fault(
            f"'{slot.name}' cannot have modifier ({modifier[1]}); it can have {modifiers}", modifier.start()
        )
    if slot.indirect and _at_indirect(cursor):
        return _read_indirect(cursor, notation, modifier[1] if modifier else "", destination=False)
    var = notation.name(cursor)
    if var is None:
        value = read_immediate(cursor) if slot.immediate and not modifier else None
        if value is None:
            raise cursor.expected("a variable or a constant" if slot.immediate else "a variable")
        return value
    var, at = _read_element(cursor, notation, var)
    region = cursor.match(_SOURCE)
    if region is None:
        if at is None and slot.flags and not modifier:
            return Flag(var)
        raise cursor.expected("the source's region, such as '(0,0)<1;1,0>'")
    row, col = at or (0, 0)
    strides = (int(region[1]), int(region[2]), int(region[3]))
    return Region(var, row, col, *strides, modifier=modifier[1] if modifier else "")


def _read_raw(slot: OperandSpec, cursor: Cursor, notation: Notation) -> Operand:
    if cursor.accept(notation.null):
        if not slot.null:
            raise cursor.fault(f"'{slot.name}' cannot be null")
        notation.offset(cursor)
        return Raw(None)
    var = need_name(cursor, notation, f"a variable or '{notation.null}'" if slot.null else "a variable")
    return Raw(var, notation.offset(cursor))


def _read_vector(slot: OperandSpec, cursor: Cursor, notation: Notation) -> Operand:
    if slot.null and cursor.accept(notation.null):
        _pair(cursor)
        return Raw(None)
    var = need_name(cursor, notation, f"a variable or '{notation.null}'" if slot.null else "a variable")
    row, col = _pair(cursor) or (0, 0)
    return Vector(var, row, col)


def _read_scalar(slot: OperandSpec, cursor: Cursor, notation: Notation) -> Operand:
    start, var = cursor.skip(), notation.name(cursor)
    if var is None:
        value = _integer(cursor) if slot.immediate else None
        if value is None:
            raise cursor.expected("a variable or an integer" if slot.immediate else "a variable")
        if not -(1 << 31) <= value < 1 << 32:
            raise cursor.fault(f"{value} does not fit 32 bits", start)
        return Immediate(value & 0xFFFFFFFF, "ud")
    at = _pair(cursor)
    if at is None:
        at = (0, notation.offset(cursor))
    return Region(var, *at, 0, 1, 0)


def _read_address(slot: OperandSpec, cursor: Cursor, notation: Notation) -> Operand:
    space = cursor.match(_SPACE)
    if space is None:
        raise cursor.expected("an address, such as 'flat[V]'")
    base: Region | Immediate | None = None
    if cursor.accept("("):
        number = _integer(cursor)
        if number is None:
            base = Region(need_name(cursor, notation), *(_pair(cursor) or (0, 0)), 0, 1, 0)
        else:
            base = Immediate(number % (1 << 64), "uq")
        cursor.expect(")")
    cursor.expect("[")
    scaled = cursor.match(_SCALE)
    var = need_name(cursor, notation)
    offset = notation.offset(cursor)
    plus = _integer(cursor) if cursor.accept("+") or cursor.at("-") else 0
    if plus is None:
        raise cursor.expected("an integer")
    cursor.expect("]")
    return Address(var, offset, plus, _number(scaled[1]) if scaled else 1, space[1], base)


_READERS: dict[str, Callable[[OperandSpec, Cursor, Notation], Operand]] = {
    "dst": _read_destination,
    "src": _read_source,
    "raw": _read_raw,
    "vector": _read_vector,
    "scalar": _read_scalar,
    "address": _read_address,
    "place": _read_address_element,
    "flag": lambda slot, cursor, notation: Flag(need_name(cursor, notation, "a predicate")),
}


def write_operand(slot: OperandSpec, value: Any, notation: Notation, *, short: bool = False) -> str:
    """The text of one operand.

    Args:
        short: whether an offset of 0 behind a variable is left out.
    """
    if isinstance(value, Immediate):
        return f"{value.bits:#x}" if slot.kind == "scalar" else write_immediate(value, notation.modern)
    if value.var is None:
        if short:
            return notation.null
        return f"{notation.null}(0,0)" if slot.kind == "vector" else notation.spell_null()
    name = notation.spell(value.var)
    modifier = f"({value.modifier})" if getattr(value, "modifier", "") else ""

    def raw(offset: int) -> str:
        return name if short and not offset else notation.spell_raw(name, offset)

    if isinstance(value, Destination):
        return f"{name}{_at(value)}<{value.stride}>"
    if isinstance(value, Region):
        if slot.kind == "scalar":
            return name + (_inner(value) if notation.modern else _at(value))
        return f"{modifier}{name}{_at(value)}<{value.vstride};{value.width},{value.hstride}>"
    if isinstance(value, Vector):
        return f"{name}({value.row},{value.col})"
    if isinstance(value, Raw):
        return raw(value.offset)
    if isinstance(value, Address):
        plus = f"{'+' if value.plus > 0 else '-'}{abs(value.plus):#x}" if value.plus else ""
        scale = f"{value.scale:#x}*" if value.scale != 1 else ""
        base = ""
        if isinstance(value.base, Immediate):
            base = f"({value.base.bits:#x})"
        elif value.base:
            base = f"({notation.spell(value.base.var)}{_inner(value.base)})"
        return f"{value.space}{base}[{scale}{raw(value.offset)}{plus}]"
    if isinstance(value, Indirect):
        rows = f"{value.vstride};" if value.vstride is not None else ""
        region = f"{value.vstride}" if slot.use == "write" else f"{rows}{value.width},{value.hstride}"
        return f"{modifier}r[{name}({value.col}),{value.plus}]<{region}>:{value.type}"
    if isinstance(value, AddressOf):
        return f"&{name}{f'[{value.offset}]' if value.offset else ''}"
    return name


def _at(value: Destination | Region) -> str:
    return f"({value.col})" if getattr(value.var, "kind", "G") == "A" else f"({value.row},{value.col})"


def _inner(base: Region) -> str:
    return f"({base.row},{base.col})" if base.row or base.col else ""


def read_attribute(name: str, attribute: Attribute, cursor: Cursor, modern: bool = False) -> Any:
    """Read one attribute.

    Raises:
        SyntaxFault: if the text is none of this kind.
    """
    start = cursor.skip()
    if isinstance(attribute, KeywordAttribute):
        m = cursor.match(_WORD)
        keyword = m[0] if m else ""
        if keyword not in attribute.words:
            cursor.pos = start
            raise cursor.expected(f"'{name}', one of {', '.join(attribute.words)}")
        return keyword
    if isinstance(attribute, IntegerAttribute):
        m = cursor.match(_NUMBER)
        if m is None or int(m[0]) not in attribute.values:
            cursor.pos = start
            raise cursor.expected(f"'{name}', {attribute.summary}")
        return int(m[0])
    if isinstance(attribute, CacheAttribute):
        m = cursor.match(_CACHES) if cursor.at(".") else None
        caching = ".".join(filter(None, m.groups())) if m else ""
        is_legal = caching in attribute.pairs or (
            modern and all(keyword in (*attribute.words, "ov") for keyword in caching.split("."))
        )
        if m and not is_legal:
            raise cursor.fault(f"caches '{caching}' cannot be; there are {', '.join(attribute.pairs)}", start)
        if not m and cursor.at("."):
            raise cursor.expected("cache options of L1 and L3, such as '.ca.ca'")
        return caching
    if isinstance(attribute, DataShapeAttribute):
        m = cursor.match(_SHAPE)
        if m is None:
            raise cursor.expected("the data's shape, such as 'd32', 'd32x4', 'd64x16t' or 'd8c32'")
        return DataShape("d" + m[1].replace("u", "c"), int(m[2] or 1), bool(m[3]))
    if isinstance(attribute, BlockShapeAttribute):
        m = cursor.match(_BLOCK)
        if m is None:
            raise cursor.expected("the block's shape, such as 'd16.2x16x16nt'")
        return BlockShape(int(m[1]), int(m[2] or 1), int(m[3]), int(m[4]), m[5] == "t", m[6] == "t")
    if isinstance(attribute, SuffixAttribute):
        return next((keyword for keyword in attribute.words if cursor.accept(f".{keyword}")), "")
    if isinstance(attribute, SurfaceAttribute):
        m = cursor.match(_SURFACE)
        if m is None:
            raise cursor.expected("a surface, such as '%slm'")
        if m[0] != SLM:
            why = "no engine has a table of surfaces, only shared local memory, '%slm'"
            raise cursor.fault(f"'{m[0]}' is not supported: {why}", start)
        return SLM
    if isinstance(attribute, LabelsAttribute):
        names: list[str] = []
        while not names or cursor.accept(","):
            m = cursor.match(_LABEL)
            if m is None:
                raise cursor.expected("a label")
            names.append(m[0])
        return tuple(names)
    if isinstance(attribute, ByteAttribute):
        m = cursor.match(_PAIR_OF_DIGITS)
        if m is None:
            raise cursor.expected(f"'{name}', two hexadecimal digits")
        return int(m[0], 16)
    if isinstance(attribute, SymbolAttribute):
        m = cursor.match(_SYMBOL)
        if m is None:
            raise cursor.expected("a name")
        return m[1] if m[1] is not None else m[0]
    m = cursor.match(_LABEL)
    if m is None:
        raise cursor.expected("a label")
    return m[0]


def write_attribute(attribute: Attribute, value: Any, modern: bool = False) -> str:
    """The text of one attribute."""
    if isinstance(attribute, CacheAttribute):
        return f".{value}" if value else ""
    if isinstance(attribute, SuffixAttribute):
        return f".{value}" if value else ""
    if isinstance(attribute, LabelsAttribute):
        return ", ".join(value)
    if isinstance(attribute, ByteAttribute):
        return f"{value:02x}"
    if isinstance(attribute, SymbolAttribute):
        return f'"{value}"' if attribute.quoted else value
    if modern and isinstance(attribute, DataShapeAttribute):
        return str(value).replace("c", "u").replace("x1t", "t")
    return str(value)


@cache
def pieces(spec_name: str, form: str) -> tuple[tuple[str, str], ...]:
    """A form without the instruction's name: ("text", literal) and ("field", name)."""
    operand_form = form.removeprefix(spec_name)
    out: list[tuple[str, str]] = []
    for i, token in enumerate(_FIELD.split(operand_form)):
        if i % 2:
            out.append(("field", token))
        elif token:
            out.append(("text", token))
    return tuple(out)


def read_instruction(spec: InstructionSpec, cursor: Cursor, notation: Notation) -> Instruction:
    """Read an instruction's text after its name.

    Raises:
        SyntaxFault: where it does not fit the form.
    """
    values: dict[str, Any] = {}
    header: dict[str, Any] = {}
    for token_kind, piece in pieces(spec.name, spec.form):
        if token_kind == "text":
            for token in piece.split() if piece.strip() else ():
                _expect_text(cursor, token)
        elif piece == "sat":
            header["saturate"] = cursor.accept(".sat")
        elif piece == "exec":
            header.update(_read_exec(spec, cursor, notation))
        elif piece in spec.attributes:
            values[piece] = read_attribute(piece, spec.attributes[piece], cursor, notation.modern)
        else:
            values[piece] = read_operand(spec.slot(piece), cursor, notation)
    return Instruction(spec.name, values, **header)


def _expect_text(cursor: Cursor, token: str) -> None:
    start = cursor.skip()
    if not cursor.text.startswith(token, start):
        raise cursor.expected(f"'{token}'")
    cursor.pos = start + len(token)


def _read_exec(spec: InstructionSpec, cursor: Cursor, notation: Notation) -> dict[str, Any]:
    cursor.expect("(")
    mask = cursor.match(_MASK)
    if mask:
        cursor.expect(",")
    start = cursor.skip()
    size = _integer(cursor)
    if size not in spec.exec_sizes:
        sizes = ", ".join(map(str, spec.exec_sizes))
        raise cursor.fault(f"expected an execution size, {sizes}, such as in '(M1, {spec.exec_sizes[-1]})'", start)
    header: dict[str, Any] = {"exec_size": size, "mask": mask[0] if mask else "M1"}
    guard_start = cursor.skip()
    guard = notation.guard(cursor)
    if guard and not spec.guard:
        raise cursor.fault(f"'{spec.name}' cannot be predicated", guard_start)
    cursor.expect(")")
    header["guard"] = guard
    return header


def read_guard(cursor: Cursor, notation: Notation) -> Guard:
    """Read a guard without its brackets: `!P1.any`, or `!%P1 any`."""
    inverted = cursor.accept("!")
    var = need_name(cursor, notation, "a predicate")
    control = cursor.match(_CONTROL)
    return Guard(var, inverted, control[1] if control else "")


def write_instruction(spec: InstructionSpec, inst: Instruction, notation: Notation) -> str:
    """An instruction's text after its name."""
    out = ""
    for token_kind, token in pieces(spec.name, spec.form):
        if token_kind == "text":
            out += token
        elif token == "sat":
            out += ".sat" if inst.saturate else ""
        elif token == "exec":
            guard = notation.spell_guard(inst.guard) if inst.guard else ""
            out += f"({inst.mask}, {inst.exec_size}{guard})"
        elif token in spec.attributes:
            out += write_attribute(spec.attributes[token], inst[token], notation.modern)
        else:
            out += write_operand(spec.slot(token), inst[token], notation, short=notation.modern and spec.is_message)
    return out
