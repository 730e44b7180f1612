"""The text of instructions: kinds of their attributes, and their syntax with SSA names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from xegpu_py.ir.assembly import AttrDict
from xegpu_py.ir.codecs import AttributeCodec, NumberCodec, StringCodec, WordCodec
from xegpu_py.ir.cursor import Cursor, SyntaxFault
from xegpu_py.ir.operation import Operation, ParsedOp, Reading, ReadOperand
from xegpu_py.visa import spec as declared
from xegpu_py.visa.operands import Flag, Guard, Immediate, Operand
from xegpu_py.visa.program import Instruction
from xegpu_py.visa.spec import LANES, InstructionSpec, OperandSpec
from xegpu_py.visa.text import (
    Notation,
    pieces,
    read_attribute,
    read_guard,
    read_instruction,
    read_operand,
    write_attribute,
    write_instruction,
    write_operand,
)

HANDLE = "%"
"""The placeholder of the variable in the text of an access, and in its record."""

ACCESS = "_access"
"""The suffix of the attribute that describes the access of an operand; it follows the operand's name."""

GUARD = "guard"
CONTROLS = ("any", "all")
MASKS = tuple(f"M{1 + lane // 4}{suffix}" for lane in range(0, LANES, 4) for suffix in ("", "_NM"))

VAR = "!visa.var"
PRED = "!visa.pred"

_OFFSET = re.compile(r"\[\s*(\d+)\s*\]")


class _Brackets(Notation):
    """Byte offsets in brackets: `%X[64]`."""

    null = "null"

    def spell(self, var: Any) -> str:
        return str(var)

    def offset(self, cursor: Cursor) -> int:
        m = cursor.match(_OFFSET)
        return int(m[1]) if m else 0

    def spell_raw(self, name: str, offset: int) -> str:
        return f"{name}[{offset}]"


@dataclass
class SsaNotation(_Brackets):
    """Variables by SSA names, and the guard beside the execution size.

    Attributes:
        mark: gives the placeholder of an SSA name in the text that is read.
    """

    mark: ReadOperand = str

    def name(self, cursor: Cursor) -> str | None:
        found = cursor.ssa()
        return None if found is None else self.mark(found)

    def guard(self, cursor: Cursor) -> Guard | None:
        return read_guard(cursor, self) if cursor.accept(",") else None

    def spell_guard(self, guard: Guard) -> str:
        return f", {'!' * guard.inverted}{guard.var}{' ' * bool(guard.control)}{guard.control}"


class _HandleNotation(_Brackets):
    """Every variable by `%`."""

    def name(self, cursor: Cursor) -> str | None:
        return HANDLE if cursor.accept(HANDLE) else None


class _TextKind(StringCodec):
    """A string that holds a text of vISA's, and its value the record that this reads as."""

    def __init__(self, summary: str, read: Callable[[Cursor], Any], write: Callable[[Any], str]) -> None:
        self.summary = summary
        self._read = read
        self._write = write

    def decode(self, raw: str) -> Any:
        cursor = Cursor(super().decode(raw))
        try:
            value = self._read(cursor)
        except SyntaxFault as fault:
            raise ValueError(f"'{cursor.text}': {fault.message}") from None
        if not cursor.at_end():
            raise ValueError(f"'{cursor.text}': unexpected {cursor.peek_token()}")
        return value

    def encode(self, value: Any) -> str:
        return super().encode(self._write(value))

    def coerce(self, value: Any) -> Any:
        return self.decode(super().encode(value)) if isinstance(value, str) else value


def access_codec(slot: OperandSpec) -> AttributeCodec:
    """The kind of the attribute that says how an operand is accessed.

    It is the operand's text with `%` in the place of the variable: `(-)%(1,0)<1;1,0>`, `%[64]`, `0x10:d`, `null`.
    """
    notation = _HandleNotation()
    return _TextKind(
        f"how '{slot.name}' is accessed",
        lambda cursor: read_operand(slot, cursor, notation),
        lambda value: write_operand(slot, value, notation),
    )


def attribute_codec(name: str, attribute: declared.Attribute) -> AttributeCodec:
    """The kind of an attribute that an instruction declares."""
    if isinstance(attribute, declared.Choice):
        return WordCodec(attribute.words)
    if isinstance(attribute, declared.Caches):
        return WordCodec(attribute.pairs)
    if isinstance(attribute, declared.Number):
        return NumberCodec(attribute.values)
    summary = {declared.Shape: "a data shape", declared.Block: "a block shape", declared.Name: "a label"}
    return _TextKind(
        summary[type(attribute)],
        lambda cursor: read_attribute(name, attribute, cursor),
        lambda value: write_attribute(attribute, value),
    )


def parsed_of(spec: InstructionSpec, inst: Instruction) -> ParsedOp:
    """The parts of an instruction's op. `ParsedOp` holds the instruction's variables as operands."""
    parsed = ParsedOp()
    for slot in spec.slots:
        value: Operand = inst[slot.name]
        if isinstance(value, Immediate) or value.var is None:
            parsed.operands[slot.name], parsed.types[slot.name] = [], []
            parsed.attributes[slot.name + ACCESS] = value
        else:
            parsed.operands[slot.name] = [value.var]
            parsed.types[slot.name] = [PRED if isinstance(value, Flag) else VAR]
            parsed.attributes[slot.name + ACCESS] = replace(value, var=HANDLE)
    parsed.attributes |= {name: inst[name] for name in spec.attributes if inst[name] != ""}
    if spec.exec_sizes:
        parsed.attributes |= {"exec_size": inst.exec_size, "mask": inst.mask}
    if spec.guard:
        guard = inst.guard
        parsed.operands[GUARD] = [guard.var] if guard else []
        parsed.types[GUARD] = [PRED] if guard else []
        if guard and guard.inverted:
            parsed.attributes["inverted"] = True
        if guard and guard.control:
            parsed.attributes["control"] = guard.control
    if inst.saturate:
        parsed.attributes["saturate"] = True
    return parsed


def instruction_of(
    spec: InstructionSpec, attributes: Callable[[str], Any], operand: Callable[[str], Any]
) -> Instruction:
    """The instruction that an op's attributes and operands, asked for by their names, make.

    Raises:
        ValueError: if they do not fit each other.
    """
    values: dict[str, Any] = {}
    for slot in spec.slots:
        access, var = attributes(slot.name + ACCESS), operand(slot.name)
        if (getattr(access, "var", None) is None) != (var is None):
            what = "requires the operand" if var is None else "does not allow the operand"
            raise ValueError(f"'{slot.name}{ACCESS}' {what} '{slot.name}'")
        values[slot.name] = access if var is None else replace(access, var=var)
    values |= {name: attributes(name) for name in spec.attributes}
    header: dict[str, Any] = {}
    if spec.exec_sizes:
        header = {"exec_size": attributes("exec_size"), "mask": attributes("mask")}
    if spec.guard:
        var, inverted, control = operand(GUARD), attributes("inverted"), attributes("control")
        if var is not None:
            header["guard"] = Guard(var, inverted, control or "")
        elif inverted or control:
            raise ValueError(f"'inverted' and 'control' require the operand '{GUARD}'")
    if spec.saturates:
        header["saturate"] = attributes("saturate")
    return Instruction(spec.name, values, **header)


class InstructionSyntax:
    """An instruction's text, with SSA names."""

    def __init__(self, spec: InstructionSpec) -> None:
        self.spec = spec

    def read(self, op: type[Operation], r: Reading) -> ParsedOp:
        parsed = parsed_of(self.spec, read_instruction(self.spec, r.cursor, SsaNotation(r.operand)))
        if r.cursor.at("{"):
            self._outside(op).read(r, op, parsed)
        return parsed

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool = False) -> str:
        def attribute(name: str) -> Any:
            return parsed.attributes.get(name, op.spec.attributes[name].default)

        def operand(name: str) -> str | None:
            return next(iter(parsed.operands[name]), None)

        inst = instruction_of(self.spec, attribute, operand)
        dictionary = self._outside(op).write(op, parsed, print_defaults)
        return " ".join([write_instruction(self.spec, inst, SsaNotation()), *dictionary])

    def _outside(self, op: type[Operation]) -> AttrDict:
        """The dictionary of discardable attributes."""
        return AttrDict(frozenset(op.spec.attributes))

    def __str__(self) -> str:
        name, *rest = f"visa.{self.spec.op_name}", *pieces(self.spec.name, self.spec.form)
        return name + "".join(p if kind == "text" else _placeholder(self.spec, p) for kind, p in rest) + " attr-dict?"


def _placeholder(spec: InstructionSpec, field: str) -> str:
    if field == "sat":
        return "(.sat)?"
    if field == "exec":
        return f"({{mask}}, {{exec_size}}{'(, !?{guard} (any|all)?)?' if spec.guard else ''})"
    return f"(.{{{field}}})?" if isinstance(spec.attributes.get(field), declared.Caches) else f"{{{field}}}"
