"""Modules in memory: contexts, reading, editing and verification."""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mlir import ir
from mlir import ir as mlir
from msgspec import Struct, structs

from xegpu_py.argument_types import checked
from xegpu_py.deferred import deferred
from xegpu_py.did_you_mean import did_you_mean
from xegpu_py.ir.assembly_format import unknown_attribute
from xegpu_py.ir.bindings import blocks_in, import_views, is_kernel, load_dialects, upstream_operations
from xegpu_py.ir.builtin import Decoded
from xegpu_py.ir.definition import DYNAMIC, FUNCTIONS, Attr, Dialect, EnumCodec, Type
from xegpu_py.ir.diagnostics import (
    Diagnostic,
    DiagnosticError,
    Position,
    Source,
    decode_utf8,
    enter,
    op_error,
    position_of,
)
from xegpu_py.ir.operation import MIXED, SEGMENTS, STATIC, Broken, Operation, ValueField, group_sizes
from xegpu_py.ir.reader import Reader, Rewritten, with_cast, without_flags

if TYPE_CHECKING:
    from xegpu_py import highlighting
    from xegpu_py.ir import printer
else:
    highlighting = deferred("xegpu_py.highlighting")
    printer = deferred("xegpu_py.ir.printer")

# Modules: reading, printing and verifying them in dialect syntax.

_BYTECODE = b"ML\xefR"
"""First bytes of a file of MLIR's bytecode (MLIR Bytecode Format, "Magic Number")."""

_BUFFER = "-"
"""The file name that MLIR gives to text that it parses from memory."""

_SSA_NAME = re.compile(r"%[\w$.-]+")

Op = TypeVar("Op", bound=mlir.OpView)


class Module:
    """A module in a context with our dialects.

    Attributes:
        sources: the texts that its locations speak of, for diagnostics.
        bodies: functions that passes have lowered below the IR. Their ops are made when the module is read or edited.
        remarks: on what an import of its kernels has changed or dropped.
    """

    def __init__(
        self, module: mlir.Module, sources: tuple[Source, ...] = (), remarks: Iterable[Diagnostic] = ()
    ) -> None:
        self._module = module
        self.sources = sources
        self.bodies = PendingFunctions()
        self.remarks = [*remarks]

    @property
    def ir(self) -> mlir.Module:
        """The module as the MLIR bindings see it."""
        import_views()
        self.bodies.share()
        return self._module

    @property
    def context(self) -> Context:
        """The MLIR context."""
        return self._module.context

    @property
    def operation(self) -> mlir.Operation:
        """The `builtin.module` op."""
        return self.ir.operation

    @property
    def outline(self) -> mlir.Operation:
        """The `builtin.module` op, whose functions may be empty while they are lowered; see `PendingFunctions`."""
        return self._module.operation

    @property
    def body(self) -> mlir.Block:
        """The module's one block."""
        return self.ir.body

    def ops(self, op_class: type[Op] = mlir.OpView) -> list[Op]:
        """The ops of a class in the module, in order; by default all."""
        return [view for op in walk(self.operation) if isinstance(view := op.opview, op_class)]

    def copy(self) -> Module:
        """A copy of the module, with its locations."""
        self.bodies.build()
        with self.context, self.outline.location:
            clone = mlir.Module.create()
            point = mlir.InsertionPoint(clone.body)
            for op in self._module.body.operations:
                op.operation.clone(point)
            for name in self.outline.attributes:
                clone.operation.attributes[name] = self.outline.attributes[name]
        return Module(clone, self.sources, self.remarks)

    @contextmanager
    def edit(self) -> Iterator[mlir.Operation]:
        """Change the module: the `builtin.module` op, in whose context the block runs. The end verifies the module.

        Kernels that were compiled from the module stay as they are.

        Raises:
            DiagnosticError: at the end of the block, with a diagnostic for each broken rule; the module keeps the
                changes.
        """
        with self.context, mlir.Location.unknown():
            yield self.operation
        self.verify()

    def verify(self) -> None:
        """Check the module by MLIR's rules and by those of our dialects.

        Raises:
            DiagnosticError: with a diagnostic for each broken rule.
        """
        self.bodies.build()
        diagnostics = problems(self.outline, self.bodies)
        if diagnostics:
            raise DiagnosticError(diagnostics, self.sources)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:

        return highlighting.html(self.text())

    def text(self, **options: Any) -> str:
        """The module as text; see `print_op` for the options."""
        self.bodies.build()
        return print_op(self.outline, **options)

    def bytecode(self) -> bytes:
        """The module in MLIR's bytecode, with its locations; stock `mlir-opt --irdl-file` reads it too."""
        self.bodies.build()
        data = BytesIO()
        self.outline.write_bytecode(data)
        return data.getvalue()

    def check_roundtrip(self) -> None:
        """Check that the module reads back the same from its text and from bytecode.

        Raises:
            DiagnosticError: with the first line that differs, or with the errors of reading.
        """
        # The text has no locations, and so not the names in them.
        text = self.text(names=False)
        for form, data in (("text", text.encode()), ("bytecode", self.bytecode())):
            name = f"<{form}>"
            reparsed = parse_source(decode(data, name)).text(names=False)
            if reparsed != text:
                old_line, new_line = next(
                    (a, b) for a, b in zip_longest(text.splitlines(), reparsed.splitlines()) if a != b
                )
                notes = (f"printed: {old_line}", f"read back: {new_line}")
                raise DiagnosticError([op_error(self.outline, f"does not read back the same from its {form}", *notes)])


def problems(op: mlir.Operation, bodies: PendingFunctions) -> list[Diagnostic]:
    """The rules of MLIR and of our dialects that `op`, the ops in it or its pending bodies break."""
    try:
        op.verify()
    except mlir.MLIRError as e:
        return from_mlir(e, op.context)
    return verify(op, bodies) or bodies.verify()


def print_op(
    op: mlir.Operation,
    *,
    generic: bool = False,
    debuginfo: bool = False,
    local_scope: bool = False,
    elide: int | None = None,
    print_defaults: bool = False,
    verified: bool = False,
    names: bool = True,
) -> str:
    """An op as text in dialect syntax.

    Args:
        generic: print generic form, with types and attributes as IRDL has them: what stock `mlir-opt` reads.
        debuginfo: print locations.
        local_scope: print attributes, types and locations where they are used, without aliases.
        elide: print constants of more elements than this as `__elided__`.
        print_defaults: print attributes of our ops that have their default value too.
        verified: the op is known to be valid, and MLIR need not check that before it prints.
        names: name values as their locations do, where a dialect has names in them.
    """
    text = op.get_asm(
        large_elements_limit=elide,
        enable_debug_info=debuginfo,
        print_generic_op_form=generic,
        use_local_scope=local_scope,
        use_name_loc_as_prefix=names and any(dialect.names_from_locations for dialect in op.context.irdl_dialects),
        assume_verified=verified,
    )
    if generic:
        return str(text)
    return printer.Printer(op.context.irdl_dialects, print_defaults).rewrite(text)


@checked
def parse(text_or_path: str | Path, *, name: str = "<string>", verify: bool = True) -> Module:
    """Read a module, and verify it.

    Args:
        text_or_path: the module's text, or the path of a file that holds it. A string is taken for a path if it is one
            line, does not read as MLIR text (it holds none of `{ } % @ = " #`), or names a file that exists.
        name: what diagnostics call the text if it is not a file.
        verify: whether to check the rules of our dialects too.

    Raises:
        DiagnosticError: if the text does not read, or breaks a rule.
        OSError: if the file cannot be read.
    """
    return parse_source(source_of(text_or_path, name), verify=verify)


@checked
def source_of(text_or_path: str | Path, name: str = "<string>") -> Source:
    """The source that `parse` reads.

    Raises:
        DiagnosticError: if it is not UTF-8.
        OSError: if the file cannot be read.
    """
    if isinstance(text_or_path, str) and not _is_path(text_or_path):
        return decode_utf8(text_or_path.encode("utf-8", "surrogateescape"), name)
    if "\0" in os.fspath(text_or_path):
        raise ValueError(f"the path of a file must not contain the character 0, but got {os.fspath(text_or_path)!r}")
    with open(text_or_path, "rb") as f:
        return decode(f.read(), str(text_or_path))


def decode(data: bytes, name: str) -> Source:
    """The source held by the bytes of a file: UTF-8 text, or MLIR's bytecode as text.

    Raises:
        DiagnosticError: if it is neither.
    """
    if not data.startswith(_BYTECODE):
        return decode_utf8(data, name)
    context, where = Context(dialects()), Position(name)
    context.load([v for v in VARIANTS if dialects((v,))[0].name.encode() in data])
    enter("MLIR's reader of bytecode", where)
    try:
        with context:
            return Source(print_op(mlir.Module.parse(data).operation, debuginfo=True), name)
    except mlir.MLIRError as e:
        diagnostics = from_mlir(e, context) or [Diagnostic("error", "cannot be read as bytecode", where)]
        raise DiagnosticError([structs.replace(d, position=where) for d in diagnostics]) from None
    except (RuntimeError, UnicodeDecodeError):
        # Strings of broken bytecode need not be UTF-8, which the bindings do not expect.
        raise DiagnosticError([Diagnostic("error", "cannot be read as bytecode", where)]) from None


def _is_path(text: str) -> bool:
    if "\n" in text or not text.strip():
        return False
    return not re.search(r'[{}%@="#]', text) or os.path.isfile(text)


def parse_source(
    source: Source,
    *,
    context: Context | None = None,
    verify: bool = True,
    dialects: Sequence[type[Dialect]] | None = None,
) -> Module:
    """Read a module from a source, and verify it.

    Args:
        dialects: the dialects of the context in which the text is; by default those whose syntax it has.

    Raises:
        DiagnosticError: if the text does not read, or breaks a rule.
    """
    context = context or current()
    source.check_nesting()
    source.check_numbers()
    source.check_arrays()
    source.check_dialects()
    source.check_aliases()
    try:
        return _read(source, context, context.dialects_of(source.text) if dialects is None else dialects, verify)
    except DiagnosticError as e:
        for offset, message in filter(None, (d.doubt(source.text) for d in context.irdl_dialects)):
            note = Diagnostic("note", message, source.position(offset))
            e.diagnostics[0] = structs.replace(e.diagnostics[0], notes=(*e.diagnostics[0].notes, note))
        raise


def _read(source: Source, context: Context, dialects: Sequence[type[Dialect]], verify: bool) -> Module:
    original = source
    for dialect in dialects:
        if (text := dialect.prepared(source.text)) is not source.text:
            source = structs.replace(source, text=text)
    while True:
        rewritten = Reader(source, dialects).rewrite()
        enter("MLIR's reader", source.position(0))
        try:
            with context:
                module = mlir.Module.parse(rewritten.text)
            break
        except mlir.MLIRError as e:
            # MLIR 22 refuses some texts without a diagnostic.
            found = from_mlir(e, context, rewritten) or [Diagnostic("error", "cannot be parsed", source.position(0))]
            mended = with_cast(source, found) or without_flags(source)
            if mended is None:
                raise DiagnosticError(found, [source]) from None
            source = mended
    _relocate(module.operation, rewritten)
    made = Module(module, (original,))
    if verify:
        made.verify()
    return made


def _relocate(root: mlir.Operation, rewritten: Rewritten) -> None:
    """Make locations refer to the user's file instead of the rewritten text."""
    context, source = root.context, rewritten.source
    shifted = rewritten.shifted_lines()
    file, name, line_offset = mlir.Location.file, source.name, source.first_line - 1

    def moved(line: int, column: int) -> mlir.Location:
        if line in shifted:
            where = source.position(rewritten.source_offset(line, column))
            return file(where.file, where.line, where.column, context)
        return file(name, line + line_offset, column, context)

    stated = "loc(" in source.text

    def is_ours(location: mlir.Location) -> bool:
        return location.is_a_file() and (not stated or _file_of(location) == _BUFFER)

    states_root = not is_ours(root.location)
    moves: list[tuple[mlir.Operation, mlir.Location]] = []
    for op in walk(root):
        location = op.location
        if is_ours(location) and (line := location.start_line):
            moves.append((op, moved(line, location.start_col)))
        for block in blocks_in(op):
            for argument in block.arguments:
                location = argument.location
                if is_ours(location):
                    argument.set_location(moved(location.start_line, location.start_col))
    # The innermost first: setting the location of an op without results may replace it (`bindings`).
    for op, where in reversed(moves):
        op.location = where
    if not states_root:
        root.location = file(source.name, source.first_line, 1, context)


def _file_of(location: mlir.Location) -> str:
    name = location.filename
    return name.value if isinstance(name, mlir.StringAttr) else str(name)


def from_mlir(error: mlir.MLIRError, context: Context, rewritten: Rewritten | None = None) -> list[Diagnostic]:
    """The diagnostics of an MLIR error, at positions in the user's text and in dialect syntax."""
    own = printer.Printer(context.irdl_dialects)
    return [_from_mlir(d, own, rewritten) for d in error.error_diagnostics]


def from_diagnostic(info: Any, context: Context) -> Diagnostic:
    """A diagnostic that MLIR reports, in dialect syntax."""
    return _from_mlir(info, printer.Printer(context.irdl_dialects), None)


def _from_mlir(info: Any, own: printer.Printer, rewritten: Rewritten | None) -> Diagnostic:
    where = position_of(info.location)
    if rewritten and where.file == _BUFFER:
        source = rewritten.source
        offset = rewritten.source_offset(where.line, where.column) if where.line else 0
        where = source.position(offset)
    notes = tuple(_from_mlir(n, own, rewritten) for n in info.notes)
    severity: Any = str(info.severity).rpartition(".")[2].lower() if info.message else "error"
    return Diagnostic(severity, own.rewrite(info.message) + _similar_op(info.message), where, notes)


def _similar_op(message: str) -> str:
    """The end of a message of MLIR that an op of its own does not exist."""
    unknown = re.match(r"(?:custom op|unregistered operation) .*'(\w+)\.([\w.]+)'", message)
    if not unknown:
        return ""
    dialect, name = unknown.groups()
    names = [full.partition(".")[2] for full in upstream_operations(dialect)]
    return did_you_mean(name, names, f"{dialect}.")


__all__ = ["Module", "Position", "from_mlir", "parse", "parse_source", "print_op"]


# MLIR contexts in which our dialects are defined.

DIALECTS = ("xegpu", "xetile", "visa", "iree_vector_ext", "tt", "ttg")
"""Our dialects: modules of `xegpu_py.dialects`, each with a `DIALECT`."""

ON_DEMAND = ("xetile", "visa", "iree_vector_ext", "tt", "ttg")
"""Dialects that a context loads when a text names them, or on request: their import (for layouts, that of numpy) takes
as long as all else."""

VARIANTS = ("xegpu.upstream_ops",)
"""Dialects that texts name as others: see `Dialect.variant`."""

UPSTREAM = (
    "builtin", "func", "arith", "math", "index", "vector", "memref", "scf", "cf", "gpu", "affine", "ub", "irdl",
)  # fmt: skip
"""Upstream's dialects that ops may be built in at once; MLIR loads others when it meets them in a text. Its C++
`xegpu` must not be among them: that leaves the name to ours."""


def dialects(names: Sequence[str] = DIALECTS) -> tuple[type[Dialect], ...]:
    """Our dialect classes of these names."""
    return tuple(importlib.import_module(f"xegpu_py.dialects.{n}").DIALECT for n in names)


_USES = 16
"""How often a context is used: the types, attributes and locations of all texts live as long as it does."""

_MOST_KEPT = 4

_kept: list[Context] = []
"""The contexts of `Context.unused` that may be used again, in the order in which they began."""

_keeping = threading.Lock()


def _references(objects: Sequence[Any], i: int) -> int:
    return sys.getrefcount(objects[i])


_ONLY_KEPT = _references([object()], 0)
"""The references to an object that a list holds, and nothing else."""


class Context(ir.Context):  # type: ignore[misc]
    """An MLIR context with upstream's dialects and ours.

    Attributes:
        irdl_dialects: our loaded dialects. By default, those of `ON_DEMAND` are loaded when a text names them.
    """

    irdl_dialects: tuple[type[Dialect], ...]

    @checked
    def __init__(self, irdl_dialects: Sequence[type[Dialect]] | None = None) -> None:
        super().__init__(load_on_create_dialects=[])
        for name in UPSTREAM:
            # Not `self.dialects[name]`, which imports the bindings' module of the dialect too.
            self.get_dialect_descriptor(name)
        # Python passes hold the interpreter lock, so a thread pool would only add its start-up time.
        self.enable_multithreading(False)
        self.irdl_dialects = ()
        self._uses = 0
        self._defined = set[type[Dialect]]()
        self._is_open = irdl_dialects is None
        self.define(
            tuple(irdl_dialects) if irdl_dialects is not None else dialects([n for n in DIALECTS if n not in ON_DEMAND])
        )

    @classmethod
    def unused(cls) -> Context:
        """A context in which nothing lives: a new one, or one of earlier calls to which nothing refers any more.

        A new one takes 2 to 8 ms, for the definition of its dialects.
        """
        Decoded.forget_all()
        with _keeping:
            free = next((i for i in range(len(_kept)) if _references(_kept, i) == _ONLY_KEPT), None)
            context = cls() if free is None else _kept.pop(free)
            context._begin()
            if context._uses < _USES:
                _kept.append(context)
            del _kept[:-_MOST_KEPT]
        return context

    def _begin(self) -> None:
        """Hide what earlier uses have defined and allowed."""
        self._uses += 1
        self.allow_unregistered_dialects = False
        self.irdl_dialects = ()
        self.load([name for name in DIALECTS if name not in ON_DEMAND])

    def load(self, names: Sequence[str]) -> None:
        """Load dialects of ours."""
        self.define(dialects(names))

    def load_dialects_of(self, text: str) -> None:
        """Load the dialects that a text names, as MLIR does with its own."""
        if self._is_open:
            mentioned = [n for n in ON_DEMAND if f"{n}." in text]
            if mentioned:
                self.load(mentioned)

    def dialects_of(self, text: str) -> tuple[type[Dialect], ...]:
        """The dialects in which a text is read; those that it names are loaded."""
        self.load_dialects_of(text)
        if not self._is_open:
            return self.irdl_dialects
        spoken = []
        for dialect in [d for d in self.irdl_dialects if d.name == d.namespace]:
            other = dialect.variant(text)
            if other:
                self.load((other,))
            spoken.append(dialects((other,))[0] if other else dialect)
        return tuple(spoken)

    def define(self, dialects: tuple[type[Dialect], ...]) -> None:
        """Define dialects that are not defined yet."""
        dialects = tuple(d for d in dialects if d not in self.irdl_dialects)
        if dialects:
            self.irdl_dialects += dialects
            with self, ir.Location.unknown():
                load([d for d in dialects if d not in self._defined])
            self._defined.update(dialects)


def dialects_of(text: str) -> tuple[type[Dialect], ...]:
    """Our dialects, of which one namespace may mean another in another text."""
    context = Context.unused()
    context.load(DIALECTS)
    return context.dialects_of(text)


def current() -> Context:
    """The current context if it is one of ours, else a new one."""
    try:
        context = ir.Context.current
    except ValueError:
        context = None
    return context if isinstance(context, Context) else Context.unused()


# The IRDL definition of a dialect: as much of its constraints as IRDL can hold.


class _Body:
    """The constraint operations of one definition."""

    def __init__(self, words: bool = True) -> None:
        self.words = words
        self.lines: list[str] = []
        self._bases: set[str] = set()

    def constraint(self, text: str) -> str:
        # Each use gets a value of its own: uses of one value would have to be equal.
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        if text.startswith("irdl.base "):
            self._bases.add(name)
        return name

    def any_of(self, names: list[str]) -> str:
        if len(names) == 1:
            return names[0]
        # MLIR 22 stops the process on an any_of that has an irdl.base among its members.
        if not self._bases.isdisjoint(names):
            return self.constraint("irdl.any")
        return self.constraint(f"irdl.any_of({', '.join(names)})")


def dump(dialect: type[Dialect], *, words: bool = True) -> str:
    """The dialect's definition as IRDL text, which stock `mlir-opt --irdl-file` loads too.

    Args:
        words: whether it lists the words and numbers that an op's attribute may have.
    """
    out = [f"irdl.dialect @{dialect.name} {{"]
    for enum in dialect.enums.values():
        out += _definition("attribute", enum.name, _enum(enum))
    for attr in dict.fromkeys(dialect.attributes.values()):
        out += _definition("attribute", attr.name, _parameters(attr))
    for cls in dict.fromkeys(dialect.types.values()):
        out += _definition("type", cls.name, _parameters(cls))
    for op in dict.fromkeys(dialect.operations.values()):
        out += _definition("operation", op.OPERATION_NAME.partition(".")[2], _operation(op, words))
    return "\n".join([*out, "}", ""])


_DEFINITIONS: dict[type[Dialect], str | bytes] = {}
"""The text that a context reads to define a dialect; after the second time bytecode, which is read in half the time."""


def load(dialects: Sequence[type[Dialect]]) -> None:
    """Define the dialects in the current context."""
    for dialect in dialects:
        dialect.declare()
        known = _DEFINITIONS.get(dialect)
        # `verify` checks words. To read those of visa would take as long as all else.
        definition = dump(dialect, words=False) if known is None else known
        module = ir.Module.parse(definition)
        load_dialects(module)
        if isinstance(known, str):
            module.operation.write_bytecode(buffer := BytesIO())
            definition = buffer.getvalue()
        _DEFINITIONS[dialect] = definition


def _definition(declaration: str, name: str, body: list[str]) -> list[str]:
    return [f"  irdl.{declaration} @{name} {{", *(f"    {line}" for line in body), "  }"]


def _enum(enum: EnumCodec) -> list[str]:
    body = _Body()
    enumerator = body.any_of([body.constraint(f'irdl.is "{c.value}"') for c in enum.cases])
    return [*body.lines, f"irdl.parameters(value: {enumerator})"]


def _parameters(cls: type[Type] | type[Attr]) -> list[str]:
    body = _Body()
    listed = [f"{name}: {codec.irdl(body)}" for name, codec in cls.parameters().items()]
    return [*body.lines, f"irdl.parameters({', '.join(listed)})"] if listed else []


def _operation(op: type[Operation], words: bool) -> list[str]:
    body, spec = _Body(words), op.spec
    operands = [text for f in spec.operands for text in _values(body, f)]
    results = [text for f in spec.results for text in _values(body, f)]
    # An attribute that IRDL knows must be there, so optional ones are left to our own verifier.
    required = [f'"{a.name}" = {a.codec.irdl(body)}' for a in spec.attributes.values() if a.required]
    regions = [f"{r.name}: {body.constraint('irdl.region')}" for r in spec.regions]
    for keyword, listed in (("operands", operands), ("results", results)):
        if listed:
            body.lines.append(f"irdl.{keyword}({', '.join(listed)})")
    if required:
        body.lines.append(f"irdl.attributes {{{', '.join(required)}}}")
    if regions:
        body.lines.append(f"irdl.regions({', '.join(regions)})")
    return body.lines


def _values(body: _Body, field: ValueField) -> list[str]:
    if field.mixed:
        # All uses of one constraint would have one type.
        ones = [ValueField(f"{field.name}_{i}", "optional", field.constraints) for i in range(MIXED)]
        return [text for one in ones for text in _values(body, one)]
    constraint = body.any_of([c.irdl(body) for c in field.constraints])
    arity = "" if field.arity == "single" else field.arity + " "
    return [f"{field.name}: {arity}{constraint}"]


# Semantic verification: what MLIR and IRDL cannot check of our ops.


def walk(root: ir.Operation) -> list[ir.Operation]:
    """All ops in `root`, outer before inner, itself first.

    A list, since what a callback of MLIR's own walk raises would be lost in a RuntimeError.
    """
    ops: list[ir.Operation] = []
    append, advance = ops.append, ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        append(op)
        return advance

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return ops


def functions(root: ir.Operation) -> list[ir.Operation]:
    """The functions in `root`, itself if it is one, in order. Their bodies contain none and are not searched."""
    funcs: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name not in FUNCTIONS:
            return ir.WalkResult.ADVANCE
        funcs.append(op)
        return ir.WalkResult.SKIP

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return funcs


def kernels(root: ir.Operation) -> list[ir.Operation]:
    """The kernels in `root`: its `gpu.func`s with the attribute `kernel`, and public functions of Triton's."""
    return [func for func in functions(root) if is_program(func) or (func.name == "gpu.func" and is_kernel(func))]


def is_program(func: ir.Operation) -> bool:
    """Whether a function is a kernel of Triton's, which a workgroup runs as one thread."""
    is_private = "sym_visibility" in func.attributes and func.attributes["sym_visibility"].value == "private"
    return "tt.func" in func.attributes and not is_private


def argument_names(func: ir.Operation, sources: Sequence[Source]) -> tuple[str, ...]:
    """The names of a function's arguments in their locations or its text, such as `%C`; "" for those without one."""
    names = []
    for argument in func.regions[0].blocks[0].arguments:
        if argument.location.is_a_name():
            names.append(f"%{argument.location.name_str}")
            continue
        where = position_of(argument.location)
        lines = [s.line(where.line) for s in sources if s.name == where.file]
        match = next((m for line in lines if line and (m := _SSA_NAME.match(line, where.column - 1))), None)
        names.append(match[0] if match else "")
    return tuple(names)


def verify(root: ir.Operation, bodies: PendingFunctions | None = None) -> list[Diagnostic]:
    """The rules of our dialects that ops in `root` break, in order; an empty list if none.

    Args:
        bodies: where dialects note the bodies of functions that they decode.
    """
    diagnostics: list[Diagnostic] = []
    # The rules depend on types and attributes only, so equal ops are checked once.
    rule_results: dict[Any, Broken] = {}
    # Types, and attributes by op and name, that are known to be valid; most ops share a few of them.
    valid: set[Any] = set()
    ops_by_dialect: dict[type[Dialect], list[Operation]] = {}
    classes: dict[str, type[Operation] | None] = {}
    ours = {dialect.name for dialect in Dialect.__subclasses__()}
    for op in walk(root):
        name = op.name
        if name not in classes:
            # The bindings load a module to find the class of an op of upstream's.
            cls = type(op.opview) if name.partition(".")[0] in ours else ir.OpView
            classes[name] = cls if issubclass(cls, Operation) else None
        declared = classes[name]
        if declared is None:
            continue
        if declared.dialect_class.rules:
            ops_by_dialect.setdefault(declared.dialect_class, []).append(op.opview)
        types = tuple([v.type for v in op.operands] + [v.type for v in op.results])
        key = (name, types, tuple(op.attributes.items()))
        if key not in rule_results:
            view = op.opview
            rule_results[key] = _broken_type(view, types, valid) or _broken_rule(view, valid)
        broken = rule_results[key]
        if broken:
            diagnostics.append(op_error(op, broken[0], *broken[1]))
    if not diagnostics:
        bodies = bodies or PendingFunctions()
        diagnostics = [
            d for dialect, ops in ops_by_dialect.items() for rule in dialect.rules for d in rule(ops, bodies)
        ]
    return diagnostics


def _broken_type(view: Operation, types: tuple[ir.Type, ...], valid: set[Any]) -> Broken:
    for ir_type in dict.fromkeys(types):
        if (view.dialect_class, ir_type) in valid:
            continue
        declared = view.declared_type(ir_type)
        problem = declared.problem() if declared else None
        if problem:
            return problem, ()
        valid.add((view.dialect_class, ir_type))
    return None


def _broken_rule(view: Operation, valid: set[Any]) -> Broken:
    attributes = view.operation.attributes
    spec = view.spec
    for name, value in attributes.items():
        if (view.OPERATION_NAME, name, value) in valid:
            continue
        attribute = spec.attributes.get(name)
        if attribute is None:
            if "." not in name and name not in SEGMENTS.values() and not view.dialect_class.any_attributes:
                return unknown_attribute(name, type(view))[0], ()
            continue
        try:
            attribute.codec.decode(str(value))
        except ValueError as e:
            return f"attribute '{name}': {e}", ()
        valid.add((view.OPERATION_NAME, name, value))
    if spec.index_lists:
        for group, size in zip(spec.operands, group_sizes(view, "operand")):
            if group.name in spec.index_lists:
                dynamic_count = getattr(view, STATIC + group.name).count(DYNAMIC)
                if dynamic_count != size:
                    return (
                        f"'{STATIC}{group.name}' has {dynamic_count} dynamic entries, but there are {size} operands",
                        (),
                    )
    return view.broken_rule()


# Functions whose bodies are kept below the IR, in a form of their dialect's own, until somebody needs their ops.


class Body(Protocol):
    """A form of a function's body below the IR. It is immutable."""

    def clear(self, func: ir.Operation) -> None:
        """Leave a function without ops, but valid."""

    def build(self, func: ir.Operation) -> None:
        """Make the ops in an empty function."""

    def verify(self, func: ir.Operation) -> list[Diagnostic]:
        """The rules that the body breaks."""


class _Entry(Struct):
    """A function, its body, whether its ops are still to be made, and whether the body is known to be valid."""

    func: ir.Operation
    body: Body
    pending: bool = False
    valid: bool = False


class PendingFunctions:
    """The bodies that are known of a module's functions.

    Some were decoded from the ops of their function, or those ops were built from them. The others are pending: their
    functions are empty. Once others have ops of the module, which they may change at any time, only pending bodies are
    known.
    """

    def __init__(self) -> None:
        """Start without known bodies."""
        self._is_shared = False
        # By name, since an op's hash changes with its attributes.
        self._known: dict[str, list[_Entry]] = {}

    def _entries(self) -> Iterator[_Entry]:
        for entries in self._known.values():
            yield from entries

    def _find(self, func: ir.Operation) -> _Entry | None:
        entries = self._known.get(_name(func), ()) if self._known else ()
        return next((entry for entry in entries if entry.func == func), None)

    def get(self, func: ir.Operation) -> Body | None:
        """The body of a function, if it is known."""
        entry = self._find(func)
        return entry.body if entry else None

    def note(self, func: ir.Operation, body: Body) -> None:
        """The ops of a function are this body."""
        if not self._is_shared:
            self._add(func, body)

    def _add(self, func: ir.Operation, body: Body) -> _Entry:
        entry = _Entry(func, body)
        self._known.setdefault(_name(func), []).append(entry)
        return entry

    def put(self, func: ir.Operation, body: Body) -> None:
        """Give a function another body, and leave its ops for later."""
        entry = self._find(func) or self._add(func, body)
        if not entry.pending:
            body.clear(func)
        entry.body, entry.pending, entry.valid = body, True, False

    def build(self) -> None:
        """Make the ops of all functions."""
        for entry in self._entries():
            if entry.pending:
                entry.body.build(entry.func)
                entry.pending = False
        if self._is_shared:
            self._known.clear()

    def forget(self) -> None:
        """Make the ops of all functions, which a pass may then change."""
        self.build()
        self._known.clear()

    def share(self) -> None:
        """Make the ops of all functions, which others may then change at any time."""
        self._is_shared = True
        self.build()

    def verify(self) -> list[Diagnostic]:
        """The rules that pending bodies break. Each body is verified once."""
        diagnostics: list[Diagnostic] = []
        for entry in self._entries():
            if entry.pending and not entry.valid:
                problems = entry.body.verify(entry.func)
                diagnostics += problems
                entry.valid = not problems
        return diagnostics


def _name(func: ir.Operation) -> str:
    return func.attributes["sym_name"].value
