"""The reader: text with custom syntax becomes MLIR's generic form."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from xegpu_py.deferred import pattern
from xegpu_py.did_you_mean import did_you_mean
from xegpu_py.ir.assembly_format import encode, mark_numbers, read_op
from xegpu_py.ir.codecs import Cursor, ParserScope, SyntaxFault, split_list
from xegpu_py.ir.definition import DYNAMIC, FUNCTIONS, STRING, CarriedOperation, Dialect, TypeReader
from xegpu_py.ir.diagnostics import Diagnostic, Source
from xegpu_py.ir.operation import SEGMENTS, STATIC, Operation, ParsedOp, ReadOperand

# From dialect syntax to MLIR's own: rewrites our ops, types and attributes in a source text to generic form.
#
# Each line stays the line that it was, and `Rewritten` maps positions back, so that what MLIR reports of the rewritten
# text is shown at the user's line and column.

_NAME = re.compile(r"(%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?)")

_HOLE = re.compile(rf"{_NAME.pattern[:-1]}|(?:(?<=\[)|(?<=, ))-?(?:0|[1-9]\d{{0,17}})(?=[,\]]))")

_HOLE_MARK = re.compile("\x00(\\d+)\x00")

_REST = re.compile(r" (?:<?\{|: )")
"""Start of the attributes or types of an op, among which no index list is."""

_WORD = pattern(r"[%@^!#]?[\w$.-]+|\S")

_SYMBOL_NAME = pattern(rf"@(?:[\w$.-]+|{STRING})")

_MEMO_LINE = 500
"""Longest line that is looked up as already read: bounds the work on files of one huge line."""


class Edit(Struct, frozen=True):
    """A range of the source that was replaced, and the range of the rewritten text that replaces it."""

    source_start: int
    source_end: int
    start: int
    end: int


class Rewritten(Struct, dict=True):
    """A source in MLIR's own spelling.

    Attributes:
        edits: the replacements, except on lines that equal an earlier line but for SSA names.
    """

    source: Source
    text: str
    edits: list[Edit]

    def __post_init__(self) -> None:
        self._starts = [e.start for e in self.edits]
        self._lines = Source(self.text, self.source.name)

    def source_offset(self, line: int, column: int) -> int:
        """Return the source offset of a position in the rewritten text."""
        offset = self._lines.offset(line, column)
        i = bisect_right(self._starts, offset) - 1
        if i >= 0:
            edit = self.edits[i]
            if offset < edit.end:
                return self._within(edit.start, offset, edit.source_start, edit.source_end)
            if self._lines.line_of(edit.end) == line:
                return offset - edit.end + edit.source_end
        start, source_start = self._lines.offset(line, 1), self.source.offset(line, 1)
        if self.source.text.startswith(self.text[start:offset], source_start):
            return source_start + offset - start
        # The line was read as an equal one was: what stands before and after the op is not replaced.
        new_line = self.text[start : self._lines.offset(line + 1, 1)]
        read = self.source.text[source_start : self.source.offset(line + 1, 1)]
        common_prefix, common_suffix = _common(new_line, read), _common(new_line[::-1], read[::-1])
        if offset >= start + len(new_line) - common_suffix:
            return source_start + len(read) - len(new_line) + offset - start
        return self._within(
            start + common_prefix, offset, source_start + common_prefix, source_start + len(read) - common_suffix
        )

    def _within(self, start: int, offset: int, source_start: int, source_end: int) -> int:
        """Return the source offset of a position in the op that begins at `start`: of the same word in the source, or
        of its start.
        """
        token = _WORD.match(self.text, offset)
        if token and offset > start:
            replaced = self.source.text[source_start:source_end]
            match = re.search(rf"(?<![\w$.-]){re.escape(token[0])}(?![\w$-])", replaced)
            if match:
                return source_start + match.start()
        return source_start

    def shifted_lines(self) -> frozenset[int]:
        """The lines, from 1, on which columns are not those of the source, or not all of them."""
        return frozenset(
            self._lines.line_of(e.end) for e in self.edits if self.text[e.end : e.end + 1] not in ("", "\n")
        )


def _common(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


class _Template(Struct):
    """The generic form of an op with holes.

    Attributes:
        pieces: the text between holes and, as every second piece, the index in `names` and `numbers` of what fills it.
        names: the SSA names, as they were read.
        numbers: the constants of index lists, as they were read.
    """

    pieces: list[str]
    names: list[str]
    numbers: list[str]


class _Line:
    """The generic form of a line with an op, with holes for SSA names and constants of index lists."""

    def __init__(self, line_prefix: str, op: _Template, line_suffix: str, holes: Sequence[str]) -> None:
        """From what was read of a line.

        Args:
            line_prefix: the text before the op.
            op: the generic form of the op.
            line_suffix: the text after the op.
            holes: the SSA names and constants of the whole line, in order.

        Raises:
            ValueError: if these are not just the SSA names, and the names and constants of the op.
        """
        first_hole, last_hole = len(_NAME.findall(line_prefix)), len(holes) - len(_NAME.findall(line_suffix))
        names = [i for i in range(first_hole, last_hole) if holes[i][0] == "%"]
        numbers = [i for i in range(first_hole, last_hole) if holes[i][0] != "%"]
        if [holes[i] for i in names + numbers] != op.names + op.numbers:
            raise ValueError("the printed names or counts do not match those of the op")
        op_template = "%s".join(segment.replace("%", "%%") for segment in op.pieces[::2])
        affix_templates = (
            _NAME.sub("\0", text).replace("%", "%%").replace("\0", "%s") for text in (line_prefix, line_suffix)
        )
        order = [
            *range(first_hole),
            *((names + numbers)[use] for use in map(int, op.pieces[1::2])),
            *range(last_hole, len(holes)),
        ]
        self._format = op_template.join(affix_templates)
        self._order = None if order == list(range(len(holes))) else order

    def fill(self, holes: Sequence[str]) -> str:
        """The line in generic form, with other names and constants."""
        return self._format % tuple(holes if self._order is None else [holes[i] for i in self._order])


def _split(line: str) -> tuple[str, list[str]]:
    """A line without its SSA names and the constants in its index lists, as a key; these names and constants."""
    attributes_start = _REST.search(line)
    at = attributes_start.start() if attributes_start else len(line)
    head, tail = line[:at], line[at:]
    segments = _HOLE.split(head)
    holes = segments[1::2]
    key = "\0".join(segments[::2])
    if "[" in head:
        key += "".join(["%" if hole[0] == "%" else "#" for hole in holes])
    if "%" not in tail:
        return key + tail, holes
    segments = _NAME.split(tail)
    return key + "\0".join(segments[::2]), holes + segments[1::2]


class Reader(TypeReader):
    """Reads one source."""

    def __init__(self, source: Source, dialects: Sequence[type[Dialect]]) -> None:
        super().__init__(dialects)
        self.source = source
        renamed = "|".join(name for name, dialect in self._by_name.items() if name != dialect.name)
        quoted = (
            rf'"(?P<renamed>{renamed})\.(?P<quoted>\w+)"(?=\s*\()|' if renamed else "(?P<renamed>(?P<quoted>(?!)))|"
        )
        generic = "|".join(op.OPERATION_NAME for d in dialects for op in d.operations.values() if op.quoted) or "(?!)"
        carried = [op for d in dialects for op in d.carried.values() if op.carrier not in FUNCTIONS]
        self._carriers = {op.mnemonic(): op.carrier for op in carried}
        named = "|".join(map(re.escape, self._carriers)) or "(?!)"
        dotted = "".join(f"{re.escape(name)}|" for d in dialects for name in d.carried if "." in name)
        self._scan = re.compile(
            rf'{quoted}"(?P<generic>{generic})"(?=\s*\()|"(?P<carried>{named})"(?=\s*\()|'
            rf"(?P<skip>//[^\n]*|{STRING})"
            r"|(?P<alias>[!#][A-Za-z_][\w$]*)\s*(?:(?==)|\Z)"
            rf"|{self._own.pattern}"
            rf"|(?<![\w.$%@^#!-])(?P<dialect>{self._names})\.(?P<op>{dotted}\w+)"
        )
        self._named = pattern(rf"[!#]?(?P<owner>{self._names})\.(?P<param>\w+)")
        self._marks = (*(f"{name}." for name in self._by_name), "#", "!")
        self._memo: dict[str, _Line] = {}
        self._template: _Template | None = None
        self._out: list[str] = []
        self._length = 0
        self._edits: list[Edit] = []

    def rewrite(self) -> Rewritten:
        """The whole source in MLIR's own spelling.

        Raises:
            DiagnosticError: where the source breaks our syntax.
        """
        try:
            self._range(0, len(self.source.text))
        except SyntaxFault as fault:
            raise self.source.error(fault.offset, fault.message) from None
        return Rewritten(self.source, "".join(self._out), self._edits)

    def _emit(self, text: str) -> None:
        self._out.append(text)
        self._length += len(text)

    def _replace(self, start: int, source_end: int, text: str) -> None:
        text += "\n" * (self.source.text.count("\n", start, source_end) - text.count("\n"))
        self._edits.append(Edit(start, source_end, self._length, self._length + len(text)))
        self._emit(text)

    def _range(self, start: int, range_end: int) -> None:
        pos = start
        while pos < range_end:
            pos = self._line(self._known_lines(pos, range_end), range_end)

    def _known_lines(self, start: int, text_end: int) -> int:
        """Replace lines that equal others but for SSA names, up to the first line that must be read; its offset."""
        text, marks, memo = self.source.text, self._marks, self._memo
        pos = start
        while 0 < (stop := text.find("\n", pos, pos + _MEMO_LINE) + 1) <= text_end:
            line = text[pos:stop]
            for mark in marks:
                if mark in line:
                    break
            else:
                self._emit(line)
                pos = stop
                continue
            key, holes = _split(line)
            cached_line = memo.get(key)
            if cached_line is None:
                break
            self._emit(cached_line.fill(holes))
            pos = stop
        return pos

    def _line(self, start: int, text_end: int) -> int:
        """Replace our ops, types and attributes from `start` to the end of a line; the offset of the next line."""
        text, copied_to, pos = self.source.text, start, start
        stop = _line_end(text, start, text_end)
        replaced_count = 0
        while m := self._scan.search(text, pos, stop):
            pos = m.end()
            if m["skip"]:
                continue
            replaced_count += 1
            if m["alias"]:
                cursor = Cursor(text, pos)
                if cursor.accept("=") and not text.startswith("=", cursor.pos):
                    token_start = cursor.skip()
                    raw = self._define(m["alias"], cursor)
                    if raw:
                        self._emit(text[copied_to:token_start])
                        self._replace(token_start, cursor.pos, raw)
                        pos = copied_to = cursor.pos
            elif m["sigil"]:
                cursor = Cursor(text, m.start())
                raw = self._parametrized(cursor)
                self._emit(text[copied_to : m.start()])
                self._replace(m.start(), cursor.pos, raw)
                pos = copied_to = cursor.pos
            elif m["carried"]:
                self._emit(text[copied_to : m.start()])
                self._replace(m.start(), m.end(), f'"{self._carriers[m["carried"]]}"')
                copied_to = m.end()
            elif m["dialect"] and (carried := self._find_carried(m)):
                self._emit(text[copied_to : m.start()])
                pos = copied_to = self._carried(carried, m.start(), m.end())
            elif op := self._find_op(m):
                self._emit(text[copied_to : m.start()])
                pos = copied_to = self._op(op, m.start(), m.end(), bool(m["quoted"]))
                template, self._template = self._template, None
                if template and replaced_count == 1 and pos <= stop:
                    self._remember(template, start, m.start(), m.end(), pos, stop)
            if pos > stop:
                stop = _line_end(text, pos, text_end)
        self._emit(text[copied_to:stop])
        return stop

    def _remember(self, template: _Template, start: int, op_start: int, name_end: int, op_end: int, stop: int) -> None:
        """Note the result for a whole line from `start` to `stop` with one op, if it depends on the text alone."""
        text = self.source.text
        line_prefix, line, line_suffix = text[start:op_start], text[start:stop], text[op_end:stop]
        if '"' in line or stop - start > _MEMO_LINE or text[start - 1 : start] not in ("", "\n"):
            return
        # The text after the name on the same line decides whether it is an op's or an attribute's.
        is_op = text[name_end:op_end].strip()[:1] not in ("", "=", ",")
        if is_op and (not line_suffix.strip() or line_suffix.lstrip().startswith("//")):
            key, holes = _split(line)
            with suppress(ValueError):
                self._memo[key] = _Line(line_prefix, template, line_suffix, holes)

    def _find_carried(self, m: re.Match[str]) -> type[CarriedOperation] | None:
        found = self._by_name[m["dialect"]].carried.get(m["op"])
        # Only functions are marked by an attribute of their name; `{ tt.return }` is a block.
        return None if found and self._is_attribute_key(m, found.carrier not in FUNCTIONS) else found

    def _carried(self, op: type[CarriedOperation], start: int, end: int) -> int:
        """Replace the name of an op, and mark a function; the offset after what was replaced."""
        self._replace(start, end, op.carrier)
        if op.carrier not in FUNCTIONS:
            return end
        cursor = Cursor(self.source.text, end)
        while cursor.word():
            pass
        if not cursor.match(_SYMBOL_NAME):
            raise cursor.expected("the name of a function")
        cursor.balanced()
        if cursor.accept("->"):
            if cursor.at("("):
                cursor.balanced()
            else:
                cursor.type_text()
        at, mark = cursor.pos, f" attributes {{{op.mnemonic()}}}"
        if cursor.accept("attributes"):
            cursor.expect("{")
            at, mark = cursor.pos, op.mnemonic() + ("" if cursor.at("}") else ", ")
        self._range(end, at)
        self._replace(at, at, mark)
        return at

    def _find_op(self, m: re.Match[str]) -> type[Operation] | None:
        if m["generic"]:
            dialect_name, _, name = m["generic"].partition(".")
            return self._by_name[dialect_name].operations[name]
        dialect = self._by_name[m["renamed"] or m["dialect"]]
        name = m["quoted"] or m["op"]
        op_class = dialect.operations.get(name)
        if not m["quoted"] and self._is_attribute_key(m, op_class is not None):
            return None
        if op_class is None:
            hint = did_you_mean(name, dialect.operations, f"{dialect.name}.")
            raise SyntaxFault(m.start(), f"unknown operation '{m[0].strip(chr(34))}'{hint}")
        return op_class

    def _is_attribute_key(self, m: re.Match[str], is_op: bool) -> bool:
        """Whether this is the name of a discardable attribute. One that stands alone in braces may be an op too."""
        text = self.source.text
        previous_char = text[max(0, m.start() - _MEMO_LINE) : m.start()].rstrip()[-1:]
        lookahead = Cursor(text, m.end())
        key_ends = ("=", ",") if is_op else ("=", ",", "}")
        return previous_char in ("{", ",") and any(lookahead.at(token) for token in key_ends)

    def _define(self, name: str, cursor: Cursor) -> str | None:
        """Remember what an alias means; a type or attribute of ours is also read, and given in MLIR's own spelling.

        The alias's sigil says which it is, so that `#m = xegpu.sg_map<...>` and `#a = !xegpu.tdesc_attr<...>` are read.
        """
        m = self._named.match(cursor.text, cursor.skip())
        if m:
            cursor.pos = m.end()
            raw = self._body(cursor, m.start(), name[0], self._by_name[m["owner"]], m["param"])
            self.aliases[name] = raw
            return raw
        if cursor.at("loc("):
            # Only MLIR reads locations. Nothing ends them but the line, and a module has one for each op.
            return None
        try:
            self.aliases[name] = self.read_type(cursor) if name[0] == "!" else self.read_attribute(cursor)
        except SyntaxFault:
            # The error is reported where the text is scanned, or by MLIR.
            self.aliases.pop(name, None)
        return None

    def _op(self, op: type[Operation], start: int, pos: int, generic: bool = False) -> int:
        """Replace the op whose name ends at `pos`, in its own syntax or the generic one; the offset after it."""
        text = self.source.text
        names: list[str] = []
        cursor = Cursor(text, pos)
        if generic:
            parsed = read_generic(op, cursor, self, _marker(names))
        else:
            parsed = read_op(op, cursor, self, lambda: _marker(names))
        numbers = mark_numbers(op, parsed, len(names))
        op_text, type_text = encode(op, parsed)
        if not op.spec.regions:
            segments = _HOLE_MARK.split(op_text + type_text)
            self._template = _Template(segments, names, numbers)
            self._replace(start, cursor.pos, _filled(segments, names + numbers))
            return cursor.pos
        op_text, type_text = (_filled(_HOLE_MARK.split(text), names + numbers) for text in (op_text, type_text))
        at, prefix = start, op_text + " ("
        for name in (r.name for r in op.spec.regions):
            if name not in parsed.regions:
                prefix += "{}, "
                continue
            region_start, region_end = parsed.regions[name]
            self._replace(at, region_start, prefix)
            self._range(region_start, region_end)
            at, prefix = region_end, ", "
        self._replace(at, cursor.pos, prefix.removesuffix(", ") + ")" + type_text)
        self._template = None
        return cursor.pos


def _line_end(text: str, start: int, text_end: int) -> int:
    """The offset after the line that `start` is in, and at most `text_end`."""
    newline = text.find("\n", start, text_end)
    return text_end if newline < 0 else newline + 1


def _marker(names: list[str]) -> Callable[[str], str]:
    names.clear()

    def mark(name: str) -> str:
        names.append(name)
        return f"\x00{len(names) - 1}\x00"

    return mark


def _filled(segments: Sequence[str], values: Sequence[str]) -> str:
    """Join segments of text, where every second segment is the index of a value."""
    return "".join(values[int(segment)] if i % 2 else segment for i, segment in enumerate(segments))


# MLIR's generic form of ops whose dialect has another name in the IR, as dialects with further spellings do.
#
# MLIR reads the generic form of all other ops itself.

_NUMBER = pattern(r"-?\d+")

_KEY = pattern(r'"([^"\n]*)"|([A-Za-z_][\w$.]*)')

_KEYWORD = pattern(r"#\w+<\w+ (?:\w+ = )?(\w+)>")
"""An enumerator as MLIR prints it where the attribute has no syntax of its own, `#xegpu<memory_space slm>`, or is the
only parameter of one, `#xevm<dst_etype dst_etype = bf8>`."""

_CONSTANT = "const_"
"""Prefix of the names of constants of index lists in upstream's XeGPU, where ours have `STATIC`."""


def read_generic(op: type[Operation], cursor: Cursor, scope: ParserScope, operand: ReadOperand) -> ParsedOp:
    """Read an op without regions after its quoted name: `(%a, %b) <{...}> {...} : (types) -> types`.

    Args:
        operand: takes the SSA names.

    Raises:
        SyntaxFault: where the text is not that of such an op.
    """
    start = cursor.pos
    parsed = ParsedOp()
    names: list[str] = []
    cursor.expect("(")
    for _ in cursor.entries(")"):
        name = cursor.ssa()
        if name is None:
            raise cursor.expected("an SSA value")
        names.append(operand(name))
    segments = None
    for opening, closing in (("<{", "}>"), ("{", "}")):
        for _ in cursor.entries(closing) if cursor.accept(opening) else ():
            segments = _entry(op, cursor, scope, parsed) or segments
    cursor.expect(":")
    groups = {}
    for segment in ("operand", "result"):
        where = cursor.skip()
        types = _types(cursor, scope)
        try:
            sizes = op.spec.sizes(segment, len(types), segments if segment == "operand" else None)
        except ValueError as e:
            raise SyntaxFault(where, str(e)) from None
        for group, size in zip(op.spec.groups(segment), sizes):
            parsed.types[group.name], types = types[:size], types[size:]
            if segment == "operand":
                parsed.operands[group.name], names = names[:size], names[size:]
            groups[group.name] = where
        if segment == "operand":
            cursor.expect("->")
    _check(op, parsed, groups, start)
    return parsed


def _entry(op: type[Operation], cursor: Cursor, scope: ParserScope, parsed: ParsedOp) -> list[int] | None:
    """Read an attribute; return the sizes of groups of operands if the attribute holds them."""
    m = cursor.match(_KEY)
    if not m:
        raise cursor.expected("an attribute name or '}'")
    key = m[1] if m[1] is not None else m[2]
    start = cursor.skip()
    has_value = cursor.accept("=")
    cursor.skip()
    keyword = cursor.match(_KEYWORD) if has_value else None
    if keyword and key in op.spec.attributes:
        parsed.attributes[key] = op.spec.attributes[key].codec.read(Cursor(keyword[1]), scope)
        return None
    text = scope.resolve(scope.read_attribute(cursor)) if has_value else None
    numbers = [int(n) for n in _NUMBER.findall((text or "").partition(":")[2])]
    if key == SEGMENTS["operand"]:
        return numbers
    name = STATIC + key.removeprefix(_CONSTANT).removeprefix(STATIC)
    if name.removeprefix(STATIC) in op.spec.index_lists and key != name.removeprefix(STATIC):
        parsed.attributes[name] = tuple(numbers)
    elif key in op.spec.attributes:
        attribute = op.spec.attributes[key]
        try:
            value = attribute.codec.decode(text or "unit")
        except ValueError as e:
            raise SyntaxFault(start, str(e)) from None
        if value != attribute.default:
            parsed.attributes[key] = value
    else:
        parsed.extra.append((key, text))
    return None


def _types(cursor: Cursor, scope: ParserScope) -> list[str]:
    if not cursor.at("("):
        return [scope.resolve(scope.read_type(cursor))]
    list_cursor = Cursor(cursor.balanced()[1:-1])
    return [scope.resolve(scope.read_type(Cursor(text))) for text in split_list(list_cursor.text)]


def _check(op: type[Operation], parsed: ParsedOp, offsets: dict[str, int], start: int) -> None:
    """Check the rules that are checked when the op's other forms are read."""
    for group in (*op.spec.operands, *op.spec.results):
        for text in parsed.types[group.name]:
            if not group.accepts(text):
                raise SyntaxFault(offsets[group.name], f"'{group.name}' must be {group.summary}, but got '{text}'")
    for name in op.spec.index_lists:
        parsed.attributes.setdefault(STATIC + name, ())
        operand_names = parsed.operands[name]
        if sum(n == DYNAMIC for n in parsed.attributes[STATIC + name]) != len(operand_names):
            raise SyntaxFault(start, f"the number of operands of '{name}' does not match its constants")
    for attribute in op.spec.attributes.values():
        if attribute.required and attribute.name not in parsed.attributes:
            raise SyntaxFault(start, f"attribute '{attribute.name}' is missing")


# Older XeTile text mixes integers and index: `scf.for %k = %c0 to %c64 step %c16` with an i32 among them.
#
# MLIR's parser refuses such uses, and says which value, its type and the wanted one; `with_cast` casts the value.

_MIXED = pattern(
    r"use of value '(%[\w$.-]+)' expects different type than prior uses: '(index|i32|i64)' vs '(index|i32|i64)'"
)

_STATEMENT = pattern(r"[ \t]*(?:%[^=\n]*=[ \t]*)?\"?[a-z_]\w*\.\w", re.MULTILINE)


def with_cast(source: Source, errors: Sequence[Diagnostic]) -> Source | None:
    """The text with a cast before the statement of the first error.

    Args:
        errors: the diagnostics of MLIR's parser.

    Returns:
        None if the text is not of XeTile, or the error is another one.
    """
    match = _MIXED.match(errors[0].message) if errors and "xetile." in source.text else None
    if not match or "index" not in match.groups():
        return None
    name, expected_type, actual_type = match.groups()
    where = errors[0].position
    at = source.offset(where.line - source.first_line + 1, where.column)
    use = re.compile(rf"{re.escape(name)}(?![\w$.-])").search(source.text, at)
    starts = [m.start() for m in _STATEMENT.finditer(source.text, 0, at + 1)] if use else []
    starts = [s for s in starts if s == 0 or source.text[s - 1] == "\n"]
    if not use or not starts:
        return None
    cast = f"%cast.{name[1:]}.{expected_type}.{at}"
    prefix, between, suffix = source.text[: starts[-1]], source.text[starts[-1] : use.start()], source.text[use.end() :]
    return replace(
        source,
        text=f"{prefix}{cast} = arith.index_cast {name} : {actual_type} to {expected_type} {between}{cast}{suffix}",
    )


# Fast-math flags of conversions, which LLVM's main branch has and 22.1.8 does not read.

_CONVERSION_FLAGS = pattern(
    r"(\bllvm\.(?:fpext|fptrunc)\b[^:\n]*?)"
    r"(<\{\s*fastmathFlags\s*=\s*#llvm\.fastmath<[\w, ]*>\s*\}>|\bfastmath<[\w, ]*>)"
)


def without_flags(source: Source) -> Source | None:
    """The text of a program that MLIR refuses, with spaces in the place of the fast-math flags of conversions: flags
    only permit other results. None if the text has none.
    """
    if "fastmath" not in source.text:
        return None
    text = _CONVERSION_FLAGS.sub(lambda m: m[1] + re.sub(r"\S", " ", m[2]), source.text)
    return replace(source, text=text) if text != source.text else None
