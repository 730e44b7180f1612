"""Modules in memory: reading, editing and verification."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mlir import ir
from mlir import ir as mlir
from msgspec import structs

from xegpu_py.argument_types import checked
from xegpu_py.deferred import deferred
from xegpu_py.did_you_mean import did_you_mean
from xegpu_py.ir.assembly_format import unknown_attribute
from xegpu_py.ir.bindings import blocks_in, import_views, is_kernel, upstream_operations
from xegpu_py.ir.context import VARIANTS, Context, current, dialects
from xegpu_py.ir.definition import DYNAMIC, FUNCTIONS, Dialect
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
from xegpu_py.ir.operation import SEGMENTS, STATIC, Broken, Operation, group_sizes
from xegpu_py.ir.pending_functions import PendingFunctions
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
