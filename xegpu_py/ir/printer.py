"""The printer: MLIR's generic form becomes text with custom syntax."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from types import MethodType
from typing import NamedTuple, cast

from msgspec import Struct, field

from xegpu_py.ir.assembly_format import decode, formats_of, mark_numbers, read_op
from xegpu_py.ir.codecs import Cursor, SyntaxFault, split_list
from xegpu_py.ir.definition import DYNAMIC, Dialect
from xegpu_py.ir.diagnostics import Source, spelled
from xegpu_py.ir.operation import STATIC, Operation
from xegpu_py.ir.reader import Reader, read_generic

# From MLIR's own spelling to dialect syntax: rewrites the text that MLIR prints.

_STRING = r'"(?:[^"\\]|\\.)*"'

_SSA = re.compile(rf"{_STRING}|%[\w$.-]+")

_HEAD = re.compile(r"([ \t]*)(%\d+) = ")

_PLAIN = re.compile(r"[A-Za-z_][\w$]*")

_MARK = re.compile("\x00(\\d+)\x00")

_STATIC = re.compile(rf"({STATIC}\w+ = array<i64: )([^>]*)")

_DYNAMIC = str(DYNAMIC)

_UNNAMED = cast(MethodType, Operation.result_name).__func__

_REGION = re.compile("\x01(\\d+)\x01")


_CARRIER = re.compile(r"([ \t]*(?:%[^=\"]*= )?)((?:func\.)?(?:func|return|call)|vector\.yield)(?= |$)(.*)", re.DOTALL)

_ATTRIBUTES = re.compile(r" attributes (\{.*\})( \{)?( loc\(.*\))?$")


class _OpenOp(Struct):
    """An op whose regions are being printed."""

    op: type[Operation]
    indent: str
    head: str
    operands: list[str]
    out_index: int
    region_starts: list[int]
    region_ends: list[int]


class _Names:
    """The SSA names that ops choose for their results, while the region that they are in lasts."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._taken: set[str] = set()
        self._chosen: dict[str, str] = {}
        self._scopes: list[tuple[str, str]] = []

    def enter(self, head: str, name: str | None) -> str:
        """The text before an op, such as `  %0 = `, with the name that the op's result is to have."""
        m = _HEAD.fullmatch(head) if name is not None and _PLAIN.fullmatch(name) else None
        if m is None:
            return head
        if not self._taken:
            self._taken = {m[0] for m in _SSA.finditer(self._text) if m[0][0] == "%"}
        indent, number, name = m[1], m[2], f"%{name}"
        if name in self._taken:
            return head
        self._taken.add(name)
        self._chosen[number] = name
        self._scopes.append((indent, number))
        return f"{indent}{name} = "

    def leave(self, line: str) -> str:
        """A line with the chosen names in place of MLIR's."""
        if not self._chosen:
            return line
        while self._scopes and not line.startswith(self._scopes[-1][0]) and line.lstrip()[:1] not in ("", "^"):
            self._taken.discard(self._chosen.pop(self._scopes.pop()[1], ""))
        return _SSA.sub(lambda m: self._chosen.get(m[0], m[0]), line)


class _Body(NamedTuple):
    """The text after an op's name, with marks for operands and then for constants of index lists."""

    text: str
    location: str
    numbers: list[str]


def _without_numbers(op_text: str) -> tuple[str, list[str]]:
    """A generic form without the constants of index lists, and these."""
    segments = _STATIC.split(op_text)
    numbers: list[str] = []
    for i in range(2, len(segments), 3):
        entries = segments[i].split(", ")
        constants = [n for n in entries if n != _DYNAMIC]
        segments[i] = "".join(["%" if n == _DYNAMIC else "#" for n in entries])
        numbers += constants
    return "\0".join(segments), numbers


def _fill(template: tuple[str, list[int]], values: list[str]) -> str:
    text, order = template
    return text % tuple([values[i] for i in order])


class _Carriers:
    """Names of ops that MLIR holds as its own (`CarriedOperation`), in the lines that it prints."""

    def __init__(self, dialects: Sequence[type[Dialect]]) -> None:
        self._carried = [op for dialect in dialects for op in dialect.carried.values()]
        self._functions: list[tuple[str, type[Dialect]]] = []

    def rename(self, line: str, within: type[Operation] | None) -> str:
        """A line with the name of the op that its carrier stands for.

        Args:
            line: the line.
            within: the op in whose region it is.
        """
        if not self._carried:
            return line
        if self._functions and line.startswith(self._functions[-1][0] + "}"):
            self._functions.pop()
            return line
        m = _CARRIER.match(line)
        if not m:
            return line
        carrier = m[2] if "." in m[2] else f"func.{m[2]}"
        if carrier == "func.func":
            return self._function(line, m)
        dialect = within.dialect_class if carrier == "vector.yield" and within else None
        if self._functions and carrier != "vector.yield":
            dialect = self._functions[-1][1]
        for op in self._carried:
            ends = within is None or carrier != "vector.yield" or op.mnemonic().startswith(f"{within.OPERATION_NAME}.")
            if op.dialect is dialect and op.carrier == carrier and ends:
                return f"{m[1]}{op.mnemonic()}{m[3]}"
        return line

    def _function(self, line: str, m: re.Match[str]) -> str:
        attributes = _ATTRIBUTES.search(m[3])
        entries = split_list(attributes[1][1:-1]) if attributes else []
        op = next((op for op in self._carried if op.carrier == "func.func" and op.mnemonic() in entries), None)
        if op is None or attributes is None:
            return line
        kept = ", ".join(e for e in entries if e != op.mnemonic())
        if attributes[2]:
            self._functions.append((m[1], op.dialect))
        rest = f"{f' attributes {{{kept}}}' if kept else ''}{attributes[2] or ''}{attributes[3] or ''}"
        return f"{m[1]}{op.mnemonic()}{m[3][: attributes.start()]}{rest}"


class Printer(Struct, dict=True):
    """Puts our ops, types and attributes in a printed module into dialect syntax.

    Attributes:
        print_defaults: whether attributes that have their default value are printed too.
    """

    dialects: Sequence[type[Dialect]]
    print_defaults: bool = False
    _ops: dict[tuple[str, str], tuple[str, list[int]]] = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = "|".join(re.escape(d.name) for d in self.dialects)
        self._by_name = {d.name: d for d in self.dialects}
        self._op_line = re.compile(rf'([ \t]*(?:%[^=]*= )?)"((?:{names})\.\w+)"\(([^()]*)\)( \(\{{)?(.*)', re.DOTALL)
        self._foreign = re.compile(rf"{_STRING}|[!#](?:{names})\.\w+")
        self._unnamed: dict[type[Operation], bool] = {}
        self._classes: dict[str, type[Operation] | None] = {}
        self._sigils = tuple(s + d.name + "." for d in self.dialects for s in "!#")

    def rewrite(self, text: str) -> str:
        """The text in dialect syntax."""
        names, carriers = _Names(text), _Carriers(self.dialects)
        out: list[str] = []
        stack: list[_OpenOp] = []
        for line in text.split("\n"):
            line = carriers.rename(names.leave(line), stack[-1].op if stack else None)
            if stack and self._closes(stack[-1], line, out):
                if not line.startswith(stack[-1].indent + "}, {"):
                    stack.pop()
                continue
            m = self._op_line.match(line)
            op = self._find(m[2]) if m else None
            if m and op:
                operands = m[3].split(", ") if m[3] else []
                if m[4]:
                    indent = m[1][: len(m[1]) - len(m[1].lstrip())]
                    stack.append(_OpenOp(op, indent, m[1], operands, len(out), [len(out) + 1], []))
                    out.append("")
                else:
                    head = names.enter(m[1], self._result_name(op, m[5]))
                    out.append(head + self._op(op, operands, m[5]))
            else:
                out.append(self.write(line))
        return spelled("\n".join(out))

    def _find(self, name: str) -> type[Operation] | None:
        if name not in self._classes:
            dialect, _, mnemonic = name.partition(".")
            self._classes[name] = self._by_name[dialect].operations.get(mnemonic)
        return self._classes[name]

    def write(self, text: str) -> str:
        """Types and attributes of ours within a text of MLIR's own, in dialect syntax."""
        cached = self._known.get(text)
        if cached is not None or not any(s in text for s in self._sigils):
            return cached or text
        out, copied_to = [], 0
        pos = 0
        while m := self._foreign.search(text, pos):
            pos = m.end()
            if m[0][0] == '"':
                continue
            cursor = Cursor(text, pos)
            if text.startswith("<", pos):
                cursor.balanced()
            out += [text[copied_to : m.start()], self._parametrized(text[m.start() : cursor.pos])]
            pos = copied_to = cursor.pos
        return "".join([*out, text[copied_to:]]) if out else text

    def _parametrized(self, raw: str) -> str:
        cached = self._known.get(raw)
        if cached is None:
            cached = self._known[raw] = self._write_parametrized(raw)
        return cached

    def _write_parametrized(self, raw: str) -> str:
        dialect_name, _, qualified = raw[1:].partition(".")
        dialect = self._by_name[dialect_name]
        name = qualified.partition("<")[0]
        if raw[0] == "#" and name in dialect.enums:
            codec = dialect.enums[name]
            return spelled(f"{codec.mnemonic}<{codec.write(codec.decode(raw))}>")
        cls = (dialect.types if raw[0] == "!" else dialect.attributes).get(name)
        return spelled(raw if cls is None else str(cls.decode(raw).write(self.print_defaults)))

    def _op(self, op: type[Operation], operands: Sequence[str], op_text: str) -> str:
        # The printed texts of ops that differ only in the constants of index lists differ only in these constants.
        shared, numbers = _without_numbers(op_text) if op.spec.index_lists else (op_text, [])
        key = (op.OPERATION_NAME, shared)
        template = self._ops.get(key)
        if template is None:
            body = self._body(op, op_text, len(operands))
            if body is None:
                return f'"{op.OPERATION_NAME}"({", ".join(operands)}){self.write(op_text)}'
            segments = _MARK.split(op.OPERATION_NAME + body.text + body.location)
            order = [int(p) for p in segments[1::2]]
            template = "%s".join(segment.replace("%", "%%") for segment in segments[::2]), order
            if body.location or body.numbers != numbers:
                return _fill(template, [*operands, *body.numbers])
            self._ops[key] = template
        return _fill(template, [*operands, *numbers])

    def _result_name(self, op: type[Operation], op_text: str) -> str | None:
        if op not in self._unnamed:
            self._unnamed[op] = cast(MethodType, op.result_name).__func__ is _UNNAMED
        if self._unnamed[op]:
            return None
        try:
            return op.result_name(decode(op, op_text.strip(), self.write)[0])
        except (ValueError, SyntaxFault):
            return None

    def _body(self, op: type[Operation], op_text: str, operands: int, empty: Container[int] = ()) -> _Body | None:
        """The text after an op's name; None for an op that is not valid, and so has no such text."""
        try:
            parsed, location = decode(op, op_text.strip(), self.write)
            numbers = mark_numbers(op, parsed, operands)
            for i, group in enumerate(op.spec.regions):
                if not (group.optional and i in empty):
                    parsed.regions[group.name] = (i, i)
            return _Body(formats_of(op)[0].write(op, parsed, self.print_defaults), location, numbers)
        except (ValueError, SyntaxFault):
            return None

    def _closes(self, open_op: _OpenOp, line: str, out: list[str]) -> bool:
        """Whether `line` ends a region of the op; if so the op's lines in `out` are put into dialect syntax."""
        if line.startswith(open_op.indent + "}, {"):
            open_op.region_ends.append(len(out))
            open_op.region_starts.append(len(out) + 1)
            out.append("")
            return True
        if not line.startswith(open_op.indent + "})"):
            return False
        open_op.region_ends.append(len(out))
        closing = line[len(open_op.indent) + 2 :]
        out[open_op.out_index :] = self._with_regions(open_op, out, closing)
        return True

    def _with_regions(self, open_op: _OpenOp, out: Sequence[str], op_text: str) -> list[str]:
        """The lines of an op with regions, whose lines stand in `out` from the op's first one on."""
        bodies = [out[a:b] for a, b in zip(open_op.region_starts, open_op.region_ends)]
        empty = [i for i, lines in enumerate(bodies) if not lines]
        body = self._body(open_op.op, op_text, len(open_op.operands), empty)
        if body is None:
            return self._generic_with_regions(open_op, bodies, op_text)
        values = [*open_op.operands, *body.numbers]
        text = _MARK.sub(lambda m: values[int(m[1])], body.text)
        name = open_op.op.OPERATION_NAME
        lines = [open_op.head + (f'"{name}"' if open_op.op.quoted else name)]
        for i, segment in enumerate(_REGION.split(text + body.location)):
            if i % 2:
                lines[-1] += "{"
                lines += [*bodies[int(segment)], open_op.indent + "}"]
            else:
                lines[-1] += segment
        return lines

    def _generic_with_regions(self, open_op: _OpenOp, bodies: Sequence[Sequence[str]], op_text: str) -> list[str]:
        lines = [f'{open_op.head}"{open_op.op.OPERATION_NAME}"({", ".join(open_op.operands)}) ({{']
        for i, body in enumerate(bodies):
            lines += [*([f"{open_op.indent}}}, {{"] if i else []), *body]
        return [*lines, f"{open_op.indent}}}){self.write(op_text)}"]


# Source text with our ops, types and attributes in the form in which they are printed, and lines indented by nesting.
#
# Comments, SSA names, blank lines and everything of other dialects stay as they are.

INDENT = 2
"""Spaces of a level, as MLIR prints."""

_ALIAS = re.compile(r"[#!][A-Za-z_][\w$]*(?![\w$.])")

_TYPES = re.compile(r":(?!:)")

_HEADER = re.compile(r"->|(?:attributes|iter_args|kernel|private|step|to|workgroup)\b")
"""The beginning of lines that continue an op: its types, or the header of its regions."""

_BRACKETS = re.compile(r"//.*|\"(?:[^\"\\]|\\.)*\"|->|[(){}\[\]]")


class _Formatter(Reader):
    """Reads a source as `Reader` does, and writes it in dialect syntax."""

    def __init__(self, source: Source, dialects: Sequence[type[Dialect]]) -> None:
        super().__init__(source, dialects)
        self._write = Printer(dialects).write

    def _replace(self, start: int, stop: int, text: str) -> None:
        self._emit(self._spelled(self._write(text), start, stop))

    def _op(self, op: type[Operation], start: int, pos: int, generic: bool = False) -> int:
        text = self.source.text
        if op.spec.regions:
            self._emit(text[start:pos])
            return pos
        cursor = Cursor(text, pos)
        parsed = read_generic(op, cursor, self, str) if generic else read_op(op, cursor, self, lambda: str)
        if "//" in text[start : cursor.pos]:
            self._emit(text[start : cursor.pos])
            return cursor.pos
        for name, types in parsed.types.items():
            parsed.types[name] = [self._write(t) for t in types]
        parsed.extra = [(name, None if value is None else self._write(value)) for name, value in parsed.extra]
        op_text = op.OPERATION_NAME + formats_of(op)[0].write(op, parsed, False)
        if "\n" in text[start : cursor.pos]:
            # A text of several lines stays one, with its types on the last.
            op_text = "\n: ".join(_split_types(op_text))
        self._emit(self._spelled(spelled(op_text), start, cursor.pos))
        return cursor.pos

    def _spelled(self, op_text: str, start: int, stop: int) -> str:
        """A text with the aliases that the source has there."""
        for alias in set(_ALIAS.findall(self.source.text, start, stop)):
            if alias in self.aliases:
                op_text = op_text.replace(self._write(self.resolve(alias)), alias)
        return op_text


def _split_types(op_text: str) -> tuple[str, ...]:
    """An op's text before and after the colon before its types."""
    depth = 0
    for i, c in enumerate(op_text):
        depth += (c in "([{<") - (c in ")]}>" and op_text[i - 1 : i + 1] != "->")
        if not depth and op_text.startswith(" : ", i):
            return op_text[:i], op_text[i + 3 :]
    return (op_text,)


def formatted(source: Source, dialects: Sequence[type[Dialect]]) -> str:
    """The text of a source, formatted.

    Raises:
        DiagnosticError: where the source breaks our syntax.
    """
    try:
        return _indented(_Formatter(source, dialects).rewrite().text)
    except SyntaxFault as fault:
        raise source.error(fault.offset, fault.message) from None


def _indented(text: str) -> str:
    """Lines indented by the braces that are open; those within other brackets begin under what follows the bracket."""
    out: list[str] = []
    stack: list[tuple[str, int]] = []  # Open brackets, with the columns of what follows them.
    for line in text.split("\n"):
        bare = line.strip()
        closing = len(bare) - len(bare.lstrip("})]"))
        outer_brackets = stack[: max(0, len(stack) - closing)]
        level = sum(bracket == "{" for bracket, _ in outer_brackets) - bare.startswith("^")
        level += 1 if _TYPES.match(bare) else 2 if _HEADER.match(bare) else 0
        column = INDENT * max(level, 0)
        if outer_brackets and outer_brackets[-1][0] != "{" and not closing:
            column = outer_brackets[-1][1]
        out.append(" " * column + bare if bare else "")
        for m in _BRACKETS.finditer(bare):
            if m[0] in ("(", "{", "["):
                stack.append((m[0], column + m.end()))
            elif m[0] in (")", "}", "]") and stack:
                stack.pop()
    return "\n".join(out)
