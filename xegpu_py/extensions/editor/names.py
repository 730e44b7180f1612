"""The definitions and uses of the names in a file, found in its text, so that invalid files have them too.

MLIR (Language Reference, "Value Scoping", "Symbols and Symbol Tables"): a value is visible in the region that defines
it and the regions inside. A region is a pair of braces that is not a dictionary. The values that an op's header
defines (arguments, induction variables) belong to the regions that follow the header.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from xegpu_py.ir.diagnostics import SEPARATOR

_ID = r"[\w$.-]+"

_TOKEN = re.compile(
    rf"(?P<skip>//[^\n]*)|(?P<symbol>@(?:{_ID}|\"[^\"\n]*\"))|(?P<string>\"(?:[^\"\\\n]|\\.)*\")"
    rf"|(?P<value>%{_ID})(?:#\d+)?|(?P<alias>[#!]{_ID})|(?P<block>\^{_ID})|(?P<bracket>[(){{}}])|(?P<word>[A-Za-z_][\w$]*(?:\.[\w$]+)*)|(?P<end>\n)"
)

_RESULTS = re.compile(rf"(?:%{_ID}(?::\d+)?\s*,\s*)*%{_ID}(?::\d+)?\s*=(?!=)")

# Ops and blocks may share a line: these begin one also there. A loop's `%i =` is followed by a bound instead.
_OP_OF_RESULTS = re.compile(r"\s*(?:\"|[A-Za-z_][\w$]*\.|call\b)")

_ALIAS = re.compile(rf"^[#!]{_ID}(?=\s*=(?!=))", re.MULTILINE)

_STRING = r"\"(?:[^\"\\\n]|\\.)*\""


def _parentheses(depth: int) -> str:
    inner = f"|{_parentheses(depth - 1)}" if depth else ""
    return rf"\((?:[^()\"]|{_STRING}{inner})*\)"


_LABEL = re.compile(rf"\^{_ID}\s*(?:{_parentheses(4)}\s*)?:")

_LOCATION = re.compile(
    rf"//[^\n]*|{_STRING}|(?P<location>(?:^#{_ID}\s*=\s*)?(?<![\w$.%@^!#-])loc{_parentheses(4)})", re.MULTILINE
)

_BOUND_LIST = re.compile(rf"\(\s*%{_ID}(?:\s*,\s*%{_ID})*\s*\)\s*(?:=|in\b)")

_ATTRIBUTES = re.compile(r"\{\s*(?:\}|\"?[\w$.-]+\"?\s*(?:=(?!=)|,|\}))")

_PIECES = re.compile(rf"^(?=[ \t]*{SEPARATOR})", re.MULTILINE)

_FUNCTIONS = ("func.func", "gpu.func", "llvm.func", "tt.func", "func")

_MODULES = ("gpu.module", "module", "builtin.module")

_NAMED = (*_FUNCTIONS, *_MODULES, "memref.global", "gpu.binary")

_OPS = ("module", "func", "call")
"""Names of ops without a dialect, at which a line without results begins."""

_BETWEEN = {"private", "public", "nested", "constant", "uninitialized"}


@dataclass
class Definition:
    """The definition of a name.

    Attributes:
        name: the name, with its sigil.
        start: offset of the name.
        kind: "value", "symbol", "module", "alias", "block", "variable", "label" or "kernel".
        owner: offset of the op that defines it, where diagnostics point; for an argument, the offset of the argument.
        result: the number of the result group among the op's results; None for arguments and for other kinds.
        uses: offsets of its uses.
    """

    name: str
    start: int
    kind: str
    owner: int
    result: int | None = None
    uses: list[int] = field(default_factory=list)


@dataclass
class _Scope:
    parent: _Scope | None
    names: dict[str, Definition] = field(default_factory=dict)

    def find(self, name: str) -> Definition | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


@dataclass
class Names:
    """The definitions of a file, in order, and the definition that each occurrence of a name refers to.

    Attributes:
        definitions: the definitions.
        regions: the offsets of each region's ends: braces in MLIR, kernels in assembly.
    """

    definitions: list[Definition] = field(default_factory=list)
    regions: list[tuple[int, int]] = field(default_factory=list)
    _at: list[tuple[int, int, Definition]] = field(default_factory=list)

    def finish(self) -> Names:
        """Sort the occurrences. Called when all are known."""
        for d in self.definitions:
            for start in (d.start, *d.uses):
                self._at.append((start, start + len(d.name), d))
        self._at.sort(key=lambda entry: entry[:2])
        return self

    def at(self, offset: int) -> Definition | None:
        """The definition of the name at an offset."""
        i = bisect_right(self._at, offset, key=lambda entry: entry[0]) - 1
        return self._at[i][2] if i >= 0 and offset <= self._at[i][1] else None

    def structure(self) -> list[int]:
        """The number of the definition that each occurrence refers to, in the order of the text."""
        numbers = {id(d): n for n, d in enumerate(self.definitions)}
        return [numbers[id(d)] for _, _, d in self._at]


class _Indexer:
    """Reads the tokens of MLIR in one scan, with a stack of the open regions."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names = Names()
        self.scope = _Scope(None)
        # The offset of each open brace, or -1 if it does not begin a region, and the open parentheses around it.
        self.open: list[tuple[int, int]] = []
        self.aliases = {m[0]: m.start() for m in _ALIAS.finditer(text)}
        self.uses: list[tuple[str, int, _Scope]] = []
        self.pending: list[Definition] = []  # The values that a header defines, for the regions that follow it.
        self.parens = 0

    def index(self) -> Names:
        first, words, results, bound, header = True, list[str](), (-1, -1), -1, False
        previous = ""
        owner, order = 0, 0
        for m in _TOKEN.finditer(self.text):
            kind, word, at = m.lastgroup or "", m[0], m.start()
            if kind in ("skip", "string"):
                continue
            if kind == "end":
                first = first or self.parens == 0
                continue
            if kind == "alias":
                first, previous = False, word
                if self.aliases.get(word) == at:
                    self._define(self.scope, Definition(word, at, "alias", at))
                elif word in self.aliases:
                    self.uses.append((word, at, self.scope))
                continue
            lhs = self._results(at, first) if at >= results[1] else None
            # Other lines continue the previous statement.
            if kind == "block":
                starts = bool(_LABEL.match(self.text, at))
            else:
                starts = bool(lhs) or (first and (kind == "bracket" or "." in word or word in _OPS))
            first = False
            if starts:
                words, header, order = [], False, 0
                self.pending = self.pending if kind == "bracket" else []
                results = lhs.span() if lhs else (-1, -1)
                owner = at
                if lhs:
                    op = re.compile(r"\s*\"?").match(self.text, lhs.end())
                    owner = op.end() if op else lhs.end()
            if kind == "bracket":
                if word == "(":
                    self.parens += 1
                    listed = _BOUND_LIST.match(self.text, at)
                    bound = max(bound, listed.end() if listed else -1)
                elif word == ")":
                    self.parens = max(0, self.parens - 1)
                elif word == "{":
                    region = self._opens_region(at, previous)
                    self.open.append((at if region else -1, self.parens))
                    if region:
                        self.scope = _Scope(self.scope, {d.name: d for d in self.pending})
                        first, self.parens = True, 0
                elif self.open:
                    begin, self.parens = self.open.pop()
                    if begin >= 0:
                        self.names.regions.append((begin, at))
                        self.scope = self.scope.parent or self.scope
                    # Another region of the same op may follow: `} else {`, `} do {`.
                    first = False
            elif kind == "word":
                words.append(word)
                header = header or word in _FUNCTIONS
            elif kind == "value":
                name = m["value"]
                after = self.text[m.end() : m.end() + 80].lstrip()
                if results[0] <= at < results[1]:
                    self._define(self.scope, Definition(name, at, "value", owner, order))
                    order += 1
                elif at < bound or after.startswith("=") or (header and self.parens == 1 and after.startswith(":")):
                    self.pending.append(self._made(Definition(name, at, "value", at)))
                elif words[:1] == ["^"] and self.parens == 1 and after.startswith(":"):
                    self._define(self.scope, Definition(name, at, "value", at))
                else:
                    self.uses.append((name, at, self.scope))
            elif kind == "symbol":
                named = next((w for w in words if w not in _BETWEEN), "")
                if named in _NAMED and previous not in ("@", "::"):
                    kind = "module" if named in _MODULES else "symbol"
                    self._define(self.scope, Definition(word, at, kind, owner))
                    words.append(word)
                else:
                    self.uses.append((word, at, self.scope))
            elif kind == "block":
                if starts:
                    self._define(self.scope, Definition(word, at, "block", at))
                    words = ["^"]
                else:
                    self.uses.append((word, at, self.scope))
            previous = word
        for name, at, scope in self.uses:
            meant = scope.find(name)
            if meant is None and name[0] in "@#!":
                meant = next((d for d in self.names.definitions if d.name == name), None)
            if meant:
                meant.uses.append(at)
        return self.names

    def _results(self, at: int, first: bool) -> re.Match[str] | None:
        """The results of an op and `=`, if an op begins at the value at an offset; `first` is whether a line does."""
        results = None if self.parens else _RESULTS.match(self.text, at)
        return results if results and (first or _OP_OF_RESULTS.match(self.text, results.end())) else None

    def _opens_region(self, at: int, previous: str) -> bool:
        # The regions of an op in the generic form stand in parentheses, one after the other.
        if previous not in ("(", "}") and self.parens:
            return False
        if previous == "attributes" or self.text[at - 1 : at] in "<":
            return False
        m = _ATTRIBUTES.match(self.text, at)
        # `{ gpu.return }` is a region of one op.
        return m is None or ("." in m[0] and m[0].endswith("}") and "=" not in m[0])

    def _made(self, definition: Definition) -> Definition:
        self.names.definitions.append(definition)
        return definition

    def _define(self, scope: _Scope, definition: Definition) -> None:
        scope.names[definition.name] = self._made(definition)


def without_locations(text: str) -> str:
    """MLIR text with blanks in place of its locations, which name other files."""
    return _LOCATION.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m["location"] else m[0], text)


def mlir_names(text: str) -> Names:
    """The names of MLIR text. Each piece of a file for `--split-input-file` has its own."""
    names, at = Names(), 0
    for piece in _PIECES.split(text):
        own = _Indexer(piece).index()
        for d in own.definitions:
            d.start, d.owner, d.uses = d.start + at, d.owner + at, [use + at for use in d.uses]
        names.definitions += own.definitions
        names.regions += [(begin + at, end + at) for begin, end in own.regions]
        at += len(piece)
    return names.finish()


_VISA = re.compile(
    r"(?P<skip>//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\")"
    r"|\.decl\s+(?P<variable>%?[A-Za-z_$][\w$]*)|\.kernel\s+\"?(?P<kernel>[\w$]+)"
    r"|^[ \t]*(?P<label>[A-Za-z_$][\w$]*)\s*:(?=\s|$)|(?P<end>^\s*\.kernel)"
    r"|(?P<use>(?<![\w$.:=])%?[A-Za-z_$][\w$]*(?![\w$=]))",
    re.DOTALL | re.MULTILINE,
)


def visa_names(text: str) -> Names:
    """The names of vISA assembly: of each kernel its variables, predicates and labels."""
    names = Names()
    scope = _Scope(None)
    uses: list[tuple[str, int, _Scope]] = []
    for m in _VISA.finditer(text):
        kind = m.lastgroup or ""
        if kind in ("skip", "end"):
            continue
        name, at = m[kind], m.start(kind)
        if kind == "kernel":
            scope = _Scope(None)
            names.regions = [*((a, at if b == len(text) else b) for a, b in names.regions), (at, len(text))]
        if kind == "use":
            uses.append((name, at, scope))
        else:
            definition = Definition(name, at, kind, at)
            names.definitions.append(definition)
            # The name of a kernel is no operand: an instruction or a variable may be called so.
            if kind != "kernel":
                scope.names.setdefault(name, definition)
    for name, at, scope in uses:
        if meant := scope.find(name):
            meant.uses.append(at)
    return names.finish()
