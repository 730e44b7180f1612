"""vISA assembly text: the reader and the writer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field, structs

from xegpu_py.did_you_mean import did_you_mean
from xegpu_py.ir.codecs import Cursor, SyntaxFault
from xegpu_py.ir.diagnostics import Position, Source
from xegpu_py.numerics.formats import TYPES
from xegpu_py.visa.instruction_text import Notation, read_guard, read_instruction, write_instruction
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import (
    ALIGNMENTS,
    BUILTINS,
    MAX_ALIASES,
    OTHER_BUILTINS,
    PREDICATE_SIZES,
    AddressOf,
    Guard,
    Indirect,
    Predicate,
    Region,
    Resource,
    Variable,
)
from xegpu_py.visa.program import (
    DEFAULT_VERSION,
    IMPLICIT_KINDS,
    LABEL,
    MODERN,
    NOWHERE,
    VERSION_OF,
    Input,
    Instruction,
    Program,
)
from xegpu_py.visa.spec import InstructionSpec

_NAME = re.compile(r"%?[A-Za-z_$][\w$]*")

_OFFSET = re.compile(r"\.(\d+)")

_LABEL_LINE = re.compile(r"([A-Za-z_$][\w$]*)\s*:\s*\Z")

_MNEMONIC = re.compile(r"[a-z]\w*")

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*")', re.DOTALL)

_DIRECTIVE = re.compile(r"\.([A-Za-z]\w*)")

_KEY = re.compile(r"([a-z_]+)\s*=")

_VALUE = re.compile(r"[\w$]+|\{[\w, ]*\}")

_LOCATION = re.compile(r'(FILE\s+"([^"]*)"|LOC\s+(\d+))\s*\Z')

_FUNCTION = re.compile(r'"([^"]*)"')

_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*)\s*(=?)")

_ALIGN_SPELLINGS = {"2GRF": "GRFx2", "1": "byte", "2": "word", "4": "dword", "8": "qword", "16": "oword"}


_OTHERS = {
    name: reason
    for reason, names in {
        "no engine has samplers and images": "sample sample_b sample_l sample_c sample_d sample_lz sample_c_lz load "
        "load_lz load_mcs gather4 gather4_c gather4_typed scatter4_typed media_ld media_st avs resinfo sampleinfo "
        "sampler_cache_flush movs",
        "no engine has this unit": "raw_send raw_sends urb_write vme_ime vme_sic vme_fbr rtwrite wait yield",
        "no document states its rule": "dnscl",
    }.items()
    for name in names.split()
}
"""Instructions of vISA that no engine has, and the reason."""

_TYPED = ("lsc_load_quad", "lsc_store_quad", "lsc_load_typed", "lsc_store_typed")
"""Messages to images, by the beginnings of their names."""


def is_name(text: str) -> bool:
    """Whether a variable can have this name."""
    return _NAME.fullmatch(text) is not None


class _AssemblyNotation(Notation):
    """Variables by their declared names."""

    null = "%null"

    def __init__(self, modern: bool = False) -> None:
        self.known: dict[str, Any] = {}
        self.modern = modern

    def name(self, cursor: Cursor) -> Any | None:
        start = cursor.skip()
        m = cursor.match(_NAME)
        if m is None:
            return None
        variable = self.known.get(m[0]) or BUILTINS.get(m[0])
        if variable is None and m[0] in OTHER_BUILTINS:
            raise SyntaxFault(start, f"'{m[0]}' is not supported; there are {', '.join(BUILTINS)}")
        if variable is None:
            raise SyntaxFault(start, f"'{m[0]}' is not declared{did_you_mean(m[0], self.known)}")
        return variable

    def spell(self, var: Any) -> str:
        return str(var.name)

    def offset(self, cursor: Cursor) -> int:
        m = _OFFSET.match(cursor.text, cursor.pos)
        if m is None:
            return 0
        cursor.pos = m.end()
        return int(m[1])

    def spell_raw(self, name: str, offset: int) -> str:
        return f"{name}.{offset}"

    def spell_null(self) -> str:
        return self.spell_raw(self.null, 0)


class _KernelText(Struct):
    """The parsed part of a kernel."""

    name: str
    where: Position
    version: str
    is_function: bool
    notation: _AssemblyNotation
    variables: list[Variable] = field(default_factory=list)
    predicates: list[Predicate] = field(default_factory=list)
    resources: list[Resource] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    attributes: dict[str, int | str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    callees: list[str] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    declared: dict[str, Position] = field(default_factory=dict)
    file: str = ""
    place: Position | None = None

    def program(self) -> Program:
        fields: dict[str, Any] = {n: tuple(x) if isinstance(x, list) else x for n, x in structs.asdict(self).items()}
        for field_name in ("notation", "file", "place"):
            del fields[field_name]
        return Program(**{**fields, "instructions": tuple(with_bases(self.instructions))})


def with_bases(instructions: Sequence[Instruction]) -> Sequence[Instruction]:
    """The instructions, whose indirect operands name the variables in which the addresses lie."""
    bases_of: dict[Variable, set[Variable]] = {}
    copies: list[tuple[Variable, Variable]] = []
    for inst in instructions:
        to = getattr(inst.values.get("dst"), "var", None)
        if isinstance(to, Variable) and to.kind == "A":
            for source in inst.sources:
                if isinstance(source, AddressOf):
                    bases_of.setdefault(to, set()).add(source.var)
                elif isinstance(source, Region) and source.var.kind == "A":
                    copies.append((to, source.var))
    for _ in copies:
        for to, source in copies:
            bases_of.setdefault(to, set()).update(bases_of.get(source, ()))
    if not bases_of:
        return instructions

    def based(value: Any) -> Any:
        if not isinstance(value, Indirect):
            return value
        return structs.replace(value, bases=tuple(sorted(bases_of.get(value.var, ()), key=lambda var: var.name)))

    return [
        inst.replaced(values={name: based(value) for name, value in inst.values.items()}) if inst.indirect else inst
        for inst in instructions
    ]


def read(source: Source) -> list[Program]:
    """The kernels of an assembly text.

    Raises:
        DiagnosticError: if the text cannot be parsed.
    """
    source.check_numbers()
    # Comments become spaces, so that offsets do not change.
    text = _COMMENT.sub(lambda m: m[0] if m[1] else re.sub(r"[^\n]", " ", m[0]), source.text)
    reader = _Reader()
    start = 0
    for line in text.split("\n"):
        try:
            if line.strip():
                reader.read_line(line, source.position(start + len(line) - len(line.lstrip())))
        except SyntaxFault as fault:
            raise source.error(start + min(fault.offset, len(line)), fault.message) from None
        start += len(line) + 1
    if not reader.kernels:
        raise source.error(0, "there is no .kernel")
    return [k.program() for k in reader.kernels]


class _Reader:
    """Reads a text line by line.

    Attributes:
        kernels: the kernels and functions that have begun.
    """

    def __init__(self) -> None:
        self.kernels: list[_KernelText] = []
        self._version = DEFAULT_VERSION

    def read_line(self, line: str, where: Position) -> None:
        """Read a line.

        Raises:
            SyntaxFault: if it is none of assembly.
        """
        cursor = Cursor(line)
        directive = cursor.match(_DIRECTIVE)
        kernels = self.kernels
        if directive and directive[1] == "version":
            version = cursor.match(VERSION_OF)
            if version is None or not cursor.at_end():
                raise cursor.expected("a version, such as 3.8")
            self._version = version[0]
            return
        if directive and directive[1] in ("kernel", "global_function"):
            name = cursor.string() or cursor.word()
            if not name:
                raise cursor.expected("the kernel's name")
            notation = _AssemblyNotation(int(self._version.partition(".")[0]) >= MODERN)
            kernels.append(_KernelText(name, where, self._version, directive[1] != "kernel", notation))
        elif not kernels:
            raise cursor.fault("expected .version or .kernel", len(line) - len(line.lstrip()))
        elif directive:
            _read_directive(directive[1], directive.start(), cursor, where, kernels[-1])
        elif location := cursor.match(_LOCATION):
            kernel = kernels[-1]
            if location[2] is not None:
                kernel.file = location[2]
            kernel.place = Position(kernel.file, int(location[3] or 0))
        else:
            kernel = kernels[-1]
            kernel.instructions.append(_read_statement(cursor, kernel.place or where, kernel.notation))
        if not cursor.at_end():
            raise cursor.fault(f"unexpected {cursor.peek_token()} after the statement")


def _read_directive(name: str, start: int, cursor: Cursor, where: Position, kernel: _KernelText) -> None:
    if name == "decl":
        _read_decl(cursor, where, kernel)
    elif name in ("input", "parameter"):
        kernel.inputs.append(_read_input(cursor, where, kernel, ""))
    elif name.startswith("implicit_"):
        implicit_kind = name.removeprefix("implicit_")
        if implicit_kind not in IMPLICIT_KINDS:
            raise cursor.fault(
                f"unknown implicit input '{implicit_kind}'; there are {', '.join(IMPLICIT_KINDS)}", start
            )
        kernel.inputs.append(_read_input(cursor, where, kernel, implicit_kind))
    elif name == "kernel_attr":
        m = cursor.match(_ATTRIBUTE)
        if m is None:
            raise cursor.expected("the attribute's name")
        text = cursor.string() if m[2] else ""
        number = cursor.integer() if m[2] and text is None else None
        if m[2] and text is None and number is None:
            raise cursor.expected("a string or an integer")
        kernel.attributes[m[1]] = text if text is not None else number or 0 if m[2] else True
    elif name in ("function", "funcdecl"):
        m = cursor.match(_FUNCTION)
        if m is None:
            raise cursor.expected("the function's name in quotes")
        (kernel.functions if name == "function" else kernel.callees).append(m[1])
    else:
        directives = (
            "version, kernel, global_function, function, funcdecl, decl, input, parameter, kernel_attr, "
            + ", ".join(f"implicit_{k}" for k in IMPLICIT_KINDS)
        )
        raise cursor.fault(f"unknown directive '.{name}'; there are {directives}", start)


def _read_decl(cursor: Cursor, where: Position, kernel: _KernelText) -> None:
    start = cursor.skip()
    m = cursor.match(_NAME)
    if m is None:
        raise cursor.expected("the variable's name")
    name = m[0]
    if name in kernel.notation.known or name in BUILTINS:
        raise SyntaxFault(start, f"redefinition of '{name}'")
    decl_fields: dict[str, Any] = {}
    offsets: dict[str, int] = {}
    while m := cursor.match(_KEY):
        key = m[1]
        offsets[key] = cursor.skip()
        if key == "alias":
            decl_fields[key] = _read_alias(cursor, kernel)
        elif key in ("v_type", "v_name", "type", "num_elts", "align", "attrs") and key not in decl_fields:
            value = cursor.match(_VALUE)
            if value is None:
                raise cursor.expected(f"a value of '{key}'")
            decl_fields[key] = value[0]
        else:
            raise cursor.fault(f"unknown or repeated '{key}' in .decl", m.start())
    count = decl_fields.get("num_elts", "")
    if not count.isdecimal() or not int(count):
        raise SyntaxFault(offsets.get("num_elts", start), "'num_elts' must be a positive number")
    declared: Variable | Predicate | Resource
    if decl_fields.get("v_type") == "P":
        declared = Predicate(name, int(count))
        if declared.count not in PREDICATE_SIZES:
            raise SyntaxFault(offsets["num_elts"], f"a predicate has 1, 2, 4, 8, 16 or 32 bits, not {count}")
        kernel.predicates.append(declared)
    elif decl_fields.get("v_type") == "G":
        if decl_fields.get("type") not in TYPES:
            raise SyntaxFault(offsets.get("type", start), f"'type' must be one of {', '.join(TYPES)}")
        align = _ALIGN_SPELLINGS.get(decl_fields.get("align", ""), decl_fields.get("align", "byte"))
        if align not in ALIGNMENTS:
            raise SyntaxFault(offsets["align"], f"'align' must be one of {', '.join(ALIGNMENTS)}")
        alias, attrs = decl_fields.get("alias"), decl_fields.get("attrs", "")
        declared = Variable(name, decl_fields["type"], int(count), align, alias, attrs=attrs)
        kernel.variables.append(declared)
    elif decl_fields.get("v_type") == "A":
        declared = Variable(name, "ud", int(count), "dword", kind="A")
        kernel.variables.append(declared)
    elif decl_fields.get("v_type") in ("S", "T"):
        declared = Resource(name, decl_fields["v_type"], int(count), decl_fields.get("v_name", ""))
        kernel.resources.append(declared)
    else:
        variable_kinds = "G, a general variable, A, an address variable, P, a predicate, S, a sampler, or T, a surface"
        raise SyntaxFault(offsets.get("v_type", start), f"'v_type' must be {variable_kinds}")
    kernel.notation.known[name] = declared
    kernel.declared[name] = where


def _read_alias(cursor: Cursor, kernel: _KernelText) -> tuple[Variable, int]:
    cursor.expect("<")
    start = cursor.skip()
    base = kernel.notation.name(cursor)
    if not isinstance(base, Variable):
        raise SyntaxFault(start, "an alias is of a general variable")
    if base.aliases == MAX_ALIASES:
        raise SyntaxFault(start, f"'{base.name}' exceeds the maximum length of a chain of aliases, {MAX_ALIASES}")
    cursor.expect(",")
    offset = cursor.integer()
    if offset is None:
        raise cursor.expected("a byte offset")
    cursor.expect(">")
    return base, offset


def _read_input(cursor: Cursor, where: Position, kernel: _KernelText, implicit_kind: str) -> Input:
    start = cursor.skip()
    var = kernel.notation.name(cursor)
    if not isinstance(var, Variable):
        raise SyntaxFault(start, "an input is a general variable")
    input_fields: dict[str, int] = {}
    while m := cursor.match(_KEY):
        value = cursor.integer()
        if m[1] not in ("offset", "size") or value is None:
            raise cursor.fault("expected 'offset=' and 'size=' with numbers", m.start())
        input_fields[m[1]] = value
    return Input(var, input_fields.get("offset", 0), input_fields.get("size", var.bytes), implicit_kind, where)


def _read_statement(cursor: Cursor, where: Position, notation: Notation) -> Instruction:
    start = cursor.skip()
    label = _LABEL_LINE.match(cursor.text, start)
    if label:
        cursor.pos = len(cursor.text)
        return Instruction(LABEL, {"label": label[1]}, where=where)
    guard: Guard | None = None
    if cursor.accept("("):
        guard = read_guard(cursor, notation)
        cursor.expect(")")
    spec = find_instruction(cursor)
    if guard and not spec.guard:
        raise SyntaxFault(start, f"'{spec.name}' cannot be predicated")
    inst = read_instruction(spec, cursor, notation)
    return inst.replaced(guard=guard, where=where)


def find_instruction(cursor: Cursor) -> InstructionSpec:
    """The instruction whose name comes next; what follows the name is left.

    Raises:
        SyntaxFault: if there is none.
    """
    start = cursor.skip()
    m = cursor.match(_MNEMONIC)
    if m is None:
        raise cursor.expected("an instruction")
    longer = re.compile(rf"{m[0]}\.[a-z]+").match(cursor.text, start)
    if longer and longer[0] in INSTRUCTIONS:
        cursor.pos = longer.end()
        return INSTRUCTIONS[longer[0]]
    spec = INSTRUCTIONS.get(m[0])
    if spec is None or spec.is_label:
        reason = _OTHERS.get(m[0]) or (m[0].startswith(_TYPED) and _OTHERS["sample"])
        if reason:
            raise SyntaxFault(start, f"'{m[0]}' is not supported: {reason}")
        raise SyntaxFault(start, f"unknown instruction '{m[0]}'{did_you_mean(m[0], INSTRUCTIONS)}")
    return spec


def write_statement(inst: Instruction, modern: bool = False) -> str:
    """One instruction in assembly, without indentation.

    Args:
        modern: whether as IGC prints it, and not as the finalizers that are programs read it.
    """
    notation = _AssemblyNotation(modern)
    spec = INSTRUCTIONS[inst.name]
    if spec.is_label:
        return f"{inst['label']}:"
    guard = ""
    if inst.guard:
        control = f".{inst.guard.control}" if inst.guard.control else ""
        guard = f"({'!' if inst.guard.inverted else ''}{inst.guard.var.name}{control}) "
    return guard + spec.name + write_instruction(spec, inst, notation)


def write(programs: Sequence[Program], lines: bool = False) -> str:
    """Assembly text of kernels, as Intel's finalizer reads it; of programs of version 4, as IGC prints it.

    Args:
        lines: whether comments say from which lines of a source instructions come, such as `// gemm.mlir:12`. An
            instruction from the same line as the previous one has no comment.
    """
    out = [f".version {programs[0].version if programs else DEFAULT_VERSION}"]
    for program in programs:
        out.append(f'.{"global_function" if program.is_function else "kernel"} "{program.name}"')
        out += _declarations(program)
        out += _body(program, lines)
    return "\n".join(out) + "\n"


def _declarations(program: Program) -> Iterator[str]:
    modern = program.modern
    yield from (f'.funcdecl "{name}"' for name in program.callees)
    for var in program.variables:
        if var.kind == "A":
            yield f".decl {var.name} v_type=A num_elts={var.count}"
            continue
        align = "" if modern and var.align == "byte" else f" align={var.align}"
        alias = f" alias=<{var.alias[0].name},{' ' * modern}{var.alias[1]}>" if var.alias else ""
        attrs = f" attrs={var.attrs}" if var.attrs else ""
        yield f".decl {var.name} v_type=G type={var.type} num_elts={var.count}{align}{alias}{attrs}"
    yield from (f".decl {p.name} v_type=P num_elts={p.count}" for p in program.predicates)
    for r in program.resources:
        yield f".decl {r.name} v_type={r.kind} num_elts={r.count}{f' v_name={r.spelling}' if r.spelling else ''}"
    for i in program.inputs:
        directive = f"implicit_{i.kind}" if i.kind else "input"
        yield f".{directive} {i.var.name} offset={i.offset} size={i.size}"
    for name, value in program.attributes.items():
        text = "" if value is True else f'="{value}"' if isinstance(value, str) else f"={value}"
        yield f".kernel_attr {name}{text}"


def _body(program: Program, lines: bool) -> Iterator[str]:
    modern, pending_text, position = program.modern, "", NOWHERE
    for inst in program.instructions:
        if INSTRUCTIONS[inst.name].is_label:
            if inst["label"] in program.functions:
                yield f'.function "{inst["label"]}"'
            yield write_statement(inst)
            continue
        if modern and inst.where.column == 0 and inst.where not in (position, NOWHERE):
            if inst.where.file != position.file:
                yield f'    FILE "{inst.where.file}"'
            yield f"    LOC {inst.where.line}"
            position = inst.where
        origin = _location_text(inst.where) if inst.where != NOWHERE else pending_text
        comment = f" // {origin}" if lines and origin != pending_text else ""
        yield f"    {write_statement(inst, modern)}{comment}"
        pending_text = origin


def _location_text(where: Position) -> str:
    name = "".join(c if c.isprintable() else "?" for c in os.path.basename(where.file))
    return f"{name}:{where.line}"
