"""MLIR's generic form of ops whose dialect has another name in the IR, as dialects with further spellings do.

MLIR reads the generic form of all other ops itself.
"""

from __future__ import annotations

import re

from xegpu_py.ir.codecs import Scope
from xegpu_py.ir.cursor import Cursor, SyntaxFault, split_list
from xegpu_py.ir.definition import DYNAMIC
from xegpu_py.ir.fields import SEGMENTS, STATIC, ParsedOp
from xegpu_py.ir.operation import Operation, ReadOperand

_NUMBER = re.compile(r"-?\d+")
_KEY = re.compile(r'"([^"\n]*)"|([A-Za-z_][\w$.]*)')
_KEYWORD = re.compile(r"#\w+<\w+ (\w+)>")
"""An enumerator as MLIR prints it where the attribute has no syntax of its own: `#xegpu<memory_space slm>`."""
_CONSTANT = "const_"
"""What begins the names of the constants of index lists in upstream's XeGPU, where ours have `STATIC`."""


def read_generic(op: type[Operation], cursor: Cursor, scope: Scope, operand: ReadOperand) -> ParsedOp:
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
    for which in ("operand", "result"):
        where = cursor.skip()
        types = _types(cursor, scope)
        try:
            sizes = op.spec.sizes(which, len(types), segments if which == "operand" else None)
        except ValueError as e:
            raise SyntaxFault(where, str(e)) from None
        for group, size in zip(op.spec.groups(which), sizes):
            parsed.types[group.name], types = types[:size], types[size:]
            if which == "operand":
                parsed.operands[group.name], names = names[:size], names[size:]
            groups[group.name] = where
        if which == "operand":
            cursor.expect("->")
    _check(op, parsed, groups, start)
    return parsed


def _entry(op: type[Operation], cursor: Cursor, scope: Scope, parsed: ParsedOp) -> list[int] | None:
    """Read an attribute; return the sizes of groups of operands if the attribute holds them."""
    m = cursor.match(_KEY)
    if not m:
        raise cursor.expected("an attribute name or '}'")
    key = m[1] if m[1] is not None else m[2]
    start = cursor.skip()
    has_value = cursor.accept("=")
    cursor.skip()
    word = cursor.match(_KEYWORD) if has_value else None
    if word and key in op.spec.attributes:
        parsed.attributes[key] = op.spec.attributes[key].codec.read(Cursor(word[1]), scope)
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


def _types(cursor: Cursor, scope: Scope) -> list[str]:
    if not cursor.at("("):
        return [scope.resolve(scope.read_type(cursor))]
    inner = Cursor(cursor.balanced()[1:-1])
    return [scope.resolve(scope.read_type(Cursor(text))) for text in split_list(inner.text)]


def _check(op: type[Operation], parsed: ParsedOp, offsets: dict[str, int], start: int) -> None:
    """Check the rules that are checked when the op's other forms are read."""
    for group in (*op.spec.operands, *op.spec.results):
        for text in parsed.types[group.name]:
            if not group.accepts(text):
                raise SyntaxFault(offsets[group.name], f"'{group.name}' must be {group.summary}, but got '{text}'")
    for name in op.spec.index_lists:
        parsed.attributes.setdefault(STATIC + name, ())
        given = parsed.operands[name]
        if sum(n == DYNAMIC for n in parsed.attributes[STATIC + name]) != len(given):
            raise SyntaxFault(start, f"the number of operands of '{name}' does not match its constants")
    for attribute in op.spec.attributes.values():
        if attribute.required and attribute.name not in parsed.attributes:
            raise SyntaxFault(start, f"attribute '{attribute.name}' is missing")
