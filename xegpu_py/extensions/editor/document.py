"""Hints, colours and definitions that an editor shows for a file."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import signal
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, TypeVar

from mlir import ir
from msgspec import Struct
from msgspec.structs import replace
from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType

from xegpu_py.dialects import visa
from xegpu_py.extensions.editor.names import Definition, Names, mlir_names, visa_names, without_locations
from xegpu_py.highlighting import MlirLexer, VisaLexer
from xegpu_py.ir.bindings import upstream_operations
from xegpu_py.ir.context import Context, dialects, dialects_of
from xegpu_py.ir.definition import Attr, Dialect, EnumCodec, Type
from xegpu_py.ir.diagnostics import Diagnostic, DiagnosticError, Position, Source, position_of
from xegpu_py.ir.module import Module, parse_source, walk
from xegpu_py.ir.operation import Operation
from xegpu_py.ir.passes import run_pipeline
from xegpu_py.ir.printer import Printer, formatted
from xegpu_py.ir.reference_pages import entry
from xegpu_py.target import DEFAULT, Target, target
from xegpu_py.upstream import read_kernels
from xegpu_py.visa import assembly
from xegpu_py.visa.allocate import Allocation, allocate
from xegpu_py.visa.instructions import INSTRUCTIONS
from xegpu_py.visa.operands import Variable
from xegpu_py.visa.program import Program
from xegpu_py.visa.verify import verify

# `Document`: one version of a file in an editor, with its diagnostics, names, hover texts and completions.

T = TypeVar("T")

_WORD = re.compile(r"[%@^!#]?[\w$][\w$.-]*")

_DICTIONARY = re.compile(r"(?P<op>[a-z_]\w*\.\w+)[^\n{}]*\{(?P<inside>[^{}]*)\Z")

_PARAMETERS = re.compile(r"(?P<name>[!#]?\w+(?:\.\w+)?)<(?P<inside>[^<>]*)\Z")

_KEY = re.compile(r"(\w+)\s*=\s*[\w.#]*\Z")


def in_child(work: Callable[[], T], source: Source) -> T:
    """The result of a function that is called in a fork of this process, since MLIR may end the process.

    Args:
        work: a function whose result can be pickled.
        source: the text that it reads.

    Raises:
        DiagnosticError: if the function does, or the fork is ended.
        ValueError: if the function does.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        try:
            data = pickle.dumps(("made", work()))
        except DiagnosticError as e:
            data = pickle.dumps(("diagnostics", e.diagnostics))
        except BaseException as e:
            data = pickle.dumps(("error", str(e)))
        # Nothing of the child may return to the caller, whose work is its parent's.
        with contextlib.suppress(BaseException), os.fdopen(writing, "wb") as pipe:
            pipe.write(data)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        message = f"MLIR cannot process this text, and ends the process ({signal.Signals(os.WTERMSIG(status)).name})"
        raise source.error(0, message)
    kind, result = pickle.loads(data)
    if kind == "diagnostics":
        raise DiagnosticError(result, [source])
    if kind == "error":
        raise ValueError(result)
    return result


@dataclass(frozen=True)
class Completion:
    """A completion.

    Attributes:
        text: the text to insert.
        kind: "op", "attribute", "value", "type" or "name".
        detail: a description of one line.
        doc: the documentation, as Markdown.
    """

    text: str
    kind: str
    detail: str = ""
    doc: str = ""


Named = Mapping[str, type[Dialect]]
"""Dialects by their names in a text."""


def _documented(word: str, named: Named) -> Any:
    """The class of our dialects that a word such as `xegpu.load_nd` or `!xegpu.tensor_desc` names, or None."""
    sigil = word[:1] if word[:1] in "!#" else ""
    name, _, rest = word.removeprefix(sigil).partition(".")
    dialect = named.get(name)
    if dialect is None:
        return None
    if sigil:
        return dialect.types.get(rest) if sigil == "!" else dialect.attributes.get(rest) or dialect.enums.get(rest)
    return dialect.operations.get(rest)


class InlayHint(Struct, frozen=True):
    """A note that an editor shows inside a line.

    Attributes:
        offset: where it stands.
        text: the note.
        tooltip: what hovering over it shows, as Markdown.
    """

    offset: int
    text: str
    tooltip: str = ""


_KINDS: dict[_TokenType, str] = {
    Comment: "comment",
    String: "string",
    Number: "number",
    Name.Variable: "variable",
    Name.Function: "function",
    Name.Label: "event",
    Name.Decorator: "decorator",
    Name.Builtin: "method",
    Name.Attribute: "property",
    Keyword.Type: "type",
    Keyword.Constant: "enumMember",
    Keyword: "keyword",
}
"""The protocol's type of a token of the lexers, or of the nearest of its ancestors that stands here."""

TOKEN_KINDS = (*_KINDS.values(), "parameter")


class Document(ABC):
    """One version of a file's text.

    Attributes:
        source: the text with the file's name.
        lexer: the lexer of its language.
    """

    lexer: ClassVar[RegexLexer]

    def __init__(self, text: str, name: str) -> None:
        self.source = Source(text, name)

    @staticmethod
    def of(text: str, name: str) -> Document:
        """The document of a file: vISA assembly if its name ends in `.visaasm`, otherwise MLIR."""
        return (AssemblyDocument if name.endswith(".visaasm") else MlirDocument)(text, name)

    @property
    @abstractmethod
    def diagnostics(self) -> list[Diagnostic]:
        """The errors and warnings of the file."""

    @property
    @abstractmethod
    def names(self) -> Names:
        """The definitions and uses of its names."""

    @abstractmethod
    def hover(self, offset: int) -> str | None:
        """The hover text of the word at an offset, as Markdown; None if there is none."""

    @abstractmethod
    def completions(self, offset: int) -> list[Completion]:
        """The completions at an offset."""

    @abstractmethod
    def formatted(self) -> str:
        """The text in the format of our printer; unchanged if it cannot be parsed, or is assembly with comments."""

    @abstractmethod
    def lowered(self, offset: int) -> str:
        """vISA assembly of the kernel at an offset.

        Raises:
            DiagnosticError: if the kernel cannot be lowered.
            ValueError: if there is no kernel.
        """

    @abstractmethod
    def hints(self) -> list[InlayHint]:
        """Hints that the text does not contain: derived layouts, and registers."""

    def tokens(self) -> Iterator[tuple[int, str, str]]:
        """The offset, text and kind of each token that has a kind; kinds are the protocol's types of tokens."""
        for offset, token, text in self.lexer.get_tokens_unprocessed(self.source.text):
            kind = next((_KINDS[t] for t in reversed(token.split()) if t in _KINDS), None)
            if (
                kind == "variable"
                and (definition := self.names.at(offset))
                and definition.kind == "value"
                and definition.result is None
            ):
                kind = "parameter"
            if kind:
                at = offset
                for line in text.splitlines(keepends=True):
                    yield at, line.rstrip("\n"), kind
                    at += len(line)

    def renamed(self, offset: int, name: str) -> str:
        """The new name of the name at an offset, with its sigil, if all occurrences can get it.

        Args:
            offset: the place of an occurrence.
            name: the new name, with or without the sigil of the old one.

        Raises:
            ValueError: if there is no name, the new one is none, or an occurrence would refer to something else.
        """
        definition = self.names.at(offset)
        if definition is None:
            raise ValueError("there is no name of a value, symbol, block, variable or label")
        name = definition.name[: _sigil(definition.name)] + name[_sigil(name) :]
        if not re.fullmatch(r"[%@^#!]?[A-Za-z_$.-][\w$.-]*|[%^]\d+", name):
            raise ValueError(f"'{name}' is not a name")
        text = self.source.text
        for start in sorted((definition.start, *definition.uses), reverse=True):
            text = text[:start] + name + text[start + len(definition.name) :]
        if type(self)(text, self.source.name).names.structure() != self.names.structure():
            raise ValueError(f"'{name}' is the name of something else here")
        return name

    def word(self, offset: int) -> re.Match[str] | None:
        """The word at an offset, with its sigil."""
        text = self.source.text
        start = text.rfind("\n", 0, offset) + 1
        for m in _WORD.finditer(text, start):
            if m.start() > offset or text.find("\n", start, m.start()) >= 0:
                break
            if offset <= m.end():
                return m
        return None

    def _line(self, offset: int) -> str:
        return self.source.line(self.source.position(offset).line) or ""

    def end_of(self, position: Position) -> int:
        """The offset after the word at a position, for diagnostics, which have a start but no end."""
        offset = self.source.offset(position.line, position.column)
        m = re.compile(r"\"[^\"\n]*\"|[%@^!#]?[\w$.-]+|[^\n]").match(self.source.text, offset)
        return m.end() if m else offset


class MlirDocument(Document):
    """MLIR with our dialects."""

    lexer = MlirLexer()

    @cached_property
    def _stated(self) -> Source:
        """The text without its locations, so that ops are at their places in this file."""
        return replace(self.source, text=without_locations(self.source.text))

    @cached_property
    def _read(self) -> tuple[Module | None, list[Diagnostic]]:
        diagnostics: list[Diagnostic] = []
        module: Module | None = None
        # A file for --split-input-file contains several modules.
        for whole, piece in zip(self.source.split(), self._stated.split()):
            try:
                in_child(partial(_survives, piece), piece)
                module = parse_source(piece, context=Context.from_pool(), verify=False)
                module.verify()
                if whole.text != piece.text:
                    # Its locations may have mistakes, too.
                    parse_source(whole, context=Context.from_pool(), verify=False)
            except DiagnosticError as e:
                diagnostics += e.diagnostics
        return module, diagnostics

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return self._read[1]

    @cached_property
    def names(self) -> Names:
        return mlir_names(self.source.text)

    @cached_property
    def _dialects(self) -> Named:
        return {d.namespace: d for d in dialects_of(self.source.text)}

    @cached_property
    def _ops(self) -> dict[Position, ir.Operation]:
        return _by_place(self._read[0]) if self._read[0] else {}

    def _op_at(self, offset: int) -> ir.Operation | None:
        return self._ops.get(self.source.position(offset))

    def _type_of(self, definition: Definition) -> str | None:
        op = self._op_at(definition.owner)
        if definition.result is None or op is None:
            return self._argument_type(definition)
        # The results of an op may be on several lines, and several ops on one.
        start = min(d.start for d in self.names.definitions if d.owner == definition.owner)
        groups = re.findall(r"%[\w$.-]+(?::(\d+))?", self.source.text[start : definition.owner])
        first = sum(int(size or 1) for size in groups[: definition.result])
        size = int(groups[definition.result] or 1)
        types = [self._shown(r.type) for r in list(op.results)[first : first + size]]
        return ", ".join(types) if types else None

    def _line_start(self, offset: int) -> int:
        return self.source.text.rfind("\n", 0, offset) + 1

    def _argument_type(self, definition: Definition) -> str | None:
        module = self._read[0]
        where = self.source.position(definition.start)
        for op in walk(module.operation) if module else ():
            for region in op.regions:
                for block in region:
                    for argument in block.arguments:
                        if position_of(argument.location) == where:
                            return self._shown(argument.type)
        return None

    def _shown(self, part: ir.Type | ir.Attribute) -> str:
        return Printer((*dialects(), *self._dialects.values())).write(str(part))

    def hover(self, offset: int) -> str | None:
        word = self.word(offset)
        if word is None:
            return None
        definition = self.names.at(offset)
        if definition is not None and definition.kind == "value":
            return self._hover_value(definition)
        if definition is not None:
            return _fenced(self._line(definition.start))
        text = word[0]
        documented = _documented(text, self._dialects)
        if documented is not None:
            return entry(documented)
        upstream = _upstream(text)
        return upstream and f"**{text}**\n\n{upstream}"

    def _hover_value(self, definition: Definition) -> str:
        type_ = self._type_of(definition)
        parts = [_fenced(f"{definition.name} : {type_}" if type_ else definition.name)]
        parts.append(_fenced(self._line(definition.start).strip()))
        parts += [text for text in (self._layout(definition), self._register(definition)) if text]
        return "\n\n".join(parts)

    @cached_property
    def _inferred(self) -> dict[Position, ir.Operation]:
        """The ops by their places, with inferred maps and layouts."""
        text = self.source.text
        passes = ["xetile-infer-layout"] * ("xetile." in text) + ["vector-layout-analysis"] * ("to_layout" in text)
        if not passes or self.diagnostics:
            return {}
        pipeline = f"builtin.module({','.join(passes)})"
        module = parse_source(self._stated, context=Context.from_pool())
        try:
            in_child(lambda: run_pipeline(module, pipeline), self.source)
            run_pipeline(module, pipeline)
        except DiagnosticError:
            return {}
        self._kept = module
        return _by_place(module)

    def hints(self) -> list[InlayHint]:
        all_hints = []
        for d in self.names.definitions:
            layouts = self._layouts(d) if d.result is not None else []
            inside = re.search(r"(?:map|layout)\w* = [#\w.]*(<.*?>)", layouts[-1]) if layouts else None
            if inside and inside[1] not in self._line(d.start):
                all_hints.append(InlayHint(d.start + len(d.name), f" {inside[1]}", _derived(layouts)))
        kernels = {d.name: d for d in self.names.definitions if d.kind == "symbol"}
        for name, report in self._registers.items():
            if kernel := kernels.get(f"@{name}"):
                all_hints.append(InlayHint(kernel.start + len(kernel.name), f" {report}"))
        return all_hints

    @cached_property
    def _registers(self) -> dict[str, str]:
        """The registers of each kernel, if the file has no mistakes; of those that can be lowered."""
        if self.diagnostics or "gpu.func" not in self.source.text:
            return {}
        try:
            return in_child(self._register_reports, self.source)
        except DiagnosticError:
            return {}

    def _register_reports(self) -> dict[str, str]:
        module = read_kernels(self._stated, Context.from_pool())
        reports = {}
        for name in [visa.name_of(func) for func in visa.kernels(module.operation)]:
            module = read_kernels(self._stated, Context.from_pool())
            with suppress(DiagnosticError):
                func = self._lowered_kernel(module, name)
                reports[name] = allocate(visa.program_of(func), visa.target_of(func), visa.registers_of(func)).report()
        return reports

    def _layout(self, definition: Definition) -> str | None:
        layouts = self._layouts(definition)
        return _derived(layouts) if layouts else None

    def _layouts(self, definition: Definition) -> list[str]:
        """The derived layouts of the op that defines a value."""
        op = self._inferred.get(self.source.position(definition.owner))
        if op is None:
            return []
        layouts = [self._shown(value.type) for value in op.results if "_map" in str(value.type)]
        layouts += [f"{n} = {self._shown(op.attributes[n])}" for n in op.attributes if "map" in n or "layout" in n]
        # The result of a load has the map of its tile.
        return layouts or [self._shown(value.type) for value in op.operands if "_map" in str(value.type)]

    def _register(self, definition: Definition) -> str | None:
        op = self._op_at(definition.owner)
        if op is None or op.name not in ("visa.decl", "visa.input"):
            return None
        func = op
        while func is not None and func.name != "gpu.func":
            func = func.parent.operation if func.parent else None
        if func is None or not visa.is_lowered(func):
            return None
        name = definition.name.removeprefix("%")
        return _register_of(visa.program_of(func), name, visa.target_of(func).name, visa.registers_of(func))

    def completions(self, offset: int) -> list[Completion]:
        text = self.source.text
        before = text[self._line_start(offset) : offset]
        typed = re.search(r"[%@^!#]?[\w.$-]*\Z", before)
        prefix = typed[0] if typed else ""
        if prefix[:1] in ("%", "@", "^"):
            names = {d.name: d for d in self.names.definitions if d.name.startswith(prefix) and d.start < offset}
            return [Completion(name, "name", self._type_of(d) or "") for name, d in names.items()]
        # The dictionary of an op of several lines may begin on an earlier line.
        above = text[max(0, offset - 400) : offset]
        inside = _DICTIONARY.search(above)
        if inside and (op := _documented(inside["op"], self._dialects)):
            return _of_attributes(op, inside["inside"])
        parameters = _PARAMETERS.search(before)
        if parameters and (cls := _parametrized(parameters["name"], self._dialects)):
            return _of_parameters(cls, parameters["inside"])
        return _of_words(prefix, self._dialects)

    def formatted(self) -> str:
        text = self.source.text
        try:
            new_text = formatted(self.source, tuple(self._dialects.values()))
            # Keep the text if formatting would change its meaning.
            same = bool(self.diagnostics) or in_child(lambda: _meaning(new_text) == _meaning(text), self.source)
        except DiagnosticError:
            return text
        return new_text if same else text

    def lowered(self, offset: int) -> str:
        return in_child(lambda: self._lowered(offset), self.source)

    def _lowered(self, offset: int) -> str:
        at = self.source.position(offset).line
        module = read_kernels(self._stated, Context.from_pool())
        kernels = [(position_of(func.location).line, visa.name_of(func)) for func in visa.kernels(module.operation)]
        above = [name for line, name in kernels if line <= at]
        if not kernels:
            raise ValueError("there is no kernel: a gpu.func with the attribute 'kernel'")
        func = self._lowered_kernel(module, above[-1] if above else kernels[0][1])
        return assembly.write([visa.program_of(func)], lines=True)

    def _lowered_kernel(self, module: Module, name: str) -> ir.Operation:
        func = visa.kernel_named(module.operation, name)
        level = "xetile" if any(op.name.startswith("xetile.") for op in walk(func)) else "xegpu"
        if not visa.is_lowered(func):
            run_pipeline(module, f"builtin.module({level}-to-visa-pipeline{{kernel={name}}})")
            func = visa.kernel_named(module.operation, name)
        return func


def _by_place(module: Module) -> dict[Position, ir.Operation]:
    return {position_of(op.location): op for op in walk(module.operation)}


def _derived(layouts: list[str]) -> str:
    return "Layout, as derived:\n\n" + _fenced("\n".join(layouts))


def _sigil(name: str) -> int:
    return int(name[:1] in ("%", "@", "^", "#", "!"))


def _survives(source: Source) -> None:
    """Read and verify a text; with diagnostics, if it has mistakes."""
    with suppress(DiagnosticError):
        parse_source(source, context=Context.from_pool())


def _meaning(text: str) -> list[str]:
    return [str(parse_source(piece, context=Context.from_pool(), verify=False)) for piece in Source(text, "").split()]


@lru_cache
def _upstream(name: str) -> str | None:
    dialect, _, _ = name.partition(".")
    cls = upstream_operations(dialect).get(name)
    return (cls.__doc__ or "").strip() or None if cls else None


_COMMON = ("arith", "math", "vector", "memref", "scf", "cf", "gpu", "index", "func", "affine")


def _of_words(prefix: str, named: Named) -> list[Completion]:
    """Ops, types and attributes that begin with what was typed."""
    sigil = prefix[:1] if prefix[:1] in ("!", "#") else ""
    completions = []
    for dialect in named.values():
        table: dict[str, Any] = (
            dialect.types if sigil == "!" else {**dialect.attributes, **dialect.enums} if sigil else dialect.operations
        )
        for name, cls in table.items():
            text = f"{sigil}{dialect.namespace}.{name}"
            if text.startswith(prefix):
                doc = cls.cases.__doc__ if isinstance(cls, EnumCodec) else cls.__doc__
                kind = "type" if sigil else "op"
                completions.append(
                    Completion(text, kind, (doc or "").strip().partition("\n")[0], "" if sigil else entry(cls))
                )
    if not sigil:
        names = (name for dialect in _COMMON for name in upstream_operations(dialect))
        completions += [Completion(name, "op", "upstream") for name in names if name.startswith(prefix)]
    return completions


def _of_attributes(op: type[Operation], inside: str) -> list[Completion]:
    """Names of an op's attributes, or after `name =` the values of that attribute."""
    key = _KEY.search(inside)
    if key:
        name = op.dialect_class.attribute_spellings.get(key[1].lower(), key[1].lower())
        attribute = op.spec.attributes.get(name)
        return _values(attribute.codec) if attribute else []
    hidden = {f"static_{name}" for name in op.spec.index_lists}
    return [
        Completion(name, "attribute", attribute.codec.summary)
        for name, attribute in op.spec.attributes.items()
        if name not in hidden and not re.search(rf"\b{name}\s*=", inside)
    ]


def _parametrized(name: str, named: Named) -> type[Type] | type[Attr] | None:
    for text in (name, f"#{name}", f"!{name}"):
        documented = _documented(text, named)
        if isinstance(documented, type):
            return documented
    return None


def _of_parameters(cls: type[Type] | type[Attr], inside: str) -> list[Completion]:
    kinds = cls.parameters()
    key = _KEY.search(inside)
    if key:
        return _values(kinds[key[1]]) if key[1] in kinds else []
    return [Completion(name, "attribute", kind.summary) for name, kind in kinds.items()]


def _values(kind: Any) -> list[Completion]:
    if isinstance(kind, EnumCodec):
        return [Completion(str(case.value), "value") for case in kind.cases]
    return (
        [Completion(word, "value") for word in ("true", "false")] if kind.summary in ("bool", "true or false") else []
    )


class AssemblyDocument(Document):
    """vISA assembly."""

    lexer = VisaLexer()

    @cached_property
    def _read(self) -> tuple[list[Program], list[Diagnostic]]:
        try:
            programs = assembly.read(self.source)
        except DiagnosticError as e:
            return [], list(e.diagnostics)
        gpu = target(DEFAULT)
        return programs, [issue.diagnostic() for program in programs for issue in verify(program, gpu)]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return self._read[1]

    @cached_property
    def names(self) -> Names:
        return visa_names(self.source.text)

    def hints(self) -> list[InlayHint]:
        if self.diagnostics:
            return []
        gpu, all_hints = target(DEFAULT), []
        allocations = {p.where.line: allocate(p, gpu) for p in self._read[0]}
        for d in self.names.definitions:
            program = self._program(d.start)
            if program is None:
                continue
            end = self.source.text.find("\n", d.start)
            allocation = allocations[program.where.line]
            if d.kind == "kernel":
                all_hints.append(InlayHint(end, f" {allocation.report()}"))
            elif d.kind == "variable" and (var := _variable(program, d.name)):
                all_hints.append(InlayHint(end, f" {_place(var, allocation, gpu)}"))
        return all_hints

    def _program(self, offset: int) -> Program | None:
        """The kernel at an offset."""
        line = self.source.position(offset).line
        programs = self._read[0]
        starts = [p.where.line for p in programs]
        return programs[max(0, bisect_right(starts, line) - 1)] if programs else None

    def hover(self, offset: int) -> str | None:
        word = self.word(offset)
        if word is None:
            return None
        definition = self.names.at(offset)
        if definition is not None:
            shown = _fenced(self._line(definition.start).strip(), "visaasm")
            program = self._program(offset)
            if definition.kind == "variable" and program and not self.diagnostics:
                return "\n\n".join(filter(None, (shown, _register_of(program, definition.name, DEFAULT, None))))
            return shown
        spec = INSTRUCTIONS.get(word[0].partition(".")[0])
        return (
            f"**{spec.name}**\n\n{spec.doc}\n\n{_fenced(spec.form, 'visaasm')}\n\nSource: {spec.source}"
            if spec
            else None
        )

    def completions(self, offset: int) -> list[Completion]:
        start = self.source.text.rfind("\n", 0, offset) + 1
        before = self.source.text[start:offset]
        prefix = re.search(r"%?[\w$]*\Z", before)
        typed = prefix[0] if prefix else ""
        first = re.fullmatch(r"\s*(\([^()]*\)\s*)?", before[: len(before) - len(typed)])
        ops = [Completion(s.name, "op", s.doc) for s in INSTRUCTIONS.values() if first and s.name.startswith(typed)]
        names = {d.name: d for d in self.names.definitions if d.name.startswith(typed) and d.kind != "kernel"}
        return ops + [Completion(name, "name", d.kind) for name, d in names.items()]

    def formatted(self) -> str:
        # The printer knows no comments.
        kept = self.diagnostics or any(kind == "comment" for _, _, kind in self.tokens())
        return self.source.text if kept else assembly.write(self._read[0])

    def lowered(self, offset: int) -> str:
        program = self._program(offset)
        if program is None:
            raise ValueError("there is no kernel")
        return assembly.write([program])


def _variable(program: Program, name: str) -> Variable | None:
    return next((v for v in program.variables if v.name == name), None)


def _place(var: Variable, allocation: Allocation, gpu: Target) -> str:
    size, at = gpu.grf_bytes, allocation.offset(var)
    end = at + var.bytes - 1
    return f"r{at // size}.{at % size}" + (f" to r{end // size}.{end % size}" if end > at else "")


def _register_of(program: Program, name: str, gpu: str, registers: int | None) -> str | None:
    """The place of a variable in the register file, and its alignment."""
    var = _variable(program, name)
    if var is None:
        return None
    registers_text = _place(var, allocate(program, target(gpu), registers), target(gpu))
    alias = f", alias of `{var.alias[0].name}` at byte {var.alias[1]}" if var.alias else ""
    return f"Bytes {registers_text} of the register file on {gpu}; {var.bytes} bytes, aligned to {var.align}{alias}."


def _fenced(text: str, language: str = "mlir") -> str:
    return f"```{language}\n{text}\n```"
