"""Custom syntax of operations, from declarative formats in the language of MLIR's ODS.

The language has: literals in back quotes (an empty one joins its neighbours without a space), `$field` for operands,
index lists, attributes and regions, `type($field)`, `bare($field)` for the type of ours without its name,
`functional-type($field, ..., $result)` for `(types) -> types`, `flat($field)` for an index list without brackets,
`attr-dict`, `prop-dict` (the op's own attributes as `<{...}>`, which the `attr-dict` may have too), and optional groups
`( ... )?` whose anchor is marked `^`. A group of literals alone may be left out when read and is left out when printed.

Reading turns an op's text into a `ParsedOp`; `encode` turns that into MLIR's generic form; `decode` and `Format.write`
go the other way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from xegpu_py.did_you_mean import did_you_mean
from xegpu_py.ir.codecs import AttributeCodec, Cursor, ParserScope, SyntaxFault, UnitCodec, split_list
from xegpu_py.ir.definition import DYNAMIC, Type
from xegpu_py.ir.operation import (
    MIXED,
    SEGMENTS,
    STATIC,
    Operation,
    OpSpec,
    ParsedOp,
    Reading,
    ReadOperand,
    Syntax,
    ValueField,
    expanded,
)

_ELEMENTS = re.compile(
    r"\s*(?:`([^`]*)`|(type|bare|flat|functional-type)\(([$\w, ]+)\)|(attr-dict|prop-dict)|\$(\w+)|(\()|(\)\?)|(\^))"
)

_KEY = re.compile(r'"([^"\n]*)"|([A-Za-z_][\w$.]*)')

_ARROWS = ("->", "into", "to")

_PACK = re.compile(r":(\d+)")

_TIGHT_BEFORE = frozenset([",", ")", "]", ">"])

_TIGHT_AFTER = frozenset(["(", "[", "<"])


class Element(Protocol):
    """One element of a format."""

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        """Read the element's text into `parsed`."""

    def starts(self, cursor: Cursor) -> bool:
        """Whether the next token can begin this element."""

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        """The pieces of the element's text; none if there is nothing to print."""

    def present(self, parsed: ParsedOp) -> bool:
        """Whether an optional group that this element anchors is printed."""


class Literal(Struct, frozen=True):
    """A token that is always part of the text. The arrow is also read as `into` and `to`."""

    text: str

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        if not self.accept(r.cursor):
            raise r.cursor.expected(f"'{self.text}'")

    def accept(self, cursor: Cursor) -> bool:
        """Consume the token if it is the next."""
        return not self.text or any(cursor.accept(s) for s in self._spellings())

    def _spellings(self) -> tuple[str, ...]:
        return _ARROWS if self.text == "->" else (self.text,)

    def starts(self, cursor: Cursor) -> bool:
        return not self.text or any(cursor.at(s) for s in self._spellings())

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        return [self.text]

    def present(self, parsed: ParsedOp) -> bool:
        return True


class OperandElement(Struct, frozen=True):
    """The SSA names of an operand."""

    field: ValueField

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        operands = parsed.operands.setdefault(self.field.name, [])
        is_variadic = self.field.arity == "variadic"
        while True:
            if not r.cursor.at("%"):
                if self.field.arity == "single" or operands:
                    raise r.cursor.expected(f"operand '{self.field.name}'")
                return
            operands.extend(read_operands(r))
            if len(operands) > 1 and not is_variadic:
                raise r.cursor.fault(f"operand '{self.field.name}' must be a single value")
            if not is_variadic or not r.cursor.accept(","):
                return

    def starts(self, cursor: Cursor) -> bool:
        return cursor.at("%")

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        return [", ".join(parsed.operands[self.field.name])] if self.present(parsed) else []

    def present(self, parsed: ParsedOp) -> bool:
        return bool(parsed.operands[self.field.name])


class IndexListElement(Struct, frozen=True):
    """A list `[%x, 4]` of index operands and constants."""

    name: str

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        cursor = r.cursor
        cursor.expect("[")
        dynamic: list[str] = []
        static: list[int] = []
        for _ in cursor.entries("]"):
            value = cursor.integer()
            if value is not None:
                static.append(value)
            elif cursor.at("%"):
                names = read_operands(r)
                dynamic += names
                static += [DYNAMIC] * len(names)
            else:
                raise cursor.expected(f"an SSA value or an integer in '{self.name}'")
        parsed.operands[self.name] = dynamic
        parsed.attributes[STATIC + self.name] = tuple(static)

    def starts(self, cursor: Cursor) -> bool:
        return cursor.at("[")

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        dynamic = iter(parsed.operands[self.name])
        static = parsed.attributes.get(STATIC + self.name, ())
        return [f"[{', '.join(next(dynamic) if v == DYNAMIC else str(v) for v in static)}]"]

    def present(self, parsed: ParsedOp) -> bool:
        return bool(parsed.attributes.get(STATIC + self.name))


class FlatListElement(OperandElement, frozen=True):
    """The values of an index list without brackets, none of them constant."""

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        super().read(r, op, parsed)
        name = self.field.name
        parsed.attributes[STATIC + name] = (DYNAMIC,) * len(parsed.operands[name])


class AttributeElement(Struct, frozen=True):
    """The value of an attribute outside the dictionary."""

    name: str
    codec: AttributeCodec

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        parsed.attributes[self.name] = True if self._is_unit else self.codec.read(r.cursor, r.scope)

    @property
    def _is_unit(self) -> bool:
        return isinstance(self.codec, UnitCodec)

    def starts(self, cursor: Cursor) -> bool:
        return self._is_unit or self.codec.starts(cursor)

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        text = self.codec.write(parsed.attributes[self.name])
        return [text] if text else []

    def present(self, parsed: ParsedOp) -> bool:
        return self.name in parsed.attributes


class RegionElement(Struct, frozen=True):
    """A region. It is kept as the range of the source that it covers, or its index among the printed ones."""

    name: str

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        start = r.cursor.skip()
        if not r.cursor.at("{"):
            raise r.cursor.expected(f"region '{self.name}'")
        r.cursor.balanced()
        parsed.regions[self.name] = (start, r.cursor.pos)

    def starts(self, cursor: Cursor) -> bool:
        return cursor.at("{")

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        return [region_marker(parsed.regions[self.name][0])]

    def present(self, parsed: ParsedOp) -> bool:
        return self.name in parsed.regions


class TypeElement(Struct, frozen=True):
    """The types of an operand or result."""

    field: ValueField

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        name = self.field.name
        operand_count = len(parsed.operands[name]) if name in parsed.operands else None
        parsed.type_offsets[name] = r.cursor.skip()
        types = parsed.types[name] = []
        if self.field.arity != "single" and (operand_count == 0 or not self.starts(r.cursor)):
            return
        while True:
            # The type of an alias is needed to infer further types from it.
            types.append(r.scope.resolve(r.scope.read_type(r.cursor)))
            if self.field.arity != "variadic" or len(types) == operand_count or not r.cursor.accept(","):
                return

    def starts(self, cursor: Cursor) -> bool:
        return cursor.peek_token()[1:2].isalpha() or cursor.at("!") or cursor.at("(")

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        return [", ".join(parsed.types[self.field.name])] if self.present(parsed) else []

    def present(self, parsed: ParsedOp) -> bool:
        return bool(parsed.types.get(self.field.name))


class BareTypeElement(TypeElement, frozen=True):
    """The type of ours of an operand or result, without its dialect and name: `<f32>` for `!tt.ptr<f32>`."""

    @property
    def _name(self) -> str:
        (cls,) = self.field.constraints
        assert issubclass(cls, Type)
        return cls.mnemonic()

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        if not r.cursor.at("<"):
            super().read(r, op, parsed)
            return
        parsed.type_offsets[self.field.name] = r.cursor.skip()
        text = self._name + r.cursor.balanced()
        parsed.types[self.field.name] = [r.scope.read_type(Cursor(text))]

    def starts(self, cursor: Cursor) -> bool:
        return cursor.at("<") or super().starts(cursor)

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        return [parsed.type_of(self.field.name).removeprefix(self._name)]


class FunctionalTypeElement(Struct, frozen=True):
    """The types of all operands in parentheses, an arrow, and those of the results."""

    operands: tuple[ValueField, ...]
    results: tuple[ValueField, ...]

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        r.cursor.expect("(")
        self._assign(self.operands, self._listed(r), r, parsed)
        r.cursor.expect("->")
        if r.cursor.accept("("):
            types = self._listed(r)
        else:
            types = [r.scope.resolve(r.scope.read_type(r.cursor))]
        self._assign(self.results, types, r, parsed)

    def _listed(self, r: Reading) -> list[str]:
        return [r.scope.resolve(r.scope.read_type(r.cursor)) for _ in r.cursor.entries(")")]

    def _assign(self, fields: Sequence[ValueField], types: list[str], r: Reading, parsed: ParsedOp) -> None:
        for field in fields:
            names = parsed.operands.get(field.name)
            count = len(names) if names is not None else 1 if field.arity == "single" else len(types)
            parsed.types[field.name], types = types[:count], types[count:]
        if types:
            raise r.cursor.fault(f"there are {len(types)} more types than values")

    def starts(self, cursor: Cursor) -> bool:
        return cursor.at("(")

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        operands, results = (
            [t for field in fields for t in parsed.types.get(field.name, ())]
            for fields in (self.operands, self.results)
        )
        after = results[0] if len(results) == 1 else f"({', '.join(results)})"
        return [f"({', '.join(operands)}) -> {after}"]

    def present(self, parsed: ParsedOp) -> bool:
        return True


class AttrDict(Struct, frozen=True):
    """The attribute dictionary: every attribute that no other element of the format holds.

    Attributes:
        elsewhere: the attributes that stand elsewhere, and are not read here.
        printed_elsewhere: those that are read here, but printed elsewhere.
        own: whether it has attributes of the op's own only, and stands as `<{...}>`.
    """

    elsewhere: frozenset[str]
    printed_elsewhere: frozenset[str] = frozenset()
    own: bool = False

    @property
    def _brackets(self) -> tuple[str, str]:
        return ("<{", "}>") if self.own else ("{", "}")

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        cursor = r.cursor
        opening, closing = self._brackets
        if not cursor.accept(opening):
            return
        for start in cursor.entries(closing):
            m = cursor.match(_KEY)
            if not m:
                raise cursor.expected("an attribute name or '}'")
            self._read_entry(m[1] if m[1] is not None else m[2], start, r, op, parsed)

    def _read_entry(self, key: str, start: int, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        cursor = r.cursor
        if key in op.flags and not cursor.at("="):
            name, value = op.flags[key]
            parsed.attributes[name] = value
            return
        if op.quoted and key in SEGMENTS.values():
            # The sizes of groups in text that is the generic form, too: the types tell them.
            cursor.expect("=")
            r.scope.read_attribute(cursor)
            return
        lower = key.lower()
        name = key if key in op.spec.attributes else op.dialect_class.attribute_spellings.get(lower, lower)
        attribute = op.spec.attributes.get(name)
        if attribute is None or name in self.elsewhere:
            is_declared = "." in key or key in op.also_attributes or key == SEGMENTS["operand"]
            if not is_declared and not op.dialect_class.any_attributes:
                raise cursor.fault(*unknown_attribute(key, op, self.elsewhere), start)
            parsed.extra.append((key, r.scope.read_attribute(cursor) if cursor.accept("=") else None))
            return
        if name in parsed.attributes:
            raise cursor.fault(f"attribute '{key}' is given twice", start)
        if isinstance(attribute.codec, UnitCodec) and not cursor.at("="):
            parsed.attributes[name] = True
            return
        cursor.expect("=")
        parsed.attributes[name] = attribute.codec.read(cursor, r.scope)

    def starts(self, cursor: Cursor) -> bool:
        return cursor.at(self._brackets[0])

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        entries = []
        for name, attribute in op.spec.attributes.items():
            if name in self.elsewhere or name in self.printed_elsewhere:
                continue
            value = parsed.attributes.get(name)
            if value is None and print_defaults:
                value = attribute.default
            if value is not None:
                text = attribute.codec.write(value)
                entries.append(f"{name} = {text}" if text else name)
        if not self.own:
            entries += [name if text is None else f"{name} = {text}" for name, text in parsed.extra]
        opening, closing = self._brackets
        return [f"{opening}{', '.join(entries)}{closing}"] if entries else []

    def present(self, parsed: ParsedOp) -> bool:
        return True


class Group(Struct, frozen=True):
    """Elements that are either all present or all absent.

    Attributes:
        anchor: the element that decides whether the group is present.
    """

    elements: tuple[Element, ...]
    anchor: Element | None

    def read(self, r: Reading, op: type[Operation], parsed: ParsedOp) -> None:
        # The type of an operand that is left out is left out too: the text does not say whose type comes next.
        field = self.anchor.field if isinstance(self.anchor, TypeElement) else None
        is_left_out = field is not None and field in op.spec.operands and not parsed.operands.get(field.name)
        if not is_left_out and self.starts(r.cursor):
            for element in self.elements:
                element.read(r, op, parsed)

    def starts(self, cursor: Cursor) -> bool:
        # All leading literals, so that groups which begin with the same one can follow each other.
        lookahead = Cursor(cursor.text, cursor.pos)
        for element in self.elements:
            if not element.starts(lookahead):
                return False
            if not isinstance(element, Literal):
                break
            element.accept(lookahead)
        return True

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
        return _tokens_of(self.elements, op, parsed, print_defaults) if self.present(parsed) else []

    def present(self, parsed: ParsedOp) -> bool:
        return self.anchor is not None and self.anchor.present(parsed)


_DIRECTIVES: dict[str, Callable[[ValueField], Element]] = {
    "type": TypeElement,
    "bare": BareTypeElement,
    "flat": FlatListElement,
}


class Format:
    """A syntax in the language of MLIR's ODS, ready to read and write."""

    def __init__(self, text: str, op: type[Operation]) -> None:
        tokens = list(_tokens(text, op.OPERATION_NAME))
        self.elements = self._compile(tokens, op.spec)

    def _compile(self, tokens: list[re.Match[str]], spec: OpSpec) -> tuple[Element, ...]:
        named_attributes = {token[5] for token in tokens} & spec.attributes.keys()
        elsewhere = frozenset(named_attributes | {STATIC + name for name in spec.index_lists})
        has_prop_dict = any(token[4] == "prop-dict" for token in tokens)
        dictionaries = {
            "prop-dict": AttrDict(elsewhere, own=True),
            "attr-dict": AttrDict(elsewhere, frozenset(spec.attributes) if has_prop_dict else frozenset()),
        }
        fields = {f.name: f for f in (*spec.operands, *spec.results)}
        regions = {f.name for f in spec.regions}
        stack: list[tuple[list[Element], list[Element]]] = [([], [])]
        for token in tokens:
            elements, anchors = stack[-1]
            literal, directive, typed, attr_dict, variable, opening, closing, _ = token.groups()
            if literal is not None:
                elements.append(Literal(literal))
            elif directive == "functional-type":
                members = [fields[name.strip(" $")] for name in typed.split(",")]
                operands = tuple(f for f in members if f in spec.operands)
                elements.append(FunctionalTypeElement(operands, tuple(f for f in members if f not in operands)))
            elif directive:
                elements.append(_DIRECTIVES[directive](fields[typed.strip("$")]))
            elif attr_dict:
                elements.append(dictionaries[attr_dict])
            elif variable in spec.index_lists:
                elements.append(IndexListElement(variable))
            elif variable in fields:
                elements.append(OperandElement(fields[variable]))
            elif variable in regions:
                elements.append(RegionElement(variable))
            elif variable:
                elements.append(AttributeElement(variable, spec.attributes[variable].codec))
            elif opening:
                stack.append(([], []))
            elif closing:
                stack.pop()
                stack[-1][0].append(Group(tuple(elements), anchors[0] if anchors else None))
            else:
                anchors.append(elements[-1])
        return tuple(stack[0][0])

    def read(self, op: type[Operation], r: Reading) -> ParsedOp:
        parsed = ParsedOp()
        for element in self.elements:
            element.read(r, op, parsed)
        return parsed

    def write(self, op: type[Operation], parsed: ParsedOp, print_defaults: bool = False) -> str:
        text, glue = "", False
        for token_text in _tokens_of(self.elements, op, parsed, print_defaults):
            if not token_text:
                glue = True
                continue
            tight = glue or token_text in _TIGHT_BEFORE or text[-1:] in _TIGHT_AFTER
            text += token_text if glue or (tight and text) else " " + token_text
            glue = False
        return text


def _tokens_of(elements: Sequence[Element], op: type[Operation], parsed: ParsedOp, print_defaults: bool) -> list[str]:
    return [token_text for element in elements for token_text in element.write(op, parsed, print_defaults)]


def _tokens(text: str, op_name: str) -> Iterator[re.Match[str]]:
    pos = 0
    while text[pos:].strip():
        m = _ELEMENTS.match(text, pos)
        if not m:
            raise ValueError(f"assembly format of {op_name}: cannot read '{text[pos:]}'")
        pos = m.end()
        yield m


def unknown_attribute(key: str, op: type[Operation], hidden: frozenset[str] = frozenset()) -> tuple[str]:
    """The message for an attribute that the op does not have."""
    attribute_names = [n for n in op.spec.attributes if n not in hidden]
    names_text = f"; it has {', '.join(attribute_names)}" if attribute_names else ""
    hint = did_you_mean(key, attribute_names) or names_text
    return (f"'{op.OPERATION_NAME}' has no attribute '{key}'{hint}",)


def read_operands(r: Reading) -> list[str]:
    """Read `%a`, `%a#1`, or a pack such as `%a:2`, which means `%a#0, %a#1`."""
    name = r.cursor.ssa()
    if name is None:
        raise r.cursor.expected("an SSA value")
    pack = _PACK.match(r.cursor.text, r.cursor.pos)
    operand_text = r.operand(name)
    if not pack:
        return [operand_text]
    if int(pack[1]) > 64:
        raise r.cursor.fault("a pack must not have more than 64 values", r.cursor.pos)
    r.cursor.pos = pack.end()
    return [f"{operand_text}#{i}" for i in range(int(pack[1]))]


_FORMATS: dict[type[Operation], tuple[Syntax, ...]] = {}


def formats_of(op: type[Operation]) -> tuple[Syntax, ...]:
    """The syntaxes of an op, the printed one first."""
    formats = _FORMATS.get(op)
    if formats is None:
        declared = (op.assembly_format, *op.also_reads)
        formats = _FORMATS[op] = tuple(Format(f, op) if isinstance(f, str) else f for f in declared)
    return formats


def read_op(op: type[Operation], cursor: Cursor, scope: ParserScope, operand: Callable[[], ReadOperand]) -> ParsedOp:
    """Read an op's text after its name by the first of its formats that fits.

    Args:
        operand: makes, for each format tried, the function that takes the SSA names.

    Raises:
        SyntaxFault: if a format fits but its pieces do not fit each other, this fault; else the fault of the format
            that read farthest.
    """
    start = cursor.pos
    worst: SyntaxFault | None = None
    first_fault: SyntaxFault | None = None
    for fmt in formats_of(op):
        cursor.pos = start
        try:
            parsed = fmt.read(op, Reading(cursor, scope, operand()))
            if cursor.at("->") or cursor.at(","):
                # A form with fewer types fits the beginning of one with more.
                raise cursor.expected(f"the end of {op.OPERATION_NAME}")
        except SyntaxFault as fault:
            if worst is None or fault.offset > worst.offset:
                worst = fault
            continue
        for name, attribute in op.spec.attributes.items():
            if parsed.attributes.get(name) == attribute.default:
                parsed.attributes.pop(name, None)
        try:
            _complete(op, parsed, start)
            return parsed
        except SyntaxFault as fault:
            first_fault = first_fault or fault
    raise first_fault or worst or cursor.expected(op.OPERATION_NAME)


def _complete(op: type[Operation], parsed: ParsedOp, start: int) -> None:
    """Fill in the types that the text need not give, and check what can be told from the text."""
    if any(g.name not in parsed.types and g.fixed is None for g in (*op.spec.operands, *op.spec.results)):
        try:
            inferred = op.infer(parsed)
        except ValueError as e:
            raise SyntaxFault(start, str(e)) from None
        for name, text in inferred.items():
            parsed.types.setdefault(name, [text])
    for group in (*op.spec.operands, *op.spec.results):
        is_operand = group in op.spec.operands
        names = parsed.operands.setdefault(group.name, []) if is_operand else None
        types = parsed.types.get(group.name)
        if types is None:
            count = len(names) if names is not None else int(group.arity == "single")
            if count and group.fixed is None:
                raise SyntaxFault(start, f"the type of '{group.name}' is missing")
            parsed.types[group.name] = [group.fixed or ""] * count
            continue
        where = parsed.type_offsets.get(group.name, start)
        if names is not None and len(names) != len(types):
            raise SyntaxFault(where, f"'{group.name}' has {len(names)} values, but {len(types)} types")
        for text in types:
            if not group.accepts(text):
                role = "operand" if is_operand else "result"
                raise SyntaxFault(where, f"{role} '{group.name}' must be {group.summary}, but got '{text}'")
        if group.mixed and len(types) > MIXED:
            raise SyntaxFault(where, f"'{group.name}' must have at most {MIXED} values, but got {len(types)}")
    refusal = op.reads_as(parsed)
    if refusal:
        raise SyntaxFault(start, refusal)
    parsed.attributes.update(op.infer_attributes(parsed))
    for attribute in op.spec.attributes.values():
        if attribute.required and attribute.name not in parsed.attributes:
            raise SyntaxFault(start, f"attribute '{attribute.name}' is missing")


def encode(op: type[Operation], parsed: ParsedOp) -> tuple[str, str]:
    """The generic form of an op, as the text before its regions and the text after them."""
    spec = op.spec
    operands = [v for g in spec.operands for v in parsed.operands[g.name]]
    entries = [
        f"{name} = {attribute.codec.encode(parsed.attributes[name])}"
        for name, attribute in spec.attributes.items()
        if name in parsed.attributes
    ]
    for segment in SEGMENTS:
        if spec.needs_segments(segment):
            groups = spec.groups(segment)
            sizes = ", ".join(map(str, expanded(groups, [len(parsed.types[g.name]) for g in groups])))
            entries.append(f"{SEGMENTS[segment]} = array<i32: {sizes}>")
    entries += [n if text is None else f"{n} = {text}" for n, text in parsed.extra]
    attributes = f" {{{', '.join(entries)}}}" if entries else ""
    operand_types = ", ".join(t for g in spec.operands for t in parsed.types[g.name])
    result_types = ", ".join(t for g in spec.results for t in parsed.types[g.name])
    return (f'"{op.OPERATION_NAME}"({", ".join(operands)})', f"{attributes} : ({operand_types}) -> ({result_types})")


def decode(op: type[Operation], generic_text: str, write: Callable[[str], str]) -> tuple[ParsedOp, str]:
    """The `ParsedOp` of its generic form after operands and regions, `{...} : (...) -> ...`; what follows.

    Operands are named by markers (`operand_marker`) in their order.

    Args:
        write: puts the dialect types and attributes in a text into dialect syntax.

    Raises:
        ValueError: if the text is not that of a valid op.
    """
    spec = op.spec
    cursor = Cursor(generic_text)
    parsed = ParsedOp()
    segments: dict[str, list[int]] = {}
    if cursor.at("{"):
        for entry in split_list(cursor.balanced()[1:-1]):
            name, _, value = entry.partition(" = ")
            attribute = spec.attributes.get(name)
            if name in SEGMENTS.values():
                segments[name] = [int(n) for n in re.findall(r"\d+", value.partition(":")[2])]
            elif attribute:
                # A unit attribute is printed without a value.
                decoded = attribute.codec.decode(value or "unit")
                if decoded != attribute.default:
                    parsed.attributes[name] = decoded
            else:
                parsed.extra.append((name, write(value) if value else None))
    operand_types, results, tail = _signature(generic_text[cursor.pos :])
    for segment, types in (("operand", operand_types), ("result", results)):
        start = 0
        for group, size in zip(spec.groups(segment), spec.sizes(segment, len(types), segments.get(SEGMENTS[segment]))):
            parsed.types[group.name] = [write(t) for t in types[start : start + size]]
            if segment == "operand":
                parsed.operands[group.name] = [operand_marker(i) for i in range(start, start + size)]
            start += size
    for attribute in spec.attributes.values():
        if attribute.required and attribute.name not in parsed.attributes:
            raise ValueError(f"'{op.OPERATION_NAME}' requires attribute '{attribute.name}'")
    for name in spec.index_lists:
        if parsed.attributes.get(STATIC + name, ()).count(DYNAMIC) != len(parsed.operands[name]):
            raise ValueError(f"'{op.OPERATION_NAME}' has a number of operands that does not match '{STATIC}{name}'")
    return parsed, tail


@lru_cache(maxsize=1024)
def _signature(text: str) -> tuple[list[str], list[str], str]:
    """Operand types, result types and the rest of a text that starts with ` : (...) -> ...`."""
    cursor = Cursor(text)
    cursor.expect(":")
    operands = split_list(cursor.balanced()[1:-1])
    cursor.expect("->")
    results = split_list(cursor.balanced()[1:-1]) if cursor.at("(") else [cursor.type_text()]
    return operands, results, text[cursor.pos :]


def mark_numbers(op: type[Operation], parsed: ParsedOp, marker: int) -> list[str]:
    """Replace the constants in index lists by markers (`operand_marker`), from this number on. Return the constants."""
    numbers: list[str] = []
    for name in [n for n in parsed.attributes if n.removeprefix(STATIC) in op.spec.index_lists]:
        entries: list[int | str] = []
        for value in parsed.attributes[name]:
            if value == DYNAMIC:
                entries.append(value)
            else:
                entries.append(operand_marker(marker + len(numbers)))
                numbers.append(str(value))
        parsed.attributes[name] = tuple(entries)
    return numbers


def operand_marker(index: int) -> str:
    """The marker of the operand of this index in a template."""
    return f"\x00{index}\x00"


def region_marker(index: int) -> str:
    """The marker of the region of this index in a template."""
    return f"\x01{index}\x01"
