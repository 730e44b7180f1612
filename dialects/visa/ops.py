"""The vISA dialect's ops, one for each instruction, and their text."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from mlir import ir
from msgspec.structs import replace

from xegpu_py.ir.assembly_format import AttrDict
from xegpu_py.ir.codecs import AttributeCodec, Cursor, NumberCodec, StringCodec, SyntaxFault, WordCodec
from xegpu_py.ir.definition import Attribute, Dialect, Operand, Result, Type, default
from xegpu_py.ir.operation import Operation, ParsedOp, Reading, ReadOperand, group_sizes
from xegpu_py.numerics.formats import TYPES
from xegpu_py.visa import spec as declared
from xegpu_py.visa.assembly import is_name
from xegpu_py.visa.instruction_text import (
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
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import (
    ALIGNMENTS,
    BUILTINS,
    PREDICATE_SIZES,
    AddressOf,
    Destination,
    Flag,
    Guard,
    Immediate,
    Indirect,
    Region,
)
from xegpu_py.visa.operands import Address as MessageAddress
from xegpu_py.visa.operands import Operand as VisaOperand
from xegpu_py.visa.program import IMPLICIT_KINDS, Instruction
from xegpu_py.visa.spec import LANES, CacheAttribute, InstructionSpec, OperandSpec

# The dialect, its types, the declarations, and an op for each instruction of the table.


class Visa(Dialect, name="visa"):
    """Kernels as lists of vISA instructions, one op each.

    A kernel is a `gpu.func` with the attribute `kernel` and without arguments, whose body holds ops of this dialect and
    `gpu.return` alone. Its instructions run in order; labels and jumps are ops among them. A variable is mutable state:
    the SSA value that its declaration gives is a handle, by which instructions name it, and never a value at some time.

        gpu.func @add_one() kernel attributes {visa.attributes = {SimdSize = 16 : i64}, visa.target = "pvcxt"} {
          %X = visa.decl "X", f x 16, align = GRF
          %P = visa.decl_pred "P", 16
          visa.cmp.lt (M1, 16) %P %X(0,0)<1;1,0> 0x3f800000:f
          visa.add (M1, 16, %P) %X(0,0)<1> %X(0,0)<1;1,0> 0x3f800000:f
          visa.ret (M1, 1)
          gpu.return
        }

    `visa.attributes` are the kernel's attributes, such as `SimdSize`, `SLMSize` (KiB) and `NBarrierCnt`. `visa.version`
    is the version of assembly, 3.8 by default. `visa.target`, of the kernel or of what is around it, names the GPU by
    whose rules the kernel is verified.

    An instruction's own syntax is that of vISA assembly with SSA names, the guard beside the execution size, and byte
    offsets in brackets. In generic form each operand has a string attribute of its name and `_access` that says how
    the variable is accessed; `%` stands for the variable, and a constant stands for itself.

    `visa.functions` lists the labels at which functions begin: that of the kernel itself, then those that it calls.

    An address variable holds places of bytes in the register file. `%A(3)` is one of its elements, and `r[%A(3),8]` are
    the registers 8 bytes behind that place.

        %A = visa.decl_address "A", 16
        visa.addr_add (M1, 16) %A(0)<1> &%X %offsets(0,0)<1;1,0>
        visa.mov (M1, 16) %Y(0,0)<1> r[%A(0),0]<1,0>:f
    """


class Var(Type, dialect=Visa, name="var"):
    """The handle of a general variable. Its element type and size are those of its declaration.

    !visa.var
    """


class Pred(Type, dialect=Visa, name="pred"):
    """The handle of a predicate variable: one bit for each SIMD lane.

    !visa.pred
    """


class Address(Type, dialect=Visa, name="address"):
    """The handle of an address variable, whose elements are places of bytes in the register file.

    !visa.address
    """


def _check_name(op: Operation, name: str) -> None:
    if not is_name(name):
        op.fail(
            f"'{name}' is not a valid variable name",
            "a name consists of letters, digits, '_' and '$', and does not begin with a digit",
        )
    if name in BUILTINS:
        op.fail(f"redefinition of '{name}'", "this is the name of a built-in variable")


def _ssa_name(name: str) -> str:
    return name.removeprefix("%")


class DeclOp(Operation, dialect=Visa, name="decl"):
    """Declares a general variable: `count` elements of a type, side by side.

    With an alias it lies in the registers of another variable, `offset` bytes from the other's start.

        %X = visa.decl "X", f x 128, align = GRF
        %Y = visa.decl "Y", uw x 16, alias = %X + 64
    """

    var_name: Attribute[str]
    element: Attribute[Annotated[str, WordCodec(tuple(TYPES))]]
    count: Attribute[int]
    align: Attribute[Annotated[str, WordCodec(tuple(ALIGNMENTS))]] = default("byte")
    alias: Operand[Var] | None = None
    offset: Attribute[int] = default(0)
    result: Result[Var]

    effects = frozenset(["variables"])
    assembly_format = (
        "$var_name `,` $element `x` $count (`,` `align` `=` $align^)? "
        "(`,` `alias` `=` $alias^ (`+` $offset^)?)? attr-dict"
    )

    def verify_op(self) -> None:
        _check_name(self, self.var_name)
        if self.offset and self.alias is None:
            self.fail("'offset' requires 'alias'")

    @classmethod
    def result_name(cls, parsed: ParsedOp) -> str | None:
        return _ssa_name(parsed.attributes["var_name"])


class DeclPredOp(Operation, dialect=Visa, name="decl_pred"):
    """Declares a predicate variable of `count` bits, one for each SIMD lane.

    %P = visa.decl_pred "P", 16
    """

    var_name: Attribute[str]
    count: Attribute[Annotated[int, NumberCodec(PREDICATE_SIZES)]]
    result: Result[Pred]

    effects = frozenset(["variables"])
    assembly_format = "$var_name `,` $count attr-dict"

    def verify_op(self) -> None:
        _check_name(self, self.var_name)

    @classmethod
    def result_name(cls, parsed: ParsedOp) -> str | None:
        return _ssa_name(parsed.attributes["var_name"])


class DeclAddressOp(Operation, dialect=Visa, name="decl_address"):
    """Declares an address variable of `count` elements, each the place of a byte in the register file.

    %A = visa.decl_address "A", 16
    """

    var_name: Attribute[str]
    count: Attribute[int]
    result: Result[Address]

    effects = frozenset(["variables"])
    assembly_format = "$var_name `,` $count attr-dict"

    def verify_op(self) -> None:
        _check_name(self, self.var_name)

    @classmethod
    def result_name(cls, parsed: ParsedOp) -> str | None:
        return _ssa_name(parsed.attributes["var_name"])


class BuiltinOp(Operation, dialect=Visa, name="builtin"):
    """Names a variable that each thread has from the start, and that can only be read.

    `r0` is the payload's header, and `group_id_x`, `group_id_y`, `group_id_z` are the workgroup's coordinates.

        %group_id_x = visa.builtin group_id_x
    """

    which: Attribute[Annotated[str, WordCodec([_ssa_name(n) for n in BUILTINS])]]
    result: Result[Var]

    effects = frozenset(["variables"])
    assembly_format = "$which attr-dict"

    @classmethod
    def result_name(cls, parsed: ParsedOp) -> str | None:
        return str(parsed.attributes["which"])


class InputOp(Operation, dialect=Visa, name="input"):
    """Says that a variable has its value from the start: an argument of the kernel, or something of the launch.

    `offset` is where it lies in the thread's payload in bytes, from the start of r0, and `size` its bytes. Without a
    `kind` it is an argument, and arguments are passed in this order.

        visa.input %A, offset = 64, size = 8
        visa.input %groups, offset = 96, size = 12, kind = GROUP_COUNT
    """

    var: Operand[Var]
    offset: Attribute[int]
    size: Attribute[int]
    kind: Attribute[Annotated[str, WordCodec(IMPLICIT_KINDS)]] = default("")

    effects = frozenset(["variables"])
    assembly_format = "$var `,` `offset` `=` $offset `,` `size` `=` $size (`,` `kind` `=` $kind^)? attr-dict"


class InstructionOp(Operation):
    """Base of the ops that are instructions.

    Attributes:
        declaration: what the table of instructions says of it.
    """

    declaration: ClassVar[InstructionSpec]

    def instruction(
        self,
        variable: Callable[[Any], Any] = lambda value: value,
        decoded: dict[tuple[str, str, ir.Attribute], Any] | None = None,
    ) -> Instruction:
        """The instruction, without its place.

        Args:
            variable: gives what an SSA value stands for.
            decoded: attributes decoded before, to which it adds: most of a kernel's attributes are equal to others.

        Raises:
            ValueError: if attributes and operands do not fit each other.
        """
        decoded = {} if decoded is None else decoded
        fields, op = self.spec.attributes, self.operation
        attributes = {name: field.default for name, field in fields.items()}
        for name, attribute in op.attributes.items():
            if name in fields:
                key = (self.OPERATION_NAME, name, attribute)
                if key not in decoded:
                    decoded[key] = fields[name].codec.decode(str(attribute))
                attributes[name] = decoded[key]
        # No group of operands is variadic.
        values = iter(op.operands)
        groups = zip(self.spec.operands, group_sizes(self, "operand"))
        operands = {group.name: variable(next(values)) if size else None for group, size in groups}
        return instruction_of(self.declaration, attributes.__getitem__, operands.__getitem__)


_EFFECTS = {
    "load": ("read", "variables"),
    "store": ("write",),
    "atomic": ("read", "write", "variables"),
    "sync": ("sync",),
    "control": ("control",),
}


def _define(spec: InstructionSpec) -> type[InstructionOp]:
    fields: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for slot in spec.slots:
        fields[slot.name] = _operand(slot)
        if slot.kind == "address":
            fields[slot.name + BASE] = Operand[Var] | None
    if spec.guard:
        fields[GUARD] = Operand[Pred] | None
    for slot in spec.slots:
        fields[slot.name + ACCESS] = Attribute[Annotated[Any, access_codec(slot)]]
    for name, attribute in spec.attributes.items():
        fields[name] = Attribute[Annotated[Any, attribute_codec(name, attribute)]]
        if isinstance(attribute, (CacheAttribute, declared.SuffixAttribute)):
            values[name] = default("")
    if spec.exec_sizes:
        fields["exec_size"] = Attribute[Annotated[int, NumberCodec(spec.exec_sizes)]]
        fields["mask"] = Attribute[Annotated[str, WordCodec(MASKS)]]
    if spec.guard:
        fields |= {"inverted": Attribute[bool], "control": Attribute[Annotated[str, WordCodec(CONTROLS)]]}
        values |= {"inverted": default(False), "control": default("")}
    if spec.saturates:
        fields["saturate"] = Attribute[bool]
        values["saturate"] = default(False)
    body = values | {
        "__annotations__": fields,
        "__doc__": _describe(spec),
        "__module__": __name__,
        "declaration": spec,
        "effects": frozenset(_EFFECTS.get(spec.category, ("variables",))),
        "assembly_format": InstructionSyntax(spec),
    }
    name = "".join(part.capitalize() for part in spec.op_name.split("_"))
    header = {"dialect": Visa, "name": spec.op_name}
    return types.new_class(f"{name}Op", (InstructionOp,), header, lambda namespace: namespace.update(body))


def _operand(slot: OperandSpec) -> Any:
    if slot.kind == "flag":
        return Operand[Pred]
    handles: Any = Var
    if slot.flags:
        handles |= Pred
    if slot.addresses or slot.indirect:
        handles |= Address
    return Operand[handles] | None if slot.immediate or slot.null else Operand[handles]


def _describe(spec: InstructionSpec) -> str:
    """The docstring of an instruction's op."""
    lines = [f"- `{slot.name}`, {'written' if slot.use == 'write' else 'read'}: {_slot(slot)}" for slot in spec.slots]
    rules = f"Rules: {spec.source}" + (
        f"; execution size {', '.join(map(str, spec.exec_sizes))}" * bool(spec.exec_sizes)
    )
    return "\n\n".join([spec.doc, *(["\n".join(lines)] if lines else []), f"{rules}."])


_FORMS = {
    "dst": "a region",
    "src": "a region",
    "raw": "whole registers",
    "vector": "consecutive elements",
    "scalar": "one element",
    "address": "addresses",
    "place": "the place of a variable, or an address variable",
    "flag": "a predicate",
}


def _slot(slot: OperandSpec) -> str:
    text = _FORMS[slot.kind] + (f" of {', '.join(slot.types)}" if slot.types else "")
    also = ["a constant"] * slot.immediate + ["a predicate"] * slot.flags + ["`null`"] * slot.null
    text += "".join(f", or {a}" for a in also)
    return text + (f"; modifiers {', '.join(f'`({m})`' for m in slot.modifiers)}" if slot.modifiers else "")


# The text of instructions: kinds of their attributes, and their syntax with SSA names.

ACCESS = "_access"
"""The suffix of the attribute that describes the access of an operand; it follows the operand's name."""

BASE = "_base"
"""The suffix of the operand that holds the address to which a message's offsets are added."""

GUARD = "guard"

CONTROLS = ("any", "all")

MASKS = tuple(f"M{1 + lane // 4}{suffix}" for lane in range(0, LANES, 4) for suffix in ("", "_NM"))


class AddressName(str):
    """The name of an address variable, of which operands name elements by one number: `%A(3)`."""

    kind = "A"


class _Brackets(Notation):
    """Byte offsets in brackets: `%X[64]`."""

    null = "null"

    def address_variable(self, var: Any) -> AddressName:
        return AddressName(var)

    def spell(self, var: Any) -> str:
        return str(var)

    def offset(self, cursor: Cursor) -> int:
        m = cursor.match(_OFFSET)
        return int(m[1]) if m else 0

    def spell_raw(self, name: str, offset: int) -> str:
        return f"{name}[{offset}]"


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
    if isinstance(attribute, declared.KeywordAttribute):
        return WordCodec(attribute.words)
    if isinstance(attribute, declared.CacheAttribute):
        return WordCodec(attribute.pairs)
    if isinstance(attribute, declared.SuffixAttribute):
        return WordCodec(attribute.words)
    if isinstance(attribute, declared.IntegerAttribute):
        return NumberCodec(attribute.values)
    summary = {
        declared.DataShapeAttribute: "a data shape",
        declared.BlockShapeAttribute: "a block shape",
        declared.LabelAttribute: "a label",
        declared.ByteAttribute: "two hexadecimal digits",
        declared.SymbolAttribute: "a symbol",
        declared.LabelsAttribute: "labels",
        declared.SurfaceAttribute: "a surface",
    }
    return _TextKind(
        summary[type(attribute)],
        lambda cursor: read_attribute(name, attribute, cursor),
        lambda value: write_attribute(attribute, value),
    )


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
        inst = instruction_of(
            self.spec,
            lambda name: parsed.attributes.get(name, op.spec.attributes[name].default),
            lambda name: next(map(_typed_name, parsed.operands[name], parsed.types[name]), None),
        )
        dictionary = self._outside(op).write(op, parsed, print_defaults)
        return " ".join([write_instruction(self.spec, inst, SsaNotation()), *dictionary])

    def _outside(self, op: type[Operation]) -> AttrDict:
        return AttrDict(frozenset(op.spec.attributes))

    def __str__(self) -> str:
        name, *rest = f"visa.{self.spec.op_name}", *pieces(self.spec.name, self.spec.form)
        return name + "".join(p if kind == "text" else _placeholder(self.spec, p) for kind, p in rest) + " attr-dict?"


OPS = {name: _define(spec) for name, spec in INSTRUCTIONS.items()}
"""The op class of each instruction by the instruction's name."""

HANDLE = "%"
"""The placeholder of the variable in the text of an access, and in its record."""

VAR = "!visa.var"

PRED = "!visa.pred"

ADDRESS = "!visa.address"

_OFFSET = re.compile(r"\[\s*(\d+)\s*\]")


@dataclass
class SsaNotation(_Brackets):
    """Variables by SSA names, and the guard beside the execution size.

    Attributes:
        mark: gives the placeholder of an SSA name in the text that is read.
    """

    mark: ReadOperand = str

    def name(self, cursor: Cursor) -> str | None:
        ssa_name = cursor.ssa()
        return None if ssa_name is None else self.mark(ssa_name)

    def guard(self, cursor: Cursor) -> Guard | None:
        return read_guard(cursor, self) if cursor.accept(",") else None

    def spell_guard(self, guard: Guard) -> str:
        return f", {'!' * guard.inverted}{guard.var}{' ' * bool(guard.control)}{guard.control}"


_OF_EITHER = (Destination, Region, Indirect, AddressOf)
"""The operands whose text depends on whether the variable is one of addresses."""


def _is_address(value: Any) -> bool:
    """Whether an operand is an element of an address variable, or registers at places that are in one."""
    return isinstance(value, Indirect) or getattr(value.var, "kind", "G") == "A"


def _typed_name(name: str, of_type: str) -> str:
    return AddressName(name) if of_type == ADDRESS else name


def parsed_of(spec: InstructionSpec, inst: Instruction) -> ParsedOp:
    """The parts of an instruction's op. `ParsedOp` holds the instruction's variables as operands."""
    parsed = ParsedOp()
    for slot in spec.slots:
        value: VisaOperand = inst[slot.name]
        if isinstance(value, Immediate) or value.var is None:
            parsed.operands[slot.name], parsed.types[slot.name] = [], []
            parsed.attributes[slot.name + ACCESS] = value
        else:
            parsed.operands[slot.name] = [value.var]
            parsed.types[slot.name] = [PRED if isinstance(value, Flag) else ADDRESS if _is_address(value) else VAR]
            parsed.attributes[slot.name + ACCESS] = replace(value, var=_typed_name(HANDLE, *parsed.types[slot.name]))
        if slot.kind == "address":
            base = value.base if isinstance(value, MessageAddress) and isinstance(value.base, Region) else None
            parsed.operands[slot.name + BASE], parsed.types[slot.name + BASE] = (
                ([base.var], [VAR]) if base else ([], [])
            )
            if base:
                access = parsed.attributes[slot.name + ACCESS]
                parsed.attributes[slot.name + ACCESS] = replace(access, base=replace(base, var=HANDLE))
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
            problem = "requires the operand" if var is None else "does not allow the operand"
            raise ValueError(f"'{slot.name}{ACCESS}' {problem} '{slot.name}'")
        if isinstance(access, _OF_EITHER) and _is_address(access) != (getattr(var, "kind", "G") == "A"):
            if isinstance(access, (Destination, Region)):
                must = f"name the element by %({'row,' * _is_address(access)}column)"
            else:
                must = f"be of {'an address' if _is_address(access) else 'a general'} variable"
            raise ValueError(f"'{slot.name}{ACCESS}' must {must}")
        values[slot.name] = access if var is None else replace(access, var=var)
        if slot.kind == "address":
            base, handle = getattr(access, "base", None), operand(slot.name + BASE)
            if isinstance(base, Region) != (handle is not None):
                problem = "requires the operand" if handle is None else "does not allow the operand"
                raise ValueError(f"'{slot.name}{ACCESS}' {problem} '{slot.name}{BASE}'")
            if isinstance(base, Region):
                values[slot.name] = replace(values[slot.name], base=replace(base, var=handle))
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


def _placeholder(spec: InstructionSpec, field: str) -> str:
    if field == "sat":
        return "(.sat)?"
    if field == "exec":
        return f"({{mask}}, {{exec_size}}{'(, !?{guard} (any|all)?)?' if spec.guard else ''})"
    return f"(.{{{field}}})?" if isinstance(spec.attributes.get(field), declared.CacheAttribute) else f"{{{field}}}"
